//! Do the sources tell the same story? Two backends about one GPU, a driver and the bus about one address, the
//! bus and the drivers about the count. What a device should be by the spec table is for the judge to compare.

use std::collections::BTreeSet;

use super::pci;
use super::select::same_gpu;
use crate::record::{BackendId, DeviceId, DeviceInfo, DeviceKind, Disagreement, Host};

/// Runtimes keep different shares of the memory for themselves; beyond this they speak of different sizes.
const MEMORY_TOLERANCE: f64 = 0.1;

/// All contradictions, in the order of the devices. Simulated devices are on no bus and are left out.
pub fn disagreements(host: &Host, devices: &[DeviceInfo]) -> Vec<Disagreement> {
    let gpus: Vec<&DeviceInfo> = devices.iter().filter(|d| d.kind == DeviceKind::Gpu && !d.simulated).collect();
    let mut all: Vec<Disagreement> = gpus.iter().filter_map(|gpu| with_bus(host, gpu)).collect();
    for (i, one) in gpus.iter().enumerate() {
        let others = gpus[i + 1..].iter().filter(|other| other.id.backend != one.id.backend && same_gpu(one, other));
        all.extend(others.flat_map(|other| between(one, other)));
    }
    all.extend(count(host, &gpus));
    all
}

/// A driver's ids against those that the bus shows at the same address.
fn with_bus(host: &Host, gpu: &DeviceInfo) -> Option<Disagreement> {
    let said = gpu.pci.as_ref()?;
    let seen = pci::same_address(&said.address, host.gpus_on_bus())?;
    let ids = |vendor: u16, device: u16| format!("{vendor:04x}:{device:04x}");
    let differ = (said.vendor, said.device) != (seen.vendor, seen.device);
    let source = gpu.id.backend.name();
    differ.then(|| {
        let first = (source.to_owned(), ids(said.vendor, said.device));
        Disagreement {
            device: gpu.id.clone(),
            about: "pci id".to_owned(),
            first,
            second: ("PCI bus".to_owned(), ids(seen.vendor, seen.device)),
        }
    })
}

/// Two backends about one GPU.
fn between(one: &DeviceInfo, other: &DeviceInfo) -> Vec<Disagreement> {
    let differ = |about: &str, first: String, second: String| Disagreement {
        device: one.id.clone(),
        about: about.to_owned(),
        first: (one.id.to_string(), first),
        second: (other.id.to_string(), second),
    };
    let mut all = Vec::new();
    if let (Some(a), Some(b)) = (&one.uuid, &other.uuid)
        && plain_uuid(a) != plain_uuid(b)
    {
        all.push(differ("uuid", a.clone(), b.clone()));
    }
    if let (Some(a), Some(b)) = (&one.spec, &other.spec)
        && a != b
    {
        all.push(differ("name", one.name.clone(), other.name.clone()));
    }
    let (a, b) = (one.memory.get(), other.memory.get());
    if a > 0.0 && b > 0.0 && (a - b).abs() > MEMORY_TOLERANCE * a.max(b) {
        all.push(differ("memory", one.memory.to_string(), other.memory.to_string()));
    }
    // OpenCL counts work-group processors where HIP counts the two compute units in each.
    if let (Some(a), Some(b)) = (one.units, other.units)
        && a != b
        && a != 2 * b
        && b != 2 * a
    {
        all.push(differ("units", a.to_string(), b.to_string()));
    }
    all
}

/// UUIDs are written with and without "GPU-", dashes and capitals.
pub fn plain_uuid(text: &str) -> String {
    let text = text.to_lowercase();
    text.trim_start_matches("gpu-").chars().filter(|c| *c != '-').collect()
}

/// GPUs on the bus against GPUs that any driver shows. A bus that cannot be seen says nothing.
fn count(host: &Host, gpus: &[&DeviceInfo]) -> Option<Disagreement> {
    let on_bus = host.gpus_on_bus().len();
    let addresses: BTreeSet<String> =
        gpus.iter().filter_map(|g| g.pci.as_ref()).map(|p| p.address.to_lowercase()).collect();
    // A GPU whose address is not told is one that is not counted yet, unless a backend that tells shows it too.
    let without = gpus.iter().filter(|g| g.pci.is_none() && !gpus.iter().any(|o| o.pci.is_some() && same_gpu(g, o)));
    let shown = addresses.len() + without.count();
    (on_bus > 0 && on_bus != shown).then(|| Disagreement {
        device: DeviceId::new(BackendId::Host, 0),
        about: "count".to_owned(),
        first: ("PCI bus".to_owned(), on_bus.to_string()),
        second: ("drivers".to_owned(), shown.to_string()),
    })
}
