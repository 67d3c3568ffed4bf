//! Ways to reach devices, behind three object-safe, blocking traits. Benchmarks are written once against
//! them; backends stay thin. All backends are always compiled and open their libraries at run time: an
//! absent library is a value with a reason and a remedy, never a panic.
//!
//! `unsafe` lives in this module only.

pub mod fault;
pub mod host;
pub mod monotonic;
pub mod opencl;
pub mod sim;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::KernelId;
use crate::record::{
    BackendId, BackendState, DataType, DeviceId, DeviceInfo, Engine, Params, TelemetryPoint, WorkScale,
};
use crate::unit::{Bytes, Seconds, Unit};

/// A way to reach devices.
pub trait Backend: Sync {
    /// Which.
    fn id(&self) -> BackendId;
    /// Opens the library and lists devices. Runs in a child process: it may hang or crash there.
    fn probe(&self) -> Probe;
    /// Opens one device that `probe` listed.
    fn open(&self, device: &DeviceId) -> Result<Box<dyn Device>, DeviceError>;
    /// Sensors of this backend's devices, read by the telemetry process; `None` if it has none of its own.
    fn sensors(&self) -> Option<Box<dyn Sensors>> {
        None
    }
}

/// What a backend found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Whether it works.
    pub state: BackendState,
    /// Its devices.
    pub devices: Vec<DeviceInfo>,
}

/// All backends. `sim` is there only with a description of simulated devices (`--simulate`).
pub fn all(sim: Option<&str>) -> Result<Vec<Box<dyn Backend>>, String> {
    let mut all: Vec<Box<dyn Backend>> = vec![Box::new(opencl::OpenCl), Box::new(host::Host)];
    if let Some(text) = sim {
        all.push(Box::new(sim::Sim::parse(text)?));
    }
    Ok(all)
}

/// The run's clock as one device sees it: CLOCK_MONOTONIC on real devices, simulated time on `sim`.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary start common to all processes of the run.
    fn now(&self) -> u64;
    /// Returns at or after `t`; simulated time jumps.
    fn sleep_until(&self, t: u64);
}

/// Where a buffer lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Device memory.
    Device,
    /// Page-locked host memory.
    HostPinned,
    /// Ordinary host memory.
    HostPageable,
}

/// A buffer handle; meaningful only to the device that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawBuffer(pub u64);
/// A built kernel; meaningful only to the device that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawKernel(pub u64);
/// A planned GEMM; meaningful only to the device that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawGemm(pub u64);
/// A point on a stream's timeline; meaningful only to the device that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimingEvent(pub u64);

/// `C = A · Bᵀ`: A is row-major m×k, B row-major n×k, C row-major m×n, all densely packed. Both inputs are
/// contiguous along k, the layout every integer and fp8 matrix unit wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GemmProblem {
    /// Input type.
    pub data_type: DataType,
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Inner length.
    pub k: usize,
}

impl GemmProblem {
    /// Multiply-adds counted as two operations.
    pub fn operations(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }
}

/// A GEMM ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct GemmPlan {
    /// Handle for [`Stream::gemm`].
    pub raw: RawGemm,
    /// Who computes, with accumulate type and algorithm in its conditions.
    pub engine: Engine,
    /// Element type of C: the input type, except `Int8`, whose C is 32-bit (`size_c` = 4).
    pub size_c: usize,
    /// Relative rounding unit of the accumulation, for the error bound: 2⁻⁵³, 2⁻²⁴, … ; 0 for integers.
    pub unit_roundoff: f64,
    /// Relative rounding unit of C's type; 0 for integers.
    pub output_roundoff: f64,
}

/// One argument of a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arg {
    /// buffer
    Buffer(RawBuffer),
    /// 32-bit unsigned
    U32(u32),
    /// 32-bit signed
    I32(i32),
    /// 64-bit unsigned
    U64(u64),
    /// single
    F32(f32),
    /// double
    F64(f64),
}

/// One kernel launch.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Which kernel.
    pub kernel: RawKernel,
    /// Independent items: elements of the arrays, or lanes of an arithmetic kernel. Kernels are grid-stride
    /// over it; the backend chooses the grid.
    pub lanes: u64,
    /// Arguments in the order of [`KernelId::args`].
    pub args: &'a [Arg],
}

/// What else is scheduled on this device in the same interval, by another process of this run. Real devices
/// feel it and ignore this; simulated ones need to be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Companion {
    /// Benchmark of the other process.
    pub benchmark: String,
    /// Its parameters.
    pub params: Params,
}

/// An opened device. Methods may be called from one thread at a time per stream.
pub trait Device: Send + Sync {
    /// As probed.
    fn info(&self) -> &DeviceInfo;
    /// The run's clock.
    fn clock(&self) -> &dyn Clock;
    /// Divisors of a simulated device.
    fn scale(&self) -> WorkScale {
        self.info().scale
    }
    /// Allocates; content is undefined. Device and host pages are touched (committed) here, on the host
    /// backend by the threads that will use them.
    fn alloc(&self, place: Place, size: Bytes) -> Result<RawBuffer, DeviceError>;
    /// Frees; unknown handles are ignored.
    fn free(&self, buffer: RawBuffer);
    /// Builds a kernel for this device. `Unsupported` if the device lacks the type.
    fn load(&self, kernel: KernelId) -> Result<RawKernel, DeviceError>;
    /// Plans a GEMM; sizes are already divided by [`Device::scale`]. `Unsupported` if no engine has the type.
    fn gemm(&self, problem: &GemmProblem) -> Result<GemmPlan, DeviceError>;
    /// A new in-order queue.
    fn stream(&self) -> Result<Box<dyn Stream + '_>, DeviceError>;
    /// Told before a block; see [`Companion`].
    fn companions(&self, _others: &[Companion]) {}
    /// Told once in the process that plays the neighbour of interference cases. Real devices ignore it.
    fn play_neighbour(&self) {}
    /// Sensor readings that only this process can make, since the last call (simulated devices; in-kernel clocks).
    fn readings(&self) -> Vec<Reading> {
        Vec::new()
    }
}

/// An in-order queue of work on one device. Timed regions are bracketed by [`Stream::record`].
pub trait Stream {
    /// Copies `size` bytes between two buffers of this device, whatever their places.
    fn copy(&mut self, to: RawBuffer, from: RawBuffer, size: Bytes) -> Result<(), DeviceError>;
    /// Writes program memory into a buffer at `offset` bytes; returns when done. Never timed.
    fn upload(&mut self, to: RawBuffer, offset: usize, data: &[u8]) -> Result<(), DeviceError>;
    /// Reads a buffer from `offset` bytes into program memory; returns when done. Never timed.
    fn download(&mut self, from: RawBuffer, offset: usize, data: &mut [u8]) -> Result<(), DeviceError>;
    /// Queues a kernel.
    fn launch(&mut self, launch: Launch<'_>) -> Result<(), DeviceError>;
    /// Queues `C = A · Bᵀ`.
    fn gemm(&mut self, plan: RawGemm, a: RawBuffer, b: RawBuffer, c: RawBuffer) -> Result<(), DeviceError>;
    /// Marks this point on the timeline.
    fn record(&mut self) -> Result<TimingEvent, DeviceError>;
    /// Later work of this stream starts after `event` of another stream of the same device.
    fn wait(&mut self, event: TimingEvent) -> Result<(), DeviceError>;
    /// Waits until everything queued is complete.
    fn synchronize(&mut self) -> Result<(), DeviceError>;
    /// Time between two completed events, by the device's timer.
    fn elapsed(&self, start: TimingEvent, end: TimingEvent) -> Result<Seconds, DeviceError>;
}

/// What can go wrong on a device. Texts are the driver's (hostile).
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum DeviceError {
    /// This device or engine cannot do it; not a fault.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Not enough memory.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The device is gone; nothing more can be done with it.
    #[error("device lost: {0}")]
    Lost(String),
    /// A call was refused.
    #[error("{call} failed: {message}")]
    Driver {
        /// API call
        call: String,
        /// code and text
        message: String,
    },
    /// A file operation failed.
    #[error("storage: {0}")]
    Storage(String),
}

/// One sensor value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Device id, or "machine".
    pub source: String,
    /// Sensor name: `clock`, `power`, `temperature`, `throttle`, `load`, `steal`, `memory_used`, `disk_read` …
    pub sensor: String,
    /// Unit.
    pub unit: Unit,
    /// Running total?
    pub counter: bool,
    /// Value and time (absolute nanoseconds of the run's clock are turned into seconds by the supervisor).
    pub at: u64,
    /// Value.
    pub value: f64,
}

impl Reading {
    /// As a point of a series that began at `origin` nanoseconds.
    pub fn point(&self, origin: u64) -> TelemetryPoint {
        TelemetryPoint { at: Seconds(self.at.saturating_sub(origin) as f64 * 1e-9), value: self.value }
    }
}

/// Reads sensors, in the telemetry process.
pub trait Sensors: Send {
    /// Sensors that cannot be read here: `source.sensor` → reason. Asked once.
    fn not_observable(&self) -> Vec<(String, String)>;
    /// All readings now.
    fn read(&mut self, now: u64) -> Vec<Reading>;
}
