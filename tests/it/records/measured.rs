//! Numbers as an H100 and a fast disk have them.

use gpu_assay::record::{Better, DeviceId, Params, Value};
use gpu_assay::unit::Unit;

use super::draft::{Draft, Fresh, fresh, word};

/// Rates by type as an H100 has them, and a slower vector type.
pub const TYPES: [(&str, Unit, f64); 5] = [
    ("fp64", Unit::FlopPerSecond, 57.6e12),
    ("fp32", Unit::FlopPerSecond, 51.3e12),
    ("fp16", Unit::FlopPerSecond, 689e12),
    ("bf16", Unit::FlopPerSecond, 702e12),
    ("int8", Unit::OpPerSecond, 1410e12),
];

pub fn measure_all(draft: &mut Draft, devices: &[DeviceId], rate: f64, speed: impl Fn(&DeviceId, &str) -> f64) {
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

pub fn measure_storage(draft: &mut Draft, host: &DeviceId) {
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
