//! Bars with reference ticks, and the table of the same numbers by statistic (one device) or by device (several).

use std::collections::BTreeMap;

use super::{Attributes, Group, all_devices, common, groups, label, middle, sound, title};
use crate::record::{DeviceId, Verified};
use crate::report::chart::{BarRow, Bars, Reference};
use crate::report::reading::Reading;
use crate::report::text::{SHORT, clean};
use crate::report::view::{Figure, Page, Prefix, Row, Table, percent};

fn references(group: &Group, prefix: &Prefix) -> Vec<Reference> {
    let mut found: BTreeMap<&'static str, f64> = BTreeMap::new();
    let mut add = |class, value: f64| {
        if value.is_finite() && value > 0.0 {
            let kept = found.entry(class).or_insert(value);
            *kept = kept.min(value);
        }
    };
    for reading in &group.readings {
        for requirement in &reading.requirements {
            requirement.limit.iter().for_each(|l| add("limit", l.value));
            requirement.shares.iter().for_each(|s| add("figure", s.value));
        }
        if let (true, Some(ceiling)) = (reading.series.primary, &reading.measurement.ceiling) {
            add("ceiling", ceiling.value);
        }
    }
    found.into_iter().map(|(class, value)| Reference { class, value: prefix.scaled(value) }).collect()
}

/// One bar for each group.
pub fn bars(page: &mut Page, metric: &str, readings: &[&Reading]) -> Figure {
    let groups = groups(readings, "");
    let common = common(&groups);
    let prefix = Prefix::of(readings[0].unit(), readings.iter().map(|r| r.median));
    let title = title(page, metric, &common);
    let row = |group: &Group| {
        let values: Vec<_> =
            sound(group).map(|r| (prefix.scaled(r.median), prefix.scaled(r.low), prefix.scaled(r.high))).collect();
        BarRow {
            label: label(page, group, &common),
            text: middle(sound(group).map(|r| r.median).collect()).map_or(page.t("word.void"), |m| prefix.number(m)),
            values,
            references: references(group, &prefix),
        }
    };
    let rows: Vec<BarRow> = groups.iter().map(row).collect();
    let has_references = rows.iter().any(|r| !r.references.is_empty());
    let devices = all_devices(readings);
    let note = page.t(if devices.len() > 1 { "figure.bars_many" } else { "figure.bars_one" });
    let note = if has_references { format!("{note} {}", page.t("figure.references")) } else { note };
    let chart = Bars { title: title.clone(), description: note.clone(), axis: prefix.symbol(), rows };
    let chart = page.keep(chart.svg());
    let table = if devices.len() > 1 {
        device_table(page, &groups, &common, &prefix, &devices)
    } else {
        single_table(page, &groups, &common, &prefix)
    };
    Figure { title, note, chart: Some(chart), table }
}

fn single_table(page: &Page, groups: &[Group], common: &Attributes, prefix: &Prefix) -> Table {
    let unit = prefix.symbol();
    let columns = [
        "",
        "column.median",
        "column.uncertainty",
        "column.p05",
        "column.p95",
        "column.blocks",
        "column.share",
        "column.check",
    ];
    let head = |key: &&str| if key.is_empty() { String::new() } else { page.fill(key, &[("unit", &unit)]) };
    let row = |group: &Group| {
        let r = group.readings[0];
        Row {
            name: label(page, group, common),
            cells: vec![
                prefix.number(r.median),
                r.uncertainty().map_or("–".to_owned(), |u| prefix.uncertainty(u)),
                prefix.number(r.low),
                prefix.number(r.high),
                r.series.blocks.len().to_string(),
                shares(page, r),
                check(page, r),
            ],
        }
    };
    Table {
        caption: String::new(),
        columns: columns.iter().map(head).collect(),
        rows: groups.iter().map(row).collect(),
    }
}

/// `93.2 % of the same-run ceiling`, for everything the value is set against.
fn shares(page: &Page, reading: &Reading) -> String {
    let judged = reading.requirements.iter().flat_map(|r| &r.shares);
    let mut parts: Vec<String> =
        judged.map(|s| page.fill("share.of", &[("ratio", &percent(s.ratio)), ("of", &page.message(&s.of))])).collect();
    if let (true, Some(ceiling)) = (reading.series.primary, &reading.measurement.ceiling) {
        let derivation = clean(&ceiling.derivation, SHORT);
        let of = page.fill("share.ceiling", &[("derivation", &derivation)]);
        parts.push(page.fill("share.of", &[("ratio", &percent(reading.median / ceiling.value)), ("of", &of)]));
    }
    parts.dedup();
    if parts.is_empty() { "–".to_owned() } else { parts.join("; ") }
}

fn check(page: &Page, reading: &Reading) -> String {
    page.t(match reading.measurement.verification.verified {
        Verified::Right => "check.right",
        Verified::Wrong { .. } => "check.wrong",
        Verified::NotApplicable { .. } => "check.none",
    })
}

/// Rows against devices, and the largest uncertainty.
fn device_table(page: &Page, groups: &[Group], common: &Attributes, prefix: &Prefix, all: &[DeviceId]) -> Table {
    let mut columns = vec![page.fill("column.devices", &[("unit", &prefix.symbol())])];
    columns.extend(all.iter().map(DeviceId::to_string));
    columns.push(page.fill("column.largest_uncertainty", &[("unit", &prefix.symbol())]));
    let row = |group: &Group| {
        let cell = |device: &DeviceId| {
            let reading = group.readings.iter().find(|r| r.devices().contains(device));
            reading.map_or("–".to_owned(), |r| if r.is_void() { page.t("word.void") } else { prefix.number(r.median) })
        };
        let largest = group.readings.iter().filter_map(|r| r.uncertainty()).reduce(f64::max);
        let mut cells: Vec<String> = all.iter().map(cell).collect();
        cells.push(largest.map_or("–".to_owned(), |u| prefix.uncertainty(u)));
        Row { name: label(page, group, common), cells }
    };
    Table { caption: String::new(), columns, rows: groups.iter().map(row).collect() }
}
