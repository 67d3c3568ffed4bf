//! The host as the limit: launches that cost more than the work, and CPUs far from the device.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{CaseFacts, Facts, estimate, is_of_case};
use crate::judge::{Argument, Finding, FixBy, Requirement, Status};
use crate::record::{DeviceId, DeviceInfo};
use crate::unit::{Quantity, Unit};

pub const CHECK: Check = Check {
    id: "host",
    summary: "launch latency against the work of a launch; the NUMA node of a device against the CPUs of this process",
    requirements: no_requirements,
    findings,
};

/// From this share of a kernel's time on, a launch is felt in its rate: what is launched one by one cannot hide it.
const FELT: f64 = 0.05;

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let launches = facts.gpus().filter_map(|gpu| launch_limited(facts, requirements, &gpu.id));
    launches.chain(facts.gpus().filter_map(|gpu| far_cpus(facts, requirements, gpu))).collect()
}

/// Median launch latency of a device in seconds, with its case.
fn launch<'f, 'a>(facts: &'f Facts<'a>, device: &DeviceId) -> Option<(&'f CaseFacts<'a>, f64)> {
    let own = |c: &&CaseFacts<'_>| c.benchmark == "launch_latency" && c.devices == std::slice::from_ref(device);
    let times = facts.cases.iter().filter(own).filter_map(|c| {
        let series = c.primary().filter(|s| s.unit == Unit::Second)?;
        Some((c, estimate(series)?.median))
    });
    times.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Launch latency as a share of the time of one matrix product, for a requirement that is short and where it is felt.
pub fn launch_bound(facts: &Facts<'_>, r: &Requirement) -> Option<f64> {
    let is_short = matches!(r.status, Status::Fail | Status::ConditionalFail) && r.metric == "gemm.throughput";
    let [device] = r.devices.as_slice() else { return None };
    let case = facts.cases.iter().find(|c| is_short && is_of_case(&r.id, c.id))?;
    let edge = case.params.int("n")? as f64;
    let seconds = 2.0 * edge.powi(3) / r.measured?.median;
    let share = launch(facts, device)?.1 / seconds;
    (share >= FELT).then_some(share)
}

/// One finding per device, about the product that feels it most.
fn launch_limited(facts: &Facts<'_>, requirements: &[Requirement], device: &DeviceId) -> Option<Finding> {
    let own = requirements.iter().filter(|r| r.devices == std::slice::from_ref(device));
    let bound = own.filter_map(|r| Some((r, launch_bound(facts, r)?)));
    let (worst, share) = bound.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (case, latency) = launch(facts, device)?;
    let f = finding("GA-HOST-02", "launch_limited", std::slice::from_ref(device), FixBy::Either)
        .arg("latency", Quantity { value: latency, unit: Unit::Second })
        .arg("metric", worst.title())
        .arg("share", Argument::Ratio(share))
        .effect(share)
        .see_case(case)
        .see_sensor(facts, "machine", "steal")
        .rule_out(facts, device)
        .explains(requirements, |r| {
            r.devices == worst.devices && (launch_bound(facts, r).is_some() || r.metric.starts_with("launch_latency"))
        });
    Some(f)
}

/// CPUs of a list like `0-3,8`.
fn cpus(list: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok().filter(|l| *l < 65536)?);
    }
    Some(all)
}

/// None of the CPUs this process may use are on the device's NUMA node.
fn far_cpus(facts: &Facts<'_>, requirements: &[Requirement], gpu: &DeviceInfo) -> Option<Finding> {
    let node = gpu.numa_node?;
    let host = &facts.record.inventory.host;
    let of_node = host.numa.iter().find_map(|text| text.strip_prefix(&format!("node{node}: CPUs ")))?;
    // "0-7, 31.4 GiB": the list ends at the first comma that a blank follows.
    let near = cpus(of_node.split(", ").next()?)?;
    let mine = cpus(host.attributes.get("cpu_affinity")?)?;
    if near.is_empty() || mine.is_empty() || mine.iter().any(|c| near.contains(c)) {
        return None;
    }
    let f = finding("GA-HOST-03", "far_cpus", std::slice::from_ref(&gpu.id), FixBy::Either)
        .arg("node", u64::from(node))
        .arg("cpus", host.attributes.get("cpu_affinity")?.clone())
        .see(facts.device_pointer(&gpu.id), "device", gpu.id.to_string())
        .explains(requirements, |r| {
            r.devices.contains(&gpu.id) && (r.domain == "link" || r.metric.starts_with("launch_latency"))
        });
    Some(f)
}
