//! Ways to measure something. A benchmark declares work, enqueues it and verifies it; it reads no clock,
//! prints nothing and knows no threshold. One file each; [`ALL`] is the registry.

pub mod fma_peak;
pub mod gemm;
pub mod host_link;
pub mod interference;
pub mod launch_latency;
pub mod memory_bandwidth;
pub mod memory_latency;
pub mod storage_random;
pub mod storage_sequential;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::backend::{Device, DeviceError, Place, RawBuffer, Stream};
use crate::record::{
    Better, Ceiling, DeviceInfo, Engine, Exclusive, MetricId, Observed, Params, Verified, Vocabulary, VocabularyEntry,
};
use crate::unit::{Bytes, Seconds, Unit};

/// The registry. A test compares it with the files of this folder.
pub const ALL: &[&dyn Benchmark] = &[
    &gemm::Gemm,
    &fma_peak::FmaPeak,
    &memory_bandwidth::MemoryBandwidth,
    &memory_latency::MemoryLatency,
    &host_link::HostLink,
    &launch_latency::LaunchLatency,
    &storage_sequential::StorageSequential,
    &storage_random::StorageRandom,
    &interference::Interference,
];

/// The benchmark called `id`.
pub fn find(id: &str) -> Option<&'static dyn Benchmark> {
    ALL.iter().copied().find(|b| b.meta().id == id)
}

/// The words suites and offers may use.
pub fn vocabulary(figures: Vec<String>) -> Vocabulary {
    let words = |p: &ParamMeta| (p.name.to_owned(), p.words.iter().map(|w| (*w).to_owned()).collect());
    let entry = |b: &&dyn Benchmark| VocabularyEntry {
        id: b.meta().id.to_owned(),
        params: b.meta().params.iter().map(words).collect(),
        metrics: b.meta().metrics.iter().map(|m| (MetricId(m.id.to_owned()), m.unit, m.better)).collect(),
    };
    Vocabulary { benchmarks: ALL.iter().map(entry).collect(), figures }
}

/// Documentation and vocabulary of a benchmark; `list`, `explain` and the report are made from it.
#[derive(Debug)]
pub struct Meta {
    /// File name and id.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// What it measures.
    pub measures: &'static str,
    /// Why a renter cares.
    pub why: &'static str,
    /// How, step by step, with sizes and data.
    pub method: &'static str,
    /// What it does not show.
    pub limits: &'static str,
    /// Raised when results stop being comparable.
    pub version: u32,
    /// Parameters.
    pub params: &'static [ParamMeta],
    /// Metrics, the primary one first.
    pub metrics: &'static [MetricMeta],
}

/// A parameter.
#[derive(Debug)]
pub struct ParamMeta {
    /// Name in suites.
    pub name: &'static str,
    /// Allowed words; empty if it is a number or a size.
    pub words: &'static [&'static str],
    /// One line.
    pub summary: &'static str,
}

/// A metric.
#[derive(Debug)]
pub struct MetricMeta {
    /// `benchmark.quantity`.
    pub id: &'static str,
    /// Base unit (integer GEMM reports OP/s in the series itself).
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// One line.
    pub summary: &'static str,
}

/// Where and with what a workload is prepared.
pub struct Context<'d> {
    /// The device set the case owns; most benchmarks use the first.
    pub devices: &'d [Box<dyn Device>],
    /// Seed of all generated data.
    pub seed: u64,
    /// Folder for storage cases; `None` if storage is not measured.
    pub storage: Option<PathBuf>,
    /// True when this process plays the neighbour of an interference case.
    pub aggressor: bool,
}

impl<'d> Context<'d> {
    /// The device of a benchmark that uses one.
    pub fn device(&self) -> Result<&'d dyn Device, DeviceError> {
        let first = self.devices.first().ok_or_else(|| DeviceError::Unsupported("no device was given".to_owned()))?;
        Ok(&**first)
    }
}

/// Buffers of one workload; they are freed with it.
pub(crate) struct Buffers<'d> {
    device: &'d dyn Device,
    owned: Vec<RawBuffer>,
}

impl<'d> Buffers<'d> {
    /// None yet.
    pub fn new(device: &'d dyn Device) -> Buffers<'d> {
        Buffers { device, owned: Vec::new() }
    }

    /// One more, with undefined content.
    pub fn alloc(&mut self, place: Place, size: Bytes) -> Result<RawBuffer, DeviceError> {
        let buffer = self.device.alloc(place, size)?;
        self.owned.push(buffer);
        Ok(buffer)
    }
}

impl Drop for Buffers<'_> {
    fn drop(&mut self) {
        for buffer in self.owned.drain(..) {
            self.device.free(buffer);
        }
    }
}

/// A way to measure something.
pub trait Benchmark: Sync {
    /// Documentation and vocabulary.
    fn meta(&self) -> &'static Meta;
    /// Whether it can run there; the reason is shown to the user.
    fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String>;
    /// Memory it holds while prepared, before scaling: device memory and host memory alike.
    fn footprint(&self, device: &DeviceInfo, params: &Params) -> Bytes;
    /// What it needs exclusively while timed. The device itself always is.
    fn exclusive(&self, device: &DeviceInfo, _params: &Params) -> Vec<Exclusive> {
        vec![Exclusive::Device(device.id.clone())]
    }
    /// True if each round is alone – with an aggressor in another process – alone again.
    fn has_aggressor(&self) -> bool {
        false
    }
    /// Rough time for allocation, data, compilation and first check, for the planner.
    fn prepare_estimate(&self, _device: &DeviceInfo, _params: &Params) -> Seconds {
        Seconds(0.3)
    }
    /// Rough time that checking costs in each round, beside the block itself, for the planner.
    fn verify_estimate(&self, _device: &DeviceInfo, _params: &Params) -> Seconds {
        Seconds(0.05)
    }
    /// Allocates, generates data, builds kernels, plans; everything that is not timed.
    fn prepare<'d>(&self, context: &Context<'d>, params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError>;
}

/// Work done by one iteration, and the metric it makes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Metric id.
    pub metric: &'static str,
    /// Base unit of the metric.
    pub unit: Unit,
    /// Higher: value = amount × iterations / elapsed. Lower: value = elapsed / (amount × iterations).
    pub better: Better,
    /// Bytes, operations, accesses … of one iteration, before scaling (what the user asked for).
    pub amount: f64,
}

impl Work {
    /// Value of the metric for `iterations` in `elapsed` seconds.
    pub fn value(&self, iterations: u64, elapsed: f64) -> f64 {
        let work = self.amount * iterations as f64;
        match self.better {
            Better::Higher => work / elapsed,
            Better::Lower => elapsed / work,
        }
    }
}

/// When a check is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// After preparation, before anything is timed.
    Before,
    /// After the timed blocks of a round.
    Round(u32),
    /// After the last block.
    After,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Right, wrong, or nothing to check.
    pub verified: Verified,
    /// Method and bound in words; the same text at every call of one workload.
    pub method: String,
    /// Error relative to its bound.
    pub worst: Option<f64>,
}

/// An accompanying reading of the last block.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Metric id, listed in [`Meta::metrics`].
    pub metric: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// Labels, e.g. `percentile=p99`.
    pub labels: BTreeMap<String, String>,
    /// Value.
    pub value: f64,
}

/// A prepared case. Dropping it frees everything it allocated.
pub trait Workload {
    /// Work of one iteration.
    fn work(&self) -> Work;
    /// Who does it.
    fn engine(&self) -> Engine;
    /// Physical ceiling of the primary metric, where derivable from what the device itself reports.
    fn ceiling(&self) -> Option<Ceiling> {
        None
    }
    /// Queues `iterations` iterations. Called between two events; must not wait for completion unless the
    /// work is the host's own.
    fn enqueue(&mut self, stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError>;
    /// Checks the buffers that were timed.
    fn verify(&mut self, stream: &mut dyn Stream, moment: Moment) -> Result<Check, DeviceError>;
    /// Accompanying readings of the block that just ended; drained.
    fn observe(&mut self) -> Vec<Observation> {
        Vec::new()
    }
    /// Conditions worth stating beside the result.
    fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        BTreeMap::new()
    }
    /// A sample shorter than this says little, because work needs time to get going and to drain (storage).
    fn least_sample(&self) -> Seconds {
        Seconds(0.0)
    }
    /// Most iterations one sample may hold (storage: what fits the files; else unlimited).
    fn max_iterations(&self) -> u64 {
        u64::MAX
    }
}
