//! Results that scatter or drift.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{Facts, values};
use crate::judge::{Argument, Finding, FixBy, Requirement};
use crate::record::DeviceId;
use crate::stats;

pub const CHECK: Check = Check {
    id: "steady",
    summary: "results that scatter more than their metric should, or move over the run",
    requirements: no_requirements,
    findings,
};

/// Relative U of a decision above which a device is called unsteady: twice the cap of compute and memory.
const SCATTER: f64 = 0.02;

/// Relative change over the run that is called a drift, if it also exceeds its own uncertainty.
const DRIFT: f64 = 0.01;

/// One finding of each kind per device set, about the worst case.
fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let mut scatter: Vec<(&[DeviceId], usize, f64)> = Vec::new();
    let mut drifts: Vec<(&[DeviceId], usize, f64)> = Vec::new();
    for (i, case) in facts.cases.iter().enumerate() {
        // Links and storage scatter by nature: their requirements say so where it matters.
        if !matches!(case.benchmark, "gemm" | "fma_peak" | "memory_bandwidth") {
            continue;
        }
        let Some(series) = case.primary() else { continue };
        let values = values(series);
        let u = stats::uncertainty(&values);
        if u.relative.is_finite() && u.relative > SCATTER {
            keep_worst(&mut scatter, case.devices, i, u.relative);
        }
        let drift = stats::drift(&values);
        if drift.relative.abs() > DRIFT.max(drift.uncertainty) {
            keep_worst(&mut drifts, case.devices, i, drift.relative);
        }
    }
    let explain = |kind: (&str, &str, &str), (devices, i, size): (&[DeviceId], usize, f64)| {
        let case = &facts.cases[i];
        let mut f = finding(kind.0, kind.1, devices, FixBy::Provider)
            .arg("case", case.id.to_string())
            .arg(kind.2, Argument::Ratio(size))
            .effect(size.abs())
            .see_case(case)
            .explains(requirements, |r| r.devices == devices && r.measured.is_some());
        if let Some(device) = devices.first() {
            f = f.see_sensor(facts, &device.to_string(), "clock").rule_out(facts, device);
        }
        f
    };
    let scatter = scatter.into_iter().map(|s| explain(("GA-NOISE-01", "unsteady", "uncertainty"), s));
    let drifts = drifts.into_iter().map(|d| explain(("GA-DRIFT-01", "drift", "drift"), d));
    scatter.chain(drifts).collect()
}

fn keep_worst<'d>(worst: &mut Vec<(&'d [DeviceId], usize, f64)>, devices: &'d [DeviceId], case: usize, size: f64) {
    match worst.iter_mut().find(|w| w.0 == devices) {
        Some(w) if w.2.abs() < size.abs() => *w = (devices, case, size),
        Some(_) => {}
        None => worst.push((devices, case, size)),
    }
}
