//! Intervals for displayed percentiles.

use super::quantile::of_sorted;
use super::{Rng, lag1, quantile, sorted};

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Point estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// No data: all NaN.
    pub(super) const NONE: Interval = Interval { estimate: f64::NAN, low: f64::NAN, high: f64::NAN };
}

/// Length of the blocks of a moving-block bootstrap for a series: n^(1/3), the usual order, or longer where the lag-1
/// correlation r asks for it: (2r/(1 − r²))^(2/3) · n^(1/3) (Carlstein 1986, for an AR(1) series). Between 1 and n/2.
pub fn block_length(values: &[f64]) -> usize {
    let n = values.len() as f64;
    let r = lag1(values).clamp(0.0, 0.99);
    let factor = (2.0 * r / (1.0 - r * r)).powf(2.0 / 3.0).max(1.0);
    ((factor * n.cbrt()).round() as usize).clamp(1, (values.len() / 2).max(1))
}

/// Percentile interval at `confidence` of the quantile `q` by the moving-block bootstrap (Künsch 1989): resamples are
/// made of runs of `length` neighbouring values, so correlation between neighbours is kept. Deterministic in `seed`.
/// All NaN without data, if a value is not finite, or if `q` or `confidence` is not inside its range.
pub fn block_bootstrap(
    values: &[f64],
    q: f64,
    confidence: f64,
    length: usize,
    resamples: usize,
    seed: u64,
) -> Interval {
    let estimate = quantile(values, q);
    let possible = estimate.is_finite() && confidence > 0.0 && confidence < 1.0 && resamples > 0;
    if !possible {
        return Interval::NONE;
    }
    let n = values.len();
    let length = length.clamp(1, n);
    let mut rng = Rng::new(seed);
    let mut sample = Vec::with_capacity(n + length);
    let mut results = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        sample.clear();
        while sample.len() < n {
            let start = rng.below(n - length + 1);
            sample.extend_from_slice(&values[start..start + length]);
        }
        sample.truncate(n);
        sample.sort_unstable_by(f64::total_cmp);
        results.push(of_sorted(&sample, q));
    }
    let Some(results) = sorted(&results) else { return Interval::NONE };
    let tail = (1.0 - confidence) / 2.0;
    Interval { estimate, low: of_sorted(&results, tail), high: of_sorted(&results, 1.0 - tail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_deterministic_and_contains_the_estimate() {
        let mut rng = Rng::new(5);
        let values: Vec<f64> = (0..200).map(|_| 10.0 + rng.normal()).collect();
        let a = block_bootstrap(&values, 0.95, 0.95, 6, 500, 1);
        assert_eq!(a, block_bootstrap(&values, 0.95, 0.95, 6, 500, 1));
        assert_ne!(a, block_bootstrap(&values, 0.95, 0.95, 6, 500, 2));
        assert!(a.low <= a.estimate && a.estimate <= a.high, "{a:?}");
    }

    #[test]
    fn covers_the_true_percentile_about_as_often_as_it_says() {
        let mut rng = Rng::new(11);
        let truth = super::super::normal_quantile(0.95);
        let covered = (0..300)
            .filter(|&seed| {
                let values: Vec<f64> = (0..100).map(|_| rng.normal()).collect();
                let i = block_bootstrap(&values, 0.95, 0.95, 3, 200, seed);
                i.low <= truth && truth <= i.high
            })
            .count();
        assert!(covered >= 255, "{covered} of 300 at a nominal 95 %");
    }

    #[test]
    fn blocks_keep_correlation() {
        // An AR(1) series with r = 0.9: single draws would give an interval that is far too narrow.
        let mut rng = Rng::new(2);
        let mut x = 0.0;
        let values: Vec<f64> = (0..400)
            .map(|_| {
                x = 0.9 * x + rng.normal();
                x
            })
            .collect();
        assert!(block_length(&values) > 15);
        let width = |length| {
            let i = block_bootstrap(&values, 0.5, 0.95, length, 400, 1);
            i.high - i.low
        };
        assert!(width(block_length(&values)) > 1.5 * width(1));
    }

    #[test]
    fn missing_data_has_no_interval() {
        for values in [&[][..], &[1.0, f64::NAN]] {
            assert!(block_bootstrap(values, 0.5, 0.95, 2, 10, 1).low.is_nan());
        }
        assert!(block_bootstrap(&[1.0], 0.5, 1.0, 2, 10, 1).low.is_nan());
        assert_eq!(block_bootstrap(&[1.0], 0.5, 0.95, 2, 10, 1), Interval { estimate: 1.0, low: 1.0, high: 1.0 });
        assert_eq!(block_length(&[]), 1);
    }
}
