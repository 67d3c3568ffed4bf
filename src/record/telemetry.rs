//! Sensor readings over the run. Sampled values illustrate; counters are differenced.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Observed;
use crate::unit::{Seconds, Unit};

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TelemetryPoint {
    /// Run's clock, since the run began.
    pub at: Seconds,
    /// In the series' unit.
    pub value: f64,
}

/// One sensor over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TelemetrySeries {
    /// Whose: a device id, or "machine".
    pub source: String,
    /// Sensor, e.g. `clock`, `power`, `temperature`, `steal`, `load`, `memory_used`.
    pub sensor: String,
    /// Unit of the values.
    pub unit: Unit,
    /// True if the value is a running total (energy, violation time, ECC): only differences mean something.
    pub counter: bool,
    /// Readings in order of time.
    pub points: Vec<TelemetryPoint>,
}

/// All sensors.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Telemetry {
    /// Sampling interval.
    pub interval: Seconds,
    /// Sensors that were read.
    pub series: Vec<TelemetrySeries>,
    /// Sensors that could not be read, `source.sensor` → reason.
    pub not_observable: BTreeMap<String, String>,
    /// States that are words, not numbers (throttle reasons, link widths under load): `source.name` → text.
    pub states: BTreeMap<String, Observed<String>>,
}
