//! From run lines to candidates: parameters, devices, targeting, gates, costs.

use std::collections::{BTreeMap, HashSet};

use super::{Candidate, Group, PlanError, PlanOptions, slots};
use crate::benchmark::Benchmark;
use crate::record::{
    BackendId, Case, CaseEstimate, CaseId, DeviceId, DeviceInfo, DeviceKind, Exclusive, Inventory, Params, Targeting,
};
use crate::suite::{Demand, DeviceFilter, LimitRule, Run, Subject, Suite, combinations};
use crate::unit::{Bytes, Seconds};

/// Asking a worker and hearing from it, per block.
const EXCHANGE: Seconds = Seconds(0.01);
/// Blocks of a round with a neighbour: alone, with it, alone again.
const WITH_AGGRESSOR: u32 = 3;

/// All groups of a suite, in its order, with what cannot run here marked. A case that an earlier line already
/// made is not made again.
pub fn groups(
    benchmarks: &[&dyn Benchmark],
    suite: &Suite,
    inventory: &Inventory,
    options: &PlanOptions,
) -> Result<Vec<Group>, PlanError> {
    let selected: Vec<&DeviceInfo> = inventory
        .selected
        .iter()
        .map(|id| inventory.device(id).ok_or_else(|| PlanError::UnknownDevice(id.clone())))
        .collect::<Result<_, _>>()?;
    let mut seen: HashSet<CaseId> = HashSet::new();
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut order = 0;
    let mut groups = Vec::new();
    for run in &suite.runs {
        let benchmark = benchmarks.iter().copied().find(|b| b.meta().id == run.benchmark);
        let devices = devices(run.on, &selected, inventory);
        for params in combinations(&run.params) {
            let name = slot_name(format!("{}[{params}]", run.benchmark), &mut names);
            let builder = Builder { name, benchmark, suite, run, params: &params, inventory, options };
            let mut cases = builder.cases(&devices);
            cases.retain(|c| seen.insert(c.case.id.clone()));
            for candidate in &mut cases {
                candidate.order = order;
                order += 1;
            }
            groups.push(Group { cases });
        }
    }
    groups.retain(|g| !g.cases.is_empty());
    Ok(groups)
}

/// Groups never share a slot: equal cases of two run lines (on the GPUs, on the host) get two names.
fn slot_name(name: String, names: &mut BTreeMap<String, u32>) -> String {
    let times = names.entry(name.clone()).or_default();
    *times += 1;
    if *times == 1 { name } else { format!("{name} ({times})") }
}

/// The devices a run line is for.
fn devices<'i>(on: DeviceFilter, selected: &[&'i DeviceInfo], inventory: &'i Inventory) -> Vec<&'i DeviceInfo> {
    if on == DeviceFilter::Machine {
        let beside_real = selected.iter().any(|d| !d.simulated);
        let host = inventory.devices.iter().find(|d| d.id.backend == BackendId::Host);
        return host.filter(|_| beside_real).into_iter().collect();
    }
    selected.iter().copied().filter(|d| admits(on, d)).collect()
}

/// Whether a filter lets a device through.
fn admits(on: DeviceFilter, device: &DeviceInfo) -> bool {
    let host = device.id.backend == BackendId::Host;
    match on {
        DeviceFilter::Any => true,
        DeviceFilter::Gpu => device.kind == DeviceKind::Gpu,
        DeviceFilter::Cpu => device.kind == DeviceKind::Cpu && !host,
        DeviceFilter::Host | DeviceFilter::Machine => host,
    }
}

/// Makes the cases of one group.
struct Builder<'a> {
    name: String,
    benchmark: Option<&'a dyn Benchmark>,
    suite: &'a Suite,
    run: &'a Run,
    params: &'a Params,
    inventory: &'a Inventory,
    options: &'a PlanOptions,
}

impl Builder<'_> {
    fn cases(&self, devices: &[&DeviceInfo]) -> Vec<Candidate> {
        let name = &self.name;
        let single = || devices.iter().map(|d| self.candidate(&[d]));
        match self.run.targeting {
            Targeting::Together => slots::assign(name, single().collect()),
            Targeting::Alone if devices.len() < 2 => slots::assign(name, single().collect()),
            Targeting::Alone => single().flat_map(|c| slots::assign(&alone(name, &c), vec![renamed(c)])).collect(),
            Targeting::Pairs => by_backend(devices).iter().flat_map(|set| self.pairs(name, set)).collect(),
            Targeting::All => by_backend(devices)
                .iter()
                .flat_map(|set| slots::assign(&format!("{name} all {}", set[0].id.backend), vec![self.candidate(set)]))
                .collect(),
        }
    }

    fn pairs(&self, name: &str, devices: &[&DeviceInfo]) -> Vec<Candidate> {
        let rounds = slots::matchings(devices.len());
        let matching = |(round, pairs): (usize, Vec<(usize, usize)>)| {
            let name = format!("{name} pairs {}.{}", devices[0].id.backend, round + 1);
            let cases = pairs.into_iter().map(|(a, b)| self.candidate(&[devices[a], devices[b]]));
            slots::assign(&name, cases.collect())
        };
        rounds.into_iter().enumerate().flat_map(matching).collect()
    }

    fn candidate(&self, devices: &[&DeviceInfo]) -> Candidate {
        let ids: Vec<DeviceId> = devices.iter().map(|d| d.id.clone()).collect();
        let unsupported = self.unsupported(devices);
        // What cannot run here needs nothing; asking for its size could be meaningless.
        let benchmark = self.benchmark.filter(|_| unsupported.is_none());
        let footprint =
            |b: &dyn Benchmark| devices.iter().map(|d| b.footprint(d, self.params).get()).fold(0.0, f64::max);
        let case = Case {
            id: CaseId::new(&self.run.benchmark, self.params, &ids),
            benchmark: self.run.benchmark.clone(),
            params: self.params.clone(),
            devices: ids,
            slot: String::new(),
            exclusive: self.exclusive(devices),
            gate: self.suite.demands.iter().any(|d| self.decides(d, devices)),
            value: self.run.value,
            block: self.run.block,
            precision: self.run.precision,
            footprint: Bytes(benchmark.map_or(0.0, footprint)),
            blocks_per_round: if self.benchmark.is_some_and(|b| b.has_aggressor()) { WITH_AGGRESSOR } else { 1 },
            estimate: CaseEstimate::default(),
            state: self.run.state,
        };
        let estimate = benchmark.map_or_else(CaseEstimate::default, |b| self.estimate(b, &case, devices));
        Candidate { case: Case { estimate, ..case }, unsupported, order: 0 }
    }

    fn unsupported(&self, devices: &[&DeviceInfo]) -> Option<String> {
        let Some(benchmark) = self.benchmark else {
            return Some(format!("this build has no benchmark {}", self.run.benchmark));
        };
        let refusal = |d: &&DeviceInfo| benchmark.supports(d, self.params).err();
        let reason = devices.iter().find_map(refusal).or_else(|| {
            let disk = self.exclusive(devices).contains(&Exclusive::Disk) && self.inventory.storage.is_none();
            disk.then(|| "no folder for test files was found or named".to_owned())
        });
        let too_large = || {
            let cap = self.run.size_cap?;
            let largest = devices.iter().map(|d| benchmark.footprint(d, self.params).get()).fold(0.0, f64::max);
            (largest > cap.get()).then(|| format!("it needs {}, the suite allows {cap}", Bytes(largest)))
        };
        reason.or_else(too_large)
    }

    /// What the benchmark needs, and each device of the set.
    fn exclusive(&self, devices: &[&DeviceInfo]) -> Vec<Exclusive> {
        let mut all: Vec<Exclusive> = devices.iter().map(|d| Exclusive::Device(d.id.clone())).collect();
        if let Some(benchmark) = self.benchmark {
            all.extend(devices.iter().flat_map(|d| benchmark.exclusive(d, self.params)));
        }
        all.sort();
        all.dedup();
        all
    }

    fn estimate(&self, benchmark: &dyn Benchmark, case: &Case, devices: &[&DeviceInfo]) -> CaseEstimate {
        let longest = |cost: &dyn Fn(&DeviceInfo) -> Seconds| {
            Seconds(devices.iter().map(|d| cost(d).get().max(0.0)).fold(0.0, f64::max))
        };
        let blocks = f64::from(case.blocks_per_round);
        CaseEstimate {
            // The first check comes with preparing, and calibrating takes about a block.
            prepare: longest(&|d| benchmark.prepare_estimate(d, self.params)) + case.block,
            round: (case.block + EXCHANGE) * blocks + longest(&|d| benchmark.verify_estimate(d, self.params)),
        }
    }

    /// Whether a gate hangs on a case. Comparisons with peers or the same run never are gates, and a guarantee
    /// is one only where the offer gives it.
    fn decides(&self, demand: &Demand, devices: &[&DeviceInfo]) -> bool {
        let about = match &demand.subject {
            Subject::Benchmark(id) => *id == self.run.benchmark,
            Subject::Metric(id) => id.split_once('.').is_some_and(|(benchmark, _)| benchmark == self.run.benchmark),
        };
        let rule = match (demand.limit, &demand.subject) {
            (LimitRule::Correct | LimitRule::Complete | LimitRule::Band, _) => true,
            (LimitRule::Guarantee, Subject::Metric(id)) => {
                self.options.guaranteed.iter().any(|(metric, filter)| metric == id && self.meets(filter))
            }
            _ => false,
        };
        demand.gate && about && rule && self.meets(&demand.filter) && devices.iter().all(|d| admits(demand.on, d))
    }

    /// Whether the parameters agree with a condition; names that are no parameters are labels of series.
    fn meets(&self, filter: &BTreeMap<String, String>) -> bool {
        filter.iter().all(|(name, word)| self.params.0.get(name).is_none_or(|value| value.to_string() == *word))
    }
}

fn alone(name: &str, candidate: &Candidate) -> String {
    format!("{name} alone {}", candidate.case.devices[0])
}

/// The same case with and without the others beside it are two cases.
fn renamed(mut candidate: Candidate) -> Candidate {
    candidate.case.id.0.push_str("/alone");
    candidate
}

/// Sets are owned by one worker of one backend.
fn by_backend<'d>(devices: &[&'d DeviceInfo]) -> Vec<Vec<&'d DeviceInfo>> {
    let mut sets: BTreeMap<BackendId, Vec<&DeviceInfo>> = BTreeMap::new();
    for device in devices {
        sets.entry(device.id.backend).or_default().push(device);
    }
    sets.into_values().collect()
}
