//! Trust in the run itself, apart from the verdict.

use super::facts::{CLOCK_TOLERANCE, Facts};
use super::{Argument, Message, Validity};
use crate::record::Notice;

/// Whether the run can be trusted, with every reason against it and everything that could not be checked.
pub fn validity(facts: &Facts<'_>) -> (Validity, Vec<Message>) {
    let against = contradictions(facts);
    if !against.is_empty() {
        return (Validity::Invalid, against);
    }
    let is_clock_checked = facts.cases.iter().any(|c| Facts::clock_difference(c).is_some());
    let lost = facts.record.notices.iter().any(|n| matches!(n, Notice::NoTelemetry { .. }));
    let is_watched = !lost && facts.record.telemetry.series.iter().any(|s| !s.points.is_empty());
    let mut open = Vec::new();
    if !is_clock_checked {
        open.push(Message::new("judge.unchecked.clock"));
    }
    if !is_watched {
        open.push(Message::new("judge.unchecked.telemetry"));
    }
    // "Valid" says that the clocks agree: sensors alone cannot say that.
    match is_clock_checked {
        true => (Validity::Valid, open),
        false => (Validity::Unchecked, open),
    }
}

/// What speaks against the run: clocks apart, a device that changed, load of the renter, values above their ceiling.
fn contradictions(facts: &Facts<'_>) -> Vec<Message> {
    let mut reasons = Vec::new();
    let apart = facts.cases.iter().filter_map(Facts::clock_difference).filter(|d| *d > CLOCK_TOLERANCE);
    if let Some(worst) = apart.reduce(f64::max) {
        let shown = if worst.is_finite() { Argument::Ratio(worst) } else { "–".into() };
        reasons.push(Message::new("judge.invalid.clock").with("difference", shown));
    }
    for notice in &facts.record.notices {
        if let Notice::DeviceChanged { device, before, after } = notice {
            let message = Message::new("judge.invalid.changed").with("device", device.to_string());
            reasons.push(message.with("before", before.as_str()).with("after", after.as_str()));
        }
    }
    let used: Vec<_> = facts.cases.iter().flat_map(|c| c.devices).chain(&facts.record.inventory.selected).collect();
    for device in &facts.record.inventory.devices {
        if !used.contains(&&device.id) {
            continue;
        }
        if let Some((name, share)) = facts.foreign_load(std::slice::from_ref(&device.id)) {
            let shown = if share.is_finite() { Argument::Ratio(share) } else { "–".into() };
            let message = Message::new("judge.invalid.foreign").with("device", device.id.to_string());
            reasons.push(message.with("name", name).with("share", shown));
        }
    }
    let above = facts.cases.iter().filter_map(|c| Some((c, facts.above_ceiling(c)?)));
    if let Some((case, excess)) = above.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)) {
        let message = Message::new("judge.invalid.implausible").with("case", case.id.to_string());
        reasons.push(message.with("ratio", Argument::Ratio(excess.ratio)));
    }
    reasons
}
