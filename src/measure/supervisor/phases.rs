//! Before and after the rounds: preparation, burst, soak, sustained state, last checks.

use crate::event::Phase;
use crate::measure::MeasureError;
use crate::measure::clock::{between, nanoseconds};
use crate::measure::journal::Entry;
use crate::measure::ledger::Account;
use crate::measure::protocol::When;
use crate::measure::signals::{self, Urgency};
use crate::measure::supervisor::Supervisor;
use crate::measure::supervisor::blocks::Manner;
use crate::measure::supervisor::schedule::heaviest;
use crate::record::{CaseId, Observed, Series, ThermalState};
use crate::stats;
use crate::unit::Seconds;

/// Idle before a burst, and length of a burst (design: first second after ≥ 5 s idle).
const COOL: Seconds = Seconds(5.0);
const BURST: Seconds = Seconds(1.0);

/// Bursts per case: enough for a median and a spread, each costs six seconds.
const BURSTS: u32 = 3;

/// The soak is asked for in pieces so that a signal is heard.
const SOAK_PIECE: Seconds = Seconds(2.0);

/// Load that sustained state needs, and the largest slope of its last third per minute.
pub(super) const SUSTAINED: Seconds = Seconds(600.0);
const SUSTAINED_SLOPE: f64 = 0.005;

impl Supervisor<'_> {
    /// Prepares everything that fits together; the rest is prepared when its turn comes.
    pub(super) fn prepare_all(&mut self) -> Result<(), MeasureError> {
        self.phase(Phase::Prepare, None);
        for index in 0..self.groups.len() {
            let group = self.affordable_to_prepare(index);
            if self.stopping() {
                break;
            }
            self.prepare(&group, false)?;
            self.collect(false)?;
        }
        Ok(())
    }

    /// The first second after at least five seconds without load, for the cases that ask for it.
    pub(super) fn burst(&mut self) -> Result<(), MeasureError> {
        let wants = |s: &Supervisor<'_>, g: &[usize]| g.iter().any(|&c| s.is_burst(c) && s.is_open(c));
        let groups = self.groups.clone();
        let bursting: Vec<&Vec<usize>> = groups.iter().filter(|g| wants(self, g)).collect();
        if bursting.is_empty() || self.stopping() {
            return Ok(());
        }
        let each = COOL.get() + BURST.get();
        self.phase(Phase::Burst, Some(Seconds(each * f64::from(BURSTS) * bursting.len() as f64)));
        for group in bursting {
            for round in 0..BURSTS {
                let open: Vec<usize> = group.iter().copied().filter(|&c| self.is_open(c)).collect();
                if open.is_empty() || self.stopping() || !self.fits(Seconds(each)) {
                    break;
                }
                self.prepare(&open, true)?;
                self.charge(Account::Idle);
                self.clock.idle(COOL, || signals::urgency() >= Urgency::Soon);
                self.charge(Account::Warm);
                let manner = Manner { length: Some(BURST), lead_in: false, account: Account::Sample };
                let blocks = self.take(&open, manner)?;
                self.keep(&open, round, ThermalState::Burst, blocks)?;
                self.verify(&open, When::Round(round))?;
            }
            for &case in group.iter() {
                if self.is_open(case) && !self.state(case).rounds.is_empty() {
                    self.note(Entry::Closed { case: self.cases[case].id.clone() })?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn is_burst(&self, case: usize) -> bool {
        self.cases[case].state == ThermalState::Burst
    }

    /// All devices together under their heaviest case. Nothing of it is a result.
    pub(super) fn soak(&mut self) -> Result<(), MeasureError> {
        let length = self.progress.begin.record.plan.soak;
        self.loaded_since = self.clock.now();
        if length.get() <= 0.0 || self.stopping() {
            return Ok(());
        }
        self.phase(Phase::Soak, Some(length));
        let end = self.clock.now() + nanoseconds(length);
        while !self.stopping() && self.clock.now() < end {
            let chosen = self.soaking();
            if chosen.is_empty() {
                break;
            }
            let piece = SOAK_PIECE.get().min(between(self.clock.now(), end).get());
            let manner = Manner { length: Some(Seconds(piece)), lead_in: false, account: Account::Warm };
            let before = self.clock.now();
            self.take(&chosen, manner)?;
            if self.clock.now() <= before {
                break; // every worker was lost, and simulated time with them
            }
        }
        Ok(())
    }

    /// For each device the prepared case that heats it most.
    fn soaking(&self) -> Vec<usize> {
        let ready: Vec<usize> = (0..self.cases.len()).filter(|&c| self.memory.holds(c) && self.is_open(c)).collect();
        let devices = &self.progress.begin.record.inventory.devices;
        devices.iter().filter_map(|d| heaviest(&self.cases, &ready, &d.id)).collect()
    }

    /// Labels the last third of long steady cases as sustained, or says why not.
    pub(super) fn sustain(&mut self) -> Result<(), MeasureError> {
        for case in 0..self.cases.len() {
            if self.cases[case].state != ThermalState::Sustained {
                continue;
            }
            let Some(series) = self.state(case).primary() else { continue };
            let id: CaseId = self.cases[case].id.clone();
            let loaded_since = between(self.progress.begin.origin, self.loaded_since);
            let entry = match sustained_from(series, loaded_since) {
                Ok(from_round) => Entry::Sustained { case: id, from_round },
                Err(reason) => {
                    let value = Observed::NotObservable(reason);
                    Entry::Condition { case: id, name: "sustained".to_owned(), value }
                }
            };
            self.note(entry)?;
        }
        Ok(())
    }

    /// The check after the last block of every case that is still prepared.
    pub(super) fn last_checks(&mut self) -> Result<(), MeasureError> {
        self.judge_aggressors()?;
        self.sustain()?;
        if self.stopping() {
            return Ok(());
        }
        let measured: Vec<usize> = (0..self.cases.len()).filter(|&c| !self.state(c).rounds.is_empty()).collect();
        self.verify(&measured, When::After)
    }
}

/// First round of the last third of a series, if the load was long enough and the last third is steady.
fn sustained_from(series: &Series, loaded_since: Seconds) -> Result<u32, String> {
    let last = series.blocks.last().map_or(0.0, |b| b.start.get());
    let loaded = last - loaded_since.get();
    if loaded < SUSTAINED.get() {
        return Err(format!("{loaded:.0} s of load; sustained state needs {:.0} s", SUSTAINED.get()));
    }
    let begin = last - loaded / 3.0;
    let third: Vec<_> = series.blocks.iter().filter(|b| b.start.get() >= begin).collect();
    let values: Vec<f64> = third.iter().map(|b| b.value).collect();
    let (Some(first), true) = (third.first(), values.len() >= 3) else {
        return Err(format!("{} blocks in the last third; 3 are needed", values.len()));
    };
    let minutes = (last - first.start.get()) / 60.0;
    let slope = stats::drift(&values).relative / minutes;
    if slope.is_finite() && slope.abs() < SUSTAINED_SLOPE {
        Ok(first.round)
    } else {
        Err(format!("still changing by {:.2} % per minute in the last third", 100.0 * slope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::series;

    #[test]
    fn sustained_needs_time_and_steadiness() {
        let steady: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i % 2)).collect();
        // One block every 12 s: 708 s.
        assert_eq!(sustained_from(&series(&steady, 12.0), Seconds(0.0)), Ok(40));
        assert!(sustained_from(&series(&steady, 12.0), Seconds(200.0)).is_err_and(|r| r.contains("508 s")));
        assert!(sustained_from(&series(&steady, 1.0), Seconds(0.0)).is_err());
        let falling: Vec<f64> = (0..60).map(|i| 100.0 - f64::from(i)).collect();
        assert!(sustained_from(&series(&falling, 12.0), Seconds(0.0)).is_err_and(|r| r.contains("changing")));
        assert!(sustained_from(&series(&[f64::NAN; 60], 12.0), Seconds(0.0)).is_err());
        assert!(sustained_from(&series(&[], 12.0), Seconds(0.0)).is_err());
    }
}
