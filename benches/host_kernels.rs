//! Host kernels through the public traits: products, arithmetic chains and memory kernels.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gpu_assay::backend::host::Host;
use gpu_assay::backend::{Arg, Backend, Device, GemmProblem, Launch, Place};
use gpu_assay::kernel::KernelId;
use gpu_assay::record::{BackendId, DataType, DeviceId};
use gpu_assay::unit::Bytes;

fn device() -> Box<dyn Device> {
    Host.open(&DeviceId::new(BackendId::Host, 0)).expect("the host is always there")
}

fn products(criterion: &mut Criterion) {
    let device = device();
    let mut group = criterion.benchmark_group("gemm");
    group.sample_size(10);
    for data_type in [DataType::Fp64, DataType::Fp32, DataType::Fp16, DataType::Int8] {
        for edge in [256, 1024] {
            let problem = GemmProblem { data_type, m: edge, n: edge, k: edge };
            let plan = device.gemm(&problem).expect("a host type");
            let buffer = |size| device.alloc(Place::Device, Bytes::from(edge * edge * size)).expect("memory");
            let (a, b, c) = (buffer(data_type.size()), buffer(data_type.size()), buffer(plan.size_c));
            let mut stream = device.stream().expect("a stream");
            group.throughput(Throughput::Elements(problem.operations() as u64));
            group.bench_function(format!("{data_type}/{edge}"), |bencher| {
                bencher.iter(|| stream.gemm(plan.raw, a, b, black_box(c)).expect("a planned product"));
            });
            [a, b, c].into_iter().for_each(|buffer| device.free(buffer));
        }
    }
    group.finish();
}

fn kernels(criterion: &mut Criterion) {
    let device = device();
    let n: u64 = 1 << 18;
    let buffer = || Arg::Buffer(device.alloc(Place::Device, Bytes(n as f64 * 8.0)).expect("memory"));
    let (a, b, c) = (buffer(), buffer(), buffer());
    let cases: [(KernelId, u64, Vec<Arg>); 8] = [
        (KernelId::Empty, 1, vec![]),
        (KernelId::Read, 4096, vec![a, c, Arg::U64(n)]),
        (KernelId::Write, n, vec![c, Arg::F32(1.0), Arg::U64(n)]),
        (KernelId::Copy, n, vec![a, c, Arg::U64(n)]),
        (KernelId::Triad, n, vec![a, b, c, Arg::F32(3.0), Arg::U64(n)]),
        (KernelId::FmaFp64, 1 << 14, vec![c, Arg::F64(0.5), Arg::F64(1.0), Arg::U32(256)]),
        (KernelId::FmaFp32, 1 << 14, vec![c, Arg::F32(0.5), Arg::F32(1.0), Arg::U32(256)]),
        (KernelId::DotInt8, 1 << 14, vec![c, Arg::I32(0x0102_0304), Arg::U32(256)]),
    ];
    let mut group = criterion.benchmark_group("kernel");
    for (id, lanes, args) in cases {
        let kernel = device.load(id).expect("every host has it");
        let mut stream = device.stream().expect("a stream");
        group.bench_function(id.entry(), |bencher| {
            bencher.iter(|| stream.launch(Launch { kernel, lanes, args: &args }).expect("valid arguments"));
        });
    }
    group.finish();
}

criterion_group!(host, products, kernels);
criterion_main!(host);
