//! What a run will do.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeviceId, Params};
use crate::unit::{Bytes, Seconds, Unit};

/// Share of a GPU's memory that prepared cases may hold together.
pub const DEVICE_MEMORY_SHARE: f64 = 0.8;
/// Share of the host's usable memory that prepared cases of all CPU-type devices may hold together.
pub const HOST_MEMORY_SHARE: f64 = 0.5;

/// `benchmark[params]@devices`, e.g. `gemm[n=2048,type=fp32]@host:0`. Unique within a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CaseId(pub String);

impl CaseId {
    /// Built from its parts.
    pub fn new(benchmark: &str, params: &Params, devices: &[DeviceId]) -> CaseId {
        let devices: Vec<String> = devices.iter().map(DeviceId::to_string).collect();
        CaseId(format!("{benchmark}[{params}]@{}", devices.join("+")))
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Which devices a case runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Targeting {
    /// One case per device, all started at the same instant: how they are used.
    Together,
    /// One case per device, one after the other.
    Alone,
    /// One case per unordered pair; disjoint pairs (perfect matchings) run together.
    Pairs,
    /// One case that owns all devices.
    All,
}

/// Thermal state in which a block was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThermalState {
    /// First second after at least 5 s idle.
    Burst,
    /// After the soak.
    Warm,
    /// Last third of at least 10 minutes with a slope below 0.5 %/min.
    Sustained,
}

/// What a case needs for itself while it is timed. Cases of one slot never conflict.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exclusive {
    /// One device.
    Device(DeviceId),
    /// The memory system of the host.
    HostMemory,
    /// One PCIe root, by name.
    PcieRoot(String),
    /// The storage target.
    Disk,
}

/// One thing to measure: benchmark × parameters × target devices. The unit of planning, timing out and reporting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Unique id.
    pub id: CaseId,
    /// Benchmark id.
    pub benchmark: String,
    /// Its parameters.
    pub params: Params,
    /// The device set it owns while it runs.
    pub devices: Vec<DeviceId>,
    /// Cases with equal slot run together from one start instant.
    pub slot: String,
    /// Needed exclusively.
    pub exclusive: Vec<Exclusive>,
    /// A gate hangs on it: never dropped for lack of time.
    pub gate: bool,
    /// Worth of a graded case; the least valuable is dropped first.
    pub value: u32,
    /// Length of one block.
    pub block: Seconds,
    /// Relative half-width U/y at which no more rounds are needed for it.
    pub precision: f64,
    /// Device memory it holds while prepared, in all its processes (unscaled).
    pub footprint: Bytes,
    /// Blocks per round: 1, or 3 for alone – with aggressor – alone again.
    pub blocks_per_round: u32,
    /// Planned cost per round and once, for the budget.
    pub estimate: CaseEstimate,
    /// Thermal state asked for.
    pub state: ThermalState,
}

/// What a case is planned to cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CaseEstimate {
    /// Buffers, compilation, calibration, first verification.
    pub prepare: Seconds,
    /// Blocks and verification in each round.
    pub round: Seconds,
}

/// Rounds of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoundsPlan {
    /// Never fewer.
    pub min: u32,
    /// Never more.
    pub max: u32,
}

/// A case that is not in the plan, with the reason the user sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotPlanned {
    /// Its id.
    pub id: CaseId,
    /// Benchmark id.
    pub benchmark: String,
    /// Parameters.
    pub params: Params,
    /// Devices.
    pub devices: Vec<DeviceId>,
    /// True: cannot run here (unsupported). False: left out (time, selection, memory).
    pub unsupported: bool,
    /// Why, in words.
    pub reason: String,
}

/// What will be done, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Cases, in suite order.
    pub cases: Vec<Case>,
    /// Everything the suite asked for that is not in `cases`.
    pub not_planned: Vec<NotPlanned>,
    /// Rounds.
    pub rounds: RoundsPlan,
    /// Length of the common soak before the first round.
    pub soak: Seconds,
    /// Time allowed for the whole run.
    pub budget: Seconds,
    /// Planned time at the minimum number of rounds.
    pub estimate: Seconds,
}

/// Direction in which a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

impl Better {
    /// The direction of every metric in this unit, where there is only one: rates up, times down.
    pub fn of(unit: Unit) -> Option<Better> {
        match unit {
            Unit::BytePerSecond | Unit::FlopPerSecond | Unit::OpPerSecond | Unit::IoPerSecond => Some(Better::Higher),
            Unit::Second => Some(Better::Lower),
            _ => None,
        }
    }
}

/// Name of a metric, e.g. `gemm.throughput`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MetricId(pub String);

impl fmt::Display for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The words a suite or an offer may use, collected from the registries by the caller: parsers can then
/// refuse an unknown name without depending on the code that defines it.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    /// Benchmarks.
    pub benchmarks: Vec<VocabularyEntry>,
    /// Figures of the spec table.
    pub figures: Vec<String>,
}

impl Vocabulary {
    /// The metric called `id`: its benchmark, unit and direction.
    pub fn metric(&self, id: &str) -> Option<(&VocabularyEntry, Unit, Better)> {
        self.benchmarks.iter().find_map(|b| b.metrics.iter().find(|(m, _, _)| m.0 == id).map(|m| (b, m.1, m.2)))
    }
}

/// One benchmark's words.
#[derive(Debug, Clone)]
pub struct VocabularyEntry {
    /// Benchmark id.
    pub id: String,
    /// Parameter names with their allowed words (empty: any number or size).
    pub params: Vec<(String, Vec<String>)>,
    /// Metrics with unit and direction.
    pub metrics: Vec<(MetricId, Unit, Better)>,
}
