//! What is on the machine, as found: no limits, no opinions. Every string in here is hostile text.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DataType;
use crate::unit::{Bytes, Hertz};

/// A way to reach devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackendId {
    /// NVIDIA driver API.
    Cuda,
    /// AMD HIP runtime.
    Hip,
    /// OpenCL ICD.
    Opencl,
    /// CPU, memory and files of this machine.
    Host,
    /// Simulated devices.
    Sim,
}

impl BackendId {
    /// Name as used in device ids.
    pub fn name(self) -> &'static str {
        match self {
            BackendId::Cuda => "cuda",
            BackendId::Hip => "hip",
            BackendId::Opencl => "opencl",
            BackendId::Host => "host",
            BackendId::Sim => "sim",
        }
    }
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A device within one run: backend and number, e.g. `opencl:0`. Never used to match devices between
/// sources; that goes by UUID or PCI address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct DeviceId {
    /// Backend that shows it.
    pub backend: BackendId,
    /// Its number there.
    pub index: u32,
}

impl DeviceId {
    /// `backend:index`.
    pub fn new(backend: BackendId, index: u32) -> DeviceId {
        DeviceId { backend, index }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.backend, self.index))
    }
}

impl FromStr for DeviceId {
    type Err = String;
    fn from_str(text: &str) -> Result<DeviceId, String> {
        let (backend, index) = text.split_once(':').unwrap_or((text, "0"));
        let backend = [BackendId::Cuda, BackendId::Hip, BackendId::Opencl, BackendId::Host, BackendId::Sim]
            .into_iter()
            .find(|b| b.name() == backend)
            .ok_or_else(|| format!("\"{text}\": no backend is called \"{backend}\" (cuda, hip, opencl, host, sim)"))?;
        let index = index.parse().map_err(|_| format!("\"{text}\": \"{index}\" is not a device number"))?;
        Ok(DeviceId { backend, index })
    }
}

impl TryFrom<String> for DeviceId {
    type Error = String;
    fn try_from(text: String) -> Result<DeviceId, String> {
        text.parse()
    }
}

impl From<DeviceId> for String {
    fn from(id: DeviceId) -> String {
        id.to_string()
    }
}

/// What kind of processor a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A GPU, whole or a slice.
    Gpu,
    /// The host CPU, or an OpenCL device of type CPU.
    Cpu,
    /// Anything else.
    Accelerator,
}

/// A reading that may not be available here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Observed<T> {
    /// It was read.
    Value(T),
    /// It could not be read; the reason is shown to the user.
    NotObservable(String),
}

impl<T> Default for Observed<T> {
    fn default() -> Observed<T> {
        Observed::NotObservable("not looked for".to_owned())
    }
}

impl<T> Observed<T> {
    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Observed::Value(v) => Some(v),
            Observed::NotObservable(_) => None,
        }
    }
}

/// PCI identity of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PciIdentity {
    /// `domain:bus:device.function`, lower case.
    pub address: String,
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Subsystem vendor and device id.
    pub subsystem: Option<(u16, u16)>,
}

/// By how much a simulated device divides sizes so that its results can really be computed. All ones on
/// real devices. Callers divide before they allocate or launch and state their work undivided; the device
/// multiplies again for its timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkScale {
    /// Divisor of each GEMM edge (and so of matrix buffers by its square).
    pub edge: u32,
    /// Divisor of the size of memory, copy and latency buffers and of the element count `n` of their kernels.
    /// Lanes and `hops` are not divided.
    pub bytes: u32,
    /// Divisor of the `iterations` of arithmetic kernels; their lanes and output are not divided.
    pub iterations: u32,
}

impl WorkScale {
    /// No scaling.
    pub const ONE: WorkScale = WorkScale { edge: 1, bytes: 1, iterations: 1 };
}

/// One device as a backend shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceInfo {
    /// Where it is.
    pub id: DeviceId,
    /// What it is.
    pub kind: DeviceKind,
    /// Name the driver reports.
    pub name: String,
    /// Vendor as reported.
    pub vendor: String,
    /// UUID as reported by the runtime.
    pub uuid: Option<String>,
    /// PCI identity, where the device is on that bus.
    pub pci: Option<PciIdentity>,
    /// Memory the device reports. For the host: memory this process may use (cgroup limit honoured).
    pub memory: Bytes,
    /// Size of the last-level cache, if known; buffers for bandwidth are chosen well above it.
    pub last_level_cache: Option<Bytes>,
    /// Compute units: SM, CU, Xe-core; for CPUs the cores this process may use.
    pub units: Option<u32>,
    /// Highest clock the device reports.
    pub clock_max: Option<Hertz>,
    /// Driver version text.
    pub driver: Option<String>,
    /// API version text.
    pub api: Option<String>,
    /// Types that `gemm` can run on it.
    pub gemm_types: Vec<DataType>,
    /// Types that `fma_peak` can run on it.
    pub fma_types: Vec<DataType>,
    /// Entry in the spec table that this device matches, by PCI id, then name and memory.
    pub spec: Option<String>,
    /// NUMA node, if known.
    pub numa_node: Option<u32>,
    /// Everything else worth showing (instruction sets, cgroup quota, pinned cores …), name → text.
    pub attributes: BTreeMap<String, String>,
    /// Divisors of a simulated device; [`WorkScale::ONE`] on real ones.
    pub scale: WorkScale,
    /// True for a simulated device.
    pub simulated: bool,
}

/// State of one backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackendState {
    /// Library opened.
    Present {
        /// version text
        version: String,
        /// path of the library, where there is one
        library: Option<String>,
    },
    /// Library or driver not usable.
    Absent {
        /// why
        reason: String,
        /// what the user can do
        remedy: String,
    },
}

/// What one backend found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendReport {
    /// Which.
    pub id: BackendId,
    /// Whether it works.
    pub state: BackendState,
}

/// The machine around the devices.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name; redactable.
    pub hostname: String,
    /// CPU model text.
    pub cpu: String,
    /// Logical CPUs of the machine.
    pub cpus_total: u32,
    /// CPUs this process may use: affinity and cgroup quota.
    pub cpus_usable: f64,
    /// Memory of the machine.
    pub memory_total: Bytes,
    /// Memory this process may use.
    pub memory_usable: Bytes,
    /// Kernel release.
    pub kernel: String,
    /// Distribution text.
    pub os: String,
    /// Hypervisor ("kvm", "none" …) with the evidence.
    pub virtualization: Option<String>,
    /// Container runtime, if any, with the evidence.
    pub container: Option<String>,
    /// Cloud instance as DMI tells it, e.g. "Amazon EC2 p5.48xlarge".
    pub cloud: Option<String>,
    /// GPUs seen on the PCI bus through sysfs, independent of any driver library.
    pub pci_gpus: Observed<Vec<PciIdentity>>,
    /// Disks that the kernel shows; in a container those of the machine.
    #[serde(default)]
    pub disks: Observed<Vec<Disk>>,
    /// NUMA nodes with their CPUs and memory.
    pub numa: Vec<String>,
    /// Everything else, name → text.
    pub attributes: BTreeMap<String, String>,
}

impl Host {
    /// GPUs on the PCI bus; none where it cannot be seen.
    pub fn gpus_on_bus(&self) -> &[PciIdentity] {
        self.pci_gpus.value().map_or(&[], Vec::as_slice)
    }
}

/// What a disk is made of, as far as the kernel shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiskKind {
    /// An NVMe namespace of the machine.
    Nvme,
    /// Without moving parts.
    Ssd,
    /// With moving parts.
    Hdd,
    /// A volume over the network.
    Network,
    /// A virtual disk: what is behind it does not show.
    Virtual,
}

/// One disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Name in `/sys/block`.
    pub name: String,
    /// Capacity.
    pub size: Bytes,
    /// What it is.
    pub kind: DiskKind,
    /// Model text, where shown.
    pub model: Option<String>,
}

/// A place where files can be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageTarget {
    /// Folder.
    pub path: String,
    /// File system type.
    pub filesystem: String,
    /// Backing device, if visible.
    pub device: Option<String>,
    /// Free space.
    pub free: Bytes,
}

/// Two sources that do not agree about a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disagreement {
    /// Device.
    pub device: DeviceId,
    /// What they disagree about, e.g. "name", "memory", "count".
    pub about: String,
    /// First source and what it says.
    pub first: (String, String),
    /// Second source and what it says.
    pub second: (String, String),
}

/// Everything discovery found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Inventory {
    /// The machine.
    pub host: Host,
    /// Each backend and its state.
    pub backends: Vec<BackendReport>,
    /// All devices of all backends.
    pub devices: Vec<DeviceInfo>,
    /// Devices chosen for this run.
    pub selected: Vec<DeviceId>,
    /// Where storage is measured.
    pub storage: Option<StorageTarget>,
    /// Sources that contradict one another.
    pub disagreements: Vec<Disagreement>,
}

impl Inventory {
    /// The device with this id.
    pub fn device(&self, id: &DeviceId) -> Option<&DeviceInfo> {
        self.devices.iter().find(|d| d.id == *id)
    }
}
