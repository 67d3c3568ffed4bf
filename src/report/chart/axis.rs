//! From values to positions, and where the ticks go.

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences.
    Linear,
    /// Equal ratios; values must be positive.
    Log,
}

/// A tick with its ready text.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Where.
    pub value: f64,
    /// What it says.
    pub label: String,
}

/// One axis.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// Spread.
    pub scale: Scale,
    /// Value at `start`.
    pub min: f64,
    /// Value at `end`.
    pub max: f64,
    /// Position of `min`.
    pub start: f64,
    /// Position of `max`.
    pub end: f64,
}

impl Axis {
    /// Position of `value`, held within the axis.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.min) / (self.max - self.min),
            Scale::Log => (value / self.min).ln() / (self.max / self.min).ln(),
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.start + share * (self.end - self.start)
    }
}

/// About `count` round values from `min` to at least `max` (1, 2 or 5 × 10ⁿ apart) with plain labels.
pub fn nice_ticks(min: f64, max: f64, count: usize) -> Vec<Tick> {
    let span = max - min;
    if !(span.is_finite() && span > 0.0) {
        return vec![Tick { value: min, label: label(min, 1.0) }];
    }
    let raw = span / count.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= raw * 0.999).unwrap_or(10.0 * power);
    let first = (min / step).floor() as i64;
    let last = (max / step - 1e-9).ceil() as i64;
    (first..=last).map(|i| Tick { value: i as f64 * step, label: label(i as f64 * step, step) }).collect()
}

/// Decades (or 1-2-5 within fewer than two decades) that enclose `min`..`max`.
pub fn log_ticks(min: f64, max: f64) -> Vec<Tick> {
    if !(min > 0.0 && max > 0.0 && min.is_finite() && max.is_finite()) {
        return Vec::new();
    }
    let (low, high) = (min.log10().floor() as i32, max.log10().ceil() as i32);
    let steps: &[f64] = if high - low <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks: Vec<Tick> = Vec::new();
    for power in low..=high {
        for step in steps {
            let value = step * 10f64.powi(power);
            let step_size = 10f64.powi(power);
            ticks.push(Tick { value, label: label(value, step_size) });
        }
    }
    let below = ticks.iter().rposition(|t| t.value <= min * 1.0001).unwrap_or(0);
    let above = ticks.iter().position(|t| t.value >= max * 0.9999).unwrap_or(ticks.len() - 1);
    ticks[below..=above.max(below)].to_vec()
}

fn label(value: f64, step: f64) -> String {
    let decimals = if step >= 1.0 { 0 } else { (-step.log10().floor()) as usize };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|t| t.label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose() {
        assert_eq!(labels(&nice_ticks(0.0, 3.35, 4)), ["0", "1", "2", "3", "4"]);
        assert_eq!(labels(&nice_ticks(0.0, 0.23, 5)), ["0.00", "0.05", "0.10", "0.15", "0.20", "0.25"]);
        assert_eq!(labels(&nice_ticks(0.0, 250.0, 5)), ["0", "50", "100", "150", "200", "250"]);
        assert_eq!(labels(&log_ticks(3.0, 900.0)), ["1", "10", "100", "1000"]);
        assert_eq!(labels(&log_ticks(12.0, 45.0)), ["10", "20", "50"]);
        assert_eq!(nice_ticks(1.0, 1.0, 5).len(), 1);
        assert!(log_ticks(0.0, 1.0).is_empty());
    }

    #[test]
    fn positions_stay_within_the_axis() {
        let axis = Axis { scale: Scale::Log, min: 1.0, max: 100.0, start: 0.0, end: 200.0 };
        assert_eq!(axis.at(10.0), 100.0);
        assert_eq!(axis.at(1e9), 200.0);
        assert_eq!(axis.at(-1.0), 0.0);
        assert_eq!(axis.at(f64::NAN), 0.0);
    }
}
