//! What the provider sold: `offer.toml`. Here model, count, claims and guarantees; claims never
//! set limits.

mod parse;

use std::collections::BTreeMap;

use crate::record::Source;
use crate::unit::{Bytes, Quantity};

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
    /// Price per hour of the instance and its currency.
    pub price: Option<(f64, String)>,
    /// Nameplate statements, as written: context for the report, never a limit.
    pub claims: Vec<Claim>,
    /// Promised minima.
    pub guarantees: Vec<Guarantee>,
    /// The file.
    pub source: Source,
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
