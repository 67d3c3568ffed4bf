//! Cases that broke: hang, crash, lost device and the rest.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{CaseOutcome, Facts, is_of_case};
use crate::judge::{Finding, FixBy, Requirement};
use crate::record::{CaseErrorKind, DeviceId};

pub const CHECK: Check = Check {
    id: "failure",
    summary: "cases that hung, crashed, lost the device or were refused",
    requirements: no_requirements,
    findings,
};

/// Code, topic and who can act, for each kind of failure.
fn topic(kind: CaseErrorKind) -> (&'static str, &'static str, FixBy) {
    match kind {
        CaseErrorKind::Hang => ("GA-HANG-01", "hang", FixBy::Provider),
        CaseErrorKind::Crash => ("GA-CRASH-01", "crash", FixBy::Either),
        CaseErrorKind::DeviceLost => ("GA-LOST-01", "lost", FixBy::Provider),
        CaseErrorKind::OutOfMemory => ("GA-FAIL-01", "out_of_memory", FixBy::Either),
        CaseErrorKind::Driver => ("GA-FAIL-02", "driver", FixBy::Either),
        CaseErrorKind::Storage => ("GA-FAIL-03", "storage", FixBy::Either),
        CaseErrorKind::NotANumber => ("GA-FAIL-04", "not_a_number", FixBy::Either),
        CaseErrorKind::Aggressor => ("GA-FAIL-05", "aggressor", FixBy::Either),
        CaseErrorKind::Internal => ("GA-FAIL-06", "internal", FixBy::Renter),
    }
}

/// One finding per kind of failure and device set, with its cases as evidence.
fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let mut keys: Vec<(CaseErrorKind, &[DeviceId])> = Vec::new();
    for case in &facts.cases {
        let CaseOutcome::Failed(error, _) = case.outcome else { continue };
        let key = (error.kind, case.devices);
        let index = match keys.iter().position(|k| *k == key) {
            Some(index) => index,
            None => {
                let (code, topic, fix_by) = topic(error.kind);
                let f = finding(code, topic, case.devices, fix_by)
                    .arg("case", case.id.to_string())
                    .arg("text", error.message.as_str());
                found.push(f);
                keys.push(key);
                keys.len() - 1
            }
        };
        let f = found.remove(index).see_case(case);
        found.insert(index, f);
        let of_case = requirements.iter().filter(|r| is_of_case(&r.id, case.id)).map(|r| r.id.clone());
        found[index].requirements.extend(of_case);
    }
    found
}
