//! Which devices shall be measured.

use std::fmt;

use super::agree::plain_uuid;
use crate::record::{BackendId, BackendReport, BackendState, DeviceId, DeviceInfo, DeviceKind, Inventory, PciIdentity};

/// Words that stand for several devices.
const WORDS: [&str; 7] = ["gpu", "all", "cuda", "hip", "opencl", "host", "sim"];
/// Backends that reach the same GPU, best first.
const PREFERENCE: [BackendId; 5] =
    [BackendId::Sim, BackendId::Cuda, BackendId::Hip, BackendId::Opencl, BackendId::Host];

/// Why no devices were selected.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectError {
    /// There is no GPU that could be reached (exit 4).
    NothingToTest {
        /// GPUs that the PCI bus shows all the same.
        on_bus: Vec<PciIdentity>,
        /// What each backend said.
        backends: Vec<BackendReport>,
        /// CPU-type devices that could be named instead.
        others: Vec<(DeviceId, String)>,
    },
    /// No device has this name (exit 2).
    Unknown {
        /// as given
        name: String,
        /// devices that could be named, with their names
        known: Vec<(DeviceId, String)>,
    },
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::NothingToTest { on_bus, backends, others } => {
                write!(f, "no GPU to test")?;
                for gpu in on_bus {
                    let PciIdentity { address, vendor, device, .. } = gpu;
                    write!(f, "\n  PCI bus: {address} [{vendor:04x}:{device:04x}], which no driver shows")?;
                }
                if on_bus.is_empty() {
                    write!(f, "\n  PCI bus: no GPU")?;
                }
                for report in backends.iter().filter(|b| b.id != BackendId::Host) {
                    match &report.state {
                        BackendState::Present { version, .. } => write!(f, "\n  {}: no GPU ({version})", report.id)?,
                        BackendState::Absent { reason, remedy } if remedy.is_empty() => {
                            write!(f, "\n  {}: {reason}", report.id)?;
                        }
                        BackendState::Absent { reason, remedy } => write!(f, "\n  {}: {reason}; {remedy}", report.id)?,
                    }
                }
                list(f, "\n  to measure something else, name it with --device:", others)
            }
            SelectError::Unknown { name, known } => {
                write!(f, "no device is called {name:?}")?;
                list(f, "\n  devices here:", known)?;
                write!(f, "\n  words: {}", WORDS.join(", "))
            }
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, title: &str, devices: &[(DeviceId, String)]) -> fmt::Result {
    if devices.is_empty() {
        return Ok(());
    }
    f.write_str(title)?;
    devices.iter().try_for_each(|(id, name)| write!(f, "\n    {id}  {name}"))
}

impl std::error::Error for SelectError {}

/// The devices to measure, in the inventory's order.
///
/// Without names: all GPUs, each once, through its best backend (cuda, hip, then opencl); simulated GPUs alone
/// if there are any. CPU-type devices are measured only when named. Names are device ids, UUIDs, PCI addresses
/// and the words `gpu` (as without names), `all` (those and the host) and the backends; several may stand in one
/// text, separated by commas.
pub fn select(inventory: &Inventory, names: &[String]) -> Result<Vec<DeviceId>, SelectError> {
    let names: Vec<&str> = names.iter().flat_map(|n| n.split(',')).map(str::trim).filter(|n| !n.is_empty()).collect();
    let mut chosen: Vec<DeviceId> = Vec::new();
    if names.is_empty() {
        chosen = gpus(inventory)?;
    }
    for name in names {
        chosen.extend(named(inventory, name)?);
    }
    let ids = inventory.devices.iter().map(|d| d.id.clone());
    Ok(ids.filter(|id| chosen.contains(id)).collect())
}

fn named(inventory: &Inventory, name: &str) -> Result<Vec<DeviceId>, SelectError> {
    let of = |backend: BackendId| -> Vec<DeviceId> {
        inventory.devices.iter().filter(|d| d.id.backend == backend).map(|d| d.id.clone()).collect()
    };
    let found = match name.to_lowercase().as_str() {
        "gpu" => gpus(inventory)?,
        "all" => gpus(inventory)?.into_iter().chain(of(BackendId::Host)).collect(),
        word => match PREFERENCE.into_iter().find(|b| b.name() == word) {
            Some(backend) => of(backend),
            None => inventory.devices.iter().filter(|d| is_called(d, word)).map(|d| d.id.clone()).collect(),
        },
    };
    if found.is_empty() {
        return Err(SelectError::Unknown { name: name.to_owned(), known: named_devices(inventory, |_| true) });
    }
    Ok(found)
}

fn is_called(device: &DeviceInfo, word: &str) -> bool {
    let address = device.pci.as_ref().is_some_and(|p| p.address.eq_ignore_ascii_case(word));
    let uuid = device.uuid.as_deref().is_some_and(|u| plain_uuid(u) == plain_uuid(word));
    device.id.to_string() == word || address || uuid
}

/// Every GPU once, through its best backend.
fn gpus(inventory: &Inventory) -> Result<Vec<DeviceId>, SelectError> {
    let all = inventory.devices.iter().filter(|d| d.kind == DeviceKind::Gpu);
    let simulated = all.clone().any(|d| d.simulated);
    let mut candidates: Vec<&DeviceInfo> = all.filter(|d| d.simulated == simulated).collect();
    candidates.sort_by_key(|d| (PREFERENCE.iter().position(|b| *b == d.id.backend), d.id.index));
    let mut chosen: Vec<&DeviceInfo> = Vec::new();
    for device in candidates {
        // Slices of one GPU share its address within a backend and are devices of their own.
        if !chosen.iter().any(|c| c.id.backend != device.id.backend && same_gpu(c, device)) {
            chosen.push(device);
        }
    }
    if chosen.is_empty() {
        return Err(SelectError::NothingToTest {
            on_bus: inventory.host.gpus_on_bus().to_vec(),
            backends: inventory.backends.clone(),
            others: named_devices(inventory, |d| d.kind != DeviceKind::Gpu),
        });
    }
    Ok(chosen.into_iter().map(|d| d.id.clone()).collect())
}

fn named_devices(inventory: &Inventory, keep: impl Fn(&DeviceInfo) -> bool) -> Vec<(DeviceId, String)> {
    inventory.devices.iter().filter(|d| keep(d)).map(|d| (d.id.clone(), d.name.clone())).collect()
}

/// Whether two backends speak of one GPU: by PCI address where both tell it, else by UUID. Without either they
/// are taken for two.
pub fn same_gpu(a: &DeviceInfo, b: &DeviceInfo) -> bool {
    match (&a.pci, &b.pci, &a.uuid, &b.uuid) {
        (Some(a), Some(b), _, _) => a.address.eq_ignore_ascii_case(&b.address),
        (_, _, Some(a), Some(b)) => plain_uuid(a) == plain_uuid(b),
        _ => false,
    }
}
