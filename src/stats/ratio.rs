//! Comparing two methods by interleaved pairs.

use super::Interval;
use super::quantile::of_sorted;
use super::sorted;

/// The median with its distribution-free interval from order statistics: the narrowest symmetric pair of ranks whose
/// binomial coverage is at least `confidence`. With too few values for that coverage (fewer than six at 95 %) the ends
/// are infinite; all NaN without data or if a value is not finite.
pub fn median_interval(values: &[f64], confidence: f64) -> Interval {
    let Some(sorted) = sorted(values) else { return Interval::NONE };
    let n = sorted.len();
    let estimate = of_sorted(&sorted, 0.5);
    // P(fewer than `rank` values lie below the median), Bin(n, ½); each end may miss with (1 − confidence)/2.
    let allowed = (1.0 - confidence) / 2.0;
    let (mut probability, mut cumulative, mut rank) = (0.5f64.powi(n as i32), 0.0, 0);
    while rank < n / 2 && cumulative + probability <= allowed {
        cumulative += probability;
        probability *= (n - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    if rank == 0 {
        return Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    Interval { estimate, low: sorted[rank - 1], high: sorted[n - rank] }
}

/// Median of the ratios aᵢ/bᵢ of interleaved pairs, with its 95 % interval by order statistics. All NaN if the lengths
/// differ or a ratio is not finite.
pub fn median_ratio(a: &[f64], b: &[f64]) -> Interval {
    if a.len() != b.len() {
        return Interval::NONE;
    }
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    median_interval(&ratios, 0.95)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_match_published_tables() {
        // Conover, Practical Nonparametric Statistics: n = 6 → ranks 1 and 6; 9 → 2 and 8; 20 → 6 and 15.
        for (n, low, high) in [(6, 1.0, 6.0), (9, 2.0, 8.0), (20, 6.0, 15.0)] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let i = median_interval(&values, 0.95);
            assert_eq!((i.low, i.high), (low, high), "{n}");
        }
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).low, f64::NEG_INFINITY);
    }

    #[test]
    fn pairs() {
        let a: Vec<f64> = (0..9).map(|i| 2.0 * (10 + i) as f64).collect();
        let b: Vec<f64> = (0..9).map(|i| (10 + i) as f64).collect();
        assert_eq!(median_ratio(&a, &b), Interval { estimate: 2.0, low: 2.0, high: 2.0 });
        assert!(median_ratio(&a, &b[1..]).estimate.is_nan());
        assert!(median_ratio(&[1.0], &[0.0]).estimate.is_nan());
        assert!(median_ratio(&[], &[]).estimate.is_nan());
    }
}
