//! SIGINT, SIGTERM and SIGHUP. The first asks the run to end at the next block, the second at once; both leave
//! a valid partial record. The third ends the process without further ado. A signal that the caller had ignored
//! (`nohup`, background jobs) stays ignored.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::record::RunEnd;

static COUNT: AtomicU32 = AtomicU32::new(0);
static FIRST: AtomicI32 = AtomicI32::new(0);

extern "C" fn handle(signal: libc::c_int) {
    // Only atomics and _exit: both are async-signal-safe.
    if COUNT.fetch_add(1, Ordering::Relaxed) == 0 {
        FIRST.store(signal, Ordering::Relaxed);
    }
    if COUNT.load(Ordering::Relaxed) >= 3 {
        // SAFETY: `_exit` may be called from a signal handler.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Handles the three signals from now on in this process.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: both structs are plain data, valid when zeroed; `handle` is async-signal-safe.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
            // No SA_RESTART: a blocking read must notice.
            libc::sigemptyset(&mut new.sa_mask);
            libc::sigaction(signal, &new, std::ptr::null_mut());
        }
    }
}

/// For children: the supervisor decides when they end, so a Ctrl-C that reaches the whole group, or a service
/// manager's SIGTERM, is ignored here. They end when their stdin does.
pub fn ignore() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: ignoring a signal has no preconditions.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// How urgently the user wants the run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Not at all.
    None,
    /// At the next block.
    Soon,
    /// Now.
    Now,
}

/// What was received so far.
pub fn urgency() -> Urgency {
    match COUNT.load(Ordering::Relaxed) {
        0 => Urgency::None,
        1 => Urgency::Soon,
        _ => Urgency::Now,
    }
}

/// How a run ends that was asked to by the first signal; `None` without one.
pub fn end() -> Option<RunEnd> {
    match FIRST.load(Ordering::Relaxed) {
        0 => None,
        libc::SIGINT => Some(RunEnd::Interrupted),
        _ => Some(RunEnd::Terminated),
    }
}
