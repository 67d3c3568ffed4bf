//! Speed of the statistics: what the supervisor calls after every block and the judge once per series.
#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use gpu_assay::stats::{Rng, block_bootstrap, drift, simulate, uncertainty};
use std::hint::black_box;

fn blocks(n: usize) -> Vec<f64> {
    let mut rng = Rng::new(1);
    (0..n).map(|_| 100.0 + rng.normal()).collect()
}

fn stats(c: &mut Criterion) {
    let (few, many) = (blocks(12), blocks(200));
    c.bench_function("uncertainty of 12 blocks", |b| b.iter(|| uncertainty(black_box(&few))));
    c.bench_function("uncertainty of 200 blocks", |b| b.iter(|| uncertainty(black_box(&many))));
    c.bench_function("drift of 200 blocks", |b| b.iter(|| drift(black_box(&many))));
    c.bench_function("bootstrap of p95 over 200 blocks, 1000 resamples", |b| {
        b.iter(|| block_bootstrap(black_box(&many), 0.95, 0.95, 6, 1000, 1));
    });
    let settings = simulate::Settings { runs: 1000, ..simulate::Settings::default() };
    c.bench_function("operating characteristic, 1000 runs per setting", |b| {
        b.iter(|| simulate::operating_characteristic(black_box(&settings)));
    });
}

criterion_group!(benches, stats);
criterion_main!(benches);
