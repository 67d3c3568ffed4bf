//! Who runs together, and in which order: pure functions of the plan.

use std::collections::BTreeMap;

use crate::backend::Companion;
use crate::record::{
    Case, DEVICE_MEMORY_SHARE, DataType, DeviceId, DeviceInfo, DeviceKind, Exclusive, HOST_MEMORY_SHARE,
};

/// Cases by index that are started from one instant.
pub type Group = Vec<usize>;

/// Cases with equal slot, in plan order, as groups that do not conflict.
pub fn groups(cases: &[Case]) -> Vec<Group> {
    let mut slots: Vec<(&str, Vec<Group>)> = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let position = slots.iter().position(|(name, _)| *name == case.slot).unwrap_or_else(|| {
            slots.push((&case.slot, Vec::new()));
            slots.len() - 1
        });
        let groups = &mut slots[position].1;
        match groups.iter_mut().find(|g| g.iter().all(|&other| !conflict(case, &cases[other]))) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    slots.into_iter().flat_map(|(_, groups)| groups).collect()
}

/// Two cases that may not be timed at the same moment, or that are timed in different ways.
fn conflict(a: &Case, b: &Case) -> bool {
    a.devices.iter().any(|d| b.devices.contains(d))
        || a.exclusive.iter().any(|e| b.exclusive.contains(e))
        || a.blocks_per_round != b.blocks_per_round
        || a.state != b.state
}

/// The order of a round: everything once, starting one further each time.
pub fn rotated(count: usize, round: u32) -> impl Iterator<Item = usize> {
    (0..count).map(move |i| (i + round as usize) % count)
}

/// True for cases that measure files: the journal keeps still meanwhile.
pub fn uses_disk(case: &Case) -> bool {
    case.exclusive.contains(&Exclusive::Disk)
}

/// True for cases with an aggressor in another process.
pub fn has_aggressor(case: &Case) -> bool {
    case.blocks_per_round == 3
}

/// The other side of an interference case, as told to both.
pub fn companion(case: &Case) -> Companion {
    Companion { benchmark: case.benchmark.clone(), params: case.params.clone() }
}

/// The case that heats `device` most: matrix products in the widest tensor type first, other arithmetic next,
/// then memory. `None` if the device has no case of its own that could.
pub fn heaviest(cases: &[Case], candidates: &[usize], device: &DeviceId) -> Option<usize> {
    let rank = |case: &Case| {
        let benchmark = ["gemm", "fma_peak", "memory_bandwidth"].iter().position(|b| *b == case.benchmark);
        let order = [DataType::Bf16, DataType::Fp16, DataType::Fp8, DataType::Tf32, DataType::Fp32];
        let of_type = case.params.data_type().and_then(|t| order.iter().position(|o| *o == t));
        (benchmark.unwrap_or(9), of_type.unwrap_or(order.len()))
    };
    let alone = |case: &Case| case.devices == [device.clone()] && !uses_disk(case) && !has_aggressor(case);
    candidates.iter().copied().filter(|&i| alone(&cases[i])).min_by_key(|&i| rank(&cases[i]))
}

/// What prepared cases hold, and may hold.
#[derive(Debug, Default)]
pub struct Memory {
    capacity: BTreeMap<Pool, f64>,
    pool_of: BTreeMap<DeviceId, Pool>,
    /// Prepared cases, least recently used first.
    held: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    Host,
    Device(DeviceId),
}

impl Memory {
    /// Of these devices, on a host with `host_usable` bytes for us (0: not known).
    pub fn new(devices: &[DeviceInfo], host_usable: f64) -> Memory {
        let mut memory = Memory::default();
        for device in devices {
            let size = device.memory.get();
            let (pool, capacity) = match device.kind {
                DeviceKind::Cpu if host_usable > 0.0 => (Pool::Host, HOST_MEMORY_SHARE * size.min(host_usable)),
                DeviceKind::Cpu => (Pool::Host, HOST_MEMORY_SHARE * size),
                DeviceKind::Gpu | DeviceKind::Accelerator => {
                    (Pool::Device(device.id.clone()), DEVICE_MEMORY_SHARE * size)
                }
            };
            memory.pool_of.insert(device.id.clone(), pool.clone());
            let known = memory.capacity.entry(pool).or_insert(capacity);
            *known = known.min(capacity);
        }
        memory
    }

    /// The case is in use now.
    pub fn touch(&mut self, case: usize) {
        self.held.retain(|&c| c != case);
        self.held.push(case);
    }

    /// The case holds nothing any more.
    pub fn forget(&mut self, case: usize) {
        self.held.retain(|&c| c != case);
    }

    /// Is it prepared?
    pub fn holds(&self, case: usize) -> bool {
        self.held.contains(&case)
    }

    /// The most recently used case, other than those of `group`, that must go before `case` fits. Rounds visit
    /// the cases in turn, so the most recent one is needed last; giving up the oldest instead would give up
    /// each case just before its turn, and nothing would ever stay. `None` if it
    /// fits or nothing is left to give up.
    pub fn in_the_way(&self, cases: &[Case], case: usize, group: &[usize]) -> Option<usize> {
        let pools: Vec<&Pool> = self.pools(&cases[case]);
        let full = |pool: &&&Pool| {
            let used: f64 = self.held.iter().filter(|&&c| c != case).map(|&c| self.use_of(&cases[c], pool)).sum();
            self.capacity.get(pool).is_some_and(|capacity| used + self.use_of(&cases[case], pool) > *capacity)
        };
        let full: Vec<&Pool> = pools.iter().filter(full).copied().collect();
        let shares = |c: usize| self.pools(&cases[c]).iter().any(|p| full.contains(p));
        self.held.iter().rev().copied().find(|&c| c != case && !group.contains(&c) && shares(c))
    }

    /// `case` did not fit beside what is held: from now on less than that may be held with it.
    pub fn shrink(&mut self, cases: &[Case], case: usize) {
        let pools: Vec<Pool> = self.pools(&cases[case]).into_iter().cloned().collect();
        for pool in pools {
            let held: f64 = self.held.iter().filter(|&&c| c != case).map(|&c| self.use_of(&cases[c], &pool)).sum();
            self.capacity.entry(pool).and_modify(|c| *c = c.min(held));
        }
    }

    fn pools(&self, case: &Case) -> Vec<&Pool> {
        let mut pools: Vec<&Pool> = case.devices.iter().filter_map(|d| self.pool_of.get(d)).collect();
        pools.dedup();
        pools
    }

    fn use_of(&self, case: &Case, pool: &Pool) -> f64 {
        if self.pools(case).contains(&pool) { case.footprint.get() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{case, gpu};
    use crate::record::BackendId;
    use crate::unit::Bytes;

    fn sim(index: u32) -> DeviceId {
        DeviceId::new(BackendId::Sim, index)
    }

    #[test]
    fn a_slot_is_one_group_unless_its_cases_conflict() {
        let mut cases = vec![case("gemm", &[sim(0)], "a"), case("read", &[sim(0)], "b"), case("gemm", &[sim(1)], "a")];
        assert_eq!(groups(&cases), [vec![0, 2], vec![1]]);
        cases.push(case("write", &[sim(0), sim(1)], "a"));
        assert_eq!(groups(&cases), [vec![0, 2], vec![3], vec![1]]);
        cases[2].exclusive.push(Exclusive::HostMemory);
        cases[0].exclusive.push(Exclusive::HostMemory);
        assert_eq!(groups(&cases), [vec![0], vec![2], vec![3], vec![1]]);
    }

    #[test]
    fn every_round_visits_all_and_starts_elsewhere() {
        for round in 0..5 {
            let mut order: Vec<usize> = rotated(3, round).collect();
            assert_eq!(order[0], round as usize % 3);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2]);
        }
    }

    #[test]
    fn the_most_recently_used_case_makes_room() {
        let device = gpu(0); // 80 GB, of which 64 may be held
        let mut cases = vec![case("a", &[sim(0)], "a"), case("b", &[sim(0)], "b"), case("c", &[sim(0)], "c")];
        cases.iter_mut().for_each(|c| c.footprint = Bytes(30e9));
        let mut memory = Memory::new(&[device], 0.0);
        memory.touch(0);
        assert_eq!(memory.in_the_way(&cases, 1, &[1]), None);
        memory.touch(1);
        memory.touch(0);
        assert_eq!(memory.in_the_way(&cases, 2, &[2]), Some(0));
        assert_eq!(memory.in_the_way(&cases, 2, &[0, 2]), Some(1), "not one of its own group");
        memory.forget(1);
        assert_eq!(memory.in_the_way(&cases, 2, &[2]), None);
        cases[2].footprint = Bytes(300e9);
        memory.forget(0);
        assert_eq!(memory.in_the_way(&cases, 2, &[2]), None, "nothing is left to give up: it is tried");
    }

    #[test]
    fn less_fits_once_memory_ran_out() {
        let mut cases = vec![case("a", &[sim(0)], "a"), case("b", &[sim(0)], "b"), case("c", &[sim(0)], "c")];
        cases.iter_mut().for_each(|c| c.footprint = Bytes(10e9));
        let mut memory = Memory::new(&[gpu(0)], 0.0);
        (0..3).for_each(|c| memory.touch(c));
        assert_eq!(memory.in_the_way(&cases, 2, &[2]), None);
        memory.shrink(&cases, 2);
        assert_eq!(memory.in_the_way(&cases, 2, &[2]), Some(1));
        memory.forget(1);
        assert_eq!(memory.in_the_way(&cases, 2, &[2]), None);
        memory.shrink(&cases, 2);
        assert_eq!(memory.in_the_way(&cases, 2, &[2]), Some(0));
        memory.forget(0);
        assert_eq!(memory.in_the_way(&cases, 2, &[2]), None, "nothing is left to give up");
    }

    #[test]
    fn a_case_on_another_device_is_not_in_the_way() {
        let mut cases = vec![case("a", &[sim(1)], "a"), case("b", &[sim(0)], "b")];
        cases.iter_mut().for_each(|c| c.footprint = Bytes(60e9));
        let mut memory = Memory::new(&[gpu(0), gpu(1)], 0.0);
        memory.touch(0);
        assert_eq!(memory.in_the_way(&cases, 1, &[1]), None);
    }
}
