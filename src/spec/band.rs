//! Bands: what healthy units of a model really deliver, in absolute units. A band is evidence, not a share of
//! a vendor figure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::unit::Unit;

/// How much measured evidence a band rests on, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Many units of several owners.
    Strong,
    /// Several units.
    Medium,
    /// Few units, or borrowed from a class: never decides alone.
    Weak,
}

/// One band of one model and metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// Entry in the spec table.
    pub gpu: String,
    /// Metric id.
    pub metric: String,
    /// Only where these parameters or labels have these words; other conditions are not comparable.
    pub filter: BTreeMap<String, String>,
    /// Unit of both limits.
    pub unit: Unit,
    /// Below it (above it, where less is better) a unit is not healthy.
    pub fail_below: f64,
    /// From it on a unit is as healthy ones are.
    pub pass_from: f64,
    /// Evidence.
    pub strength: Strength,
    /// Data set or document.
    pub source: String,
}

/// All bands; may be empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BandTable(pub Vec<Band>);

impl BandTable {
    /// Bands of `metric` for the spec entry `gpu`, whatever their conditions.
    pub fn of<'a>(&'a self, gpu: &'a str, metric: &'a str) -> impl Iterator<Item = &'a Band> {
        self.0.iter().filter(move |b| b.gpu == gpu && b.metric == metric)
    }
}
