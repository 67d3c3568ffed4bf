//! Horizontal bars from zero: the bar is the median of the devices, dots are the devices, ticks are references.

use super::{Anchor, Axis, Scale, Svg, WIDTH, nice_ticks, shorten};

/// A value to compare with; the class tells limit, ceiling and figure apart by line style.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// `limit`, `ceiling` or `figure`.
    pub class: &'static str,
    /// In the chart's unit.
    pub value: f64,
}

/// One bar.
#[derive(Debug, Clone)]
pub struct BarRow {
    /// What it is.
    pub label: String,
    /// Number as written at the end of the bar.
    pub text: String,
    /// One value per device, with the 5th and 95th percentile of its blocks.
    pub values: Vec<(f64, f64, f64)>,
    /// Values to compare with.
    pub references: Vec<Reference>,
}

/// The chart.
#[derive(Debug, Clone)]
pub struct Bars {
    /// Name of the picture.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// Unit, under the axis.
    pub axis: String,
    /// From top to bottom.
    pub rows: Vec<BarRow>,
}

const LEFT: f64 = 230.0;
const RIGHT: f64 = WIDTH - 80.0;
const ROW: f64 = 26.0;

impl Bars {
    /// As SVG.
    pub fn svg(&self) -> String {
        let bottom = 8.0 + ROW * self.rows.len() as f64;
        let mut svg = Svg::new(bottom + 36.0, &self.title, &self.description);
        let values = self.rows.iter().flat_map(|r| {
            r.values.iter().map(|v| v.2.max(v.0)).chain(r.references.iter().map(|reference| reference.value))
        });
        let ticks = nice_ticks(0.0, values.filter(|v| v.is_finite()).fold(0.0, f64::max), 6);
        let axis = Axis { scale: Scale::Linear, min: 0.0, max: ticks[ticks.len() - 1].value, start: LEFT, end: RIGHT };
        for tick in &ticks {
            let x = axis.at(tick.value);
            svg.line("grid", (x, 6.0), (x, bottom));
            svg.text("", Anchor::Middle, (x, bottom + 14.0), &tick.label);
        }
        svg.text("axis", Anchor::Middle, ((LEFT + RIGHT) / 2.0, bottom + 31.0), &self.axis);
        for (i, row) in self.rows.iter().enumerate() {
            draw(&mut svg, &axis, row, 8.0 + ROW * i as f64);
        }
        svg.finish()
    }
}

fn draw(svg: &mut Svg, axis: &Axis, row: &BarRow, top: f64) {
    let middle = top + ROW / 2.0;
    svg.text("", Anchor::End, (LEFT - 8.0, middle + 4.0), &shorten(&row.label, LEFT - 12.0));
    let mut medians: Vec<f64> = row.values.iter().map(|v| v.0).collect();
    medians.sort_by(f64::total_cmp);
    let Some(&bar) = medians.get(medians.len() / 2) else { return };
    svg.rect("bar", (LEFT, top + 6.0), (axis.at(bar) - LEFT, ROW - 12.0));
    for reference in &row.references {
        let x = axis.at(reference.value);
        svg.line(reference.class, (x, top + 2.0), (x, top + ROW - 2.0));
    }
    if let [(_, low, high)] = row.values[..] {
        svg.line("interval", (axis.at(low), middle), (axis.at(high), middle));
    } else {
        for (value, _, _) in &row.values {
            svg.dot("unit", (axis.at(*value), middle), 3.0);
        }
    }
    let rightmost = row.values.iter().map(|v| v.2.max(v.0)).chain(row.references.iter().map(|r| r.value));
    let end = axis.at(rightmost.fold(0.0, f64::max));
    svg.text("value", Anchor::Start, (end + 6.0, middle + 4.0), &row.text);
}
