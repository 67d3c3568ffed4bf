//! What was asked for and not tested, with the reason; "none" is said.

use std::collections::BTreeMap;

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::record::Outcome;
use crate::report::text::{LONG, SHORT, clean};
use crate::report::view::{Fact, Page};

/// The section.
pub const SECTION: Section = Section {
    id: "not_tested",
    template: include_str!("../../../report-templates/section/not_tested.html"),
    listed: true,
    build,
};

/// Reasons shown at most.
const MOST: usize = 80;

#[derive(Serialize)]
struct NotTested {
    items: Vec<Reason>,
    hidden: Option<String>,
}

#[derive(Serialize)]
struct Reason {
    reason: String,
    ids: Vec<String>,
    more: Option<String>,
}

fn build(page: &mut Page) -> Option<Value> {
    let mut reasons: Vec<Fact> = Vec::new();
    let mut known: BTreeMap<String, ()> = BTreeMap::new();
    let mut add = |id: &str, reason: String| {
        if known.insert(id.to_owned(), ()).is_none() {
            reasons.push(Fact { name: clean(id, SHORT), value: reason });
        }
    };
    for item in &page.assessment.not_tested {
        add(&item.id, page.message(&item.reason));
    }
    for result in &page.record.results {
        match &result.outcome {
            Outcome::Measured(_) => {}
            Outcome::Unsupported { reason } | Outcome::Skipped { reason } => add(&result.id.0, clean(reason, LONG)),
            Outcome::Failed { error, .. } => {
                let kind = page.words.name("error", &format!("{:?}", error.kind).to_lowercase());
                add(&result.id.0, format!("{kind}: {}", clean(&error.message, LONG)));
            }
        }
    }
    for item in &page.record.plan.not_planned {
        add(&item.id.0, clean(&item.reason, LONG));
    }
    let items = by_reason(page, reasons);
    let hidden = items.len().saturating_sub(MOST);
    let hidden = (hidden > 0).then(|| page.fill("requirements.hidden", &[("n", &hidden.to_string())]));
    view(&NotTested { items: items.into_iter().take(MOST).collect(), hidden })
}

/// One line for each reason.
fn by_reason(page: &Page, all: Vec<Fact>) -> Vec<Reason> {
    const IDS: usize = 12;
    let mut items: Vec<(String, Vec<String>)> = Vec::new();
    for Fact { name, value } in all {
        match items.iter_mut().find(|(r, _)| *r == value) {
            Some((_, ids)) => ids.push(name),
            None => items.push((value, vec![name])),
        }
    }
    let reason = |(reason, mut ids): (String, Vec<String>)| {
        let more = ids.len().saturating_sub(IDS);
        ids.truncate(IDS);
        let more = (more > 0).then(|| page.fill("not_tested.more", &[("n", &more.to_string())]));
        Reason { reason, ids, more }
    };
    items.into_iter().map(reason).collect()
}
