//! What the provider sold: `offer.toml`. GPUs with their links, the machine around them, price, claims and guarantees;
//! claims never set limits.

mod catalogue;
mod parse;
mod schema;
mod words;

use std::collections::BTreeMap;

use crate::record::{Source, ThermalState};
use crate::unit::{Bytes, BytesPerSecond, Quantity};

pub use catalogue::prices;
pub use parse::parse;
pub use schema::schema;
pub use words::{Link, Market, StorageKind};

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
    /// How the GPUs are linked to one another.
    pub link: Option<Link>,
    /// The host link of each GPU.
    pub pcie: Option<Pcie>,
    /// CPUs and memory around the GPUs.
    pub host: HostSold,
    /// Disks.
    pub storage: Option<StorageSold>,
    /// Network, front end or aggregate as the provider lists it.
    pub network: Option<BytesPerSecond>,
    /// How it is rented, where stated.
    pub market: Option<Market>,
    /// True if the offer says the hardware is not shared.
    pub dedicated: bool,
    /// Prices of the instance, one for each market that is stated.
    pub prices: Vec<Price>,
    /// Nameplate statements, as written: context for the report, never a limit.
    pub claims: Vec<Claim>,
    /// Promised minima.
    pub guarantees: Vec<Guarantee>,
    /// Line of each statement of the tables by its dotted key, e.g. `gpu.count`.
    pub lines: BTreeMap<String, usize>,
    /// The file.
    pub source: Source,
}

impl Offer {
    /// Where a statement stands: the file's name and, where known, the line.
    pub fn place(&self, key: &str) -> String {
        match self.lines.get(key) {
            Some(line) => format!("{}:{line}", self.source.name),
            None => self.source.name.clone(),
        }
    }
}

/// A host link as sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pcie {
    /// PCIe generation.
    pub generation: Option<u32>,
    /// Lanes.
    pub lanes: Option<u32>,
}

/// The machine around the GPUs as sold.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostSold {
    /// Virtual CPUs.
    pub vcpus: Option<u32>,
    /// Main memory.
    pub ram: Option<Bytes>,
    /// True if a container is sold and not a machine: what its limits allow is then what was delivered.
    pub container: bool,
}

/// Disks as sold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StorageSold {
    /// All together.
    pub size: Bytes,
    /// What kind of disks, where stated.
    pub kind: Option<StorageKind>,
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
    /// Only in this thermal state, where stated.
    pub state: Option<ThermalState>,
    /// The promised value.
    pub value: Quantity,
    /// Line in the file.
    pub line: usize,
}
