//! The exit codes: a stable contract with schedulers, hooks and scripts.

use std::process::ExitCode;

/// What the process says to its caller. The numbers never change within a major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Accepted, also with reservations (unless `--fail-on reservations`); or a command that did its job.
    Accepted = 0,
    /// Not accepted: a gate failed. The only code that says the instance is bad.
    NotAccepted = 1,
    /// Usage or input error; nothing was measured.
    Usage = 2,
    /// Inconclusive: noise, missing evidence, invalid run. Never 0.
    Inconclusive = 3,
    /// Nothing to test: no GPU where one was asked for.
    NothingToTest = 4,
    /// Verification of a record or bundle failed.
    VerificationFailed = 5,
    /// Internal error (a bug in this tool).
    Internal = 70,
    /// Output cannot be created (EX_CANTCREAT).
    CannotCreate = 73,
    /// Writing output failed (EX_IOERR).
    WriteFailed = 74,
    /// Interrupted by SIGINT; the partial record is kept.
    Interrupted = 130,
    /// Terminated by SIGTERM; the partial record is kept.
    Terminated = 143,
}

impl Exit {
    /// Every code with its one-line meaning, for `--help`, the README and tests.
    pub const ALL: [(Exit, &'static str); 11] = [
        (Exit::Accepted, "accepted, also with reservations (--fail-on reservations makes that 1)"),
        (Exit::NotAccepted, "not accepted: a gate failed"),
        (Exit::Usage, "usage or input error; nothing was measured"),
        (Exit::Inconclusive, "inconclusive: noise, missing evidence or an invalid run"),
        (Exit::NothingToTest, "nothing to test: no GPU where one was asked for"),
        (Exit::VerificationFailed, "verification of a record failed"),
        (Exit::Internal, "internal error"),
        (Exit::CannotCreate, "output cannot be created"),
        (Exit::WriteFailed, "write failed"),
        (Exit::Interrupted, "interrupted (SIGINT); the partial record is kept"),
        (Exit::Terminated, "terminated (SIGTERM); the partial record is kept"),
    ];

    /// The number seen by the shell.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}
