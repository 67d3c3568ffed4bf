//! Values above what physics allows: our own error.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{Facts, is_of_case};
use crate::judge::{Argument, Finding, FixBy, Requirement};

pub const CHECK: Check = Check {
    id: "plausible",
    summary: "values above their physical ceiling: an error of the tool, not a merit of the device",
    requirements: no_requirements,
    findings,
};

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let above = facts.cases.iter().filter_map(|c| Some((c, facts.above_ceiling(c)?)));
    above
        .map(|(case, excess)| {
            finding("GA-OWN-01", "implausible", case.devices, FixBy::Renter)
                .arg("case", case.id.to_string())
                .arg("ratio", Argument::Ratio(excess.ratio))
                .arg("ceiling", excess.derivation)
                .see_case(case)
                .explains(requirements, |r| is_of_case(&r.id, case.id))
        })
        .collect()
}
