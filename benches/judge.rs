//! Speed of judging: eight GPUs with twelve cases each, as the quick suite has them.
#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use gpu_assay::suite::{LimitRule, Subject};
use gpu_assay::{judge, offer, record, spec, suite, unit};
use std::hint::black_box;

#[allow(dead_code)]
#[path = "../src/judge/testing.rs"]
mod testing;

fn judging(c: &mut Criterion) {
    let mut record = testing::node(8);
    for device in record.inventory.selected.clone() {
        for n in 0..10 {
            let params = testing::gemm_params().with("n", record::Value::Int(1024 + n));
            let values = testing::quiet(700e12);
            let m = testing::measurement("gemm.throughput", unit::Unit::FlopPerSecond, record::Better::Higher, &values);
            testing::add(&mut record, "gemm", params, &device, record::Outcome::Measured(m));
        }
    }
    let (mut suite, offer) = (testing::suite(), testing::offer(8));
    let metric = |name: &str| Subject::Metric(name.to_owned());
    for name in ["gemm.throughput", "memory_bandwidth.rate"] {
        suite.demands.push(testing::demand("band", metric(name), LimitRule::Band, true));
    }
    let count = judge::judge(&record, &suite, Some(&offer), spec::table()).requirements.len();
    c.bench_function(&format!("judge {count} requirements: 96 cases on 8 GPUs"), |b| {
        b.iter(|| judge::judge(black_box(&record), &suite, Some(&offer), spec::table()));
    });
}

criterion_group!(benches, judging);
criterion_main!(benches);
