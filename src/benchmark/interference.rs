//! How much a neighbour costs: one process works alone, beside another, and alone again.

use super::fma_peak::FmaPeak;
use super::host_link::HostLink;
use super::memory_bandwidth::MemoryBandwidth;
use super::{Benchmark, Check, Context, Meta, MetricMeta, Moment, ParamMeta, Work, Workload};
use crate::backend::{DeviceError, Stream};
use crate::record::{Better, DeviceInfo, Engine, EngineKind, Exclusive, Observed, Params, Value};
use crate::unit::{Bytes, Seconds, Unit};

use std::collections::BTreeMap;

/// Victim and aggressor on one device.
pub struct Interference;

const LOADS: &[&str] = &["compute", "memory", "cache", "transfer"];

/// Metric of the victim's own rate; the runner tells `phase` alone and loaded apart.
const VICTIM: &str = "interference.victim";

static META: Meta = Meta {
    id: "interference",
    title: "Interference",
    measures: "How many times longer the victim's work takes while another process, the aggressor, works on the same \
               device.",
    why: "A GPU that is split, or oversold, is shared the same way with neighbours you cannot see. This shows what such \
          a neighbour would cost, resource by resource, and how far the device isolates processes from one another.",
    method: "Each round has three blocks: the victim alone, beside the aggressor in a process of its own that starts \
             0.1 s earlier, and alone again; the slowdown is the victim's time per unit of work beside the aggressor \
             over the mean of the times before and after. compute: fused multiply-adds in registers (fma_peak fp32). \
             memory: the triad of memory_bandwidth on arrays far beyond the last-level cache. cache: reading an array \
             of half the last-level cache over and over: it fits for one, not beside another. transfer: copies \
             from page-locked host memory to the device (host_link). The results of both are verified as in those \
             benchmarks. The aggressor's completed work counts as a share of its own rate alone: below half, with no \
             loss to the victim, nothing was shown and the case fails.",
    limits: "It shows what sharing would cost, not whether somebody else shares the device now: that shows as loss \
             with no visible process. Two processes on one whole GPU take turns unless the driver lets them run \
             together, so a slowdown near 2 is what time slicing gives.",
    version: 1,
    params: &[
        ParamMeta { name: "victim", words: LOADS, summary: "what is measured" },
        ParamMeta { name: "aggressor", words: LOADS, summary: "what runs beside it" },
    ],
    metrics: &[
        MetricMeta {
            id: "interference.slowdown",
            unit: Unit::Ratio,
            better: Better::Lower,
            summary: "time of the victim's work beside the aggressor over its time alone; 100 % is no interference",
        },
        MetricMeta {
            id: VICTIM,
            unit: Unit::BytePerSecond,
            better: Better::Higher,
            summary: "rate of the victim, by label phase: alone, loaded (compute: FLOP/s)",
        },
        MetricMeta {
            id: "interference.aggressor_share",
            unit: Unit::Ratio,
            better: Better::Higher,
            summary: "rate of the aggressor beside the victim over its rate alone",
        },
    ],
};

/// One side: the benchmark that makes its load, and with which parameters.
struct Side {
    benchmark: &'static dyn Benchmark,
    params: Params,
}

impl Side {
    /// The load called `name` in parameter `role`, sized for `device`.
    fn new(role: &str, params: &Params, device: &DeviceInfo) -> Result<Side, String> {
        let word = |name: &str, value: &str| Params::default().with(name, Value::Word(value.to_owned()));
        let (benchmark, params): (&dyn Benchmark, Params) = match params.word(role) {
            Some("compute") => (&FmaPeak, word("type", "fp32")),
            Some("memory") => (&MemoryBandwidth, word("op", "triad")),
            Some("cache") => {
                let cache = device.last_level_cache.filter(|c| c.get() >= 1.0);
                let cache = cache.ok_or("the size of the last-level cache is not known")?;
                // Whole pages, so that every kernel can divide it among its threads.
                let half = (cache.count() / 2 / 4096 * 4096).max(4096) as u64;
                (&MemoryBandwidth, word("op", "read").with("size", Value::Size(half)))
            }
            Some("transfer") => (&HostLink, word("direction", "h2d").with("memory", Value::Word("pinned".to_owned()))),
            Some(other) => return Err(format!("{role} is one of {}, not \"{other}\"", LOADS.join(", "))),
            None => return Err(format!("{role} is missing: one of {}", LOADS.join(", "))),
        };
        let side = Side { benchmark, params };
        side.benchmark.supports(device, &side.params).map_err(|e| format!("{role}: {e}"))?;
        Ok(side)
    }

    /// Victim and aggressor.
    fn both(params: &Params, device: &DeviceInfo) -> Result<[Side; 2], String> {
        Ok([Side::new("victim", params, device)?, Side::new("aggressor", params, device)?])
    }
}

impl Benchmark for Interference {
    fn meta(&self) -> &'static Meta {
        &META
    }

    fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String> {
        Side::both(params, device).map(|_| ())
    }

    /// Both processes hold theirs at the same time.
    fn footprint(&self, device: &DeviceInfo, params: &Params) -> Bytes {
        let sides = Side::both(params, device);
        sides.map_or(Bytes(0.0), |s| s.iter().map(|s| s.benchmark.footprint(device, &s.params)).sum())
    }

    fn exclusive(&self, device: &DeviceInfo, params: &Params) -> Vec<Exclusive> {
        let mut all = vec![Exclusive::Device(device.id.clone())];
        for side in Side::both(params, device).into_iter().flatten() {
            all.extend(side.benchmark.exclusive(device, &side.params));
        }
        all.sort();
        all.dedup();
        all
    }

    fn has_aggressor(&self) -> bool {
        true
    }

    fn prepare_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        let estimate = |s: &Side| s.benchmark.prepare_estimate(device, &s.params).get();
        Seconds(Side::both(params, device).map_or(0.0, |s| s.iter().map(estimate).fold(0.0, f64::max)))
    }

    fn verify_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        let estimate = |s: &Side| s.benchmark.verify_estimate(device, &s.params).get();
        Seconds(Side::both(params, device).map_or(0.0, |s| s.iter().map(estimate).fold(0.0, f64::max)))
    }

    fn prepare<'d>(&self, context: &Context<'d>, params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        let device = context.devices.first().ok_or_else(|| DeviceError::Unsupported("no device".to_owned()))?;
        let [victim, aggressor] = Side::both(params, device.info()).map_err(DeviceError::Unsupported)?;
        let side = if context.aggressor { aggressor } else { victim };
        Ok(Box::new(Load { inner: side.benchmark.prepare(context, &side.params)?, side }))
    }
}

/// The workload of one side, under the names of this benchmark.
struct Load<'d> {
    inner: Box<dyn Workload + 'd>,
    side: Side,
}

impl Workload for Load<'_> {
    /// The inner work under a name of its own: nothing that is demanded of an undisturbed device may match it.
    fn work(&self) -> Work {
        Work { metric: VICTIM, ..self.inner.work() }
    }

    /// A slowdown compares an engine with itself, so it decides whatever its absolute rate could decide.
    fn engine(&self) -> Engine {
        Engine { kind: EngineKind::Decisive, ..self.inner.engine() }
    }

    fn enqueue(&mut self, stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        self.inner.enqueue(stream, iterations)
    }

    fn verify(&mut self, stream: &mut dyn Stream, moment: Moment) -> Result<Check, DeviceError> {
        self.inner.verify(stream, moment)
    }

    fn observe(&mut self) -> Vec<super::Observation> {
        // Drained, not passed on: its metrics are those of the other benchmark.
        self.inner.observe();
        Vec::new()
    }

    fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        let mut conditions = self.inner.conditions();
        let load = format!("{}[{}]", self.side.benchmark.meta().id, self.side.params);
        conditions.insert("victim_work".to_owned(), Observed::Value(load));
        conditions
    }

    fn least_sample(&self) -> Seconds {
        self.inner.least_sample()
    }

    fn max_iterations(&self) -> u64 {
        self.inner.max_iterations()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::{BackendId, DataType, DeviceId, DeviceKind, WorkScale};

    fn device(cache: Option<Bytes>) -> DeviceInfo {
        DeviceInfo {
            id: DeviceId::new(BackendId::Opencl, 0),
            kind: DeviceKind::Gpu,
            name: "test".to_owned(),
            vendor: String::new(),
            uuid: None,
            pci: None,
            memory: Bytes::gib(16),
            last_level_cache: cache,
            units: Some(16),
            clock_max: None,
            driver: None,
            api: None,
            gemm_types: vec![DataType::Fp32],
            fma_types: vec![DataType::Fp32],
            spec: None,
            numa_node: None,
            attributes: BTreeMap::new(),
            scale: WorkScale::ONE,
            simulated: false,
        }
    }

    fn params(victim: &str, aggressor: &str) -> Params {
        let word = |w: &str| Value::Word(w.to_owned());
        Params::default().with("victim", word(victim)).with("aggressor", word(aggressor))
    }

    #[test]
    fn every_combination_uses_parameters_that_its_benchmarks_have() {
        let device = device(Some(Bytes::mib(40)));
        for victim in LOADS {
            for aggressor in LOADS {
                let sides = Side::both(&params(victim, aggressor), &device).unwrap();
                for side in &sides {
                    for (name, value) in &side.params.0 {
                        let known = side.benchmark.meta().params.iter().find(|p| p.name == name);
                        let known = known.unwrap_or_else(|| panic!("{} has no {name}", side.benchmark.meta().id));
                        let word = value.to_string();
                        assert!(known.words.is_empty() || known.words.contains(&word.as_str()), "{name} = {word}");
                    }
                }
                let footprint = Interference.footprint(&device, &params(victim, aggressor)).get();
                let single = |s: &Side| s.benchmark.footprint(&device, &s.params).get();
                assert_eq!(footprint, sides.iter().map(single).sum::<f64>());
            }
        }
    }

    #[test]
    fn the_cache_victim_reads_half_of_the_cache() {
        let side = Side::new("victim", &params("cache", "memory"), &device(Some(Bytes::mib(40)))).unwrap();
        assert_eq!(side.params.int("size"), Some(20 << 20));
    }

    #[test]
    fn what_cannot_run_has_a_reason() {
        let reason = |p: Params, cache| Interference.supports(&device(cache), &p).unwrap_err();
        assert!(reason(params("cache", "memory"), None).contains("last-level cache"));
        assert!(reason(params("network", "memory"), None).contains("network"));
        assert!(reason(Params::default(), None).contains("victim is missing"));
        let no_fp32 = DeviceInfo { fma_types: Vec::new(), ..device(None) };
        assert!(Interference.supports(&no_fp32, &params("memory", "compute")).unwrap_err().starts_with("aggressor: "));
    }

    #[test]
    fn the_slowdown_comes_first_and_no_metric_is_another_benchmarks() {
        assert_eq!(META.metrics[0].id, "interference.slowdown");
        assert!(META.metrics.iter().all(|m| m.id.starts_with("interference.")));
    }
}
