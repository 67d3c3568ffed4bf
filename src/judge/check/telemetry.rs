//! Sensors that could not be read.

use super::{Check, finding, no_requirements};
use crate::judge::facts::Facts;
use crate::judge::{Finding, FixBy, Requirement};
use crate::record::{DeviceId, Notice};

pub const CHECK: Check = Check {
    id: "telemetry",
    summary: "devices whose clock, power and temperature could not be read",
    requirements: no_requirements,
    findings,
};

fn findings(facts: &Facts<'_>, _: &[Requirement]) -> Vec<Finding> {
    let notice = facts.record.notices.iter().enumerate().find_map(|(i, n)| match n {
        Notice::NoTelemetry { reason } => Some((i, reason.as_str())),
        _ => None,
    });
    let sensors = ["clock", "power", "temperature"];
    let is_blind = |d: &DeviceId| sensors.iter().all(|s| facts.sensor(&d.to_string(), s).is_none());
    let blind: Vec<DeviceId> = facts.gpus().map(|g| g.id.clone()).filter(is_blind).collect();
    if notice.is_none() && blind.is_empty() {
        return Vec::new();
    }
    let hidden = facts.record.telemetry.not_observable.iter().next().map(|(name, why)| format!("{name}: {why}"));
    let reason = notice.map(|(_, r)| r.to_owned()).or(hidden).unwrap_or_else(|| "–".to_owned());
    let mut f = finding("GA-TELE-01", "no_telemetry", &blind, FixBy::Either).arg("reason", reason);
    f = match notice {
        Some((i, _)) => f.see(format!("/notices/{i}"), "notice", "no_telemetry"),
        None => f.see("/telemetry/not_observable", "sensor", "not_observable"),
    };
    vec![f]
}
