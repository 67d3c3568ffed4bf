//! Readings arranged into figures by their shape alone: a metric with percentiles becomes a percentile plot, one over
//! three or more sizes a sweep, one between pairs of devices a matrix, everything else bars. No benchmark is known here.

use std::collections::{BTreeMap, BTreeSet};

use super::reading::Reading;
use super::view::{Figure, Page};
use crate::record::{DeviceId, Value};
use crate::unit::Unit;

mod bars;
mod lines;
mod matrix;

pub use matrix::word_matrices;

type Attributes = BTreeMap<String, Value>;

/// One line of a figure: the same thing measured on one or more devices.
struct Group<'r, 'a> {
    attributes: Attributes,
    readings: Vec<&'r Reading<'a>>,
}

/// Fewest distinct sizes that make a sweep.
const SWEEP: usize = 3;
/// Label that holds a percentile, e.g. `p99`.
const PERCENTILE: &str = "percentile";

/// Figures of all readings that `belongs` selects, one or more for each metric and unit, in plan order.
pub fn figures(page: &mut Page, belongs: impl Fn(&Reading) -> bool) -> Vec<Figure> {
    let readings = std::mem::take(&mut page.readings);
    let mut metrics: Vec<(&str, Unit)> = Vec::new();
    for reading in readings.iter().filter(|r| belongs(r)) {
        let key = (reading.series.metric.0.as_str(), reading.unit());
        if !metrics.contains(&key) {
            metrics.push(key);
        }
    }
    let mut figures = Vec::new();
    for (metric, unit) in metrics {
        let of_metric: Vec<&Reading> =
            readings.iter().filter(|r| belongs(r) && r.series.metric.0 == metric && r.unit() == unit).collect();
        arrange(page, metric, of_metric, &mut figures);
    }
    page.readings = readings;
    figures
}

fn arrange(page: &mut Page, metric: &str, readings: Vec<&Reading>, figures: &mut Vec<Figure>) {
    let (percentiles, rest): (Vec<_>, Vec<_>) =
        readings.into_iter().partition(|r| r.series.labels.contains_key(PERCENTILE));
    let (pairs, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|r| r.devices().len() == 2);
    let (sweep, single) = split_sweep(rest);
    if !single.is_empty() {
        figures.push(bars::bars(page, metric, &single));
    }
    if let Some((name, readings)) = sweep {
        figures.push(lines::lines(page, metric, &name, &readings));
    }
    if !percentiles.is_empty() {
        figures.push(lines::lines(page, metric, PERCENTILE, &percentiles));
    }
    if !pairs.is_empty() {
        figures.push(matrix::pairs(page, metric, &pairs));
    }
}

type Sweep<'r, 'a> = Option<(String, Vec<&'r Reading<'a>>)>;

/// The numeric parameter that takes at least [`SWEEP`] values while everything else is equal, with the readings it
/// sweeps, and the readings it does not.
fn split_sweep<'r, 'a>(readings: Vec<&'r Reading<'a>>) -> (Sweep<'r, 'a>, Vec<&'r Reading<'a>>) {
    let numeric =
        |r: &Reading| r.case.params.0.iter().filter(|(_, v)| number(v).is_some()).map(|(n, _)| n.clone()).collect();
    let names: BTreeSet<String> = readings.iter().flat_map(|r| -> Vec<String> { numeric(r) }).collect();
    for name in names {
        let mut values: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for reading in &readings {
            if let Some(value) = reading.case.params.int(&name) {
                values.entry(others(reading, &name)).or_default().insert(value);
            }
        }
        if values.values().any(|v| v.len() >= SWEEP) {
            let swept = |r: &&Reading| {
                let sizes = values.get(&others(r, &name));
                r.case.params.int(&name).is_some() && sizes.is_some_and(|v| v.len() >= SWEEP)
            };
            let (sweep, rest) = readings.into_iter().partition(swept);
            return (Some((name, sweep)), rest);
        }
    }
    (None, readings)
}

/// Everything but the parameter `name`, as one key.
fn others(reading: &Reading, name: &str) -> String {
    let mut attributes = reading.attributes();
    attributes.remove(name);
    format!("{attributes:?}")
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) | Value::Size(n) => Some(*n as f64),
        Value::Word(_) => None,
    }
}

/// Readings grouped by their attributes without `but`, in order of appearance.
fn groups<'r, 'a>(readings: &[&'r Reading<'a>], but: &str) -> Vec<Group<'r, 'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for reading in readings {
        let mut attributes = reading.attributes();
        attributes.remove(but);
        match groups.iter_mut().find(|g| g.attributes == attributes) {
            Some(group) => group.readings.push(reading),
            None => groups.push(Group { attributes, readings: vec![reading] }),
        }
    }
    groups
}

/// Attributes that are the same in every group go into the title; the others name the rows.
fn common(groups: &[Group]) -> Attributes {
    let Some(first) = groups.first() else { return Attributes::new() };
    let same = |(n, v): &(&String, &Value)| groups.iter().all(|g| g.attributes.get(*n) == Some(*v));
    first.attributes.iter().filter(same).map(|(n, v)| (n.clone(), v.clone())).collect()
}

fn label(page: &Page, group: &Group, common: &Attributes) -> String {
    let own = group.attributes.iter().filter(|(n, _)| !common.contains_key(*n));
    let text = page.attributes(&own.map(|(n, v)| (n.clone(), v.clone())).collect());
    if text.is_empty() { page.benchmark(group.readings[0].benchmark()) } else { text }
}

fn title(page: &Page, metric: &str, common: &Attributes) -> String {
    let metric = page.words.name("metric", metric);
    if common.is_empty() { metric } else { format!("{metric} – {}", page.attributes(common)) }
}

fn all_devices(readings: &[&Reading]) -> Vec<DeviceId> {
    let set: BTreeSet<&DeviceId> = readings.iter().flat_map(|r| r.devices()).collect();
    set.into_iter().cloned().collect()
}

/// Right results only: a wrong result has no speed.
fn sound<'r, 'a>(group: &'r Group<'r, 'a>) -> impl Iterator<Item = &'r &'r Reading<'a>> {
    group.readings.iter().filter(|r| !r.is_void())
}

/// The middle value; the upper one of an even number.
fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
