//! JSON lines between the supervisor and its workers. One request is outstanding per worker at a time, except
//! [`Request::Stop`], which ends a running [`Request::Load`] and has no answer of its own.
//!
//! Numbers that JSON cannot carry (NaN, infinities) never enter a message: the worker turns them into
//! [`Reply::Failed`] first.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backend::{Companion, Reading};
use crate::benchmark::Moment;
use crate::record::{
    Better, CaseError, CaseId, Ceiling, DeviceId, DeviceInfo, Engine, MetricId, Observed, Params, Sample, Verified,
};
use crate::unit::{Hertz, Seconds, Unit};

/// Supervisor to worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The run's clock at sending, in nanoseconds. In simulated time the worker moves its own clock up to it.
    pub now: u64,
    /// What to do.
    pub request: Request,
}

/// What a worker can be asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Opens the device set; always the first request.
    Open(Open),
    /// Allocates, generates data, compiles and calibrates one case.
    Prepare {
        /// name used in later requests
        case: CaseId,
        /// benchmark id
        benchmark: String,
        /// its parameters
        params: Params,
        /// planned length of one block: samples are never planned longer
        block: Seconds,
    },
    /// Takes one block.
    Block(TimedRequest),
    /// Runs the case over and over until [`TimedRequest::length`] is over or [`Request::Stop`] comes: the
    /// neighbour of an interference case.
    Load(TimedRequest),
    /// Ends a load.
    Stop,
    /// Checks the buffers that were timed.
    Verify {
        /// case
        case: CaseId,
        /// when
        when: When,
    },
    /// Frees everything a case holds.
    Release {
        /// case
        case: CaseId,
    },
    /// Ends the worker.
    Shutdown,
}

/// What a worker owns and where it is in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// The device set.
    pub devices: Vec<DeviceId>,
    /// Seed of all generated data.
    pub seed: u64,
    /// Folder for storage cases.
    pub storage: Option<PathBuf>,
    /// True for the neighbour of interference cases.
    pub aggressor: bool,
    /// True if the run counts simulated time.
    pub virtual_time: bool,
}

/// A stretch of timed work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedRequest {
    /// Case.
    pub case: CaseId,
    /// Common start instant on the run's clock, nanoseconds.
    pub start_at: u64,
    /// Length on the run's clock.
    pub length: Seconds,
    /// True to run one untimed sample first, so that clocks have left idle.
    pub lead_in: bool,
    /// What other processes of this run do on the same device meanwhile.
    pub companions: Vec<Companion>,
}

/// When a check is made; the serialisable form of [`Moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// After preparation.
    Before,
    /// After the blocks of a round.
    Round(u32),
    /// After the last block.
    After,
}

impl From<When> for Moment {
    fn from(when: When) -> Moment {
        match when {
            When::Before => Moment::Before,
            When::Round(round) => Moment::Round(round),
            When::After => Moment::After,
        }
    }
}

/// Worker to supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The run's clock as the worker sees it, nanoseconds.
    pub now: u64,
    /// Sensors only the worker can read, since its last answer.
    pub readings: Vec<Reading>,
    /// The answer.
    pub reply: Reply,
}

/// Answers, in the order of the requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// Devices are open.
    Opened {
        /// as the driver shows them now
        devices: Vec<DeviceInfo>,
    },
    /// The case is ready.
    Prepared(Prepared),
    /// A block was taken.
    Block(BlockReply),
    /// A load ended.
    Load {
        /// work completed over time
        marks: Vec<Mark>,
    },
    /// A check was made.
    Checked(Checked),
    /// Everything the case held is free.
    Released,
    /// The device or the benchmark cannot do it; not a fault.
    Unsupported {
        /// why
        reason: String,
    },
    /// It went wrong.
    Failed {
        /// what
        error: CaseError,
    },
}

/// What preparation showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// Metric of the workload's own work.
    pub work: MetricInfo,
    /// First metric of the benchmark: what the case exists for. Differs from `work` for interference.
    pub primary: MetricInfo,
    /// Iterations of one sample.
    pub iterations: u64,
    /// Length of one sample as calibrated.
    pub sample: Seconds,
}

/// A metric with unit and direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricInfo {
    /// Id.
    pub metric: MetricId,
    /// Unit.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
}

/// One block as taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockReply {
    /// First timed instant, nanoseconds on the run's clock.
    pub start: u64,
    /// Last timed instant.
    pub end: u64,
    /// Value of the workload's own metric.
    pub value: f64,
    /// The intervals behind it.
    pub samples: Vec<Sample>,
    /// Event timeline against the run's clock.
    pub clocks: Clocks,
    /// Clock held by the device, where it was read.
    pub clock: Option<Hertz>,
    /// Accompanying readings.
    pub observations: Vec<Accompanying>,
}

/// The same stretch of one block by device events and by the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    /// By device events.
    pub device: Seconds,
    /// By CLOCK_MONOTONIC.
    pub monotonic: Seconds,
    /// Work the host saw outside of its events, relative to its length; see `sampler`.
    pub uncovered: f64,
}

impl Clocks {
    /// By how much the device's clock runs slow against the run's, relative.
    pub fn rate(&self) -> f64 {
        let Clocks { device: Seconds(device), monotonic: Seconds(monotonic), .. } = *self;
        if monotonic == device { 0.0 } else { (monotonic - device) / monotonic }
    }

    /// The larger of both disagreements.
    pub fn difference(&self) -> f64 {
        // `f64::max` would drop one that is not a number.
        let rate = self.rate().abs();
        if rate.is_nan() || self.uncovered.is_nan() { f64::NAN } else { rate.max(self.uncovered) }
    }
}

/// An accompanying reading: the serialisable form of [`crate::benchmark::Observation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accompanying {
    /// Which metric.
    pub info: MetricInfo,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Finite value.
    pub value: f64,
}

/// Work completed by `at` since the load began.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Run's clock, nanoseconds.
    pub at: u64,
    /// Iterations completed by then.
    pub iterations: u64,
}

/// A check, with what the workload can say about itself at this time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Conclusion.
    pub verified: Verified,
    /// Method and bound.
    pub method: String,
    /// Error relative to its bound; `None` also where it is not finite (`verified` then says wrong).
    pub worst: Option<f64>,
    /// Who works.
    pub engine: Engine,
    /// Physical ceiling of the primary metric.
    pub ceiling: Option<Ceiling>,
    /// Conditions worth stating.
    pub conditions: BTreeMap<String, Observed<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_the_wire() {
        let message = Message {
            now: u64::MAX,
            request: Request::Block(TimedRequest {
                case: CaseId("gemm[type=fp32]@host:0".to_owned()),
                start_at: 1 << 60,
                length: Seconds(0.1 + 0.2),
                lead_in: true,
                companions: vec![Companion { benchmark: "interference".to_owned(), params: Params::default() }],
            }),
        };
        let line = serde_json::to_string(&message).expect("plain data");
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Message>(&line).expect("same format"), message);
    }
}
