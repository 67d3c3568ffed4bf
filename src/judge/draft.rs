//! A requirement before the run's Šidák factor is known, and how it is settled.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{CaseFacts, CaseOutcome, Facts, domain, estimate, values};
use super::rule::{Against, Open, Value, decide};
use super::{Argument, BasisKind, Class, Limit, Message, Requirement, Share, Status, Validity};
use crate::record::{Better, CaseErrorKind, DeviceId, EngineKind, Series, ThermalState};
use crate::stats;
use crate::unit::{Quantity, Unit};

/// A requirement whose status may still wait for the rule.
pub struct Draft {
    /// As far as known; `k`, `detectable` and a waiting status are filled in by [`Draft::settle`].
    pub requirement: Requirement,
    /// What the rule needs, if it is to decide.
    pub pending: Option<Pending>,
}

/// What the rule needs beside limit and estimate.
pub struct Pending {
    /// Largest U/y at which a conditional result stands.
    pub cap: f64,
    /// What the engine's reading may decide.
    pub engine: EngineKind,
    /// Name of the engine, for the reason.
    pub engine_name: String,
    /// Why a shortfall does not count against the device, if so.
    pub excuse: Option<Message>,
}

impl Draft {
    /// A requirement about devices as such, with its status.
    pub fn fact(id: String, domain: &str, metric: &str, devices: &[DeviceId], class: Class) -> Draft {
        Draft {
            requirement: Requirement {
                id,
                domain: domain.to_owned(),
                metric: metric.to_owned(),
                labels: BTreeMap::new(),
                devices: devices.to_vec(),
                class,
                unit: Unit::Count,
                better: Better::Higher,
                limit: None,
                measured: None,
                shares: Vec::new(),
                k: 0.0,
                detectable: None,
                parts: None,
                status: Status::NotTested,
                reason: None,
            },
            pending: None,
        }
    }

    /// A requirement about a case, without limit or value.
    pub fn of_case(demand: &str, case: &CaseFacts<'_>, metric: &str, class: Class) -> Draft {
        let id = format!("{demand}/{}", case.id);
        let mut draft = Draft::fact(id, domain(case.benchmark), metric, case.devices, class);
        draft.requirement.labels = case.params.0.iter().map(|(n, v)| (n.clone(), v.to_string())).collect();
        draft
    }

    /// A requirement about one series of a measured case, waiting for the rule; settled at once where its speed is
    /// void or `limit` is absent.
    pub fn of_series(
        demand: &str,
        facts: &Facts<'_>,
        case: &CaseFacts<'_>,
        series: &Series,
        class: Class,
        limit: Option<Limit>,
        cap: f64,
    ) -> Draft {
        let mut draft = Draft::of_case(demand, case, &series.metric.0, class);
        let r = &mut draft.requirement;
        if !series.labels.is_empty() {
            let labels: Vec<String> = series.labels.iter().map(|(n, v)| format!("{n}={v}")).collect();
            r.id = format!("{}[{}]", r.id, labels.join(","));
            r.labels.extend(series.labels.clone());
        }
        (r.unit, r.better, r.limit) = (series.unit, series.better, limit);
        r.measured = estimate(series);
        r.shares = shares(facts, case, series);
        if let Some(void) = facts.void(case) {
            return draft.open(void);
        }
        if r.measured.is_none() {
            let values = values(series);
            let reason = match stats::median(&values).is_finite() {
                true => Message::new("reason.too_few_blocks").with("blocks", values.len() as u64),
                false => Message::new("reason.no_number"),
            };
            return draft.open(reason);
        }
        if r.limit.is_none() {
            return draft.with(Status::NotApplicable, Some(Message::new("reason.no_limit")));
        }
        // Few rounds are one moment of the machine, however little they scatter.
        let rounds = series.blocks.iter().map(|b| b.round).collect::<BTreeSet<u32>>().len() as u64;
        let needed = u64::from(facts.record.plan.rounds.min);
        if series.state == ThermalState::Warm && rounds < needed {
            return draft.open(Message::new("reason.too_few_rounds").with("rounds", rounds).with("needed", needed));
        }
        let engine = case.measurement().map(|m| &m.engine);
        draft.pending = Some(Pending {
            cap,
            engine: engine.map_or(EngineKind::LowOnly, |e| e.kind),
            engine_name: engine.map_or_else(String::new, |e| e.name.clone()),
            excuse: facts.foreign_load(case.devices).map(|_| Message::new("reason.foreign_load")),
        });
        draft
    }

    /// With this status and reason.
    pub fn with(mut self, status: Status, reason: Option<Message>) -> Draft {
        (self.requirement.status, self.requirement.reason) = (status, reason);
        self
    }

    /// Inconclusive for this reason.
    pub fn open(self, reason: Message) -> Draft {
        self.with(Status::Inconclusive, Some(reason))
    }

    /// With status and reason of a case that has no numbers.
    pub fn unmeasured(self, facts: &Facts<'_>, case: &CaseFacts<'_>) -> Draft {
        let (status, reason) = unmeasured(facts, case);
        self.with(status, Some(reason))
    }

    /// True if a healthy device could fail it by chance: these share the run's family error.
    pub fn is_statistical_gate(&self) -> bool {
        self.requirement.class == Class::Gate && self.pending.is_some()
    }

    /// Decides what waits, with the run's factor `k`. In an `invalid` run no shortfall of a rate or latency counts, on any
    /// device: which of two clocks is wrong, or what else a process of the renter slowed down, is not known.
    pub fn settle(mut self, k: f64, validity: Validity) -> Requirement {
        let r = &mut self.requirement;
        let (Some(pending), Some(limit), Some(measured)) = (&self.pending, &r.limit, r.measured) else {
            return self.requirement;
        };
        r.k = k;
        let detectable = k * measured.uncertainty / 2.0 / limit.value;
        r.detectable = (detectable.is_finite() && detectable > 0.0).then_some(detectable);
        let value = Value { median: measured.median, uncertainty: measured.uncertainty, drift: measured.drift };
        let against = Against { limit: limit.value, better: r.better, k, cap: pending.cap };
        // Peers are measured by the same engine: what it cannot reach, or what it adds, is the same for all of them.
        let engine = if limit.basis.kind == BasisKind::Peers { EngineKind::Decisive } else { pending.engine };
        let (status, open) = decide(value, against, engine);
        let doubt = (validity == Validity::Invalid).then(|| Message::new("reason.invalid_run"));
        let reason = match (status, pending.excuse.as_ref().or(doubt.as_ref())) {
            (Status::Fail | Status::ConditionalFail, Some(excuse)) => {
                (r.status, r.reason) = (Status::Inconclusive, Some(excuse.clone()));
                return self.requirement;
            }
            (Status::ConditionalPass, _) => Some(Message::new("reason.near_above")),
            (Status::ConditionalFail, _) => Some(Message::new("reason.near_below")),
            _ => open.map(|open| explain(open, value, pending)),
        };
        (r.status, r.reason) = (status, reason);
        self.requirement
    }
}

fn explain(open: Open, value: Value, pending: &Pending) -> Message {
    let ratio = Argument::Ratio;
    match open {
        Open::NoNumber => Message::new("reason.no_number"),
        Open::NoUncertainty => Message::new("reason.too_few_blocks").with("blocks", 0u64),
        Open::Noisy => Message::new("reason.unsteady")
            .with("uncertainty", ratio(value.uncertainty / value.median))
            .with("cap", ratio(pending.cap)),
        Open::Drifting => {
            Message::new("reason.drifting").with("drift", ratio(value.drift)).with("cap", ratio(pending.cap))
        }
        Open::EngineLow => Message::new("reason.engine_low").with("engine", pending.engine_name.as_str()),
        Open::EngineHigh => Message::new("reason.engine_high").with("engine", pending.engine_name.as_str()),
    }
}

/// Status and reason of a requirement whose case has no numbers to judge.
pub fn unmeasured(facts: &Facts<'_>, case: &CaseFacts<'_>) -> (Status, Message) {
    let text = |id: &str, text: &str| Message::new(id).with("text", text);
    match case.outcome {
        CaseOutcome::Unsupported(reason) => match promised_type(facts, case) {
            Some(data_type) => {
                (Status::NotTested, text("reason.unsupported_but_specified", reason).with("type", data_type))
            }
            None => (Status::NotApplicable, text("reason.unsupported", reason)),
        },
        CaseOutcome::Skipped(reason) => (Status::NotTested, text("reason.skipped", reason)),
        CaseOutcome::Absent => (Status::NotTested, Message::new("reason.absent")),
        CaseOutcome::Failed(error, _) => (Status::Inconclusive, text(failure(error.kind), &error.message)),
        CaseOutcome::Measured(_) => (Status::NotTested, Message::new("reason.no_series")),
    }
}

/// The reason that goes with a kind of failure.
fn failure(kind: CaseErrorKind) -> &'static str {
    match kind {
        CaseErrorKind::Hang => "reason.hang",
        CaseErrorKind::Crash => "reason.crash",
        CaseErrorKind::DeviceLost => "reason.device_lost",
        CaseErrorKind::OutOfMemory => "reason.out_of_memory",
        CaseErrorKind::Driver => "reason.driver",
        CaseErrorKind::Storage => "reason.storage",
        CaseErrorKind::NotANumber => "reason.not_a_number",
        CaseErrorKind::Aggressor => "reason.aggressor",
        CaseErrorKind::Internal => "reason.internal",
    }
}

/// The arithmetic type of a case that the model of its GPU has a figure for: saying "unsupported" then is missing
/// evidence, not an inapplicable demand.
fn promised_type(facts: &Facts<'_>, case: &CaseFacts<'_>) -> Option<&'static str> {
    let data_type = case.params.data_type()?.name();
    let has_figure = |spec: &crate::spec::GpuSpec| {
        spec.figures.keys().any(|f| f.strip_prefix(data_type).is_some_and(|rest| rest.starts_with('_')))
    };
    let specs = case.devices.iter().filter_map(|id| facts.spec(facts.device(id)?));
    specs.into_iter().any(has_figure).then_some(data_type)
}

/// A limit in the unit of the requirement.
pub fn limit(value: f64, kind: BasisKind, source: String) -> Option<Limit> {
    Some(Limit { value, basis: super::Basis { kind, source } })
}

/// Context values of a series: vendor figure and same-run ceilings. Nothing here decides.
fn shares(facts: &Facts<'_>, case: &CaseFacts<'_>, series: &Series) -> Vec<Share> {
    let y = stats::median(&values(series));
    let mut shares = Vec::new();
    let mut add = |of: Message, value: f64| {
        let ratio = y / value;
        if ratio.is_finite() && ratio > 0.0 {
            shares.push(Share { of, value, ratio });
        }
    };
    if !series.primary {
        return shares;
    }
    if let Some((name, quantity, model)) = figure(facts, case, series.unit) {
        add(Message::new("share.figure").with("figure", name).with("model", model), quantity.value);
    }
    if let Some(peak) = facts.fma_peak(case) {
        add(Message::new("share.fma_peak"), peak.median);
    }
    if let Some(best) = same_run_bandwidth(facts, case, series) {
        add(Message::new("share.bandwidth"), best);
    }
    shares
}

/// The vendor figure a case compares with, for one device: its name, value and model.
fn figure<'a>(facts: &Facts<'a>, case: &CaseFacts<'_>, unit: Unit) -> Option<(&'a str, Quantity, &'a str)> {
    let [device] = case.devices else { return None };
    let info = facts.device(device)?;
    if facts.slice(info).is_some() {
        return None;
    }
    let spec = facts.spec(info)?;
    let kinds: &[&str] = match case.benchmark {
        "gemm" => &["_tensor_fp32acc", "_tensor", "_matrix", "_vector"],
        "fma_peak" => &["_vector"],
        // A size below the plateau reads the cache, which the figure is not about.
        "memory_bandwidth" if case.params.int("size").is_none() => &[""],
        _ => return None,
    };
    let prefix = match case.params.data_type() {
        Some(t) => t.name(),
        None => "memory_bandwidth",
    };
    let name = kinds.iter().map(|k| format!("{prefix}{k}")).find(|name| spec.figure(name).is_some())?;
    let (key, figure) = spec.figures.get_key_value(&name)?;
    let value = spec.device_value(&name)?;
    (figure.value.unit == unit).then_some((key.as_str(), Quantity { value, unit }, spec.id.as_str()))
}

/// The fastest of the six ways to use memory, measured in the same run on the same CPU-type device at the same size.
fn same_run_bandwidth(facts: &Facts<'_>, case: &CaseFacts<'_>, series: &Series) -> Option<f64> {
    let is_cpu = |id: &DeviceId| facts.device(id).is_some_and(|d| d.kind == crate::record::DeviceKind::Cpu);
    if case.benchmark != "memory_bandwidth" || !case.devices.iter().all(is_cpu) {
        return None;
    }
    let same = facts.cases.iter().filter(|c| {
        c.benchmark == case.benchmark
            && c.devices == case.devices
            && c.params.0.get("size") == case.params.0.get("size")
    });
    let rates = same.filter_map(|c| c.primary()).filter(|s| s.unit == series.unit).map(|s| stats::median(&values(s)));
    rates.filter(|r| r.is_finite()).reduce(f64::max)
}
