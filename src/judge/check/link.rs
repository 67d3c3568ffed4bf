//! Host link: is it as wide as the model's?

use super::{Check, finding};
use crate::judge::draft::{Draft, limit};
use crate::judge::facts::{CaseFacts, Facts, estimate};
use crate::judge::{Argument, BasisKind, Class, Finding, FixBy, Requirement, Status};
use crate::record::{DeviceId, DeviceInfo, Series};
use crate::unit::{Quantity, Unit};

pub const CHECK: Check = Check {
    id: "link",
    summary: "transfers need more than half the width of the model's host link",
    requirements,
    findings,
};

/// Largest U/y at which a conditional result stands (links).
const CAP: f64 = 0.02;

/// Raw rate of the model's host link in one direction, in B/s, from generation and lanes.
fn raw_rate(facts: &Facts<'_>, device: &DeviceInfo) -> Option<f64> {
    let spec = facts.spec(device)?;
    let figure = |name: &str| spec.figure(name).map(|f| f.value.value);
    // Transfers per second and lane times the line code (PCI-SIG base specifications 1.0 to 6.0).
    let per_lane = match figure("pcie_generation")? as u32 {
        1 => 2.5e9 * 0.8,
        2 => 5e9 * 0.8,
        3 => 8e9 * 128.0 / 130.0,
        4 => 16e9 * 128.0 / 130.0,
        5 => 32e9 * 128.0 / 130.0,
        6 => 64e9 * 242.0 / 256.0,
        _ => return None,
    };
    Some(per_lane * figure("pcie_lanes")? / 8.0)
}

/// The fastest one-way transfer of page-locked memory on a device.
fn fastest<'f, 'a>(facts: &'f Facts<'a>, device: &DeviceId) -> Option<(&'f CaseFacts<'a>, &'a Series)> {
    let one_way = facts.cases.iter().filter(|c| {
        c.benchmark == "host_link"
            && c.devices == std::slice::from_ref(device)
            && matches!(c.params.word("direction"), Some("h2d" | "d2h"))
            && c.params.word("memory") != Some("pageable")
            && facts.void(c).is_none()
    });
    let rates = one_way.filter_map(|c| {
        let series = c.primary().filter(|s| s.unit == Unit::BytePerSecond)?;
        Some((c, series, estimate(series)?.median))
    });
    rates.max_by(|a, b| a.2.total_cmp(&b.2)).map(|(c, s, _)| (c, s))
}

/// Half the raw rate is what a link of half the width could carry: a healthy link must show more. Graded, because the
/// figures of links are rarely the vendor's own.
fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let of_device = |gpu: &DeviceInfo| {
        let half = raw_rate(facts, gpu)? / 2.0;
        let (case, series) = fastest(facts, &gpu.id)?;
        let bound = limit(
            half,
            BasisKind::Identity,
            format!("half the raw rate of the model's link, specs/{}", gpu.spec.as_deref()?),
        );
        let mut draft = Draft::of_series("link-width", facts, case, series, Class::Graded, bound, CAP);
        draft.requirement.id = format!("link-width/{}", gpu.id);
        Some(draft)
    };
    facts.gpus().filter_map(of_device).collect()
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let narrow = |gpu: &DeviceInfo| {
        let id = format!("link-width/{}", gpu.id);
        let own =
            requirements.iter().find(|r| r.id == id && matches!(r.status, Status::Fail | Status::ConditionalFail))?;
        let raw = raw_rate(facts, gpu)?;
        let rate = own.measured?.median;
        let (case, _) = fastest(facts, &gpu.id)?;
        let mut f = finding("GA-LINK-01", "narrow_link", std::slice::from_ref(&gpu.id), FixBy::Provider)
            .arg("rate", Quantity { value: rate, unit: Unit::BytePerSecond })
            .arg("raw", Quantity { value: raw, unit: Unit::BytePerSecond })
            .arg("share", Argument::Ratio(rate / raw))
            .see_case(case)
            .see(facts.device_pointer(&gpu.id), "device", gpu.id.to_string())
            .explains(requirements, |r| r.domain == "link" && r.devices.contains(&gpu.id));
        if let Some(text) = facts.record.telemetry.states.get(&format!("{}.link", gpu.id)).and_then(|s| s.value()) {
            f = f.see("/telemetry/states", "sensor", text.clone());
        }
        Some(f.rule_out(facts, &gpu.id))
    };
    facts.gpus().filter_map(narrow).collect()
}
