//! Method and uncertainty in words: the decision rule, the statistic, and how each benchmark that was used works.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::record::Outcome;
use crate::report::text::{LONG, clean};
use crate::report::view::{Page, percent};

/// The section.
pub const SECTION: Section = Section {
    id: "method",
    template: include_str!("../../../report-templates/section/method.html"),
    listed: true,
    build,
};

#[derive(Serialize)]
struct Method {
    paragraphs: Vec<String>,
    benchmarks: Vec<Benchmark>,
}

#[derive(Serialize)]
struct Benchmark {
    id: String,
    title: String,
    measures: String,
    why: String,
    method: String,
    limits: String,
    checks: Vec<String>,
}

fn build(page: &mut Page) -> Option<Value> {
    let mut paragraphs: Vec<String> =
        ["method.statistic", "method.uncertainty", "method.rule", "method.limits", "method.words"]
            .map(|k| page.t(k))
            .into();
    let detectable = page.assessment.requirements.iter().filter_map(|r| r.detectable).filter(|d| d.is_finite());
    if let Some(largest) = detectable.reduce(f64::max) {
        paragraphs.push(page.fill("method.detectable", &[("ratio", &percent(largest))]));
    }
    let mut checks: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (case, result) in page.record.plan.cases.iter().zip(&page.record.results) {
        let used = checks.entry(&case.benchmark).or_default();
        if let Outcome::Measured(m) = &result.outcome {
            used.insert(clean(&m.verification.method, LONG));
        }
    }
    let benchmarks = checks.into_iter().map(|(id, checks)| benchmark(page, id, checks)).collect();
    view(&Method { paragraphs, benchmarks })
}

fn benchmark(page: &Page, id: &str, checks: BTreeSet<String>) -> Benchmark {
    let text = page.methods.iter().find(|m| m.id == id);
    let field = |f: fn(&crate::report::MethodText<'_>) -> String| text.map(f).unwrap_or_default();
    Benchmark {
        id: clean(id, 40),
        title: page.benchmark(id),
        measures: field(|m| m.measures.to_owned()),
        why: field(|m| m.why.to_owned()),
        method: field(|m| m.method.to_owned()),
        limits: field(|m| m.limits.to_owned()),
        checks: checks.into_iter().filter(|c| !c.is_empty()).take(4).collect(),
    }
}
