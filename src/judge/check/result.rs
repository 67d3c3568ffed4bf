//! Wrong results: NaN, or a value that is not the right one.

use super::{Check, finding, no_requirements};
use crate::judge::facts::{Facts, is_of_case};
use crate::judge::{Finding, FixBy, Requirement};

pub const CHECK: Check =
    Check { id: "result", summary: "results that are wrong or not a number", requirements: no_requirements, findings };

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let wrong = facts.cases.iter().filter_map(|c| Some((c, c.wrong()?)));
    wrong
        .map(|(case, detail)| {
            let is_nan = detail.split(|c: char| !c.is_alphanumeric()).any(|w| w.eq_ignore_ascii_case("nan"));
            let (code, topic) = if is_nan { ("GA-RESULT-02", "nan") } else { ("GA-RESULT-01", "wrong") };
            finding(code, topic, case.devices, FixBy::Provider)
                .arg("case", case.id.to_string())
                .arg("detail", detail)
                .see_case(case)
                .explains(requirements, |r| is_of_case(&r.id, case.id))
        })
        .collect()
}
