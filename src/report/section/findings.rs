//! Findings: what was observed, why it matters, the evidence, what else was checked, and what to ask.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::judge::{Finding, FixBy};
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

#[derive(Serialize)]
struct FindingView {
    code: String,
    fix_by: String,
    devices: String,
    effect: Option<String>,
    observed: String,
    why: String,
    evidence: Vec<EvidenceView>,
    ruled_out: Vec<String>,
    ask: String,
}

#[derive(Serialize)]
struct EvidenceView {
    pointer: String,
    text: String,
}

fn build(page: &mut Page) -> Option<Value> {
    view(&Findings { findings: page.assessment.findings.iter().map(|f| finding(page, f)).collect() })
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
        devices: devices(&finding.devices),
        effect: finding.effect.map(|e| page.fill("finding.effect", &[("ratio", &percent(e))])),
        observed: page.message(&finding.observed),
        why: page.message(&finding.why),
        evidence,
        ruled_out: page.messages(&finding.ruled_out),
        ask: page.message(&finding.ask),
    }
}
