//! Bands: what healthy units of a model really deliver, in absolute units. A band is evidence, not a share of
//! a vendor figure.

mod build;
mod file;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::Conditions;
use crate::record::{Better, ThermalState};
use crate::unit::Unit;

pub use build::{build, divisor};
pub use file::{parse, text};

/// How much measured evidence a band rests on, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Many units of several owners.
    Strong,
    /// Several units.
    Medium,
    /// Few units, cold ones, or borrowed from a class: never decides alone.
    Weak,
}

impl Strength {
    /// The word used in files.
    pub fn name(self) -> &'static str {
        match self {
            Strength::Strong => "strong",
            Strength::Medium => "medium",
            Strength::Weak => "weak",
        }
    }
}

/// One band of one model and metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Band {
    /// Entry in the spec table.
    pub gpu: String,
    /// Metric id.
    pub metric: String,
    /// Only under these; other conditions are not comparable.
    pub conditions: Conditions,
    /// Unit of both limits.
    pub unit: Unit,
    /// Direction of both limits.
    pub better: Better,
    /// Below it (above it, where less is better) a unit is not healthy.
    pub fail_below: f64,
    /// From it on a unit is as healthy ones are.
    pub pass_from: f64,
    /// Evidence.
    pub strength: Strength,
    /// False: no unit of this model is among the evidence, only units of its class.
    pub own: bool,
    /// Thermal states that the evidence is of.
    pub states: Vec<ThermalState>,
    /// Healthy values, of `units` units from `sources` sources.
    pub values: u32,
    /// Units that can be told apart.
    pub units: u32,
    /// Independent sources.
    pub sources: u32,
    /// The figure that values of like models were divided by.
    pub figure: String,
    /// Its value per device of this model.
    pub figure_value: f64,
    /// The lowest healthy share of the figure; `None` for a vendor's floor alone.
    pub lowest: Option<f64>,
    /// Rows of `specs/measurements.csv` it rests on.
    pub source: String,
}

impl Band {
    /// What it rests on, in words: strength, counts, rows.
    pub fn basis(&self) -> String {
        let (values, units, sources) = (self.values, self.units, self.sources);
        let counts = match self.values {
            0 => String::new(),
            _ => format!(", {values} values of {units} units from {sources} sources"),
        };
        format!("{}{counts}; {}", self.strength.name(), self.source)
    }

    /// True if a number of this thermal state can be refused by the band. Sustained load is slower than a short one: a band
    /// without sustained evidence grades it only.
    pub fn can_gate(&self, state: ThermalState) -> bool {
        state != ThermalState::Sustained || self.states.contains(&ThermalState::Sustained)
    }
}

/// All bands, by model; may be empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BandTable(Vec<Band>);

impl BandTable {
    /// In any order.
    pub fn new(mut bands: Vec<Band>) -> BandTable {
        bands.sort_by(|a, b| a.gpu.cmp(&b.gpu));
        BandTable(bands)
    }

    /// All bands, by model.
    pub fn all(&self) -> &[Band] {
        &self.0
    }

    /// Bands of `metric` for the spec entry `gpu`, whatever their conditions.
    pub fn of<'a>(&'a self, gpu: &str, metric: &'a str) -> impl Iterator<Item = &'a Band> + use<'a> {
        self.of_gpu(gpu).iter().filter(move |b| b.metric == metric)
    }

    /// All bands of the spec entry `gpu`.
    pub fn of_gpu(&self, gpu: &str) -> &[Band] {
        let from = self.0.partition_point(|b| b.gpu.as_str() < gpu);
        let rest = &self.0[from..];
        &rest[..rest.partition_point(|b| b.gpu == gpu)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{bands_text, build_bands, evidence, table};

    #[test]
    fn the_committed_bands_are_those_of_the_evidence() {
        let built = build_bands(evidence(), table().all(), |_| false);
        let text = bands_text(&built).unwrap();
        assert_eq!(parse(&text).unwrap(), built);
        assert!(text == include_str!("../../../specs/bands.csv"), "run `gpu-assay spec bands > specs/bands.csv`");
    }

    #[test]
    fn bands_are_in_order_and_of_known_figures() {
        for band in table().bands().all() {
            assert!(0.0 < band.fail_below && band.fail_below < band.pass_from, "{band:?}");
            let gpu = table().get(&band.gpu).unwrap();
            let parameter = if band.metric == "host_link.rate" {
                "direction"
            } else {
                band.conditions.words.keys().next().unwrap()
            };
            let key = [("op", "op"), ("type", "type"), ("direction", "direction")];
            let name = key.iter().find(|(n, _)| *n == parameter).unwrap().0;
            let (figure, value) = divisor(gpu, &band.metric, &(name, band.conditions.words[name].clone())).unwrap();
            assert_eq!((&figure, value), (&band.figure, band.figure_value), "{band:?}");
            assert!(band.own || band.strength == Strength::Weak, "borrowed evidence is weak: {band:?}");
            // 1.2: boards of the GeForce class run above the clock that their figure is quoted at.
            assert!(band.pass_from <= 1.2 * value, "{band:?}");
        }
    }

    #[test]
    fn another_divisor_than_the_figure_is_explained() {
        let mut used = std::collections::BTreeSet::new();
        let mut unexplained = std::collections::BTreeSet::new();
        for row in evidence().published().iter().filter(|p| p.kind == "measurement") {
            let Some(gpu) = evidence().models(row).first().and_then(|m| table().get(m)) else { continue };
            let (Ok(comparable), Some(peak)) = (evidence().comparable(row), row.base_peak()) else { continue };
            let Some((figure, value)) = divisor(gpu, comparable.metric, &comparable.parameter) else { continue };
            let why = evidence().other_divisors().iter().position(|d| {
                d.gpu == row.gpu && d.metric == row.metric && (d.dtype.is_none() || d.dtype == row.dtype)
            });
            let differs = (peak / value - 1.0).abs() > 0.01;
            used.extend(why.filter(|_| differs));
            if differs && why.is_none() {
                let dtype = row.dtype.as_deref().unwrap_or_default();
                unexplained.insert(format!("{} {} {dtype}: {peak:e}, {figure} is {value:e}", row.gpu, row.metric));
            }
        }
        assert!(unexplained.is_empty(), "{unexplained:#?}");
        assert_eq!(used.len(), evidence().other_divisors().len(), "an exception in evidence.toml explains nothing");
    }

    #[test]
    fn conditions_must_fit() {
        use crate::record::{Params, Value};
        let band = table().bands().of("h100-sxm5-80gb", "gemm.throughput").next().unwrap();
        let params = |n: u64| Params::default().with("n", Value::Int(n));
        assert!(band.conditions.hold(&params(8192)) && !band.conditions.hold(&params(4096)));
        assert!(!band.conditions.hold(&Params::default()));
        let memory = table().bands().of("h100-sxm5-80gb", "memory_bandwidth.rate").next().unwrap();
        assert!(memory.conditions.hold(&Params::default()));
        assert!(!memory.conditions.hold(&Params::default().with("size", Value::Size(2 << 20))));
        assert!(band.can_gate(ThermalState::Warm) && !band.can_gate(ThermalState::Sustained));
    }

    #[test]
    fn bad_files_are_refused_with_the_row() {
        let text = include_str!("../../../specs/bands.csv");
        let mut lines: Vec<&str> = text.lines().take(3).collect();
        let broken =
            lines[2].replacen("type=", "type", 1).replacen("op=", "op", 1).replacen("direction=", "direction", 1);
        lines[2] = &broken;
        let error = parse(&lines.join("\n")).unwrap_err();
        assert!(error.starts_with("row 2: ") && error.contains("is no condition"), "{error}");
    }
}
