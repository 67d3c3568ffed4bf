//! The uncertainty of a median over blocks.

use std::sync::OnceLock;

use super::quantile::of_sorted;
use super::{mean, sorted, t_quantile};

/// Standard error of the median over that of the mean for normal samples, √(π/2) = 1.2533.
pub const MEDIAN_FACTOR: f64 = 1.25;

/// Smallest relative expanded uncertainty: what block scatter alone does not show (timer, method).
pub const RELATIVE_FLOOR: f64 = 0.003;

/// Lag-1 correlation above which blocks no longer count as independent.
pub const LAG1_LIMIT: f64 = 0.3;

/// A median over blocks with its expanded uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uncertainty {
    /// Median over blocks; NaN without data or if any block is not finite.
    pub median: f64,
    /// Expanded uncertainty U (about 95 %), in the unit of the values; infinite for fewer than three blocks.
    pub expanded: f64,
    /// U / |median|.
    pub relative: f64,
    /// Blocks, B.
    pub blocks: usize,
    /// Blocks after the correction for lag-1 correlation, at least 2.
    pub effective_blocks: f64,
    /// Lag-1 correlation of the blocks; 0 where it is not defined.
    pub lag1: f64,
    /// Standard deviation of the blocks (B − 1).
    pub sd: f64,
    /// 5th percentile of the blocks.
    pub p05: f64,
    /// 95th percentile of the blocks.
    pub p95: f64,
}

/// Lag-1 autocorrelation Σ dᵢ dᵢ₊₁ / Σ dᵢ², d = value − mean (Box and Jenkins). 0 for fewer than three values or
/// values that do not vary; NaN if any is not finite.
pub fn lag1(values: &[f64]) -> f64 {
    if values.iter().any(|v| !v.is_finite()) {
        return f64::NAN;
    }
    if values.len() < 3 {
        return 0.0;
    }
    let center = mean(values);
    let total: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
    let neighbours: f64 = values.windows(2).map(|w| (w[0] - center) * (w[1] - center)).sum();
    if total > 0.0 { neighbours / total } else { 0.0 }
}

/// t(0.975, B − 1) for B blocks; computed once for the sizes that occur.
fn t_975(blocks: usize) -> f64 {
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..65).map(|f| t_quantile(0.975, f as f64)).collect());
    table.get(blocks - 1).copied().unwrap_or_else(|| t_quantile(0.975, (blocks - 1) as f64))
}

/// U = t(0.975, B − 1) · 1.25 · s / √B of the median of B blocks, at least [`RELATIVE_FLOOR`] of it. With a lag-1
/// correlation r above [`LAG1_LIMIT`], B under the root becomes max(B(1 − r)/(1 + r), 2). Fewer than three blocks
/// say nothing about scatter: U is infinite. Values that are not finite make the median NaN and U infinite.
pub fn uncertainty(blocks: &[f64]) -> Uncertainty {
    let count = blocks.len();
    let Some(sorted) = sorted(blocks) else {
        let nan = f64::NAN;
        let inf = f64::INFINITY;
        return Uncertainty {
            median: nan,
            expanded: inf,
            relative: inf,
            blocks: count,
            effective_blocks: 0.0,
            lag1: nan,
            sd: nan,
            p05: nan,
            p95: nan,
        };
    };
    let median = of_sorted(&sorted, 0.5);
    let center = mean(blocks);
    let sd = (blocks.iter().map(|v| (v - center).powi(2)).sum::<f64>() / (count as f64 - 1.0)).sqrt();
    let r = lag1(blocks);
    let effective = if r > LAG1_LIMIT { (count as f64 * (1.0 - r) / (1.0 + r)).max(2.0) } else { count as f64 };
    let expanded = match count {
        0..3 => f64::INFINITY,
        _ => (t_975(count) * MEDIAN_FACTOR * sd / effective.sqrt()).max(RELATIVE_FLOOR * median.abs()),
    };
    Uncertainty {
        median,
        expanded,
        relative: expanded / median.abs(),
        blocks: count,
        effective_blocks: effective,
        lag1: r,
        sd,
        p05: of_sorted(&sorted, 0.05),
        p95: of_sorted(&sorted, 0.95),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_formula() {
        // mean 100, s = √(28/7) = 2, alternating so that r < 0.3.
        let blocks = [98.0, 102.0, 98.0, 102.0, 98.0, 102.0, 100.0 - 2.0f64.sqrt(), 100.0 + 2.0f64.sqrt()];
        let u = uncertainty(&blocks);
        assert_eq!((u.median, u.blocks, u.effective_blocks), (100.0, 8, 8.0));
        assert!((u.sd - 2.0).abs() < 1e-12);
        assert!((u.expanded - 2.364_624 * 1.25 * 2.0 / 8f64.sqrt()).abs() < 1e-5, "{}", u.expanded);
        assert!((u.relative - u.expanded / 100.0).abs() < 1e-15);
    }

    #[test]
    fn has_a_floor() {
        let u = uncertainty(&[50.0; 8]);
        assert_eq!((u.expanded, u.sd, u.lag1), (0.15, 0.0, 0.0));
    }

    #[test]
    fn correlated_blocks_count_less() {
        let steps = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0];
        let u = uncertainty(&steps);
        assert!((u.lag1 - 0.625).abs() < 1e-12);
        assert_eq!(u.effective_blocks, 2.0);
        let shuffled = uncertainty(&[1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 1.0, 2.0]);
        assert!(u.expanded > 1.9 * shuffled.expanded);
    }

    #[test]
    fn two_blocks_and_bad_values_say_nothing() {
        assert_eq!(uncertainty(&[1.0, 1.0]).expanded, f64::INFINITY);
        assert_eq!(uncertainty(&[]).expanded, f64::INFINITY);
        for bad in [f64::NAN, f64::INFINITY] {
            let u = uncertainty(&[1.0, 1.0, 1.0, bad]);
            assert!(u.median.is_nan() && u.expanded == f64::INFINITY);
        }
    }

    #[test]
    fn lag1_of_known_sequences() {
        assert!((lag1(&[1.0, 2.0, 3.0, 4.0, 5.0]) - 0.4).abs() < 1e-12);
        assert!((lag1(&[1.0, -1.0, 1.0, -1.0]) + 0.75).abs() < 1e-12);
        assert_eq!(lag1(&[1.0, 2.0]), 0.0);
        assert!(lag1(&[1.0, f64::NAN, 2.0]).is_nan());
    }
}
