//! Interference: the victim alone – beside an aggressor in another process – alone again, in every round. What
//! the aggressor itself got done is measured too: a neighbour that stood still disturbs nobody, and proves
//! nothing.

use std::collections::BTreeMap;

use crate::measure::MeasureError;
use crate::measure::clock::{between, nanoseconds};
use crate::measure::journal::{Entry, Point};
use crate::measure::ledger::Account;
use crate::measure::protocol::{BlockReply, Mark, MetricInfo, Reply, Request};
use crate::measure::supervisor::Supervisor;
use crate::measure::supervisor::blocks::Manner;
use crate::measure::supervisor::requests::Ask;
use crate::measure::supervisor::schedule::companion;
use crate::record::{Better, Block, CaseError, CaseErrorKind, MetricId, ThermalState};
use crate::stats;
use crate::unit::{Seconds, Unit};

/// The aggressor starts this long before the victim.
const SETTLE: Seconds = Seconds(0.1);

/// An aggressor below this share of its own rate alone did not do its part …
const AGGRESSOR_SHARE: f64 = 0.5;

/// … unless the victim's work took longer by more than this factor: then the two did compete.
const VICTIM_LOSS: f64 = 1.05;

/// Metric of the aggressor's completed work against its rate alone.
const SHARE_METRIC: &str = "interference.aggressor_share";

impl Supervisor<'_> {
    /// One round of all cases of `group`.
    pub(super) fn interfere(&mut self, group: &[usize], round: u32) -> Result<(), MeasureError> {
        self.calibrate_aggressors(group)?;
        let before = self.take_alone(group)?;
        let loaded = self.take_loaded(group)?;
        let after = self.take_alone(group)?;
        for &case in group {
            let (Some(before), Some((beside, marks)), Some(after)) =
                (before.get(&case), loaded.get(&case), after.get(&case))
            else {
                continue;
            };
            let points = self.interference_points(case, round, [before, beside, after], marks);
            self.note_blocks(case, round, points, vec![before.clocks, beside.clocks, after.clocks])?;
        }
        Ok(())
    }

    fn take_alone(&mut self, group: &[usize]) -> Result<BTreeMap<usize, BlockReply>, MeasureError> {
        let open: Vec<usize> = group.iter().copied().filter(|&c| self.is_open(c)).collect();
        let blocks = self.take(&open, Manner::ROUND)?;
        Ok(open.into_iter().zip(blocks).filter_map(|(c, b)| Some((c, b?))).collect())
    }

    /// The rate of each aggressor with nobody beside it, once per preparation.
    fn calibrate_aggressors(&mut self, group: &[usize]) -> Result<(), MeasureError> {
        let unknown = |&&c: &&usize| self.is_open(c) && self.facts.get(&c).is_some_and(|f| f.aggressor.is_none());
        let cases: Vec<usize> = group.iter().filter(unknown).copied().collect();
        self.charge(Account::Idle);
        let start_at = self.start_at();
        let asks = cases.iter().map(|&case| self.ask_load(case, start_at, self.cases[case].block, false)).collect();
        let replies = self.ask(asks, "measuring the aggressor alone")?;
        for (case, reply) in cases.into_iter().zip(replies) {
            let Some(Reply::Load { marks }) = reply else { continue };
            let whole = (marks.first().map_or(0, |m| m.at), marks.last().map_or(0, |m| m.at));
            let rate = rate_within(&marks, whole.0, whole.1);
            self.facts.entry(case).and_modify(|f| f.aggressor = Some(rate));
        }
        self.charge(Account::Prepare);
        Ok(())
    }

    fn ask_load(&self, case: usize, start_at: u64, length: Seconds, companions: bool) -> Ask {
        let mut timed =
            self.timed(case, start_at, Manner { length: Some(length), lead_in: false, account: Account::Sample });
        if companions {
            timed.companions.push(companion(&self.cases[case]));
        }
        Ask { case, aggressor: true, request: Request::Load(timed), estimate: self.timed_estimate(case, length) }
    }

    /// Victim blocks beside running aggressors, with the marks of the latter.
    fn take_loaded(&mut self, group: &[usize]) -> Result<BTreeMap<usize, (BlockReply, Vec<Mark>)>, MeasureError> {
        let cases: Vec<usize> = group.iter().copied().filter(|&c| self.is_open(c)).collect();
        self.charge(Account::Idle);
        let load_at = self.start_at();
        let victim_at = load_at + nanoseconds(SETTLE);
        for &case in &cases {
            let block = self.cases[case].block;
            // On a real clock the aggressor runs until it is told to stop, however slow the victim has become.
            // In simulated time "until told" has no meaning: it covers the victim's planned block.
            let beyond = if self.clock.is_virtual() { 1.0 } else { 10.0 };
            let ask = self.ask_load(case, load_at, Seconds(SETTLE.get() + beyond * block.get()), true);
            self.send(ask);
            let mut timed = self.timed(case, victim_at, Manner::ROUND);
            timed.companions.push(companion(&self.cases[case]));
            let estimate = self.timed_estimate(case, Seconds(10.0 * block.get()));
            self.send(Ask { case, aggressor: false, request: Request::Block(timed), estimate });
        }
        let victims: Vec<(usize, bool)> = cases.iter().map(|&c| (c, false)).collect();
        let aggressors: Vec<(usize, bool)> = cases.iter().map(|&c| (c, true)).collect();
        let replies = self.wait(&victims, "taking a block beside an aggressor")?;
        for &case in &cases {
            self.send(Ask { case, aggressor: true, request: Request::Stop, estimate: Seconds(0.0) });
        }
        let loads = self.wait(&aggressors, "being the aggressor")?;
        let mut taken = BTreeMap::new();
        let mut blocks = Vec::new();
        for ((case, reply), load) in cases.into_iter().zip(replies).zip(loads) {
            if let (Some(Reply::Block(block)), Some(Reply::Load { marks })) = (reply, load) {
                blocks.push(Some(block.clone()));
                taken.insert(case, (block, marks));
            }
        }
        self.charge_blocks(load_at, &blocks, Account::Sample);
        self.collect(true)?;
        Ok(taken)
    }

    fn interference_points(&self, case: usize, round: u32, blocks: [&BlockReply; 3], marks: &[Mark]) -> Vec<Point> {
        let Some(facts) = self.facts.get(&case) else { return Vec::new() };
        let [before, beside, after] = blocks;
        let slowdown = slowdown(facts.prepared.work.better, before.value, beside.value, after.value);
        let alone = facts.aggressor.unwrap_or(0.0);
        let share = if alone > 0.0 { rate_within(marks, beside.start, beside.end) / alone } else { 0.0 };
        let start = |b: &BlockReply| between(self.progress.begin.origin, b.start);
        let point = |info: &MetricInfo, phase: &str, primary, block: Block| Point {
            info: info.clone(),
            labels: match phase {
                "" => BTreeMap::new(),
                phase => BTreeMap::from([("phase".to_owned(), phase.to_owned())]),
            },
            state: ThermalState::Warm,
            primary,
            block,
        };
        let derived =
            |value: f64| Block { round, start: start(beside), value, samples: Vec::new(), clock: beside.clock };
        let timed = |b: &BlockReply| Block {
            round,
            start: start(b),
            value: b.value,
            samples: b.samples.clone(),
            clock: b.clock,
        };
        let share_info =
            MetricInfo { metric: MetricId(SHARE_METRIC.to_owned()), unit: Unit::Ratio, better: Better::Higher };
        let work = &facts.prepared.work;
        vec![
            point(&facts.prepared.primary, "", true, derived(slowdown)),
            point(work, "alone", false, timed(before)),
            point(work, "loaded", false, timed(beside)),
            point(work, "alone", false, timed(after)),
            point(&share_info, "", false, derived(share)),
        ]
    }

    /// A case whose aggressor did not do its part has shown nothing.
    pub(super) fn judge_aggressors(&mut self) -> Result<(), MeasureError> {
        for case in 0..self.cases.len() {
            let state = self.state(case);
            let values = |metric: &str| -> Vec<f64> {
                let series = state.series.iter().find(|s| s.metric.0 == metric);
                series.map(|s| s.blocks.iter().map(|b| b.value).collect()).unwrap_or_default()
            };
            let broken = matches!(state.standing, super::Standing::Failed(_));
            // NaN without such blocks: then nothing stood still.
            let (share, slowdown) = (stats::median(&values(SHARE_METRIC)), stats::median(&state.values()));
            if !broken && stood_still(share, slowdown) {
                let message = format!(
                    "the aggressor got {:.0} % of its rate alone while the victim lost {:.1} %: nothing was shown",
                    100.0 * share,
                    100.0 * (slowdown - 1.0)
                );
                let error = CaseError { kind: CaseErrorKind::Aggressor, message };
                self.note(Entry::Failed { case: self.cases[case].id.clone(), error })?;
            }
        }
        Ok(())
    }
}

fn stood_still(share: f64, slowdown: f64) -> bool {
    share < AGGRESSOR_SHARE && slowdown < VICTIM_LOSS
}

/// How many times longer the victim's work takes beside the aggressor than alone: its time per unit of work over
/// the mean of the times before and after.
fn slowdown(better: Better, before: f64, beside: f64, after: f64) -> f64 {
    let time = |value: f64| match better {
        Better::Higher => 1.0 / value,
        Better::Lower => value,
    };
    time(beside) / (0.5 * (time(before) + time(after)))
}

/// Iterations per second completed between two instants, by linear interpolation between the marks; time outside
/// the marks counts as time without work.
fn rate_within(marks: &[Mark], from: u64, to: u64) -> f64 {
    let length = between(from, to).get();
    if length > 0.0 { (done_at(marks, to) - done_at(marks, from)) / length } else { 0.0 }
}

fn done_at(marks: &[Mark], at: u64) -> f64 {
    let after = marks.partition_point(|m| m.at <= at);
    match (after.checked_sub(1).and_then(|i| marks.get(i)), marks.get(after)) {
        (Some(a), Some(b)) => {
            let part = (at - a.at) as f64 / (b.at - a.at) as f64;
            a.iterations as f64 + part * (b.iterations - a.iterations) as f64
        }
        (Some(a), None) => a.iterations as f64,
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdown_is_loaded_time_over_mean_time_alone() {
        assert!((slowdown(Better::Higher, 100.0, 50.0, 100.0) - 2.0).abs() < 1e-12);
        assert!((slowdown(Better::Lower, 1.0, 3.0, 2.0) - 2.0).abs() < 1e-12);
        assert!((slowdown(Better::Higher, 100.0, 100.0, 100.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_aggressors_rate_counts_only_completed_work_in_the_interval() {
        let marks = [(0, 0), (1_000_000_000, 10), (2_000_000_000, 20)];
        let marks: Vec<Mark> = marks.iter().map(|&(at, iterations)| Mark { at, iterations }).collect();
        assert!((rate_within(&marks, 0, 2_000_000_000) - 10.0).abs() < 1e-9);
        assert!((rate_within(&marks, 500_000_000, 1_500_000_000) - 10.0).abs() < 1e-9);
        // It stopped early: half of the victim's time was without load.
        assert!((rate_within(&marks, 0, 4_000_000_000) - 5.0).abs() < 1e-9);
        assert_eq!(rate_within(&[], 0, 1), 0.0);
        assert_eq!(rate_within(&marks, 5, 5), 0.0);
    }

    #[test]
    fn an_idle_aggressor_shows_nothing() {
        assert!(stood_still(0.4, 1.01));
        assert!(!stood_still(0.4, 1.5), "both lost: they competed");
        assert!(!stood_still(0.9, 1.01), "both kept their rate: no interference");
    }
}
