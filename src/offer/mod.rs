//! What the provider sold: `offer.toml`. Here model, count, claims and guarantees; claims never
//! set limits.

mod catalogue;
mod parse;

use std::collections::BTreeMap;

use crate::record::Source;
use crate::unit::{Bytes, Quantity};

pub use catalogue::prices;
pub use parse::parse;

/// A parsed offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Provider name.
    pub provider: String,
    /// Region, where stated.
    pub region: Option<String>,
    /// Instance type, where stated.
    pub instance: Option<String>,
    /// Model as written: spec id, marketing or driver name.
    pub model: Option<String>,
    /// GPUs sold.
    pub count: Option<u32>,
    /// GPU memory sold.
    pub memory: Option<Bytes>,
    /// True if the offer says the hardware is not shared.
    pub dedicated: bool,
    /// Prices of the instance, one for each market that is stated.
    pub prices: Vec<Price>,
    /// Nameplate statements, as written: context for the report, never a limit.
    pub claims: Vec<Claim>,
    /// Promised minima.
    pub guarantees: Vec<Guarantee>,
    /// The file.
    pub source: Source,
}

/// A price of the instance for an hour.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// On demand, spot, reserved …, where stated.
    pub market: Option<String>,
    /// The amount.
    pub per_hour: f64,
    /// ISO 4217 code.
    pub currency: String,
    /// Where it is from, where stated.
    pub source: Option<String>,
}

/// A nameplate statement, e.g. "FP16 312 TFLOPS".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// As written by the provider.
    pub text: String,
    /// Line in the file.
    pub line: usize,
}

/// A promised minimum (or maximum, for metrics where less is better) under stated conditions: a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarantee {
    /// Metric id.
    pub metric: String,
    /// Only where these parameters or labels have these words.
    pub filter: BTreeMap<String, String>,
    /// The promised value.
    pub value: Quantity,
    /// Line in the file.
    pub line: usize,
}
