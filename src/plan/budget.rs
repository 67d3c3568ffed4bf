//! The time budget is a promise: what a plan costs, and what is left out so that it fits.

use std::collections::BTreeMap;

use super::{Draft, Group, PlanError, memory};
use crate::record::{BackendId, Case, DeviceId, DeviceKind, Inventory, RoundsPlan, ThermalState};
use crate::suite::Suite;
use crate::unit::Seconds;

/// Starting ourselves, looking at the machine, opening the first device.
const START: f64 = 2.0;
/// Opening each further GPU: creating its context takes about this long.
const START_GPU: f64 = 1.6;
/// Last checks, record, judgement and report.
const CONCLUDE: f64 = 1.5;
/// Rounds go on this long where a case asks for the sustained state: ten minutes and a little.
pub const SUSTAINED: f64 = 630.0;

/// Seats the gates, then the graded groups from the most to the least valuable while `budget` has room for
/// them, and leaves out the rest; gives the rounds and the planned time.
pub fn fit(
    draft: &mut Draft,
    suite: &Suite,
    inventory: &Inventory,
    budget: Seconds,
) -> Result<(RoundsPlan, Seconds), PlanError> {
    let cost = |groups: &[&Group]| Cost::of(groups, suite, inventory);
    let groups = std::mem::take(&mut draft.groups);
    let gates: Vec<&Group> = groups.iter().filter(|g| g.gate()).collect();
    let needed = cost(&gates).total();
    if !gates.is_empty() && needed > budget {
        return Err(PlanError::GatesDoNotFit { needed, budget });
    }
    let mut worth: Vec<usize> = (0..groups.len()).filter(|i| !groups[*i].gate()).collect();
    worth.sort_by_key(|i| (std::cmp::Reverse(groups[*i].value()), *i));
    let mut keep: Vec<bool> = groups.iter().map(Group::gate).collect();
    for i in worth {
        keep[i] = true;
        let kept: Vec<&Group> = groups.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(g, _)| g).collect();
        keep[i] = cost(&kept).total() <= budget;
    }
    let left_out: Vec<bool> = keep.iter().map(|keep| !keep).collect();
    let orders: BTreeMap<usize, bool> =
        groups.iter().zip(&left_out).flat_map(|(g, out)| g.cases.iter().map(move |c| (c.order, *out))).collect();
    draft.groups = groups;
    let reason = format!("time: the budget of {budget} does not hold it");
    draft.leave_out(false, |c| orders[&c.order].then(|| reason.clone()));
    let kept: Vec<&Group> = draft.groups.iter().collect();
    let cost = cost(&kept);
    Ok((suite.rounds, cost.total()))
}

/// Planned time of a set of groups.
struct Cost {
    once: f64,
    rounds: f64,
}

impl Cost {
    fn of(groups: &[&Group], suite: &Suite, inventory: &Inventory) -> Cost {
        let cases: Vec<&Case> = groups.iter().flat_map(|g| &g.cases).map(|c| &c.case).collect();
        let round = slots(&cases) + prepare(&memory::evicted(&cases, inventory), inventory);
        let sustained = cases.iter().any(|c| c.state == ThermalState::Sustained);
        let least = if sustained { SUSTAINED } else { 0.0 };
        let once = start(&cases, inventory) + prepare(&cases, inventory) + suite.soak.get() + CONCLUDE;
        Cost { once, rounds: least.max(f64::from(suite.rounds.min) * round) }
    }

    fn total(&self) -> Seconds {
        Seconds(self.once + self.rounds)
    }
}

/// Slots follow one another; the cases of one slot run together.
fn slots(cases: &[&Case]) -> f64 {
    let mut slots: BTreeMap<&str, f64> = BTreeMap::new();
    for case in cases {
        let longest = slots.entry(&case.slot).or_default();
        *longest = longest.max(case.estimate.round.get());
    }
    slots.values().sum()
}

fn start(cases: &[&Case], inventory: &Inventory) -> f64 {
    let mut devices: Vec<&DeviceId> = cases.iter().flat_map(|c| &c.devices).collect();
    devices.sort();
    devices.dedup();
    let gpus = devices.iter().filter(|id| inventory.device(id).is_some_and(|d| d.kind == DeviceKind::Gpu)).count();
    START + START_GPU * gpus as f64
}

/// Workers prepare side by side, each its cases in turn; those that compute on the CPU share it.
fn prepare(cases: &[&Case], inventory: &Inventory) -> f64 {
    let (mut cpu, mut gpus) = (0.0, BTreeMap::<&[DeviceId], f64>::new());
    let on_cpu = |id: &DeviceId| {
        id.backend == BackendId::Host || inventory.device(id).is_some_and(|d| d.kind == DeviceKind::Cpu)
    };
    for case in cases {
        match case.devices.iter().any(on_cpu) {
            true => cpu += case.estimate.prepare.get(),
            false => *gpus.entry(&case.devices).or_default() += case.estimate.prepare.get(),
        }
    }
    cpu + gpus.values().copied().fold(0.0, f64::max)
}
