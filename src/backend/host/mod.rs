//! The host backend: CPU and memory of this machine as one device, `host:0`.
//!
//! Kernels are Rust functions run by a pool of pinned threads, one for each core that this process may use
//! (affinity and cgroup quota honoured), with the widest instructions found at run time. A stream is
//! synchronous and its events are readings of CLOCK_MONOTONIC.

pub mod facts;
pub mod file;
mod gemm;
mod kernels;
mod memory;
mod pool;
pub mod sensors;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::kernels::{Args, Team};
use self::memory::Mapping;
use self::pool::{Pin, Pool};
use super::monotonic::{Monotonic, now_ns};
use super::{
    Arg, Backend, Clock, Device, DeviceError, GemmPlan, GemmProblem, Launch, Place, Probe, RawBuffer, RawGemm,
    RawKernel, Sensors, Stream, TimingEvent,
};
use crate::kernel::{KernelId, READ_LANES};
use crate::record::{BackendId, BackendState, DataType, DeviceId, DeviceInfo, DeviceKind, WorkScale};
use crate::unit::{Bytes, Hertz, Seconds};

/// The backend.
pub struct Host;

impl Backend for Host {
    fn id(&self) -> BackendId {
        BackendId::Host
    }

    fn probe(&self) -> Probe {
        let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Probe {
            state: BackendState::Present { version: format!("Linux {}", version.trim()), library: None },
            devices: vec![describe().0],
        }
    }

    fn open(&self, device: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        let (info, cores) = describe();
        if *device != info.id {
            return Err(DeviceError::Unsupported(format!("{device}: the host is one device, {}", info.id)));
        }
        Ok(Box::new(HostDevice::new(info, cores)?))
    }

    fn sensors(&self) -> Option<Box<dyn Sensors>> {
        Some(Box::new(sensors::MachineSensors::new(Path::new("/"))))
    }
}

/// The device as found now, and the cores its threads are pinned to.
fn describe() -> (DeviceInfo, Vec<usize>) {
    let root = Path::new("/");
    let allowed = facts::affinity();
    let quota = facts::cpu_quota(root);
    let mut cores = facts::cores(root, &allowed, quota.as_ref());
    if cores.is_empty() {
        // The kernel did not tell: one unpinned thread is what every process has.
        cores.push(0);
    }
    let (vendor, name) = facts::cpu_model(root);
    let mut attributes = BTreeMap::from([
        ("affinity".to_owned(), facts::cpu_list(&allowed)),
        ("instruction_sets".to_owned(), facts::instruction_sets().join(", ")),
        ("pinned_threads".to_owned(), format!("{} on CPUs {}", cores.len(), facts::cpu_list(&cores))),
    ]);
    let text = |limit: Option<facts::Limit>, unit: &str| {
        limit.map_or("none".to_owned(), |l| format!("{} {unit} ({})", l.value, l.source))
    };
    attributes.insert("cgroup_cpu_quota".to_owned(), text(quota, "cores"));
    attributes.insert("cgroup_memory_limit".to_owned(), text(facts::memory_limit(root), "B"));
    let mut fma_types = vec![DataType::Fp64, DataType::Fp32];
    if kernels::arithmetic::fp16().is_some() {
        fma_types.push(DataType::Fp16);
    }
    fma_types.push(DataType::Int8);
    let info = DeviceInfo {
        id: DeviceId::new(BackendId::Host, 0),
        kind: DeviceKind::Cpu,
        name,
        vendor,
        uuid: None,
        pci: None,
        memory: Bytes(facts::memory_usable(root)),
        last_level_cache: facts::last_level_cache(root, &cores).map(Bytes),
        units: u32::try_from(cores.len()).ok(),
        clock_max: facts::clock_max(root, &cores).map(Hertz),
        driver: None,
        api: None,
        gemm_types: vec![DataType::Fp64, DataType::Fp32, DataType::Fp16, DataType::Int8],
        fma_types,
        spec: None,
        numa_node: None,
        attributes,
        scale: WorkScale::ONE,
        simulated: false,
    };
    (info, cores)
}

/// A lock that survives a panic elsewhere: the maps behind it are always whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct HostDevice {
    info: DeviceInfo,
    pool: Pool,
    /// First core, where the thread that drives a stream works.
    core: usize,
    /// Scratch of the read kernel.
    sums: Mapping,
    buffers: Mutex<HashMap<u64, Arc<Mapping>>>,
    gemms: Mutex<Vec<Arc<gemm::Gemm>>>,
    next: AtomicU64,
    /// Launches of several streams take turns: they share the threads and the scratch memory.
    turn: Mutex<()>,
}

impl HostDevice {
    fn new(info: DeviceInfo, cores: Vec<usize>) -> Result<HostDevice, DeviceError> {
        let core = cores.first().copied().unwrap_or(0);
        let pool = Pool::new(cores)?;
        let sums = Mapping::new(pool.threads() * READ_LANES * size_of::<f32>(), &pool)?;
        Ok(HostDevice {
            info,
            pool,
            core,
            sums,
            buffers: Mutex::default(),
            gemms: Mutex::default(),
            next: AtomicU64::new(1),
            turn: Mutex::default(),
        })
    }

    fn buffer(&self, buffer: RawBuffer) -> Result<Arc<Mapping>, DeviceError> {
        lock(&self.buffers).get(&buffer.0).cloned().ok_or_else(|| invalid(format!("{buffer:?} does not exist")))
    }

    /// The buffer, if it holds `size` bytes from `offset`.
    fn checked(&self, buffer: RawBuffer, offset: usize, size: usize) -> Result<Arc<Mapping>, DeviceError> {
        let mapping = self.buffer(buffer)?;
        if offset.checked_add(size).is_none_or(|end| end > mapping.size()) {
            return Err(invalid(format!("{size} bytes at {offset} do not fit a buffer of {}", mapping.size())));
        }
        Ok(mapping)
    }
}

/// The reading behind an event; one from the future was never taken.
fn past(event: TimingEvent) -> Result<u64, DeviceError> {
    if event.0 > now_ns() { Err(invalid(format!("{event:?} does not exist"))) } else { Ok(event.0) }
}

fn invalid(message: String) -> DeviceError {
    DeviceError::Driver { call: "host".to_owned(), message }
}

impl Device for HostDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn clock(&self) -> &dyn Clock {
        &Monotonic
    }

    fn alloc(&self, _place: Place, size: Bytes) -> Result<RawBuffer, DeviceError> {
        // All places are the same memory here: no device on the other side would care about pinned pages.
        let mapping = Mapping::new(size.count(), &self.pool)?;
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.buffers).insert(handle, Arc::new(mapping));
        Ok(RawBuffer(handle))
    }

    fn free(&self, buffer: RawBuffer) {
        lock(&self.buffers).remove(&buffer.0);
    }

    fn load(&self, kernel: KernelId) -> Result<RawKernel, DeviceError> {
        if kernel == KernelId::FmaFp16 && kernels::arithmetic::fp16().is_none() {
            return Err(DeviceError::Unsupported("this CPU has no fp16 arithmetic".to_owned()));
        }
        let index = KernelId::ALL.iter().position(|k| *k == kernel);
        index.map(|i| RawKernel(i as u64)).ok_or_else(|| DeviceError::Unsupported(kernel.to_string()))
    }

    fn gemm(&self, problem: &GemmProblem) -> Result<GemmPlan, DeviceError> {
        let gemm = gemm::Gemm::new(problem, &self.pool)?;
        let mut gemms = lock(&self.gemms);
        let plan = gemm.plan(RawGemm(gemms.len() as u64));
        gemms.push(Arc::new(gemm));
        Ok(plan)
    }

    fn stream(&self) -> Result<Box<dyn Stream + '_>, DeviceError> {
        Ok(Box::new(HostStream { device: self, _pin: Pin::to(Some(self.core)) }))
    }
}

/// A synchronous queue. The thread that opened it stays pinned to the first core while it exists.
struct HostStream<'d> {
    device: &'d HostDevice,
    _pin: Pin,
}

impl Stream for HostStream<'_> {
    fn copy(&mut self, to: RawBuffer, from: RawBuffer, size: Bytes) -> Result<(), DeviceError> {
        let size = size.count();
        let (to, from) = (self.device.checked(to, 0, size)?, self.device.checked(from, 0, size)?);
        let (target, source) = (memory::Address::new(to.start()), memory::Address::new(from.start()));
        self.device.pool.run_shares(size, |_, part| {
            // SAFETY: both buffers hold `size` bytes; `copy` allows them to be the same one.
            unsafe { std::ptr::copy(source.get().add(part.start), target.get().add(part.start), part.len()) }
        });
        Ok(())
    }

    fn upload(&mut self, to: RawBuffer, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        let to = self.device.checked(to, offset, data.len())?;
        // SAFETY: the buffer holds `data.len()` bytes from `offset`; program memory never overlaps it.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to.start().add(offset), data.len()) };
        Ok(())
    }

    fn download(&mut self, from: RawBuffer, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        let from = self.device.checked(from, offset, data.len())?;
        // SAFETY: as for `upload`.
        unsafe { std::ptr::copy_nonoverlapping(from.start().add(offset), data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    fn launch(&mut self, launch: Launch<'_>) -> Result<(), DeviceError> {
        let device = self.device;
        let kernel = usize::try_from(launch.kernel.0).ok().and_then(|i| KernelId::ALL.get(i));
        let kernel = *kernel.ok_or_else(|| invalid(format!("{:?} does not exist", launch.kernel)))?;
        let args = Args::new(kernel, launch.args, |arg| match arg {
            Arg::Buffer(buffer) => device.buffer(*buffer).map(Some),
            _ => Ok(None),
        })?;
        let _turn = lock(&device.turn);
        let cache = device.info.last_level_cache.map_or(f64::INFINITY, Bytes::get);
        Team { pool: &device.pool, cache, sums: &device.sums }.launch(launch.lanes, &args)
    }

    fn gemm(&mut self, plan: RawGemm, a: RawBuffer, b: RawBuffer, c: RawBuffer) -> Result<(), DeviceError> {
        let gemm = usize::try_from(plan.0).ok().and_then(|i| lock(&self.device.gemms).get(i).cloned());
        let gemm = gemm.ok_or_else(|| invalid(format!("{plan:?} does not exist")))?;
        let sizes = gemm.bytes();
        let (a, b, c) = (
            self.device.checked(a, 0, sizes[0])?,
            self.device.checked(b, 0, sizes[1])?,
            self.device.checked(c, 0, sizes[2])?,
        );
        let _turn = lock(&self.device.turn);
        // SAFETY: the buffers were just found to hold the three matrices, and this is the only run.
        unsafe { gemm.run(&self.device.pool, a.start(), b.start(), c.start()) };
        Ok(())
    }

    fn record(&mut self) -> Result<TimingEvent, DeviceError> {
        Ok(TimingEvent(now_ns()))
    }

    fn wait(&mut self, event: TimingEvent) -> Result<(), DeviceError> {
        // Work is complete when its call returns: whatever came before the event has happened.
        past(event).map(|_| ())
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn elapsed(&self, start: TimingEvent, end: TimingEvent) -> Result<Seconds, DeviceError> {
        Ok(Seconds(past(end)?.saturating_sub(past(start)?) as f64 * 1e-9))
    }
}

#[cfg(test)]
mod tests;
