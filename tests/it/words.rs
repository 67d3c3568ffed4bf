//! The words of the benchmarks as parser tests see them: fixed, so that the messages in the snapshots do not
//! change when a benchmark gains a word.

use gpu_assay::record::{Better, MetricId, Vocabulary, VocabularyEntry};
use gpu_assay::unit::Unit;

const TYPES: &[&str] = &["fp64", "fp32", "fp16", "int8"];
const KINDS: &[&str] = &["compute", "memory", "cache", "transfer"];
const ACCESS: &[&str] = &["read", "write"];

fn entry(id: &str, params: &[(&str, &[&str])], metrics: &[(&str, Unit, Better)]) -> VocabularyEntry {
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
    VocabularyEntry {
        id: id.to_owned(),
        params: params.iter().map(|(name, list)| ((*name).to_owned(), words(list))).collect(),
        metrics: metrics
            .iter()
            .map(|(name, unit, better)| (MetricId(format!("{id}.{name}")), *unit, *better))
            .collect(),
    }
}

/// The words of issue 2's benchmarks.
pub fn vocabulary() -> Vocabulary {
    use Better::{Higher, Lower};
    let rate = ("rate", Unit::BytePerSecond, Higher);
    let throughput = ("throughput", Unit::FlopPerSecond, Higher);
    let time = ("time", Unit::Second, Lower);
    let ops = ["read", "write", "copy", "scale", "add", "triad"];
    let benchmarks = vec![
        entry("gemm", &[("type", TYPES), ("n", &[])], &[throughput]),
        entry("fma_peak", &[("type", TYPES)], &[throughput]),
        entry("memory_bandwidth", &[("op", &ops), ("size", &[])], &[rate]),
        entry("memory_latency", &[("size", &[])], &[time]),
        entry(
            "host_link",
            &[("direction", &["h2d", "d2h", "both"]), ("memory", &["pinned", "pageable"]), ("size", &[])],
            &[rate],
        ),
        entry("launch_latency", &[], &[time]),
        entry("storage_sequential", &[("op", ACCESS), ("block", &[]), ("depth", &[])], &[rate]),
        entry(
            "storage_random",
            &[("op", ACCESS), ("block", &[]), ("depth", &[])],
            &[("rate", Unit::IoPerSecond, Higher), ("latency", Unit::Second, Lower)],
        ),
        entry("interference", &[("victim", KINDS), ("aggressor", KINDS)], &[("slowdown", Unit::Ratio, Lower)]),
    ];
    Vocabulary { benchmarks, figures: vec!["memory_bandwidth".to_owned(), "fp16_tensor".to_owned()] }
}
