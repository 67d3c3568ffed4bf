//! Small records for tests and benches of the judge, built by hand: a machine of simulated H100s or the host, with
//! the cases each test needs.

use std::collections::BTreeMap;

use crate::offer::{Guarantee, HostSold, Offer};
use crate::record::{
    BackendId, Better, Block, Case, CaseError, CaseErrorKind, CaseEstimate, CaseId, CaseResult, ClockCheck, DeviceId,
    DeviceInfo, DeviceKind, Engine, EngineKind, FORMAT, Host, Inventory, Ledger, Measurement, MetricId, Observed,
    Outcome, Params, PciIdentity, Plan, Record, RoundsPlan, Run, RunEnd, Series, Source, Telemetry, TelemetryPoint,
    TelemetrySeries, ThermalState, Tool, Value, Verification, Verified, WorkScale,
};
use crate::suite::{Demand, DeviceFilter, LimitRule, Subject, Suite};
use crate::unit::{Bytes, Hertz, Quantity, Seconds, Unit};

pub fn source(name: &str) -> Source {
    Source { name: name.to_owned(), sha256: String::new(), text: String::new() }
}

/// A healthy simulated H100.
pub fn h100(index: u32) -> DeviceInfo {
    DeviceInfo {
        id: DeviceId::new(BackendId::Sim, index),
        kind: DeviceKind::Gpu,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        vendor: "nvidia".to_owned(),
        uuid: Some(format!("GPU-{index}")),
        pci: Some(PciIdentity {
            address: format!("0000:{index:02x}:00.0"),
            vendor: 0x10de,
            device: 0x2330,
            subsystem: Some((0x10de, 0x16c1)),
        }),
        memory: Bytes(85.5e9),
        last_level_cache: Some(Bytes::mib(50)),
        units: Some(132),
        clock_max: Some(Hertz(1.98e9)),
        driver: None,
        api: None,
        gemm_types: Vec::new(),
        fma_types: Vec::new(),
        spec: Some("h100-sxm5-80gb".to_owned()),
        numa_node: None,
        attributes: BTreeMap::new(),
        scale: WorkScale::ONE,
        simulated: true,
    }
}

/// The host CPU.
pub fn host() -> DeviceInfo {
    DeviceInfo {
        id: DeviceId::new(BackendId::Host, 0),
        kind: DeviceKind::Cpu,
        name: "Some CPU".to_owned(),
        pci: None,
        uuid: None,
        spec: None,
        units: Some(2),
        memory: Bytes::gib(8),
        simulated: false,
        ..h100(0)
    }
}

/// A finished run on `devices`, without cases.
pub fn record(devices: Vec<DeviceInfo>) -> Record {
    let selected = devices.iter().map(|d| d.id.clone()).collect();
    Record {
        format: FORMAT,
        id: "test".to_owned(),
        tool: Tool {
            name: "gpu-assay".to_owned(),
            version: "0".to_owned(),
            binary_sha256: None,
            method_versions: BTreeMap::new(),
        },
        run: Run {
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            ended_at: None,
            duration: Seconds(100.0),
            boot_id: None,
            seed: 1,
            arguments: Vec::new(),
            budget: None,
            end: RunEnd::Complete,
            simulated: devices.iter().any(|d| d.simulated),
            neutralised_environment: BTreeMap::new(),
        },
        suite: source("test"),
        offer: None,
        inventory: Inventory {
            devices,
            selected,
            host: Host { pci_gpus: Observed::Value(Vec::new()), ..Host::default() },
            ..Inventory::default()
        },
        plan: Plan {
            cases: Vec::new(),
            not_planned: Vec::new(),
            rounds: RoundsPlan { min: 8, max: 8 },
            soak: Seconds(0.0),
            budget: Seconds(100.0),
            estimate: Seconds(100.0),
        },
        results: Vec::new(),
        telemetry: Telemetry::default(),
        ledger: Ledger::default(),
        notices: Vec::new(),
    }
}

/// Twelve blocks around `center` that scatter by less than the floor of U.
pub fn quiet(center: f64) -> Vec<f64> {
    (0..12).map(|i| center * (1.0 + 0.0005 * [0.0, 1.0, -1.0, 2.0, -2.0, 0.5][i * 5 % 6])).collect()
}

/// A measured series of blocks.
pub fn measurement(metric: &str, unit: Unit, better: Better, values: &[f64]) -> Measurement {
    let block = |(i, value): (usize, &f64)| Block {
        round: i as u32,
        start: Seconds(10.0 + i as f64),
        value: *value,
        samples: Vec::new(),
        clock: Some(Hertz(1.97e9)),
    };
    Measurement {
        series: vec![Series {
            metric: MetricId(metric.to_owned()),
            unit,
            better,
            state: ThermalState::Warm,
            labels: BTreeMap::new(),
            primary: true,
            blocks: values.iter().enumerate().map(block).collect(),
        }],
        verification: Verification {
            verified: Verified::Right,
            checks: 12,
            method: "test".to_owned(),
            worst: Some(0.1),
        },
        engine: Engine {
            name: "test engine".to_owned(),
            version: None,
            library: None,
            kind: EngineKind::Decisive,
            conditions: BTreeMap::new(),
        },
        clock_check: Some(ClockCheck { device: Seconds(1.0), monotonic: Seconds(1.0), typical: 0.0001, worst: 0.0001 }),
        ceiling: None,
        conditions: BTreeMap::new(),
    }
}

/// Adds a case with its outcome; returns its index in `results`.
pub fn add(record: &mut Record, benchmark: &str, params: Params, device: &DeviceId, outcome: Outcome) -> usize {
    let devices = vec![device.clone()];
    let id = CaseId::new(benchmark, &params, &devices);
    record.plan.cases.push(Case {
        id: id.clone(),
        benchmark: benchmark.to_owned(),
        params,
        devices,
        slot: benchmark.to_owned(),
        exclusive: Vec::new(),
        gate: true,
        value: 1,
        block: Seconds(0.1),
        precision: 0.01,
        footprint: Bytes(1e9),
        blocks_per_round: 1,
        estimate: CaseEstimate::default(),
        state: ThermalState::Warm,
    });
    record.results.push(CaseResult { id, outcome });
    record.results.len() - 1
}

pub fn gemm_params() -> Params {
    Params::default().with("type", Value::Word("fp16".to_owned())).with("n", Value::Int(8192))
}

/// Adds a GEMM case of fp16 with these blocks, in FLOP/s.
pub fn add_gemm(record: &mut Record, device: &DeviceId, values: &[f64]) -> usize {
    let m = measurement("gemm.throughput", Unit::FlopPerSecond, Better::Higher, values);
    add(record, "gemm", gemm_params(), device, Outcome::Measured(m))
}

/// Adds a triad case with these blocks, in B/s.
pub fn add_triad(record: &mut Record, device: &DeviceId, values: &[f64]) -> usize {
    let m = measurement("memory_bandwidth.rate", Unit::BytePerSecond, Better::Higher, values);
    let params = Params::default().with("op", Value::Word("triad".to_owned()));
    add(record, "memory_bandwidth", params, device, Outcome::Measured(m))
}

/// `count` healthy H100s with GEMM at 700 TFLOP/s and triad at 3 TB/s.
pub fn node(count: u32) -> Record {
    let mut record = record((0..count).map(h100).collect());
    for i in 0..count {
        let id = DeviceId::new(BackendId::Sim, i);
        add_gemm(&mut record, &id, &quiet(700e12));
        add_triad(&mut record, &id, &quiet(3e12));
        add_sensor(&mut record, &id.to_string(), "memory_used", Unit::Byte, &[5e8]);
    }
    record
}

/// The measurement at `index`.
pub fn measured(record: &mut Record, index: usize) -> &mut Measurement {
    match &mut record.results[index].outcome {
        Outcome::Measured(m) => m,
        _ => panic!("result {index} was not measured"),
    }
}

/// Replaces the outcome at `index` by a failure.
pub fn fail(record: &mut Record, index: usize, kind: CaseErrorKind) {
    let error = CaseError { kind, message: "as the driver said".to_owned() };
    record.results[index].outcome = Outcome::Failed { error, partial: None };
}

/// Adds a sensor with constant readings.
pub fn add_sensor(record: &mut Record, source: &str, sensor: &str, unit: Unit, values: &[f64]) {
    let point = |(i, value): (usize, &f64)| TelemetryPoint { at: Seconds(i as f64), value: *value };
    record.telemetry.series.push(TelemetrySeries {
        source: source.to_owned(),
        sensor: sensor.to_owned(),
        unit,
        counter: false,
        points: values.iter().enumerate().map(point).collect(),
    });
}

pub fn demand(id: &str, subject: Subject, limit: LimitRule, gate: bool) -> Demand {
    Demand {
        id: id.to_owned(),
        subject,
        filter: BTreeMap::new(),
        on: DeviceFilter::Any,
        limit,
        gate,
        cap: 0.01,
        why: String::new(),
        line: 1,
    }
}

/// Correctness and completeness of GEMM and memory as gates, peers graded, same-run shares.
pub fn suite() -> Suite {
    let benchmark = |b: &str| Subject::Benchmark(b.to_owned());
    let metric = |m: &str| Subject::Metric(m.to_owned());
    Suite {
        name: "test".to_owned(),
        version: 1,
        title: String::new(),
        budget: Seconds(100.0),
        rounds: RoundsPlan { min: 8, max: 8 },
        soak: Seconds(0.0),
        needs_gpu: false,
        runs: Vec::new(),
        demands: vec![
            demand("compute-correct", benchmark("gemm"), LimitRule::Correct, true),
            demand("compute-complete", benchmark("gemm"), LimitRule::Complete, true),
            demand("memory-correct", benchmark("memory_bandwidth"), LimitRule::Correct, true),
            demand("memory-complete", benchmark("memory_bandwidth"), LimitRule::Complete, true),
            demand("compute-guarantee", metric("gemm.throughput"), LimitRule::Guarantee, true),
            demand("compute-peers", metric("gemm.throughput"), LimitRule::Peers, false),
            demand("memory-peers", metric("memory_bandwidth.rate"), LimitRule::Peers, false),
            demand("compute-same-run", metric("gemm.throughput"), LimitRule::SameRun, false),
        ],
        source: source("test"),
    }
}

/// `count` H100s with 650 TFLOP/s in fp16 and 2.8 TB/s promised.
pub fn offer(count: u32) -> Offer {
    let guarantee = |metric: &str, value: f64, unit: Unit, line: usize| Guarantee {
        metric: metric.to_owned(),
        filter: BTreeMap::new(),
        state: None,
        value: Quantity { value, unit },
        line,
    };
    Offer {
        provider: "Example".to_owned(),
        region: None,
        instance: None,
        model: Some("h100-sxm5-80gb".to_owned()),
        count: Some(count),
        memory: Some(Bytes(80e9)),
        link: None,
        pcie: None,
        host: HostSold::default(),
        storage: None,
        network: None,
        market: None,
        dedicated: false,
        prices: Vec::new(),
        claims: Vec::new(),
        guarantees: vec![
            guarantee("gemm.throughput", 650e12, Unit::FlopPerSecond, 10),
            guarantee("memory_bandwidth.rate", 2.8e12, Unit::BytePerSecond, 14),
        ],
        lines: BTreeMap::new(),
        source: source("offer.toml"),
    }
}
