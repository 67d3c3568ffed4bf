//! One device against identical ones in the same machine.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{CaseFacts, Facts, is_of_case, values};
use crate::judge::requirements::{PEERS_NEEDED, peer_medians};
use crate::judge::{Argument, BasisKind, Finding, FixBy, Requirement, Status};
use crate::record::Series;
use crate::stats;
use crate::unit::Quantity;

pub const CHECK: Check = Check {
    id: "peers",
    summary: "a device that delivers less than identical devices beside it; two that differ",
    requirements: no_requirements,
    findings,
};

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let mut found = behind(facts, requirements);
    found.extend(pairs(facts));
    found
}

/// A device below the limit its peers set: one finding per device and domain, about the largest shortfall.
fn behind(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let is_behind = |r: &&Requirement| {
        let is_peers = r.limit.as_ref().is_some_and(|l| l.basis.kind == BasisKind::Peers);
        is_peers && matches!(r.status, Status::Fail | Status::ConditionalFail)
    };
    let mut worst: Vec<&Requirement> = Vec::new();
    for r in requirements.iter().filter(is_behind) {
        match worst.iter_mut().find(|w| w.domain == r.domain && w.devices == r.devices) {
            Some(w) if w.shortfall() < r.shortfall() => *w = r,
            Some(_) => {}
            None => worst.push(r),
        }
    }
    let explain = |r: &Requirement| {
        let (measured, limit) = (r.measured?, r.limit.as_ref()?);
        let device = r.devices.first()?;
        let (code, topic) = match r.domain.as_str() {
            "memory" => ("GA-PEER-01", "slow_memory"),
            _ => ("GA-PEER-02", "slower_than_peers"),
        };
        let case = facts.cases.iter().find(|c| is_of_case(&r.id, c.id));
        let peers: Vec<f64> = case
            .and_then(|c| Some(peer_medians(facts, c, c.series(&r.metric).next()?)))
            .map_or_else(Vec::new, |all| all.into_iter().map(|(_, m)| m).collect());
        let center = stats::median(&peers);
        let effect = (measured.median / center - 1.0).abs();
        let mut f = finding(code, topic, &r.devices, FixBy::Provider)
            .arg("metric", r.title())
            .arg("measured", Quantity { value: measured.median, unit: r.unit })
            .arg("limit", Quantity { value: limit.value, unit: r.unit })
            .arg("peers", peers.len() as u64)
            .arg("difference", Argument::Ratio(effect))
            .effect(effect)
            .rule_out(facts, device)
            .explains(requirements, |o| o.domain == r.domain && o.devices == r.devices);
        if let Some(case) = case {
            f = f.see_case(case);
        }
        Some(f)
    };
    worst.into_iter().filter_map(explain).collect()
}

/// Two identical devices that differ by more than both uncertainties: no culprit can be named. One finding per
/// benchmark, about the largest difference.
fn pairs(facts: &Facts<'_>) -> Vec<Finding> {
    let mut worst: Vec<(&CaseFacts<'_>, &Series, f64)> = Vec::new();
    for case in facts.cases.iter().filter(|c| facts.void(c).is_none()) {
        let Some(series) = case.primary() else { continue };
        let peers = peer_medians(facts, case, series);
        let [(other, median)] = peers.as_slice() else { continue };
        let own = stats::uncertainty(&values(series));
        let Some(device) = case.devices.first().filter(|d| *d < other) else { continue };
        let is_gpu = facts.gpus().any(|g| g.id == *device);
        let difference = own.median / median - 1.0;
        // The other's uncertainty is about the same; a tenth of it more covers the rest.
        if peers.len() + 1 >= PEERS_NEEDED || !is_gpu || difference.abs() <= (1.5 * own.relative).max(0.01) {
            continue;
        }
        match worst.iter_mut().find(|w| w.0.benchmark == case.benchmark) {
            Some(w) if w.2.abs() < difference.abs() => *w = (case, series, difference),
            Some(_) => {}
            None => worst.push((case, series, difference)),
        }
    }
    let explain = |(case, series, difference): (&CaseFacts<'_>, &Series, f64)| {
        let mut devices = case.devices.to_vec();
        devices.extend(peer_medians(facts, case, series).into_iter().map(|(id, _)| id));
        finding("GA-PEER-03", "two_differ", &devices, FixBy::Provider)
            .arg("metric", format!("{} {}", series.metric, case.params))
            .arg("difference", Argument::Ratio(difference.abs()))
            .effect(difference.abs())
            .see_case(case)
    };
    worst.into_iter().map(explain).collect()
}
