//! What OpenCL shows: platforms, devices and their properties.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use cl3::device::{
    CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_EXTENSIONS, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE,
    CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_MAX_CLOCK_FREQUENCY, CL_DEVICE_MAX_COMPUTE_UNITS,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_NAME, CL_DEVICE_OPENCL_C_VERSION, CL_DEVICE_TYPE, CL_DEVICE_TYPE_ALL,
    CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION, get_device_data,
};
use cl3::error_codes::{DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED};
use cl3::platform::{CL_PLATFORM_NAME, CL_PLATFORM_VERSION, get_platform_data, get_platform_ids};
use cl3::types::{cl_device_id, cl_int, cl_platform_id};

use super::device::lock;
use super::error::status_text;
use super::object::text;
use crate::record::{BackendId, BackendState, DataType, DeviceId, DeviceInfo, DeviceKind, PciIdentity, WorkScale};
use crate::unit::{Bytes, Hertz};

/// cl_khr_device_uuid: 16 bytes.
const CL_DEVICE_UUID_KHR: u32 = 0x106A;
/// cl_khr_pci_bus_info: domain, bus, device, function as 32-bit numbers.
const CL_DEVICE_PCI_BUS_INFO_KHR: u32 = 0x410F;
/// cl_nv_device_attribute_query.
const CL_DEVICE_PCI_BUS_ID_NV: u32 = 0x4008;
const CL_DEVICE_PCI_SLOT_ID_NV: u32 = 0x4009;
const CL_DEVICE_PCI_DOMAIN_ID_NV: u32 = 0x400A;
/// cl_amd_device_attribute_query: 24 bytes; type 1 is PCIe, the last three bytes are bus, device, function.
const CL_DEVICE_TOPOLOGY_AMD: u32 = 0x4037;
/// cl_amd_device_attribute_query: the marketing name; CL_DEVICE_NAME is the instruction set ("gfx90a").
const CL_DEVICE_BOARD_NAME_AMD: u32 = 0x4038;

/// A device with the handle that opens it.
pub struct Listed {
    /// Handle.
    pub raw: RawDevice,
    /// What it is.
    pub info: DeviceInfo,
}

/// Handle of a root device, which lives as long as the process.
#[derive(Clone, Copy)]
pub struct RawDevice(pub cl_device_id);
// SAFETY: device handles are immutable identifiers; every call that takes one is thread-safe.
unsafe impl Send for RawDevice {}
// SAFETY: as above.
unsafe impl Sync for RawDevice {}

/// Every device of every platform: platforms by name and version, devices in the order of their driver.
pub fn list() -> Result<Vec<Listed>, BackendState> {
    /// Drivers initialise on the first call, and not all of them survive two threads that do so at once.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = lock(&ONE_AT_A_TIME);
    let mut platforms = get_platform_ids().map_err(absent)?.into_iter().map(Platform::read).collect::<Vec<_>>();
    // The loader lists drivers in the order of a folder's entries, which differs between machines.
    platforms.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    let mut found = Vec::new();
    for platform in &platforms {
        // A platform without devices answers with an error: nothing to list.
        let devices = cl3::device::get_device_ids(platform.raw, CL_DEVICE_TYPE_ALL).unwrap_or_default();
        for raw in devices {
            let id = DeviceId::new(BackendId::Opencl, found.len() as u32);
            found.push(Listed { raw: RawDevice(raw), info: info(id, raw, platform) });
        }
    }
    if found.is_empty() {
        let names: Vec<&str> = platforms.iter().map(|p| p.name.as_str()).collect();
        return Err(BackendState::Absent {
            reason: format!("OpenCL platforms without any device: {}", names.join(", ")),
            remedy: "check that the GPU's device files (/dev/nvidia*, /dev/dri/*, /dev/kfd) are there and accessible"
                .to_owned(),
        });
    }
    Ok(found)
}

/// State of the backend once devices were found.
pub fn present(found: &[Listed]) -> BackendState {
    let mut versions: Vec<&str> =
        found.iter().filter_map(|l| l.info.attributes.get("platform_version").map(String::as_str)).collect();
    versions.dedup();
    BackendState::Present { version: versions.join("; "), library: library_path() }
}

/// Why a backend is absent, in one text.
pub fn reason(state: &BackendState) -> String {
    match state {
        BackendState::Absent { reason, remedy } => format!("{reason}; {remedy}"),
        BackendState::Present { version, .. } => version.clone(),
    }
}

fn absent(status: cl_int) -> BackendState {
    /// No driver is registered with the loader (cl_khr_icd).
    const CL_PLATFORM_NOT_FOUND_KHR: cl_int = -1001;
    let (reason, remedy) = match status {
        DLOPEN_RUNTIME_LOAD_FAILED => (
            "libOpenCL.so.1 could not be opened".to_owned(),
            "install the OpenCL loader (Debian/Ubuntu: ocl-icd-libopencl1) and the GPU driver's OpenCL part",
        ),
        CL_PLATFORM_NOT_FOUND_KHR => (
            "the OpenCL loader found no driver".to_owned(),
            "install the GPU driver's OpenCL part; its .icd file belongs into /etc/OpenCL/vendors",
        ),
        DLOPEN_FUNCTION_NOT_AVAILABLE => (
            "libOpenCL.so.1 lacks clGetPlatformIDs".to_owned(),
            "the file is not an OpenCL loader: reinstall it (Debian/Ubuntu: ocl-icd-libopencl1)",
        ),
        status => (format!("clGetPlatformIDs: {}", status_text(status)), "reinstall the GPU driver's OpenCL part"),
    };
    BackendState::Absent { reason, remedy: remedy.to_owned() }
}

/// Where the loader came from, as the process's own memory map tells.
fn library_path() -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|p| p.contains("libOpenCL")).map(str::to_owned)
}

struct Platform {
    raw: cl_platform_id,
    name: String,
    version: String,
}

impl Platform {
    fn read(raw: cl_platform_id) -> Platform {
        let read = |what| get_platform_data(raw, what).map(|bytes| text(&bytes)).unwrap_or_default();
        Platform { raw, name: read(CL_PLATFORM_NAME), version: read(CL_PLATFORM_VERSION) }
    }
}

/// Properties of one device; what it does not answer is missing.
struct Properties(cl_device_id);

impl Properties {
    fn text(&self, what: u32) -> Option<String> {
        get_device_data(self.0, what).ok().map(|bytes| text(&bytes)).filter(|text| !text.is_empty())
    }

    /// An unsigned number of 4 or 8 bytes.
    fn number(&self, what: u32) -> Option<u64> {
        let bytes = get_device_data(self.0, what).ok()?;
        match bytes.len() {
            4 => Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?))),
            8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    /// As [`Properties::number`], where 0 means "not known".
    fn positive(&self, what: u32) -> Option<u64> {
        self.number(what).filter(|n| *n > 0)
    }
}

fn info(id: DeviceId, raw: cl_device_id, platform: &Platform) -> DeviceInfo {
    let device = Properties(raw);
    let extensions = device.text(CL_DEVICE_EXTENSIONS).unwrap_or_default();
    let address = pci_address(&device, &extensions);
    let kind = match device.number(CL_DEVICE_TYPE).unwrap_or(0) {
        bits if bits & CL_DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
        bits if bits & CL_DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
        _ => DeviceKind::Accelerator,
    };
    let mut attributes = BTreeMap::from([
        ("platform".to_owned(), platform.name.clone()),
        ("platform_version".to_owned(), platform.version.clone()),
        ("extensions".to_owned(), extensions.clone()),
    ]);
    let mut note = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            attributes.insert(name.to_owned(), value);
        }
    };
    note("opencl_c_version", device.text(CL_DEVICE_OPENCL_C_VERSION));
    note("largest_buffer", device.positive(CL_DEVICE_MAX_MEM_ALLOC_SIZE).map(|n| n.to_string()));
    note("pci_address", address.clone());
    // Only asked where it exists: some drivers complain on the terminal about queries they do not know.
    let amd = has(&extensions, "cl_amd_device_attribute_query");
    let board = amd.then(|| device.text(CL_DEVICE_BOARD_NAME_AMD)).flatten();
    let usable = unusable(&device).map(|reason| note("unusable", Some(reason))).is_none();
    DeviceInfo {
        id,
        kind,
        name: board.or_else(|| device.text(CL_DEVICE_NAME)).unwrap_or_default(),
        vendor: device.text(CL_DEVICE_VENDOR).unwrap_or_default(),
        uuid: has(&extensions, "cl_khr_device_uuid").then(|| uuid(&device)).flatten(),
        pci: address.as_deref().and_then(pci_identity),
        memory: Bytes(device.number(CL_DEVICE_GLOBAL_MEM_SIZE).unwrap_or(0) as f64),
        last_level_cache: device.positive(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE).map(|n| Bytes(n as f64)),
        units: device.positive(CL_DEVICE_MAX_COMPUTE_UNITS).map(|n| n as u32),
        clock_max: device.positive(CL_DEVICE_MAX_CLOCK_FREQUENCY).map(|mhz| Hertz(mhz as f64 * 1e6)),
        driver: device.text(CL_DRIVER_VERSION),
        api: device.text(CL_DEVICE_VERSION),
        gemm_types: if usable { gemm_types(&extensions) } else { Vec::new() },
        fma_types: if usable { fma_types(&extensions) } else { Vec::new() },
        spec: None,
        numa_node: address.as_deref().and_then(numa_node),
        attributes,
        scale: WorkScale::ONE,
        simulated: false,
    }
}

/// Why no kernel can run on a device that is listed.
fn unusable(device: &Properties) -> Option<String> {
    if device.number(CL_DEVICE_AVAILABLE) == Some(0) {
        return Some("the driver reports the device as not available".to_owned());
    }
    if device.number(CL_DEVICE_COMPILER_AVAILABLE) == Some(0) {
        return Some("the driver has no compiler".to_owned());
    }
    None
}

/// True if the list of extensions holds `name` as a whole word.
pub fn has(extensions: &str, name: &str) -> bool {
    extensions.split_whitespace().any(|e| e == name)
}

fn fma_types(extensions: &str) -> Vec<DataType> {
    let listed = [
        (DataType::Fp64, has(extensions, "cl_khr_fp64")),
        (DataType::Fp32, true),
        (DataType::Fp16, has(extensions, "cl_khr_fp16")),
        (DataType::Int8, true),
    ];
    listed.into_iter().filter_map(|(data_type, there)| there.then_some(data_type)).collect()
}

/// Halves are read and written by core functions, so fp16 inputs with fp32 arithmetic work everywhere.
fn gemm_types(extensions: &str) -> Vec<DataType> {
    let fp64 = has(extensions, "cl_khr_fp64").then_some(DataType::Fp64);
    fp64.into_iter().chain([DataType::Fp32, DataType::Fp16, DataType::Int8]).collect()
}

fn uuid(device: &Properties) -> Option<String> {
    let bytes = get_device_data(device.0, CL_DEVICE_UUID_KHR).ok().filter(|b| b.len() == 16)?;
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    Some(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

fn pci_address(device: &Properties, extensions: &str) -> Option<String> {
    let address =
        |domain: u64, bus: u64, dev: u64, function: u64| format!("{domain:04x}:{bus:02x}:{dev:02x}.{function:x}");
    if has(extensions, "cl_khr_pci_bus_info") {
        let bytes = get_device_data(device.0, CL_DEVICE_PCI_BUS_INFO_KHR).ok().filter(|b| b.len() == 16)?;
        let word = |i: usize| u64::from(u32::from_ne_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]));
        return Some(address(word(0), word(4), word(8), word(12)));
    }
    if has(extensions, "cl_nv_device_attribute_query") {
        let slot = device.number(CL_DEVICE_PCI_SLOT_ID_NV)?;
        let domain = device.number(CL_DEVICE_PCI_DOMAIN_ID_NV).unwrap_or(0);
        return Some(address(domain, device.number(CL_DEVICE_PCI_BUS_ID_NV)?, slot >> 3, slot & 7));
    }
    if has(extensions, "cl_amd_device_attribute_query") {
        let bytes = get_device_data(device.0, CL_DEVICE_TOPOLOGY_AMD).ok().filter(|b| b.len() == 24)?;
        let pcie = bytes[..4] == 1u32.to_ne_bytes();
        return pcie.then(|| address(0, bytes[21].into(), bytes[22].into(), bytes[23].into()));
    }
    None
}

/// Ids come from sysfs: OpenCL has no query for them.
fn pci_identity(address: &str) -> Option<PciIdentity> {
    let id = |file: &str| {
        let text = fs::read_to_string(format!("/sys/bus/pci/devices/{address}/{file}")).ok()?;
        u16::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    Some(PciIdentity {
        address: address.to_owned(),
        vendor: id("vendor")?,
        device: id("device")?,
        subsystem: id("subsystem_vendor").zip(id("subsystem_device")),
    })
}

fn numa_node(address: &str) -> Option<u32> {
    // −1 where the firmware does not say.
    fs::read_to_string(format!("/sys/bus/pci/devices/{address}/numa_node")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_the_extensions_as_whole_words() {
        assert_eq!(
            fma_types("cl_khr_fp64 cl_khr_fp16"),
            [DataType::Fp64, DataType::Fp32, DataType::Fp16, DataType::Int8]
        );
        assert_eq!(fma_types("cl_khr_fp64_something"), [DataType::Fp32, DataType::Int8]);
        assert_eq!(gemm_types(""), [DataType::Fp32, DataType::Fp16, DataType::Int8]);
        assert_eq!(gemm_types("cl_khr_fp64")[0], DataType::Fp64);
    }

    #[test]
    fn an_absent_library_has_a_reason_and_a_remedy() {
        for status in [DLOPEN_RUNTIME_LOAD_FAILED, DLOPEN_FUNCTION_NOT_AVAILABLE, -1001, -5] {
            let BackendState::Absent { reason, remedy } = absent(status) else { panic!("present") };
            assert!(!reason.is_empty() && !remedy.is_empty());
        }
        assert!(reason(&absent(-5)).contains("CL_OUT_OF_RESOURCES"));
    }
}
