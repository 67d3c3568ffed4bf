//! Interval plot: each result as a share of its limit, with its uncertainty. The one-glance chart.

use super::{Anchor, Axis, Scale, Shape, Svg, Tick, WIDTH, nice_ticks, shorten};

/// One result.
#[derive(Debug, Clone)]
pub struct IntervalRow {
    /// What it is.
    pub label: String,
    /// Its status.
    pub shape: Shape,
    /// Share of the limit, so that above 1 is on the good side.
    pub value: f64,
    /// Uncertainty as a share of the limit.
    pub uncertainty: f64,
}

/// The chart.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Name of the picture.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// Under the axis.
    pub axis: String,
    /// From top to bottom.
    pub rows: Vec<IntervalRow>,
}

const LEFT: f64 = 330.0;
const ROW: f64 = 20.0;
/// Shares beyond these are drawn at the edge with an arrow.
const LOWEST: f64 = 0.4;
const HIGHEST: f64 = 1.6;

impl Interval {
    /// As SVG.
    pub fn svg(&self) -> String {
        let bottom = 10.0 + ROW * self.rows.len() as f64;
        let mut svg = Svg::new(bottom + 36.0, &self.title, &self.description);
        let low = self.rows.iter().map(|r| r.value - r.uncertainty).fold(0.95, f64::min).max(LOWEST);
        let high = self.rows.iter().map(|r| r.value + r.uncertainty).fold(1.05, f64::max).min(HIGHEST);
        let ticks = nice_ticks(low * 100.0, high * 100.0, 7);
        let (first, last) = (ticks[0].value, ticks[ticks.len() - 1].value);
        let axis = Axis { scale: Scale::Linear, min: first, max: last, start: LEFT, end: WIDTH - 20.0 };
        for Tick { value, label } in &ticks {
            let x = axis.at(*value);
            svg.line("grid", (x, 6.0), (x, bottom));
            svg.text("", Anchor::Middle, (x, bottom + 14.0), &format!("{label} %"));
        }
        let limit = axis.at(100.0);
        svg.line("limit", (limit, 4.0), (limit, bottom + 2.0));
        svg.text("axis", Anchor::Middle, ((LEFT + WIDTH - 20.0) / 2.0, bottom + 31.0), &self.axis);
        for (i, row) in self.rows.iter().enumerate() {
            let y = 16.0 + ROW * i as f64;
            svg.text("", Anchor::End, (LEFT - 14.0, y + 4.0), &shorten(&row.label, LEFT - 18.0));
            let (value, u) = (row.value * 100.0, row.uncertainty * 100.0);
            svg.line("interval", (axis.at(value - u), y), (axis.at(value + u), y));
            svg.mark(row.shape, (axis.at(value), y));
            if value < first {
                svg.path("arrow", &format!("M{} {}l-6 4l6 4z", LEFT - 8.0, y - 4.0));
            } else if value > last {
                svg.path("arrow", &format!("M{} {}l6 4l-6 4z", WIDTH - 11.0, y - 4.0));
            }
        }
        svg.finish()
    }
}
