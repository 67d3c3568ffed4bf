//! Who am I: the machine and its devices, as every source tells it. No limits and no opinions; strings from the
//! machine are kept as they are and are hostile to whoever shows them.
//!
//! [`discover`] opens vendor libraries and runs in a child process. [`select`] is pure.

mod agree;
mod disk;
mod host;
mod pci;
mod platform;
mod select;
mod storage;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use select::{SelectError, select};

use crate::backend::Backend;
use crate::record::{BackendReport, DeviceInfo, DeviceKind, Inventory};
use crate::spec::{self, LookupKey};

/// Longest file of `/proc` or `/sys` that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Where to look.
#[derive(Debug, Clone)]
pub struct Options {
    /// Root of `/proc`, `/sys` and `/etc`; another folder in tests.
    pub root: PathBuf,
    /// Folder whose storage is to be measured.
    pub storage: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options { root: PathBuf::from("/"), storage: None }
    }
}

/// What is on this machine. Nothing is selected yet. An absent library, an unreadable file or a folder that
/// cannot be used is a value in the result, never an error.
pub fn discover(backends: &[Box<dyn Backend>], options: &Options) -> Inventory {
    let mut host = host::host(&options.root);
    let mut reports = Vec::new();
    let mut devices = Vec::new();
    for backend in backends {
        let probe = backend.probe();
        reports.push(BackendReport { id: backend.id(), state: probe.state });
        devices.extend(probe.devices);
    }
    devices.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(simulated) = devices.iter().find(|d| d.simulated) {
        host::simulate(&mut host, simulated);
    }
    for device in devices.iter_mut().filter(|d| !d.simulated) {
        pci::complete(device, &options.root);
    }
    for device in devices.iter_mut().filter(|d| d.kind == DeviceKind::Gpu && d.spec.is_none()) {
        device.spec = model(device);
    }
    let disagreements = agree::disagreements(&host, &devices);
    let storage = options.storage.as_deref().and_then(|folder| storage::target(folder, &options.root));
    Inventory { host, backends: reports, devices, selected: Vec::new(), storage, disagreements }
}

/// The entry of the spec table that a device matches, if exactly one does.
fn model(device: &DeviceInfo) -> Option<String> {
    let memory = (device.memory.get() > 0.0).then_some(device.memory);
    let key = LookupKey::new(device.pci.as_ref(), &device.name, memory);
    spec::table().lookup(&key).one().map(|spec| spec.id.clone())
}

/// Text of a small file under `root`, without surrounding white space and zero bytes; `None` if it cannot be read
/// or is empty.
fn read(root: &Path, path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(root.join(path)).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
