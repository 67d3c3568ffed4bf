//! CLOCK_MONOTONIC, the run's clock on real devices: one for all processes of a machine.

use crate::backend::Clock;

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid place for one timespec; CLOCK_MONOTONIC exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// The run's clock on real devices.
#[derive(Debug, Clone, Copy, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        now_ns()
    }

    fn sleep_until(&self, t: u64) {
        let deadline = libc::timespec { tv_sec: (t / 1_000_000_000) as i64, tv_nsec: (t % 1_000_000_000) as i64 };
        // A signal may end the sleep early: sleep again until the deadline has passed.
        while now_ns() < t {
            // SAFETY: `deadline` is a valid timespec and no remainder is asked for.
            unsafe {
                libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &deadline, std::ptr::null_mut())
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_until_a_moment_returns_at_or_after_it() {
        let until = now_ns() + 200_000;
        Monotonic.sleep_until(until);
        assert!(Monotonic.now() >= until);
        Monotonic.sleep_until(0);
    }
}
