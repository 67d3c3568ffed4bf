//! An in-order queue with timing.
//!
//! A point in time is marked by a real command, a four-byte fill: drivers disagree about the profiling
//! stamps of markers. The time between two points is from the end of the first fill to the start of the
//! second, which is exactly the work queued between them.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cl3::memory::CL_MEM_READ_WRITE;

use super::device::{Buffer, Loaded, OpenClDevice, Stamp, Storage, lock};
use super::error::{failed, refused};
use super::object::{Event, Kernel, Memory, Queue};
use crate::backend::{Arg, DeviceError, Launch, RawBuffer, RawGemm, Stream, TimingEvent};
use crate::kernel::{ArgKind, GEMM_GROUP};
use crate::unit::{Bytes, Seconds};

/// An in-order queue.
pub struct OpenClStream<'d> {
    device: &'d OpenClDevice,
    queue: Queue,
    stamp: Memory,
    /// Host buffers of copies that may still run.
    in_flight: Vec<Arc<Buffer>>,
    /// Points of this stream whose times were not read yet.
    open: Vec<u64>,
    /// All points of this stream, forgotten with it.
    points: Vec<u64>,
}

impl<'d> OpenClStream<'d> {
    /// A new queue on `device`.
    pub fn new(device: &'d OpenClDevice) -> Result<OpenClStream<'d>, DeviceError> {
        Ok(OpenClStream {
            device,
            queue: device.context.queue(device.raw.0)?,
            stamp: device.context.buffer(CL_MEM_READ_WRITE, size_of::<u32>())?,
            in_flight: Vec::new(),
            open: Vec::new(),
            points: Vec::new(),
        })
    }

    fn keep(&mut self, buffer: &Arc<Buffer>) {
        if !self.in_flight.iter().any(|kept| Arc::ptr_eq(kept, buffer)) {
            self.in_flight.push(Arc::clone(buffer));
        }
    }

    /// Reads the times of completed points and gives their events back to the driver.
    fn settle(&mut self) -> Result<(), DeviceError> {
        for point in std::mem::take(&mut self.open) {
            let event = match lock(&self.device.stamps).get(&point) {
                Some(Stamp::Queued(event)) => Arc::clone(event),
                _ => continue,
            };
            let (start, end) = event.times()?;
            lock(&self.device.stamps).insert(point, Stamp::Done(start, end));
        }
        Ok(())
    }

    fn times(&self, point: TimingEvent) -> Result<(u64, u64), DeviceError> {
        let event = match lock(&self.device.stamps).get(&point.0) {
            Some(Stamp::Done(start, end)) => return Ok((*start, *end)),
            Some(Stamp::Queued(event)) => Arc::clone(event),
            None => return Err(refused("elapsed", format!("unknown event {}", point.0))),
        };
        event.times()
    }

    /// Sets all arguments of `loaded` and queues it.
    fn launch_with(&self, loaded: &Loaded, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let kinds = loaded.id.args();
        let wrong = |text: String| refused("launch", format!("{}: {text}", loaded.id));
        if kinds.len() != launch.args.len() {
            return Err(wrong(format!("{} arguments, {} expected", launch.args.len(), kinds.len())));
        }
        let kernel = lock(&loaded.kernel);
        for (i, (kind, arg)) in kinds.iter().zip(launch.args).enumerate() {
            match (kind, arg) {
                (ArgKind::Buffer, Arg::Buffer(raw)) => self.set_buffer(&kernel, i, *raw)?,
                (ArgKind::U32, Arg::U32(value)) => kernel.set(i, value)?,
                (ArgKind::I32, Arg::I32(value)) => kernel.set(i, value)?,
                (ArgKind::U64, Arg::U64(value)) => kernel.set(i, value)?,
                (ArgKind::F32, Arg::F32(value)) => kernel.set(i, value)?,
                (ArgKind::F64, Arg::F64(value)) => kernel.set(i, value)?,
                (kind, arg) => return Err(wrong(format!("argument {i} is {arg:?}, {kind:?} expected"))),
            }
        }
        kernel.set(kinds.len(), &launch.lanes)?;
        self.queue.launch(&kernel, self.device.groups(loaded, launch.lanes), loaded.local)
    }

    /// Passes device memory to a kernel; returns its size.
    fn set_buffer(&self, kernel: &Kernel, index: usize, raw: RawBuffer) -> Result<(), DeviceError> {
        let buffer = self.device.buffer(raw)?;
        match &buffer.storage {
            Storage::Device(memory) => kernel.set(index, &memory.0),
            Storage::Host(_) => Err(refused("launch", format!("argument {index} is a buffer of the host"))),
        }
    }
}

impl Stream for OpenClStream<'_> {
    fn copy(&mut self, to: RawBuffer, from: RawBuffer, size: Bytes) -> Result<(), DeviceError> {
        let size = size.count();
        let (target, source) = (self.device.buffer(to)?, self.device.buffer(from)?);
        check_range("copy", 0, size, target.size.min(source.size))?;
        if to == from {
            return Err(refused("copy", "source and target are one buffer"));
        }
        match (&target.storage, &source.storage) {
            (Storage::Device(memory), Storage::Device(other)) => {
                // SAFETY: both are valid; the range was checked.
                unsafe {
                    cl3::command_queue::enqueue_copy_buffer(self.queue.0, other.0, memory.0, 0, 0, size, 0, ptr::null())
                }
                .map(|event| drop(Event(event)))
                .map_err(failed("clEnqueueCopyBuffer"))
            }
            (Storage::Device(memory), Storage::Host(host)) => {
                self.keep(&source);
                // SAFETY: the range was checked; `in_flight` keeps the host memory until the queue is drained.
                unsafe { write(&self.queue, memory, false, 0, size, host.address.as_ptr()) }?;
                self.queue.flush()
            }
            (Storage::Host(host), Storage::Device(memory)) => {
                self.keep(&target);
                // SAFETY: as above.
                unsafe { read(&self.queue, memory, false, 0, size, host.address.as_ptr()) }?;
                self.queue.flush()
            }
            (Storage::Host(target), Storage::Host(source)) => {
                // The processor copies, when its turn has come.
                self.queue.finish()?;
                // SAFETY: two different allocations, both at least `size` long, and nothing is queued on them.
                unsafe { ptr::copy_nonoverlapping(source.address.as_ptr(), target.address.as_ptr(), size) };
                Ok(())
            }
        }
    }

    fn upload(&mut self, to: RawBuffer, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        let target = self.device.buffer(to)?;
        check_range("upload", offset, data.len(), target.size)?;
        if data.is_empty() {
            return Ok(());
        }
        match &target.storage {
            // SAFETY: the range was checked and the call waits for completion.
            Storage::Device(memory) => unsafe {
                write(&self.queue, memory, true, offset, data.len(), data.as_ptr().cast_mut())
            },
            Storage::Host(host) => {
                self.queue.finish()?;
                // SAFETY: the range was checked and nothing queued here uses the memory any more.
                unsafe { ptr::copy_nonoverlapping(data.as_ptr(), host.address.as_ptr().add(offset), data.len()) };
                Ok(())
            }
        }
    }

    fn download(&mut self, from: RawBuffer, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        let source = self.device.buffer(from)?;
        check_range("download", offset, data.len(), source.size)?;
        if data.is_empty() {
            return Ok(());
        }
        match &source.storage {
            // SAFETY: the range was checked and the call waits for completion.
            Storage::Device(memory) => unsafe {
                read(&self.queue, memory, true, offset, data.len(), data.as_mut_ptr())
            },
            Storage::Host(host) => {
                self.queue.finish()?;
                // SAFETY: the range was checked and nothing queued here uses the memory any more.
                unsafe { ptr::copy_nonoverlapping(host.address.as_ptr().add(offset), data.as_mut_ptr(), data.len()) };
                Ok(())
            }
        }
    }

    fn launch(&mut self, launch: Launch<'_>) -> Result<(), DeviceError> {
        let loaded = self.device.kernel(launch.kernel)?;
        self.launch_with(&loaded, &launch)
    }

    fn gemm(&mut self, plan: RawGemm, a: RawBuffer, b: RawBuffer, c: RawBuffer) -> Result<(), DeviceError> {
        let planned = self.device.planned(plan)?;
        let p = &planned.problem;
        let element = p.data_type.size();
        for (name, raw, needed) in
            [("A", a, p.m * p.k * element), ("B", b, p.n * p.k * element), ("C", c, p.m * p.n * planned.size_c)]
        {
            let size = self.device.buffer(raw)?.size;
            if size < needed {
                return Err(refused("gemm", format!("{name} has {size} bytes, {needed} are needed")));
            }
        }
        let kernel = lock(&planned.kernel);
        for (i, raw) in [a, b, c].into_iter().enumerate() {
            self.set_buffer(&kernel, i, raw)?;
        }
        for (i, edge) in [p.m, p.n, p.k].into_iter().enumerate() {
            // Planning refused edges beyond 32 bits.
            kernel.set(3 + i, &(edge as u32))?;
        }
        self.queue.launch(&kernel, planned.groups(), GEMM_GROUP)
    }

    fn record(&mut self) -> Result<TimingEvent, DeviceError> {
        let event = Arc::new(self.queue.zero(&self.stamp, size_of::<u32>())?);
        // Another stream may wait for this point: it must not stay in the driver's hands.
        self.queue.flush()?;
        let point = self.device.handle();
        lock(&self.device.stamps).insert(point, Stamp::Queued(event));
        self.open.push(point);
        self.points.push(point);
        Ok(TimingEvent(point))
    }

    fn wait(&mut self, event: TimingEvent) -> Result<(), DeviceError> {
        let event = match lock(&self.device.stamps).get(&event.0) {
            Some(Stamp::Done(..)) => return Ok(()),
            Some(Stamp::Queued(event)) => Arc::clone(event),
            None => return Err(refused("wait", format!("unknown event {}", event.0))),
        };
        self.queue.wait(&event)
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.queue.finish()?;
        self.in_flight.clear();
        self.settle()
    }

    fn elapsed(&self, start: TimingEvent, end: TimingEvent) -> Result<Seconds, DeviceError> {
        let (first, second) = (self.times(start)?, self.times(end)?);
        if start == end {
            return Ok(Seconds(0.0));
        }
        let nanoseconds = second.0.checked_sub(first.1);
        let nanoseconds = nanoseconds.ok_or_else(|| refused("elapsed", "the end lies before the start"))?;
        Ok(Seconds(nanoseconds as f64 * 1e-9))
    }
}

impl Drop for OpenClStream<'_> {
    fn drop(&mut self) {
        // Host memory must outlive the copies that use it; a queue that fails has stopped using it.
        let _ = self.queue.finish();
        let mut stamps = lock(&self.device.stamps);
        for point in &self.points {
            stamps.remove(point);
        }
    }
}

fn check_range(call: &str, offset: usize, length: usize, size: usize) -> Result<(), DeviceError> {
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        _ => Err(refused(call, format!("{length} bytes at {offset} are out of bounds: the buffer has {size}"))),
    }
}

/// Queues writing `size` bytes from `data` into `memory` at `offset`.
///
/// # Safety
/// `data` is readable for `size` bytes until the command is complete.
unsafe fn write(
    queue: &Queue,
    memory: &Memory,
    blocking: bool,
    offset: usize,
    size: usize,
    data: *const u8,
) -> Result<(), DeviceError> {
    // SAFETY: the caller's promise; OpenCL checks the range within the memory object.
    unsafe {
        cl3::command_queue::enqueue_write_buffer(
            queue.0,
            memory.0,
            u32::from(blocking),
            offset,
            size,
            data.cast::<c_void>(),
            0,
            ptr::null(),
        )
    }
    .map(|event| drop(Event(event)))
    .map_err(failed("clEnqueueWriteBuffer"))
}

/// Queues reading `size` bytes of `memory` at `offset` into `data`.
///
/// # Safety
/// `data` is writable for `size` bytes until the command is complete, and nobody else uses it.
unsafe fn read(
    queue: &Queue,
    memory: &Memory,
    blocking: bool,
    offset: usize,
    size: usize,
    data: *mut u8,
) -> Result<(), DeviceError> {
    // SAFETY: the caller's promise; OpenCL checks the range within the memory object.
    unsafe {
        cl3::command_queue::enqueue_read_buffer(
            queue.0,
            memory.0,
            u32::from(blocking),
            offset,
            size,
            data.cast::<c_void>(),
            0,
            ptr::null(),
        )
    }
    .map(|event| drop(Event(event)))
    .map_err(failed("clEnqueueReadBuffer"))
}
