//! Heat map with the numbers in its cells: pairs of devices, victim against aggressor.

use super::{Anchor, Svg, WIDTH, shorten};

/// The chart.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// Name of the picture.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// Names of the rows, top to bottom.
    pub rows: Vec<String>,
    /// Names of the columns, left to right.
    pub columns: Vec<String>,
    /// Row by row: value with its text, where there is one.
    pub cells: Vec<Vec<Option<(f64, String)>>>,
    /// True if a small value is the bad one (and is drawn dark).
    pub low_is_bad: bool,
}

const LEFT: f64 = 150.0;
const ROW: f64 = 28.0;

impl Matrix {
    /// As SVG.
    pub fn svg(&self) -> String {
        let width = ((WIDTH - LEFT - 8.0) / self.columns.len().max(1) as f64).min(92.0);
        let mut svg = Svg::new(30.0 + ROW * self.rows.len() as f64, &self.title, &self.description);
        let values = || self.cells.iter().flatten().flatten().map(|c| c.0).filter(|v| v.is_finite());
        let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        for (i, name) in self.columns.iter().enumerate() {
            let x = LEFT + width * (i as f64 + 0.5);
            svg.text("", Anchor::Middle, (x, 16.0), &shorten(name, width - 4.0));
        }
        for (j, (name, cells)) in self.rows.iter().zip(&self.cells).enumerate() {
            let y = 24.0 + ROW * j as f64;
            svg.text("", Anchor::End, (LEFT - 8.0, y + ROW / 2.0 + 4.0), &shorten(name, LEFT - 12.0));
            for (i, cell) in cells.iter().enumerate() {
                let at = (LEFT + width * i as f64, y);
                let Some((value, text)) = cell else {
                    svg.rect("cell empty", at, (width - 2.0, ROW - 2.0));
                    continue;
                };
                // Only a spread worth seeing gets shades: within 2 % all cells look alike.
                let spread = (high - low).max(high.abs() * 0.02);
                let share = if spread > 0.0 { (value - low) / spread } else { 0.0 };
                let share = if self.low_is_bad { 1.0 - share } else { share };
                let shade = (share.clamp(0.0, 1.0) * 4.0).round() as usize;
                svg.rect(&format!("cell h{shade}"), at, (width - 2.0, ROW - 2.0));
                let centre = (at.0 + width / 2.0 - 1.0, y + ROW / 2.0 + 3.0);
                svg.text(if shade >= 3 { "on-dark" } else { "on-light" }, Anchor::Middle, centre, text);
            }
        }
        svg.finish()
    }
}
