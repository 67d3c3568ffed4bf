//! Where the time goes. Every stretch of the run's clock is charged to exactly one account, so the parts add
//! up to the total by construction.

use crate::measure::clock::between;
use crate::record::Ledger;
use crate::unit::Seconds;

/// What a stretch of time was for; the fields of [`Ledger`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// Start-up, buffers, compilation, calibration.
    Prepare,
    /// Soak, cool-down, lead-in.
    Warm,
    /// Timed blocks.
    Sample,
    /// Checks.
    Verify,
    /// Journal and record.
    Write,
    /// Nothing ran.
    Idle,
}

/// A ledger that is always up to date with the last instant it was told.
#[derive(Debug, Clone)]
pub struct Stopwatch {
    ledger: Ledger,
    last: u64,
}

impl Stopwatch {
    /// Starts at `now` from an earlier ledger (zero, or that of an interrupted run).
    pub fn start(ledger: Ledger, now: u64) -> Stopwatch {
        Stopwatch { ledger, last: now }
    }
    /// Charges everything from the last charged instant until `until` to `account`; nothing if that is not later.
    pub fn charge(&mut self, account: Account, until: u64) {
        self.add(account, between(self.last, until));
        self.last = self.last.max(until);
    }
    fn add(&mut self, account: Account, length: Seconds) {
        let part = match account {
            Account::Prepare => &mut self.ledger.prepare,
            Account::Warm => &mut self.ledger.warm,
            Account::Sample => &mut self.ledger.sample,
            Account::Verify => &mut self.ledger.verify,
            Account::Write => &mut self.ledger.write,
            Account::Idle => &mut self.ledger.idle,
        };
        *part = *part + length;
        self.ledger.total = self.ledger.total + length;
    }
    /// So far.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_total() {
        let mut watch = Stopwatch::start(Ledger::default(), 1_000);
        watch.charge(Account::Prepare, 2_000_001_000);
        watch.charge(Account::Sample, 2_500_001_000);
        watch.charge(Account::Idle, 3_000_001_000);
        watch.charge(Account::Verify, 2_500_000_000); // a clock that did not advance adds nothing
        watch.charge(Account::Warm, 3_100_001_000);
        let l = watch.ledger();
        let near = |a: Seconds, b: f64| (a.get() - b).abs() < 1e-9;
        assert!(near(l.prepare, 2.0) && near(l.sample, 0.5) && near(l.idle, 0.5) && near(l.warm, 0.1), "{l:?}");
        let sum = l.prepare + l.warm + l.sample + l.verify + l.write + l.idle;
        assert!((sum - l.total).get().abs() < 1e-12);
    }
}
