//! Records with their assessments, written by hand for the report: what a run and its judgement look like, without
//! measuring or judging anything. Shared with `benches/report.rs`.

use std::collections::BTreeMap;

use gpu_assay::judge::{
    ASSESSMENT_FORMAT, Argument, Assessment, Basis, BasisKind, Class, Estimate, Evidence, Finding, FixBy, Limit,
    Message, NotTested, Requirement, Share, Status, Validity, Verdict,
};
use gpu_assay::record::*;
use gpu_assay::report::MethodText;
use gpu_assay::unit::{Bytes, Hertz, Quantity, Seconds, Unit};

/// Texts for the method section.
pub const METHODS: &[MethodText<'static>] = &[
    MethodText {
        id: "gemm",
        title: "Matrix multiplication",
        measures: "Rate of C = A·B on seeded normal-random data.",
        why: "Training and inference spend most of their time here.",
        method: "Square matrices, batches timed by device events; Freivalds check after every round.",
        limits: "Says nothing about attention kernels or small batches.",
    },
    MethodText {
        id: "memory_bandwidth",
        title: "Memory bandwidth",
        measures: "Bytes moved per second.",
        why: "Token generation is bound by it.",
        method: "Buffers four times the last-level cache or more.",
        limits: "No random access.",
    },
];

/// A small deterministic spread around 1, the same on every machine.
fn wobble(seed: usize, size: f64) -> f64 {
    1.0 + size * ((seed * 7919 % 101) as f64 / 50.0 - 1.0)
}

fn word(text: &str) -> Value {
    Value::Word(text.to_owned())
}

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), sha256: "5f".repeat(32), text: text.to_owned() }
}

/// A run being written down.
pub struct Draft {
    /// What happened.
    pub record: Record,
    /// What it means.
    pub assessment: Assessment,
}

fn draft(id: &str, devices: Vec<DeviceInfo>, simulated: bool) -> Draft {
    let selected = devices.iter().map(|d| d.id.clone()).collect();
    let host = Host {
        hostname: "node-17".to_owned(),
        cpu: "Intel(R) Xeon(R) Platinum 8481C".to_owned(),
        cpus_total: 208,
        cpus_usable: 208.0,
        memory_total: Bytes::gib(1900),
        memory_usable: Bytes::gib(1900),
        kernel: "6.8.0-1017".to_owned(),
        os: "Ubuntu 24.04.1 LTS".to_owned(),
        virtualization: Some("kvm (CPUID)".to_owned()),
        container: None,
        cloud: Some("Example Cloud gpu-8x".to_owned()),
        pci_gpus: Vec::new(),
        numa: vec!["node 0: CPUs 0-103, 950 GiB".to_owned(), "node 1: CPUs 104-207, 950 GiB".to_owned()],
        attributes: BTreeMap::from([("clocksource".to_owned(), "tsc".to_owned())]),
    };
    let record = Record {
        format: FORMAT,
        id: id.to_owned(),
        tool: Tool {
            name: "gpu-assay".to_owned(),
            version: "0.1.0".to_owned(),
            binary_sha256: Some("ab".repeat(32)),
            method_versions: BTreeMap::from([("gemm".to_owned(), 1)]),
        },
        run: Run {
            started_at: "2026-10-09T08:12:03Z".to_owned(),
            ended_at: Some("2026-10-09T08:13:35Z".to_owned()),
            duration: Seconds(92.4),
            boot_id: Some("b00t".to_owned()),
            seed: 42,
            arguments: vec!["run".to_owned(), "--suite".to_owned(), "quick".to_owned()],
            budget: None,
            end: RunEnd::Complete,
            simulated,
            neutralised_environment: BTreeMap::new(),
        },
        suite: source("quick", "title = \"Quick\""),
        offer: None,
        inventory: Inventory {
            host,
            backends: vec![
                BackendReport {
                    id: BackendId::Host,
                    state: BackendState::Present { version: "0.1.0".to_owned(), library: None },
                },
                BackendReport {
                    id: BackendId::Opencl,
                    state: BackendState::Absent {
                        reason: "libOpenCL.so.1 was not found".to_owned(),
                        remedy: "Install an OpenCL driver.".to_owned(),
                    },
                },
            ],
            devices,
            selected,
            storage: Some(StorageTarget {
                path: "/mnt/local".to_owned(),
                filesystem: "ext4".to_owned(),
                device: Some("/dev/nvme0n1".to_owned()),
                free: Bytes(1.2e12),
            }),
            disagreements: Vec::new(),
        },
        plan: Plan {
            cases: Vec::new(),
            not_planned: Vec::new(),
            rounds: RoundsPlan { min: 8, max: 64 },
            soak: Seconds(12.0),
            budget: Seconds(120.0),
            estimate: Seconds(92.0),
        },
        results: Vec::new(),
        telemetry: Telemetry { interval: Seconds(0.5), ..Telemetry::default() },
        ledger: Ledger {
            prepare: Seconds(14.2),
            warm: Seconds(12.0),
            sample: Seconds(58.1),
            verify: Seconds(6.0),
            write: Seconds(0.4),
            idle: Seconds(1.7),
            total: Seconds(92.4),
        },
        notices: Vec::new(),
    };
    let assessment = Assessment {
        format: ASSESSMENT_FORMAT,
        record: id.to_owned(),
        judged_by: "gpu-assay 0.1.0".to_owned(),
        verdict: Verdict::Accepted,
        headline: Message::new("judge.headline.accepted").with("gates", 5u64),
        validity: Validity::Valid,
        validity_reasons: Vec::new(),
        requirements: Vec::new(),
        findings: Vec::new(),
        not_tested: Vec::new(),
        not_compared: 0,
        simulated,
    };
    Draft { record, assessment }
}

fn device(backend: BackendId, index: u32, kind: DeviceKind, name: &str) -> DeviceInfo {
    DeviceInfo {
        id: DeviceId::new(backend, index),
        kind,
        name: name.to_owned(),
        vendor: "Example".to_owned(),
        uuid: None,
        pci: None,
        memory: Bytes::gib(8),
        last_level_cache: Some(Bytes::mib(50)),
        units: Some(132),
        clock_max: Some(Hertz(1.98e9)),
        driver: Some("570.133.20".to_owned()),
        api: None,
        gemm_types: vec![DataType::Fp32],
        fma_types: vec![DataType::Fp32],
        spec: None,
        numa_node: Some(0),
        attributes: BTreeMap::new(),
        scale: WorkScale::ONE,
        simulated: backend == BackendId::Sim,
    }
}

/// One series to write down.
struct Fresh<'a> {
    benchmark: &'a str,
    metric: &'a str,
    unit: Unit,
    better: Better,
    value: f64,
    labels: &'a [(&'a str, &'a str)],
}

impl Draft {
    /// Adds blocks of a series to the case of `params` and `devices`, which is made where it is new.
    fn measure(&mut self, fresh: &Fresh, params: &Params, devices: &[DeviceId]) -> CaseId {
        let id = CaseId::new(fresh.benchmark, params, devices);
        let seed = self.record.results.len() * 31 + id.0.len();
        let blocks = (0..8).map(|round| Block {
            round,
            start: Seconds(26.0 + 7.5 * f64::from(round)),
            value: fresh.value * wobble(seed + round as usize, 0.004),
            samples: vec![Sample { iterations: 10, elapsed: Seconds(0.1) }],
            clock: None,
        });
        let series = Series {
            metric: MetricId(fresh.metric.to_owned()),
            unit: fresh.unit,
            better: fresh.better,
            state: ThermalState::Warm,
            labels: fresh.labels.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            primary: fresh.labels.is_empty(),
            blocks: blocks.collect(),
        };
        if let Some(result) = self.record.results.iter_mut().find(|r| r.id == id) {
            if let Outcome::Measured(m) = &mut result.outcome {
                m.series.push(series);
            }
            return id;
        }
        self.plan(&id, fresh.benchmark, params, devices);
        let measurement = Measurement {
            series: vec![series],
            verification: Verification {
                verified: Verified::Right,
                checks: 10,
                method: "Freivalds, 1 vector per round, bound 3.1e-5; exact ternary before and after".to_owned(),
                worst: Some(0.2),
            },
            engine: Engine {
                name: "own".to_owned(),
                version: None,
                library: None,
                kind: EngineKind::Decisive,
                conditions: BTreeMap::new(),
            },
            clock_check: None,
            ceiling: None,
            conditions: BTreeMap::new(),
        };
        self.record.results.push(CaseResult { id: id.clone(), outcome: Outcome::Measured(measurement) });
        id
    }

    fn plan(&mut self, id: &CaseId, benchmark: &str, params: &Params, devices: &[DeviceId]) {
        self.record.plan.cases.push(Case {
            id: id.clone(),
            benchmark: benchmark.to_owned(),
            params: params.clone(),
            devices: devices.to_vec(),
            slot: "0".to_owned(),
            exclusive: Vec::new(),
            gate: true,
            value: 10,
            block: Seconds(0.1),
            precision: 0.01,
            footprint: Bytes::mib(64),
            blocks_per_round: 1,
            estimate: CaseEstimate::default(),
            state: ThermalState::Warm,
        });
    }

    fn fail(&mut self, benchmark: &str, params: &Params, devices: &[DeviceId], kind: CaseErrorKind, message: &str) {
        let id = CaseId::new(benchmark, params, devices);
        self.plan(&id, benchmark, params, devices);
        let error = CaseError { kind, message: message.to_owned() };
        self.record.results.push(CaseResult { id, outcome: Outcome::Failed { error, partial: None } });
    }

    /// A requirement about the last series of `case`.
    fn require(&mut self, demand: &str, fresh: &Fresh, params: &Params, devices: &[DeviceId]) -> &mut Requirement {
        let case = CaseId::new(fresh.benchmark, params, devices);
        let mut labels: BTreeMap<String, String> = params.0.iter().map(|(n, v)| (n.clone(), v.to_string())).collect();
        labels.extend(fresh.labels.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        let median = fresh.value;
        self.assessment.requirements.push(Requirement {
            id: format!("{demand}/{case}"),
            domain: "compute".to_owned(),
            metric: fresh.metric.to_owned(),
            labels,
            devices: devices.to_vec(),
            class: Class::Gate,
            unit: fresh.unit,
            better: fresh.better,
            limit: None,
            measured: Some(Estimate {
                median,
                uncertainty: median * 0.0041,
                p05: median * 0.996,
                p95: median * 1.004,
                blocks: 8,
                effective_blocks: 8.0,
                drift: 0.0007,
            }),
            shares: Vec::new(),
            k: 3.5,
            detectable: Some(0.012),
            status: Status::Pass,
            reason: None,
        });
        self.assessment.requirements.last_mut().expect("just pushed")
    }

    fn correct(&mut self, benchmark: &str, params: &Params, devices: &[DeviceId]) {
        let fresh =
            Fresh { benchmark, metric: "verified", unit: Unit::Count, better: Better::Higher, value: 1.0, labels: &[] };
        let requirement = self.require("correct", &fresh, params, devices);
        requirement.measured = None;
        requirement.detectable = None;
        requirement.limit = Some(limit(1.0, BasisKind::Correctness, "suites/quick.toml line 30"));
    }

    fn sensors(&mut self, source: &str, index: usize) {
        let readings =
            [("clock", Unit::Hertz, 1.755e9), ("power", Unit::Watt, 640.0), ("temperature", Unit::Celsius, 62.0)];
        for (sensor, unit, value) in readings {
            let points = (0..185).map(|i| TelemetryPoint {
                at: Seconds(f64::from(i) * 0.5),
                value: value * wobble(i as usize + index * 13, 0.01),
            });
            self.record.telemetry.series.push(TelemetrySeries {
                source: source.to_owned(),
                sensor: sensor.to_owned(),
                unit,
                counter: false,
                points: points.collect(),
            });
        }
    }
}

fn rate(value: f64) -> Quantity {
    Quantity { value, unit: Unit::BytePerSecond }
}

fn unsteady() -> Message {
    Message::new("reason.unsteady").with("uncertainty", Argument::Ratio(0.023)).with("cap", Argument::Ratio(0.01))
}

fn limit(value: f64, kind: BasisKind, source: &str) -> Limit {
    Limit { value, basis: Basis { kind, source: source.to_owned() } }
}

fn fresh<'a>(benchmark: &'a str, metric: &'a str, unit: Unit, value: f64) -> Fresh<'a> {
    let better = if unit == Unit::Second { Better::Lower } else { Better::Higher };
    Fresh { benchmark, metric, unit, better, value, labels: &[] }
}

/// Rates by type as an H100 has them, and a slower vector type.
const TYPES: [(&str, Unit, f64); 5] = [
    ("fp64", Unit::FlopPerSecond, 57.6e12),
    ("fp32", Unit::FlopPerSecond, 51.3e12),
    ("fp16", Unit::FlopPerSecond, 689e12),
    ("bf16", Unit::FlopPerSecond, 702e12),
    ("int8", Unit::OpPerSecond, 1410e12),
];

fn measure_all(draft: &mut Draft, devices: &[DeviceId], rate: f64, speed: impl Fn(&DeviceId, &str) -> f64) {
    for device in devices {
        let on = std::slice::from_ref(device);
        for (name, unit, value) in TYPES {
            let params = Params::default().with("n", Value::Int(8192)).with("type", word(name));
            let value = value * rate * speed(device, "compute");
            draft.measure(&fresh("gemm", "gemm.throughput", unit, value), &params, on);
            draft.correct("gemm", &params, on);
            let params = Params::default().with("type", word(name));
            draft.measure(&fresh("fma_peak", "fma_peak.throughput", unit, value * 1.1), &params, on);
        }
        for (op, share) in
            [("read", 1.0), ("write", 0.93), ("copy", 0.91), ("scale", 0.91), ("add", 0.92), ("triad", 0.92)]
        {
            let params = Params::default().with("op", word(op));
            let value = 3.02e12 * share * rate * speed(device, "memory");
            draft.measure(&fresh("memory_bandwidth", "memory_bandwidth.rate", Unit::BytePerSecond, value), &params, on);
        }
        for power in 14..=32u32 {
            let size = 1u64 << power;
            let params = Params::default().with("op", word("read")).with("size", Value::Size(size));
            let cached = if power < 26 { 2.6 } else { 1.0 };
            let value = 3.02e12 * cached * rate * speed(device, "memory") * (1.0 - (-(size as f64) / 3e6).exp());
            draft.measure(&fresh("memory_bandwidth", "memory_bandwidth.rate", Unit::BytePerSecond, value), &params, on);
            let params = Params::default().with("size", Value::Size(size));
            let time = if power < 18 {
                28e-9
            } else if power < 26 {
                190e-9
            } else {
                560e-9
            };
            draft.measure(&fresh("memory_latency", "memory_latency.time", Unit::Second, time), &params, on);
        }
        for direction in ["h2d", "d2h", "both"] {
            for memory in ["pinned", "pageable"] {
                let params = Params::default().with("direction", word(direction)).with("memory", word(memory));
                let value = if memory == "pinned" { 54.8e9 } else { 11.2e9 } * speed(device, "link");
                draft.measure(&fresh("host_link", "host_link.rate", Unit::BytePerSecond, value), &params, on);
            }
        }
        draft.measure(&fresh("launch_latency", "launch_latency.time", Unit::Second, 3.1e-6), &Params::default(), on);
    }
    for victim in ["compute", "memory", "cache", "transfer"] {
        for aggressor in ["compute", "memory", "cache"] {
            let params = Params::default().with("victim", word(victim)).with("aggressor", word(aggressor));
            let value = if (victim, aggressor) == ("memory", "memory") { 1.62 } else { 1.02 };
            let slowdown = fresh("interference", "interference.slowdown", Unit::Ratio, value);
            draft.measure(&Fresh { better: Better::Lower, ..slowdown }, &params, &devices[..1]);
            for (phase, rate) in [("alone", 3.0e12), ("loaded", 3.0e12 / value)] {
                let victim = fresh("interference", "interference.victim", Unit::BytePerSecond, rate);
                draft.measure(&Fresh { labels: &[("phase", phase)], ..victim }, &params, &devices[..1]);
            }
        }
    }
}

fn measure_storage(draft: &mut Draft, host: &DeviceId) {
    let on = std::slice::from_ref(host);
    for op in ["read", "write"] {
        let params = Params::default().with("op", word(op));
        draft.measure(&fresh("storage_sequential", "storage_sequential.rate", Unit::BytePerSecond, 6.1e9), &params, on);
        for depth in [1, 32] {
            let params = Params::default().with("op", word(op)).with("depth", Value::Int(depth));
            let rate = fresh("storage_random", "storage_random.rate", Unit::IoPerSecond, 21e3 * depth as f64 * 0.9);
            draft.measure(&rate, &params, on);
            for (label, time) in
                [("p50", 80e-6), ("p95", 105e-6), ("p99", 140e-6), ("p99.9", 900e-6), ("p99.99", 4.1e-3)]
            {
                let labels = [("percentile", label)];
                let latency = Fresh {
                    labels: &labels,
                    ..fresh(
                        "storage_random",
                        "storage_random.latency",
                        Unit::Second,
                        time * (1.0 + depth as f64 / 16.0),
                    )
                };
                draft.measure(&latency, &params, on);
            }
        }
    }
}

/// The host of a small machine: right results, nothing to compare with.
pub fn host() -> Draft {
    let mut cpu = device(BackendId::Host, 0, DeviceKind::Cpu, "Intel(R) Xeon(R) Platinum 8481C");
    cpu.units = Some(2);
    cpu.attributes = BTreeMap::from([("instructions".to_owned(), "avx2 avx512f avx512-fp16 vnni".to_owned())]);
    let id = cpu.id.clone();
    let mut draft = draft("01J9ZHOST0000000000000000A", vec![cpu], false);
    measure_all(&mut draft, std::slice::from_ref(&id), 0.004, |_, _| 1.0);
    measure_storage(&mut draft, &id);
    draft.sensors("machine", 0);
    let energy =
        (0..185).map(|i| TelemetryPoint { at: Seconds(f64::from(i) * 0.5), value: 1e6 + 640.0 * f64::from(i) });
    draft.record.telemetry.series.push(TelemetrySeries {
        source: "machine".to_owned(),
        sensor: "energy".to_owned(),
        unit: Unit::Watt,
        counter: true,
        points: energy.collect(),
    });
    draft.record.telemetry.states =
        BTreeMap::from([("machine.throttle".to_owned(), Observed::NotObservable("no such file".to_owned()))]);
    let peak = fresh("gemm", "gemm.throughput", Unit::FlopPerSecond, 205e9);
    let params = Params::default().with("n", Value::Int(8192)).with("type", word("fp32"));
    let requirement = draft.require("share", &peak, &params, &[id]);
    requirement.class = Class::Graded;
    requirement.status = Status::NotApplicable;
    requirement.reason = Some(Message::new("reason.no_limit"));
    requirement.shares = vec![Share { of: Message::new("share.fma_peak"), value: 225e9, ratio: 0.911 }];
    for result in &mut draft.record.results {
        if let (true, Outcome::Measured(m)) = (result.id.0.starts_with("storage_s"), &mut result.outcome) {
            m.ceiling = Some(Ceiling { value: 7.9e9, derivation: "PCIe 4.0 × 4".to_owned() });
        }
    }
    draft.assessment.not_compared = 61;
    draft
}

/// Eight simulated GPUs: one with slow memory, one power-capped, a wrong result, a lost case.
pub fn eight_gpus() -> Draft {
    let gpu = |index| {
        let mut gpu = device(BackendId::Sim, index, DeviceKind::Gpu, "NVIDIA H100 80GB HBM3");
        gpu.memory = Bytes(85.0e9);
        gpu.uuid = Some(format!("GPU-{index:08x}-ec9d-0b8e-f1a2-3c4d5e6f7a8b"));
        gpu.pci = Some(PciIdentity {
            address: format!("0000:{:02x}:00.0", 0x19 + index * 8),
            vendor: 0x10de,
            device: 0x2330,
            subsystem: Some((0x10de, 0x16c1)),
        });
        gpu.spec = Some("h100-sxm5-80gb".to_owned());
        gpu.scale = WorkScale { edge: 64, bytes: 4096, iterations: 1024 };
        gpu
    };
    let devices: Vec<DeviceInfo> = (0..8).map(gpu).collect();
    let ids: Vec<DeviceId> = devices.iter().map(|d| d.id.clone()).collect();
    let mut draft = draft("01J9ZSIM80000000000000000B", devices, true);
    draft.record.run.arguments.extend(["--simulate".to_owned(), "8xh100-sxm5-80gb:slow memory".to_owned()]);
    let speed = |id: &DeviceId, what: &str| match (id.index, what) {
        (5, "memory") => 0.7,
        (3, "compute") => 0.81,
        (index, _) => wobble(index as usize, 0.004),
    };
    measure_all(&mut draft, &ids, 1.0, speed);
    measure_storage(&mut draft, &ids[0]);
    for (i, a) in ids.iter().enumerate() {
        draft.sensors(&a.to_string(), i);
        for b in &ids[i + 1..] {
            let value =
                371e9 * if a.index == 4 && b.index == 5 { 0.55 } else { wobble(i * 8 + b.index as usize, 0.004) };
            let peer = fresh("peer_link", "peer_link.rate", Unit::BytePerSecond, value);
            draft.measure(&peer, &Params::default(), &[a.clone(), b.clone()]);
        }
    }
    gpu_requirements(&mut draft, &ids, &speed);
    wrong_and_lost(&mut draft, &ids);
    gpu_finding(&mut draft, &ids);
    draft.assessment.verdict = Verdict::NotAccepted;
    draft.assessment.headline = Message::new("judge.headline.not_accepted_short")
        .with("count", 7u64)
        .with("gates", 89u64)
        .with("what", "memory_bandwidth.rate op=read")
        .with("where", "sim:5")
        .with("short", Argument::Ratio(0.267));
    draft.assessment.validity_reasons = Vec::new();
    draft.assessment.not_compared = 12;
    draft
}

fn gpu_requirements(draft: &mut Draft, ids: &[DeviceId], speed: &dyn Fn(&DeviceId, &str) -> f64) {
    for id in ids {
        let on = std::slice::from_ref(id);
        for (name, unit, value) in TYPES {
            let params = Params::default().with("n", Value::Int(8192)).with("type", word(name));
            let speed = speed(id, "compute");
            let r = draft.require("gemm-band", &fresh("gemm", "gemm.throughput", unit, value * speed), &params, on);
            r.limit = Some(limit(value * 0.92, BasisKind::Band, "specs/nvidia/hopper.toml line 120"));
            let of =
                Message::new("share.figure").with("figure", format!("{name}_tensor")).with("model", "h100-sxm5-80gb");
            r.shares = vec![Share { of, value: value / 0.7, ratio: 0.7 * speed }];
            if speed < 0.9 {
                r.status = Status::Fail;
            }
        }
        let params = Params::default().with("op", word("read"));
        let value = 3.02e12 * speed(id, "memory");
        let read = fresh("memory_bandwidth", "memory_bandwidth.rate", Unit::BytePerSecond, value);
        let r = draft.require("memory-guarantee", &read, &params, on);
        r.limit = Some(limit(2.88e12, BasisKind::Guarantee, "offer.toml line 14"));
        if id.index == 5 {
            r.status = Status::Fail;
        }
        let r = draft.require("memory-peers", &read, &params, on);
        r.class = Class::Graded;
        r.limit = Some(limit(3.0e12, BasisKind::Peers, "median of 7 peers"));
        match id.index {
            5 => r.status = Status::Fail,
            6 => (r.status, r.reason) = (Status::ConditionalFail, Some(Message::new("reason.near_below"))),
            2 => (r.status, r.reason) = (Status::ConditionalPass, Some(Message::new("reason.near_above"))),
            1 => {
                r.status = Status::Inconclusive;
                r.reason = Some(unsteady());
            }
            _ => {}
        }
        let time = fresh("memory_latency", "memory_latency.time", Unit::Second, 560e-9);
        let params = Params::default().with("size", Value::Size(1 << 32));
        let r = draft.require("latency-band", &time, &params, on);
        r.class = Class::Graded;
        r.limit = Some(limit(610e-9, BasisKind::ClassBand, "class hopper sxm5 700 W"));
    }
}

fn wrong_and_lost(draft: &mut Draft, ids: &[DeviceId]) {
    let wrong = Params::default().with("n", Value::Int(8192)).with("type", word("fp64"));
    let id = CaseId::new("gemm", &wrong, &ids[7..]);
    let result = draft.record.results.iter_mut().find(|r| r.id == id).expect("measured above");
    if let Outcome::Measured(m) = &mut result.outcome {
        m.verification.verified = Verified::Wrong { detail: "element (3, 17) is off by 2.1e3 bounds".to_owned() };
    }
    let requirement = draft.assessment.requirements.iter_mut().find(|r| r.id == format!("correct/{id}"));
    requirement.expect("made above").status = Status::Fail;
    let lost = Params::default().with("type", word("fp8"));
    draft.fail("gemm", &lost, &ids[2..3], CaseErrorKind::Hang, "no answer for 20 s while preparing");
    let fresh = fresh("gemm", "gemm.throughput", Unit::FlopPerSecond, 0.0);
    let r = draft.require("gemm-band", &fresh, &lost, &ids[2..3]);
    r.measured = None;
    r.status = Status::NotTested;
    r.reason = Some(Message::new("reason.hang").with("text", "no answer for 20 s while preparing"));
    draft.record.plan.not_planned.push(NotPlanned {
        id: CaseId("gemm[type=fp4]@sim:0".to_owned()),
        benchmark: "gemm".to_owned(),
        params: Params::default(),
        devices: ids[..1].to_vec(),
        unsupported: true,
        reason: "the device has no fp4 unit".to_owned(),
    });
    draft.record.notices = vec![
        Notice::Abandoned { cases: vec![CaseId("gemm[type=fp8]@sim:2".to_owned())], doing: "prepare".to_owned() },
        Notice::ForeignProcess { device: ids[0].clone(), name: "python3".to_owned(), share: 0.07 },
        Notice::BudgetSpent { cases: Vec::new() },
        Notice::Resumed { rounds: 2 },
        Notice::NoTelemetry { reason: "started late".to_owned() },
        Notice::DeviceChanged { device: ids[0].clone(), before: "P0".to_owned(), after: "P2".to_owned() },
    ];
    draft.record.inventory.disagreements.push(Disagreement {
        device: ids[0].clone(),
        about: "memory".to_owned(),
        first: ("runtime".to_owned(), "79.1 GiB".to_owned()),
        second: ("sysfs".to_owned(), "80.0 GiB".to_owned()),
    });
    draft.record.run.neutralised_environment = BTreeMap::from([("NVIDIA_TF32_OVERRIDE".to_owned(), "1".to_owned())]);
    let not = &mut draft.record.telemetry.not_observable;
    not.insert("sim:0.throttle".to_owned(), "the simulated device has no such counter".to_owned());
    draft.record.offer = Some(source("offer.toml", "model = \"H100\""));
}

fn gpu_finding(draft: &mut Draft, ids: &[DeviceId]) {
    draft.assessment.findings.push(Finding {
        code: "GA-MEM-01".to_owned(),
        devices: vec![ids[5].clone()],
        observed: Message::new("finding.slow_memory.observed")
            .with("metric", "memory_bandwidth.rate op=read")
            .with("measured", rate(2.11e12))
            .with("limit", rate(2.99e12))
            .with("peers", 7u64)
            .with("difference", Argument::Ratio(0.3)),
        why: Message::new("finding.slow_memory.why"),
        evidence: vec![Evidence {
            pointer: "/results/12/outcome/measured/series/0".to_owned(),
            message: Message::new("finding.evidence.case").with("name", "memory_bandwidth[op=read]@sim:5"),
        }],
        ruled_out: vec![
            Message::new("finding.ruled_out.clock_held").with("share", Argument::Ratio(0.99)),
            Message::new("finding.ruled_out.foreign"),
        ],
        ask: Message::new("finding.slow_memory.ask"),
        fix_by: FixBy::Provider,
        effect: Some(0.3),
        requirements: vec!["memory-guarantee/x".to_owned()],
    });
    draft.assessment.not_tested.push(NotTested { id: "sustained".to_owned(), reason: Message::new("reason.no_case") });
}

/// A run that found and measured nothing, and whose end is unknown.
pub fn nothing() -> Draft {
    let mut draft = draft("01J9ZNONE0000000000000000C", Vec::new(), false);
    draft.record.tool.binary_sha256 = None;
    draft.record.run.ended_at = None;
    draft.record.run.end = RunEnd::Died;
    draft.record.inventory = Inventory::default();
    draft.record.ledger = Ledger::default();
    draft.assessment.verdict = Verdict::Inconclusive;
    draft.assessment.validity = Validity::Unchecked;
    draft.assessment.validity_reasons = vec![Message::new("judge.unchecked.clock")];
    draft
}

/// What a hostile machine would call its parts.
pub const HOSTILE: &str = "</script></style></title>--><svg onload=alert(1)><script>document.title='owned';alert(1)\
    </script><img src=x onerror=\"document.title='owned'\">\u{202e}gnp\u{2066}\u{1b}[2J\u{1b}]0;owned\u{7}\u{0}{{ 7*7 }}{% raw %}'\"&";

/// Every text of the record and the assessment is [`HOSTILE`], some of it ten thousand characters long.
pub fn hostile() -> Draft {
    let mut draft = eight_gpus();
    let text = || HOSTILE.to_owned();
    let long = HOSTILE.repeat(10_000 / HOSTILE.len() + 1);
    let record = &mut draft.record;
    record.id = text();
    record.tool.version = text();
    record.suite.name = text();
    record.run.started_at = long.clone();
    record.run.arguments = vec![text(), long.clone()];
    record.run.neutralised_environment.insert(text(), text());
    let host = &mut record.inventory.host;
    for field in [&mut host.hostname, &mut host.cpu, &mut host.kernel, &mut host.os] {
        *field = long.clone();
    }
    host.cloud = Some(text());
    host.container = Some(text());
    host.attributes.insert(text(), long.clone());
    for device in &mut record.inventory.devices {
        device.name = text();
        device.uuid = Some(text());
        device.driver = Some(long.clone());
        device.attributes.insert(text(), text());
    }
    for disagreement in &mut record.inventory.disagreements {
        disagreement.about = text();
        disagreement.first = (text(), text());
    }
    for case in &mut record.plan.cases {
        if case.benchmark == "launch_latency" {
            case.benchmark = text();
        }
    }
    for result in &mut record.results {
        if let Outcome::Measured(m) = &mut result.outcome {
            m.engine.name = text();
            m.verification.method = text();
            if result.id.0.starts_with("launch") {
                m.series[0].metric = MetricId(text());
                m.series[0].labels.insert(text(), text());
                m.series[0].labels.insert("percentile".to_owned(), text());
                m.series[0].blocks[0].value = f64::NAN;
                m.series[0].blocks[1].value = f64::INFINITY;
            }
        }
    }
    for series in record.telemetry.series.iter_mut().take(1) {
        series.source = text();
        series.sensor = text();
        series.points[0].value = f64::NAN;
        series.points[1].at = Seconds(f64::INFINITY);
    }
    record.notices.push(Notice::NoTelemetry { reason: long.clone() });
    let assessment = &mut draft.assessment;
    assessment.headline = Message::new(HOSTILE).with(HOSTILE, long.as_str());
    assessment.judged_by = text();
    for (i, requirement) in assessment.requirements.iter_mut().enumerate() {
        if i % 40 == 0 {
            requirement.metric = text();
            requirement.labels.insert(text(), long.clone());
            requirement.reason = Some(Message::new("reason.hang").with("text", long.as_str()));
            requirement.limit = Some(limit(f64::NAN, BasisKind::Band, HOSTILE));
            requirement.measured = Some(Estimate {
                median: f64::NAN,
                uncertainty: f64::INFINITY,
                p05: 0.0,
                p95: -1.0,
                blocks: 0,
                effective_blocks: f64::NAN,
                drift: f64::NAN,
            });
        }
    }
    for finding in &mut assessment.findings {
        finding.code = text();
        finding.evidence[0].pointer = long.clone();
        finding.observed = Message::new("finding.crash.observed").with("case", HOSTILE).with("text", HOSTILE);
    }
    draft
}
