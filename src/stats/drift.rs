//! Drift over the run.

use super::{median, quantile::of_sorted};

/// Change over the blocks, end against start, relative to the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Theil–Sen slope × (B − 1) / |median|.
    pub relative: f64,
    /// Half-width of the 95 % interval of `relative`; infinite for fewer than six blocks.
    pub uncertainty: f64,
}

/// Theil–Sen slope (median of all pairwise slopes) over equally spaced blocks, with the rank interval of Sen (1968,
/// JASA 63:1379) as uncertainty. Both are NaN where the median is 0, absent or any block not finite.
pub fn drift(blocks: &[f64]) -> Drift {
    let n = blocks.len();
    let center = median(blocks).abs();
    if center.is_nan() || center == 0.0 {
        return Drift { relative: f64::NAN, uncertainty: f64::NAN };
    }
    if n < 2 {
        return Drift { relative: 0.0, uncertainty: f64::INFINITY };
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for i in 0..n {
        slopes.extend((i + 1..n).map(|j| (blocks[j] - blocks[i]) / (j - i) as f64));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let change = (n - 1) as f64 / center;
    let relative = of_sorted(&slopes, 0.5) * change;
    // Kendall's S has variance n(n−1)(2n+5)/18; with fewer than six blocks the ranks run off the ends.
    let count = n as f64;
    let reach = 1.96 * (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    let low = (slopes.len() as f64 - reach) / 2.0;
    if n < 6 || low < 1.0 {
        return Drift { relative, uncertainty: f64::INFINITY };
    }
    let low = low.floor() as usize;
    let width = (slopes[slopes.len() - low] - slopes[low - 1]) / 2.0 * change;
    Drift { relative, uncertainty: width }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Rng;

    #[test]
    fn a_ramp_is_its_own_slope() {
        let ramp: Vec<f64> = (0..11).map(|i| 95.0 + i as f64).collect();
        let d = drift(&ramp);
        assert!((d.relative - 0.1).abs() < 1e-12);
        assert!(d.uncertainty < 1e-12);
        // One wild block does not move it.
        let mut wild = ramp.clone();
        wild[3] = 1.0;
        assert!((drift(&wild).relative - 0.1).abs() < 0.01);
    }

    #[test]
    fn noise_rarely_looks_like_drift() {
        let mut rng = Rng::new(7);
        let mut beyond = 0;
        for _ in 0..2000 {
            let blocks: Vec<f64> = (0..12).map(|_| 100.0 + rng.normal()).collect();
            let d = drift(&blocks);
            beyond += usize::from(d.relative.abs() > d.uncertainty);
        }
        assert!((40..200).contains(&beyond), "{beyond} of 2000 at a nominal 5 %");
    }

    #[test]
    fn missing_data() {
        assert!(drift(&[]).relative.is_nan());
        assert!(drift(&[0.0, 0.0, 0.0]).relative.is_nan());
        assert!(drift(&[1.0, f64::NAN]).relative.is_nan());
        assert_eq!(drift(&[1.0]), Drift { relative: 0.0, uncertainty: f64::INFINITY });
        assert_eq!(drift(&[1.0, 2.0, 3.0, 4.0]).uncertainty, f64::INFINITY);
    }
}
