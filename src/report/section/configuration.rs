//! Configuration: backends, attributes, engines, environment, contradictions and notices. Nothing here sets a verdict.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::record::{BackendState, DeviceInfo, Notice, Outcome};
use crate::report::text::{LONG, SHORT, clean};
use crate::report::view::{Fact, Page, devices, percent};

/// The section.
pub const SECTION: Section = Section {
    id: "configuration",
    template: include_str!("../../../report-templates/section/configuration.html"),
    listed: true,
    build,
};

#[derive(Serialize)]
struct Configuration {
    notices: Vec<String>,
    disagreements: Vec<String>,
    backends: Vec<Fact>,
    engines: Vec<Fact>,
    attributes: Vec<Fact>,
    states: Vec<Fact>,
    environment: Vec<Fact>,
}

fn build(page: &mut Page) -> Option<Value> {
    let record = page.record;
    let plain = |(n, v): (&String, &String)| Fact { name: clean(n, SHORT), value: clean(v, LONG) };
    let states = record.telemetry.states.iter();
    view(&Configuration {
        notices: record.notices.iter().map(|n| notice(page, n)).collect(),
        disagreements: disagreements(page),
        backends: backends(page),
        engines: engines(page),
        attributes: record.inventory.host.attributes.iter().map(plain).chain(attributes(page)).collect(),
        states: states.map(|(n, v)| Fact { name: clean(n, SHORT), value: page.observed(v) }).collect(),
        environment: record.run.neutralised_environment.iter().map(plain).collect(),
    })
}

fn notice(page: &Page, notice: &Notice) -> String {
    let fill = |key: &str, arguments: &[(&str, &str)]| page.fill(key, arguments);
    match notice {
        Notice::ForeignProcess { device, name, share } => fill(
            "notice.foreign_process",
            &[("device", &device.to_string()), ("name", &clean(name, SHORT)), ("share", &percent(*share))],
        ),
        Notice::DeviceChanged { device, before, after } => fill(
            "notice.device_changed",
            &[("device", &device.to_string()), ("before", &clean(before, SHORT)), ("after", &clean(after, SHORT))],
        ),
        Notice::Abandoned { cases, doing } => {
            fill("notice.abandoned", &[("n", &cases.len().to_string()), ("doing", &clean(doing, SHORT))])
        }
        Notice::NoTelemetry { reason } => fill("notice.no_telemetry", &[("reason", &clean(reason, LONG))]),
        Notice::BudgetSpent { cases } => fill("notice.budget_spent", &[("n", &cases.len().to_string())]),
        Notice::Resumed { rounds } => fill("notice.resumed", &[("n", &rounds.to_string())]),
    }
}

fn disagreements(page: &Page) -> Vec<String> {
    let all = page.record.inventory.disagreements.iter();
    all.map(|d| {
        let side = |(source, says): &(String, String)| format!("{}: {}", clean(source, SHORT), clean(says, SHORT));
        let words = [
            ("device", d.device.to_string()),
            ("about", clean(&d.about, SHORT)),
            ("first", side(&d.first)),
            ("second", side(&d.second)),
        ];
        page.fill("configuration.disagreement", &words.each_ref().map(|(n, v)| (*n, v.as_str())))
    })
    .collect()
}

fn backends(page: &Page) -> Vec<Fact> {
    let state = |state: &BackendState| match state {
        BackendState::Present { version, library } => {
            let library = library.as_ref().map_or(String::new(), |l| format!(" ({})", clean(l, SHORT)));
            format!("{}{library}", clean(version, SHORT))
        }
        BackendState::Absent { reason, remedy } => {
            let remedy = clean(remedy, LONG);
            let text = page.fill("configuration.absent", &[("reason", &clean(reason, LONG))]);
            if remedy.is_empty() { text } else { format!("{text} {remedy}") }
        }
    };
    let all = page.record.inventory.backends.iter();
    all.map(|b| Fact { name: b.id.to_string(), value: state(&b.state) }).collect()
}

/// Who did the work of each benchmark.
fn engines(page: &Page) -> Vec<Fact> {
    let mut by_benchmark: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (case, result) in page.record.plan.cases.iter().zip(&page.record.results) {
        if let Outcome::Measured(m) = &result.outcome {
            let e = &m.engine;
            let parts = [Some(&e.name), e.version.as_ref(), e.library.as_ref()];
            let text: Vec<String> = parts.into_iter().flatten().map(|t| clean(t, SHORT)).collect();
            by_benchmark.entry(&case.benchmark).or_default().insert(text.join(" "));
        }
    }
    let fact = |(b, e): (&str, BTreeSet<String>)| Fact {
        name: page.benchmark(b),
        value: e.into_iter().collect::<Vec<_>>().join("; "),
    };
    by_benchmark.into_iter().map(fact).collect()
}

/// Attributes of the selected devices; one line for all devices that say the same.
fn attributes(page: &Page) -> Vec<Fact> {
    let inventory = &page.record.inventory;
    let selected: Vec<&DeviceInfo> = inventory.selected.iter().filter_map(|id| inventory.device(id)).collect();
    let mut lines: BTreeMap<(&str, &str), Vec<_>> = BTreeMap::new();
    for device in selected {
        for (name, value) in &device.attributes {
            lines.entry((name, value)).or_default().push(device.id.clone());
        }
    }
    let fact = |((name, value), ids): ((&str, &str), Vec<_>)| Fact {
        name: format!("{} ({})", clean(name, SHORT), devices(&ids)),
        value: clean(value, LONG),
    };
    lines.into_iter().map(fact).collect()
}
