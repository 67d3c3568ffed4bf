//! Rendering: the HTML of an eight-GPU record is to take 100 ms at most, templates parsed once included.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

use criterion::{Criterion, criterion_group, criterion_main};
use gpu_assay::report::{Lang, html, terminal};

#[allow(dead_code, unused_imports)]
#[path = "../tests/it/records/mod.rs"]
mod records;

fn rendering(c: &mut Criterion) {
    let draft = records::eight_gpus();
    let page = || html(&draft.record, &draft.assessment, Lang::En, records::METHODS).unwrap();
    let start = std::time::Instant::now();
    let bytes = page().len();
    eprintln!("first page, templates parsed: {:.1} ms, {bytes} bytes", start.elapsed().as_secs_f64() * 1e3);
    c.bench_function("report/html/8 GPUs", |b| b.iter(page));
    c.bench_function("report/terminal/8 GPUs", |b| {
        b.iter(|| terminal(&draft.record, &draft.assessment, Lang::En, true, 100));
    });
}

criterion_group!(benches, rendering);
criterion_main!(benches);
