//! Device memory. Prepared cases stay resident as long as there is room; the runner gives up the most recently
//! used one for the next. What cannot fit alone is not planned; what cannot stay costs its preparation again in
//! every round.

use std::collections::BTreeMap;

use super::Candidate;
use crate::record::{BackendId, Case, DEVICE_MEMORY_SHARE, DeviceId, DeviceKind, HOST_MEMORY_SHARE, Inventory};
use crate::unit::Bytes;

/// Memory that devices draw from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    Host,
    Device(DeviceId),
}

/// Why a case does not fit into a device of its, even alone.
pub fn too_large(candidate: &Candidate, inventory: &Inventory) -> Option<String> {
    let need = candidate.case.footprint;
    let allowed = candidate.case.devices.iter().map(|d| (d, pool(d, inventory).1));
    let (device, room) = allowed.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (need.get() > room).then(|| format!("memory: it needs {need}, {device} has {} for it", Bytes(room)))
}

/// Cases that must be prepared again in every round, where the pools cannot hold all of `cases`: those beyond
/// the room, and the resident one that makes way for them (taken for the costliest).
pub fn evicted<'c>(cases: &[&'c Case], inventory: &Inventory) -> Vec<&'c Case> {
    let mut used: BTreeMap<Pool, f64> = BTreeMap::new();
    let (mut resident, mut beyond) = (Vec::new(), Vec::new());
    for &case in cases {
        let pools: Vec<(Pool, f64)> = case.devices.iter().map(|d| pool(d, inventory)).collect();
        let fits = pools.iter().all(|(pool, room)| used.get(pool).unwrap_or(&0.0) + case.footprint.get() <= *room);
        if !fits {
            beyond.push(case);
            continue;
        }
        pools.into_iter().for_each(|(pool, _)| *used.entry(pool).or_default() += case.footprint.get());
        resident.push(case);
    }
    let full: Vec<Pool> = pools_of(&beyond, inventory);
    for full in full {
        let of_it = resident.iter().filter(|c| pools_of(&[**c], inventory).contains(&full));
        beyond.extend(of_it.max_by(|a, b| a.estimate.prepare.get().total_cmp(&b.estimate.prepare.get())));
    }
    beyond
}

fn pools_of(cases: &[&Case], inventory: &Inventory) -> Vec<Pool> {
    let mut pools: Vec<Pool> = cases.iter().flat_map(|c| &c.devices).map(|d| pool(d, inventory).0).collect();
    pools.sort();
    pools.dedup();
    pools
}

/// Where a device's memory comes from, and how much of it cases may hold.
fn pool(id: &DeviceId, inventory: &Inventory) -> (Pool, f64) {
    let Some(device) = inventory.device(id) else { return (Pool::Device(id.clone()), 0.0) };
    let size = device.memory.get();
    if device.kind != DeviceKind::Cpu && id.backend != BackendId::Host {
        return (Pool::Device(id.clone()), DEVICE_MEMORY_SHARE * size);
    }
    let usable = inventory.host.memory_usable.get();
    (Pool::Host, HOST_MEMORY_SHARE * if usable > 0.0 { size.min(usable) } else { size })
}
