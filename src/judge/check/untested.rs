//! What was asked for and not tested.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{CaseFacts, CaseOutcome, Facts, is_of_case};
use crate::judge::{Finding, FixBy, Requirement, Status};
use crate::record::{Notice, Observed};

pub const CHECK: Check = Check {
    id: "untested",
    summary: "cases left out for time or by choice, below their precision, or not in the thermal state asked for",
    requirements: no_requirements,
    findings,
};

fn findings(facts: &Facts<'_>, all: &[Requirement]) -> Vec<Finding> {
    let skipped: Vec<&CaseFacts<'_>> =
        facts.cases.iter().filter(|c| matches!(c.outcome, CaseOutcome::Skipped(_) | CaseOutcome::Absent)).collect();
    let mut found = Vec::new();
    if let Some(first) = skipped.first() {
        let reason = match first.outcome {
            CaseOutcome::Skipped(reason) => reason,
            _ => "–",
        };
        let mut f = finding("GA-TIME-01", "untested", &[], FixBy::Renter)
            .arg("count", skipped.len() as u64)
            .arg("reason", reason)
            .explains(all, |r| r.status == Status::NotTested && skipped.iter().any(|c| is_of_case(&r.id, c.id)));
        for case in skipped.iter().take(4) {
            f = f.see_case(case);
        }
        found.push(f);
    }
    for (i, notice) in facts.record.notices.iter().enumerate() {
        let Notice::BudgetSpent { cases } = notice else { continue };
        let f = finding("GA-TIME-02", "budget_spent", &[], FixBy::Renter)
            .arg("count", cases.len() as u64)
            .see(format!("/notices/{i}"), "notice", "budget_spent")
            .explains(all, |r| cases.iter().any(|c| is_of_case(&r.id, c)));
        found.push(f);
    }
    let unreached = facts.cases.iter().filter(|c| c.is_in_other_state()).collect::<Vec<_>>();
    if let Some(case) = unreached.first() {
        let why = case.measurement().and_then(|m| m.conditions.get("sustained"));
        let why = match why {
            Some(Observed::NotObservable(reason)) => reason.as_str(),
            _ => "–",
        };
        let f = finding("GA-STATE-01", "state_not_reached", case.devices, FixBy::Either)
            .arg("count", unreached.len() as u64)
            .arg("case", case.id.to_string())
            .arg("text", why)
            .see_case(case)
            .explains(all, |r| unreached.iter().any(|c| is_of_case(&r.id, c.id)));
        found.push(f);
    }
    found
}
