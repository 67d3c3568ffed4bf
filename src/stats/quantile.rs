//! Quantiles and robust spread.

use super::sorted;

/// Modified z-score beyond which Iglewicz and Hoaglin (1993, "How to Detect and Handle Outliers") label a value.
pub const MODIFIED_Z_LIMIT: f64 = 3.5;

/// 0.6745 = Φ⁻¹(0.75): the MAD of a normal sample in units of its standard deviation.
const MAD_OF_NORMAL: f64 = 0.6745;

/// Mean absolute deviation of a normal sample is 0.7979 σ; 1 / 0.7979 = 1.2533 (Iglewicz and Hoaglin, for MAD = 0).
const MEAN_DEVIATION_FACTOR: f64 = 1.253_314;

/// Quantile `q` in [0, 1] by linear interpolation of order statistics: type 7 of Hyndman and Fan (1996), the
/// default of R, NumPy and Excel's PERCENTILE.INC. NaN if `values` is empty, holds a value that is not finite,
/// or `q` is outside [0, 1].
pub fn quantile(values: &[f64], q: f64) -> f64 {
    sorted(values).map_or(f64::NAN, |s| of_sorted(&s, q))
}

/// Median; NaN as for [`quantile`].
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// As [`quantile`], of values already in ascending order.
pub(super) fn of_sorted(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() || !(0.0..=1.0).contains(&q) {
        return f64::NAN;
    }
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

/// Median absolute deviation from the median, unscaled; NaN as for [`quantile`].
pub fn mad(values: &[f64]) -> f64 {
    let center = median(values);
    median(&values.iter().map(|v| (v - center).abs()).collect::<Vec<_>>())
}

/// Indices whose modified z-score 0.6745·(x − median)/MAD exceeds [`MODIFIED_Z_LIMIT`] in size. Where more than half of
/// the values are equal (MAD = 0) the mean absolute deviation takes its place. Values that are not finite are outliers.
pub fn mad_outliers(values: &[f64]) -> Vec<usize> {
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let center = median(&finite);
    let spread = match mad(&finite) / MAD_OF_NORMAL {
        s if s > 0.0 => s,
        _ => finite.iter().map(|v| (v - center).abs()).sum::<f64>() / finite.len() as f64 * MEAN_DEVIATION_FACTOR,
    };
    let outlying = |v: f64| !v.is_finite() || (v - center).abs() > MODIFIED_Z_LIMIT * spread;
    (0..values.len()).filter(|&i| outlying(values[i])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_hyndman_fan_type_7() {
        // R: quantile(c(1,2,3,4,10), c(.05,.25,.5,.75,.95)) → 1.2 2.0 3.0 4.0 8.8
        let values = [10.0, 1.0, 3.0, 2.0, 4.0];
        for (q, expected) in [(0.05, 1.2), (0.25, 2.0), (0.5, 3.0), (0.75, 4.0), (0.95, 8.8), (0.0, 1.0), (1.0, 10.0)] {
            assert!((quantile(&values, q) - expected).abs() < 1e-12, "{q}");
        }
        assert_eq!(median(&[1.0, 2.0, 3.0, 4.0]), 2.5);
    }

    #[test]
    fn no_data_and_not_finite_data_have_no_quantile() {
        for values in [&[][..], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
            assert!(median(values).is_nan());
            assert!(mad(values).is_nan());
        }
        assert!(quantile(&[1.0], 1.5).is_nan());
        assert!(quantile(&[1.0], f64::NAN).is_nan());
    }

    #[test]
    fn mad_of_a_published_example() {
        // The example of the usual definition: median 2, deviations 1 1 0 0 2 4 7, MAD 1.
        assert_eq!(mad(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]), 1.0);
    }

    #[test]
    fn outliers_by_modified_z_score() {
        // Iglewicz and Hoaglin's example of masking: both extreme values are found.
        let values = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3];
        assert_eq!(mad_outliers(&values), [8, 9]);
        assert!(mad_outliers(&[1.0, 1.0, 1.0, 1.0]).is_empty());
        assert_eq!(mad_outliers(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0]), [7]);
        assert_eq!(mad_outliers(&[1.0, f64::NAN, 1.1]), [1]);
        assert!(mad_outliers(&[]).is_empty());
    }
}
