//! Links between GPUs: all that the model has, and as fast as a limit asks.

use super::{Check, finding};
use crate::judge::draft::{Draft, limit};
use crate::judge::facts::{Facts, is_of_case};
use crate::judge::{BasisKind, Class, Finding, FixBy, Requirement, Status};
use crate::record::DeviceInfo;
use crate::unit::Quantity;

pub const CHECK: Check = Check {
    id: "peer_link",
    summary: "links to other GPUs that are down, pairs of GPUs that are short of a limit",
    requirements,
    findings,
};

/// Links to other GPUs as sensors show them: the most that worked at once, and those the device has.
fn links(facts: &Facts<'_>, gpu: &DeviceInfo) -> Option<(f64, f64)> {
    let most = |sensor: &str| facts.values(&gpu.id.to_string(), sensor).into_iter().reduce(f64::max);
    most("peer_links").zip(most("peer_links_total")).filter(|(_, all)| *all >= 1.0)
}

/// Alone a GPU needs no link to others, and cards that nothing joins were sold without it unless the offer says otherwise
/// (see `sold`).
fn is_node(facts: &Facts<'_>) -> bool {
    facts.gpus().count() > 1 && facts.gpus().filter_map(|g| links(facts, g)).any(|(up, _)| up > 0.0)
}

fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let of_gpu = |gpu: &DeviceInfo| {
        let (up, all) = links(facts, gpu)?;
        let id = format!("peer-links/{}", gpu.id);
        let mut draft = Draft::fact(id, "link", "peer_links", std::slice::from_ref(&gpu.id), Class::Graded);
        draft.requirement.limit = limit(all, BasisKind::Identity, format!("links that {} shows", gpu.id));
        Some(draft.with(if up >= all { Status::Pass } else { Status::Fail }, None))
    };
    if is_node(facts) { facts.gpus().filter_map(of_gpu).collect() } else { Vec::new() }
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let down = facts.gpus().filter(|_| is_node(facts)).filter_map(|gpu| missing(facts, requirements, gpu));
    down.chain(slow(facts, requirements)).collect()
}

fn missing(facts: &Facts<'_>, requirements: &[Requirement], gpu: &DeviceInfo) -> Option<Finding> {
    let (up, all) = links(facts, gpu).filter(|(up, all)| up < all)?;
    let source = gpu.id.to_string();
    let f = finding("GA-LINK-03", "peer_links_down", std::slice::from_ref(&gpu.id), FixBy::Provider)
        .arg("up", up as u64)
        .arg("all", all as u64)
        .effect(1.0 - up / all)
        .see_sensor(facts, &source, "peer_links")
        .see_sensor(facts, &source, "peer_links_total")
        .explains(requirements, |r| r.domain == "link" && r.devices.contains(&gpu.id) && is_between_gpus(r));
    Some(f)
}

fn is_between_gpus(r: &Requirement) -> bool {
    r.metric == "peer_links" || r.devices.len() > 1
}

/// The pair that is furthest from its limit.
fn slow(facts: &Facts<'_>, requirements: &[Requirement]) -> Option<Finding> {
    let is_short = |r: &&Requirement| {
        let is_decided = matches!(r.status, Status::Fail | Status::ConditionalFail) && r.measured.is_some();
        r.domain == "link" && r.devices.len() > 1 && is_decided
    };
    let depth = |r: &&Requirement| r.shortfall().unwrap_or(0.0);
    let worst = requirements.iter().filter(is_short).max_by(|a, b| depth(a).total_cmp(&depth(b)))?;
    let mut f = finding("GA-LINK-04", "slow_peer_link", &worst.devices, FixBy::Provider)
        .arg("metric", worst.title())
        .arg("measured", Quantity { value: worst.measured?.median, unit: worst.unit })
        .arg("limit", Quantity { value: worst.limit.as_ref()?.value, unit: worst.unit })
        .effect(worst.shortfall()?)
        .explains(requirements, |r| r.domain == "link" && r.devices.len() > 1);
    if let Some(case) = facts.cases.iter().find(|c| is_of_case(&worst.id, c.id)) {
        f = f.see_case(case);
    }
    Some(f)
}
