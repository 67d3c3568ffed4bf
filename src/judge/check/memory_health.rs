//! State of device memory: uncorrected errors in the run, rows that wait to be remapped, error correction switched off.

use super::{Check, finding};
use crate::judge::draft::Draft;
use crate::judge::facts::Facts;
use crate::judge::{Class, Finding, FixBy, Requirement, Status};
use crate::record::DeviceInfo;

pub const CHECK: Check = Check {
    id: "memory_health",
    summary: "uncorrected memory errors in the run, rows that wait to be remapped, error correction switched off",
    requirements,
    findings,
};

/// What sensors say about the memory of one GPU; each `None` where no sensor says it.
struct Health {
    /// Uncorrected errors counted in the run.
    errors: Option<f64>,
    /// Rows wait to be remapped (a reset does it), or could not be (only a new device helps).
    remap: Option<bool>,
    /// Error correction is on.
    corrects: Option<bool>,
}

impl Health {
    fn of(facts: &Facts<'_>, gpu: &DeviceInfo) -> Health {
        let values = |sensor: &str| facts.values(&gpu.id.to_string(), sensor);
        let errors = values("ecc_uncorrected");
        let corrects = values("ecc_enabled").last().map(|v| *v > 0.0);
        // One reading shows no difference, and without error correction nothing is counted.
        let counts = errors.len() > 1 && corrects != Some(false);
        let counted = errors.iter().copied().reduce(f64::max).zip(errors.iter().copied().reduce(f64::min));
        let waits = [values("remap_pending"), values("remap_failed")].concat();
        Health {
            errors: counted.filter(|_| counts).map(|(most, least)| most - least),
            remap: (!waits.is_empty()).then(|| waits.iter().any(|v| *v > 0.0)),
            corrects,
        }
    }
    /// Name of each state that a sensor shows, and whether it is bad.
    fn observed(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let errors = self.errors.map(|e| ("memory-errors", e > 0.0));
        errors.into_iter().chain(self.remap.map(|bad| ("memory-rows", bad)))
    }
}

/// Graded: results of this run were verified on their own, yet memory in this state is not that of a sound device.
fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let of_gpu = |gpu: &DeviceInfo| {
        let draft = |(name, is_bad): (&str, bool)| {
            let id = format!("{name}/{}", gpu.id);
            let draft = Draft::fact(id, "integrity", "memory_health", std::slice::from_ref(&gpu.id), Class::Graded);
            draft.with(if is_bad { Status::Fail } else { Status::Pass }, None)
        };
        Health::of(facts, gpu).observed().map(draft).collect::<Vec<_>>()
    };
    facts.gpus().flat_map(of_gpu).collect()
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    facts.gpus().flat_map(|gpu| of_gpu(facts, requirements, gpu)).collect()
}

fn of_gpu(facts: &Facts<'_>, requirements: &[Requirement], gpu: &DeviceInfo) -> Vec<Finding> {
    let health = Health::of(facts, gpu);
    let (devices, source) = (std::slice::from_ref(&gpu.id), gpu.id.to_string());
    let mut found = Vec::new();
    if let Some(errors) = health.errors.filter(|e| *e > 0.0) {
        let f = finding("GA-ECC-01", "memory_errors", devices, FixBy::Provider).arg("count", errors as u64);
        found.push(f.see_sensor(facts, &source, "ecc_uncorrected"));
    }
    if health.remap == Some(true) {
        let f = finding("GA-ECC-02", "remapped_rows", devices, FixBy::Provider);
        let f = f.see_sensor(facts, &source, "remap_pending").see_sensor(facts, &source, "remap_failed");
        found.push(f.see_sensor(facts, &source, "remapped_rows"));
    }
    let is_own = |r: &Requirement| r.metric == "memory_health" && r.devices == devices;
    let mut found: Vec<Finding> = found.into_iter().map(|f| f.explains(requirements, is_own)).collect();
    if health.corrects == Some(false) {
        let f = finding("GA-ECC-03", "ecc_off", devices, FixBy::Either);
        found.push(f.see_sensor(facts, &source, "ecc_enabled"));
    }
    found
}
