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
    raw_rate_of(facts, device, facts.spec(device)?.figure("pcie_generation")?.value.value)
}

/// As [`raw_rate`], at another generation.
fn raw_rate_of(facts: &Facts<'_>, device: &DeviceInfo, generation: f64) -> Option<f64> {
    let lanes = facts.spec(device)?.figure("pcie_lanes")?.value.value;
    // Transfers per second and lane times the line code (PCI-SIG base specifications 1.0 to 6.0).
    let per_lane = match generation as u32 {
        1 => 2.5e9 * 0.8,
        2 => 5e9 * 0.8,
        3 => 8e9 * 128.0 / 130.0,
        4 => 16e9 * 128.0 / 130.0,
        5 => 32e9 * 128.0 / 130.0,
        6 => 64e9 * 242.0 / 256.0,
        _ => return None,
    };
    Some(per_lane * lanes / 8.0)
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

/// Lanes in use under load as a sensor shows them, and those of the model, where both are known. Links may narrow when
/// idle, so the widest reading counts.
fn lanes(facts: &Facts<'_>, gpu: &DeviceInfo) -> Option<(f64, f64)> {
    let seen = facts.values(&gpu.id.to_string(), "link_width").into_iter().reduce(f64::max).filter(|w| *w >= 1.0)?;
    Some((seen, facts.spec(gpu)?.device_value("pcie_lanes")?))
}

/// PCIe generation under load and that of the model, as [`lanes`]. Links rest at a low generation: a lower one than the
/// model's counts only where data was moved in this run, no faster than that generation can.
fn generations(facts: &Facts<'_>, gpu: &DeviceInfo) -> Option<(f64, f64)> {
    let seen = facts.values(&gpu.id.to_string(), "link_generation").into_iter().reduce(f64::max);
    let (seen, expected) = (seen.filter(|g| *g >= 1.0)?, facts.spec(gpu)?.device_value("pcie_generation")?);
    let fits = || {
        let moved = estimate(fastest(facts, &gpu.id)?.1)?.median;
        Some(moved <= raw_rate_of(facts, gpu, seen)?)
    };
    (seen >= expected || fits() == Some(true)).then_some((seen, expected))
}

/// True if data was moved over the host link of a device in this run: only then do sensors show the link at work.
pub(super) fn was_at_work(facts: &Facts<'_>, device: &DeviceId) -> bool {
    fastest(facts, device).is_some()
}

/// Three graded requirements, because the figures of links are rarely the vendor's own. Half the raw rate is what a link
/// of half the width could carry: a healthy link must show more. And the lanes and
/// the generation themselves, where sensors show them.
fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let by_rate = |gpu: &DeviceInfo| {
        let half = raw_rate(facts, gpu)? / 2.0;
        let (case, series) = fastest(facts, &gpu.id)?;
        let source = format!("half the raw rate of the link of {}", gpu.spec.as_deref()?);
        let bound = limit(half, BasisKind::Identity, source);
        let mut draft = Draft::of_series("link-width", facts, case, series, Class::Graded, bound, CAP);
        draft.requirement.id = format!("link-width/{}", gpu.id);
        Some(draft)
    };
    let by_sensor = |gpu: &DeviceInfo, about: &str, metric: &str, (seen, expected): (f64, f64)| {
        let id = format!("link-{about}/{}", gpu.id);
        let mut draft = Draft::fact(id, "link", metric, std::slice::from_ref(&gpu.id), Class::Graded);
        draft.requirement.limit = limit(expected, BasisKind::Identity, format!("{about} of {}", gpu.spec.as_deref()?));
        Some(draft.with(if seen >= expected { Status::Pass } else { Status::Fail }, None))
    };
    let of_gpu = |gpu: &DeviceInfo| {
        let lanes = lanes(facts, gpu).and_then(|l| by_sensor(gpu, "lanes", "link_width", l));
        let generation = generations(facts, gpu).and_then(|g| by_sensor(gpu, "generation", "link_generation", g));
        [lanes, generation, by_rate(gpu)].into_iter().flatten().collect::<Vec<_>>()
    };
    facts.gpus().flat_map(of_gpu).collect()
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let of_gpu = |gpu: &DeviceInfo| {
        let seen = [fewer_lanes(facts, requirements, gpu), lower_generation(facts, requirements, gpu)];
        let seen: Vec<Finding> = seen.into_iter().flatten().collect();
        if seen.is_empty() { slow(facts, requirements, gpu).into_iter().collect() } else { seen }
    };
    facts.gpus().flat_map(of_gpu).collect()
}

/// The sensor shows fewer lanes than the model has.
fn fewer_lanes(facts: &Facts<'_>, requirements: &[Requirement], gpu: &DeviceInfo) -> Option<Finding> {
    let (seen, expected) = lanes(facts, gpu).filter(|(seen, expected)| seen < expected)?;
    let mut f = finding("GA-LINK-01", "fewer_lanes", std::slice::from_ref(&gpu.id), FixBy::Provider)
        .arg("lanes", seen as u64)
        .arg("expected", expected as u64)
        .see_sensor(facts, &gpu.id.to_string(), "link_width")
        .effect(1.0 - seen / expected)
        .rule_out(facts, &gpu.id)
        .explains(requirements, |r| r.domain == "link" && r.devices.contains(&gpu.id));
    if let Some((case, _)) = fastest(facts, &gpu.id) {
        f = f.see_case(case);
    }
    Some(f)
}

/// The sensor shows a lower PCIe generation than the model has, also under load.
fn lower_generation(facts: &Facts<'_>, requirements: &[Requirement], gpu: &DeviceInfo) -> Option<Finding> {
    let (seen, expected) = generations(facts, gpu).filter(|(seen, expected)| seen < expected)?;
    let mut f = finding("GA-LINK-02", "lower_generation", std::slice::from_ref(&gpu.id), FixBy::Provider)
        .arg("generation", seen as u64)
        .arg("expected", expected as u64)
        .see_sensor(facts, &gpu.id.to_string(), "link_generation")
        .rule_out(facts, &gpu.id)
        .explains(requirements, |r| r.domain == "link" && r.devices.contains(&gpu.id));
    if let Some((case, _)) = fastest(facts, &gpu.id) {
        f = f.see_case(case);
    }
    Some(f)
}

/// Transfers are so slow that half the width would do.
fn slow(facts: &Facts<'_>, requirements: &[Requirement], gpu: &DeviceInfo) -> Option<Finding> {
    let id = format!("link-width/{}", gpu.id);
    let is_short = |r: &&Requirement| r.id == id && matches!(r.status, Status::Fail | Status::ConditionalFail);
    let rate = requirements.iter().find(is_short)?.measured?.median;
    let raw = raw_rate(facts, gpu)?;
    let (case, _) = fastest(facts, &gpu.id)?;
    let bytes = |value: f64| Quantity { value, unit: Unit::BytePerSecond };
    let f = finding("GA-LINK-01", "narrow_link", std::slice::from_ref(&gpu.id), FixBy::Provider)
        .arg("rate", bytes(rate))
        .arg("raw", bytes(raw))
        .arg("share", Argument::Ratio(rate / raw))
        .see_case(case)
        .see(facts.device_pointer(&gpu.id), "device", gpu.id.to_string())
        .rule_out(facts, &gpu.id)
        .explains(requirements, |r| r.domain == "link" && r.devices.contains(&gpu.id));
    Some(f)
}
