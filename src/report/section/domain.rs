//! What the sections of measured domains share: which benchmark belongs where, and figures with a word on what is absent.

use serde::Serialize;
use tera::Value;

use super::view;
use crate::report::figure::figures;
use crate::report::view::{Figure, Page};

/// Template of every domain.
pub const TEMPLATE: &str = include_str!("../../../report-templates/section/domain.html");

/// Domains by the beginning of a benchmark's id; what fits none is in `other`.
const DOMAINS: [(&str, &[&str]); 5] = [
    ("compute", &["gemm", "fma", "launch"]),
    ("memory", &["memory"]),
    ("link", &["host_link", "peer", "all_reduce", "collective", "link"]),
    ("storage", &["storage"]),
    ("interference", &["interference"]),
];

#[derive(Serialize)]
struct Domain {
    note: String,
    figures: Vec<Figure>,
}

/// Domain of a benchmark.
pub fn of(benchmark: &str) -> &'static str {
    let found = DOMAINS.iter().find(|(_, starts)| starts.iter().any(|s| benchmark.starts_with(s)));
    found.map_or("other", |(domain, _)| domain)
}

/// The view of domain `id`; left out where nothing of it was planned or measured.
pub fn build(page: &mut Page, id: &'static str) -> Option<Value> {
    let figures = figures(page, |r| of(r.benchmark()) == id);
    finish(page, id, figures)
}

/// With figures made elsewhere.
pub fn finish(page: &Page, id: &'static str, figures: Vec<Figure>) -> Option<Value> {
    let planned = page.record.plan.cases.iter().map(|c| &c.benchmark);
    let asked = planned.chain(page.record.plan.not_planned.iter().map(|n| &n.benchmark)).any(|b| of(b) == id);
    if figures.is_empty() && !asked {
        return None;
    }
    let note = if figures.is_empty() { page.t("domain.nothing") } else { page.words.name("domain_note", id) };
    view(&Domain { note, figures })
}
