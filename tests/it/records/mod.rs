//! Records with their assessments, written by hand for the report: what a run and its judgement look like, without
//! measuring or judging anything. Shared with `benches/report.rs`.

mod draft;
mod gpus;
mod hostile;
mod measured;

use std::collections::BTreeMap;

use gpu_assay::judge::{Class, Message, Share, Status, Validity, Verdict};
use gpu_assay::record::*;
use gpu_assay::report::MethodText;
use gpu_assay::unit::{Seconds, Unit};

pub use draft::Draft;
use draft::{device, draft, fresh, word};
pub use gpus::eight_gpus;
pub use hostile::hostile;
use measured::{measure_all, measure_storage};

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
