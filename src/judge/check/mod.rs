//! Coded checks: what no limit of a suite expresses. Each may add requirements, and findings that explain them.
//! One file each; [`CHECKS`] is the registry, in the order of the report.

mod claimed;
mod clock;
mod efficiency;
mod engine;
mod failure;
mod host;
mod identity;
mod link;
mod load;
mod memory_health;
mod memory_rate;
mod mixed;
mod peer_link;
mod peers;
mod plausible;
mod reference;
mod result;
mod slice;
mod sold;
mod steady;
mod telemetry;
mod throttle;
mod untested;

pub use throttle::share as clock_share;

use super::draft::Draft;
use super::facts::{CaseFacts, Facts};
use super::{Evidence, Finding, FixBy, Message, Requirement, Status};
use crate::record::DeviceId;

/// A coded check.
pub struct Check {
    /// File name and id.
    pub id: &'static str,
    /// What it looks at, one line.
    pub summary: &'static str,
    /// Requirements it adds.
    pub requirements: fn(&Facts<'_>) -> Vec<Draft>,
    /// Findings, given all settled requirements.
    pub findings: fn(&Facts<'_>, &[Requirement]) -> Vec<Finding>,
}

/// The registry. A test compares it with the files of this folder.
pub const CHECKS: &[Check] = &[
    identity::CHECK,
    sold::CHECK,
    claimed::CHECK,
    mixed::CHECK,
    slice::CHECK,
    result::CHECK,
    failure::CHECK,
    throttle::CHECK,
    efficiency::CHECK,
    memory_rate::CHECK,
    memory_health::CHECK,
    link::CHECK,
    peer_link::CHECK,
    peers::CHECK,
    load::CHECK,
    host::CHECK,
    steady::CHECK,
    clock::CHECK,
    plausible::CHECK,
    engine::CHECK,
    reference::CHECK,
    telemetry::CHECK,
    untested::CHECK,
];

/// For checks that add no requirement.
fn no_requirements(_: &Facts<'_>) -> Vec<Draft> {
    Vec::new()
}

/// A finding whose texts are `finding.<topic>.observed`, `.why` and `.ask`.
fn finding(code: &str, topic: &str, devices: &[DeviceId], fix_by: FixBy) -> Finding {
    Finding {
        code: code.to_owned(),
        devices: devices.to_vec(),
        observed: Message::new(&format!("finding.{topic}.observed")),
        why: Message::new(&format!("finding.{topic}.why")),
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        ask: Message::new(&format!("finding.{topic}.ask")),
        fix_by,
        effect: None,
        requirements: Vec::new(),
    }
}

impl Finding {
    /// Adds an argument to what was observed.
    fn arg(mut self, name: &str, value: impl Into<super::Argument>) -> Finding {
        self.observed = self.observed.with(name, value);
        self
    }
    /// Adds a pointer to something in the record, by its name.
    fn see(mut self, pointer: impl Into<String>, kind: &str, name: impl Into<String>) -> Finding {
        let message = Message::new(&format!("finding.evidence.{kind}")).with("name", name.into());
        self.evidence.push(Evidence { pointer: pointer.into(), message });
        self
    }
    /// Adds the case as evidence.
    fn see_case(self, case: &CaseFacts<'_>) -> Finding {
        self.see(case.pointer.clone(), "case", case.id.to_string())
    }
    /// Adds a sensor of `source` as evidence, where it was read.
    fn see_sensor(self, facts: &Facts<'_>, source: &str, sensor: &str) -> Finding {
        match facts.sensor(source, sensor) {
            Some((_, pointer)) => self.see(pointer, "sensor", format!("{source} {sensor}")),
            None => self,
        }
    }
    /// Size of the effect, if it is a number.
    fn effect(mut self, effect: f64) -> Finding {
        self.effect = effect.is_finite().then_some(effect);
        self
    }
    /// The requirements it explains: those that are not passed and satisfy `explains`.
    fn explains(mut self, all: &[Requirement], explains: impl Fn(&Requirement) -> bool) -> Finding {
        let short = all.iter().filter(|r| !matches!(r.status, Status::Pass | Status::NotApplicable) && explains(r));
        self.requirements = short.map(|r| r.id.clone()).collect();
        self
    }
    /// The other explanations that were looked at for a slow device and do not apply.
    fn rule_out(mut self, facts: &Facts<'_>, device: &DeviceId) -> Finding {
        self.ruled_out = ruled_out(facts, device);
        self
    }
}

/// Explanations of a slow device that this record speaks against; what could not be observed is not ruled out.
fn ruled_out(facts: &Facts<'_>, device: &DeviceId) -> Vec<Message> {
    let mut out = Vec::new();
    let on_device = || facts.cases.iter().filter(|c| c.devices.contains(device));
    let (mut checked, mut worst) = (0u64, 0.0f64);
    for difference in on_device().filter_map(Facts::clock_difference) {
        (checked, worst) = (checked + 1, worst.max(difference));
    }
    if checked > 0 && worst <= super::facts::CLOCK_TOLERANCE {
        out.push(Message::new("finding.ruled_out.clock").with("difference", super::Argument::Ratio(worst)));
    }
    let verified =
        on_device().filter_map(CaseFacts::measurement).map(|m| u64::from(m.verification.checks)).sum::<u64>();
    if verified > 0 && on_device().all(|c| c.wrong().is_none()) {
        out.push(Message::new("finding.ruled_out.result").with("checks", verified));
    }
    let has_telemetry = !facts.record.telemetry.series.is_empty();
    if has_telemetry && facts.foreign_load(std::slice::from_ref(device)).is_none() {
        out.push(Message::new("finding.ruled_out.foreign"));
    }
    if let Some(clock) = throttle::clocks(facts, device).filter(|c| c.held >= throttle::HELD * c.highest) {
        let ratio = super::Argument::Ratio(clock.held / clock.highest);
        out.push(Message::new("finding.ruled_out.clock_held").with("share", ratio));
    }
    let info = facts.device(device);
    let has_all = info.and_then(|d| d.units.zip(facts.spec(d)?.device_units())).filter(|(has, model)| has >= model);
    if let Some((units, _)) = has_all {
        out.push(Message::new("finding.ruled_out.units").with("units", u64::from(units)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_matches_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/judge/check");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .filter_map(|f| f.strip_suffix(".rs").map(str::to_owned))
            .filter(|f| f != "mod")
            .collect();
        let mut ids: Vec<String> = CHECKS.iter().map(|c| c.id.to_owned()).collect();
        files.sort();
        ids.sort();
        assert_eq!(files, ids);
        assert!(CHECKS.iter().all(|c| !c.summary.is_empty()));
    }
}
