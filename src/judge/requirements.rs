//! Demands × series → requirements: every rule of the suite and every guarantee of the offer, applied to every unit.

use std::collections::BTreeMap;

use super::draft::{Draft, limit, unmeasured};
use super::facts::{CaseFacts, CaseOutcome, Facts, domain, values};
use super::{Basis, BasisKind, Class, Limit, Message, Status};
use crate::offer::Guarantee;
use crate::record::{Better, CaseErrorKind, DeviceId, DeviceInfo, DeviceKind, Series, Verified};
use crate::spec::{Band, Strength};
use crate::stats;
use crate::suite::{Demand, LimitRule, Subject};

/// Weak bands are evidence of few units: their gate stands at this share of `fail_below`.
const WEAK_BAND: f64 = 0.9;

/// Identical devices needed before one of them can be called slower than its peers.
pub const PEERS_NEEDED: usize = 3;

/// Everything demanded, in order: the offer's guarantees, the suite's demands, and wrong results no demand asks about.
pub fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let mut drafts = guarantees(facts);
    for demand in &facts.suite.demands {
        drafts.extend(of_demand(facts, demand));
    }
    drafts.extend(undemanded_peers(facts));
    drafts.extend(undemanded_errors(facts));
    drafts
}

fn class(gate: bool) -> Class {
    if gate { Class::Gate } else { Class::Graded }
}

fn of_demand(facts: &Facts<'_>, demand: &Demand) -> Vec<Draft> {
    // Guarantees come from the offer; the demand only lends them its name and cap.
    if demand.limit == LimitRule::Guarantee {
        return Vec::new();
    }
    let cases: Vec<&CaseFacts<'_>> = facts.cases.iter().filter(|c| is_about(facts, demand, c)).collect();
    if cases.is_empty() {
        return nothing_to_judge(facts, demand);
    }
    cases.iter().flat_map(|case| of_case(facts, demand, case)).collect()
}

fn is_about(facts: &Facts<'_>, demand: &Demand, case: &CaseFacts<'_>) -> bool {
    let benchmark = match &demand.subject {
        Subject::Benchmark(b) => b.as_str(),
        Subject::Metric(m) => m.split('.').next().unwrap_or(m),
    };
    case.benchmark == benchmark && facts.is_on(demand.on, case.devices) && facts.may_match(case, &demand.filter)
}

/// A correctness or completeness rule that no case of the run answers to, although a selected device is meant: not tested.
fn nothing_to_judge(facts: &Facts<'_>, demand: &Demand) -> Vec<Draft> {
    let meant: Vec<DeviceId> = facts
        .selected()
        .filter(|d| facts.is_on(demand.on, std::slice::from_ref(&d.id)))
        .map(|d| d.id.clone())
        .collect();
    let is_limitless = matches!(demand.limit, LimitRule::Peers | LimitRule::SameRun | LimitRule::Band);
    if meant.is_empty() || is_limitless {
        return Vec::new();
    }
    let (name, domain) = match &demand.subject {
        Subject::Benchmark(b) | Subject::Metric(b) => (b, domain(b.split('.').next().unwrap_or(b))),
    };
    let draft = Draft::fact(demand.id.clone(), domain, name, &meant, class(demand.gate));
    vec![draft.with(Status::NotTested, Some(Message::new("reason.no_case")))]
}

fn of_case(facts: &Facts<'_>, demand: &Demand, case: &CaseFacts<'_>) -> Vec<Draft> {
    match demand.limit {
        LimitRule::Correct => vec![correct(facts, &demand.id, case, class(demand.gate))],
        LimitRule::Complete => vec![complete(facts, &demand.id, case, class(demand.gate))],
        LimitRule::Guarantee => Vec::new(),
        LimitRule::Peers => {
            let Subject::Metric(metric) = &demand.subject else { return Vec::new() };
            let series = case.series(metric).filter(|s| case.matches(&demand.filter, &s.labels));
            series.filter_map(|s| with_peers(&demand.id, facts, case, s, class(demand.gate), demand.cap)).collect()
        }
        LimitRule::SameRun => each_series(facts, demand, case, |_| Some((Class::Graded, None, ""))),
        LimitRule::Band => bands(facts, demand, case),
    }
}

/// One requirement per series of the demanded metric for which `limit` gives class, limit and id suffix; one unmeasured
/// requirement if the case has no numbers.
fn each_series<'s>(
    facts: &Facts<'_>,
    demand: &Demand,
    case: &'s CaseFacts<'_>,
    limit: impl Fn(&'s Series) -> Option<(Class, Option<Limit>, &'static str)>,
) -> Vec<Draft> {
    let Subject::Metric(metric) = &demand.subject else { return Vec::new() };
    let series = case.series(metric).filter(|s| case.matches(&demand.filter, &s.labels));
    let judged = series.filter_map(|s| {
        let (class, limit, suffix) = limit(s)?;
        let id = format!("{}{suffix}", demand.id);
        Some(Draft::of_series(&id, facts, case, s, class, limit, demand.cap))
    });
    judged.collect()
}

/// Right results with proof of work. A gate passes only on a measured case with at least one check that agreed.
fn correct(facts: &Facts<'_>, demand: &str, case: &CaseFacts<'_>, class: Class) -> Draft {
    let mut draft = Draft::of_case(demand, case, "verified", class);
    draft.requirement.limit =
        Some(Limit { value: 0.0, basis: Basis { kind: BasisKind::Correctness, source: "no wrong result".to_owned() } });
    if case.wrong().is_some() {
        return draft.with(Status::Fail, None);
    }
    let Some(measurement) = case.measurement() else { return draft.unmeasured(facts, case) };
    let verification = &measurement.verification;
    match &verification.verified {
        _ if verification.checks == 0 => draft.with(Status::NotTested, Some(Message::new("reason.unverified"))),
        // Nothing was shown to be right: that is no pass, and asking for it was not out of place.
        Verified::NotApplicable { reason } => {
            let message = Message::new("reason.nothing_to_verify").with("text", reason.as_str());
            draft.with(Status::NotTested, Some(message))
        }
        _ if verification.worst.is_some_and(|w| w.is_nan() || w >= 1.0) => {
            draft.open(Message::new("reason.unverified"))
        }
        _ => draft.with(Status::Pass, None),
    }
}

/// The case was measured. Only a lost device counts against the device; whatever else stopped the case may be ours.
fn complete(facts: &Facts<'_>, demand: &str, case: &CaseFacts<'_>, class: Class) -> Draft {
    let mut draft = Draft::of_case(demand, case, "complete", class);
    draft.requirement.limit = Some(Limit {
        value: 1.0,
        basis: Basis { kind: BasisKind::Completeness, source: "the case is measured to its end".to_owned() },
    });
    match case.outcome {
        CaseOutcome::Measured(_) if case.primary().is_some_and(|s| !s.blocks.is_empty()) => {
            draft.with(Status::Pass, None)
        }
        CaseOutcome::Failed(error, _) if error.kind == CaseErrorKind::DeviceLost => match facts.any_foreign_load() {
            // Another process of the renter may have reset it.
            true => draft.open(Message::new("reason.foreign_load")),
            false => draft.with(Status::Fail, Some(unmeasured(facts, case).1)),
        },
        _ => draft.unmeasured(facts, case),
    }
}

// ---- guarantees --------------------------------------------------------------------------------

/// Every guarantee of the offer as a gate on every unit it is about, whether or not the suite has a line for it.
fn guarantees(facts: &Facts<'_>) -> Vec<Draft> {
    let Some(offer) = facts.offer else { return Vec::new() };
    let mut drafts: Vec<Draft> = offer.guarantees.iter().flat_map(|g| guarantee(facts, g)).collect();
    // Two guarantees for one series: both stand, under different ids.
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for draft in &mut drafts {
        let count = seen.entry(draft.requirement.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            draft.requirement.id = format!("{}#{count}", draft.requirement.id);
        }
    }
    drafts
}

fn guarantee(facts: &Facts<'_>, guarantee: &Guarantee) -> Vec<Draft> {
    let benchmark = guarantee.metric.split('.').next().unwrap_or(&guarantee.metric);
    let is_for_gpus = sells_gpus(facts) && !benchmark.starts_with("storage");
    // A promise about memory is about the memory, not about a cache, unless it names a size.
    let sizes = facts.cases.iter().filter(|c| c.benchmark == "memory_latency").filter_map(|c| c.params.int("size"));
    let largest = sizes.max();
    let reads_cache = |c: &CaseFacts<'_>| {
        let size = c.params.int("size");
        !guarantee.filter.contains_key("size")
            && match benchmark {
                "memory_bandwidth" => size.is_some(),
                "memory_latency" => size != largest,
                _ => false,
            }
    };
    let is_meant = |c: &&CaseFacts<'_>| {
        let on_gpus = c.devices.iter().filter_map(|d| facts.device(d)).all(|d| d.kind == DeviceKind::Gpu);
        // A case that was left out has no state yet.
        let is_in_state = guarantee.state.is_none() || c.state.is_none() || c.state == guarantee.state;
        c.benchmark == benchmark
            && is_in_state
            && facts.may_match(c, &guarantee.filter)
            && !reads_cache(c)
            && (on_gpus || !is_for_gpus)
    };
    let drafts: Vec<Draft> =
        facts.cases.iter().filter(is_meant).flat_map(|c| guarantee_on(facts, guarantee, c)).collect();
    if drafts.is_empty() {
        let devices: Vec<DeviceId> = facts.selected().map(|d| d.id.clone()).collect();
        let id = format!("guarantee-line-{}", guarantee.line);
        let draft = Draft::fact(id, domain(benchmark), &guarantee.metric, &devices, Class::Gate);
        return vec![draft.with(Status::NotTested, Some(Message::new("reason.no_case")))];
    }
    drafts
}

/// True if the offer is about GPUs: what it guarantees about compute, memory and links is then not about the host.
pub fn sells_gpus(facts: &Facts<'_>) -> bool {
    facts.offer.is_some_and(|o| o.model.is_some() || o.count.is_some() || o.memory.is_some())
}

fn guarantee_on(facts: &Facts<'_>, guarantee: &Guarantee, case: &CaseFacts<'_>) -> Vec<Draft> {
    let demand = facts.suite.demands.iter().find(|d| {
        d.limit == LimitRule::Guarantee
            && d.subject == Subject::Metric(guarantee.metric.clone())
            && is_about(facts, d, case)
    });
    let (id, cap) = match demand {
        Some(demand) => (demand.id.clone(), demand.cap),
        None => (format!("guarantee-line-{}", guarantee.line), default_cap(domain(case.benchmark))),
    };
    let source = facts.offer.map_or("", |o| o.source.name.as_str());
    let basis = Basis { kind: BasisKind::Guarantee, source: format!("{source}:{}", guarantee.line) };
    let bound = Limit { value: guarantee.value.value, basis };
    // Other units are other things (int8 counts OP/s): the promise is not about them.
    let is_meant = |s: &&Series| s.unit == guarantee.value.unit && case.matches(&guarantee.filter, &s.labels);
    let series: Vec<&Series> = case.series(&guarantee.metric).filter(is_meant).collect();
    let is_of_other_unit = case.series(&guarantee.metric).any(|s| s.unit != guarantee.value.unit);
    if series.is_empty() && is_of_other_unit {
        return Vec::new();
    }
    if series.is_empty() {
        let mut draft = Draft::of_case(&id, case, &guarantee.metric, Class::Gate).unmeasured(facts, case);
        // A promise does not stop to apply because the device cannot keep it.
        if draft.requirement.status == Status::NotApplicable {
            draft.requirement.status = Status::NotTested;
        }
        (draft.requirement.unit, draft.requirement.limit) = (guarantee.value.unit, Some(bound));
        return vec![draft];
    }
    let judge = |s| Draft::of_series(&id, facts, case, s, Class::Gate, Some(bound.clone()), cap);
    series.into_iter().map(judge).collect()
}

/// Caps of design §6, for guarantees the suite has no line for.
fn default_cap(domain: &str) -> f64 {
    match domain {
        "compute" | "memory" => 0.01,
        "link" => 0.02,
        _ => 0.05,
    }
}

// ---- bands -------------------------------------------------------------------------------------

/// Two requirements per band: the gate at `fail_below`, the graded one at `pass_from`.
fn bands(facts: &Facts<'_>, demand: &Demand, case: &CaseFacts<'_>) -> Vec<Draft> {
    if case.measurement().is_none() {
        let Subject::Metric(metric) = &demand.subject else { return Vec::new() };
        // Whether it was measured at all is the completeness demand's question.
        let has_band = case.devices.first().is_some_and(|d| !bands_of(facts, d, metric).is_empty());
        let draft = Draft::of_case(&demand.id, case, metric, class(demand.gate));
        return if has_band { vec![draft.unmeasured(facts, case)] } else { Vec::new() };
    }
    let gate = each_series(facts, demand, case, |s| match band(facts, case, s) {
        Some(band) => {
            let share = if band.strength == Strength::Weak { WEAK_BAND } else { 1.0 };
            let factor = if s.better == Better::Higher { share } else { 1.0 / share };
            let class = class(demand.gate && band.can_gate(s.state));
            Some((class, limit(band.fail_below * factor, basis(band), band.basis()), ""))
        }
        None => Some((Class::Graded, None, "")),
    });
    let graded = each_series(facts, demand, case, |s| {
        let band = band(facts, case, s)?;
        Some((Class::Graded, limit(band.pass_from, basis(band), band.basis()), "-healthy"))
    });
    gate.into_iter().chain(graded).collect()
}

/// Borrowed evidence says so.
fn basis(band: &Band) -> BasisKind {
    if band.own { BasisKind::Band } else { BasisKind::ClassBand }
}

fn bands_of<'a>(facts: &Facts<'a>, device: &DeviceId, metric: &str) -> Vec<&'a Band> {
    // A slice delivers a share of what whole units of its model do.
    let whole = facts.device(device).filter(|d| facts.slice(d).is_none());
    let spec = whole.and_then(|d| d.spec.as_deref());
    spec.map_or_else(Vec::new, |gpu| facts.table.bands().of_gpu(gpu).iter().filter(|b| b.metric == metric).collect())
}

/// The band of a series: same model, metric, unit and conditions.
fn band<'a>(facts: &Facts<'a>, case: &CaseFacts<'_>, series: &Series) -> Option<&'a Band> {
    let [device] = case.devices else { return None };
    let all = bands_of(facts, device, &series.metric.0);
    all.into_iter().find(|b| fits(b, case, series))
}

/// True if the series was measured under the conditions of the band.
pub fn fits(band: &Band, case: &CaseFacts<'_>, series: &Series) -> bool {
    band.unit == series.unit
        && band.conditions.hold(case.params)
        && case.matches(&band.conditions.words, &series.labels)
}

// ---- peers -------------------------------------------------------------------------------------

/// True if two devices should deliver the same.
pub fn is_identical(a: &DeviceInfo, b: &DeviceInfo) -> bool {
    let close = (a.memory.0 / b.memory.0 - 1.0).abs() < 0.01 || a.memory == b.memory;
    a.id.backend == b.id.backend && a.kind == b.kind && a.name == b.name && a.spec == b.spec && close
}

/// Medians of the same series on devices identical to that of `case`, itself left out; only speeds that count, that the
/// same engine measured, and in the same company: all devices at once, or each alone.
pub fn peer_medians(facts: &Facts<'_>, case: &CaseFacts<'_>, series: &Series) -> Vec<(DeviceId, f64)> {
    peers_of_any_engine(facts, case, series)
        .into_iter()
        .filter(|(other, ..)| has_same_engine(other, case))
        .map(|(_, id, median)| (id, median))
        .collect()
}

/// As [`peer_medians`], whatever engine measured them.
fn peers_of_any_engine<'f, 'a>(
    facts: &'f Facts<'a>,
    case: &CaseFacts<'_>,
    series: &Series,
) -> Vec<(&'f CaseFacts<'a>, DeviceId, f64)> {
    let [own] = case.devices else { return Vec::new() };
    let Some(device) = facts.device(own) else { return Vec::new() };
    let mut medians = Vec::new();
    for other in &facts.cases {
        let [id] = other.devices else { continue };
        let is_peer = id != own
            && other.benchmark == case.benchmark
            && other.params == case.params
            && is_alone(other) == is_alone(case)
            && facts.device(id).is_some_and(|d| is_identical(d, device));
        if !is_peer || facts.void(other).is_some() {
            continue;
        }
        let same = other.series(&series.metric.0).find(|s| s.labels == series.labels && s.unit == series.unit);
        let median = same.map_or(f64::NAN, |s| stats::median(&values(s)));
        if median.is_finite() && median > 0.0 {
            medians.push((other, id.clone(), median));
        }
    }
    medians
}

/// Measured while the other devices did nothing.
fn is_alone(case: &CaseFacts<'_>) -> bool {
    case.id.0.ends_with("/alone")
}

fn has_same_engine(a: &CaseFacts<'_>, b: &CaseFacts<'_>) -> bool {
    let engine = |case: &CaseFacts<'_>| {
        let engine = &case.measurement()?.engine;
        Some((engine.name.clone(), engine.version.clone(), engine.kind))
    };
    engine(a) == engine(b)
}

/// The limit peers set: their median, less their own spread (modified z-score 3.5, as for outliers) but at least the
/// metric's cap, below which two results do not count as different. The spread defines the limit and never enters U.
fn peers(facts: &Facts<'_>, case: &CaseFacts<'_>, series: &Series, cap: f64) -> Option<Limit> {
    let medians: Vec<f64> = peer_medians(facts, case, series).into_iter().map(|(_, m)| m).collect();
    if medians.len() + 1 < PEERS_NEEDED {
        return None;
    }
    let center = stats::median(&medians);
    let spread = (stats::MODIFIED_Z_LIMIT * stats::mad(&medians) / 0.6745).max(cap * center);
    let value = match series.better {
        Better::Higher => center - spread,
        Better::Lower => center + spread,
    };
    if value <= 0.0 {
        // Peers this far apart set no limit; each of them is compared with the others.
        return None;
    }
    let allowed = 100.0 * spread / center;
    limit(value, BasisKind::Peers, format!("median of {} identical devices, allowing {allowed:.1} %", medians.len()))
}

/// One series against its peers; not tested where there are enough of them and other engines measured them.
fn with_peers(
    id: &str,
    facts: &Facts<'_>,
    case: &CaseFacts<'_>,
    series: &Series,
    class: Class,
    cap: f64,
) -> Option<Draft> {
    if let Some(bound) = peers(facts, case, series, cap) {
        return Some(Draft::of_series(id, facts, case, series, class, Some(bound), cap));
    }
    let same = peer_medians(facts, case, series).len();
    let all = peers_of_any_engine(facts, case, series).len();
    (same + 1 < PEERS_NEEDED && all + 1 >= PEERS_NEEDED).then(|| {
        let reason = Message::new("reason.other_engine").with("count", (all - same) as u64);
        Draft::of_series(id, facts, case, series, class, None, cap).with(Status::NotTested, Some(reason))
    })
}

/// Metrics whose peers are compared even if the suite does not ask: peers are always looked at.
const ALWAYS_COMPARED: [&str; 3] = ["gemm.throughput", "memory_bandwidth.rate", "host_link.rate"];

fn undemanded_peers(facts: &Facts<'_>) -> Vec<Draft> {
    let is_demanded = |case: &CaseFacts<'_>, metric: &str| {
        facts.suite.demands.iter().any(|d| {
            d.limit == LimitRule::Peers && d.subject == Subject::Metric(metric.to_owned()) && is_about(facts, d, case)
        })
    };
    let mut drafts = Vec::new();
    for case in &facts.cases {
        for metric in ALWAYS_COMPARED {
            let cap = default_cap(domain(case.benchmark));
            for series in case.series(metric).filter(|_| !is_demanded(case, metric)) {
                drafts.extend(with_peers("peers", facts, case, series, Class::Graded, cap));
            }
        }
    }
    drafts
}

/// Wrong results in cases that no correctness demand is about: a gate of their own. Nothing wrong is ever overlooked.
fn undemanded_errors(facts: &Facts<'_>) -> Vec<Draft> {
    let is_demanded = |case: &CaseFacts<'_>| {
        facts.suite.demands.iter().any(|d| d.limit == LimitRule::Correct && is_about(facts, d, case))
    };
    let wrong = facts.cases.iter().filter(|c| c.wrong().is_some() && !is_demanded(c));
    wrong.map(|c| correct(facts, "correct", c, Class::Gate)).collect()
}
