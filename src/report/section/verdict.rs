//! Verdict banner: mark, word, one sentence, and how far the verdict reaches.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::judge::{Class, Status, Validity};
use crate::record::RunEnd;
use crate::report::view::{Mark, Page};

/// The section.
pub const SECTION: Section = Section {
    id: "verdict",
    template: include_str!("../../../report-templates/section/verdict.html"),
    listed: false,
    build,
};

#[derive(Serialize)]
struct Verdict {
    mark: Mark,
    headline: String,
    not_compared: Option<String>,
    validity: String,
    trusted: bool,
    validity_reasons: Vec<String>,
    unfinished: Option<String>,
    counts: Vec<Count>,
}

#[derive(Serialize)]
struct Count {
    mark: Mark,
    text: String,
}

fn build(page: &mut Page) -> Option<Value> {
    let assessment = page.assessment;
    let n = assessment.not_compared;
    let unfinished = match page.record.run.end {
        RunEnd::Complete => None,
        RunEnd::Interrupted => Some(page.t("end.interrupted")),
        RunEnd::Terminated => Some(page.t("end.terminated")),
        RunEnd::Died => Some(page.t("end.died")),
    };
    view(&Verdict {
        mark: page.verdict(),
        headline: page.message(&assessment.headline),
        not_compared: (n > 0).then(|| page.fill("verdict.not_compared", &[("n", &n.to_string())])),
        validity: page.validity(),
        trusted: assessment.validity == Validity::Valid,
        validity_reasons: page.messages(&assessment.validity_reasons),
        unfinished,
        counts: counts(page),
    })
}

/// How many requirements have each status, gates apart from graded ones.
fn counts(page: &Page) -> Vec<Count> {
    let order = [
        Status::Fail,
        Status::ConditionalFail,
        Status::Inconclusive,
        Status::NotTested,
        Status::ConditionalPass,
        Status::Pass,
        Status::NotApplicable,
    ];
    let count = |status| {
        let of = |class| page.assessment.requirements.iter().filter(|r| r.status == status && r.class == class).count();
        let (gates, graded) = (of(Class::Gate), of(Class::Graded));
        let text = page.fill("verdict.count", &[("gates", &gates.to_string()), ("graded", &graded.to_string())]);
        (gates + graded > 0).then(|| Count { mark: page.status(status), text })
    };
    order.into_iter().filter_map(count).collect()
}
