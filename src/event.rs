//! The interface between the measuring side and whoever watches: terminal, log file, tests.

use serde::{Deserialize, Serialize};

use crate::record::{CaseError, CaseId, DeviceId, Ledger, Notice};
use crate::unit::{Quantity, Seconds};

/// What happens during a run, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A phase of the run begins.
    Phase {
        /// which
        phase: Phase,
        /// planned length, where known
        planned: Option<Seconds>,
    },
    /// Devices were chosen.
    Selected {
        /// id and name of each
        devices: Vec<(DeviceId, String)>,
    },
    /// The plan is ready.
    Planned {
        /// cases
        cases: usize,
        /// left out
        not_planned: usize,
        /// planned time
        estimate: Seconds,
        /// time allowed
        budget: Seconds,
    },
    /// Buffers are ready and calibrated.
    Prepared {
        /// case
        case: CaseId,
    },
    /// A round begins.
    Round {
        /// number from 0
        round: u32,
        /// at least this many
        min: u32,
        /// cases below their precision
        open: usize,
    },
    /// A block was taken.
    Block {
        /// case
        case: CaseId,
        /// round
        round: u32,
        /// value of the primary metric
        value: Quantity,
    },
    /// A case has its result.
    CaseDone {
        /// case
        case: CaseId,
        /// median of the primary metric and relative expanded uncertainty
        value: Option<(Quantity, f64)>,
        /// what went wrong
        error: Option<CaseError>,
    },
    /// Something that limits trust.
    Notice {
        /// what
        notice: Notice,
    },
    /// Measuring is over.
    Finished {
        /// where the time went
        ledger: Ledger,
    },
}

/// Phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Looking at the machine.
    Discover,
    /// Starting workers, allocating, compiling, calibrating.
    Prepare,
    /// Idle before and first second of load.
    Burst,
    /// All devices under load together.
    Soak,
    /// Rounds.
    Rounds,
    /// Judging and writing.
    Conclude,
}

/// Someone who watches a run.
pub trait Observer {
    /// Called for each event, on the supervisor's thread; must return quickly.
    fn on(&mut self, event: &Event);
}

impl<F: FnMut(&Event)> Observer for F {
    fn on(&mut self, event: &Event) {
        self(event);
    }
}
