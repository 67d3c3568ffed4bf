//! Others on the hardware: processes of the renter, load nobody visible explains, time taken by the hypervisor.

use super::{Check, finding};
use crate::judge::draft::Draft;
use crate::judge::facts::Facts;
use crate::judge::{Argument, Class, Finding, FixBy, Message, Requirement, Status};
use crate::record::{DEVICE_MEMORY_SHARE, DeviceId, DeviceInfo, Notice};
use crate::stats;
use crate::unit::{Quantity, Unit};

pub const CHECK: Check = Check {
    id: "load",
    summary: "processes of the renter, memory in use that nobody visible explains, CPU time taken by the hypervisor",
    requirements,
    findings,
};

/// Memory that contexts, the driver and rounding may hold beside our buffers, in bytes.
const UNEXPLAINED_MEMORY: f64 = 2e9;

/// Share of CPU time taken by the hypervisor that is more than the resolution of its counter.
const STEAL_NOTED: f64 = 0.02;

/// Largest number of bytes that were in use on a GPU at any time and were not ours; `None` where no reading can be
/// believed. Telemetry starts before the first worker does, so its first reading is without us; from the others all
/// that the plan may hold at once is taken off as ours.
fn memory_of_others(facts: &Facts<'_>, gpu: &DeviceInfo) -> Option<f64> {
    let (series, _) = facts.sensor(&gpu.id.to_string(), "memory_used")?;
    if series.points.iter().any(|p| !(p.value >= 0.0 && p.value.is_finite())) {
        return None;
    }
    let on_device = facts.cases.iter().filter(|c| c.devices.contains(&gpu.id));
    let starts = on_device.filter_map(|c| Some(c.primary()?.blocks.first()?.start.0));
    let start = starts.reduce(f64::min).unwrap_or(f64::NEG_INFINITY);
    let planned = facts.record.plan.cases.iter().filter(|c| c.devices.contains(&gpu.id)).map(|c| c.footprint.0);
    let ours = planned.sum::<f64>().min(DEVICE_MEMORY_SHARE * gpu.memory.0);
    let others = series.points.iter().enumerate().map(|(i, p)| match i == 0 && p.at.0 < start {
        true => p.value,
        false => p.value - ours,
    });
    others.reduce(f64::max)
}

/// Memory of others, if it is more than contexts and rounding.
fn unexplained_memory(facts: &Facts<'_>, gpu: &DeviceInfo) -> Option<f64> {
    memory_of_others(facts, gpu).filter(|bytes| *bytes > UNEXPLAINED_MEMORY)
}

/// True if a process of the renter was seen on the GPU, however little it did.
fn has_visible(facts: &Facts<'_>, gpu: &DeviceInfo) -> bool {
    let is_on = |n: &Notice| matches!(n, Notice::ForeignProcess { device, .. } if *device == gpu.id);
    facts.record.notices.iter().any(is_on)
}

/// Mean share of CPU time that the hypervisor gave to others.
fn steal(facts: &Facts<'_>) -> Option<f64> {
    let (series, _) = facts.sensor("machine", "steal")?;
    let (first, last) = (series.points.first()?, series.points.last()?);
    let share = match (series.counter, series.unit) {
        (false, Unit::Ratio) => facts.values("machine", "steal").iter().sum::<f64>() / series.points.len() as f64,
        (true, Unit::Second) => {
            let cpus = f64::from(facts.record.inventory.host.cpus_total.max(1));
            (last.value - first.value) / (last.at.0 - first.at.0) / cpus
        }
        _ => return None,
    };
    share.is_finite().then_some(share)
}

fn machine(facts: &Facts<'_>) -> Vec<DeviceId> {
    facts.selected().map(|d| d.id.clone()).collect()
}

fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let is_dedicated = facts.offer.is_some_and(|o| o.dedicated);
    let class = if is_dedicated { Class::Gate } else { Class::Graded };
    // What the watching process did not see while it was gone is not known.
    let is_blind = facts.record.notices.iter().any(|n| matches!(n, Notice::NoTelemetry { .. }));
    for gpu in facts.gpus() {
        let draft = |status, reason| {
            let id = format!("sharing/{}", gpu.id);
            Draft::fact(id, "interference", "sharing", std::slice::from_ref(&gpu.id), class).with(status, reason)
        };
        let is_observed = !is_blind && memory_of_others(facts, gpu).is_some();
        match unexplained_memory(facts, gpu) {
            // Whether all of it is the visible process's is not known.
            Some(_) if has_visible(facts, gpu) => {
                drafts.push(draft(Status::Inconclusive, Some(Message::new("reason.foreign_load"))));
            }
            // A process in another container of the renter would look the same: not decisive.
            Some(bytes) => {
                let used = Quantity { value: bytes, unit: Unit::Byte };
                drafts.push(draft(Status::Inconclusive, Some(Message::new("reason.sharing").with("used", used))));
            }
            None if is_observed => drafts.push(draft(Status::Pass, None)),
            None => drafts.push(draft(Status::NotTested, Some(Message::new("reason.sharing_not_observable")))),
        }
    }
    if let Some(share) = steal(facts) {
        let draft = Draft::fact("steal".to_owned(), "interference", "steal", &machine(facts), Class::Graded);
        let reason = Message::new("reason.steal").with("share", Argument::Ratio(share));
        drafts.push(match share > STEAL_NOTED {
            true => draft.open(reason),
            false => draft.with(Status::Pass, None),
        });
    }
    drafts
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, notice) in facts.record.notices.iter().enumerate() {
        let Notice::ForeignProcess { device, name, share } = notice else { continue };
        let shown = if share.is_finite() { Argument::Ratio(*share) } else { "–".into() };
        let f = finding("GA-LOAD-01", "foreign_process", std::slice::from_ref(device), FixBy::Renter)
            .arg("name", name.as_str())
            .arg("share", shown)
            .effect(*share)
            .see(format!("/notices/{i}"), "notice", name.clone())
            .explains(requirements, |r| r.devices.contains(device) && r.measured.is_some());
        found.push(f);
    }
    for gpu in facts.gpus() {
        let Some(bytes) = unexplained_memory(facts, gpu).filter(|_| !has_visible(facts, gpu)) else { continue };
        let source = gpu.id.to_string();
        let f = finding("GA-LOAD-02", "unexplained_load", std::slice::from_ref(&gpu.id), FixBy::Either)
            .arg("used", Quantity { value: bytes, unit: Unit::Byte })
            .see_sensor(facts, &source, "memory_used")
            .see_sensor(facts, &source, "load")
            .rule_out(facts, &gpu.id)
            .explains(requirements, |r| r.devices.contains(&gpu.id) && (r.measured.is_some() || r.metric == "sharing"));
        found.push(f);
    }
    if let Some(share) = steal(facts).filter(|s| *s > STEAL_NOTED) {
        let f = finding("GA-HOST-01", "steal", &machine(facts), FixBy::Provider)
            .arg("share", Argument::Ratio(share))
            .effect(share)
            .see_sensor(facts, "machine", "steal")
            .explains(requirements, |r| r.metric == "steal");
        found.push(f);
    }
    found.extend(neighbour_pattern(facts, requirements));
    found
}

/// A device that is often fast and at times much slower in everything: consistent with someone else working on it.
fn neighbour_pattern(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let mut found = Vec::new();
    for gpu in facts.gpus() {
        let of_device = facts.cases.iter().filter(|c| c.devices == std::slice::from_ref(&gpu.id));
        let (mut steady, mut broken, mut deepest, mut seen) = (0u64, 0u64, 0.0f64, Vec::new());
        for case in of_device.filter(|c| matches!(c.benchmark, "gemm" | "fma_peak" | "memory_bandwidth")) {
            let Some(series) = case.primary() else { continue };
            let values: Vec<f64> = series.blocks.iter().map(|b| b.value).collect();
            let fast = stats::quantile(&values, 0.9);
            let slow = values.iter().filter(|v| **v < 0.9 * fast).count();
            // Some blocks far below, the others together near the top.
            let top = values.iter().filter(|v| **v > 0.97 * fast).count();
            match slow > 0 && 2 * (slow + top) >= values.len() {
                true => {
                    broken += 1;
                    deepest = values.iter().map(|v| 1.0 - v / fast).fold(deepest, f64::max);
                    seen.push(case);
                }
                false => steady += 1,
            }
        }
        if broken < 2 || broken < steady {
            continue;
        }
        let mut f = finding("GA-LOAD-03", "interrupted", std::slice::from_ref(&gpu.id), FixBy::Provider)
            .arg("cases", broken)
            .arg("of", broken + steady)
            .arg("deepest", Argument::Ratio(deepest))
            .effect(deepest)
            .rule_out(facts, &gpu.id)
            .explains(requirements, |r| r.devices.contains(&gpu.id) && r.measured.is_some());
        for case in seen.into_iter().take(4) {
            f = f.see_case(case);
        }
        found.push(f);
    }
    found
}
