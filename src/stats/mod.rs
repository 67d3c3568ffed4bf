//! Pure statistics: slices in, numbers out. No clock, no limits, no panics: a sample that holds a value that
//! is not finite has no median, an infinite uncertainty and no drift, so it can never support a pass.

mod bootstrap;
mod distribution;
mod drift;
mod quantile;
mod ratio;
mod rng;
pub mod simulate;
mod uncertainty;

pub use bootstrap::{Interval, block_bootstrap, block_length};
pub use distribution::{normal_cdf, normal_quantile, sidak, t_cdf, t_quantile};
pub use drift::{Drift, drift};
pub use quantile::{MODIFIED_Z_LIMIT, mad, mad_outliers, median, quantile};
pub use ratio::{median_interval, median_ratio};
pub use rng::Rng;
pub use uncertainty::{LAG1_LIMIT, MEDIAN_FACTOR, RELATIVE_FLOOR, Uncertainty, lag1, uncertainty};

/// A copy in ascending order, or `None` if empty or any value is not finite.
fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

/// Arithmetic mean; NaN if empty.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
