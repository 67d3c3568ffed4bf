/* Does nothing: what remains is the cost of launching it. */
KERNEL(empty)(u64 lanes)
{
}
