//! Storage, one block after the other: what model loading, checkpoints and data sets see.

use std::collections::BTreeMap;

use super::{Benchmark, Check, Context, Meta, MetricMeta, Moment, Observation, ParamMeta, Work, Workload};
use crate::backend::host::file::{Histogram, Job, Op, Options, Session};
use crate::backend::{DeviceError, Stream};
use crate::record::{BackendId, Better, DeviceInfo, Engine, Exclusive, Observed, Params, Value, Verified};
use crate::unit::{Bytes, Seconds, Unit};

/// Sequential reading and writing.
pub struct StorageSequential;

const DEFAULTS: Defaults = Defaults { random: false, block: 1 << 20, depth: 32 };

static META: Meta = Meta {
    id: "storage_sequential",
    title: "Storage, sequential",
    measures: "Rate at which the storage behind a folder of this machine reads or writes one file from start to \
               end, past the page cache.",
    why: "Loading a model, writing a checkpoint and streaming a data set go at this speed. Local NVMe that turns \
          out to be a network volume, or a volume with a throughput cap, shows here.",
    method: "A nameless file (1 GiB; less if that were over a tenth of the free space, left under 1 GiB free, or \
             took over 3 s to write) is filled with incompressible seeded data and made durable. Requests of 1 MiB \
             visit it in order, 32 in flight, through io_uring with O_DIRECT; where the kernel or the file system \
             refuses these, through threads with O_DIRECT, then through the page cache, emptied before each sample. \
             A sample counts requests from the first submission to the last completion; writing ends with \
             fdatasync inside the sample. /proc/self/io must show that the device moved at least 95 % of the bytes, \
             else the result is labelled \"cache\" and can only fail. Every 4 KiB page holds data derived from its \
             place and the write that put it there: the whole file is read back once, and what the last requests \
             moved is compared after every round.",
    limits: "Caches of the hypervisor, the disk or the storage service are part of what is measured, and a file of \
             1 GiB may fit into them. Writing is shorter than it takes to fill the write cache of a large SSD. Other \
             tenants of the same disk are not controlled. Only reads through io_uring into huge pages were compared \
             with fio and do not read low; writes and the other engines can pass a disk but never fail it.",
    version: 1,
    params: &PARAMS,
    metrics: &[MetricMeta {
        id: "storage_sequential.rate",
        unit: Unit::BytePerSecond,
        better: Better::Higher,
        summary: "bytes moved per second, complete and, for writes, durable",
    }],
};

/// Parameters that both storage benchmarks have.
pub(super) static PARAMS: [ParamMeta; 4] = [
    ParamMeta { name: "op", words: &["read", "write"], summary: "direction" },
    ParamMeta { name: "block", words: &[], summary: "bytes per request (1 MiB sequential, 4 KiB random)" },
    ParamMeta { name: "depth", words: &[], summary: "requests in flight (default 32)" },
    ParamMeta { name: "size", words: &[], summary: "largest size of the test file (default 1 GiB)" },
];

/// Parameters that were not given.
pub(super) struct Defaults {
    /// Scattered order.
    pub random: bool,
    /// Bytes per request.
    pub block: u64,
    /// Requests in flight.
    pub depth: u64,
}

impl Defaults {
    /// The job that `params` describe.
    pub fn job(&self, params: &Params) -> Result<Job, String> {
        let number = |name: &str, default: u64| match params.0.get(name) {
            None => Ok(default),
            Some(Value::Int(n) | Value::Size(n)) => Ok(*n),
            Some(Value::Word(word)) => Err(format!("{name} is a number, not \"{word}\"")),
        };
        let op = match params.0.get("op") {
            Some(Value::Word(word)) if word == "read" => Op::Read,
            Some(Value::Word(word)) if word == "write" => Op::Write,
            Some(other) => return Err(format!("op is read or write, not \"{other}\"")),
            None => return Err("op is missing: read or write".to_owned()),
        };
        let whole = |n: u64| usize::try_from(n).map_err(|e| e.to_string());
        let block = whole(number("block", self.block)?)?;
        let depth = whole(number("depth", self.depth)?)?;
        let job = Job { op, random: self.random, block, depth };
        job.check()?;
        match number("size", DEFAULT_SIZE)? {
            0..LEAST_SIZE => Err("size must be at least 64 MiB: smaller files fit into any cache".to_owned()),
            _ => Ok(job),
        }
    }

    /// As [`Benchmark::supports`].
    pub fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String> {
        match device.id.backend {
            BackendId::Host => self.job(params).map(|_| ()),
            _ => Err("storage belongs to the machine: it is measured on the host device".to_owned()),
        }
    }

    /// As [`Benchmark::footprint`]: buffers, bookkeeping of the file and the transient buffers of checking.
    pub fn footprint(&self, params: &Params) -> Bytes {
        let buffers = self.job(params).map_or(0, |job| job.block * job.depth);
        Bytes(buffers as f64) + Bytes::mib(16)
    }

    /// The workload that `params` describe.
    pub fn prepare(&self, context: &Context<'_>, params: &Params, work: Work) -> Result<Storage, DeviceError> {
        let job = self.job(params).map_err(DeviceError::Unsupported)?;
        let folder = context.storage.as_deref();
        let folder = folder.ok_or_else(|| DeviceError::Unsupported("no folder to measure was given".to_owned()))?;
        let size = Bytes(params.int("size").unwrap_or(DEFAULT_SIZE) as f64);
        let session = Session::open(&Options::new(folder, size, context.seed), job)?;
        Ok(Storage { session, work, op: job.op, percentiles: None, all: Histogram::default() })
    }
}

const DEFAULT_SIZE: u64 = 1 << 30;
const LEAST_SIZE: u64 = 64 << 20;

/// What each storage case needs while it is timed: the disk, and the CPU that drives it.
pub(super) fn exclusive(device: &DeviceInfo) -> Vec<Exclusive> {
    vec![Exclusive::Device(device.id.clone()), Exclusive::Disk]
}

/// Layout and one full read are shared by all cases on one file: each carries its part.
pub(super) const PREPARE: Seconds = Seconds(1.0);

impl Benchmark for StorageSequential {
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
        let block = DEFAULTS.job(params).map_err(DeviceError::Unsupported)?.block;
        let work = Work {
            metric: "storage_sequential.rate",
            unit: Unit::BytePerSecond,
            better: Better::Higher,
            amount: block as f64,
        };
        Ok(Box::new(DEFAULTS.prepare(context, params, work)?))
    }
}

/// A prepared storage case; one iteration is one request.
pub(super) struct Storage {
    session: Session,
    work: Work,
    op: Op,
    /// Latency metric, if percentiles are observed, with their names.
    pub percentiles: Option<(&'static str, &'static [(&'static str, f64)])>,
    /// Latencies of all blocks.
    all: Histogram,
}

const METHOD: &str = "every 4 KiB page against the content derived from its place and last write; the whole file \
                      once, the last requests after each round; no wrong byte allowed";

impl Storage {
    /// The whole file once: before timing, and for writes again afterwards.
    fn pages(&mut self, moment: Moment) -> Result<Result<u64, String>, DeviceError> {
        match (moment, self.op) {
            (Moment::Before, _) => self.session.check_file(true),
            (Moment::After, Op::Write) => self.session.check_file(false),
            (Moment::Round(_), _) | (Moment::After, Op::Read) => self.session.check_recent(),
        }
    }
}

impl Workload for Storage {
    fn work(&self) -> Work {
        self.work
    }

    fn engine(&self) -> Engine {
        self.session.engine()
    }

    fn enqueue(&mut self, _stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        self.session.run(iterations)
    }

    fn verify(&mut self, _stream: &mut dyn Stream, moment: Moment) -> Result<Check, DeviceError> {
        let verified = match self.pages(moment)? {
            Ok(0) => Verified::NotApplicable {
                reason: "another case has rewritten these pages since they were read".to_owned(),
            },
            Ok(_) => Verified::Right,
            Err(detail) => Verified::Wrong { detail },
        };
        Ok(Check { verified, method: METHOD.to_owned(), worst: None })
    }

    fn observe(&mut self) -> Vec<Observation> {
        let block = self.session.take_latency();
        self.all.merge(&block);
        let Some((metric, percentiles)) = self.percentiles.filter(|_| self.session.latency_means_device()) else {
            return Vec::new();
        };
        let observation = |(name, q): &(&str, f64)| {
            Some(Observation {
                metric,
                unit: Unit::Second,
                better: Better::Lower,
                labels: BTreeMap::from([("percentile".to_owned(), (*name).to_owned())]),
                value: block.quantile(*q)?,
            })
        };
        percentiles.iter().filter_map(observation).collect()
    }

    fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        let mut conditions = self.session.conditions();
        if let Some((_, percentiles)) = self.percentiles {
            conditions.insert("latency_all_blocks".to_owned(), self.latency_text(percentiles));
        }
        conditions
    }

    /// Every sample starts and ends with an empty queue: filling and draining it must not count for much.
    fn least_sample(&self) -> Seconds {
        Seconds(0.2)
    }

    fn max_iterations(&self) -> u64 {
        self.session.longest()
    }
}

impl Storage {
    /// Percentiles over all blocks together, where tails show that no single block has the count for.
    fn latency_text(&self, percentiles: &[(&str, f64)]) -> Observed<String> {
        if !self.session.latency_means_device() {
            return Observed::NotObservable("buffered writes end in memory".to_owned());
        }
        let count = self.all.count();
        let known =
            percentiles.iter().filter_map(|(name, q)| Some(format!("{name} {}", Seconds(self.all.quantile(*q)?))));
        match known.collect::<Vec<_>>().join(", ") {
            text if text.is_empty() => Observed::NotObservable(format!("{count} requests are too few for percentiles")),
            text => Observed::Value(format!("{text} ({count} requests)")),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn params(op: &str) -> Params {
        Params::default().with("op", Value::Word(op.to_owned()))
    }

    #[test]
    fn jobs_come_from_parameters_and_bad_ones_have_reasons() {
        let job = DEFAULTS.job(&params("read")).unwrap();
        assert_eq!(job, Job { op: Op::Read, random: false, block: 1 << 20, depth: 32 });
        let custom = params("write").with("block", Value::Size(8192)).with("depth", Value::Int(4));
        assert_eq!(DEFAULTS.job(&custom).unwrap(), Job { op: Op::Write, random: false, block: 8192, depth: 4 });
        for (bad, word) in [
            (Params::default(), "missing"),
            (params("erase"), "erase"),
            (params("read").with("block", Value::Size(1000)), "multiple"),
            (params("read").with("depth", Value::Int(0)), "depth"),
            (params("read").with("depth", Value::Word("deep".to_owned())), "deep"),
            (params("read").with("size", Value::Size(1 << 20)), "64 MiB"),
        ] {
            let reason = DEFAULTS.job(&bad).unwrap_err();
            assert!(reason.contains(word), "{reason}");
        }
    }

    /// A stream that storage never touches.
    pub struct NoStream;

    impl Stream for NoStream {
        fn copy(
            &mut self,
            _: crate::backend::RawBuffer,
            _: crate::backend::RawBuffer,
            _: Bytes,
        ) -> Result<(), DeviceError> {
            unreachable!()
        }
        fn upload(&mut self, _: crate::backend::RawBuffer, _: usize, _: &[u8]) -> Result<(), DeviceError> {
            unreachable!()
        }
        fn download(&mut self, _: crate::backend::RawBuffer, _: usize, _: &mut [u8]) -> Result<(), DeviceError> {
            unreachable!()
        }
        fn launch(&mut self, _: crate::backend::Launch<'_>) -> Result<(), DeviceError> {
            unreachable!()
        }
        fn gemm(
            &mut self,
            _: crate::backend::RawGemm,
            _: crate::backend::RawBuffer,
            _: crate::backend::RawBuffer,
            _: crate::backend::RawBuffer,
        ) -> Result<(), DeviceError> {
            unreachable!()
        }
        fn record(&mut self) -> Result<crate::backend::TimingEvent, DeviceError> {
            unreachable!()
        }
        fn wait(&mut self, _: crate::backend::TimingEvent) -> Result<(), DeviceError> {
            unreachable!()
        }
        fn synchronize(&mut self) -> Result<(), DeviceError> {
            unreachable!()
        }
        fn elapsed(
            &self,
            _: crate::backend::TimingEvent,
            _: crate::backend::TimingEvent,
        ) -> Result<Seconds, DeviceError> {
            unreachable!()
        }
    }

    /// A context on a folder of the build disk.
    pub fn context(folder: Option<&std::path::Path>) -> Context<'static> {
        Context { devices: &[], seed: 9, storage: folder.map(std::path::Path::to_owned), aggressor: false }
    }

    #[test]
    fn without_a_folder_it_is_unsupported_and_with_an_absent_one_an_error() {
        let prepare = |folder| StorageSequential.prepare(&context(folder), &params("read")).map(|_| ());
        assert!(matches!(prepare(None), Err(DeviceError::Unsupported(_))));
        assert!(
            matches!(prepare(Some("/nowhere/at/all".as_ref())), Err(DeviceError::Storage(t)) if t.contains("/nowhere"))
        );
    }

    #[test]
    fn reads_and_writes_are_verified_and_labelled() {
        let _alone = crate::backend::host::file::tests::alone();
        let folder = tempfile::tempdir_in(concat!(env!("CARGO_MANIFEST_DIR"), "/target")).unwrap();
        for op in ["read", "write"] {
            let params = params(op).with("size", Value::Size(64 << 20)).with("depth", Value::Int(8));
            let mut work = StorageSequential.prepare(&context(Some(folder.path())), &params).unwrap();
            assert_eq!(work.work().value(3, 1.0), 3.0 * f64::from(1 << 20));
            assert_eq!(work.verify(&mut NoStream, Moment::Before).unwrap().verified, Verified::Right);
            work.enqueue(&mut NoStream, 70.min(work.max_iterations())).unwrap();
            assert_eq!(work.verify(&mut NoStream, Moment::Round(0)).unwrap().verified, Verified::Right);
            assert_eq!(work.verify(&mut NoStream, Moment::After).unwrap().verified, Verified::Right);
            assert!(work.observe().is_empty(), "no latency metric here");
            for name in ["source", "delivered", "file", "pages_checked"] {
                assert!(work.conditions().contains_key(name), "{name}");
            }
            assert!(!work.engine().name.is_empty());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
