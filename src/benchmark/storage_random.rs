//! Storage, scattered small requests: what shuffled data sets, databases and package imports see.

use super::storage_sequential::{Defaults, PARAMS, PREPARE, exclusive};
use super::{Benchmark, Context, Meta, MetricMeta, Work, Workload};
use crate::backend::DeviceError;
use crate::record::{Better, DeviceInfo, Exclusive, Params};
use crate::unit::{Bytes, Seconds, Unit};

/// Scattered reading and writing.
pub struct StorageRandom;

const DEFAULTS: Defaults = Defaults { random: true, block: 4096, depth: 32 };

const LATENCY: &str = "storage_random.latency";
const PERCENTILES: &[(&str, f64)] = &[("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

static META: Meta = Meta {
    id: "storage_random",
    title: "Storage, random",
    measures: "Requests per second, and how long single ones take, at scattered places of one file, past the page \
               cache.",
    why: "Shuffled training data, vector databases and starting Python from many small files wait for these. Volumes \
          with a cap on requests per second, and disks shared with others, show here; depth 1 shows the latency of \
          the path, depth 32 what the device can do at once.",
    method: "The file, engine, accounting and checks of storage_sequential. Requests of 4 KiB visit every block of \
             the file once per pass in a seeded scattered order, 1 or 32 in flight. The latency of each request, from \
             submission until its completion is seen, goes into a histogram with buckets under 1.6 % wide; a \
             percentile is given for a block of samples only if at least ten requests of that block lie beyond it. \
             Writing ends each sample with fdatasync.",
    limits: "As storage_sequential. At depth 32 one thread submits and reaps in batches, so a latency includes the \
             wait for the batch; at depth 1 there is none. One thread submits, whose core may \
             end before a fast disk does: a rate can pass a disk but never fail it.",
    version: 1,
    params: &PARAMS,
    metrics: &[
        MetricMeta {
            id: "storage_random.rate",
            unit: Unit::IoPerSecond,
            better: Better::Higher,
            summary: "requests completed per second",
        },
        MetricMeta {
            id: LATENCY,
            unit: Unit::Second,
            better: Better::Lower,
            summary: "time of one request, by label percentile",
        },
    ],
};

impl Benchmark for StorageRandom {
    fn meta(&self) -> &'static Meta {
        &META
    }
    fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String> {
        DEFAULTS.supports(device, params)
    }
    fn footprint(&self, _device: &DeviceInfo, params: &Params) -> Bytes {
        DEFAULTS.footprint(params)
    }
    fn exclusive(&self, device: &DeviceInfo, _params: &Params) -> Vec<Exclusive> {
        exclusive(device)
    }
    fn prepare_estimate(&self, _device: &DeviceInfo, _params: &Params) -> Seconds {
        PREPARE
    }
    fn prepare<'d>(&self, context: &Context<'d>, params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        let work = Work { metric: "storage_random.rate", unit: Unit::IoPerSecond, better: Better::Higher, amount: 1.0 };
        let mut storage = DEFAULTS.prepare(context, params, work)?;
        storage.percentiles = Some((LATENCY, PERCENTILES));
        Ok(Box::new(storage))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Moment;
    use super::super::storage_sequential::tests::{NoStream, context};
    use super::*;
    use crate::record::{Value, Verified};

    #[test]
    fn percentiles_go_as_far_as_the_count_supports() {
        let _alone = crate::backend::host::file::tests::alone();
        let folder = tempfile::tempdir_in(concat!(env!("CARGO_MANIFEST_DIR"), "/target")).unwrap();
        let params = Params::default().with("op", Value::Word("read".to_owned())).with("size", Value::Size(64 << 20));
        let mut work = StorageRandom.prepare(&context(Some(folder.path())), &params).unwrap();
        work.enqueue(&mut NoStream, 2000).unwrap();
        let names =
            |o: Vec<super::super::Observation>| o.iter().map(|o| o.labels["percentile"].clone()).collect::<Vec<_>>();
        let seen = work.observe();
        assert!(seen.windows(2).all(|w| w[0].value <= w[1].value));
        assert!(seen.iter().all(|o| o.value > 0.0 && o.metric == LATENCY));
        assert_eq!(names(seen), ["p50", "p95", "p99"], "two of 2000 requests say nothing about p99.9");
        assert!(work.observe().is_empty(), "drained");
        work.enqueue(&mut NoStream, 30).unwrap();
        assert_eq!(names(work.observe()), ["p50"]);
        assert_eq!(work.verify(&mut NoStream, Moment::Round(0)).unwrap().verified, Verified::Right);
        let text = format!("{:?}", work.conditions()["latency_all_blocks"]);
        assert!(text.contains("2030 requests"), "{text}");
    }
}
