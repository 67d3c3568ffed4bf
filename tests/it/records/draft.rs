//! A record and its assessment while they are being written down.

use std::collections::BTreeMap;

use gpu_assay::judge::{
    ASSESSMENT_FORMAT, Argument, Assessment, Basis, BasisKind, Class, Estimate, Limit, Message, Requirement, Status,
    Validity, Verdict,
};
use gpu_assay::record::*;
use gpu_assay::unit::{Bytes, Hertz, Quantity, Seconds, Unit};

/// A small deterministic spread around 1, the same on every machine.
pub fn wobble(seed: usize, size: f64) -> f64 {
    1.0 + size * ((seed * 7919 % 101) as f64 / 50.0 - 1.0)
}

pub fn word(text: &str) -> Value {
    Value::Word(text.to_owned())
}

pub fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), sha256: "5f".repeat(32), text: text.to_owned() }
}

/// A run being written down.
pub struct Draft {
    /// What happened.
    pub record: Record,
    /// What it means.
    pub assessment: Assessment,
}

pub fn draft(id: &str, devices: Vec<DeviceInfo>, simulated: bool) -> Draft {
    let selected = devices.iter().map(|d| d.id.clone()).collect();
    let host = Host {
        disks: Observed::NotObservable("not looked for".to_owned()),
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
        pci_gpus: Observed::Value(Vec::new()),
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
        proposed_instance: None,
        format: ASSESSMENT_FORMAT,
        record: id.to_owned(),
        judged_by: "gpu-assay 0.1.0".to_owned(),
        verdict: Verdict::Accepted,
        headline: Message::new("judge.headline.accepted").with("gates", 5u64),
        validity: Validity::Valid,
        validity_reasons: Vec::new(),
        requirements: Vec::new(),
        findings: Vec::new(),
        money: None,
        normal: Vec::new(),
        claims: Vec::new(),
        not_tested: Vec::new(),
        not_compared: 0,
        simulated,
    };
    Draft { record, assessment }
}

pub fn device(backend: BackendId, index: u32, kind: DeviceKind, name: &str) -> DeviceInfo {
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
pub struct Fresh<'a> {
    pub benchmark: &'a str,
    pub metric: &'a str,
    pub unit: Unit,
    pub better: Better,
    pub value: f64,
    pub labels: &'a [(&'a str, &'a str)],
}

impl Draft {
    /// Adds blocks of a series to the case of `params` and `devices`, which is made where it is new.
    pub fn measure(&mut self, fresh: &Fresh, params: &Params, devices: &[DeviceId]) -> CaseId {
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

    pub fn plan(&mut self, id: &CaseId, benchmark: &str, params: &Params, devices: &[DeviceId]) {
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

    pub fn fail(&mut self, benchmark: &str, params: &Params, devices: &[DeviceId], kind: CaseErrorKind, message: &str) {
        let id = CaseId::new(benchmark, params, devices);
        self.plan(&id, benchmark, params, devices);
        let error = CaseError { kind, message: message.to_owned() };
        self.record.results.push(CaseResult { id, outcome: Outcome::Failed { error, partial: None } });
    }

    /// A requirement about the last series of `case`.
    pub fn require(&mut self, demand: &str, fresh: &Fresh, params: &Params, devices: &[DeviceId]) -> &mut Requirement {
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
            parts: None,
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

    pub fn correct(&mut self, benchmark: &str, params: &Params, devices: &[DeviceId]) {
        let fresh =
            Fresh { benchmark, metric: "verified", unit: Unit::Count, better: Better::Higher, value: 1.0, labels: &[] };
        let requirement = self.require("correct", &fresh, params, devices);
        requirement.measured = None;
        requirement.detectable = None;
        requirement.limit = Some(limit(1.0, BasisKind::Correctness, "suites/quick.toml line 30"));
    }

    pub fn sensors(&mut self, source: &str, index: usize) {
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

pub fn rate(value: f64) -> Quantity {
    Quantity { value, unit: Unit::BytePerSecond }
}

pub fn unsteady() -> Message {
    Message::new("reason.unsteady").with("uncertainty", Argument::Ratio(0.023)).with("cap", Argument::Ratio(0.01))
}

pub fn limit(value: f64, kind: BasisKind, source: &str) -> Limit {
    Limit { value, basis: Basis { kind, source: source.to_owned() } }
}

pub fn fresh<'a>(benchmark: &'a str, metric: &'a str, unit: Unit, value: f64) -> Fresh<'a> {
    let better = if unit == Unit::Second { Better::Lower } else { Better::Higher };
    Fresh { benchmark, metric, unit, better, value, labels: &[] }
}
