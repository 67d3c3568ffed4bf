//! Reference functions of every kernel and of matrix multiplication, on plain bytes: what a simulated device
//! really computes. Written for clarity; every result is what `kernel` says, for any grid.

use half::{bf16, f16};

use crate::kernel::pattern;
use crate::record::DataType;

/// Little-endian words of `data` as `f32`.
fn floats(data: &[u8]) -> impl Iterator<Item = f32> + '_ {
    data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b))
}

fn words(data: &[u8]) -> impl Iterator<Item = u32> + '_ {
    data.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b))
}

/// Writes `value(i)` as the i-th word of the first `4n` bytes.
fn fill<const N: usize>(out: &mut [u8], mut value: impl FnMut(usize) -> [u8; N]) {
    for (i, word) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        *word = value(i);
    }
}

/// `out[lane]` = sum of every `lanes`-th element of `src` from `lane` on.
pub fn read(src: &[u8], out: &mut [u8], lanes: usize) {
    let mut sums = vec![0f32; lanes];
    for (i, x) in floats(src).enumerate() {
        sums[i % lanes] += x;
    }
    fill(out, |lane| sums[lane].to_le_bytes());
}

/// `dst[i] = value`.
pub fn write(dst: &mut [u8], value: f32) {
    fill(dst, |_| value.to_le_bytes());
}

/// `c[i] = s·a[i]`.
pub fn scale(a: &[u8], c: &mut [u8], s: f32) {
    for (x, c) in floats(a).zip(c.as_chunks_mut::<4>().0) {
        *c = (s * x).to_le_bytes();
    }
}

/// `c[i] = a[i] + s·b[i]`, each operation rounded.
pub fn triad(a: &[u8], b: &[u8], c: &mut [u8], s: f32) {
    for ((x, y), c) in floats(a).zip(floats(b)).zip(c.as_chunks_mut::<4>().0) {
        *c = (x + s * y).to_le_bytes();
    }
}

/// Where the chain of `lane` starts.
fn start(lane: usize) -> f64 {
    1.0 + (lane % 64) as f64 / 64.0
}

/// Chains of multiply-adds: lanes repeat every 64, so 64 chains are all there is.
fn chains<T: Copy>(from: impl Fn(f64) -> T, step: impl Fn(T) -> T, iterations: u32) -> Vec<T> {
    (0..64).map(|lane| (0..iterations).fold(from(start(lane)), |x, _| step(x))).collect()
}

/// `x = fma(x, m, k)` in double.
pub fn fma_fp64(out: &mut [u8], m: f64, k: f64, iterations: u32) {
    let ends = chains(|x| x, |x: f64| x.mul_add(m, k), iterations);
    fill(out, |lane| ends[lane % 64].to_le_bytes());
}

/// `x = fma(x, m, k)` in single.
pub fn fma_fp32(out: &mut [u8], m: f32, k: f32, iterations: u32) {
    let ends = chains(|x| x as f32, |x: f32| x.mul_add(m, k), iterations);
    fill(out, |lane| ends[lane % 64].to_le_bytes());
}

/// `x = fma(x, m, k)` in half: the product of two halves is exact in double.
pub fn fma_fp16(out: &mut [u8], m: f32, k: f32, iterations: u32) {
    let (m, k) = (f16::from_f32(m).to_f64(), f16::from_f32(k).to_f64());
    let ends = chains(f16::from_f64, |x: f16| f16::from_f64(x.to_f64() * m + k), iterations);
    fill(out, |lane| ends[lane % 64].to_le_bytes());
}

/// `x += dot4(a, lane·0x01010101)`, wrapping, from `x = lane`.
pub fn dot_int8(out: &mut [u8], a: i32, iterations: u32) {
    fill(out, |lane| {
        let lane = lane as u32;
        let b = lane.wrapping_mul(0x0101_0101).to_le_bytes();
        let dot: i32 = a.to_le_bytes().iter().zip(b).map(|(x, y)| i32::from(*x as i8) * i32::from(y as i8)).sum();
        (lane as i32).wrapping_add(dot.wrapping_mul(iterations as i32)).to_le_bytes()
    });
}

/// Where `hops` links from `start` lead; `None` if a link points outside.
pub fn chase(next: &[u8], start: u32, hops: u32) -> Option<u32> {
    let next = next.as_chunks::<4>().0;
    (0..hops).try_fold(start, |at, _| next.get(at as usize).map(|b| u32::from_le_bytes(*b)))
}

/// The address-derived pattern.
pub fn pattern_write(buffer: &mut [u8], seed: u32, invert: u32) {
    fill(buffer, |i| (pattern(i as u64, seed) ^ invert).to_le_bytes());
}

/// Words that do not hold the pattern.
pub fn pattern_errors(buffer: &[u8], seed: u32, invert: u32) -> u32 {
    words(buffer).enumerate().filter(|(i, w)| *w != pattern(*i as u64, seed) ^ invert).count() as u32
}

/// Relative rounding units of accumulation and output, for types the simulation multiplies; `None` for others.
/// Rounding tf32's inputs counts as accumulation.
pub fn roundoff(data_type: DataType) -> Option<(f64, f64)> {
    let two = |e: i32| 2f64.powi(e);
    Some(match data_type {
        DataType::Fp64 => (two(-53), two(-53)),
        DataType::Fp32 => (two(-24), two(-24)),
        DataType::Tf32 => (two(-11), two(-24)),
        DataType::Fp16 => (two(-24), two(-11)),
        DataType::Bf16 => (two(-24), two(-8)),
        DataType::Fp8 => (two(-24), two(-4)),
        DataType::Int8 => (0.0, 0.0),
        DataType::Fp4 => return None,
    })
}

/// Bytes of one element of C.
pub fn size_c(data_type: DataType) -> usize {
    if data_type == DataType::Int8 { 4 } else { data_type.size() }
}

/// `C = A · Bᵀ` with A m×k, B n×k, C m×n. `spoil(i, c)` sees every element before it is stored.
pub fn gemm(
    data_type: DataType,
    edges: [usize; 3],
    a: &[u8],
    b: &[u8],
    c: &mut [u8],
    spoil: impl Fn(usize, f64) -> f64,
) {
    match data_type {
        DataType::Fp64 => {
            let read = |d: &[u8]| d.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect::<Vec<_>>();
            let product = multiply(edges, &read(a), &read(b));
            fill(c, |i| spoil(i, product[i]).to_le_bytes());
        }
        DataType::Int8 => {
            // Sums of products of bytes are exact in double.
            let read = |d: &[u8]| d.iter().map(|b| f64::from(*b as i8)).collect::<Vec<_>>();
            let product = multiply(edges, &read(a), &read(b));
            fill(c, |i| (spoil(i, product[i]) as i64 as i32).to_le_bytes());
        }
        _ => {
            let product = multiply(edges, &singles(data_type, a), &singles(data_type, b));
            let product = |i: usize| spoil(i, f64::from(product[i])) as f32;
            match data_type {
                DataType::Fp16 => fill(c, |i| f16::from_f32(product(i)).to_le_bytes()),
                DataType::Bf16 => fill(c, |i| bf16::from_f32(product(i)).to_le_bytes()),
                DataType::Fp8 => fill(c, |i| [e4m3_from(product(i))]),
                _ => fill(c, |i| product(i).to_le_bytes()),
            }
        }
    }
}

/// `A · Bᵀ` in the arithmetic of `T`, on one thread: other simulated devices compute at the same time.
fn multiply<T>([m, n, k]: [usize; 3], a: &[T], b: &[T]) -> Vec<T>
where
    T: Copy + Default + std::ops::Mul<Output = T> + std::ops::AddAssign + std::iter::Sum,
{
    let mut c = Vec::with_capacity(m * n);
    for row in a.chunks_exact(k) {
        c.extend(b.chunks_exact(k).map(|column| dot(row, column)));
    }
    c
}

/// Sixteen partial sums, so that the compiler can use vectors.
fn dot<T>(a: &[T], b: &[T]) -> T
where
    T: Copy + Default + std::ops::Mul<Output = T> + std::ops::AddAssign + std::iter::Sum,
{
    let mut sums = [T::default(); 16];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    for (i, (x, y)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[i] += *x * *y;
    }
    sums.into_iter().sum()
}

/// Inputs as single: exact for every narrower type.
fn singles(data_type: DataType, data: &[u8]) -> Vec<f32> {
    let pairs = data.as_chunks::<2>().0;
    match data_type {
        DataType::Fp16 => pairs.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
        DataType::Bf16 => pairs.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
        DataType::Fp8 => data.iter().map(|b| e4m3_to(*b)).collect(),
        DataType::Tf32 => floats(data).map(tf32).collect(),
        _ => floats(data).collect(),
    }
}

/// Rounded to the ten mantissa bits of TF32, ties to even.
fn tf32(x: f32) -> f32 {
    if !x.is_finite() {
        return x;
    }
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x0fff + ((bits >> 13) & 1));
    f32::from_bits(rounded & !0x1fff)
}

/// E4M3: bias 7, no infinity, 0x7f and 0xff are NaN.
fn e4m3_to(byte: u8) -> f32 {
    let sign = if byte & 0x80 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(byte >> 3 & 15), f32::from(byte & 7));
    match (exponent, byte & 7) {
        (15, 7) => f32::NAN,
        (0, _) => sign * mantissa * 2f32.powi(-9),
        _ => sign * (8.0 + mantissa) * 2f32.powi(exponent - 10),
    }
}

/// Nearest E4M3, ties to even, saturating at ±448.
fn e4m3_from(x: f32) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let size = x.abs().min(448.0);
    // Step between neighbours at this size: three mantissa bits, 2⁻⁹ for subnormals.
    let exponent = if size < 2f32.powi(-6) { -6 } else { size.log2().floor() as i32 };
    let steps = (size / 2f32.powi(exponent - 3)).round_ties_even();
    // Encodings are consecutive: mantissa carry goes into the exponent by itself.
    let code = (exponent + 6) * 8 + steps as i32;
    sign | code.clamp(0, 0x7e) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn memory_kernels_do_what_they_say() {
        let (a, b) = (bytes(&[1.0, 2.0, 3.0, 4.0, 5.0]), bytes(&[10.0, 20.0, 30.0, 40.0, 50.0]));
        let mut c = vec![0; 20];
        triad(&a, &b, &mut c, 0.5);
        assert_eq!(floats(&c).collect::<Vec<_>>(), [6.0, 12.0, 18.0, 24.0, 30.0]);
        scale(&a, &mut c, 3.0);
        assert_eq!(floats(&c).collect::<Vec<_>>(), [3.0, 6.0, 9.0, 12.0, 15.0]);
        let mut sums = vec![0; 8];
        read(&a, &mut sums, 2);
        assert_eq!(floats(&sums).collect::<Vec<_>>(), [9.0, 6.0]);
    }

    #[test]
    fn arithmetic_kernels_match_the_definition() {
        let mut out = vec![0; 66 * 8];
        fma_fp64(&mut out, 0.5, 1.0, 2);
        let lane = |i: usize| f64::from_le_bytes(out[8 * i..][..8].try_into().unwrap());
        assert_eq!(lane(0), 1.75); // 1 → 1.5 → 1.75
        assert_eq!(lane(65), (1.0 + 1.0 / 64.0) * 0.25 + 1.5);
        let mut out = vec![0; 12];
        dot_int8(&mut out, i32::from_le_bytes([1, 2, 3, (-4i8) as u8]), 5);
        assert_eq!(words(&out).collect::<Vec<_>>(), [0, 1 + 5 * 2, 2 + 5 * 4]);
        let next: Vec<u8> = [2u32, 0, 1].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(chase(&next, 0, 4), Some(2));
        assert_eq!(chase(&[9, 0, 0, 0], 0, 2), None);
        let mut buffer = vec![0; 40];
        pattern_write(&mut buffer, 7, u32::MAX);
        assert_eq!(pattern_errors(&buffer, 7, u32::MAX), 0);
        buffer[5] ^= 1;
        assert_eq!(pattern_errors(&buffer, 7, u32::MAX), 1);
    }

    #[test]
    fn e4m3_is_exact_on_its_own_values_and_rounds_between() {
        for byte in 0..=255u8 {
            let x = e4m3_to(byte);
            if x.is_nan() {
                assert_eq!(byte & 0x7f, 0x7f);
            } else {
                assert_eq!(e4m3_from(x), byte, "{x}");
            }
        }
        assert_eq!(e4m3_to(e4m3_from(17.1)), 18.0);
        assert_eq!(e4m3_to(e4m3_from(17.0)), 16.0); // tie to even
        assert_eq!(e4m3_to(e4m3_from(1e9)), 448.0);
        assert_eq!(e4m3_to(0x7e), 448.0);
    }

    #[test]
    fn gemm_of_every_type_on_exact_data() {
        let (m, n, k) = (3, 5, 37);
        let a: Vec<i32> = (0..m * k).map(|i| (i as i32 * 7) % 3 - 1).collect();
        let b: Vec<i32> = (0..n * k).map(|i| (i as i32 * 5) % 3 - 1).collect();
        let encode = |t: DataType, v: &[i32]| -> Vec<u8> {
            v.iter()
                .flat_map(|&x| match t {
                    DataType::Fp64 => f64::from(x).to_le_bytes().to_vec(),
                    DataType::Fp16 => f16::from_f32(x as f32).to_le_bytes().to_vec(),
                    DataType::Bf16 => bf16::from_f32(x as f32).to_le_bytes().to_vec(),
                    DataType::Fp8 => vec![e4m3_from(x as f32)],
                    DataType::Int8 => vec![x as i8 as u8],
                    _ => (x as f32).to_le_bytes().to_vec(),
                })
                .collect()
        };
        for t in DataType::ALL.into_iter().filter(|t| roundoff(*t).is_some()) {
            let mut c = vec![0; m * n * size_c(t)];
            gemm(t, [m, n, k], &encode(t, &a), &encode(t, &b), &mut c, |_, x| x);
            for i in 0..m * n {
                let exact: i32 = (0..k).map(|l| a[i / n * k + l] * b[i % n * k + l]).sum();
                let at = &c[i * size_c(t)..][..size_c(t)];
                let found = match t {
                    DataType::Fp64 => f64::from_le_bytes(at.try_into().unwrap()),
                    DataType::Fp16 => f16::from_le_bytes(at.try_into().unwrap()).to_f64(),
                    DataType::Bf16 => bf16::from_le_bytes(at.try_into().unwrap()).to_f64(),
                    DataType::Fp8 => f64::from(e4m3_to(at[0])),
                    DataType::Int8 => f64::from(i32::from_le_bytes(at.try_into().unwrap())),
                    _ => f64::from(f32::from_le_bytes(at.try_into().unwrap())),
                };
                let rounded =
                    if t == DataType::Fp8 { f64::from(e4m3_to(e4m3_from(exact as f32))) } else { f64::from(exact) };
                assert_eq!(found, rounded, "{t} element {i}");
            }
        }
    }
}
