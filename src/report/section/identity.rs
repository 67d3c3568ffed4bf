//! Identity strip: what was tested, when, by what.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::record::{DeviceKind, Record};
use crate::report::text::{SHORT, clean};
use crate::report::view::{Fact, Page};

/// The section.
pub const SECTION: Section = Section {
    id: "identity",
    template: include_str!("../../../report-templates/section/identity.html"),
    listed: false,
    build,
};

#[derive(Serialize)]
struct Identity {
    item: String,
    facts: Vec<Fact>,
}

fn build(page: &mut Page) -> Option<Value> {
    let record = page.record;
    let run = &record.run;
    let end = run.ended_at.as_deref().map_or_else(|| page.t("word.unknown"), |e| clean(e, SHORT));
    let suite = format!(
        "{} (sha256 {}…)",
        clean(&record.suite.name, SHORT),
        clean(&record.suite.sha256, 12).trim_end_matches('…')
    );
    let offer = record.offer.as_ref().map_or_else(|| page.t("word.none_given"), |o| clean(&o.name, SHORT));
    let tool = format!("{} {}", clean(&record.tool.name, 40), clean(&record.tool.version, 40));
    let mut facts = vec![
        page.fact("report", clean(&record.id, SHORT)),
        page.fact("time", format!("{} – {end}", clean(&run.started_at, SHORT))),
        page.fact("suite", suite),
        page.fact("offer", offer),
        page.fact("tool", tool),
    ];
    if let Some(cloud) = &record.inventory.host.cloud {
        facts.insert(1, page.fact("cloud", clean(cloud, SHORT)));
    }
    if let Some(proposed) = &page.assessment.proposed_instance {
        let words = page.fill("item.proposed", &[("instance", proposed)]);
        facts.push(page.fact("proposed", words));
    }
    view(&Identity { item: item(record), facts })
}

/// `8 × NVIDIA H100 80GB HBM3`, or the CPU of the host.
pub fn item(record: &Record) -> String {
    let mut names: Vec<(String, usize)> = Vec::new();
    let selected = record.inventory.selected.iter().filter_map(|id| record.inventory.device(id));
    let gpus = selected.clone().any(|d| d.kind != DeviceKind::Cpu);
    for device in selected.filter(|d| !gpus || d.kind != DeviceKind::Cpu) {
        let name = clean(&device.name, SHORT);
        match names.iter_mut().find(|(n, _)| *n == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    let text: Vec<String> =
        names.into_iter().map(|(name, n)| if n == 1 { name } else { format!("{n} × {name}") }).collect();
    text.join(" + ")
}
