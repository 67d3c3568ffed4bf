//! Operating characteristic of the decision rule, by simulation: how often a unit of known true value is passed
//! or failed. Blocks are normal with lag-1 correlation; the limit is 1.

use super::{Rng, median, sidak, uncertainty};

/// What to simulate; every combination is one [`Row`].
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Gates that share the family error.
    pub gates: Vec<usize>,
    /// Blocks per measurement.
    pub blocks: Vec<usize>,
    /// Standard deviation of one block relative to the true value.
    pub cv: Vec<f64>,
    /// Correlation of neighbouring blocks.
    pub lag1: Vec<f64>,
    /// True value over the limit.
    pub truth: Vec<f64>,
    /// Simulated measurements behind each probability.
    pub runs: usize,
    /// Family error of `fail`.
    pub family_error: f64,
    /// Seed.
    pub seed: u64,
}

impl Default for Settings {
    /// The table of the method page: a few seconds in a release build.
    fn default() -> Settings {
        Settings {
            gates: vec![8, 40, 160],
            blocks: vec![8, 12],
            cv: vec![0.005, 0.01, 0.02],
            lag1: vec![0.0, 0.5],
            truth: vec![0.5, 0.9, 0.95, 1.0, 1.03],
            runs: 40_000,
            family_error: 0.01,
            seed: 1,
        }
    }
}

/// One simulated setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Gates that share the family error.
    pub gates: usize,
    /// Blocks per measurement.
    pub blocks: usize,
    /// Relative standard deviation of one block.
    pub cv: f64,
    /// Correlation of neighbouring blocks.
    pub lag1: f64,
    /// True value over the limit.
    pub truth: f64,
    /// Šidák factor used for `fail`.
    pub k: f64,
    /// Probability of `fail`.
    pub fail: f64,
    /// Probability of `pass`.
    pub pass: f64,
    /// Probability that y ± U contains the true value (nominal 95 %).
    pub coverage: f64,
    /// Median of U / y.
    pub relative: f64,
}

/// Simulates every combination of `settings`. One set of simulated measurements serves all gates and true values,
/// because the rule is invariant to scale.
pub fn operating_characteristic(settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut rng = Rng::new(settings.seed);
    for &blocks in &settings.blocks {
        for &cv in &settings.cv {
            for &r in &settings.lag1 {
                let measured: Vec<(f64, f64)> = (0..settings.runs).map(|_| measure(&mut rng, blocks, cv, r)).collect();
                rows.extend(rates(settings, blocks, cv, r, &measured));
            }
        }
    }
    rows
}

/// Median and U of one simulated measurement of the true value 1.
fn measure(rng: &mut Rng, blocks: usize, cv: f64, r: f64) -> (f64, f64) {
    let innovation = (1.0 - r * r).sqrt();
    let mut x = rng.normal();
    let values: Vec<f64> = (0..blocks)
        .map(|i| {
            if i > 0 {
                x = r * x + innovation * rng.normal();
            }
            1.0 + cv * x
        })
        .collect();
    let u = uncertainty(&values);
    (u.median, u.expanded)
}

fn rates(settings: &Settings, blocks: usize, cv: f64, lag1: f64, measured: &[(f64, f64)]) -> Vec<Row> {
    let share = |test: &dyn Fn(f64, f64) -> bool| {
        measured.iter().filter(|(y, u)| test(*y, *u)).count() as f64 / measured.len() as f64
    };
    let relative = median(&measured.iter().map(|(y, u)| u / y).collect::<Vec<_>>());
    let coverage = share(&|y, u| (y - 1.0).abs() <= u);
    let mut rows = Vec::new();
    for &gates in &settings.gates {
        let k = sidak(gates, settings.family_error);
        for &truth in &settings.truth {
            let fail = share(&|y, u| truth * (y + k * u / 2.0) < 1.0);
            let pass = share(&|y, u| truth * (y - u) >= 1.0);
            rows.push(Row { gates, blocks, cv, lag1, truth, k, fail, pass, coverage, relative });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rows: &[Row], cv: f64, lag1: f64, truth: f64) -> Row {
        *rows.iter().find(|r| r.cv == cv && r.lag1 == lag1 && r.truth == truth).expect("simulated")
    }

    #[test]
    fn the_rates_the_design_claims() {
        for (gates, blocks) in [(8, 8), (40, 8), (160, 8), (40, 12)] {
            let (gates, blocks) = (vec![gates], vec![blocks]);
            let rows = operating_characteristic(&Settings {
                gates,
                blocks,
                cv: vec![0.01],
                runs: 4000,
                ..Settings::default()
            });
            let independent = row(&rows, 0.01, 0.0, 0.95);
            assert!(independent.fail >= 0.99, "{independent:?}");
            // "97–99 %" is the worst case, 8 blocks and many gates; fewer gates or more blocks do better.
            let correlated = row(&rows, 0.01, 0.5, 0.95);
            assert!(correlated.fail >= 0.97, "{correlated:?}");
            for r in [0.0, 0.5] {
                assert_eq!(row(&rows, 0.01, r, 1.03).fail, 0.0);
                assert_eq!(row(&rows, 0.01, r, 0.95).pass, 0.0);
            }
            assert_eq!(row(&rows, 0.01, 0.0, 0.5).fail, 1.0);
        }
    }

    #[test]
    fn a_unit_exactly_at_the_limit_is_rarely_decided() {
        let settings =
            Settings { gates: vec![40], blocks: vec![12], cv: vec![0.01], runs: 4000, ..Settings::default() };
        let at_limit = row(&operating_characteristic(&settings), 0.01, 0.0, 1.0);
        assert!(at_limit.fail < 0.01 && at_limit.pass < 0.05, "{at_limit:?}");
        assert!((0.93..0.98).contains(&at_limit.coverage), "{at_limit:?}");
    }

    #[test]
    fn is_repeatable() {
        let settings = Settings { runs: 50, ..Settings::default() };
        assert_eq!(operating_characteristic(&settings), operating_characteristic(&settings));
        assert_eq!(operating_characteristic(&settings).len(), 3 * 2 * 3 * 2 * 5);
    }
}
