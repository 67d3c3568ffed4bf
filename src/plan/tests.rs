//! Plans of the built-in suites on machines of every shape, with stand-ins for the benchmarks.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::backend::DeviceError;
use crate::benchmark::{Context, Meta, Workload};
use crate::record::{
    BackendId, DeviceInfo, DeviceKind, Exclusive, Host, Params, RoundsPlan, Source, StorageTarget, Targeting,
    ThermalState, Value, WorkScale,
};
use crate::suite::{Demand, DeviceFilter, LimitRule, Run, Subject};
use crate::unit::Bytes;

/// A benchmark that declares needs and runs nothing.
struct Fake {
    meta: &'static Meta,
    shared: Option<Exclusive>,
    gpu_only: bool,
    footprint: f64,
}

impl Benchmark for Fake {
    fn meta(&self) -> &'static Meta {
        self.meta
    }
    fn supports(&self, device: &DeviceInfo, _params: &Params) -> Result<(), String> {
        let fits = !self.gpu_only || device.kind == DeviceKind::Gpu;
        fits.then_some(()).ok_or_else(|| "only on GPUs".to_owned())
    }
    fn footprint(&self, _device: &DeviceInfo, params: &Params) -> Bytes {
        Bytes(params.int("size").map_or(self.footprint, |size| size as f64))
    }
    fn exclusive(&self, _device: &DeviceInfo, _params: &Params) -> Vec<Exclusive> {
        self.shared.clone().into_iter().collect()
    }
    fn prepare<'d>(&self, _context: &Context<'d>, _params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        Err(DeviceError::Unsupported("never run".to_owned()))
    }
}

macro_rules! fake {
    ($id:literal, $shared:expr, $gpu_only:expr, $footprint:expr) => {
        Fake {
            meta: &Meta {
                id: $id,
                title: "",
                measures: "",
                why: "",
                method: "",
                limits: "",
                version: 1,
                params: &[],
                metrics: &[],
            },
            shared: $shared,
            gpu_only: $gpu_only,
            footprint: $footprint,
        }
    };
}

fn fakes() -> Vec<Fake> {
    vec![
        fake!("gemm", None, false, 4e8),
        fake!("fma_peak", None, false, 1e6),
        fake!("memory_bandwidth", None, false, 1e9),
        fake!("memory_latency", None, false, 2.6e8),
        fake!("host_link", Some(Exclusive::HostMemory), true, 1e9),
        fake!("launch_latency", None, true, 0.0),
        fake!("storage_sequential", Some(Exclusive::Disk), false, 0.0),
        fake!("storage_random", Some(Exclusive::Disk), false, 0.0),
        fake!("interference", None, false, 2.5e8),
    ]
}

fn device(backend: BackendId, index: u32, kind: DeviceKind, memory: f64) -> DeviceInfo {
    DeviceInfo {
        id: DeviceId::new(backend, index),
        kind,
        name: "device".to_owned(),
        vendor: String::new(),
        uuid: None,
        pci: None,
        memory: Bytes(memory),
        last_level_cache: None,
        units: None,
        clock_max: None,
        driver: None,
        api: None,
        gemm_types: Vec::new(),
        fma_types: Vec::new(),
        spec: None,
        numa_node: None,
        attributes: BTreeMap::new(),
        scale: WorkScale::ONE,
        simulated: backend == BackendId::Sim,
    }
}

fn machine(backend: BackendId, gpus: u32, select: &[&str]) -> Inventory {
    let mut devices: Vec<DeviceInfo> = (0..gpus).map(|i| device(backend, i, DeviceKind::Gpu, 80e9)).collect();
    devices.push(device(BackendId::Opencl, 90, DeviceKind::Cpu, 24e9));
    devices.push(device(BackendId::Host, 0, DeviceKind::Cpu, 24e9));
    let selected = match select {
        [] => (0..gpus).map(|i| DeviceId::new(backend, i)).collect(),
        some => some.iter().map(|id| id.parse().unwrap()).collect(),
    };
    let storage =
        StorageTarget { path: "/data".to_owned(), filesystem: "ext4".to_owned(), device: None, free: Bytes(1e12) };
    Inventory { host: Host::default(), devices, selected, storage: Some(storage), ..Inventory::default() }
}

fn words() -> crate::record::Vocabulary {
    use crate::record::{Better, MetricId, VocabularyEntry};
    use crate::unit::Unit;
    let params = ["type", "n", "op", "size", "direction", "memory", "block", "depth", "victim", "aggressor"];
    let wordy = ["type", "op", "direction", "memory", "victim", "aggressor"];
    let words = "fp64 fp32 fp16 int8 read write copy scale add triad h2d d2h both pinned pageable compute memory cache \
                 transfer";
    let list = |p: &&str| -> Vec<String> {
        if wordy.contains(p) { words.split(' ').map(str::to_owned).collect() } else { Vec::new() }
    };
    let metric = |id: String| (MetricId(id), Unit::Count, Better::Higher);
    let entry = |f: &Fake| VocabularyEntry {
        id: f.meta.id.to_owned(),
        params: params.iter().map(|p| ((*p).to_owned(), list(p))).collect(),
        metrics: ["throughput", "rate", "time", "latency"].map(|m| metric(format!("{}.{m}", f.meta.id))).to_vec(),
    };
    crate::record::Vocabulary { benchmarks: fakes().iter().map(entry).collect(), figures: Vec::new() }
}

fn suite(name: &str) -> Suite {
    crate::suite::parse(name, crate::suite::builtin(name).unwrap(), &words()).unwrap()
}

fn planned(suite: &Suite, inventory: &Inventory, options: &PlanOptions) -> Result<Plan, PlanError> {
    let fakes = fakes();
    let all: Vec<&dyn Benchmark> = fakes.iter().map(|f| f as &dyn Benchmark).collect();
    plan_with(&all, suite, inventory, options)
}

fn one_run(targeting: Targeting) -> Suite {
    let run = Run {
        benchmark: "gemm".to_owned(),
        params: BTreeMap::new(),
        on: DeviceFilter::Any,
        targeting,
        block: Seconds(0.1),
        precision: 0.01,
        value: 1,
        state: ThermalState::Warm,
        size_cap: None,
    };
    Suite {
        name: "one".to_owned(),
        version: 1,
        title: String::new(),
        budget: Seconds(1000.0),
        rounds: RoundsPlan { min: 8, max: 8 },
        soak: Seconds(0.0),
        needs_gpu: false,
        runs: vec![run],
        demands: Vec::new(),
        source: Source { name: String::new(), sha256: String::new(), text: String::new() },
    }
}

/// Slot → devices of its cases.
fn slots_of(plan: &Plan) -> BTreeMap<&str, Vec<String>> {
    let mut slots: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for case in &plan.cases {
        let devices: Vec<String> = case.devices.iter().map(ToString::to_string).collect();
        slots.entry(&case.slot).or_default().push(devices.join("+"));
    }
    slots
}

#[test]
fn targeting_decides_who_runs_with_whom() {
    let inventory = machine(BackendId::Cuda, 4, &[]);
    let options = PlanOptions::default();
    let together = planned(&one_run(Targeting::Together), &inventory, &options).unwrap();
    assert_eq!(slots_of(&together).values().map(Vec::len).collect::<Vec<_>>(), [4]);
    let alone = planned(&one_run(Targeting::Alone), &inventory, &options).unwrap();
    assert_eq!(slots_of(&alone).values().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 1]);
    assert_eq!(alone.cases[0].id.0, "gemm[]@cuda:0/alone");
    let pairs = planned(&one_run(Targeting::Pairs), &inventory, &options).unwrap();
    assert_eq!(slots_of(&pairs).values().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
    let all = planned(&one_run(Targeting::All), &inventory, &options).unwrap();
    assert_eq!(slots_of(&all).values().flatten().collect::<Vec<_>>(), ["cuda:0+cuda:1+cuda:2+cuda:3"]);
}

#[test]
fn what_the_host_shares_is_not_used_twice_at_once() {
    let inventory = machine(BackendId::Cuda, 3, &[]);
    let plan = planned(&suite("quick"), &inventory, &PlanOptions::default()).unwrap();
    let links: BTreeSet<&str> = plan
        .cases
        .iter()
        .filter(|c| c.id.0.starts_with("host_link[direction=h2d,memory=pinned"))
        .map(|c| &*c.slot)
        .collect();
    assert_eq!(links.len(), 3, "{links:?}");
}

#[test]
fn the_host_is_a_companion_beside_real_devices_only() {
    let storage = |inventory: &Inventory| {
        let plan = planned(&suite("quick"), inventory, &PlanOptions::default()).unwrap();
        plan.cases.iter().filter(|c| c.benchmark.starts_with("storage")).count()
    };
    assert_eq!(storage(&machine(BackendId::Cuda, 1, &[])), 5);
    assert_eq!(storage(&machine(BackendId::Sim, 1, &[])), 0);
    assert_eq!(storage(&machine(BackendId::Cuda, 0, &["host:0"])), 5);
    assert_eq!(storage(&machine(BackendId::Cuda, 0, &["opencl:90"])), 5);
}

#[test]
fn the_built_in_suites_fit_their_budgets_whole_on_small_machines() {
    for (name, select) in [("quick", &["host:0"][..]), ("standard", &["host:0"]), ("quick", &["opencl:90"])] {
        let plan = planned(&suite(name), &machine(BackendId::Cuda, 0, select), &PlanOptions::default()).unwrap();
        let left_out: Vec<_> = plan.not_planned.iter().filter(|n| !n.unsupported).collect();
        assert!(left_out.is_empty(), "{name} {select:?}: {} {left_out:?}", plan.estimate);
    }
    for (name, gpus) in [("quick", 8), ("standard", 8)] {
        let plan = planned(&suite(name), &machine(BackendId::Cuda, gpus, &[]), &PlanOptions::default()).unwrap();
        assert!(plan.cases.iter().any(|c| c.benchmark == "interference"), "{name}: {:?}", plan.not_planned);
    }
}

#[test]
fn the_sustained_state_gets_its_ten_minutes() {
    let inventory = machine(BackendId::Cuda, 1, &[]);
    let plan = planned(&suite("standard"), &inventory, &PlanOptions::default()).unwrap();
    assert!(plan.estimate.get() >= budget::SUSTAINED && plan.estimate <= plan.budget);
    let short = PlanOptions { budget: Some(Seconds(300.0)), ..PlanOptions::default() };
    assert!(matches!(planned(&suite("standard"), &inventory, &short), Err(PlanError::GatesDoNotFit { .. })));
}

#[test]
fn a_gate_that_does_not_fit_the_time_is_an_error() {
    let options = PlanOptions { budget: Some(Seconds(20.0)), ..PlanOptions::default() };
    let error = planned(&suite("quick"), &machine(BackendId::Cuda, 1, &["host:0"]), &options).unwrap_err();
    assert!(matches!(error, PlanError::GatesDoNotFit { needed, budget } if needed > budget));
    for budget in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options = PlanOptions { budget: Some(Seconds(budget)), ..PlanOptions::default() };
        let error = planned(&suite("quick"), &machine(BackendId::Cuda, 1, &[]), &options).unwrap_err();
        assert!(matches!(error, PlanError::Budget(_)));
    }
}

#[test]
fn a_guarantee_makes_its_case_a_gate() {
    let inventory = machine(BackendId::Cuda, 1, &[]);
    let gate = |options: &PlanOptions, size: &str| {
        let plan = planned(&suite("quick"), &inventory, options).unwrap();
        plan.cases.iter().find(|c| c.id.0.contains(&format!("memory_latency[size={size}]@cuda"))).unwrap().gate
    };
    assert!(!gate(&PlanOptions::default(), "268435456"));
    let filter = BTreeMap::from([("size".to_owned(), "256 MiB".to_owned())]);
    let options =
        PlanOptions { guaranteed: vec![("memory_latency.time".to_owned(), filter)], ..PlanOptions::default() };
    assert!(gate(&options, "268435456"));
    assert!(!gate(&options, "65536"));
}

#[test]
fn patterns_select_and_a_pattern_for_nothing_is_an_error() {
    let inventory = machine(BackendId::Cuda, 2, &[]);
    let only = |only: &[&str], skip: &[&str]| {
        let list = |l: &[&str]| l.iter().map(|p| (*p).to_owned()).collect();
        planned(
            &suite("quick"),
            &inventory,
            &PlanOptions { only: list(only), skip: list(skip), ..PlanOptions::default() },
        )
    };
    let plan = only(&["gemm"], &["*cuda:1"]).unwrap();
    assert_eq!(plan.cases.len(), 4);
    assert!(plan.not_planned.iter().any(|n| n.reason == "left out by --skip *cuda:1"));
    assert!(matches!(only(&["gem"], &[]), Err(PlanError::NoMatch { option: "only", .. })));
    assert!(matches!(only(&[], &["x*"]), Err(PlanError::NoMatch { option: "skip", .. })));
    assert!(matches!(only(&[], &["*"]), Err(PlanError::Nothing { .. })));
}

#[test]
fn a_case_that_memory_cannot_hold_alone_is_left_out_with_the_numbers() {
    let mut inventory = machine(BackendId::Cuda, 1, &[]);
    inventory.devices[0].memory = Bytes(1e9);
    let plan = planned(&suite("quick"), &inventory, &PlanOptions::default()).unwrap();
    let refused: Vec<_> = plan.not_planned.iter().filter(|n| n.reason.starts_with("memory")).collect();
    assert!(refused.iter().all(|n| n.devices == ["cuda:0".parse().unwrap()]));
    assert!(refused.iter().any(|n| n.reason == "memory: it needs 1.00 GB, cuda:0 has 763 MiB for it"), "{refused:?}");
    assert!(plan.cases.iter().any(|c| c.benchmark == "gemm"));
}

#[test]
fn what_cannot_stay_in_memory_costs_its_preparation_in_every_round() {
    let mut inventory = machine(BackendId::Cuda, 1, &[]);
    let options = PlanOptions { budget: Some(Seconds(1e6)), ..PlanOptions::default() };
    let ample = planned(&suite("quick"), &inventory, &options).unwrap();
    inventory.devices[0].memory = Bytes(4e9);
    let tight = planned(&suite("quick"), &inventory, &options).unwrap();
    assert_eq!(ample.cases.len(), tight.cases.len());
    let more = tight.estimate.get() - ample.estimate.get();
    let on_gpu = ample.cases.iter().filter(|c| c.id.0.ends_with("@cuda:0"));
    let all_again = 8.0 * on_gpu.map(|c| c.estimate.prepare.get()).sum::<f64>();
    assert!(more > 0.0 && more < all_again, "{more} of {all_again}");
}

#[test]
fn nothing_to_run_and_devices_that_vanished_are_errors() {
    let inventory = machine(BackendId::Cuda, 0, &[]);
    assert!(matches!(planned(&suite("quick"), &inventory, &PlanOptions::default()), Err(PlanError::Nothing { .. })));
    let inventory = machine(BackendId::Cuda, 1, &["cuda:7"]);
    let error = planned(&suite("quick"), &inventory, &PlanOptions::default()).unwrap_err();
    assert_eq!(error, PlanError::UnknownDevice("cuda:7".parse().unwrap()));
}

#[test]
fn without_a_storage_folder_storage_is_listed_with_the_reason() {
    let mut inventory = machine(BackendId::Cuda, 1, &["host:0"]);
    inventory.storage = None;
    let plan = planned(&suite("quick"), &inventory, &PlanOptions::default()).unwrap();
    let storage: Vec<_> = plan.not_planned.iter().filter(|n| n.benchmark.starts_with("storage")).collect();
    assert_eq!(storage.len(), 5);
    assert!(storage.iter().all(|n| n.reason.contains("folder")));
}

#[test]
fn correctness_is_decided_by_its_conditions_too() {
    let mut suite = one_run(Targeting::Together);
    suite.runs[0].params = BTreeMap::from([("type".to_owned(), vec![word("fp32"), word("fp64")])]);
    suite.demands = vec![Demand {
        id: "d".to_owned(),
        subject: Subject::Benchmark("gemm".to_owned()),
        filter: BTreeMap::from([("type".to_owned(), "fp32".to_owned())]),
        on: DeviceFilter::Gpu,
        limit: LimitRule::Correct,
        gate: true,
        cap: 0.01,
        why: String::new(),
        line: 1,
    }];
    let plan = planned(&suite, &machine(BackendId::Cuda, 1, &["cuda:0", "host:0"]), &PlanOptions::default()).unwrap();
    let gates: Vec<&str> = plan.cases.iter().filter(|c| c.gate).map(|c| c.id.0.as_str()).collect();
    assert_eq!(gates, ["gemm[type=fp32]@cuda:0"]);
}

fn word(text: &str) -> Value {
    Value::Word(text.to_owned())
}

fn gates(plan: &Plan) -> BTreeSet<&str> {
    plan.cases.iter().filter(|c| c.gate).map(|c| c.id.0.as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn plans_keep_their_promises(
        gpus in 0u32..17,
        with_host in any::<bool>(),
        budget in 30.0..2000.0f64,
        name in prop::sample::select(vec!["quick", "standard"]),
        targeting in prop::sample::select(vec![Targeting::Together, Targeting::Alone, Targeting::Pairs, Targeting::All]),
    ) {
        let mut inventory = machine(BackendId::Cuda, gpus, &[]);
        if with_host {
            inventory.selected.push(DeviceId::new(BackendId::Host, 0));
        }
        let mut suite = suite(name);
        suite.runs.iter_mut().filter(|r| r.benchmark == "host_link").for_each(|r| r.targeting = targeting);
        let ample = planned(&suite, &inventory, &PlanOptions { budget: Some(Seconds(1e9)), ..PlanOptions::default() });
        let options = PlanOptions { budget: Some(Seconds(budget)), ..PlanOptions::default() };
        let plan = match planned(&suite, &inventory, &options) {
            Ok(plan) => plan,
            Err(PlanError::GatesDoNotFit { needed, budget }) => {
                prop_assert!(needed > budget);
                return Ok(());
            }
            Err(error) => {
                prop_assert!(gpus == 0 && !with_host, "{error}");
                return Ok(());
            }
        };
        let ample = ample.unwrap();
        // The promise of time, and the gates whatever the time.
        prop_assert!(plan.estimate <= plan.budget);
        prop_assert_eq!(gates(&plan), gates(&ample));
        // Everything is planned or listed, once.
        let all = |p: &Plan| {
            let listed = p.not_planned.iter().map(|n| n.id.clone());
            let ids: Vec<_> = p.cases.iter().map(|c| c.id.clone()).chain(listed).collect();
            let set: BTreeSet<_> = ids.iter().cloned().collect();
            (ids.len(), set)
        };
        prop_assert_eq!(all(&plan).0, all(&plan).1.len());
        prop_assert_eq!(all(&plan).1, all(&ample).1);
        // No conflict within a slot, and slots are contiguous.
        let mut slots: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
        plan.cases.iter().for_each(|c| slots.entry(&c.slot).or_default().push(c));
        for cases in slots.values() {
            let needs: Vec<_> = cases.iter().flat_map(|c| &c.exclusive).collect();
            prop_assert_eq!(needs.len(), needs.iter().collect::<BTreeSet<_>>().len());
        }
        let mut order: Vec<&str> = plan.cases.iter().map(|c| c.slot.as_str()).collect();
        order.dedup();
        prop_assert_eq!(order.len(), slots.len());
        // The same again.
        prop_assert_eq!(&planned(&suite, &inventory, &options).unwrap(), &plan);
    }
}
