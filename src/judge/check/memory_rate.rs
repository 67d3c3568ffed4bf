//! Device memory below a guarantee or a band: what peers cannot show where all are slow, or where there are none.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{Facts, is_of_case};
use crate::judge::{Argument, BasisKind, Finding, FixBy, Requirement, Status};
use crate::record::DeviceKind;
use crate::unit::Quantity;

pub const CHECK: Check = Check {
    id: "memory_rate",
    summary: "device memory that delivers less than a guarantee or a band",
    requirements: no_requirements,
    findings,
};

/// One finding per device, about the largest shortfall.
fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let is_below = |r: &&Requirement| {
        let by_peers = r.limit.as_ref().is_none_or(|l| l.basis.kind == BasisKind::Peers);
        let is_gpu = r.devices.iter().all(|id| facts.device(id).is_some_and(|d| d.kind == DeviceKind::Gpu));
        let is_short = matches!(r.status, Status::Fail | Status::ConditionalFail);
        r.metric == "memory_bandwidth.rate" && is_short && is_gpu && !by_peers
    };
    let mut worst: Vec<&Requirement> = Vec::new();
    for r in requirements.iter().filter(is_below) {
        match worst.iter_mut().find(|w| w.devices == r.devices) {
            Some(w) if w.shortfall() < r.shortfall() => *w = r,
            Some(_) => {}
            None => worst.push(r),
        }
    }
    worst.into_iter().filter_map(|r| explain(facts, requirements, r)).collect()
}

fn explain(facts: &Facts<'_>, all: &[Requirement], r: &Requirement) -> Option<Finding> {
    let (measured, limit, device) = (r.measured?, r.limit.as_ref()?, r.devices.first()?);
    let mut f = finding("GA-MEM-02", "memory_below", &r.devices, FixBy::Provider)
        .arg("metric", r.title())
        .arg("measured", Quantity { value: measured.median, unit: r.unit })
        .arg("limit", Quantity { value: limit.value, unit: r.unit })
        .arg("short", Argument::Ratio(r.shortfall()?))
        .effect(r.shortfall()?)
        .rule_out(facts, device)
        .see_sensor(facts, &device.to_string(), "ecc_enabled")
        .explains(all, |o| o.domain == "memory" && o.devices == r.devices);
    if let Some(case) = facts.cases.iter().find(|c| is_of_case(&r.id, c.id)) {
        f = f.see_case(case);
    }
    Some(f)
}
