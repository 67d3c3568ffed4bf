//! Device timer against the run's clock.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{CLOCK_TOLERANCE, Facts};
use crate::judge::{Argument, Finding, FixBy, Requirement};
use crate::record::DeviceId;

pub const CHECK: Check = Check {
    id: "clock",
    summary: "device events against the monotonic clock of the run",
    requirements: no_requirements,
    findings,
};

/// One finding per device set, about the largest difference.
fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let mut worst: Vec<(&[DeviceId], usize, f64)> = Vec::new();
    for (i, case) in facts.cases.iter().enumerate() {
        let Some(difference) = Facts::clock_difference(case).filter(|d| *d > CLOCK_TOLERANCE) else { continue };
        match worst.iter_mut().find(|w| w.0 == case.devices) {
            Some(w) if w.2 < difference => *w = (case.devices, i, difference),
            Some(_) => {}
            None => worst.push((case.devices, i, difference)),
        }
    }
    let explain = |(devices, i, difference): (&[DeviceId], usize, f64)| {
        let case = &facts.cases[i];
        let shown = if difference.is_finite() { Argument::Ratio(difference) } else { "–".into() };
        finding("GA-CLOCK-02", "clock_wrong", devices, FixBy::Either)
            .arg("case", case.id.to_string())
            .arg("difference", shown)
            .arg("allowed", Argument::Ratio(CLOCK_TOLERANCE))
            .effect(difference)
            .see(format!("{}/outcome/measured/clock_check", case.pointer), "case", case.id.to_string())
            .explains(requirements, |r| r.devices == devices && r.measured.is_some())
    };
    worst.into_iter().map(explain).collect()
}
