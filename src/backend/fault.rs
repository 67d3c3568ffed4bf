//! A device with a fault on purpose, around any real one: `doctor --self-test` shows with it that a wrong
//! element, a truncated copy and a slow kernel are caught on this machine. Used for nothing else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::backend::{
    Arg, Clock, Device, DeviceError, GemmPlan, GemmProblem, Launch, Place, RawBuffer, RawGemm, RawKernel, Stream,
    TimingEvent,
};
use crate::kernel::KernelId;
use crate::record::DeviceInfo;
use crate::unit::{Bytes, Seconds};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// One bit of one element of C is flipped after every GEMM.
    WrongElement,
    /// Copies and copy kernels move only this share of what they were asked for.
    TruncatedCopy(f64),
    /// One in so many launches does its work twice: 20 makes a device 5 % slower.
    SlowKernel(u32),
}

/// A device whose work goes wrong.
pub struct Faulty {
    inner: Box<dyn Device>,
    fault: Fault,
    kernels: Mutex<HashMap<u64, KernelId>>,
    sizes: Mutex<HashMap<u64, usize>>,
}

impl Faulty {
    /// `inner` with `fault`.
    pub fn new(inner: Box<dyn Device>, fault: Fault) -> Faulty {
        Faulty { inner, fault, kernels: Mutex::default(), sizes: Mutex::default() }
    }
}

/// A poisoned map still holds handles that are right.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Device for Faulty {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }
    fn clock(&self) -> &dyn Clock {
        self.inner.clock()
    }
    fn alloc(&self, place: Place, size: Bytes) -> Result<RawBuffer, DeviceError> {
        let buffer = self.inner.alloc(place, size)?;
        lock(&self.sizes).insert(buffer.0, size.count());
        Ok(buffer)
    }
    fn free(&self, buffer: RawBuffer) {
        lock(&self.sizes).remove(&buffer.0);
        self.inner.free(buffer);
    }
    fn load(&self, kernel: KernelId) -> Result<RawKernel, DeviceError> {
        let raw = self.inner.load(kernel)?;
        lock(&self.kernels).insert(raw.0, kernel);
        Ok(raw)
    }
    fn gemm(&self, problem: &GemmProblem) -> Result<GemmPlan, DeviceError> {
        self.inner.gemm(problem)
    }
    fn stream(&self) -> Result<Box<dyn Stream + '_>, DeviceError> {
        Ok(Box::new(FaultyStream { device: self, inner: self.inner.stream()?, launches: 0 }))
    }
}

struct FaultyStream<'d> {
    device: &'d Faulty,
    inner: Box<dyn Stream + 'd>,
    launches: u32,
}

impl FaultyStream<'_> {
    /// The launch as the fault lets it happen: copy kernels with fewer elements.
    fn truncated(&self, launch: Launch<'_>, share: f64) -> (u64, Vec<Arg>) {
        let kernel = lock(&self.device.kernels).get(&launch.kernel.0).copied();
        let mut args = launch.args.to_vec();
        let is_copy = matches!(kernel, Some(KernelId::Copy | KernelId::Scale | KernelId::Add | KernelId::Triad));
        match args.last_mut() {
            Some(Arg::U64(n)) if is_copy => {
                *n = (*n as f64 * share) as u64;
                (*n, args)
            }
            _ => (launch.lanes, args),
        }
    }

    fn flip(&mut self, buffer: RawBuffer) -> Result<(), DeviceError> {
        let size = lock(&self.device.sizes).get(&buffer.0).copied().unwrap_or(0);
        // A byte in the middle; the bit below an element's highest changes its value by much, not only its last digit.
        let offset = (size / 2) | 7;
        if offset >= size {
            return Ok(());
        }
        let mut byte = [0];
        self.inner.download(buffer, offset, &mut byte)?;
        byte[0] ^= 0x40;
        self.inner.upload(buffer, offset, &byte)
    }
}

impl Stream for FaultyStream<'_> {
    fn copy(&mut self, to: RawBuffer, from: RawBuffer, size: Bytes) -> Result<(), DeviceError> {
        match self.device.fault {
            Fault::TruncatedCopy(share) => self.inner.copy(to, from, Bytes((size.get() * share).floor())),
            _ => self.inner.copy(to, from, size),
        }
    }
    fn upload(&mut self, to: RawBuffer, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        self.inner.upload(to, offset, data)
    }
    fn download(&mut self, from: RawBuffer, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.download(from, offset, data)
    }
    fn launch(&mut self, launch: Launch<'_>) -> Result<(), DeviceError> {
        self.launches = self.launches.wrapping_add(1);
        match self.device.fault {
            Fault::TruncatedCopy(share) => {
                let (lanes, args) = self.truncated(launch, share);
                self.inner.launch(Launch { lanes, args: &args, ..launch })
            }
            Fault::SlowKernel(every) if self.launches.is_multiple_of(every) => {
                self.inner.launch(launch)?;
                self.inner.launch(launch)
            }
            _ => self.inner.launch(launch),
        }
    }
    fn gemm(&mut self, plan: RawGemm, a: RawBuffer, b: RawBuffer, c: RawBuffer) -> Result<(), DeviceError> {
        self.inner.gemm(plan, a, b, c)?;
        match self.device.fault {
            Fault::WrongElement => self.flip(c),
            _ => Ok(()),
        }
    }
    fn record(&mut self) -> Result<TimingEvent, DeviceError> {
        self.inner.record()
    }
    fn wait(&mut self, event: TimingEvent) -> Result<(), DeviceError> {
        self.inner.wait(event)
    }
    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
    fn elapsed(&self, start: TimingEvent, end: TimingEvent) -> Result<Seconds, DeviceError> {
        self.inner.elapsed(start, end)
    }
}
