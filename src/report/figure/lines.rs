//! Lines over a size or over percentiles, and the table of their points.

use std::collections::BTreeSet;

use super::{Attributes, Group, PERCENTILE, common, groups, label, middle, sound, title};
use crate::record::Value;
use crate::report::chart::{Line, Lines, Point, Scale, Tick};
use crate::report::reading::Reading;
use crate::report::view::{Figure, Page, Prefix, Row, Table};
use crate::unit::{Bytes, significant};

/// A sweep over the parameter `over`, or over percentiles.
pub fn lines(page: &mut Page, metric: &str, over: &str, readings: &[&Reading]) -> Figure {
    let groups = groups(readings, over);
    let common = common(&groups);
    let title = title(page, metric, &common);
    let percentile = over == PERCENTILE;
    // Percentiles span decades: the middle one sets the prefix, so that no number gets very long.
    let medians = || readings.iter().map(|r| r.median);
    let prefix = match percentile {
        true => Prefix::of(readings[0].unit(), middle(medians().collect())),
        false => Prefix::of(readings[0].unit(), medians()),
    };
    let ticks = ticks(page, over, readings);
    let lines = drawn(page, &groups, &common, &ticks, &prefix, over);
    let spread = lines.iter().flat_map(|l| &l.points).map(|p| p.y);
    let (low, high) = spread.fold((f64::INFINITY, 0.0f64), |(a, b), y| (a.min(y), b.max(y)));
    let note = page.t(if percentile { "figure.percentiles" } else { "figure.sweep" });
    let table = table(page, over, &groups, &lines, &ticks, &prefix);
    let chart = Lines {
        title: title.clone(),
        description: note.clone(),
        x_title: page.words.name("param", over),
        y_title: prefix.symbol(),
        x_scale: if percentile { Scale::Linear } else { Scale::Log },
        x_ticks: ticks,
        y_scale: if low > 0.0 && high / low > 20.0 { Scale::Log } else { Scale::Linear },
        lines,
    };
    let chart = page.keep(chart.svg());
    Figure { title, note, chart: Some(chart), table }
}

/// Position of a reading along the axis.
fn position(reading: &Reading, over: &str) -> f64 {
    if over == PERCENTILE {
        percentile_position(&reading.series.labels[PERCENTILE])
    } else {
        reading.case.params.int(over).unwrap_or(0) as f64
    }
}

fn ticks(page: &Page, over: &str, readings: &[&Reading]) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    for reading in readings {
        let value = position(reading, over);
        if !ticks.iter().any(|t| t.value == value) {
            let label = match over {
                PERCENTILE => page.words.name("word", &reading.series.labels[PERCENTILE]),
                _ => size_label(reading, over),
            };
            ticks.push(Tick { value, label });
        }
    }
    ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
    ticks
}

fn drawn(page: &Page, groups: &[Group], common: &Attributes, ticks: &[Tick], prefix: &Prefix, over: &str) -> Vec<Line> {
    let x = |r: &Reading| position(r, over);
    let line = |group: &Group| Line { label: label(page, group, common), points: points(group, ticks, prefix, &x) };
    groups.iter().map(line).collect()
}

/// Sizes down, lines across; percentiles, which are few, across.
fn table(page: &Page, over: &str, groups: &[Group], lines: &[Line], ticks: &[Tick], prefix: &Prefix) -> Table {
    let corner = format!("{} [{}]", page.words.name("param", over), prefix.symbol());
    let cell = |tick: &Tick, line: &Line, group: &Group| {
        line.points.iter().find(|p| p.x == tick.value).map_or("–".to_owned(), |p| range_text(p, group))
    };
    let pairs = || lines.iter().zip(groups);
    let heads: Vec<String>;
    let rows: Vec<Row>;
    if over == PERCENTILE {
        heads = ticks.iter().map(|t| t.label.clone()).collect();
        let row = |(l, g): (&Line, &Group)| Row {
            name: l.label.clone(),
            cells: ticks.iter().map(|t| cell(t, l, g)).collect(),
        };
        rows = pairs().map(row).collect();
    } else {
        heads = lines.iter().map(|l| l.label.clone()).collect();
        let row = |t: &Tick| Row { name: t.label.clone(), cells: pairs().map(|(l, g)| cell(t, l, g)).collect() };
        rows = ticks.iter().map(row).collect();
    }
    let columns = std::iter::once(corner).chain(heads).collect();
    fold(Table { caption: String::new(), columns, rows })
}

/// A tall table of two columns beside itself: read down, then right.
fn fold(mut table: Table) -> Table {
    const BESIDE: usize = 4;
    if table.columns.len() != 2 || table.rows.len() < 2 * BESIDE {
        return table;
    }
    let height = table.rows.len().div_ceil(BESIDE);
    let rest = table.rows.split_off(height);
    for (i, row) in rest.into_iter().enumerate() {
        table.rows[i % height].cells.extend(std::iter::once(row.name).chain(row.cells));
    }
    let width = table.rows[0].cells.len() + 1;
    table.columns = table.columns.iter().cycle().take(width).cloned().collect();
    for row in &mut table.rows {
        row.cells.resize(width - 1, String::new());
    }
    table
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
