//! The judged run: what reports render and machines read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Parts;
use crate::record::{Better, DeviceId};
use crate::unit::{Quantity, Unit};

/// Version of the assessment format.
pub const ASSESSMENT_FORMAT: u32 = 1;

/// Overall verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All gates passed, nothing open.
    Accepted,
    /// All gates passed; something conditional, or graded and not met.
    AcceptedWithReservations,
    /// Evidence is missing or too noisy.
    Inconclusive,
    /// A gate failed.
    NotAccepted,
}

/// Status of one requirement, best to worst as far as they compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// y − U ≥ L
    Pass,
    /// L ≤ y < L + U
    ConditionalPass,
    /// L − kU/2 ≤ y < L
    ConditionalFail,
    /// y < L − kU/2
    Fail,
    /// Evidence too weak, with the reason.
    Inconclusive,
    /// No evidence, with the reason.
    NotTested,
    /// Does not apply here, or there is no limit to compare with; never counts as a pass.
    NotApplicable,
}

/// Whether a requirement decides or only grades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Any failure means not accepted.
    Gate,
    /// A failure is a reservation.
    Graded,
}

/// Trust in the run itself, apart from the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// Clocks agree, nothing changed, nobody else was there.
    Valid,
    /// Something contradicts the numbers.
    Invalid,
    /// Could not be checked.
    Unchecked,
}

/// A text by id, filled with typed arguments; the words are in `report-templates/locales/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Key in the locale files.
    pub id: String,
    /// Named arguments.
    pub args: BTreeMap<String, Argument>,
}

impl Message {
    /// Without arguments.
    pub fn new(id: &str) -> Message {
        Message { id: id.to_owned(), args: BTreeMap::new() }
    }
    /// Adds an argument.
    pub fn with(mut self, name: &str, value: impl Into<Argument>) -> Message {
        self.args.insert(name.to_owned(), value.into());
        self
    }
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// Text from the machine or a file: hostile, never translated.
    Text(String),
    /// A value with unit.
    Quantity(Quantity),
    /// 1 = 100 %.
    Ratio(f64),
    /// A whole number.
    Count(u64),
    /// Another message, translated in its place.
    Message(Box<Message>),
}

impl From<&str> for Argument {
    fn from(text: &str) -> Argument {
        Argument::Text(text.to_owned())
    }
}
impl From<String> for Argument {
    fn from(text: String) -> Argument {
        Argument::Text(text)
    }
}
impl From<Quantity> for Argument {
    fn from(q: Quantity) -> Argument {
        Argument::Quantity(q)
    }
}
impl From<u64> for Argument {
    fn from(n: u64) -> Argument {
        Argument::Count(n)
    }
}
impl From<Message> for Argument {
    fn from(message: Message) -> Argument {
        Argument::Message(Box::new(message))
    }
}

/// What a limit rests on, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BasisKind {
    /// The offer promises it.
    Guarantee,
    /// What healthy units of this model deliver.
    Band,
    /// The lowest band of its class (weak).
    ClassBand,
    /// The leave-one-out median of identical devices in this machine.
    Peers,
    /// The ceiling measured in the same run.
    SameRun,
    /// The results must be right.
    Correctness,
    /// The work must have been done.
    Completeness,
    /// The offer's nameplate: model, count, memory.
    Identity,
}

/// Where a limit comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Basis {
    /// Kind.
    pub kind: BasisKind,
    /// Source in words: file and line, dataset, "median of 7 peers".
    pub source: String,
}

/// The limit of a requirement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// In the requirement's unit.
    pub value: f64,
    /// What it rests on.
    pub basis: Basis,
}

/// A measured value with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Median over blocks.
    pub median: f64,
    /// Expanded uncertainty U (k = 2), same unit.
    pub uncertainty: f64,
    /// 5th percentile of the blocks.
    pub p05: f64,
    /// 95th percentile of the blocks.
    pub p95: f64,
    /// Blocks taken.
    pub blocks: u32,
    /// Blocks after the autocorrelation correction.
    pub effective_blocks: f64,
    /// Relative drift over the run, end against start.
    pub drift: f64,
}

/// A value the result is set against without deciding: vendor figure, same-run ceiling, band.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// What it is, e.g. message id `share.figure`, with its source.
    pub of: Message,
    /// The reference value.
    pub value: f64,
    /// median / value.
    pub ratio: f64,
}

/// A demand applied to one unit of this inventory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// Unique: `demand/case`.
    pub id: String,
    /// Domain for grouping: compute, memory, link, storage, interference, identity, integrity.
    pub domain: String,
    /// Metric id, or `verified`, `complete`, `count`, `model`.
    pub metric: String,
    /// Parameters and labels that tell it apart, e.g. type=fp32.
    pub labels: BTreeMap<String, String>,
    /// Devices it is about.
    pub devices: Vec<DeviceId>,
    /// Gate or graded.
    pub class: Class,
    /// Unit of the values.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// The limit, if there is one.
    pub limit: Option<Limit>,
    /// What was measured, if anything.
    pub measured: Option<Estimate>,
    /// Context values.
    pub shares: Vec<Share>,
    /// Šidák factor k used for `fail`.
    pub k: f64,
    /// Smallest relative shortfall that this measurement would have failed.
    pub detectable: Option<f64>,
    /// Parts of an arithmetic shortfall, where it is one and they are observable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// The conclusion.
    pub status: Status,
    /// Why, for every status other than pass and fail.
    pub reason: Option<Message>,
}

impl Requirement {
    /// Metric with the parameters and labels that tell it apart, e.g. `gemm.throughput n=8192 type=fp16`.
    pub fn title(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(n, v)| format!("{n}={v}")).collect();
        format!("{} {}", self.metric, labels.join(" ")).trim().to_owned()
    }
    /// How far the median is on the wrong side of the limit, relative; positive = short. `None` without limit or value.
    pub fn shortfall(&self) -> Option<f64> {
        let (limit, measured) = (self.limit.as_ref()?.value, self.measured?.median);
        let short = match self.better {
            Better::Higher => (limit - measured) / limit,
            Better::Lower => (measured - limit) / limit,
        };
        short.is_finite().then_some(short)
    }
}

/// Who can fix a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FixBy {
    /// The provider.
    Provider,
    /// The renter.
    Renter,
    /// Either.
    Either,
}

/// A pointer into the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// JSON pointer into `record.json`.
    pub pointer: String,
    /// What is there.
    pub message: Message,
}

/// One judged statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable code, e.g. `GA-THERM-01`.
    pub code: String,
    /// Devices it is about.
    pub devices: Vec<DeviceId>,
    /// What was observed.
    pub observed: Message,
    /// Why it matters.
    pub why: Message,
    /// Where it can be seen.
    pub evidence: Vec<Evidence>,
    /// Other explanations that were checked.
    pub ruled_out: Vec<Message>,
    /// What to ask or do.
    pub ask: Message,
    /// Who can fix it.
    pub fix_by: FixBy,
    /// Size of the effect, relative, where it can be stated.
    pub effect: Option<f64>,
    /// Ids of requirements it explains.
    pub requirements: Vec<String>,
}

/// Something that was asked for and not tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotTested {
    /// Case or demand.
    pub id: String,
    /// Why.
    pub reason: Message,
}

/// The judged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assessment {
    /// Format version, [`ASSESSMENT_FORMAT`].
    pub format: u32,
    /// Id of the record.
    pub record: String,
    /// Version of the judging tool.
    pub judged_by: String,
    /// The verdict.
    pub verdict: Verdict,
    /// One sentence of at most 25 words: the reason for the verdict with the largest shortfall and its place.
    pub headline: Message,
    /// Trust in the run.
    pub validity: Validity,
    /// Why, if not `valid`.
    pub validity_reasons: Vec<Message>,
    /// All requirements, in the suite's order.
    pub requirements: Vec<Requirement>,
    /// Findings, gravest first.
    pub findings: Vec<Finding>,
    /// What the price buys, where the offer states one.
    pub money: Option<super::money::Money>,
    /// Results of GPUs among published measurements of the same model and conditions: context, never a limit.
    #[serde(default)]
    pub normal: Vec<super::normal::Placed>,
    /// Where no offer was given: the instance type that the machine says it is, a proposal that nothing was held against.
    #[serde(default)]
    pub proposed_instance: Option<String>,
    /// What the offer claims, against the vendor's figures; context, never a limit.
    pub claims: Vec<super::claim::CheckedClaim>,
    /// Asked for, not tested.
    pub not_tested: Vec<NotTested>,
    /// Numbers that no limit applied to; the banner says so if there is any.
    pub not_compared: u32,
    /// True if anything was simulated.
    pub simulated: bool,
}
