//! Published measurements of GPUs and what each can say: `specs/measurements.csv` and `specs/evidence.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::record::{Params, ThermalState};
use crate::unit::Unit;

/// A published value, as its source states it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Published {
    /// Key of the row.
    pub id: String,
    /// The GPU in the words of the collection.
    pub gpu: String,
    /// What was measured, e.g. `gemm_tflops`.
    pub metric: String,
    /// Arithmetic type, where there is one.
    pub dtype: Option<String>,
    /// The value in `unit`.
    pub value: f64,
    /// `TFLOP/s` (of integers: TOP/s) or `GB/s`.
    pub unit: String,
    /// Size in words, e.g. `8192^3`.
    pub size: Option<String>,
    /// How it was measured.
    pub method: Option<String>,
    /// Program, library and host.
    pub software: Option<String>,
    /// Contents of the operands.
    pub data_init: Option<String>,
    /// Which of several units of the source.
    pub unit_index: Option<String>,
    /// `measurement` or `vendor_threshold`.
    pub kind: String,
    /// What is known of the unit's health: evidence for bands, never shown to the judge.
    pub label: String,
    /// Figure that the source or the collection divided by, in `unit`.
    pub peak: Option<f64>,
    /// A (best) to D.
    pub quality: String,
    /// Where it is from.
    pub source: String,
    /// Remarks.
    pub note: Option<String>,
}

impl Published {
    /// The value in base units (FLOP/s, OP/s, B/s).
    pub fn base_value(&self) -> f64 {
        self.value * self.scale()
    }
    /// [`Published::peak`] in base units.
    pub fn base_peak(&self) -> Option<f64> {
        self.peak.map(|p| p * self.scale())
    }
    fn scale(&self) -> f64 {
        if self.unit == "GB/s" { 1e9 } else { 1e12 }
    }
    /// Edge of a square product, where its size is one: "8192^3", "10240^3 (best of …)".
    pub fn edge(&self) -> Option<u64> {
        let text = self.size.as_deref().or(self.method.as_deref())?;
        match text.split_once("^3") {
            Some((edge, _)) => edge.trim().parse().ok(),
            None => text.strip_prefix("square_")?.split('_').next()?.parse().ok(),
        }
    }
    /// Who published it: repository, or an issue of it (a report of its own), or page. Two files of one repository are
    /// one origin.
    pub fn origin(&self) -> &str {
        let end = self.source.find(' ').unwrap_or(self.source.len());
        let issue = self.source[end..]
            .strip_prefix(" issue #")
            .map_or(0, |rest| " issue #".len() + rest.bytes().take_while(u8::is_ascii_digit).count());
        &self.source[..end + issue]
    }
    /// One physical unit, as far as the source tells units apart.
    pub fn unit_key(&self) -> (&str, &str, &str) {
        (&self.source, &self.gpu, self.unit_index.as_deref().unwrap_or_default())
    }
}

/// What a method's numbers can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// What the hardware delivers.
    #[default]
    Fair,
    /// Only too good.
    High,
    /// Only too poor.
    Low,
}

/// A published value in the terms of our own benchmarks.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparable<'a> {
    /// The row.
    pub published: &'a Published,
    /// Our metric, e.g. `gemm.throughput`.
    pub metric: &'static str,
    /// Its parameter that tells series apart: (`type`, `fp16`).
    pub parameter: (&'static str, String),
    /// Unit of the value in base units.
    pub unit: Unit,
    /// Thermal state.
    pub state: ThermalState,
    /// What the method can say.
    pub reads: Reads,
}

/// Conditions under which our own numbers compare with published ones.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Conditions {
    /// Parameters with their words.
    pub words: BTreeMap<String, String>,
    /// Parameters that are at least this.
    pub at_least: BTreeMap<String, u64>,
    /// Parameters that are absent.
    pub without: Vec<String>,
}

/// Those of one of our metrics: large products, arrays far beyond the caches, pinned host memory.
pub fn conditions(metric: &str) -> Conditions {
    let mut conditions = Conditions::default();
    match metric {
        "gemm.throughput" => drop(conditions.at_least.insert("n".to_owned(), SMALLEST_EDGE)),
        "memory_bandwidth.rate" => conditions.without.push("size".to_owned()),
        "host_link.rate" => drop(conditions.words.insert("memory".to_owned(), "pinned".to_owned())),
        _ => {}
    }
    conditions
}

impl Conditions {
    /// True if `params` meet them, but for the words.
    pub fn hold(&self, params: &Params) -> bool {
        let is_large = |(name, least): (&String, &u64)| params.int(name).is_some_and(|n| n >= *least);
        self.at_least.iter().all(is_large) && self.without.iter().all(|name| !params.0.contains_key(name))
    }
}

/// Products below this edge are not large against caches and launch cost: other conditions.
pub const SMALLEST_EDGE: u64 = 8192;

/// Models that are alike.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// `compute` or `memory`.
    pub of: String,
    /// Name.
    pub id: String,
    /// Spec ids.
    pub models: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Method {
    metric: String,
    method: Option<String>,
    from: Option<String>,
    state: Option<ThermalState>,
    #[serde(default)]
    reads: Reads,
    op: Option<String>,
    not_comparable: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Floor {
    records: Vec<String>,
}

/// A measurement that was divided by another figure than the model's, and why ours stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherDivisor {
    /// Name in the collection.
    pub gpu: String,
    /// Metric in the collection.
    pub metric: String,
    /// Type, where only one is meant.
    pub dtype: Option<String>,
    /// Why.
    pub why: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    names: BTreeMap<String, Vec<String>>,
    class: Vec<Class>,
    method: Vec<Method>,
    floor: Vec<Floor>,
    #[serde(default)]
    divisor: Vec<OtherDivisor>,
}

/// All published values with the rules of how to read them.
#[derive(Debug, Clone)]
pub struct Evidence {
    published: Vec<Published>,
    rules: Rules,
}

/// The embedded evidence, read at first use.
pub fn evidence() -> &'static Evidence {
    static EVIDENCE: OnceLock<Evidence> = OnceLock::new();
    EVIDENCE.get_or_init(|| {
        let rows = include_str!("../../specs/measurements.csv");
        let rules = include_str!("../../specs/evidence.toml");
        Evidence::parse(rows, rules).expect("the embedded evidence parses (tested)")
    })
}

impl Evidence {
    /// From the texts of both files. Errors: what the parsers say.
    pub fn parse(rows: &str, rules: &str) -> Result<Evidence, String> {
        let rows: Result<Vec<Published>, csv::Error> =
            csv::Reader::from_reader(rows.as_bytes()).deserialize().collect();
        Ok(Evidence {
            published: rows.map_err(|e| e.to_string())?,
            rules: toml::from_str(rules).map_err(|e| e.to_string())?,
        })
    }

    /// Every row.
    pub fn published(&self) -> &[Published] {
        &self.published
    }
    /// Every class.
    pub fn classes(&self) -> &[Class] {
        &self.rules.class
    }
    /// Where the collection divided by another figure.
    pub fn other_divisors(&self) -> &[OtherDivisor] {
        &self.rules.divisor
    }
    /// Names and the models they are.
    pub fn names(&self) -> &BTreeMap<String, Vec<String>> {
        &self.rules.names
    }
    /// Models of the spec table that a row is about; empty if the name is of none.
    pub fn models(&self, published: &Published) -> &[String] {
        self.rules.names.get(&published.gpu).map_or(&[], Vec::as_slice)
    }
    /// Rows that vendors state as floors of their own acceptance.
    pub fn floors(&self) -> impl Iterator<Item = &Published> {
        let ids = self.rules.floor.iter().flat_map(|f| &f.records);
        ids.filter_map(|id| self.published.iter().find(|p| p.id == *id))
    }

    /// The row in terms of our benchmarks; Err: why it compares with none of them. Looks at conditions only, never at
    /// value, label or note.
    pub fn comparable<'a>(&self, published: &'a Published) -> Result<Comparable<'a>, String> {
        let method = self.rules.method.iter().find(|m| {
            m.metric == published.metric
                && m.method.as_ref().is_none_or(|name| published.method.as_ref() == Some(name))
                && m.from.as_ref().is_none_or(|part| published.source.contains(part.as_str()))
        });
        let method = method.ok_or("its method is not in evidence.toml")?;
        if let Some(why) = &method.not_comparable {
            return Err(why.clone());
        }
        let is_small = published.metric == "gemm_tflops" && published.edge().is_some_and(|n| n < SMALLEST_EDGE);
        if is_small && method.reads == Reads::Fair {
            return Err(format!("smaller than {SMALLEST_EDGE}³"));
        }
        let (metric, parameter, unit) = ours(published, method.op.as_deref())?;
        let state = method.state.ok_or("its method states no thermal state")?;
        Ok(Comparable { published, metric, parameter, unit, state, reads: method.reads })
    }

    /// A vendor's floor in terms of our benchmarks.
    pub fn floor<'a>(&self, published: &'a Published) -> Result<Comparable<'a>, String> {
        let op = self.rules.method.iter().find(|m| m.metric == published.metric && m.method == published.method);
        let (metric, parameter, unit) = ours(published, op.and_then(|m| m.op.as_deref()))?;
        Ok(Comparable { published, metric, parameter, unit, state: ThermalState::Warm, reads: Reads::Fair })
    }
}

type Ours = (&'static str, (&'static str, String), Unit);

/// Our metric and parameter for a metric of the collection.
fn ours(published: &Published, op: Option<&str>) -> Result<Ours, String> {
    let op = |default: &str| ("op", op.unwrap_or(default).to_owned());
    let rate = Unit::BytePerSecond;
    Ok(match published.metric.as_str() {
        "gemm_tflops" | "rvs_gst_target_tflops" => {
            let (word, unit) = type_word(published)?;
            ("gemm.throughput", ("type", word), unit)
        }
        "vector_fma_tflops" => {
            let (word, unit) = type_word(published)?;
            ("fma_peak.throughput", ("type", word), unit)
        }
        "mem_bw_copy_gbs" => ("memory_bandwidth.rate", op("copy"), rate),
        "mem_bw_triad_gbs" => ("memory_bandwidth.rate", op("triad"), rate),
        "mem_bw_read_gbs" => ("memory_bandwidth.rate", op("read"), rate),
        "mem_bw_write_gbs" => ("memory_bandwidth.rate", op("write"), rate),
        "pcie_h2d_gbs" => ("host_link.rate", ("direction", "h2d".to_owned()), rate),
        "pcie_d2h_gbs" => ("host_link.rate", ("direction", "d2h".to_owned()), rate),
        other => return Err(format!("no benchmark measures {other}")),
    })
}

fn type_word(published: &Published) -> Result<(String, Unit), String> {
    match published.dtype.as_deref() {
        // Libraries take the tensor units for fp64 products where there are some.
        Some("fp64" | "fp64_tc") => Ok(("fp64".to_owned(), Unit::FlopPerSecond)),
        Some("int8") => Ok(("int8".to_owned(), Unit::OpPerSecond)),
        Some(word @ ("fp32" | "tf32" | "fp16" | "bf16" | "fp8")) => Ok((word.to_owned(), Unit::FlopPerSecond)),
        other => Err(format!("no benchmark has the type {}", other.unwrap_or("–"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::spec::table;

    #[test]
    fn every_model_is_in_one_class_of_each_kind() {
        for of in ["compute", "memory"] {
            let mut seen = BTreeSet::new();
            for model in evidence().classes().iter().filter(|c| c.of == of).flat_map(|c| &c.models) {
                assert!(table().get(model).is_some(), "{model} is no model");
                assert!(seen.insert(model.as_str()), "{model} twice in {of}");
            }
            for gpu in table().all() {
                assert!(seen.contains(gpu.id.as_str()), "{} is in no class of {of}", gpu.id);
            }
        }
        let known = ["compute", "memory"];
        assert!(evidence().classes().iter().all(|c| known.contains(&c.of.as_str())));
    }

    #[test]
    fn names_and_floors_exist() {
        for (name, models) in evidence().names() {
            assert!(models.iter().all(|m| table().get(m).is_some()), "{name}");
            assert!(evidence().published().iter().any(|p| p.gpu == *name), "no row is about {name}");
        }
        let stated: usize = evidence().rules.floor.iter().map(|f| f.records.len()).sum();
        assert_eq!(evidence().floors().count(), stated);
        for floor in evidence().floors() {
            assert_eq!(floor.kind, "vendor_threshold", "{}", floor.id);
            assert!(evidence().floor(floor).is_ok() && !evidence().models(floor).is_empty(), "{}", floor.id);
        }
    }

    #[test]
    fn conditions_decide_what_compares() {
        let row = |metric: &str, method: &str, size: Option<&str>, source: &str| Published {
            metric: metric.to_owned(),
            method: Some(method.to_owned()),
            size: size.map(str::to_owned),
            source: source.to_owned(),
            ..evidence().published().iter().find(|p| p.dtype.as_deref() == Some("fp16")).unwrap().clone()
        };
        let fits = |row: &Published| evidence().comparable(row).map(|c| (c.metric, c.parameter.1, c.state, c.reads));
        assert!(fits(&row("gemm_tflops", "constant_data", None, "x")).unwrap_err().contains("toggles"));
        assert!(fits(&row("gemm_tflops", "square_sustained", Some("4096^3"), "x")).unwrap_err().contains("8192"));
        assert!(fits(&row("pcie_h2d_gbs", "", None, "krrishnarraj/clpeak")).unwrap_err().contains("pageable"));
        let gemm = fits(&row("gemm_tflops", "square_sustained", Some("8192^3"), "x")).unwrap();
        assert_eq!(gemm, ("gemm.throughput", "fp16".to_owned(), ThermalState::Warm, Reads::Fair));
        let scale = fits(&row("mem_bw_copy_gbs", "babelstream_mul", None, "x")).unwrap();
        assert_eq!(scale.1, "scale");
    }

    #[test]
    fn files_of_one_repository_are_one_origin_and_issues_are_their_own() {
        let mut row = evidence().published()[0].clone();
        for (source, origin) in [
            ("github.com/a/b@1 tests/data node 1", "github.com/a/b@1"),
            ("github.com/a/b issue #12 (2026-01-01)", "github.com/a/b issue #12"),
            ("page.example/x", "page.example/x"),
        ] {
            row.source = source.to_owned();
            assert_eq!(row.origin(), origin);
        }
    }

    #[test]
    fn edges() {
        let mut row = evidence().published()[0].clone();
        for (size, method, edge) in [
            (Some("8192^3"), None, Some(8192)),
            (Some("10240^3 (best of 1024..10240)"), None, Some(10240)),
            (None, Some("square_8192_short_burst"), Some(8192)),
            (Some("best of 256..6888"), None, None),
            (None, Some("square_sustained"), None),
        ] {
            (row.size, row.method) = (size.map(str::to_owned), method.map(str::to_owned));
            assert_eq!(row.edge(), edge, "{size:?} {method:?}");
        }
    }
}
