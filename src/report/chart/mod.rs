//! Charts as inline SVG: classes instead of colours (the stylesheet decides light, dark and print), a title and a
//! description for readers who do not see them, every text escaped here. A chart knows numbers and ready strings; it
//! knows no benchmark and no verdict rule.

mod axis;
mod bars;
mod interval;
mod lines;
mod matrix;
mod strips;

use std::fmt::Write;

pub use axis::{Axis, Scale, Tick, log_ticks, nice_ticks};
pub use bars::{BarRow, Bars, Reference};
pub use interval::{Interval, IntervalRow};
pub use lines::{Line, Lines, Point};
pub use matrix::Matrix;
pub use strips::{Strip, StripPoint, Strips, envelope};

/// Width of every chart in user units; the page scales it.
pub const WIDTH: f64 = 720.0;

/// Shape that carries a status beside colour and word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Filled circle with a tick.
    Pass,
    /// Diamond with a tick.
    ConditionalPass,
    /// Diamond with a cross.
    ConditionalFail,
    /// Octagon with a cross.
    Fail,
    /// Ring.
    Open,
    /// Dash.
    None,
}

/// Which side of its position a text is on.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// Text begins there.
    Start,
    /// Text is centred there.
    Middle,
    /// Text ends there.
    End,
}

/// An SVG being written.
pub struct Svg {
    out: String,
}

impl Svg {
    /// Begins a picture of [`WIDTH`] × `height` called `title`, described by `description`.
    pub fn new(height: f64, title: &str, description: &str) -> Svg {
        let mut svg = Svg { out: String::with_capacity(4096) };
        let _ = write!(svg.out, "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 {} {}\">", n(WIDTH), n(height));
        svg.element("title", title);
        svg.element("desc", description);
        svg
    }

    fn element(&mut self, name: &str, text: &str) {
        let _ = write!(self.out, "<{name}>{}</{name}>", escape(text));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let d = format!("M{} {}L{} {}", n(x1), n(y1), n(x2), n(y2));
        self.path(class, &d);
    }

    /// A rectangle; negative sizes become zero.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = write!(
            self.out,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            n(x),
            n(y),
            n(width),
            n(height)
        );
    }

    /// A dot.
    pub fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let _ = write!(self.out, "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>", n(x), n(y), n(radius));
    }

    /// Path data made by the caller from numbers.
    pub fn path(&mut self, class: &str, d: &str) {
        let _ = write!(self.out, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    /// A polyline through `points`.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() > 1 {
            self.path(class, &trace(points));
        }
    }

    /// A closed area.
    pub fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() > 2 {
            self.path(class, &format!("{}Z", trace(points)));
        }
    }

    /// Text on the base line `y`.
    pub fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = write!(self.out, "<text{class}{anchor} x=\"{}\" y=\"{}\">{}</text>", n(x), n(y), escape(text));
    }

    /// The mark of a status, 14 units wide, centred.
    pub fn mark(&mut self, shape: Shape, (x, y): (f64, f64)) {
        let _ = write!(
            self.out,
            "<use href=\"#mark-{}\" class=\"{}\" x=\"{}\" y=\"{}\" width=\"14\" height=\"14\"/>",
            shape.name(),
            shape.name(),
            n(x - 7.0),
            n(y - 7.0)
        );
    }

    /// Ends the picture.
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}

impl Shape {
    /// Name as a class and in `#mark-…`.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Pass => "pass",
            Shape::ConditionalPass => "conditional-pass",
            Shape::ConditionalFail => "conditional-fail",
            Shape::Fail => "fail",
            Shape::Open => "open",
            Shape::None => "none",
        }
    }
}

fn trace(points: &[(f64, f64)]) -> String {
    let mut d = String::with_capacity(points.len() * 12);
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if i == 0 { 'M' } else { 'L' }, n(*x), n(*y));
    }
    d
}

/// A coordinate with one decimal, without a trailing ".0"; what is not finite sits at 0.
fn n(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Text for HTML or SVG content and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// `text` cut to what fits about `width` user units at the chart's 11-unit font; wide (CJK) letters count double.
pub fn shorten(text: &str, width: f64) -> String {
    super::text::fit(text, (width / 6.3) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_numbers_are_finite() {
        let mut svg = Svg::new(10.0, "<script>", "a & b");
        svg.text("t", Anchor::End, (1.25, f64::NAN), "</text><script>\"'");
        svg.rect("r", (0.0, 0.0), (-5.0, f64::INFINITY));
        let out = svg.finish();
        assert!(!out.contains("<script>"), "{out}");
        assert!(out.contains("&lt;/text&gt;&lt;script&gt;&quot;&#39;"), "{out}");
        assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
        assert!(out.starts_with("<svg class=\"chart\" role=\"img\"") && out.ends_with("</svg>"));
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(n(12.0), "12");
        assert_eq!(n(12.34), "12.3");
        assert_eq!(n(-0.01), "0");
    }
}
