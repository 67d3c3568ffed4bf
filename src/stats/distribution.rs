//! Normal and Student distributions, and the Šidák factor.

/// Cumulative standard normal distribution, through the incomplete gamma function; error below 1e-13.
pub fn normal_cdf(x: f64) -> f64 {
    // Φ(x) = ½ erfc(−x/√2); t with infinitely many degrees of freedom would be the same, but converges badly.
    let tail = 0.5 * erfc(x.abs() / std::f64::consts::SQRT_2);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// erfc for x ≥ 0: series of erf below 2.5, Lentz's continued fraction above.
fn erfc(x: f64) -> f64 {
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / n as f64;
            let part = term / (2 * n + 1) as f64;
            sum += part;
            if part.abs() < sum.abs() * 1e-17 {
                break;
            }
        }
        return 1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let fraction = (1..=80).rev().fold(x, |acc, n| x + n as f64 / 2.0 / acc);
    (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |acc, c| acc * x + c)
}

/// Standard normal quantile by Wichura's AS 241 (PPND16), relative error about 1e-16. NaN outside (0, 1).
pub fn normal_quantile(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return f64::NAN;
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&CENTER_TOP, r) / polynomial(&CENTER_BOTTOM, r);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let size = if r <= 5.0 {
        polynomial(&MIDDLE_TOP, r - 1.6) / polynomial(&MIDDLE_BOTTOM, r - 1.6)
    } else {
        polynomial(&TAIL_TOP, r - 5.0) / polynomial(&TAIL_BOTTOM, r - 5.0)
    };
    size.copysign(q)
}

const CENTER_TOP: [f64; 8] = [
    3.387_132_872_796_366_6,
    133.141_667_891_784_38,
    1_971.590_950_306_551_4,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTER_BOTTOM: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_854,
];
const MIDDLE_TOP: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_545,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const MIDDLE_BOTTOM: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const TAIL_TOP: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const TAIL_BOTTOM: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_8e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

/// ln Γ(x) for x > 0: Stirling's series after shifting x above 10.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0)))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

/// Regularised incomplete beta function I_x(a, b) by Lentz's continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only below the mean; the other side follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let guard = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / guard(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..500 {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / guard(1.0 + term * d);
            c = guard(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * fraction
}

/// Cumulative Student t distribution with `freedom` > 0 degrees of freedom; NaN otherwise.
pub fn t_cdf(t: f64, freedom: f64) -> f64 {
    if freedom.is_nan() || freedom <= 0.0 || t.is_nan() {
        return f64::NAN;
    }
    let tail = 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    if t < 0.0 { tail } else { 1.0 - tail }
}

/// Student t quantile by bisection of [`t_cdf`]; NaN outside 0 < p < 1 or without degrees of freedom.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    if !(p > 0.0 && p < 1.0 && freedom > 0.0) {
        return f64::NAN;
    }
    let upper = p.max(1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while t_cdf(high, freedom) < upper && high < 1e300 {
        (low, high) = (high, high * 2.0);
    }
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if t_cdf(middle, freedom) < upper { low = middle } else { high = middle }
    }
    if p < 0.5 { -high } else { high }
}

/// Šidák factor: the one-sided normal quantile at which `gates` independent true requirements together are
/// wrongly failed with probability `family_error` at most. `gates` = 0 counts as 1.
pub fn sidak(gates: usize, family_error: f64) -> f64 {
    normal_quantile((1.0 - family_error).powf(1.0 / gates.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_match_tables() {
        for (p, z) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.975, 1.959_963_984_540_054),
            (0.995, 2.575_829_303_548_901),
            (0.999, 3.090_232_306_167_813_5),
            (1e-10, -6.361_340_902_404_056),
            (1e-30, -11.464_024_688_443_604),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-9, "{p}: {}", normal_quantile(p));
        }
        for p in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(normal_quantile(p).is_nan());
        }
    }

    #[test]
    fn normal_cdf_inverts_the_quantile() {
        for i in 1..1000 {
            let p = i as f64 / 1000.0;
            assert!((normal_cdf(normal_quantile(p)) - p).abs() < 1e-12, "{p}");
        }
        assert!((normal_cdf(-6.361_340_902_404_056) / 1e-10 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn student_quantiles_match_published_tables() {
        // NIST/SEMATECH e-Handbook, table 1.3.6.7.2, and the same values to more digits.
        for (p, freedom, t) in [
            (0.975, 1.0, 12.7062),
            (0.975, 2.0, 4.30265),
            (0.975, 3.0, 3.18245),
            (0.975, 5.0, 2.57058),
            (0.975, 7.0, 2.36462),
            (0.975, 9.0, 2.26216),
            (0.975, 11.0, 2.20099),
            (0.975, 15.0, 2.13145),
            (0.975, 30.0, 2.04227),
            (0.975, 100.0, 1.98397),
            (0.95, 7.0, 1.89458),
            (0.99, 7.0, 2.99795),
            (0.995, 10.0, 3.16927),
            (0.9995, 5.0, 6.86883),
        ] {
            assert!((t_quantile(p, freedom) - t).abs() < 1e-4, "{p} {freedom}: {}", t_quantile(p, freedom));
            assert!((t_quantile(1.0 - p, freedom) + t).abs() < 1e-4);
        }
        assert!((t_quantile(0.975, 1e6) - normal_quantile(0.975)).abs() < 1e-5);
        assert!(t_quantile(0.975, 0.0).is_nan());
        assert!(t_quantile(1.0, 3.0).is_nan());
    }

    #[test]
    fn sidak_factors_of_the_design() {
        for (gates, k) in [(1, 2.33), (8, 3.0), (40, 3.5), (160, 3.8)] {
            assert!((sidak(gates, 0.01) - k).abs() < 0.05, "{gates}: {}", sidak(gates, 0.01));
        }
        assert_eq!(sidak(0, 0.01), sidak(1, 0.01));
    }
}
