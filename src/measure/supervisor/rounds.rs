//! Rounds: every open case once per round, order rotated, until each has its planned precision, or rounds or
//! time are used up. No limit is consulted, so that when measuring stops never depends on the result.

use crate::event::{Event, Phase};
use crate::measure::MeasureError;
use crate::measure::clock::{between, nanoseconds};
use crate::measure::journal::Entry;
use crate::measure::ledger::Account;
use crate::measure::protocol::When;
use crate::measure::supervisor::blocks::Manner;
use crate::measure::supervisor::phases::SUSTAINED;
use crate::measure::supervisor::schedule::{has_aggressor, rotated, uses_disk};
use crate::measure::supervisor::{CONCLUDE, Supervisor};
use crate::record::ThermalState;
use crate::stats;
use crate::unit::Seconds;

/// Gates below their minimum of rounds may use the budget and this much of it more.
const GATE_OVERDRAFT: f64 = 0.04;

impl Supervisor<'_> {
    /// All rounds.
    pub(super) fn rounds(&mut self) -> Result<(), MeasureError> {
        self.phase(Phase::Rounds, None);
        let groups = self.groups.clone();
        let mut round = self.first_round();
        while !self.stopping() {
            let open = (0..self.cases.len()).filter(|&c| self.needs_round(c)).count();
            if open == 0 {
                break;
            }
            let min = self.progress.begin.record.plan.rounds.min;
            self.observer.on(&Event::Round { round, min, open });
            let mut visited = false;
            for index in rotated(groups.len(), round) {
                if self.stopping() {
                    break;
                }
                visited |= self.visit(index, round)?;
            }
            self.close_precise()?;
            self.note(Entry::Round { round, ledger: self.stopwatch.ledger() })?;
            self.charge(Account::Write);
            if !visited {
                break; // nothing that is open fits the time that is left
            }
            round += 1;
        }
        Ok(())
    }

    /// The first round that some open case lacks.
    fn first_round(&self) -> u32 {
        let lacking = |c: usize| (0..).find(|r| !self.state(c).rounds.contains(r)).unwrap_or(0);
        (0..self.cases.len()).filter(|&c| self.needs_round(c)).map(lacking).min().unwrap_or(0)
    }

    /// Open, not a burst case, and below the most rounds (or waiting for sustained state).
    fn needs_round(&self, case: usize) -> bool {
        let below = (self.state(case).rounds.len() as u32) < self.progress.begin.record.plan.rounds.max;
        self.is_open(case) && !self.is_burst(case) && (below || self.awaits_sustained(case))
    }

    fn awaits_sustained(&self, case: usize) -> bool {
        let loaded = between(self.loaded_since, self.clock.now());
        self.cases[case].state == ThermalState::Sustained && loaded.get() < 1.05 * SUSTAINED.get()
    }

    /// One block and check of each case of a group that still needs it. `false` if there was nothing to do.
    fn visit(&mut self, index: usize, round: u32) -> Result<bool, MeasureError> {
        let groups = self.groups.clone();
        let wanted: Vec<usize> = groups[index]
            .iter()
            .copied()
            .filter(|&c| self.needs_round(c) && !self.state(c).rounds.contains(&round))
            .collect();
        let group = self.affordable(index, wanted);
        if group.is_empty() {
            return Ok(false);
        }
        self.prepare(&group, true)?;
        let ready: Vec<usize> = group.iter().copied().filter(|&c| self.is_open(c) && self.memory.holds(c)).collect();
        if ready.is_empty() {
            return Ok(true); // their outcome is settled: that was something
        }
        let begun = self.clock.now();
        let disk = ready.iter().any(|&c| uses_disk(&self.cases[c]));
        if disk {
            self.journal.hold();
        }
        if ready.iter().any(|&c| has_aggressor(&self.cases[c])) {
            self.interfere(&ready, round)?;
        } else {
            let blocks = self.take(&ready, Manner::ROUND)?;
            self.keep(&ready, round, ThermalState::Warm, blocks)?;
        }
        self.verify(&ready, When::Round(round))?;
        if disk {
            self.journal.release()?;
        }
        self.charge(Account::Write);
        self.costs.insert(index, between(begun, self.clock.now()));
        Ok(true)
    }

    /// Closes every case that has its rounds and its precision.
    fn close_precise(&mut self) -> Result<(), MeasureError> {
        let min = self.progress.begin.record.plan.rounds.min as usize;
        for case in 0..self.cases.len() {
            if !self.is_open(case) || self.is_burst(case) || self.awaits_sustained(case) {
                continue;
            }
            let values = self.state(case).values();
            if values.len() >= min && is_precise(&values, self.cases[case].precision) {
                self.note(Entry::Closed { case: self.cases[case].id.clone() })?;
            }
        }
        Ok(())
    }

    /// The cases of a group whose next block fits the budget: graded cases only as long as the rounds that gates
    /// still need, and the last checks, fit too.
    fn affordable(&mut self, index: usize, wanted: Vec<usize>) -> Vec<usize> {
        let cost = self.cost(index);
        let for_gates = self.owed_to_gates(Some(index));
        let gate_owed = |s: &Self, c: usize| s.cases[c].gate && s.owes_rounds(c);
        let keep: Vec<usize> = wanted
            .iter()
            .copied()
            .filter(|&c| match gate_owed(self, c) {
                true => self.fits_with(cost, GATE_OVERDRAFT * self.budget().get()),
                false => self.fits(cost + for_gates),
            })
            .collect();
        self.out_of_time |= keep.len() < wanted.len();
        keep
    }

    /// As [`Supervisor::affordable`], before the first round.
    pub(super) fn affordable_to_prepare(&mut self, index: usize) -> Vec<usize> {
        let group = self.groups[index].clone();
        let prepare = |c: usize| self.cases[c].estimate.prepare.get();
        let cost = group.iter().map(|&c| prepare(c)).fold(0.0, f64::max);
        let rest = self.owed_to_gates(None).get() + self.progress.begin.record.plan.soak.get();
        let fits = self.fits(Seconds(cost + rest));
        let keep: Vec<usize> =
            group.iter().copied().filter(|&c| self.is_open(c) && (fits || self.cases[c].gate)).collect();
        self.out_of_time |= group.iter().any(|&c| self.is_open(c) && !keep.contains(&c));
        keep
    }

    /// Fewer rounds than the plan promises.
    fn owes_rounds(&self, case: usize) -> bool {
        self.is_open(case) && (self.state(case).rounds.len() as u32) < self.progress.begin.record.plan.rounds.min
    }

    /// Time for the rounds that gates still need, beside the next one of group `except`.
    fn owed_to_gates(&self, except: Option<usize>) -> Seconds {
        let min = self.progress.begin.record.plan.rounds.min;
        let missing = |group: &[usize]| -> u32 {
            let gates = group.iter().filter(|&&c| self.cases[c].gate && self.owes_rounds(c));
            gates.map(|&c| min - self.state(c).rounds.len() as u32).max().unwrap_or(0)
        };
        let owed = self.groups.iter().enumerate().map(|(i, group)| {
            let rounds = missing(group).saturating_sub(u32::from(except == Some(i)));
            f64::from(rounds) * self.cost(i).get()
        });
        Seconds(owed.sum())
    }

    /// What one visit of a group costs: as measured, or as planned before the first.
    fn cost(&self, index: usize) -> Seconds {
        let planned = self.groups[index].iter().map(|&c| self.cases[c].estimate.round.get()).fold(0.0, f64::max);
        self.costs.get(&index).copied().unwrap_or(Seconds(planned))
    }

    fn budget(&self) -> Seconds {
        self.progress.begin.record.plan.budget
    }

    /// Does `length` fit before the end of the budget, with the last checks and the conclusion after it?
    pub(super) fn fits(&self, length: Seconds) -> bool {
        self.fits_with(length, 0.0)
    }

    fn fits_with(&self, length: Seconds, overdraft: f64) -> bool {
        let conclude = if self.clock.is_virtual() { 0.0 } else { CONCLUDE.get() };
        let need = length.get() + self.last_checks_cost().get() + conclude - overdraft;
        self.clock.now() + nanoseconds(Seconds(need)) <= self.budget_end
    }

    /// Checks after the last block: one worker's run one after the other, different workers' together.
    fn last_checks_cost(&self) -> Seconds {
        let mut per_worker = std::collections::BTreeMap::new();
        for (&case, facts) in self.facts.iter().filter(|(c, _)| self.memory.holds(**c)) {
            *per_worker.entry(&self.cases[case].devices).or_insert(0.0) += facts.verify.get();
        }
        Seconds(per_worker.into_values().fold(0.0, f64::max))
    }
}

/// Has the median of these blocks the planned relative uncertainty?
fn is_precise(values: &[f64], precision: f64) -> bool {
    let spread = stats::uncertainty(values);
    spread.expanded <= precision * spread.median.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_is_reached_by_steady_blocks_only() {
        assert!(is_precise(&[100.0; 8], 0.01));
        assert!(!is_precise(&[100.0, 90.0, 110.0, 95.0, 105.0, 100.0, 92.0, 108.0], 0.01));
        assert!(!is_precise(&[100.0, 100.0], 0.01), "two blocks say nothing about scatter");
        assert!(!is_precise(&[f64::NAN; 8], 0.01));
        assert!(!is_precise(&[], 0.01));
    }
}
