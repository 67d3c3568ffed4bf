//! Findings: what was observed, why it matters, the evidence, what else was checked, and what to ask.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::judge::{Finding, FixBy};
use crate::record::DeviceId;
use crate::report::text::{SHORT, clean};
use crate::report::view::{Page, devices, percent};

/// The section.
pub const SECTION: Section = Section {
    id: "findings",
    template: include_str!("../../../report-templates/section/findings.html"),
    listed: true,
    build,
};

#[derive(Serialize)]
struct Findings {
    findings: Vec<FindingView>,
}

/// A finding in words; devices about which exactly the same is said share it.
#[derive(Serialize)]
pub struct FindingView {
    /// Stable code.
    pub code: String,
    fix_by: String,
    /// Devices, joined.
    pub devices: String,
    effect: Option<String>,
    /// What was observed.
    pub observed: String,
    why: String,
    evidence: Vec<EvidenceView>,
    ruled_out: Vec<String>,
    /// What to ask or do.
    pub ask: String,
    #[serde(skip)]
    ids: Vec<DeviceId>,
}

#[derive(Serialize)]
struct EvidenceView {
    pointer: String,
    text: String,
}

/// Pieces of evidence shown with one finding; the file holds all.
const MOST: usize = 6;

fn build(page: &mut Page) -> Option<Value> {
    view(&Findings { findings: groups(page) })
}

/// All findings, gravest first.
pub fn groups(page: &Page) -> Vec<FindingView> {
    let mut all: Vec<FindingView> = Vec::new();
    for next in page.assessment.findings.iter().map(|f| finding(page, f)) {
        match all.iter_mut().find(|f| says_the_same(f, &next)) {
            Some(known) => {
                known.ids.extend(next.ids);
                known.evidence.extend(next.evidence);
            }
            None => all.push(next),
        }
    }
    for finding in &mut all {
        finding.devices = devices(&finding.ids);
        finding.evidence.truncate(MOST);
    }
    all
}

fn says_the_same(a: &FindingView, b: &FindingView) -> bool {
    let words = |f: &FindingView| {
        (f.code.clone(), f.fix_by.clone(), f.effect.clone(), f.observed.clone(), f.why.clone(), f.ask.clone())
    };
    words(a) == words(b)
}

fn finding(page: &Page, finding: &Finding) -> FindingView {
    let evidence = finding
        .evidence
        .iter()
        .map(|e| EvidenceView { pointer: clean(&e.pointer, SHORT), text: page.message(&e.message) })
        .collect();
    FindingView {
        code: clean(&finding.code, 40),
        fix_by: page.t(match finding.fix_by {
            FixBy::Provider => "fix_by.provider",
            FixBy::Renter => "fix_by.renter",
            FixBy::Either => "fix_by.either",
        }),
        devices: String::new(),
        ids: finding.devices.clone(),
        effect: finding.effect.map(|e| page.fill("finding.effect", &[("ratio", &percent(e))])),
        observed: page.message(&finding.observed),
        why: page.message(&finding.why),
        evidence,
        ruled_out: page.messages(&finding.ruled_out),
        ask: page.message(&finding.ask),
    }
}
