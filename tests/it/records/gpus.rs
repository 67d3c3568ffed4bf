//! Eight simulated GPUs and what can be wrong with them.

use std::collections::BTreeMap;

use gpu_assay::judge::claim::{CheckedClaim, CheckedStatement, Class as ClaimClass};
use gpu_assay::judge::money::{Money, PricedRate, Shortfall, StatedPrice};
use gpu_assay::judge::{
    Argument, BasisKind, Class, Evidence, Finding, FixBy, Message, NotTested, Share, Status, Verdict,
};
use gpu_assay::record::*;
use gpu_assay::unit::{Bytes, Quantity, Unit};

use super::draft::{Draft, device, draft, fresh, limit, rate, source, unsteady, wobble, word};
use super::measured::{TYPES, measure_all, measure_storage};

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
    let statement = |class, message| CheckedStatement {
        value: Quantity { value: 1979e12, unit: Unit::FlopPerSecond },
        class,
        message,
    };
    let sparse = Message::new("claim.sparsity")
        .with("value", Quantity { value: 1979e12, unit: Unit::FlopPerSecond })
        .with("what", "FP16 tensor, FP32 accumulate")
        .with("figure", Quantity { value: 989.4e12, unit: Unit::FlopPerSecond });
    draft.assessment.money = Some(Money {
        prices: vec![
            StatedPrice {
                market: Some("on demand".to_owned()),
                per_hour: 19.92,
                currency: "USD".to_owned(),
                source: Some("price list of 1 October".to_owned()),
            },
            StatedPrice { market: None, per_hour: 9.5, currency: "USD".to_owned(), source: None },
        ],
        rates: vec![PricedRate {
            metric: "gemm.throughput".to_owned(),
            what: "fp16 8192".to_owned(),
            devices: 8,
            delivered: Quantity { value: 5.2e15, unit: Unit::FlopPerSecond },
            per: Quantity { value: 1e15, unit: Unit::FlopPerSecond },
            prices: vec![3.8308, 1.8269],
            energy: Some(1.05e-12),
        }],
        shortfall: Some(Shortfall {
            requirement: "memory-guarantee/x".to_owned(),
            share: 0.7,
            equivalent_per_hour: vec![13.944, 6.65],
            per_month: vec![4362.48, 2080.5],
        }),
    });
    draft.assessment.claims = vec![
        CheckedClaim {
            text: "1979 TFLOPS FP16".to_owned(),
            line: 17,
            class: ClaimClass::TrueWithSparsity,
            statements: vec![statement(ClaimClass::TrueWithSparsity, sparse)],
        },
        CheckedClaim {
            text: "the <b>best</b> GPU".to_owned(),
            line: 20,
            class: ClaimClass::Unknown,
            statements: vec![statement(ClaimClass::Unknown, Message::new("claim.elsewhere"))],
        },
    ];
    draft.assessment.not_tested.push(NotTested { id: "sustained".to_owned(), reason: Message::new("reason.no_case") });
}
