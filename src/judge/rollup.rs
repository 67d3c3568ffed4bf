//! From settled requirements to the verdict and its one sentence.

use super::draft::Draft;
use super::facts::Facts;
use super::{Argument, Class, Finding, Message, Requirement, Status, Validity, Verdict};
use crate::record::{DeviceId, RunEnd};

/// Any gate `fail` → not accepted: in an invalid run only gates about what the invalidity does not put in doubt can fail
/// (see `Draft::settle`). Else any gate conditionally failed, inconclusive or not tested, or an invalid run →
/// inconclusive. Else any gate conditionally passed, or any graded requirement below pass or open → accepted with
/// reservations. Else accepted. A run that was interrupted or in which no gate passed is never accepted.
pub fn verdict(requirements: &[Requirement], validity: Validity, end: RunEnd) -> Verdict {
    let any = |class: Class, statuses: &[Status]| {
        requirements.iter().any(|r| r.class == class && statuses.contains(&r.status))
    };
    let open = [Status::ConditionalFail, Status::Inconclusive, Status::NotTested];
    let below_pass =
        [Status::ConditionalPass, Status::ConditionalFail, Status::Fail, Status::Inconclusive, Status::NotTested];
    if any(Class::Gate, &[Status::Fail]) {
        Verdict::NotAccepted
    } else if any(Class::Gate, &open)
        || validity == Validity::Invalid
        || end != RunEnd::Complete
        || !any(Class::Gate, &[Status::Pass])
    {
        Verdict::Inconclusive
    } else if any(Class::Gate, &[Status::ConditionalPass]) || any(Class::Graded, &below_pass) {
        Verdict::AcceptedWithReservations
    } else {
        Verdict::Accepted
    }
}

/// Gates that are missing: every selected device needs one passed gate for compute and one for memory that says more than
/// that something ran. Where none passed and none refuses already, this one does.
pub fn coverage(facts: &Facts<'_>, settled: &[Requirement]) -> Vec<Requirement> {
    let mut missing = Vec::new();
    let gate = |id: String, domain: &str, devices: &[DeviceId], reason: &str| {
        let draft = Draft::fact(id, domain, "evidence", devices, Class::Gate);
        draft.with(Status::NotTested, Some(Message::new(reason))).requirement
    };
    for device in &facts.record.inventory.selected {
        for domain in ["compute", "memory"] {
            let says_something = |r: &&Requirement| {
                r.class == Class::Gate
                    && r.domain == domain
                    && r.metric != "complete"
                    && r.devices == std::slice::from_ref(device)
                    && !matches!(r.status, Status::NotApplicable | Status::ConditionalPass)
            };
            if !settled.iter().any(|r| says_something(&r)) {
                let id = format!("evidence-{domain}/{device}");
                missing.push(gate(id, domain, std::slice::from_ref(device), "reason.no_evidence"));
            }
        }
    }
    if facts.record.inventory.selected.is_empty() {
        missing.push(gate("evidence".to_owned(), "integrity", &[], "reason.no_device"));
    }
    missing
}

/// The reason for the verdict in one sentence: the largest shortfall and its place, or what is open.
pub fn headline(
    facts: &Facts<'_>,
    verdict: Verdict,
    validity: Validity,
    reasons: &[Message],
    requirements: &[Requirement],
    not_compared: u32,
) -> Message {
    let gates = requirements.iter().filter(|r| r.class == Class::Gate && r.status != Status::NotApplicable);
    let gates: Vec<&Requirement> = gates.collect();
    let total = gates.len() as u64;
    let of = |statuses: &[Status]| {
        gates.iter().copied().filter(|r| statuses.contains(&r.status)).collect::<Vec<&Requirement>>()
    };
    match verdict {
        Verdict::NotAccepted => not_accepted(&of(&[Status::Fail]), total, validity),
        Verdict::Inconclusive => {
            let open = of(&[Status::ConditionalFail, Status::Inconclusive, Status::NotTested]);
            inconclusive(facts, validity, reasons, &open, total)
        }
        Verdict::AcceptedWithReservations => {
            let below = requirements.iter().filter(|r| !matches!(r.status, Status::Pass | Status::NotApplicable));
            let below: Vec<&Requirement> = below.collect();
            let message = Message::new("judge.headline.reservations").with("gates", total);
            let message = message.with("count", below.len() as u64);
            match worst(&below) {
                Some(r) => message.with("what", what(r)).with("where", place(r)),
                None => message.with("what", "–").with("where", "–"),
            }
        }
        Verdict::Accepted if not_compared > 0 => Message::new("judge.headline.accepted_not_compared")
            .with("gates", total)
            .with("count", u64::from(not_compared)),
        Verdict::Accepted => Message::new("judge.headline.accepted").with("gates", total),
    }
}

fn not_accepted(failed: &[&Requirement], total: u64, validity: Validity) -> Message {
    let count = failed.len() as u64;
    let Some(first) = worst(failed) else { return Message::new("judge.headline.not_accepted_plain") };
    // Limits that are not measured values have no shortfall to speak of.
    let short = first.measured.and(first.shortfall()).filter(|s| *s > 0.0);
    let id = match (validity, short) {
        (Validity::Invalid, _) => "judge.headline.not_accepted_invalid",
        (_, Some(_)) => "judge.headline.not_accepted_short",
        (_, None) => "judge.headline.not_accepted",
    };
    let message = Message::new(id)
        .with("count", count)
        .with("gates", total)
        .with("what", what(first))
        .with("where", place(first));
    match short.filter(|_| validity != Validity::Invalid) {
        Some(short) => message.with("short", Argument::Ratio(short)),
        None => message,
    }
}

fn inconclusive(
    facts: &Facts<'_>,
    validity: Validity,
    reasons: &[Message],
    open: &[&Requirement],
    total: u64,
) -> Message {
    if facts.record.run.end != RunEnd::Complete {
        return Message::new("judge.headline.interrupted");
    }
    if facts.record.inventory.selected.is_empty() || facts.cases.iter().all(|c| c.measurement().is_none()) {
        return Message::new("judge.headline.nothing");
    }
    if let (Validity::Invalid, Some(reason)) = (validity, reasons.first()) {
        return Message::new("judge.headline.invalid").with("reason", Message::new(&headline_id(reason)));
    }
    let Some(first) = open.first() else { return Message::new("judge.headline.open_plain") };
    Message::new("judge.headline.open")
        .with("count", open.len() as u64)
        .with("gates", total)
        .with("what", what(first))
        .with("where", place(first))
}

/// The short form of a validity reason.
fn headline_id(reason: &Message) -> String {
    reason.id.replace("judge.invalid.", "judge.invalid_short.")
}

/// The requirement with the largest measured shortfall, else the first.
fn worst<'r>(requirements: &[&'r Requirement]) -> Option<&'r Requirement> {
    let short = |r: &Requirement| r.measured.and(r.shortfall()).unwrap_or(f64::NEG_INFINITY);
    // `max_by` keeps the last of equals: reversed, the first in report order wins.
    requirements.iter().rev().copied().max_by(|a, b| short(a).total_cmp(&short(b)))
}

/// Metric with the parameters that tell it apart, short.
pub fn what(r: &Requirement) -> String {
    let labels: Vec<&str> = r.labels.values().map(String::as_str).take(3).collect();
    format!("{} {}", r.metric, labels.join(" ")).trim().to_owned()
}

fn place(r: &Requirement) -> Argument {
    match r.devices.as_slice() {
        [] => Message::new("place.machine").into(),
        [one] => one.to_string().into(),
        [first, rest @ ..] => format!("{first} +{}", rest.len()).into(),
    }
}

/// Findings by gravity: those that explain a failed gate, then open gates, then graded shortfalls, then the rest; within
/// one by effect.
pub fn order(findings: &mut [Finding], requirements: &[Requirement]) {
    let gravity = |f: &Finding| {
        let of = requirements.iter().filter(|r| f.requirements.contains(&r.id));
        of.map(|r| match (r.class, r.status) {
            (Class::Gate, Status::Fail) => 3,
            (Class::Gate, Status::Pass | Status::NotApplicable) => 0,
            (Class::Gate, _) => 2,
            (Class::Graded, Status::Pass | Status::NotApplicable) => 0,
            (Class::Graded, _) => 1,
        })
        .max()
        .unwrap_or(0)
    };
    findings.sort_by(|a, b| {
        let effect = |f: &Finding| f.effect.unwrap_or(0.0).abs();
        gravity(b).cmp(&gravity(a)).then(effect(b).total_cmp(&effect(a)))
    });
}
