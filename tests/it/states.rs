//! Rounds, states, budget and interference: on the host where a real neighbour matters, on simulated devices where
//! minutes must pass.

use gpu_assay::backend;
use gpu_assay::event::Event;
use gpu_assay::measure::{self, Options};
use gpu_assay::record::{
    BackendId, Case, CaseErrorKind, CaseId, DeviceId, Exclusive, Notice, Outcome, Params, Record, RoundsPlan, RunEnd,
    Series, ThermalState, Value, Verified,
};
use gpu_assay::unit::{Bytes, Seconds};

use crate::measuring::{case, host, options, run};

fn series<'r>(record: &'r Record, case: usize, metric: &str) -> Vec<&'r Series> {
    match &record.results[case].outcome {
        Outcome::Measured(m) => {
            assert_eq!(m.verification.verified, Verified::Right);
            m.series.iter().filter(|s| s.metric.0 == metric).collect()
        }
        other => panic!("{}: {other:?}", record.results[case].id),
    }
}

fn word(params: Params, name: &str, value: &str) -> Params {
    params.with(name, Value::Word(value.to_owned()))
}

#[test]
fn interference_measures_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), 3, 120.0);
    let mut interference = case("triad");
    interference.benchmark = "interference".to_owned();
    interference.params = word(word(Params::default(), "victim", "memory"), "aggressor", "memory");
    interference.id = CaseId::new("interference", &interference.params, &[host()]);
    interference.blocks_per_round = 3;
    options.record.plan.cases = vec![interference];
    // Two processes commit arrays far beyond the last-level cache: seconds on a busy machine.
    options.children.deadlines.floor = Seconds(90.0);
    let record = run(options).unwrap();
    if let Outcome::Failed { error, .. } = &record.results[0].outcome {
        // On a machine that is busy with other tests the aggressor may really get too little to show anything.
        assert_eq!(error.kind, CaseErrorKind::Aggressor, "{}", error.message);
        return;
    }
    let slowdown = series(&record, 0, "interference.slowdown");
    assert_eq!((slowdown.len(), slowdown[0].blocks.len(), slowdown[0].primary), (1, 3, true));
    let victim = series(&record, 0, "interference.victim");
    let of_phase = |phase: &str| victim.iter().find(|s| s.labels["phase"] == phase).unwrap().blocks.len();
    assert_eq!((of_phase("alone"), of_phase("loaded")), (6, 3));
    let share = series(&record, 0, "interference.aggressor_share");
    assert!(share[0].blocks.iter().all(|b| b.value > 0.0), "{:?}", share[0]);
}

#[test]
fn a_budget_that_is_spent_is_said_and_gates_come_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), 100_000, 8.0);
    options.record.plan.cases[2].gate = false;
    let record = run(options).unwrap();
    assert_eq!(record.run.end, RunEnd::Complete);
    let blocks = |case| series(&record, case, "memory_bandwidth.rate")[0].blocks.len();
    assert!(blocks(0) >= 3 && blocks(1) >= 3, "gates have their rounds");
    let spent = record.notices.iter().any(|n| matches!(n, Notice::BudgetSpent { cases } if cases.len() == 3));
    assert!(spent, "{:?}", record.notices);
    // Only a hang would exceed this; what the promise is worth is measured elsewhere.
    assert!(record.ledger.total.get() < 40.0, "{:?}", record.ledger);
}

fn sim(index: u32) -> DeviceId {
    DeviceId::new(BackendId::Sim, index)
}

/// One memory case per simulated device, all in one slot.
fn simulated(folder: &std::path::Path, text: &str, change: impl Fn(&mut Case)) -> Options {
    let mut options = options(folder, 8, 3600.0);
    let backends = backend::all(Some(text)).unwrap();
    let probe = backends.iter().find(|b| b.id() == BackendId::Sim).unwrap().probe();
    let inventory = &mut options.record.inventory;
    inventory.selected = probe.devices.iter().map(|d| d.id.clone()).collect();
    inventory.devices = probe.devices;
    let cases = inventory.selected.iter().map(|id| {
        let mut case = case("triad");
        case.params = word(Params::default(), "op", "triad");
        case.devices = vec![id.clone()];
        case.id = CaseId::new(&case.benchmark, &case.params, &case.devices);
        case.slot = "triad".to_owned();
        case.exclusive = vec![Exclusive::Device(id.clone())];
        case.footprint = Bytes::gib(12);
        change(&mut case);
        case
    });
    options.record.plan.cases = cases.collect();
    options.record.plan.soak = Seconds(12.0);
    options.simulate = Some(text.to_owned());
    options
}

#[test]
fn simulated_devices_start_together_in_simulated_time() {
    let folder = tempfile::tempdir().unwrap();
    let record = run(simulated(folder.path(), "2xh100-sxm5-80gb", |_| {})).unwrap();
    assert!(record.run.simulated);
    let starts = |case| -> Vec<f64> {
        series(&record, case, "memory_bandwidth.rate")[0].blocks.iter().map(|b| b.start.get()).collect()
    };
    let (first, second) = (starts(0), starts(1));
    assert_eq!(first.len(), 8);
    assert!(first[0] >= 12.0, "after the soak: {first:?}");
    let apart = first.iter().zip(&second).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 0.02, "one start instant: {first:?} {second:?}");
    let l = record.ledger;
    let sum = l.prepare + l.warm + l.sample + l.verify + l.write + l.idle;
    assert!((sum - l.total).get().abs() < 1e-6 && l.warm.get() >= 11.0, "{l:?}");
    assert!(l.idle.get() <= 0.05 * l.total.get(), "{l:?}");
}

#[test]
fn burst_and_sustained_are_states_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let record = run(simulated(folder.path(), "h100-sxm5-80gb", |case| case.state = ThermalState::Burst)).unwrap();
    let burst = series(&record, 0, "memory_bandwidth.rate");
    assert_eq!((burst[0].state, burst[0].blocks.len()), (ThermalState::Burst, 3));
    let gaps = burst[0].blocks.windows(2).map(|w| (w[1].start - w[0].start).get());
    assert!(gaps.fold(f64::INFINITY, f64::min) >= 6.0, "five seconds idle and one of load");

    let folder = tempfile::tempdir().unwrap();
    let mut options = simulated(folder.path(), "h100-sxm5-80gb", |case| {
        case.state = ThermalState::Sustained;
        case.block = Seconds(20.0);
    });
    options.record.plan.rounds = RoundsPlan { min: 3, max: 4 };
    let record = run(options).unwrap();
    let all = series(&record, 0, "memory_bandwidth.rate");
    let sustained = all.iter().find(|s| s.state == ThermalState::Sustained).expect("ten minutes are over");
    assert!(sustained.blocks.len() >= 3 && sustained.blocks[0].start.get() >= 400.0, "{:?}", sustained.blocks);
}

#[test]
fn prepared_cases_make_room_for_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = simulated(folder.path(), "h100-sxm5-80gb", |_| {});
    // Two cases of 40 GB do not fit into the share of an 80 GB device that may be held.
    let mut other = options.record.plan.cases[0].clone();
    other.params = word(Params::default(), "op", "copy");
    other.id = CaseId::new(&other.benchmark, &other.params, &other.devices);
    other.slot = "copy".to_owned();
    options.record.plan.cases.push(other);
    options.record.plan.cases.iter_mut().for_each(|c| c.footprint = Bytes(40e9));
    options.record.plan.rounds = RoundsPlan { min: 3, max: 3 };
    let mut prepared = 0;
    let record =
        measure::run(options, &mut |e: &Event| prepared += usize::from(matches!(e, Event::Prepared { .. }))).unwrap();
    for case in 0..2 {
        assert_eq!(series(&record, case, "memory_bandwidth.rate")[0].blocks.len(), 3);
    }
    assert!(prepared > 2, "each round prepares again: {prepared}");
}

#[test]
fn a_lost_device_costs_only_its_own_cases() {
    let folder = tempfile::tempdir().unwrap();
    let record = run(simulated(folder.path(), "2xh100-sxm5-80gb:lost@1=13s", |_| {})).unwrap();
    assert_eq!(series(&record, 0, "memory_bandwidth.rate")[0].blocks.len(), 8);
    let Outcome::Failed { error, .. } = &record.results[1].outcome else { panic!("{:?}", record.results[1]) };
    assert_eq!(error.kind, CaseErrorKind::DeviceLost);
    assert_eq!(record.results[1].id.0, format!("memory_bandwidth[op=triad]@{}", sim(1)));
}
