//! The measured series of a record, each beside the judgement about it: what figures and tables are made from.

use std::collections::BTreeMap;

use crate::judge::{Assessment, Requirement};
use crate::record::{Case, DeviceId, Measurement, Outcome, Record, Series, ThermalState, Value, Verified};
use crate::unit::Unit;

/// One series with its case, its summary and the requirements about it.
pub struct Reading<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its measurement.
    pub measurement: &'a Measurement,
    /// The series.
    pub series: &'a Series,
    /// Requirements about exactly this series.
    pub requirements: Vec<&'a Requirement>,
    /// Median over blocks.
    pub median: f64,
    /// 5th percentile of the blocks.
    pub low: f64,
    /// 95th percentile of the blocks.
    pub high: f64,
}

/// Every series of every measured case, in plan order.
pub fn readings<'a>(record: &'a Record, assessment: &'a Assessment) -> Vec<Reading<'a>> {
    let mut by_case: BTreeMap<&str, Vec<&Requirement>> = BTreeMap::new();
    for requirement in &assessment.requirements {
        if let Some(case) = case_of(&requirement.id) {
            by_case.entry(case).or_default().push(requirement);
        }
    }
    let cases: BTreeMap<_, _> = record.plan.cases.iter().map(|c| (&c.id, c)).collect();
    let mut all = Vec::new();
    for result in &record.results {
        let (Some(case), Outcome::Measured(measurement)) = (cases.get(&result.id), &result.outcome) else { continue };
        let judged = by_case.get(case.id.0.as_str()).map(Vec::as_slice).unwrap_or_default();
        for series in measurement.series.iter().filter(|s| !s.blocks.is_empty()) {
            all.push(Reading {
                case,
                measurement,
                series,
                requirements: judged.iter().copied().filter(|r| is_about(r, series)).collect(),
                median: series.quantile(0.5),
                low: series.quantile(0.05),
                high: series.quantile(0.95),
            });
        }
    }
    all
}

/// The case id within a requirement id: `demand/case`, perhaps with series labels or a number after it.
pub fn case_of(requirement: &str) -> Option<&str> {
    let (_, rest) = requirement.split_once('/')?;
    let devices = rest.find("]@")? + 2;
    let end = rest[devices..].find(['[', '#']).map_or(rest.len(), |i| devices + i);
    Some(&rest[..end])
}

/// The benchmark whose case a requirement is about.
pub fn benchmark_of(requirement: &Requirement) -> Option<&str> {
    case_of(&requirement.id)?.split('[').next()
}

/// Same metric, and every label of the series is a label of the requirement.
fn is_about(requirement: &Requirement, series: &Series) -> bool {
    requirement.metric == series.metric.0
        && series.labels.iter().all(|(name, value)| requirement.labels.get(name) == Some(value))
}

impl Reading<'_> {
    /// Benchmark id.
    pub fn benchmark(&self) -> &str {
        &self.case.benchmark
    }

    /// Unit of the values.
    pub fn unit(&self) -> Unit {
        self.series.unit
    }

    /// Parameters, labels and thermal state: everything but the devices that tells it apart from its neighbours.
    pub fn attributes(&self) -> BTreeMap<String, Value> {
        let mut all = self.case.params.0.clone();
        all.extend(self.series.labels.iter().map(|(n, v)| (n.clone(), Value::Word(v.clone()))));
        let state = match self.series.state {
            ThermalState::Burst => "burst",
            ThermalState::Warm => "warm",
            ThermalState::Sustained => "sustained",
        };
        all.insert("state".to_owned(), Value::Word(state.to_owned()));
        all
    }

    /// Expanded uncertainty, where the judge has one.
    pub fn uncertainty(&self) -> Option<f64> {
        self.requirements.iter().find_map(|r| r.measured).map(|m| m.uncertainty)
    }

    /// True if the result was wrong: its speed means nothing.
    pub fn is_void(&self) -> bool {
        matches!(self.measurement.verification.verified, Verified::Wrong { .. })
    }

    /// Devices of the case.
    pub fn devices(&self) -> &[DeviceId] {
        &self.case.devices
    }
}

#[cfg(test)]
mod tests {
    use super::case_of;

    #[test]
    fn cases_are_found_in_requirement_ids() {
        assert_eq!(case_of("right/gemm[n=8,type=fp32]@sim:1"), Some("gemm[n=8,type=fp32]@sim:1"));
        assert_eq!(case_of("d/storage_random[op=read]@host:0[percentile=p99]"), Some("storage_random[op=read]@host:0"));
        assert_eq!(case_of("d/launch_latency[]@sim:10#2"), Some("launch_latency[]@sim:10"));
        assert_eq!(case_of("evidence-compute/sim:0"), None);
    }
}
