//! What happened to a case, without opinion.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Better, CaseId, MetricId, Observed, ThermalState};
use crate::unit::{Hertz, Seconds, Unit};

/// One timed interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Work items (iterations) completed in it.
    pub iterations: u64,
    /// Length by device events.
    pub elapsed: Seconds,
}

/// A group of samples taken together; statistics are over blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// Round in which it was taken, from 0.
    pub round: u32,
    /// Start on the run's clock, since the run began.
    pub start: Seconds,
    /// Value of the series in this block, in the series' unit.
    pub value: f64,
    /// The timed intervals behind the value; empty where the value is not a rate over time (e.g. a percentile).
    pub samples: Vec<Sample>,
    /// Clock held during the block, by in-kernel cycle counter or sensor, where observable.
    pub clock: Option<Hertz>,
}

/// All blocks of one metric of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Which metric.
    pub metric: MetricId,
    /// Its unit.
    pub unit: Unit,
    /// Its direction.
    pub better: Better,
    /// Thermal state of these blocks.
    pub state: ThermalState,
    /// Further labels that tell series of one case apart, e.g. `percentile=p99`. Parameters are not repeated.
    pub labels: BTreeMap<String, String>,
    /// True for the metric the case exists for; false for accompanying readings.
    pub primary: bool,
    /// In order of time.
    pub blocks: Vec<Block>,
}

impl Series {
    /// Quantile `q` of the block values; NaN without blocks.
    pub fn quantile(&self, q: f64) -> f64 {
        let values: Vec<f64> = self.blocks.iter().map(|b| b.value).collect();
        crate::stats::quantile(&values, q)
    }
}

/// Who did the arithmetic or the input/output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Engine {
    /// Name, e.g. "cuBLASLt", "own avx512", "io_uring".
    pub name: String,
    /// Version, where there is one.
    pub version: Option<String>,
    /// Path of the library, where there is one.
    pub library: Option<String>,
    /// What its reading may decide.
    pub kind: EngineKind,
    /// Conditions worth stating: accumulate type, instruction set, algorithm id, queue depth …
    pub conditions: BTreeMap<String, String>,
}

/// What a reading of an engine can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// Reaches what the hardware can do: may pass and fail.
    Decisive,
    /// Can only read too poor (own kernel instead of the vendor's library): may pass, never fail.
    LowOnly,
    /// Can only read too good (zeros, burst, cached): may fail, never pass.
    HighOnly,
}

impl Outcome {
    /// What in its series cannot be: a direction that its unit does not have, or blocks that do not follow each other.
    pub fn contradiction(&self) -> Option<String> {
        let (Outcome::Measured(measurement) | Outcome::Failed { partial: Some(measurement), .. }) = self else {
            return None;
        };
        measurement.series.iter().find_map(|series| {
            let metric = &series.metric.0;
            if Better::of(series.unit).is_some_and(|better| better != series.better) {
                return Some(format!("{metric} in {} is better the other way round", series.unit.symbol()));
            }
            let starts = || series.blocks.iter().map(|b| b.start.get());
            let follow = starts().zip(starts().skip(1)).all(|(a, b)| a < b);
            (!follow || starts().any(|s| s < 0.0)).then(|| format!("the blocks of {metric} do not follow each other"))
        })
    }
}

/// What was checked about the buffers that were timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// All checks agreed.
    Right,
    /// The result was wrong; the speed is void.
    Wrong {
        /// where and by how much
        detail: String,
    },
    /// There is nothing to check, with the reason.
    NotApplicable {
        /// why
        reason: String,
    },
}

/// Proof of work of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// The conclusion over all checks of all rounds; `Wrong` once is wrong.
    pub verified: Verified,
    /// Checks made.
    pub checks: u32,
    /// The method with its stated bound, e.g. "Freivalds, 1 vector per round, bound 3.1e-5; exact ternary before and after".
    pub method: String,
    /// Largest error seen relative to its bound; below 1 is right.
    pub worst: Option<f64>,
}

/// Device events against the run's clock over all blocks of a case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockCheck {
    /// Total by device events.
    pub device: Seconds,
    /// Total by CLOCK_MONOTONIC.
    pub monotonic: Seconds,
    /// Relative difference of a typical block: the median over blocks of the difference in rate, or the lower quartile
    /// of what the host saw of the work outside of its events, whichever is larger. The value is a median over blocks
    /// too, so a clock that could move it shows here, and blocks in which the system held up the waiting host do not.
    pub typical: f64,
    /// Largest relative difference within one block.
    pub worst: f64,
}

/// A measured case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Primary and accompanying metrics.
    pub series: Vec<Series>,
    /// Proof of work.
    pub verification: Verification,
    /// Who did the work.
    pub engine: Engine,
    /// Event clock against the run's clock; `None` where no device events are involved.
    pub clock_check: Option<ClockCheck>,
    /// Hard ceiling of the primary metric with its derivation; a value above 1.02 × it is our own error.
    pub ceiling: Option<Ceiling>,
    /// What else is worth stating about these blocks: "cache" label, bytes really read, aggressor's share …
    pub conditions: BTreeMap<String, Observed<String>>,
}

/// What physics allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// In the unit of the primary metric.
    pub value: f64,
    /// How it was derived, e.g. "132 SM × 4096 op/clk × 1980 MHz".
    pub derivation: String,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaseErrorKind {
    /// The child did not answer before its deadline.
    Hang,
    /// The child process ended.
    Crash,
    /// The device is gone.
    DeviceLost,
    /// Out of device or host memory.
    OutOfMemory,
    /// The driver refused a call.
    Driver,
    /// A file could not be written or read.
    Storage,
    /// A measured value is not a finite positive number.
    NotANumber,
    /// The aggressor did not do its share of work.
    Aggressor,
    /// Anything else, a bug included.
    Internal,
}

/// Why a case has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseError {
    /// Kind.
    pub kind: CaseErrorKind,
    /// Words of the component that failed (hostile text).
    pub message: String,
}

/// What happened to one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Numbers.
    Measured(Measurement),
    /// Cannot run here.
    Unsupported {
        /// why
        reason: String,
    },
    /// Was not run.
    Skipped {
        /// why
        reason: String,
    },
    /// Broke. Blocks taken before are kept as evidence and never judged as a pass.
    Failed {
        /// what went wrong
        error: CaseError,
        /// what was measured before
        partial: Option<Measurement>,
    },
}

/// Outcome of a planned case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// The case.
    pub id: CaseId,
    /// What happened.
    pub outcome: Outcome,
}
