//! Judging: pure functions from a record, its suite, an offer and the spec table to an assessment. No
//! device, no clock, no prose: message ids with typed arguments.
//!
//! `requirements` applies demands and guarantees to units, `rule` decides each, `check` holds what no limit expresses,
//! `validity` asks whether the run can be trusted, `rollup` makes the verdict.

mod assessment;
mod ceiling;
mod check;
pub mod claim;
mod codes;
mod draft;
mod facts;
pub mod messages;
pub mod money;
pub mod normal;
mod parts;
pub mod quality;
mod requirements;
mod rollup;
mod rule;
mod validity;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use assessment::{
    ASSESSMENT_FORMAT, Argument, Assessment, Basis, BasisKind, Class, Estimate, Evidence, Finding, FixBy, Limit,
    Message, NotTested, Requirement, Share, Status, Validity, Verdict,
};
pub use check::{CHECKS, Check};
pub use codes::{CODES, topics};
pub use draft::Draft;
pub use facts::{CEILING_TOLERANCE, CLOCK_TOLERANCE, FOREIGN_SHARE, Facts};
pub use parts::Parts;
pub use rollup::verdict;
pub use rule::{Against, Open, Value, decide};

use crate::offer::Offer;
use crate::record::{HOST_SIMULATED, Record};
use crate::spec::{InstanceTable, SpecTable};
use crate::stats;
use crate::suite::Suite;

/// Probability at which a run may fail a healthy machine, over all its gates.
pub const FAMILY_ERROR: f64 = 0.01;

/// Judges one run. `suite` and `offer` are those of the record, or others it shall be held against.
pub fn judge(record: &Record, suite: &Suite, offer: Option<&Offer>, table: &SpecTable) -> Assessment {
    let facts = Facts::new(record, suite, offer, table);
    let mut drafts: Vec<Draft> = CHECKS.iter().flat_map(|c| (c.requirements)(&facts)).collect();
    drafts.extend(requirements::requirements(&facts));
    let gates = drafts.iter().filter(|d| d.is_statistical_gate()).count();
    let k = stats::sidak(gates, FAMILY_ERROR);
    let (validity, validity_reasons) = validity::validity(&facts);
    let mut requirements: Vec<Requirement> = drafts.into_iter().map(|d| d.settle(k, validity)).collect();
    requirements.extend(rollup::coverage(&facts, &requirements));
    let parts: Vec<_> = requirements.iter().map(|r| parts::parts(&facts, r)).collect();
    requirements.iter_mut().zip(parts).for_each(|(r, p)| r.parts = p);
    let verdict = verdict(&requirements, validity, record.run.end);
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|c| (c.findings)(&facts, &requirements)).collect();
    rollup::order(&mut findings, &requirements);
    let not_compared = not_compared(&facts, &requirements);
    let money = money::money(&facts, &requirements);
    let normal = normal::normal(&facts);
    let headline = rollup::headline(&facts, verdict, validity, &validity_reasons, &requirements, not_compared);
    Assessment {
        format: ASSESSMENT_FORMAT,
        record: record.id.clone(),
        judged_by: env!("CARGO_PKG_VERSION").to_owned(),
        verdict,
        headline,
        validity,
        validity_reasons,
        money,
        normal,
        proposed_instance: proposed_instance(record, offer),
        claims: offer.map_or_else(Vec::new, |o| claim::check_all(o, table, InstanceTable::embedded())),
        not_tested: not_tested(&facts),
        requirements,
        findings,
        not_compared,
        simulated: record.run.simulated
            || record.inventory.host.attributes.contains_key(HOST_SIMULATED)
            || record.inventory.devices.iter().any(|d| is_simulated(d) && is_used(record, d)),
    }
}

/// The instance type of the table that the machine says it is, where nobody said what was sold.
fn proposed_instance(record: &Record, offer: Option<&Offer>) -> Option<String> {
    let cloud = record.inventory.host.cloud.as_deref().filter(|_| offer.is_none())?;
    InstanceTable::embedded().proposed(cloud).map(|i| i.id.clone())
}

/// By its mark or by its id: one of them alone cannot be taken away.
fn is_simulated(device: &crate::record::DeviceInfo) -> bool {
    device.simulated || device.id.backend == crate::record::BackendId::Sim
}

fn is_used(record: &Record, device: &crate::record::DeviceInfo) -> bool {
    record.inventory.selected.contains(&device.id) || record.plan.cases.iter().any(|c| c.devices.contains(&device.id))
}

/// Measured primary numbers that no limit applied to.
fn not_compared(facts: &Facts<'_>, requirements: &[Requirement]) -> u32 {
    let is_compared = |case: &facts::CaseFacts<'_>| {
        let Some(series) = case.primary() else { return true };
        requirements.iter().any(|r| {
            r.limit.is_some()
                && r.metric == series.metric.0
                && r.devices == case.devices
                && facts::is_of_case(&r.id, case.id)
        })
    };
    facts.cases.iter().filter(|c| !is_compared(c)).count() as u32
}

/// Everything asked for that gave no numbers, with its reason.
fn not_tested(facts: &Facts<'_>) -> Vec<NotTested> {
    let without = facts.cases.iter().filter(|c| c.measurement().is_none());
    without.map(|c| NotTested { id: c.id.to_string(), reason: draft::unmeasured(facts, c).1 }).collect()
}
