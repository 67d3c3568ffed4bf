//! Small strips over time, one above the other on a common time axis: median and min–max envelope.

use super::{Anchor, Axis, Scale, Svg, WIDTH, nice_ticks, shorten};

/// One moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StripPoint {
    /// Seconds since the run began.
    pub at: f64,
    /// Lowest of all sources.
    pub low: f64,
    /// Median of all sources.
    pub middle: f64,
    /// Highest of all sources.
    pub high: f64,
}

/// One strip.
#[derive(Debug, Clone)]
pub struct Strip {
    /// Name with unit.
    pub label: String,
    /// By time.
    pub points: Vec<StripPoint>,
    /// Text of the lower edge.
    pub min_text: String,
    /// Text of the upper edge.
    pub max_text: String,
}

/// The chart.
#[derive(Debug, Clone)]
pub struct Strips {
    /// Name of the picture.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// Under the time axis.
    pub axis: String,
    /// Strips from top to bottom.
    pub strips: Vec<Strip>,
}

const LEFT: f64 = 200.0;
const RIGHT: f64 = WIDTH - 12.0;
const STRIP: f64 = 46.0;

impl Strips {
    /// As SVG.
    pub fn svg(&self) -> String {
        let bottom = 4.0 + STRIP * self.strips.len() as f64;
        let mut svg = Svg::new(bottom + 36.0, &self.title, &self.description);
        let times = || self.strips.iter().flat_map(|s| s.points.iter().map(|p| p.at));
        let ticks = nice_ticks(0.0, times().fold(1.0, f64::max), 6);
        let x = Axis { scale: Scale::Linear, min: 0.0, max: ticks[ticks.len() - 1].value, start: LEFT, end: RIGHT };
        for tick in &ticks {
            svg.line("grid", (x.at(tick.value), 4.0), (x.at(tick.value), bottom));
            svg.text("", Anchor::Middle, (x.at(tick.value).min(RIGHT - 8.0), bottom + 14.0), &tick.label);
        }
        svg.text("axis", Anchor::Middle, ((LEFT + RIGHT) / 2.0, bottom + 31.0), &self.axis);
        for (i, strip) in self.strips.iter().enumerate() {
            draw(&mut svg, &x, strip, 4.0 + STRIP * i as f64);
        }
        svg.finish()
    }
}

fn draw(svg: &mut Svg, x: &Axis, strip: &Strip, top: f64) {
    let (upper, lower) = (top + 6.0, top + STRIP - 6.0);
    svg.rect("frame", (LEFT, upper), (RIGHT - LEFT, lower - upper));
    svg.text("", Anchor::Start, (2.0, top + STRIP / 2.0 + 4.0), &shorten(&strip.label, 134.0));
    svg.text("small", Anchor::End, (LEFT - 5.0, upper + 8.0), &strip.max_text);
    svg.text("small", Anchor::End, (LEFT - 5.0, lower), &strip.min_text);
    let low = strip.points.iter().map(|p| p.low).fold(f64::INFINITY, f64::min);
    let high = strip.points.iter().map(|p| p.high).fold(f64::NEG_INFINITY, f64::max);
    // A constant reading is drawn in the middle of its strip.
    let (low, high) = if high > low { (low, high) } else { (low - 1.0, high + 1.0) };
    let y = Axis { scale: Scale::Linear, min: low, max: high, start: lower, end: upper };
    let above = strip.points.iter().map(|p| (x.at(p.at), y.at(p.high)));
    let below = strip.points.iter().rev().map(|p| (x.at(p.at), y.at(p.low)));
    let band: Vec<(f64, f64)> = above.chain(below).collect();
    svg.area("envelope s1", &band);
    let middle: Vec<(f64, f64)> = strip.points.iter().map(|p| (x.at(p.at), y.at(p.middle))).collect();
    svg.polyline("line s1", &middle);
    if let [only] = middle[..] {
        svg.dot("point s1", only, 2.0);
    }
}

/// Readings of all sources gathered into at most `columns` moments of equal length.
pub fn envelope(readings: &[(f64, f64)], columns: usize) -> Vec<StripPoint> {
    let finite = || readings.iter().filter(|(t, v)| t.is_finite() && v.is_finite());
    let (first, last) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (t, _)| (a.min(*t), b.max(*t)));
    let width = (last - first) / columns as f64;
    let mut cells: Vec<Vec<(f64, f64)>> = vec![Vec::new(); columns];
    for &(at, value) in finite() {
        let cell = if width > 0.0 { ((at - first) / width) as usize } else { 0 };
        cells[cell.min(columns - 1)].push((at, value));
    }
    let summarise = |mut cell: Vec<(f64, f64)>| {
        let at = cell.iter().map(|c| c.0).sum::<f64>() / cell.len() as f64;
        cell.sort_by(|a, b| a.1.total_cmp(&b.1));
        StripPoint { at, low: cell[0].1, middle: cell[cell.len() / 2].1, high: cell[cell.len() - 1].1 }
    };
    cells.into_iter().filter(|c| !c.is_empty()).map(summarise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelope_keeps_extremes_and_bounds_points() {
        let readings: Vec<(f64, f64)> =
            (0..10_000).map(|i| (i as f64, if i == 777 { 5.0 } else { 100.0 + (i % 7) as f64 })).collect();
        let points = envelope(&readings, 150);
        assert_eq!(points.len(), 150);
        assert_eq!(points.iter().map(|p| p.low).fold(f64::INFINITY, f64::min), 5.0);
        assert_eq!(points.iter().map(|p| p.high).fold(0.0, f64::max), 106.0);
        assert!(points.windows(2).all(|w| w[0].at < w[1].at));
        assert_eq!(envelope(&[(3.0, 1.0), (3.0, f64::NAN)], 150).len(), 1);
        assert!(envelope(&[], 150).is_empty());
    }
}
