//! Planning the built-in suites on eight GPUs: it happens before every run and on every `--dry-run`.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gpu_assay::plan::{PlanOptions, plan};
use gpu_assay::record::{BackendId, DataType, DeviceId, DeviceInfo, DeviceKind, Inventory, WorkScale};
use gpu_assay::unit::{Bytes, Hertz};
use gpu_assay::{benchmark, suite};

fn device(id: DeviceId, kind: DeviceKind, memory: Bytes) -> DeviceInfo {
    DeviceInfo {
        id,
        kind,
        name: "device".to_owned(),
        vendor: String::new(),
        uuid: None,
        pci: None,
        memory,
        last_level_cache: Some(Bytes::mib(50)),
        units: Some(132),
        clock_max: Some(Hertz(1.98e9)),
        driver: None,
        api: None,
        gemm_types: DataType::ALL.to_vec(),
        fma_types: DataType::ALL.to_vec(),
        spec: None,
        numa_node: None,
        attributes: BTreeMap::new(),
        scale: WorkScale::ONE,
        simulated: false,
    }
}

fn eight_gpus() -> Inventory {
    let gpu = |i| device(DeviceId::new(BackendId::Cuda, i), DeviceKind::Gpu, Bytes::gib(80));
    let mut devices: Vec<DeviceInfo> = (0..8).map(gpu).collect();
    let selected = devices.iter().map(|d| d.id.clone()).collect();
    devices.push(device(DeviceId::new(BackendId::Host, 0), DeviceKind::Cpu, Bytes::gib(2048)));
    Inventory { devices, selected, ..Inventory::default() }
}

fn planning(c: &mut Criterion) {
    let inventory = eight_gpus();
    let vocabulary = benchmark::vocabulary(Vec::new());
    for (name, text) in suite::BUILTIN {
        c.bench_function(&format!("parse {name}"), |b| b.iter(|| suite::parse(name, black_box(text), &vocabulary)));
        let suite = suite::parse(name, text, &vocabulary).expect("built-in suites are read by a test");
        c.bench_function(&format!("plan {name} on 8 GPUs"), |b| {
            b.iter(|| plan(black_box(&suite), &inventory, &PlanOptions::default()))
        });
    }
}

criterion_group!(benches, planning);
criterion_main!(benches);
