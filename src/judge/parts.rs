//! Decomposition of an arithmetic shortfall: units present × clock held × operations per unit and clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::clock_share;
use super::facts::Facts;
use super::{Requirement, Status};
use crate::record::DeviceKind;

/// What a measured rate is of its limit, as a product: `measured / limit = units × clock × per_clock`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Compute units present, of those the model has.
    pub units: f64,
    /// Clock held, of the highest; 1 where the device held the clock its own power limit allows.
    pub clock: f64,
    /// The rest: operations per unit and clock, of what the limit needs. Above 1 the other parts explain more than the
    /// whole shortfall, because healthy devices do not hold the highest clock either.
    pub per_clock: f64,
}

/// Parts of a requirement that is short, for rates of one whole GPU whose units and clock are observable.
pub fn parts(facts: &Facts<'_>, r: &Requirement) -> Option<Parts> {
    let is_short = matches!(r.status, Status::Fail | Status::ConditionalFail);
    let is_rate = matches!(r.metric.as_str(), "gemm.throughput" | "fma_peak.throughput");
    let [device] = r.devices.as_slice() else { return None };
    let info = facts.device(device).filter(|d| is_short && is_rate && d.kind == DeviceKind::Gpu)?;
    if facts.slice(info).is_some() {
        return None;
    }
    let ratio = r.measured?.median / r.limit.as_ref()?.value;
    let units = f64::from(info.units?) / f64::from(facts.spec(info)?.device_units()?);
    let clock = clock_share(facts, device)?;
    let per_clock = ratio / (units * clock);
    (per_clock.is_finite() && per_clock > 0.0).then_some(Parts { units, clock, per_clock })
}
