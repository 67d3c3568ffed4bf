//! What may run together, and what fits into memory together.

use std::collections::BTreeMap;

use super::{Candidate, Group};
use crate::record::{BackendId, CaseId, DeviceId, DeviceKind, Inventory};
use crate::unit::Bytes;

/// Share of a device's memory that prepared cases may hold together; drivers and the renter need the rest.
const MEMORY_SHARE: f64 = 0.85;

/// All pairs of `n` things in rounds of disjoint pairs (a round-robin tournament): `n − 1` rounds for even `n`,
/// `n` for odd `n`. Each pair is ordered and appears once.
pub fn matchings(n: usize) -> Vec<Vec<(usize, usize)>> {
    let even = n + n % 2;
    let opponent = |round: usize, i: usize| match i {
        0 => 0,
        i => 1 + (i - 1 + round) % (even - 1),
    };
    (0..even.saturating_sub(1))
        .map(|round| {
            let pairs = (0..even / 2).map(|i| (opponent(round, i), opponent(round, even - 1 - i)));
            pairs.map(|(a, b)| (a.min(b), a.max(b))).filter(|(_, b)| *b < n).collect()
        })
        .filter(|round: &Vec<_>| !round.is_empty())
        .collect()
}

/// Puts cases that could run together into as few slots as their exclusive needs allow, in order, and names
/// the slots `name`, `name#2`, …
pub fn assign(name: &str, together: Vec<Candidate>) -> Vec<Candidate> {
    let mut slots: Vec<Vec<Candidate>> = Vec::new();
    for candidate in together {
        let conflicts = |other: &Candidate| candidate.case.exclusive.iter().any(|e| other.case.exclusive.contains(e));
        match slots.iter_mut().find(|slot| !slot.iter().any(conflicts)) {
            Some(slot) => slot.push(candidate),
            None => slots.push(vec![candidate]),
        }
    }
    for (i, slot) in slots.iter_mut().enumerate() {
        for candidate in slot {
            candidate.case.slot = if i == 0 { name.to_owned() } else { format!("{name}#{}", i + 1) };
        }
    }
    slots.into_iter().flatten().collect()
}

/// Cases that do not fit into the memory of a device of theirs beside the others, with the reason. Gates are
/// seated first, then the most valuable; equals in suite order.
pub fn beyond_memory(groups: &[Group], inventory: &Inventory) -> BTreeMap<CaseId, String> {
    let mut by_worth: Vec<&Candidate> = groups.iter().flat_map(|g| &g.cases).collect();
    by_worth.sort_by_key(|c| (!c.case.gate, std::cmp::Reverse(c.case.value), c.order));
    let mut used: BTreeMap<DeviceId, f64> = BTreeMap::new();
    let mut removed = BTreeMap::new();
    for candidate in by_worth {
        let need = candidate.case.footprint.get();
        let pools: Vec<(DeviceId, f64)> = candidate.case.devices.iter().map(|d| pool(d, inventory)).collect();
        let full = pools.iter().find(|(id, size)| used.get(id).unwrap_or(&0.0) + need > size * MEMORY_SHARE);
        if let Some((id, size)) = full {
            let free = Bytes((size * MEMORY_SHARE - used.get(id).unwrap_or(&0.0)).max(0.0));
            let reason = format!("memory: it needs {}, {free} of {id} are left for it", candidate.case.footprint);
            removed.insert(candidate.case.id.clone(), reason);
            continue;
        }
        for (id, _) in pools {
            *used.entry(id).or_default() += need;
        }
    }
    removed
}

/// The memory a device draws from: its own, or the host's for CPU-type devices.
fn pool(id: &DeviceId, inventory: &Inventory) -> (DeviceId, f64) {
    let own = inventory.device(id);
    let host = || inventory.devices.iter().find(|d| d.id.backend == BackendId::Host);
    let device = match own.map(|d| d.kind) {
        Some(DeviceKind::Cpu) => host().or(own),
        _ => own,
    };
    device.map_or((id.clone(), 0.0), |d| (d.id.clone(), d.memory.get()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::matchings;

    #[test]
    fn matchings_hold_every_pair_once_and_no_device_twice() {
        for n in 0..17 {
            let rounds = matchings(n);
            let all: Vec<_> = rounds.iter().flatten().copied().collect();
            let distinct: BTreeSet<_> = all.iter().copied().collect();
            assert_eq!(all.len(), distinct.len());
            assert_eq!(all.len(), n * n.saturating_sub(1) / 2, "{n}");
            for round in &rounds {
                let devices: Vec<_> = round.iter().flat_map(|(a, b)| [*a, *b]).collect();
                assert_eq!(devices.len(), devices.iter().collect::<BTreeSet<_>>().len());
                assert!(round.len() == n / 2);
            }
        }
        assert_eq!(matchings(8).len(), 7);
    }
}
