//! How well the bands decide: every published measurement judged with bands that were rebuilt without its source. The
//! judge sees value and conditions; label, note and share are kept from it and only sort the outcome.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{BasisKind, Class, Requirement, Status, judge};
use crate::record::{
    BackendId, Better, Block, Case, CaseEstimate, CaseId, CaseResult, ClockCheck, DeviceId, DeviceInfo, DeviceKind,
    Engine, EngineKind, FORMAT, Host, Inventory, Ledger, Measurement, MetricId, Observed, Outcome, Params, Plan,
    Record, RoundsPlan, Run, RunEnd, Series, Source, Telemetry, ThermalState, Tool, Value, Verification, Verified,
    WorkScale,
};
use crate::spec::{BandTable, Comparable, Evidence, GpuSpec, Published, Reads, SpecTable, build_bands};
use crate::suite::Suite;
use crate::unit::{Bytes, Seconds};

/// Blocks of a published value: it comes without its scatter, so each holds the value itself.
const BLOCKS: u32 = 12;

/// What became of one published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// Gate and graded limit passed.
    Pass,
    /// The gate passed, the graded limit not.
    GradedMiss,
    /// The gate failed: the unit would be refused.
    GateFail,
    /// Neither: too close to a limit, or a method that may not decide this way.
    Open,
    /// Measured under conditions that no band is about.
    NotComparable,
    /// Without its own source nothing is known of this model and metric.
    NoBand,
}

impl Decided {
    /// All, in the order of the table.
    pub const ALL: [Decided; 6] =
        [Decided::Pass, Decided::GradedMiss, Decided::GateFail, Decided::Open, Decided::NotComparable, Decided::NoBand];

    /// Column of the table.
    pub fn name(self) -> &'static str {
        match self {
            Decided::Pass => "pass",
            Decided::GradedMiss => "graded miss",
            Decided::GateFail => "gate fail",
            Decided::Open => "open",
            Decided::NotComparable => "not comparable",
            Decided::NoBand => "no band",
        }
    }
}

/// One published value with what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// Row of `specs/measurements.csv`.
    pub id: String,
    /// GPU in the words of the collection.
    pub gpu: String,
    /// Metric and type of the collection.
    pub metric: String,
    /// The value in base units.
    pub value: f64,
    /// Its label and, where it is burst, that: what it really is.
    pub truth: String,
    /// The outcome.
    pub decided: Decided,
    /// What its method can say: of one that reads only too poor no shortfall counts, and one that reads only too good
    /// hides some of it.
    pub reads: Option<Reads>,
    /// Why it is not comparable, if so.
    pub why: Option<String>,
    /// The gate it was held against, in base units, and what that rests on.
    pub gate: Option<(f64, String)>,
    /// Outcome of [`FACTORS`] times the value.
    pub degraded: Vec<Decided>,
}

/// Synthetic degradation of healthy values.
pub const FACTORS: [f64; 6] = [0.95, 0.9, 0.85, 0.8, 0.7, 0.5];

/// Judges every published measurement of a model of `table` with the band demands of `suite`.
pub fn published(evidence: &Evidence, table: &SpecTable, suite: &Suite) -> Vec<Judged> {
    let mut tables: BTreeMap<&str, SpecTable> = BTreeMap::new();
    let rows = evidence.published().iter().filter(|p| p.kind == "measurement" && !evidence.models(p).is_empty());
    rows.map(|row| {
        let without = tables.entry(row.origin()).or_insert_with(|| {
            let bands = build_bands(evidence, table.all(), |p| p.origin() == row.origin());
            table.with_bands(BandTable::new(bands))
        });
        of_row(evidence, without, suite, row)
    })
    .collect()
}

fn of_row(evidence: &Evidence, table: &SpecTable, suite: &Suite, row: &Published) -> Judged {
    let comparable = evidence.comparable(row);
    let gpu = evidence.models(row).first().and_then(|m| table.get(m));
    let (mut gate, mut degraded) = (None, Vec::new());
    let decided = match (&comparable, gpu) {
        (Ok(comparable), Some(gpu)) => {
            let (decided, limit) = decide(table, suite, gpu, comparable, 1.0);
            gate = limit;
            if row.label == "healthy" {
                degraded = FACTORS.iter().map(|f| decide(table, suite, gpu, comparable, *f).0).collect();
            }
            decided
        }
        _ => Decided::NotComparable,
    };
    let is_burst = comparable.as_ref().is_ok_and(|c| c.state == ThermalState::Burst);
    Judged {
        id: row.id.clone(),
        gpu: row.gpu.clone(),
        metric: [Some(row.metric.as_str()), row.dtype.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" "),
        value: row.base_value(),
        truth: if is_burst { format!("{} (burst)", row.label) } else { row.label.clone() },
        decided,
        reads: comparable.as_ref().ok().map(|c| c.reads),
        why: comparable.err(),
        gate,
        degraded,
    }
}

/// The judge's word on `factor` times the value, by the requirements that bands set.
fn decide(
    table: &SpecTable,
    suite: &Suite,
    gpu: &GpuSpec,
    comparable: &Comparable<'_>,
    factor: f64,
) -> (Decided, Option<(f64, String)>) {
    let assessment = judge(&record(gpu, comparable, factor), suite, None, table);
    let of_band = |r: &&Requirement| {
        r.limit.as_ref().is_some_and(|l| matches!(l.basis.kind, BasisKind::Band | BasisKind::ClassBand))
    };
    let all: Vec<&Requirement> = assessment.requirements.iter().filter(of_band).collect();
    let healthy = |r: &&&Requirement| r.id.contains("-healthy/");
    let gate = all.iter().find(|r| !healthy(r));
    let graded = all.iter().find(healthy);
    let limit = gate.and_then(|r| r.limit.as_ref()).map(|l| (l.value, l.basis.source.clone()));
    let decided = match (gate, graded) {
        (None, None) => Decided::NoBand,
        (Some(gate), _) if gate.status == Status::Fail && gate.class == Class::Gate => Decided::GateFail,
        (Some(gate), _) if gate.status == Status::Fail => Decided::GradedMiss,
        (_, Some(graded)) if graded.status == Status::Fail => Decided::GradedMiss,
        (Some(gate), _) if gate.status != Status::Pass => Decided::Open,
        (_, Some(graded)) if graded.status == Status::Pass => Decided::Pass,
        (_, Some(graded)) if graded.status == Status::Inconclusive => Decided::Open,
        (_, _) => Decided::GradedMiss,
    };
    (decided, limit)
}

/// A run that measured just this value.
fn record(gpu: &GpuSpec, comparable: &Comparable<'_>, factor: f64) -> Record {
    let id = DeviceId::new(BackendId::Cuda, 0);
    let benchmark = comparable.metric.split('.').next().unwrap_or_default();
    let mut params = Params::default().with(comparable.parameter.0, Value::Word(comparable.parameter.1.clone()));
    match benchmark {
        "gemm" => params = params.with("n", Value::Int(comparable.published.edge().unwrap_or(8192).max(8192))),
        "host_link" => params = params.with("memory", Value::Word("pinned".to_owned())),
        _ => {}
    }
    let case = CaseId::new(benchmark, &params, std::slice::from_ref(&id));
    let plan = Plan {
        cases: vec![planned(&case, benchmark, params, &id, comparable.state)],
        not_planned: Vec::new(),
        rounds: RoundsPlan { min: BLOCKS, max: BLOCKS },
        soak: Seconds(0.0),
        budget: Seconds(1.0),
        estimate: Seconds(1.0),
    };
    let result = CaseResult { id: case, outcome: Outcome::Measured(measurement(comparable, factor)) };
    let inventory = Inventory {
        devices: vec![device(gpu, &id)],
        selected: vec![id],
        host: Host { pci_gpus: Observed::Value(Vec::new()), ..Host::default() },
        ..Inventory::default()
    };
    Record {
        format: FORMAT,
        id: comparable.published.id.clone(),
        tool: Tool {
            name: "gpu-assay".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            binary_sha256: None,
            method_versions: BTreeMap::new(),
        },
        run: run(),
        suite: Source { name: String::new(), sha256: String::new(), text: String::new() },
        offer: None,
        inventory,
        plan,
        results: vec![result],
        telemetry: Telemetry::default(),
        ledger: Ledger::default(),
        notices: Vec::new(),
    }
}

fn run() -> Run {
    Run {
        started_at: String::new(),
        ended_at: None,
        duration: Seconds(1.0),
        boot_id: None,
        seed: 0,
        arguments: Vec::new(),
        budget: None,
        end: RunEnd::Complete,
        simulated: false,
        neutralised_environment: BTreeMap::new(),
    }
}

fn device(gpu: &GpuSpec, id: &DeviceId) -> DeviceInfo {
    DeviceInfo {
        id: id.clone(),
        kind: DeviceKind::Gpu,
        name: gpu.device_names.first().unwrap_or(&gpu.name).clone(),
        vendor: gpu.vendor.clone(),
        uuid: None,
        pci: None,
        memory: Bytes(gpu.device_value("memory_size").unwrap_or_default()),
        last_level_cache: None,
        units: gpu.device_units(),
        clock_max: None,
        driver: None,
        api: None,
        gemm_types: Vec::new(),
        fma_types: Vec::new(),
        spec: Some(gpu.id.clone()),
        numa_node: None,
        attributes: BTreeMap::new(),
        scale: WorkScale::ONE,
        simulated: false,
    }
}

fn planned(case: &CaseId, benchmark: &str, params: Params, id: &DeviceId, state: ThermalState) -> Case {
    Case {
        id: case.clone(),
        benchmark: benchmark.to_owned(),
        params,
        devices: vec![id.clone()],
        slot: benchmark.to_owned(),
        exclusive: Vec::new(),
        gate: true,
        value: 1,
        block: Seconds(0.1),
        precision: 0.01,
        footprint: Bytes(0.0),
        blocks_per_round: 1,
        estimate: CaseEstimate::default(),
        state,
    }
}

fn measurement(comparable: &Comparable<'_>, factor: f64) -> Measurement {
    let value = factor * comparable.published.base_value();
    let block = |i: u32| Block { round: i, start: Seconds(f64::from(i)), value, samples: Vec::new(), clock: None };
    let kind = match comparable.reads {
        Reads::Fair => EngineKind::Decisive,
        Reads::High => EngineKind::HighOnly,
        Reads::Low => EngineKind::LowOnly,
    };
    Measurement {
        series: vec![Series {
            metric: MetricId(comparable.metric.to_owned()),
            unit: comparable.unit,
            better: Better::Higher,
            state: comparable.state,
            labels: BTreeMap::new(),
            primary: true,
            blocks: (0..BLOCKS).map(block).collect(),
        }],
        verification: Verification {
            verified: Verified::Right,
            checks: 1,
            method: "published".to_owned(),
            worst: None,
        },
        engine: Engine {
            name: comparable.published.method.clone().unwrap_or_else(|| "not stated".to_owned()),
            version: None,
            library: None,
            kind,
            conditions: BTreeMap::new(),
        },
        clock_check: Some(ClockCheck { device: Seconds(1.0), monotonic: Seconds(1.0), typical: 0.0, worst: 0.0 }),
        ceiling: None,
        conditions: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{demand, suite};
    use crate::spec::{evidence, table};
    use crate::suite::{LimitRule, Subject};

    /// What the report of `gpu-assay spec quality` claims. A value that degrades in here is a change of the bands to explain.
    #[test]
    fn healthy_units_are_not_refused_and_slow_ones_are_found() {
        let mut suite = suite();
        for (metric, gate) in [("gemm.throughput", true), ("memory_bandwidth.rate", true), ("host_link.rate", false)] {
            suite.demands.push(demand("band", Subject::Metric(metric.to_owned()), LimitRule::Band, gate));
        }
        let judged = published(evidence(), table(), &suite);
        let decided = |j: &&Judged| !matches!(j.decided, Decided::NotComparable | Decided::NoBand);
        let healthy: Vec<&Judged> = judged.iter().filter(|j| j.truth.starts_with("healthy")).filter(decided).collect();
        let refused = healthy.iter().filter(|j| j.decided == Decided::GateFail).count();
        assert!(healthy.len() > 200 && refused * 100 <= healthy.len(), "{refused} of {}", healthy.len());
        let at = FACTORS.iter().position(|f| *f == 0.8).unwrap();
        let fair: Vec<&&Judged> = healthy.iter().filter(|j| j.reads == Some(Reads::Fair)).collect();
        let found = |j: &&&&Judged| matches!(j.degraded[at], Decided::GradedMiss | Decided::GateFail);
        let count = fair.iter().filter(found).count();
        assert!(fair.len() > 100 && count * 100 >= fair.len() * 95, "{count} of {}", fair.len());
        for label in ["degraded", "power_limited", "suspect", "low_toggle_data", "method_limited", "unknown"] {
            let passed = judged.iter().filter(|j| j.truth.starts_with(label) && j.decided == Decided::Pass);
            assert_eq!(passed.map(|j| j.id.as_str()).collect::<Vec<_>>(), [""; 0], "{label}");
        }
    }

    #[test]
    fn the_judge_is_not_told_the_label() {
        let row = evidence().published().iter().find(|p| p.id == "b2564").unwrap();
        let mut suite = suite();
        suite.demands.push(demand("band", Subject::Metric("host_link.rate".to_owned()), LimitRule::Band, false));
        let one = of_row(evidence(), table(), &suite, row);
        assert_eq!((one.truth.as_str(), one.decided), ("degraded", Decided::GradedMiss));
        let relabelled = Published { label: "healthy".to_owned(), ..row.clone() };
        assert_eq!(of_row(evidence(), table(), &suite, &relabelled).decided, Decided::GradedMiss);
    }
}
