//! Suite × Inventory → Plan: what will be done, in which order, within the promised time.
//!
//! - A run line becomes *groups*, one per combination of its parameters; a group has one case per device, pair
//!   or set. Time is saved by leaving out whole groups, so that identical devices stay comparable.
//! - Cases of one slot run together from one instant and never need the same thing exclusively.
//! - What the suite asks for is either planned or listed with the reason; nothing disappears.
//! - The host is measured when it is selected, and as a companion beside real devices for the lines a suite
//!   marks `machine`. Beside simulated devices only, it is not: real numbers say nothing about them.

mod budget;
mod expand;
mod memory;
mod pattern;
mod slots;

use std::collections::BTreeMap;

pub use pattern::matches;

use crate::benchmark::{self, Benchmark};
use crate::record::{Case, DeviceId, Inventory, NotPlanned, Plan};
use crate::suite::Suite;
use crate::unit::Seconds;

/// What the user asked for beside the suite. The devices are those of `Inventory::selected`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanOptions {
    /// Time allowed for the whole run; the suite's own budget if not given.
    pub budget: Option<Seconds>,
    /// Only cases whose id or benchmark matches one of these (`*` and `?`); empty: all.
    pub only: Vec<String>,
    /// No case whose id or benchmark matches one of these.
    pub skip: Vec<String>,
    /// Metrics with conditions that the offer guarantees: their cases become gates.
    pub guaranteed: Vec<(String, BTreeMap<String, String>)>,
}

/// Why there is no plan. All are found before anything is measured.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The cases that gates hang on do not fit the time allowed.
    #[error("the cases that decide need about {needed}, the budget is {budget}: allow more time or test less")]
    GatesDoNotFit {
        /// planned time of the gates alone
        needed: Seconds,
        /// time allowed
        budget: Seconds,
    },
    /// The time allowed is not a time.
    #[error("a budget of {0} s is not possible")]
    Budget(f64),
    /// A pattern of `--only` or `--skip` matches nothing.
    #[error("--{option} {pattern:?} matches no case of suite {suite}")]
    NoMatch {
        /// only or skip
        option: &'static str,
        /// as given
        pattern: String,
        /// name of the suite
        suite: String,
    },
    /// A selected device is not in the inventory.
    #[error("device {0} was selected but not found")]
    UnknownDevice(DeviceId),
    /// Nothing is left to run.
    #[error("suite {suite} has nothing to run here: {reason}")]
    Nothing {
        /// name of the suite
        suite: String,
        /// the most frequent reason
        reason: String,
    },
}

/// The plan of `suite` on the selected devices of `inventory`. Same input, same plan.
pub fn plan(suite: &Suite, inventory: &Inventory, options: &PlanOptions) -> Result<Plan, PlanError> {
    plan_with(benchmark::ALL, suite, inventory, options)
}

/// As [`plan`], with the benchmarks given.
pub fn plan_with(
    benchmarks: &[&dyn Benchmark],
    suite: &Suite,
    inventory: &Inventory,
    options: &PlanOptions,
) -> Result<Plan, PlanError> {
    let budget = options.budget.unwrap_or(suite.budget);
    if !(budget.get() > 0.0 && budget.get().is_finite()) {
        return Err(PlanError::Budget(budget.get()));
    }
    let mut draft = Draft { groups: expand::groups(benchmarks, suite, inventory, options)?, not_planned: Vec::new() };
    draft.leave_out_unselected(suite, options)?;
    draft.leave_out_unsupported();
    draft.leave_out_too_large(inventory);
    let (rounds, estimate) = budget::fit(&mut draft, suite, inventory, budget)?;
    let (cases, not_planned) = draft.finish();
    if cases.is_empty() {
        return Err(PlanError::Nothing { suite: suite.name.clone(), reason: most_frequent_reason(&not_planned) });
    }
    Ok(Plan { cases, not_planned, rounds, soak: suite.soak, budget, estimate })
}

/// Cases of one run line with one combination of parameters.
#[derive(Debug, Clone)]
struct Group {
    /// Planned cases, slot by slot.
    cases: Vec<Candidate>,
}

/// A case before it is decided whether it runs.
#[derive(Debug, Clone)]
struct Candidate {
    case: Case,
    /// Why it cannot run here, if it cannot.
    unsupported: Option<String>,
    /// Place in the suite, for the order of `not_planned`.
    order: usize,
}

impl Group {
    fn gate(&self) -> bool {
        self.cases.iter().any(|c| c.case.gate)
    }
    fn value(&self) -> u32 {
        self.cases.iter().map(|c| c.case.value).max().unwrap_or(0)
    }
}

/// A plan in the making.
struct Draft {
    groups: Vec<Group>,
    not_planned: Vec<(usize, NotPlanned)>,
}

impl Draft {
    /// Moves every case for which `reason` gives one to the list of those left out.
    fn leave_out(&mut self, unsupported: bool, mut reason: impl FnMut(&Candidate) -> Option<String>) {
        for group in &mut self.groups {
            group.cases.retain(|candidate| match reason(candidate) {
                Some(reason) => {
                    self.not_planned.push((candidate.order, not_planned(&candidate.case, unsupported, reason)));
                    false
                }
                None => true,
            });
        }
        self.groups.retain(|g| !g.cases.is_empty());
    }

    fn leave_out_unselected(&mut self, suite: &Suite, options: &PlanOptions) -> Result<(), PlanError> {
        for (option, patterns) in [("only", &options.only), ("skip", &options.skip)] {
            let all = || self.groups.iter().flat_map(|g| &g.cases);
            if let Some(pattern) = patterns.iter().find(|p| !all().any(|c| selects(p, &c.case))) {
                return Err(PlanError::NoMatch { option, pattern: pattern.clone(), suite: suite.name.clone() });
            }
        }
        self.leave_out(false, |c| {
            let skipped = options.skip.iter().find(|p| selects(p, &c.case));
            let kept = options.only.is_empty() || options.only.iter().any(|p| selects(p, &c.case));
            match skipped {
                Some(pattern) => Some(format!("left out by --skip {pattern}")),
                None if !kept => Some(format!("left out by --only {}", options.only.join(" "))),
                None => None,
            }
        });
        Ok(())
    }

    fn leave_out_unsupported(&mut self) {
        self.leave_out(true, |c| c.unsupported.clone());
    }

    fn leave_out_too_large(&mut self, inventory: &Inventory) {
        self.leave_out(false, |c| memory::too_large(c, inventory));
    }

    fn finish(self) -> (Vec<Case>, Vec<NotPlanned>) {
        let mut not_planned = self.not_planned;
        not_planned.sort_by_key(|(order, _)| *order);
        let cases = self.groups.into_iter().flat_map(|g| g.cases).map(|c| c.case).collect();
        (cases, not_planned.into_iter().map(|(_, n)| n).collect())
    }
}

fn selects(pattern: &str, case: &Case) -> bool {
    matches(pattern, &case.id.0) || matches(pattern, &case.benchmark)
}

fn not_planned(case: &Case, unsupported: bool, reason: String) -> NotPlanned {
    NotPlanned {
        id: case.id.clone(),
        benchmark: case.benchmark.clone(),
        params: case.params.clone(),
        devices: case.devices.clone(),
        unsupported,
        reason,
    }
}

fn most_frequent_reason(list: &[NotPlanned]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in list {
        *counts.entry(&one.reason).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or("no device of the kinds it runs on is selected".to_owned(), |(reason, _)| reason.to_owned())
}

#[cfg(test)]
mod tests;
