//! Lines over sizes or percentiles, told apart by dash and a label at their end, with an envelope of devices or blocks.

use super::{Anchor, Axis, Scale, Svg, Tick, WIDTH, log_ticks, nice_ticks, shorten};

/// One point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Position.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// At its end.
    pub label: String,
    /// By x.
    pub points: Vec<Point>,
}

/// The chart.
#[derive(Debug, Clone)]
pub struct Lines {
    /// Name of the picture.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// Under the x axis.
    pub x_title: String,
    /// Over the y axis.
    pub y_title: String,
    /// Spread of x.
    pub x_scale: Scale,
    /// Ticks of x, ready.
    pub x_ticks: Vec<Tick>,
    /// Spread of y.
    pub y_scale: Scale,
    /// Lines.
    pub lines: Vec<Line>,
}

const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 170.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 224.0;
/// Least distance between two labels at the ends of lines.
const LABEL: f64 = 13.0;

impl Lines {
    /// As SVG.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(BOTTOM + 40.0, &self.title, &self.description);
        let points = || self.lines.iter().flat_map(|l| &l.points);
        let (x_min, x_max) = extent(points().map(|p| p.x));
        let (y_min, y_max) = extent(points().flat_map(|p| [p.low, p.y, p.high]));
        let y_ticks = match self.y_scale {
            Scale::Linear => nice_ticks(0.0, y_max, 5),
            Scale::Log => log_ticks(y_min, y_max),
        };
        let (Some(first), Some(last)) = (y_ticks.first(), y_ticks.last()) else { return svg.finish() };
        let x = Axis { scale: self.x_scale, min: x_min, max: x_max, start: LEFT, end: RIGHT };
        let y = Axis { scale: self.y_scale, min: first.value, max: last.value, start: BOTTOM, end: TOP };
        for tick in &y_ticks {
            let at = y.at(tick.value);
            svg.line("grid", (LEFT, at), (RIGHT, at));
            svg.text("", Anchor::End, (LEFT - 6.0, at + 4.0), &tick.label);
        }
        let mut taken = f64::NEG_INFINITY;
        for tick in self.x_ticks.iter().filter(|t| t.value >= x_min * 0.999 && t.value <= x_max * 1.001) {
            let at = x.at(tick.value);
            svg.line("grid", (at, BOTTOM), (at, BOTTOM + 4.0));
            if at - taken >= 52.0 {
                svg.text("", Anchor::Middle, (at, BOTTOM + 17.0), &tick.label);
                taken = at;
            }
        }
        svg.text("axis", Anchor::Middle, ((LEFT + RIGHT) / 2.0, BOTTOM + 35.0), &self.x_title);
        svg.text("axis", Anchor::Start, (4.0, 12.0), &self.y_title);
        self.draw(&mut svg, &x, &y);
        svg.finish()
    }

    fn draw(&self, svg: &mut Svg, x: &Axis, y: &Axis) {
        let mut labels: Vec<(f64, &str, usize)> = Vec::new();
        for (i, line) in self.lines.iter().enumerate() {
            let style = i % 6 + 1;
            let upper = line.points.iter().map(|p| (x.at(p.x), y.at(p.high)));
            let lower = line.points.iter().rev().map(|p| (x.at(p.x), y.at(p.low)));
            let band: Vec<(f64, f64)> = upper.chain(lower).collect();
            svg.area(&format!("envelope s{style}"), &band);
            let trace: Vec<(f64, f64)> = line.points.iter().map(|p| (x.at(p.x), y.at(p.y))).collect();
            svg.polyline(&format!("line s{style}"), &trace);
            for &at in &trace {
                svg.dot(&format!("point s{style}"), at, 1.8);
            }
            if let Some(&(_, at)) = trace.last() {
                labels.push((at, &line.label, style));
            }
        }
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = TOP - LABEL;
        let overflow = (labels.len() as f64 * LABEL - (BOTTOM - TOP)).max(0.0);
        for (at, label, style) in labels {
            let wanted = at.min(BOTTOM - overflow);
            free = wanted.max(free + LABEL);
            svg.line(&format!("line s{style}"), (RIGHT + 6.0, free), (RIGHT + 24.0, free));
            svg.text("", Anchor::Start, (RIGHT + 28.0, free + 4.0), &shorten(label, WIDTH - RIGHT - 30.0));
        }
    }
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let all = values.filter(|v| v.is_finite());
    all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}
