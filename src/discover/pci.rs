//! The PCI bus as sysfs shows it, independent of any driver library.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::read;
use crate::record::{DeviceInfo, Observed, PEER_LINK, PciIdentity};

const NVIDIA: u16 = 0x10de;
const AMD: u16 = 0x1002;
const INTEL: u16 = 0x8086;
/// Base class of display controllers.
const DISPLAY: u32 = 0x03;
/// Class of bridges of no other kind, which NVSwitches carry.
const OTHER_BRIDGE: u32 = 0x0680;
/// Base class of processing accelerators, which some compute-only GPUs carry.
const ACCELERATOR: u32 = 0x12;
/// Most devices that are looked at.
const MOST: usize = 4096;

/// GPUs on the bus, by address. The emulated screens of virtual machines and boards are not among them. A machine
/// without such a bus has none on it; one whose sysfs cannot be read is not known to have none.
pub fn gpus(root: &Path) -> Observed<Vec<PciIdentity>> {
    let entries = match fs::read_dir(root.join("sys/bus/pci/devices")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && root.join("sys/bus").is_dir() => {
            return Observed::Value(Vec::new());
        }
        Err(error) => return Observed::NotObservable(format!("/sys/bus/pci/devices: {error}")),
    };
    let mut addresses: Vec<String> =
        entries.flatten().take(MOST).filter_map(|e| e.file_name().into_string().ok()).collect();
    addresses.sort();
    Observed::Value(addresses.iter().filter(|a| is_gpu(root, a)).filter_map(|a| identity(root, a)).collect())
}

/// NVIDIA's NVSwitches on the bus; `None` if there are none. A machine whose switches the host keeps to itself shows none
/// either, so their absence says nothing.
pub fn nvswitches(root: &Path) -> Option<usize> {
    let entries = fs::read_dir(root.join("sys/bus/pci/devices")).ok()?;
    let addresses = entries.flatten().take(MOST).filter_map(|e| e.file_name().into_string().ok());
    let is_switch = |address: &String| {
        hex(root, address, "class").map(|c| c >> 8) == Some(OTHER_BRIDGE)
            && hex(root, address, "vendor") == Some(u32::from(NVIDIA))
    };
    Some(addresses.filter(is_switch).count()).filter(|n| *n > 0)
}

fn is_gpu(root: &Path, address: &str) -> bool {
    let class = hex(root, address, "class").map(|c| c >> 16);
    let vendor = hex(root, address, "vendor").and_then(|v| u16::try_from(v).ok());
    matches!((class, vendor), (Some(DISPLAY), Some(NVIDIA | AMD | INTEL)) | (Some(ACCELERATOR), Some(AMD | INTEL)))
}

fn identity(root: &Path, address: &str) -> Option<PciIdentity> {
    let id = |name: &str| hex(root, address, name).and_then(|v| u16::try_from(v).ok());
    Some(PciIdentity {
        address: address.to_lowercase(),
        vendor: id("vendor")?,
        device: id("device")?,
        subsystem: id("subsystem_vendor").zip(id("subsystem_device")),
    })
}

fn hex(root: &Path, address: &str, name: &str) -> Option<u32> {
    let text = file(root, address, name)?;
    u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

fn file(root: &Path, address: &str, name: &str) -> Option<String> {
    read(&path(root, address)?, name)
}

/// Folder of an address. Addresses come from drivers too: nothing but hexadecimal digits, colons and a dot may
/// build a path; drivers write capitals where sysfs writes small letters.
fn path(root: &Path, address: &str) -> Option<PathBuf> {
    let legal = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    let safe = !address.is_empty() && address.chars().all(legal) && !address.contains("..");
    safe.then(|| root.join("sys/bus/pci/devices").join(address.to_lowercase()))
}

/// Adds what the bus knows and the driver did not say: subsystem, NUMA node, width and speed of the link.
pub fn complete(device: &mut DeviceInfo, root: &Path) {
    let Some(pci) = &mut device.pci else { return };
    let address = pci.address.clone();
    if let (None, Some(known)) = (pci.subsystem, identity(root, &address)) {
        pci.subsystem = known.subsystem;
    }
    // −1 means that the firmware did not say.
    let node = file(root, &address, "numa_node").and_then(|t| t.parse().ok());
    device.numa_node = device.numa_node.or(node);
    if let Some(name) = root_complex(root, &address) {
        device.attributes.entry("pcie_root".to_owned()).or_insert(name);
    }
    // The amdgpu driver gives an address on the link between GPUs to each GPU that has one.
    if file(root, &address, "xgmi_device_id").is_some() {
        device.attributes.entry(PEER_LINK.to_owned()).or_insert_with(|| "xGMI".to_owned());
    }
    let link = [
        ("pcie_width", "current_link_width"),
        ("pcie_width_max", "max_link_width"),
        ("pcie_speed", "current_link_speed"),
        ("pcie_speed_max", "max_link_speed"),
    ];
    for (name, source) in link {
        if let Some(text) = file(root, &address, source) {
            device.attributes.entry(name.to_owned()).or_insert(text);
        }
    }
}

/// The root complex a device hangs on, e.g. `pci0000:10`: sysfs links its address to its place in the tree.
fn root_complex(root: &Path, address: &str) -> Option<String> {
    let place = fs::canonicalize(path(root, address)?).ok()?;
    let name = place.components().find_map(|part| part.as_os_str().to_str().filter(|p| p.starts_with("pci0")))?;
    Some(name.to_owned())
}

/// The bus's own ids of a device that a driver places at `address`.
pub fn same_address<'p>(address: &str, on_bus: &'p [PciIdentity]) -> Option<&'p PciIdentity> {
    on_bus.iter().find(|p| p.address.eq_ignore_ascii_case(address))
}
