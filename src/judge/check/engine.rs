//! Engines whose reading decides only one way.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{Facts, is_of_case};
use crate::judge::{Finding, FixBy, Requirement};
use crate::record::{BackendId, DeviceId};

pub const CHECK: Check = Check {
    id: "engine",
    summary: "shortfalls that the engine's own limits leave open",
    requirements: no_requirements,
    findings,
};

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let is_limited = |r: &&Requirement| {
        r.reason.as_ref().is_some_and(|m| matches!(m.id.as_str(), "reason.engine_low" | "reason.engine_high"))
    };
    let limited: Vec<&Requirement> = requirements.iter().filter(is_limited).collect();
    let Some(first) = limited.first() else { return Vec::new() };
    let mut devices: Vec<_> = limited.iter().flat_map(|r| r.devices.clone()).collect();
    devices.sort();
    devices.dedup();
    let name = first.reason.as_ref().and_then(|m| m.args.get("engine").cloned()).unwrap_or_else(|| "–".into());
    // Where the backend can use no vendor library, installing one changes nothing.
    let has_none = |d: &DeviceId| matches!(d.backend, BackendId::Opencl | BackendId::Host);
    let f = match devices.iter().all(has_none) {
        true => finding("GA-ENGINE-01", "engine_without_library", &devices, FixBy::Either),
        false => finding("GA-ENGINE-01", "engine_limited", &devices, FixBy::Renter),
    };
    let mut f = f.arg("engine", name).arg("count", limited.len() as u64).explains(requirements, |r| is_limited(&r));
    for case in facts.cases.iter().filter(|c| limited.iter().any(|r| is_of_case(&r.id, c.id))).take(4) {
        f = f.see(format!("{}/outcome/measured/engine", case.pointer), "case", case.id.to_string());
    }
    vec![f]
}
