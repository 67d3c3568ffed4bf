//! Readings arranged into figures by their shape alone: a metric with percentiles becomes a percentile plot, one over
//! three or more sizes a sweep, one between pairs of devices a matrix, everything else bars. No benchmark is known here.

use std::collections::{BTreeMap, BTreeSet};

use super::chart::{BarRow, Bars, Line, Lines, Matrix, Point, Reference, Scale, Tick};
use super::reading::Reading;
use super::view::{Figure, Page, Prefix, Row, Table, devices, percent};
use crate::record::{Better, DeviceId, Value};
use crate::unit::{Bytes, Unit};

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
        figures.push(bars(page, metric, &single));
    }
    if let Some((name, readings)) = sweep {
        figures.push(lines(page, metric, &name, &readings));
    }
    if !percentiles.is_empty() {
        figures.push(lines(page, metric, PERCENTILE, &percentiles));
    }
    if !pairs.is_empty() {
        figures.push(pair_matrix(page, metric, &pairs));
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
            let swept = |r: &&Reading| values.get(&others(r, &name)).is_some_and(|v| v.len() >= SWEEP);
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

fn bars(page: &mut Page, metric: &str, readings: &[&Reading]) -> Figure {
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

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
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
        let derivation = super::text::clean(&ceiling.derivation, super::text::SHORT);
        let of = page.fill("share.ceiling", &[("derivation", &derivation)]);
        parts.push(page.fill("share.of", &[("ratio", &percent(reading.median / ceiling.value)), ("of", &of)]));
    }
    parts.dedup();
    if parts.is_empty() { "–".to_owned() } else { parts.join("; ") }
}

fn check(page: &Page, reading: &Reading) -> String {
    use crate::record::Verified;
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

/// A sweep over the parameter `over`, or over percentiles.
fn lines(page: &mut Page, metric: &str, over: &str, readings: &[&Reading]) -> Figure {
    let groups = groups(readings, over);
    let common = common(&groups);
    let title = title(page, metric, &common);
    let percentile = over == PERCENTILE;
    let prefix = if percentile {
        Prefix::of(readings[0].unit(), [middle(readings.iter().map(|r| r.median).collect()).unwrap_or(0.0)])
    } else {
        Prefix::of(readings[0].unit(), readings.iter().map(|r| r.median))
    };
    let x = |r: &Reading| {
        if percentile {
            percentile_position(&r.series.labels[PERCENTILE])
        } else {
            r.case.params.int(over).unwrap_or(0) as f64
        }
    };
    let mut ticks: Vec<Tick> = Vec::new();
    for reading in readings {
        let value = x(reading);
        if !ticks.iter().any(|t| t.value == value) {
            let label = if percentile {
                page.words.name("word", &reading.series.labels[PERCENTILE])
            } else {
                size_label(reading, over)
            };
            ticks.push(Tick { value, label });
        }
    }
    ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
    let line = |group: &Group| Line { label: label(page, group, &common), points: points(group, &ticks, &prefix, &x) };
    let drawn: Vec<Line> = groups.iter().map(line).filter(|l| !l.points.is_empty()).collect();
    let spread = drawn
        .iter()
        .flat_map(|l| &l.points)
        .map(|p| p.y)
        .fold((f64::INFINITY, 0.0f64), |(a, b), y| (a.min(y), b.max(y)));
    let y_scale = if spread.0 > 0.0 && spread.1 / spread.0 > 20.0 { Scale::Log } else { Scale::Linear };
    let note = page.t(if percentile { "figure.percentiles" } else { "figure.sweep" });
    let columns = std::iter::once(format!("{} [{}]", page.words.name("param", over), prefix.symbol()))
        .chain(ticks.iter().map(|t| t.label.clone()))
        .collect();
    let rows = groups.iter().zip(groups.iter().map(line)).map(|(group, line)| {
        let cell =
            |t: &Tick| line.points.iter().find(|p| p.x == t.value).map_or("–".to_owned(), |p| range_text(p, group));
        Row { name: line.label.clone(), cells: ticks.iter().map(cell).collect() }
    });
    let table = Table { caption: String::new(), columns, rows: rows.collect() };
    let chart = Lines {
        title: title.clone(),
        description: note.clone(),
        x_title: page.words.name("param", over),
        y_title: prefix.symbol(),
        x_scale: if percentile { Scale::Linear } else { Scale::Log },
        x_ticks: ticks.clone(),
        y_scale,
        lines: drawn,
    };
    let chart = page.keep(chart.svg());
    Figure { title, note, chart: Some(chart), table }
}

/// One point for each tick: the median of the devices with their range, or of the blocks where there is one device.
fn points(group: &Group, ticks: &[Tick], prefix: &Prefix, x: &impl Fn(&Reading) -> f64) -> Vec<Point> {
    let point = |tick: &Tick| {
        let here: Vec<&&Reading> = sound(group).filter(|r| x(r) == tick.value).collect();
        let y = middle(here.iter().map(|r| r.median).collect())?;
        let (low, high) = match here[..] {
            [only] => (only.low, only.high),
            _ => (
                here.iter().map(|r| r.median).fold(f64::INFINITY, f64::min),
                here.iter().map(|r| r.median).fold(0.0, f64::max),
            ),
        };
        let scaled = |v| prefix.scaled(v);
        Some(Point { x: tick.value, y: scaled(y), low: scaled(low), high: scaled(high) })
    };
    ticks.iter().filter_map(point).filter(|p| p.y.is_finite()).collect()
}

/// `3.01`, or `2.98–3.03` over several devices.
fn range_text(point: &Point, group: &Group) -> String {
    use crate::unit::significant;
    let many = group.readings.iter().map(|r| r.devices()).collect::<BTreeSet<_>>().len() > 1;
    let (low, high) = (significant(point.low), significant(point.high));
    if many && low != high { format!("{low}–{high}") } else { significant(point.y) }
}

/// p50 → 0.3, p99 → 2, p99.9 → 3: equal steps for each further nine.
fn percentile_position(label: &str) -> f64 {
    let percent: f64 = label.trim_start_matches('p').parse().unwrap_or(0.0);
    -(1.0 - (percent / 100.0).clamp(0.0, 0.999_999_9)).log10()
}

fn size_label(reading: &Reading, name: &str) -> String {
    match reading.case.params.0.get(name) {
        Some(Value::Size(n)) => Bytes(*n as f64).to_string().replace(".0 ", " "),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// First device against second device of each pair; a further label would need a matrix of its own.
fn pair_matrix(page: &mut Page, metric: &str, readings: &[&Reading]) -> Figure {
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

/// Two word parameters against each other, e.g. victim against aggressor: one matrix for each metric whose cases differ
/// in exactly two words; the worst device counts. What does not fit stays with [`figures`].
pub fn word_matrices(page: &mut Page, belongs: impl Fn(&Reading) -> bool) -> Vec<Figure> {
    let readings = std::mem::take(&mut page.readings);
    let metrics: Vec<&str> = readings.iter().filter(|r| belongs(r)).map(|r| r.series.metric.0.as_str()).collect();
    let mut figures = Vec::new();
    let mut seen = BTreeSet::new();
    for metric in metrics.into_iter().filter(|m| seen.insert(*m)) {
        let chosen: Vec<&Reading> =
            readings.iter().filter(|r| belongs(r) && r.series.metric.0 == metric && !r.is_void()).collect();
        figures.extend(word_matrix(page, metric, &chosen));
    }
    page.readings = readings;
    figures
}

fn word_matrix(page: &mut Page, metric: &str, readings: &[&Reading]) -> Option<Figure> {
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
    let better = readings.first()?.series.better;
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
    let title = page.words.name("metric", metric);
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
