//! Stability: how the results held over the rounds, and what the sensors read meanwhile.

use std::collections::BTreeMap;

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::record::TelemetrySeries;
use crate::report::chart::{Strip, Strips, envelope};
use crate::report::text::{LONG, SHORT, clean};
use crate::report::view::{Fact, Figure, Page, Prefix, Row, Table};
use crate::unit::Unit;

/// The section.
pub const SECTION: Section = Section {
    id: "stability",
    template: include_str!("../../../report-templates/section/stability.html"),
    listed: true,
    build,
};

/// Moments of a strip: two values each keep a line within 300 points.
const COLUMNS: usize = 150;
/// Strips and table rows at most.
const MOST_STRIPS: usize = 16;
const MOST_ROWS: usize = 64;

#[derive(Serialize)]
struct Stability {
    figures: Vec<Figure>,
    not_observable: Vec<Fact>,
}

fn build(page: &mut Page) -> Option<Value> {
    let figures: Vec<Figure> = [rounds(page), sensors(page)].into_iter().flatten().collect();
    let telemetry = &page.record.telemetry;
    let facts = telemetry.not_observable.iter().take(MOST_ROWS);
    let not_observable: Vec<Fact> = facts.map(|(n, r)| Fact { name: clean(n, SHORT), value: clean(r, LONG) }).collect();
    if figures.is_empty() && not_observable.is_empty() {
        return None;
    }
    view(&Stability { figures, not_observable })
}

/// Blocks of each primary metric relative to the median of their series.
fn rounds(page: &mut Page) -> Option<Figure> {
    struct Metric<'m> {
        name: &'m str,
        points: Vec<(f64, f64)>,
        drifts: Vec<f64>,
    }
    let mut metrics: Vec<Metric> = Vec::new();
    for reading in page.readings.iter().filter(|r| r.series.primary && r.median > 0.0 && !r.is_void()) {
        let metric = reading.series.metric.0.as_str();
        let found = metrics.iter().position(|m| m.name == metric);
        let at = found.unwrap_or_else(|| {
            metrics.push(Metric { name: metric, points: Vec::new(), drifts: Vec::new() });
            metrics.len() - 1
        });
        metrics[at].points.extend(reading.series.blocks.iter().map(|b| (b.start.0, b.value / reading.median - 1.0)));
        metrics[at].drifts.extend(reading.requirements.iter().filter_map(|r| r.measured).map(|m| m.drift));
    }
    let mut strips = Vec::new();
    let mut rows = Vec::new();
    for Metric { name, points, drifts } in &metrics {
        let values: Vec<f64> = points.iter().map(|p| p.1).collect();
        let (low, high) = range(&values);
        let label = page.words.name("metric", name);
        let drift =
            drifts.iter().copied().filter(|d| d.is_finite()).reduce(|a, b| if a.abs() > b.abs() { a } else { b });
        let cells = vec![values.len().to_string(), signed(low), signed(high), drift.map_or("–".to_owned(), signed)];
        rows.push(Row { name: label.clone(), cells });
        strips.push(strip(label, points, &signed(low), &signed(high)));
    }
    let heads = ["column.metric", "column.blocks", "column.lowest", "column.highest", "column.drift"];
    let columns = heads.iter().map(|k| page.t(k)).collect();
    figure(page, ("figure.rounds", "figure.rounds_note"), strips, Table { caption: String::new(), columns, rows })
}

/// Readings of each sensor over all its sources.
fn sensors(page: &mut Page) -> Option<Figure> {
    let mut by_sensor: BTreeMap<(&str, bool), Vec<&TelemetrySeries>> = BTreeMap::new();
    for series in page.record.telemetry.series.iter().filter(|s| !s.points.is_empty()) {
        by_sensor.entry((&series.sensor, series.counter)).or_default().push(series);
    }
    let mut strips = Vec::new();
    let mut rows = Vec::new();
    for ((sensor, counter), all) in by_sensor {
        let points: Vec<(f64, f64)> = all.iter().flat_map(|s| shown(s)).collect();
        let (low, high) = range(&points.iter().map(|p| p.1).collect::<Vec<_>>());
        let prefix = Prefix::of(all[0].unit, [high]);
        let name = page.words.name("sensor", &clean(sensor, SHORT));
        let label = if counter { page.fill("sensor.total", &[("name", &name)]) } else { name.clone() };
        strips.push(strip(label.clone(), &points, &prefix.quantity(low), &prefix.quantity(high)));
        for series in all {
            rows.push(sensor_row(&label, series, &prefix));
        }
    }
    rows.truncate(MOST_ROWS);
    let heads = ["column.sensor", "column.source", "column.lowest", "column.median_plain", "column.highest"];
    let columns = heads.iter().map(|k| page.t(k)).collect();
    figure(page, ("figure.sensors", "figure.sensors_note"), strips, Table { caption: String::new(), columns, rows })
}

/// Of a running total only the growth since the start means something.
fn shown(series: &TelemetrySeries) -> Vec<(f64, f64)> {
    let first = if series.counter { series.points.first().map_or(0.0, |p| p.value) } else { 0.0 };
    series.points.iter().map(|p| (p.at.0, p.value - first)).collect()
}

fn sensor_row(label: &str, series: &TelemetrySeries, prefix: &Prefix) -> Row {
    let mut values: Vec<f64> = shown(series).into_iter().map(|p| p.1).filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).map_or("–".to_owned(), |v| prefix.quantity(*v));
    let cells = vec![clean(&series.source, 40), at(0), at(values.len() / 2), at(values.len().saturating_sub(1))];
    Row { name: label.to_owned(), cells }
}

/// A relative change as a percentage with its sign.
fn signed(ratio: f64) -> String {
    format!("{:+.2} %", ratio * 100.0)
}

fn range(values: &[f64]) -> (f64, f64) {
    let finite = values.iter().copied().filter(|v| v.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
}

fn strip(label: String, points: &[(f64, f64)], low: &str, high: &str) -> Strip {
    Strip { label, points: envelope(points, COLUMNS), min_text: low.to_owned(), max_text: high.to_owned() }
}

fn figure(page: &mut Page, (title, note): (&str, &str), mut strips: Vec<Strip>, table: Table) -> Option<Figure> {
    if strips.is_empty() {
        return None;
    }
    strips.truncate(MOST_STRIPS);
    let (title, note) = (page.t(title), page.t(note));
    let axis = page.fill("figure.time", &[("unit", Unit::Second.symbol())]);
    let chart = Strips { title: title.clone(), description: note.clone(), axis, strips };
    let chart = Some(page.keep(chart.svg()));
    Some(Figure { title, note, chart, table })
}
