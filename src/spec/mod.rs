//! Vendor figures with unit, provenance and source: data under `specs/`, looked up by PCI id, then
//! subsystem, memory size and name.

mod band;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use band::{Band, BandTable, Strength};

use crate::unit::Quantity;

/// How a figure is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Vendor figure, seen in vendor material or a table that cites it.
    Published,
    /// The vendor prints only the sparse or multi-GPU figure; stored halved or divided.
    PublishedHalfSparse,
    /// Vendor figure from memory.
    PublishedRecalled,
    /// Only non-vendor sources.
    ThirdParty,
    /// units × operations per clock × clock.
    Derived,
}

impl Provenance {
    /// May it decide against a provider?
    pub fn is_decisive(self) -> bool {
        matches!(self, Provenance::Published | Provenance::PublishedHalfSparse)
    }
}

/// A vendor number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Value in the base unit.
    pub value: Quantity,
    /// How it is known.
    pub provenance: Provenance,
    /// Why it does not follow from units × operations × clock, where it does not.
    pub note: Option<String>,
}

/// A PCI id with the subsystems that carry this model; no subsystem: all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciMatch {
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Subsystem (vendor, device) pairs, empty: any.
    pub subsystems: Vec<(u16, u16)>,
}

/// One GPU model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuSpec {
    /// Stable key, e.g. `h100-sxm5-80gb`.
    pub id: String,
    /// nvidia, amd, intel.
    pub vendor: String,
    /// Marketing name.
    pub name: String,
    /// Names drivers report.
    pub device_names: Vec<String>,
    /// PCI ids.
    pub pci: Vec<PciMatch>,
    /// Architecture name.
    pub architecture: String,
    /// Die.
    pub die: Option<String>,
    /// Board form factor.
    pub form_factor: String,
    /// "9.0" or "gfx942".
    pub target: Option<String>,
    /// SM, CU, Xe-core.
    pub unit_kind: String,
    /// Units of the device as sold.
    pub unit_count: u32,
    /// Devices the driver shows per package sold (MI250X: 2).
    pub devices_per_package: u32,
    /// Figures by name: `fp16_tensor_fp32acc`, `memory_bandwidth`, `memory_size`, `memory_reported`, `tdp`, `clock_boost`,
    /// `clock_base`, `clock_tensor`, `l2`, `pcie_generation`, `pcie_lanes`, `peer_bandwidth` …
    pub figures: BTreeMap<String, Figure>,
    /// Sources in words.
    pub sources: Vec<String>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Row of the operations-per-clock table used by the derivation check.
    pub ops_class: Option<String>,
}

impl GpuSpec {
    /// The figure called `name`.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)
    }
}

/// All models and bands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpecTable {
    gpus: Vec<GpuSpec>,
    bands: BandTable,
}

impl SpecTable {
    /// From its parts.
    pub fn new(gpus: Vec<GpuSpec>, bands: BandTable) -> SpecTable {
        SpecTable { gpus, bands }
    }
    /// The model with this id.
    pub fn get(&self, id: &str) -> Option<&GpuSpec> {
        self.gpus.iter().find(|g| g.id == id)
    }
    /// All models, in file order.
    pub fn all(&self) -> &[GpuSpec] {
        &self.gpus
    }
    /// What healthy units deliver.
    pub fn bands(&self) -> &BandTable {
        &self.bands
    }
}
