//! The file format: plain serialisable data with a version and a JSON Schema. No opinions in here:
//! what is there (`inventory`), what shall be done (`plan`), what happened (`outcome`, `record`).

mod inventory;
mod outcome;
mod params;
mod plan;
mod telemetry;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use inventory::{
    BackendId, BackendReport, BackendState, DeviceId, DeviceInfo, DeviceKind, Disagreement, Disk, DiskKind, Host,
    Inventory, Observed, PciIdentity, StorageTarget, WorkScale,
};
pub use outcome::{
    Block, CaseError, CaseErrorKind, CaseResult, Ceiling, ClockCheck, Engine, EngineKind, Measurement, Outcome, Sample,
    Series, Verification, Verified,
};
pub use params::{DataType, Params, Value};
pub use plan::{
    Better, Case, CaseEstimate, CaseId, DEVICE_MEMORY_SHARE, Exclusive, HOST_MEMORY_SHARE, MetricId, NotPlanned, Plan,
    RoundsPlan, Targeting, ThermalState, Vocabulary, VocabularyEntry,
};
pub use telemetry::{Telemetry, TelemetryPoint, TelemetrySeries};

use crate::unit::Seconds;

/// Attribute of the host that names what of it is simulated: `cpus`, `ram`, `nvme`.
pub const HOST_SIMULATED: &str = "simulated";

/// Attribute of a GPU that names its link to other GPUs, where one was seen.
pub const PEER_LINK: &str = "peer_link";

/// Attribute of the host with the number of NVSwitches on its PCI bus, where there are any.
pub const NVSWITCHES: &str = "nvswitches";

/// Version of the record format. Additive changes keep it; anything else raises it.
pub const FORMAT: u32 = 1;

/// Everything one run produced: enough to judge it again with other rules, without the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Format version, [`FORMAT`].
    pub format: u32,
    /// Unique id of the run; also the name of its folder.
    pub id: String,
    /// The tool that measured.
    pub tool: Tool,
    /// How, when and with which arguments it ran.
    pub run: Run,
    /// The suite as it was used, so that the record can be judged without the file.
    pub suite: Source,
    /// The offer as it was used.
    pub offer: Option<Source>,
    /// What was found on the machine.
    pub inventory: Inventory,
    /// What was to be done.
    pub plan: Plan,
    /// What happened to each planned case, in plan order. A case that never ran is `skipped` with its reason.
    pub results: Vec<CaseResult>,
    /// Sensor readings over the run.
    pub telemetry: Telemetry,
    /// Where the time went.
    pub ledger: Ledger,
    /// Things that limit the trust in this run, seen while measuring.
    pub notices: Vec<Notice>,
}

impl Record {
    /// What cannot be so in a record of one run: devices or cases that occur twice, results that are not those of the
    /// plan, devices that nobody found. `None` if all fits together.
    pub fn contradiction(&self) -> Option<String> {
        let twice = |ids: Vec<String>| {
            let mut seen = std::collections::BTreeSet::new();
            ids.into_iter().find(|id| !seen.insert(id.clone()))
        };
        let devices = &self.inventory.devices;
        if let Some(id) = twice(devices.iter().map(|d| d.id.to_string()).collect()) {
            return Some(format!("device {id} occurs twice"));
        }
        if let Some(id) = twice(self.inventory.selected.iter().map(ToString::to_string).collect()) {
            return Some(format!("device {id} was selected twice"));
        }
        if let Some(id) = twice(self.plan.cases.iter().map(|c| c.id.to_string()).collect()) {
            return Some(format!("case {id} occurs twice"));
        }
        let used = self.inventory.selected.iter().chain(self.plan.cases.iter().flat_map(|c| &c.devices));
        if let Some(id) = used.into_iter().find(|id| !devices.iter().any(|d| d.id == **id)) {
            return Some(format!("device {id} is used and not among the devices"));
        }
        if !self.plan.cases.iter().map(|c| &c.id).eq(self.results.iter().map(|r| &r.id)) {
            return Some("its results are not those of its plan".to_owned());
        }
        self.results.iter().find_map(|r| Some(format!("{}: {}", r.id, r.outcome.contradiction()?)))
    }
}

/// Name, version and hash of the measuring binary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// "gpu-assay".
    pub name: String,
    /// Package version.
    pub version: String,
    /// SHA-256 of the executable, hexadecimal; `None` if it could not be read.
    pub binary_sha256: Option<String>,
    /// Version of each benchmark's method; results compare only at equal versions.
    pub method_versions: BTreeMap<String, u32>,
}

/// The circumstances of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Start, RFC 3339 in UTC.
    pub started_at: String,
    /// End, RFC 3339 in UTC.
    pub ended_at: Option<String>,
    /// Length on the run's clock (CLOCK_MONOTONIC, or simulated time).
    pub duration: Seconds,
    /// Kernel boot id; `None` if not readable.
    pub boot_id: Option<String>,
    /// Seed of all generated data.
    pub seed: u64,
    /// Command line, without the program's path.
    pub arguments: Vec<String>,
    /// Time budget asked for.
    pub budget: Option<Seconds>,
    /// How the run ended.
    pub end: RunEnd,
    /// True if any device is simulated. Every output then says SIMULATED.
    pub simulated: bool,
    /// Environment variables that can change arithmetic or libraries: name and value as found, neutralised in workers.
    pub neutralised_environment: BTreeMap<String, String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Everything planned was visited.
    Complete,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// The journal ends without an end mark: the supervisor died.
    Died,
}

/// A text file that took part in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Its name: a built-in name or a path.
    pub name: String,
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
    /// The text itself.
    pub text: String,
}

/// Where the time of a run went, on the run's clock, in seconds. The parts add up to `total`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Start-up: discovery, workers, buffers, compilation, calibration.
    pub prepare: Seconds,
    /// Soak and cool-down asked for by a thermal state.
    pub warm: Seconds,
    /// Timed blocks.
    pub sample: Seconds,
    /// Checking results.
    pub verify: Seconds,
    /// Writing the record.
    pub write: Seconds,
    /// Nothing ran.
    pub idle: Seconds,
    /// All of it.
    pub total: Seconds,
}

/// Something seen while measuring that limits trust, in a closed vocabulary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// A process of ours or the renter's used a device under test.
    ForeignProcess {
        /// device it was seen on
        device: DeviceId,
        /// process name as found (hostile text)
        name: String,
        /// CPU or device share, 1 = all of it
        share: f64,
    },
    /// Device identity or driver changed during the run.
    DeviceChanged {
        /// which
        device: DeviceId,
        /// what it was
        before: String,
        /// what it is
        after: String,
    },
    /// A child process stopped answering and was abandoned.
    Abandoned {
        /// the cases it cost
        cases: Vec<CaseId>,
        /// what it was doing
        doing: String,
    },
    /// The telemetry child gave no readings.
    NoTelemetry {
        /// why
        reason: String,
    },
    /// The time budget ended before the precision was reached.
    BudgetSpent {
        /// cases below their planned precision
        cases: Vec<CaseId>,
    },
    /// A run continued an interrupted one.
    Resumed {
        /// rounds taken over
        rounds: u32,
    },
}
