//! An opened OpenCL device: its buffers, kernels, GEMM plans and events.

use std::alloc::Layout;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cl3::device::{CL_DEVICE_MAX_WORK_GROUP_SIZE, get_device_data};
use cl3::kernel::{CL_KERNEL_WORK_GROUP_SIZE, get_kernel_work_group_data};
use cl3::memory::{CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE};

use super::error::{failed, refused};
use super::object::{Context, Event, Kernel, Memory, Program, Queue};
use super::probe::{Listed, RawDevice, has};
use super::stream::OpenClStream;
use crate::backend::monotonic::Monotonic;
use crate::backend::{Clock, Device, DeviceError, GemmPlan, GemmProblem, Place, RawBuffer, RawGemm, RawKernel, Stream};
use crate::kernel::{Family, GEMM_GROUP, GEMM_TILE, KernelId};
use crate::record::{DataType, DeviceInfo, DeviceKind, Engine, EngineKind};
use crate::unit::Bytes;

/// Groups per compute unit that a grid-stride kernel is given at most: several times what fits, so that
/// units finish together.
const GROUPS_PER_UNIT: u64 = 32;
/// Alignment of pageable host memory: a page.
const PAGE: usize = 4096;

/// An opened device.
pub struct OpenClDevice {
    info: DeviceInfo,
    pub(super) raw: RawDevice,
    options: String,
    group_size: usize,
    programs: Mutex<HashMap<Family, Program>>,
    buffers: Mutex<HashMap<u64, Arc<Buffer>>>,
    kernels: Mutex<HashMap<u64, Arc<Loaded>>>,
    gemms: Mutex<HashMap<u64, Arc<PlannedGemm>>>,
    pub(super) stamps: Mutex<HashMap<u64, Stamp>>,
    next: AtomicU64,
    /// For work of the device itself: touching, mapping, unmapping.
    service: Arc<Queue>,
    pub(super) context: Context,
}

/// A point on a stream's timeline.
pub enum Stamp {
    /// The queued command that marks it.
    Queued(Arc<Event>),
    /// Start and end of that command, in nanoseconds.
    Done(u64, u64),
}

/// A kernel ready to launch.
pub struct Loaded {
    pub id: KernelId,
    /// Locked from the first argument set until the launch is queued.
    pub kernel: Mutex<Kernel>,
    pub local: usize,
}

/// A matrix product ready to run.
pub struct PlannedGemm {
    pub problem: GemmProblem,
    pub size_c: usize,
    /// As [`Loaded::kernel`].
    pub kernel: Mutex<Kernel>,
}

impl PlannedGemm {
    /// Groups of [`GEMM_GROUP`] items: one per tile of C.
    pub fn groups(&self) -> usize {
        self.problem.m.div_ceil(GEMM_TILE) * self.problem.n.div_ceil(GEMM_TILE)
    }
}

/// A buffer.
pub struct Buffer {
    pub size: usize,
    pub storage: Storage,
}

/// Where a buffer's bytes are.
pub enum Storage {
    /// In the device.
    Device(Memory),
    /// In the host.
    Host(HostMemory),
}

/// Host memory at a fixed address.
pub struct HostMemory {
    pub address: NonNull<u8>,
    kind: HostKind,
}

enum HostKind {
    /// Page-locked by the driver and mapped for as long as it lives.
    Pinned { memory: Memory, queue: Arc<Queue> },
    /// From the program's allocator.
    Pageable(Layout),
}

// SAFETY: the memory belongs to this value alone; accesses go through streams, which order them.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl Drop for HostMemory {
    fn drop(&mut self) {
        match &self.kind {
            HostKind::Pinned { memory, queue } => {
                // SAFETY: the address is the one this memory object was mapped at.
                let unmapped = unsafe {
                    cl3::command_queue::enqueue_unmap_mem_object(
                        queue.0,
                        memory.0,
                        self.address.as_ptr().cast::<c_void>(),
                        0,
                        ptr::null(),
                    )
                };
                // A failure leaves nothing to do: the memory object is released in any case.
                let _ = unmapped.map(|event| drop(Event(event)));
                let _ = queue.finish();
            }
            // SAFETY: allocated with this layout and freed once.
            HostKind::Pageable(layout) => unsafe { std::alloc::dealloc(self.address.as_ptr(), *layout) },
        }
    }
}

/// The content of a mutex; a panic elsewhere does not make maps of handles wrong.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenClDevice {
    /// Opens a listed device.
    pub fn open(listed: Listed) -> Result<OpenClDevice, DeviceError> {
        let Listed { raw, info } = listed;
        if let Some(reason) = info.attributes.get("unusable") {
            return Err(DeviceError::Unsupported(format!("{}: {reason}", info.id)));
        }
        let context = Context::new(raw.0)?;
        let service = Arc::new(context.queue(raw.0)?);
        let largest = get_device_data(raw.0, CL_DEVICE_MAX_WORK_GROUP_SIZE).map_err(failed("clGetDeviceInfo"))?;
        Ok(OpenClDevice {
            options: build_options(&info),
            group_size: size(&largest).clamp(1, GEMM_GROUP),
            info,
            raw,
            programs: Mutex::default(),
            buffers: Mutex::default(),
            kernels: Mutex::default(),
            gemms: Mutex::default(),
            stamps: Mutex::default(),
            next: AtomicU64::new(1),
            service,
            context,
        })
    }

    /// A handle that was never given out before.
    pub fn handle(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The buffer behind a handle.
    pub fn buffer(&self, raw: RawBuffer) -> Result<Arc<Buffer>, DeviceError> {
        let found = lock(&self.buffers).get(&raw.0).cloned();
        found.ok_or_else(|| refused("buffer", format!("unknown handle {}", raw.0)))
    }

    /// The kernel behind a handle.
    pub fn kernel(&self, raw: RawKernel) -> Result<Arc<Loaded>, DeviceError> {
        let found = lock(&self.kernels).get(&raw.0).cloned();
        found.ok_or_else(|| refused("kernel", format!("unknown handle {}", raw.0)))
    }

    /// The matrix product behind a handle.
    pub fn planned(&self, raw: RawGemm) -> Result<Arc<PlannedGemm>, DeviceError> {
        let found = lock(&self.gemms).get(&raw.0).cloned();
        found.ok_or_else(|| refused("gemm", format!("unknown handle {}", raw.0)))
    }

    /// Groups for a launch over `lanes`.
    pub fn groups(&self, loaded: &Loaded, lanes: u64) -> usize {
        let units = u64::from(self.info.units.unwrap_or(64));
        let items = lanes.div_ceil(loaded.id.lanes_per_item());
        items.div_ceil(loaded.local as u64).clamp(1, units * GROUPS_PER_UNIT) as usize
    }

    /// The entry point `entry` of `family`, which is built when first needed.
    fn entry(&self, family: Family, entry: &str) -> Result<Kernel, DeviceError> {
        let mut programs = lock(&self.programs);
        if let Some(program) = programs.get(&family) {
            return program.kernel(entry);
        }
        let program = self.context.build(self.raw.0, family.name(), family.source(), &self.options)?;
        programs.entry(family).or_insert(program).kernel(entry)
    }

    fn device_memory(&self, size: usize) -> Result<Storage, DeviceError> {
        let rounded = size.next_multiple_of(16);
        let memory = self.context.buffer(CL_MEM_READ_WRITE, rounded)?;
        // Drivers allocate on first use: touch it, so that a lack of memory shows here.
        drop(self.service.zero(&memory, rounded)?);
        self.service.finish()?;
        Ok(Storage::Device(memory))
    }

    fn pinned_memory(&self, size: usize) -> Result<Storage, DeviceError> {
        let memory = self.context.buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size)?;
        let mut address: *mut c_void = ptr::null_mut();
        // SAFETY: the whole buffer is mapped, blocking; the address is valid until unmapped in `drop`.
        let mapped = unsafe {
            cl3::command_queue::enqueue_map_buffer(
                self.service.0,
                memory.0,
                1,
                CL_MAP_READ | CL_MAP_WRITE,
                0,
                size,
                &mut address,
                0,
                ptr::null(),
            )
        };
        drop(Event(mapped.map_err(failed("clEnqueueMapBuffer"))?));
        let address =
            NonNull::new(address.cast::<u8>()).ok_or_else(|| refused("clEnqueueMapBuffer", "a null address"))?;
        let host = HostMemory { address, kind: HostKind::Pinned { memory, queue: Arc::clone(&self.service) } };
        // SAFETY: `size` bytes are mapped there.
        unsafe { ptr::write_bytes(host.address.as_ptr(), 0, size) };
        Ok(Storage::Host(host))
    }
}

/// Pages are committed by writing them: `alloc_zeroed` would only reserve addresses.
fn pageable_memory(size: usize) -> Result<Storage, DeviceError> {
    let refuse = || DeviceError::OutOfMemory(format!("{size} bytes of host memory"));
    let layout = Layout::from_size_align(size, PAGE).map_err(|_| refuse())?;
    // SAFETY: the layout's size is not zero.
    let address = NonNull::new(unsafe { std::alloc::alloc(layout) }).ok_or_else(refuse)?;
    // SAFETY: `size` bytes were allocated there.
    unsafe { ptr::write_bytes(address.as_ptr(), 0, size) };
    Ok(Storage::Host(HostMemory { address, kind: HostKind::Pageable(layout) }))
}

impl Device for OpenClDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn clock(&self) -> &dyn Clock {
        &Monotonic
    }

    fn alloc(&self, place: Place, size: Bytes) -> Result<RawBuffer, DeviceError> {
        let size = size.count();
        if size == 0 {
            return Err(refused("alloc", "a size of 0 bytes"));
        }
        let storage = match place {
            Place::Device => self.device_memory(size)?,
            Place::HostPinned => self.pinned_memory(size)?,
            Place::HostPageable => pageable_memory(size)?,
        };
        let handle = self.handle();
        lock(&self.buffers).insert(handle, Arc::new(Buffer { size, storage }));
        Ok(RawBuffer(handle))
    }

    fn free(&self, buffer: RawBuffer) {
        // Streams keep a host buffer alive while a queued copy uses it; OpenCL does so for its own.
        let freed = lock(&self.buffers).remove(&buffer.0);
        drop(freed);
    }

    fn load(&self, kernel: KernelId) -> Result<RawKernel, DeviceError> {
        if let Some(data_type) = arithmetic_type(kernel)
            && !self.info.fma_types.contains(&data_type)
        {
            return Err(DeviceError::Unsupported(format!("{}: no arithmetic in {data_type}", self.info.name)));
        }
        let built = self.entry(kernel.family(), kernel.entry())?;
        let largest = get_kernel_work_group_data(built.0, self.raw.0, CL_KERNEL_WORK_GROUP_SIZE)
            .map_err(failed("clGetKernelWorkGroupInfo"))?;
        // On a CPU every item walks a contiguous share alone: groups would only add bookkeeping.
        let local = if self.info.kind == DeviceKind::Cpu { 1 } else { size(&largest).clamp(1, self.group_size) };
        let handle = self.handle();
        lock(&self.kernels).insert(handle, Arc::new(Loaded { id: kernel, kernel: Mutex::new(built), local }));
        Ok(RawKernel(handle))
    }

    fn gemm(&self, problem: &GemmProblem) -> Result<GemmPlan, DeviceError> {
        let unsupported = |why: &str| Err(DeviceError::Unsupported(format!("{}: {why}", self.info.name)));
        if !self.info.gemm_types.contains(&problem.data_type) {
            return unsupported(&format!("no GEMM in {}", problem.data_type));
        }
        if self.group_size < GEMM_GROUP {
            return unsupported(&format!("groups of {GEMM_GROUP} items are needed, {} is the most", self.group_size));
        }
        if [problem.m, problem.n, problem.k].iter().any(|edge| *edge == 0 || u32::try_from(*edge).is_err()) {
            return Err(refused("gemm", format!("edges {}×{}×{}", problem.m, problem.n, problem.k)));
        }
        let kernel = self.entry(Family::Gemm, &format!("gemm_{}", problem.data_type))?;
        let (size_c, accumulate, unit_roundoff, output_roundoff) = match problem.data_type {
            DataType::Fp64 => (8, "fp64", 2f64.powi(-53), 2f64.powi(-53)),
            DataType::Fp16 => (2, "fp32", 2f64.powi(-24), 2f64.powi(-11)),
            DataType::Int8 => (4, "int32", 0.0, 0.0),
            _ => (4, "fp32", 2f64.powi(-24), 2f64.powi(-24)),
        };
        let engine = Engine {
            name: "own kernel".to_owned(),
            version: None,
            library: None,
            kind: EngineKind::LowOnly,
            conditions: BTreeMap::from([
                ("accumulate".to_owned(), accumulate.to_owned()),
                ("algorithm".to_owned(), format!("OpenCL C, {GEMM_TILE}×{GEMM_TILE} tiles in shared memory")),
            ]),
        };
        let handle = self.handle();
        let planned = PlannedGemm { problem: *problem, size_c, kernel: Mutex::new(kernel) };
        lock(&self.gemms).insert(handle, Arc::new(planned));
        Ok(GemmPlan { raw: RawGemm(handle), engine, size_c, unit_roundoff, output_roundoff })
    }

    fn stream(&self) -> Result<Box<dyn Stream + '_>, DeviceError> {
        Ok(Box::new(OpenClStream::new(self)?))
    }
}

/// The type a kernel computes in, where not every device has it.
fn arithmetic_type(kernel: KernelId) -> Option<DataType> {
    match kernel {
        KernelId::FmaFp64 => Some(DataType::Fp64),
        KernelId::FmaFp32 => Some(DataType::Fp32),
        KernelId::FmaFp16 => Some(DataType::Fp16),
        KernelId::DotInt8 => Some(DataType::Int8),
        _ => None,
    }
}

/// Options of the device code (see `kernels/portable.h`), by what the device lists.
fn build_options(info: &DeviceInfo) -> String {
    let extensions = info.attributes.get("extensions").map(String::as_str).unwrap_or_default();
    let mut options = vec![];
    if has(extensions, "cl_khr_fp64") {
        options.push("-DHAS_FP64");
    }
    if has(extensions, "cl_khr_fp16") {
        options.push("-DHAS_FP16");
    }
    // The packed dot product is declared only under OpenCL C 3.0.
    if has(extensions, "cl_khr_integer_dot_product") {
        options.push("-cl-std=CL3.0");
    }
    if info.kind == DeviceKind::Cpu {
        options.push("-DCONTIGUOUS");
        // Enough chains to fill vectors: compilers for CPUs vectorise one item, not several.
        options.push("-DCHAINS=64");
    }
    options.join(" ")
}

/// A `size_t` of the driver; 0 if it is none.
fn size(bytes: &[u8]) -> usize {
    bytes.try_into().map(usize::from_ne_bytes).unwrap_or(0)
}
