//! Is this number normal? Each result beside the published measurements of the same model, metric and conditions.
//! Context, never a limit: limits come from bands.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{CaseFacts, Facts, values};
use crate::record::{DeviceId, DeviceKind, Series};
use crate::spec::{Comparable, Reads, conditions, evidence};
use crate::stats;
use crate::unit::{Quantity, Unit};

/// Fewer published values have no 5th and 95th percentile worth the name.
pub const PERCENTILES_FROM: usize = 8;

/// One result among the published ones. Values are in the base unit of `unit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Placed {
    /// The case.
    pub case: String,
    /// Metric id.
    pub metric: String,
    /// Its parameters in words, e.g. "fp16".
    pub what: String,
    /// The unit measured.
    pub device: DeviceId,
    /// Spec id of its model.
    pub model: String,
    /// Unit of all values.
    pub unit: Unit,
    /// Median over blocks of this unit.
    pub value: f64,
    /// Published values of healthy units.
    pub n: u32,
    /// From as many sources.
    pub sources: u32,
    /// False: published numbers are of another thermal state than this one.
    pub same_state: bool,
    /// Lowest published value.
    pub lowest: f64,
    /// 5th percentile; `None` below [`PERCENTILES_FROM`] values.
    pub p5: Option<f64>,
    /// Median.
    pub median: f64,
    /// 95th percentile; `None` below [`PERCENTILES_FROM`] values.
    pub p95: Option<f64>,
    /// Highest published value.
    pub highest: f64,
    /// Published values below this unit's.
    pub below: u32,
}

impl Placed {
    /// A value of it with its unit.
    pub fn quantity(&self, value: f64) -> Quantity {
        Quantity { value, unit: self.unit }
    }
}

/// Every series of every GPU that something published compares with, in case order.
pub fn normal(facts: &Facts<'_>) -> Vec<Placed> {
    let mut published: BTreeMap<&str, Vec<Comparable<'static>>> = BTreeMap::new();
    for model in facts.gpus().filter_map(|d| d.spec.as_deref()) {
        published.entry(model).or_insert_with(|| of_model(model));
    }
    facts.cases.iter().flat_map(|case| of_case(facts, &published, case)).collect()
}

/// What healthy units of `model` delivered, by methods that read neither too good nor too poor.
fn of_model(model: &str) -> Vec<Comparable<'static>> {
    let rows = evidence().published().iter().filter(|p| p.kind == "measurement" && p.label == "healthy");
    rows.filter(|p| evidence().models(p).iter().any(|m| m == model))
        .filter_map(|p| evidence().comparable(p).ok())
        .filter(|c| c.reads == Reads::Fair)
        .collect()
}

fn of_case(
    facts: &Facts<'_>,
    published: &BTreeMap<&str, Vec<Comparable<'static>>>,
    case: &CaseFacts<'_>,
) -> Vec<Placed> {
    let [device] = case.devices else { return Vec::new() };
    let Some(info) = facts.device(device).filter(|d| d.kind == DeviceKind::Gpu && facts.slice(d).is_none()) else {
        return Vec::new();
    };
    let Some((model, rows)) = info.spec.as_deref().and_then(|m| Some((m, published.get(m)?))) else {
        return Vec::new();
    };
    if facts.void(case).is_some() {
        return Vec::new();
    }
    let series = case.measurement().map_or(&[][..], |m| &m.series).iter().filter(|s| Some(s.state) == case.state);
    series.filter_map(|s| place(case, s, device, model, rows)).collect()
}

fn place(
    case: &CaseFacts<'_>,
    series: &Series,
    device: &DeviceId,
    model: &str,
    rows: &[Comparable<'_>],
) -> Option<Placed> {
    let conditions = conditions(&series.metric.0);
    if !conditions.hold(case.params) || !case.matches(&conditions.words, &series.labels) {
        return None;
    }
    let is_same = |c: &&Comparable<'_>| {
        c.metric == series.metric.0
            && c.unit == series.unit
            && case.params.word(c.parameter.0) == Some(c.parameter.1.as_str())
    };
    let all: Vec<&Comparable<'_>> = rows.iter().filter(is_same).collect();
    let same: Vec<&Comparable<'_>> = all.iter().copied().filter(|c| c.state == series.state).collect();
    let same_state = !same.is_empty();
    let chosen = if same_state { same } else { all };
    let numbers: Vec<f64> = chosen.iter().map(|c| c.published.base_value()).collect();
    let value = stats::median(&values(series));
    if numbers.is_empty() || !value.is_finite() {
        return None;
    }
    let at = |q| (numbers.len() >= PERCENTILES_FROM).then(|| stats::quantile(&numbers, q));
    Some(Placed {
        case: case.id.to_string(),
        metric: series.metric.0.clone(),
        what: chosen[0].parameter.1.clone(),
        device: device.clone(),
        model: model.to_owned(),
        unit: series.unit,
        value,
        n: numbers.len() as u32,
        sources: chosen.iter().map(|c| c.published.origin()).collect::<BTreeSet<_>>().len() as u32,
        same_state,
        lowest: numbers.iter().copied().fold(f64::INFINITY, f64::min),
        p5: at(0.05),
        median: stats::median(&numbers),
        p95: at(0.95),
        highest: numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        below: numbers.iter().filter(|n| **n < value).count() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::spec::table;
    use crate::stats::quantile;

    #[test]
    fn a_result_is_placed_among_the_published_ones_of_its_model() {
        let record = node(1);
        let suite = suite();
        let facts = Facts::new(&record, &suite, None, table());
        let placed = normal(&facts);
        let triad = placed.iter().find(|p| p.metric == "memory_bandwidth.rate").unwrap();
        // H100 SXM, BabelStream triad of Azure's guide and its like in measurements.csv.
        let numbers: Vec<f64> = of_model("h100-sxm5-80gb")
            .iter()
            .filter(|c| c.metric == "memory_bandwidth.rate" && c.parameter.1 == "triad")
            .map(|c| c.published.base_value())
            .collect();
        assert_eq!((triad.n as usize, triad.median), (numbers.len(), quantile(&numbers, 0.5)));
        assert!(triad.same_state && triad.p5.is_none(), "one or two values have no percentiles");
        assert_eq!(triad.below as usize, numbers.iter().filter(|n| **n < triad.value).count());
        assert_eq!(triad.model, "h100-sxm5-80gb");
    }

    #[test]
    fn other_conditions_models_and_void_numbers_are_not_placed() {
        let suite = suite();
        let count = |record: &crate::record::Record| {
            let facts = Facts::new(record, &suite, None, table());
            normal(&facts).iter().filter(|p| p.metric == "gemm.throughput").count()
        };
        let healthy = node(1);
        assert_eq!(count(&healthy), 1);
        let mut small = node(1);
        small.plan.cases[0].params = small.plan.cases[0].params.clone().with("n", crate::record::Value::Int(2048));
        assert_eq!(count(&small), 0);
        let mut unknown = node(1);
        unknown.inventory.devices[0].spec = None;
        assert_eq!(count(&unknown), 0);
        let mut wrong = node(1);
        measured(&mut wrong, 0).verification.verified =
            crate::record::Verified::Wrong { detail: "element 7".to_owned() };
        assert_eq!(count(&wrong), 0);
    }
}
