//! Vendor figures with unit, provenance and source: data under `specs/`, looked up by PCI id, then
//! subsystem, memory size and name.

mod band;
mod derive;
mod evidence;
mod instance;
mod lookup;
mod parse;
mod sibling;
mod slice;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

pub use band::{Band, BandTable, Strength, build as build_bands, divisor, parse as parse_bands, text as bands_text};
pub use derive::{OpsTable, Problem, TOLERANCE, ceiling_operations, check, coverage, operations_per_clock};
pub use evidence::{Comparable, Conditions, Evidence, Published, Reads, conditions, evidence};
pub use instance::{Instance, InstanceField, InstanceTable};
pub use lookup::{LookupKey, Match, MatchedBy, Resolution};
pub use parse::ParseError;
pub use slice::{Slice, SliceFigure, SliceKind};

pub(crate) use lookup::nearest;

use crate::unit::{Quantity, Unit};

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
    /// The word used in spec files.
    pub fn name(self) -> &'static str {
        match self {
            Provenance::Published => "published",
            Provenance::PublishedHalfSparse => "published_half_sparse",
            Provenance::PublishedRecalled => "published_recalled",
            Provenance::ThirdParty => "third_party",
            Provenance::Derived => "derived",
        }
    }
}

/// A vendor number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Value in the base unit.
    pub value: Quantity,
    /// How it is known.
    pub provenance: Provenance,
    /// Where it is from, in words.
    pub source: String,
    /// Why it does not follow from units × operations × clock, where it does not.
    pub note: Option<String>,
    /// By how much it is known not to follow, relative (−0.024 = 2.4 % below); the derivation check accepts this
    /// deviation and no other.
    pub deviation: Option<f64>,
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
    /// Name in the pci.ids database.
    pub name: Option<String>,
    /// Names the vendor's driver gives to this id.
    pub driver_names: Vec<String>,
    /// What is special about this id (other power limit, virtual function …).
    pub note: Option<String>,
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
    /// Names of older drivers and other tools.
    pub other_names: Vec<String>,
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
    /// Units of the package as sold; `None` where no source states it.
    pub unit_count: Option<u32>,
    /// Devices the driver shows per package sold (MI250X: 2). Figures are per package.
    pub devices_per_package: u32,
    /// Packages on one board (A16: 4). Figures are per package.
    pub gpus_per_board: u32,
    /// Figures by name, see [`FIGURES`].
    pub figures: BTreeMap<String, Figure>,
    /// Figures this hardware cannot have, because it lacks the type.
    pub unsupported: Vec<String>,
    /// Figures that 2:4 sparsity doubles; every stored figure is dense.
    pub sparsity_doubles: Vec<String>,
    /// Figures that sparsity raises by another factor than 2.
    pub sparsity_factors: BTreeMap<String, f64>,
    /// Memory type, e.g. HBM3.
    pub memory_type: Option<String>,
    /// Sizes other drivers or ECC states report, in bytes.
    pub memory_reported_other: Vec<Quantity>,
    /// How ECC works on it.
    pub ecc: Option<String>,
    /// Link between GPUs, in words.
    pub peer_link: Option<String>,
    /// Most MIG slices.
    pub mig_max_instances: Option<u32>,
    /// Which kind of figure the vendor prints (dense, sparse).
    pub marketing_basis: Option<String>,
    /// Sources in words.
    pub sources: Vec<String>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Where sources contradict each other.
    pub disagreements: Vec<String>,
    /// What in this entry is uncertain.
    pub low_confidence: Vec<String>,
    /// Row of the operations-per-clock table used by the derivation check.
    pub ops_class: Option<String>,
}

impl GpuSpec {
    /// The figure called `name`.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)
    }

    /// By how much 2:4 sparsity raises a figure; `None` where it does not.
    pub fn sparsity(&self, name: &str) -> Option<f64> {
        let doubles = self.sparsity_doubles.iter().any(|n| n == name).then_some(2.0);
        doubles.or_else(|| self.sparsity_factors.get(name).copied())
    }

    /// Value of a figure for one device as the driver shows it: what belongs to the package (rates, bandwidth,
    /// memory, power, caches) divided by [`GpuSpec::devices_per_package`]; clocks, lanes and data rates as they are.
    pub fn device_value(&self, name: &str) -> Option<f64> {
        let value = self.figure(name)?.value.value;
        let of_package = !matches!(
            name,
            "clock_base"
                | "clock_boost"
                | "clock_tensor"
                | "clock_memory"
                | "memory_data_rate"
                | "pcie_generation"
                | "pcie_lanes"
        );
        Some(if of_package { value / f64::from(self.devices_per_package) } else { value })
    }

    /// Compute units of one device as the driver shows it.
    pub fn device_units(&self) -> Option<u32> {
        self.unit_count.map(|n| n / self.devices_per_package)
    }
}

/// Every figure a spec file may state, with its unit. Rates are dense; one fused multiply-add is two operations.
pub const FIGURES: &[(&str, Unit)] = &[
    ("fp64_vector", Unit::FlopPerSecond),
    ("fp64_tensor", Unit::FlopPerSecond),
    ("fp32_vector", Unit::FlopPerSecond),
    ("fp32_matrix", Unit::FlopPerSecond),
    ("tf32_tensor", Unit::FlopPerSecond),
    ("fp16_vector", Unit::FlopPerSecond),
    ("bf16_vector", Unit::FlopPerSecond),
    ("fp16_tensor_fp16acc", Unit::FlopPerSecond),
    ("fp16_tensor_fp32acc", Unit::FlopPerSecond),
    ("bf16_tensor", Unit::FlopPerSecond),
    ("fp8_tensor_fp16acc", Unit::FlopPerSecond),
    ("fp8_tensor", Unit::FlopPerSecond),
    ("int8_vector", Unit::OpPerSecond),
    ("int8_tensor", Unit::OpPerSecond),
    ("int4_vector", Unit::OpPerSecond),
    ("int4_tensor", Unit::OpPerSecond),
    ("fp6_tensor", Unit::FlopPerSecond),
    ("fp4_tensor", Unit::FlopPerSecond),
    // Device memory: the rate the vendor prints, the size in its name, the size drivers report, its bus.
    ("memory_bandwidth", Unit::BytePerSecond),
    ("memory_size", Unit::Byte),
    ("memory_reported", Unit::Byte),
    ("memory_bus_bits", Unit::Count),
    // Per pin.
    ("memory_data_rate", Unit::BytePerSecond),
    ("l2", Unit::Byte),
    // A further cache level behind L2 (AMD Infinity Cache).
    ("llc", Unit::Byte),
    ("clock_base", Unit::Hertz),
    ("clock_boost", Unit::Hertz),
    // The clock at which the vendor quotes tensor rates, where lower than boost.
    ("clock_tensor", Unit::Hertz),
    ("clock_memory", Unit::Hertz),
    ("tdp", Unit::Watt),
    ("tdp_max", Unit::Watt),
    ("pcie_generation", Unit::Count),
    ("pcie_lanes", Unit::Count),
    // To all peers together, one way.
    ("peer_bandwidth", Unit::BytePerSecond),
];

/// The unit of the figure called `name`.
pub fn figure_unit(name: &str) -> Option<Unit> {
    FIGURES.iter().find(|(n, _)| *n == name).map(|(_, unit)| *unit)
}

/// All models and bands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpecTable {
    gpus: Vec<GpuSpec>,
    bands: BandTable,
    /// Of the models, see [`lookup`].
    names: OnceLock<Vec<lookup::Names>>,
}

impl SpecTable {
    /// From its parts.
    pub fn new(gpus: Vec<GpuSpec>, bands: BandTable) -> SpecTable {
        SpecTable { gpus, bands, names: OnceLock::new() }
    }
    /// From the texts of spec files, `(name, text)`, without bands. Ids must be unique over all files.
    pub fn parse_files(files: &[(&str, &str)]) -> Result<SpecTable, ParseError> {
        Ok(SpecTable::new(parse::files(files)?, BandTable::default()))
    }
    /// The model with this id.
    pub fn get(&self, id: &str) -> Option<&GpuSpec> {
        self.gpus.iter().find(|g| g.id == id)
    }
    /// All models, in file order.
    pub fn all(&self) -> &[GpuSpec] {
        &self.gpus
    }
    /// The same models with other bands.
    pub fn with_bands(&self, bands: BandTable) -> SpecTable {
        SpecTable { gpus: self.gpus.clone(), bands, names: self.names.clone() }
    }
    /// What healthy units deliver.
    pub fn bands(&self) -> &BandTable {
        &self.bands
    }
}

/// The spec files embedded in the binary.
const FILES: &[(&str, &str)] = &[
    ("specs/amd-cdna.toml", include_str!("../../specs/amd-cdna.toml")),
    ("specs/amd-cdna2.toml", include_str!("../../specs/amd-cdna2.toml")),
    ("specs/amd-cdna3.toml", include_str!("../../specs/amd-cdna3.toml")),
    ("specs/amd-cdna4.toml", include_str!("../../specs/amd-cdna4.toml")),
    ("specs/amd-gcn-5-1.toml", include_str!("../../specs/amd-gcn-5-1.toml")),
    ("specs/amd-rdna2.toml", include_str!("../../specs/amd-rdna2.toml")),
    ("specs/amd-rdna3.toml", include_str!("../../specs/amd-rdna3.toml")),
    ("specs/intel-xe-hpc.toml", include_str!("../../specs/intel-xe-hpc.toml")),
    ("specs/intel-xe-hpg.toml", include_str!("../../specs/intel-xe-hpg.toml")),
    ("specs/intel-xe2-hpg.toml", include_str!("../../specs/intel-xe2-hpg.toml")),
    ("specs/nvidia-ada-lovelace.toml", include_str!("../../specs/nvidia-ada-lovelace.toml")),
    ("specs/nvidia-ampere.toml", include_str!("../../specs/nvidia-ampere.toml")),
    ("specs/nvidia-blackwell-ultra.toml", include_str!("../../specs/nvidia-blackwell-ultra.toml")),
    ("specs/nvidia-blackwell.toml", include_str!("../../specs/nvidia-blackwell.toml")),
    ("specs/nvidia-hopper.toml", include_str!("../../specs/nvidia-hopper.toml")),
    ("specs/nvidia-pascal.toml", include_str!("../../specs/nvidia-pascal.toml")),
    ("specs/nvidia-turing.toml", include_str!("../../specs/nvidia-turing.toml")),
    ("specs/nvidia-volta.toml", include_str!("../../specs/nvidia-volta.toml")),
];

/// The table embedded in the binary, parsed at first use.
pub fn table() -> &'static SpecTable {
    static TABLE: OnceLock<SpecTable> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = SpecTable::parse_files(FILES).expect("the embedded spec files parse (tested)");
        let bands = include_str!("../../specs/bands.csv");
        table.bands = BandTable::new(parse_bands(bands).expect("the embedded bands parse (tested)"));
        table
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_table_is_complete() {
        assert_eq!(table().all().len(), 96);
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/specs")).unwrap();
        let others = ["operations-per-clock.toml", "instances.toml", "evidence.toml", "measurements.csv", "bands.csv"];
        let on_disk = files.filter(|f| others.iter().all(|o| f.as_ref().unwrap().file_name() != *o)).count();
        assert_eq!(on_disk, FILES.len(), "a file under specs/ is not embedded");
        for (name, text) in FILES {
            let expected = format!(
                "specs/{}-{}.toml",
                line_value(text, "vendor"),
                line_value(text, "architecture").to_lowercase().replace([' ', '.'], "-")
            );
            assert_eq!(*name, expected);
        }
    }

    fn line_value<'t>(text: &'t str, key: &str) -> &'t str {
        let line = text.lines().find(|l| l.starts_with(&format!("{key} = "))).unwrap();
        line.split('"').nth(1).unwrap()
    }

    #[test]
    fn figures_have_values_and_sources() {
        let h100 = table().get("h100-sxm5-80gb").unwrap();
        let bandwidth = h100.figure("memory_bandwidth").unwrap();
        assert_eq!(bandwidth.value, Quantity { value: 3352e9, unit: Unit::BytePerSecond });
        assert!(bandwidth.provenance.is_decisive());
        assert!(bandwidth.source.contains("white paper"));
        assert_eq!(h100.unit_count, Some(132));
        for gpu in table().all() {
            assert!(!gpu.sources.is_empty(), "{}", gpu.id);
            assert!(gpu.figure("memory_size").is_some(), "{}", gpu.id);
            for (name, figure) in &gpu.figures {
                assert!(figure.value.value > 0.0, "{}: {name}", gpu.id);
                assert!(!figure.source.is_empty(), "{}: {name}", gpu.id);
            }
        }
    }

    #[test]
    fn a_package_of_two_devices_is_halved_per_device() {
        let mi250x = table().get("mi250x").unwrap();
        assert_eq!(mi250x.device_units(), Some(110));
        assert_eq!(mi250x.device_value("memory_size"), Some(64e9));
        assert_eq!(mi250x.device_value("clock_boost"), Some(1.7e9));
    }
}
