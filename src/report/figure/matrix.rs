//! Matrices: pairs of devices, and two words of the parameters against each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{all_devices, common, groups, sound, title};
use crate::record::{Better, DeviceId, Value};
use crate::report::chart::Matrix;
use crate::report::reading::Reading;
use crate::report::view::{Figure, Page, Prefix, Row, Table, devices};
use crate::unit::Unit;

/// First device against second device of each pair; a further label would need a matrix of its own.
pub fn pairs(page: &mut Page, metric: &str, readings: &[&Reading]) -> Figure {
    let groups = groups(readings, "");
    let common = common(&groups);
    let names = all_devices(readings);
    let prefix = Prefix::of(readings[0].unit(), readings.iter().map(|r| r.median));
    let title = title(page, metric, &common);
    let group = &groups[0];
    let value = |a: &DeviceId, b: &DeviceId| {
        let pair =
            sound(group).find(|r| r.devices() == [a.clone(), b.clone()] || r.devices() == [b.clone(), a.clone()])?;
        Some((prefix.scaled(pair.median), prefix.number(pair.median)))
    };
    let cells = names.iter().map(|a| names.iter().map(|b| value(a, b)).collect()).collect();
    let labels: Vec<String> = names.iter().map(DeviceId::to_string).collect();
    let low_is_bad = readings[0].series.better == Better::Higher;
    matrix(
        page,
        title,
        page.fill("figure.pairs", &[("unit", &prefix.symbol())]),
        (labels.clone(), labels),
        cells,
        low_is_bad,
    )
}

/// A heat map with its table.
fn matrix(
    page: &mut Page,
    title: String,
    note: String,
    (rows, columns): (Vec<String>, Vec<String>),
    cells: Vec<Vec<Option<(f64, String)>>>,
    low_is_bad: bool,
) -> Figure {
    let text = |cell: &Option<(f64, String)>| cell.as_ref().map_or("–".to_owned(), |c| c.1.clone());
    let table = Table {
        caption: String::new(),
        columns: std::iter::once(String::new()).chain(columns.iter().cloned()).collect(),
        rows: rows
            .iter()
            .zip(&cells)
            .map(|(name, c)| Row { name: name.clone(), cells: c.iter().map(text).collect() })
            .collect(),
    };
    let chart = Matrix { title: title.clone(), description: note.clone(), rows, columns, cells, low_is_bad };
    let chart = page.keep(chart.svg());
    Figure { title, note, chart: Some(chart), table }
}

/// What a matrix is made of: one metric in one unit with equal labels.
type Key = (String, Unit, BTreeMap<String, String>);

fn key(reading: &Reading) -> Key {
    (reading.series.metric.0.clone(), reading.unit(), reading.series.labels.clone())
}

/// Two word parameters against each other, e.g. victim against aggressor: one matrix for each metric, unit and set of
/// labels whose cases differ in exactly two words; the worst device counts. Readings that form no matrix become the
/// figures of [`super::figures`].
pub fn word_matrices(page: &mut Page, belongs: impl Fn(&Reading) -> bool) -> Vec<Figure> {
    let readings = std::mem::take(&mut page.readings);
    let mut keys: Vec<Key> = Vec::new();
    for found in readings.iter().filter(|r| belongs(r)).map(key) {
        if !keys.contains(&found) {
            keys.push(found);
        }
    }
    let mut figures = Vec::new();
    keys.retain(|wanted| {
        let chosen: Vec<&Reading> =
            readings.iter().filter(|r| belongs(r) && key(r) == *wanted && !r.is_void()).collect();
        let figure = word_matrix(page, &chosen);
        let taken = figure.is_some();
        figures.extend(figure);
        taken
    });
    page.readings = readings;
    figures.extend(super::figures(page, |r| belongs(r) && !keys.contains(&key(r))));
    figures
}

fn word_matrix(page: &mut Page, readings: &[&Reading]) -> Option<Figure> {
    let first = readings.first()?.series;
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for reading in readings {
        for (name, value) in &reading.case.params.0 {
            if let Value::Word(word) = value {
                words.entry(name.clone()).or_default().insert(word.clone());
            }
        }
    }
    // "victim" rather than "aggressor" names the rows.
    let mut varying: Vec<_> = words.into_iter().filter(|(_, w)| w.len() > 1).rev().collect();
    let ((row_name, row_words), (column_name, column_words)) = match (varying.pop(), varying.pop(), varying.pop()) {
        (Some(column), Some(row), None) => (row, column),
        _ => return None,
    };
    let better = first.better;
    let prefix = Prefix::of(readings[0].unit(), readings.iter().map(|r| r.median));
    let worst = |row: &String, column: &String| {
        let here = readings.iter().filter(|r| {
            r.case.params.word(&row_name) == Some(row.as_str())
                && r.case.params.word(&column_name) == Some(column.as_str())
        });
        let value = here.map(|r| r.median).reduce(if better == Better::Higher { f64::min } else { f64::max })?;
        Some((value, prefix.number(value)))
    };
    let cells = row_words.iter().map(|r| column_words.iter().map(|c| worst(r, c)).collect()).collect();
    let names = |words: &BTreeSet<String>| words.iter().map(|w| page.words.name("word", w)).collect::<Vec<_>>();
    let labels = first.labels.iter().map(|(n, v)| (n.clone(), Value::Word(v.clone()))).collect();
    let title = title(page, &first.metric.0, &labels);
    let (rows, columns) = (page.words.name("param", &row_name), page.words.name("param", &column_name));
    let note = page.fill(
        "figure.matrix",
        &[
            ("rows", &rows),
            ("columns", &columns),
            ("unit", &prefix.symbol()),
            ("devices", &devices(&all_devices(readings))),
        ],
    );
    let axes = (names(&row_words), names(&column_words));
    Some(matrix(page, title, note, axes, cells, better == Better::Higher))
}
