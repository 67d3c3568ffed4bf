//! Fewer operations per unit and clock than the limit needs: the part of a shortfall that neither missing units nor a
//! low clock explain.

use super::{Check, finding, host, no_requirements};
use crate::judge::facts::{Facts, is_of_case};
use crate::judge::{Argument, Finding, FixBy, Parts, Requirement};
use crate::unit::Quantity;

pub const CHECK: Check = Check {
    id: "efficiency",
    summary: "operations per unit and clock, where units and clock do not explain a shortfall",
    requirements: no_requirements,
    findings,
};

/// From this part of the limit on, operations per unit and clock are not what is missing. The caps on U are of this size.
const ENOUGH: f64 = 0.98;

/// One finding per device, about the requirement with the least per clock. Where launches eat the time, the host is the
/// explanation and not the device.
fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let mut worst: Vec<(&Requirement, Parts)> = Vec::new();
    for r in requirements {
        let Some(parts) = r.parts.filter(|p| p.per_clock < ENOUGH) else { continue };
        if host::launch_bound(facts, r).is_some() {
            continue;
        }
        match worst.iter_mut().find(|w| w.0.devices == r.devices) {
            Some(w) if parts.per_clock < w.1.per_clock => *w = (r, parts),
            Some(_) => {}
            None => worst.push((r, parts)),
        }
    }
    worst.into_iter().filter_map(|(r, parts)| explain(facts, requirements, r, parts)).collect()
}

fn explain(facts: &Facts<'_>, all: &[Requirement], r: &Requirement, parts: Parts) -> Option<Finding> {
    let (measured, limit, device) = (r.measured?, r.limit.as_ref()?, r.devices.first()?);
    let mut f = finding("GA-EFF-01", "less_per_clock", &r.devices, FixBy::Either)
        .arg("metric", r.title())
        .arg("measured", Quantity { value: measured.median, unit: r.unit })
        .arg("limit", Quantity { value: limit.value, unit: r.unit })
        .arg("units", Argument::Ratio(parts.units))
        .arg("clock", Argument::Ratio(parts.clock))
        .arg("per_clock", Argument::Ratio(parts.per_clock))
        .effect(1.0 - parts.per_clock)
        .rule_out(facts, device)
        .see_sensor(facts, &device.to_string(), "clock")
        .explains(all, |o| o.devices == r.devices && o.parts.is_some_and(|p| p.per_clock < ENOUGH));
    if let Some(case) = facts.cases.iter().find(|c| is_of_case(&r.id, c.id)) {
        f = f.see_case(case);
    }
    Some(f)
}
