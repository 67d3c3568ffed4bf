//! What to run and what to demand: TOML files under `suites/`, policy without numbers. A suite holds no
//! threshold and no share of a figure; limits come from guarantees, bands, peers or the run itself.

mod parse;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{Params, RoundsPlan, Source, Targeting, ThermalState, Value};
use crate::unit::{Bytes, Seconds};

pub use parse::parse;

/// The suites inside the binary: name and text, shortest first.
pub const BUILTIN: [(&str, &str); 2] =
    [("quick", include_str!("../../suites/quick.toml")), ("standard", include_str!("../../suites/standard.toml"))];

/// Text of the built-in suite called `name`.
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// A parsed suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// `quick`, `standard`, …
    pub name: String,
    /// Raised when results or demands change.
    pub version: u32,
    /// One line.
    pub title: String,
    /// Time promised for the whole run.
    pub budget: Seconds,
    /// Rounds.
    pub rounds: RoundsPlan,
    /// Soak of all devices together before the first round.
    pub soak: Seconds,
    /// True if a run without a GPU is an error (exit 4) rather than a smaller run.
    pub needs_gpu: bool,
    /// What to run, in order.
    pub runs: Vec<Run>,
    /// What to demand.
    pub demands: Vec<Demand>,
    /// The file.
    pub source: Source,
}

/// One line of "what to run": a benchmark and all combinations of its parameter values.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Benchmark id.
    pub benchmark: String,
    /// Parameter → values; the cases are their cross product.
    pub params: BTreeMap<String, Vec<Value>>,
    /// On which devices.
    pub on: DeviceFilter,
    /// How several devices share it.
    pub targeting: Targeting,
    /// Length of one block.
    pub block: Seconds,
    /// Planned relative precision U/y.
    pub precision: f64,
    /// Worth when time is short; the least valuable graded case is dropped first.
    pub value: u32,
    /// Thermal state.
    pub state: ThermalState,
    /// Largest memory it may take, if limited.
    pub size_cap: Option<Bytes>,
}

/// Devices a run line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceFilter {
    /// Every selected device.
    Any,
    /// Selected GPUs only.
    Gpu,
    /// Selected CPU-type devices behind a GPU interface (OpenCL), not the host.
    Cpu,
    /// The host, when it is selected.
    Host,
    /// The host, always: storage and host memory serve every device of the machine. In a demand the same as `Host`.
    Machine,
}

/// A rule: for every measured series it matches, one requirement per unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// Stable id, unique in the suite.
    pub id: String,
    /// What it looks at.
    pub subject: Subject,
    /// Only where these parameters or labels have these words.
    pub filter: BTreeMap<String, String>,
    /// On which devices.
    pub on: DeviceFilter,
    /// Where the limit comes from.
    pub limit: LimitRule,
    /// Gate or graded.
    pub gate: bool,
    /// Largest U/y at which a conditional result still stands (design §6: GEMM and memory 1 %, links 2 %, storage 5 %).
    pub cap: f64,
    /// One sentence for the report, by locale key `demand.<id>` or literal.
    pub why: String,
    /// Line in the file, for the basis.
    pub line: usize,
}

/// What a demand looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A metric.
    Metric(String),
    /// All cases of a benchmark (for correctness and completeness).
    Benchmark(String),
}

/// Where the limit of a demand comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitRule {
    /// Every check of the results agreed.
    Correct,
    /// The case was measured at all.
    Complete,
    /// The band of this model: gate at `fail_below`, graded at `pass_from`.
    Band,
    /// The minimum the offer guarantees.
    Guarantee,
    /// The leave-one-out median of ≥ 3 identical devices.
    Peers,
    /// The ceiling measured in the same run (host, CPU devices): shown as a share, plausibility is checked.
    SameRun,
}

/// Cross product of parameter values, in file order of names and values.
pub fn combinations(params: &BTreeMap<String, Vec<Value>>) -> Vec<Params> {
    let mut all = vec![Params::default()];
    for (name, values) in params {
        all = all.into_iter().flat_map(|p| values.iter().map(move |v| p.clone().with(name, v.clone()))).collect();
    }
    all
}
