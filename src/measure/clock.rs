//! The run's clock: CLOCK_MONOTONIC on real devices, the largest time any worker reported on simulated ones.
//! Also the few other things about time and this boot that a record states.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::backend::Clock;
pub use crate::backend::monotonic::now_ns as monotonic;
use crate::unit::Seconds;

/// Whole nanoseconds of a length; negative and NaN become 0.
pub fn nanoseconds(length: Seconds) -> u64 {
    (length.get() * 1e9) as u64
}

/// The time between two instants in nanoseconds; zero if `to` is not after `from`.
pub fn between(from: u64, to: u64) -> Seconds {
    Seconds(to.saturating_sub(from) as f64 * 1e-9)
}

/// The supervisor's view of the run's clock.
#[derive(Debug, Clone, Copy)]
pub enum SupervisorClock {
    /// CLOCK_MONOTONIC.
    Real,
    /// Simulated time: the largest that any worker reported.
    Virtual {
        /// nanoseconds
        now: u64,
    },
}

impl SupervisorClock {
    /// Nanoseconds.
    pub fn now(&self) -> u64 {
        match self {
            SupervisorClock::Real => monotonic(),
            SupervisorClock::Virtual { now } => *now,
        }
    }
    /// A worker reported this time.
    pub fn hear(&mut self, reported: u64) {
        if let SupervisorClock::Virtual { now } = self {
            *now = reported.max(*now);
        }
    }
    /// True for simulated time.
    pub fn is_virtual(&self) -> bool {
        matches!(self, SupervisorClock::Virtual { .. })
    }
    /// Lets `length` pass without load: really waits, or moves simulated time. Returns early if `stop` says so.
    pub fn idle(&mut self, length: Seconds, stop: impl Fn() -> bool) {
        match self {
            SupervisorClock::Virtual { now } => *now += nanoseconds(length),
            SupervisorClock::Real => {
                let end = monotonic() + nanoseconds(length);
                while !stop() && monotonic() < end {
                    let rest = between(monotonic(), end).get().min(0.05);
                    std::thread::sleep(Seconds(rest).duration());
                }
            }
        }
    }
}

/// A worker's view: its device's clock, brought in line with the supervisor's at each request.
pub struct WorkerClock<'d> {
    device: &'d dyn Clock,
    simulated: bool,
    virtual_time: bool,
    /// Run's clock minus device's clock; not zero only for a real device in a simulated run.
    offset: i64,
}

impl<'d> WorkerClock<'d> {
    /// On `device`'s clock. `virtual_time`: the run counts simulated time.
    pub fn new(device: &'d dyn Clock, simulated: bool, virtual_time: bool) -> WorkerClock<'d> {
        WorkerClock { device, simulated, virtual_time, offset: 0 }
    }
    /// The supervisor's clock shows `now`: a simulated device moves up to it; a real device beside simulated
    /// ones counts on from it.
    pub fn hear(&mut self, now: u64) {
        if self.simulated {
            self.device.sleep_until(now);
        } else if self.virtual_time {
            self.offset = now as i64 - self.device.now() as i64;
        }
    }
    /// Nanoseconds on the run's clock.
    pub fn now(&self) -> u64 {
        self.device.now().wrapping_add_signed(self.offset)
    }
    /// True if the run counts simulated time, in which a message from outside comes at no particular moment.
    pub fn is_virtual(&self) -> bool {
        self.virtual_time
    }
    /// Returns at or after `t`.
    pub fn sleep_until(&self, t: u64) {
        self.device.sleep_until(t.wrapping_sub(self.offset as u64));
    }
}

/// Now in UTC, RFC 3339 to the second.
pub fn utc_now() -> String {
    // A clock before 1970 is shown as 1970; nothing is computed from it.
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()))
}

/// Seconds since 1970 as RFC 3339 in UTC. Date from day number by Hinnant's `civil_from_days`.
fn rfc3339(since_1970: u64) -> String {
    let (days, second) = (since_1970 / 86_400, since_1970 % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The kernel's id of this boot; `None` if it cannot be read.
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// A new run's id, e.g. `20261130T195700Z-1f3a`: start time and process, unique on one machine.
pub fn new_run_id() -> String {
    let compact: String = utc_now().chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("{compact}-{:04x}", std::process::id() & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn dates_match_known_values() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
        }
    }

    struct Ticker(AtomicU64);
    impl Clock for Ticker {
        fn now(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
        fn sleep_until(&self, t: u64) {
            self.0.fetch_max(t, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_simulated_worker_moves_up_and_never_back() {
        let device = Ticker(AtomicU64::new(100));
        let mut clock = WorkerClock::new(&device, true, true);
        clock.hear(500);
        assert_eq!(clock.now(), 500);
        clock.hear(300);
        assert_eq!(clock.now(), 500);
    }

    #[test]
    fn a_real_device_beside_simulated_ones_counts_on_from_the_run() {
        let device = Ticker(AtomicU64::new(1_000_000));
        let mut clock = WorkerClock::new(&device, false, true);
        clock.hear(500);
        assert_eq!(clock.now(), 500);
        clock.sleep_until(700);
        assert_eq!((clock.now(), device.now()), (700, 1_000_200));
    }

    #[test]
    fn a_real_run_is_on_one_clock() {
        let device = Ticker(AtomicU64::new(1_000));
        let mut clock = WorkerClock::new(&device, false, false);
        clock.hear(5);
        assert_eq!(clock.now(), 1_000);
    }
}
