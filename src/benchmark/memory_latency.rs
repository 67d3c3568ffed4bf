//! Time of one dependent access to memory.

use std::collections::{BTreeMap, VecDeque};

use super::{Benchmark, Buffers, Check, Context, Meta, MetricMeta, Moment, ParamMeta, Work, Workload};
use crate::backend::{Arg, Device, DeviceError, Launch, Place, RawBuffer, RawKernel, Stream};
use crate::kernel::KernelId;
use crate::record::{Better, DeviceInfo, Engine, EngineKind, Observed, Params, Value, Verified};
use crate::unit::{Bytes, Seconds, Unit};

/// A pointer chase.
pub struct MemoryLatency;

static META: Meta = Meta {
    id: "memory_latency",
    title: "Memory latency",
    measures: "Time from one access to memory to the next where each address depends on the value read before: caches \
               for small sizes, main memory for large ones.",
    why: "Sparse, graph and sampling work waits for single accesses. Remote or shared memory, and caches that are \
          smaller than sold, show as a higher time at the same size.",
    method: "`size` bytes hold one link per 64 bytes. The links form one random cycle through all of them, so that no \
             prefetcher can guess the next. One lane follows them, each block goes on where the last one ended, and \
             each launch must end at the link that the host computed. Without `size`: four times the last-level cache, \
             at least 256 MiB, at most a quarter of the memory and 2 GiB.",
    limits: "One lane, nothing else running: no queueing under load. Address translation is included, as in real \
             random access. At four times the cache about a quarter of the accesses still hit it; below that size the \
             result is labelled as read from caches and is never taken for memory.",
    version: 1,
    params: &[ParamMeta {
        name: "size",
        words: &[],
        summary: "bytes visited (default: far beyond the last-level cache)",
    }],
    metrics: &[MetricMeta {
        id: "memory_latency.time",
        unit: Unit::Second,
        better: Better::Lower,
        summary: "time per dependent access",
    }],
};

/// Bytes per link.
const SPACING: u64 = 64;
/// 32-bit words per link.
const WORDS: u32 = SPACING as u32 / 4;
/// Accesses of one iteration.
const HOPS: u64 = 256;
/// Results that are kept until the next check.
const RESULTS: usize = 16;
/// Links that fit 32-bit word indices.
const MOST: u64 = (1 << 32) * 4;
const LEAST: u64 = 4096;

/// Bytes visited, before scaling.
fn size(device: &DeviceInfo, params: &Params) -> Result<u64, String> {
    match params.0.get("size") {
        Some(Value::Int(size) | Value::Size(size)) if !(LEAST..=MOST).contains(size) => {
            Err(format!("size must be between {} and {}", Bytes(LEAST as f64), Bytes(MOST as f64)))
        }
        Some(Value::Int(size) | Value::Size(size)) if *size as f64 > device.memory.get() / 2.0 => {
            Err(format!("{} is more than half of the device's memory", Bytes(*size as f64)))
        }
        Some(Value::Int(size) | Value::Size(size)) => Ok(*size),
        Some(Value::Word(word)) => Err(format!("size is a number of bytes, not \"{word}\"")),
        None => {
            let cache = device.last_level_cache.map_or(0.0, Bytes::get);
            let most = Bytes::gib(2).get().min(device.memory.get() / 4.0);
            Ok((4.0 * cache).max(Bytes::mib(256).get()).min(most).max(LEAST as f64) as u64)
        }
    }
}

impl Benchmark for MemoryLatency {
    fn meta(&self) -> &'static Meta {
        &META
    }

    fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String> {
        size(device, params).map(|_| ())
    }

    fn footprint(&self, device: &DeviceInfo, params: &Params) -> Bytes {
        // The links, and on the host their order.
        let size = size(device, params).unwrap_or(0);
        Bytes((size + size / SPACING * 8) as f64)
    }

    fn prepare_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        Seconds(0.3 + size(device, params).unwrap_or(0) as f64 / 1e9)
    }

    fn prepare<'d>(&self, context: &Context<'d>, params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        let device = context.device()?;
        let size = size(device.info(), params).map_err(DeviceError::Unsupported)?;
        Ok(Box::new(Chase::prepare(device, size, context.seed)?))
    }
}

/// The prepared case.
struct Chase<'d> {
    info: DeviceInfo,
    /// Bytes visited, before scaling.
    size: u64,
    /// The links in the order in which they are visited.
    order: Vec<u32>,
    /// Place in `order` where the next launch begins.
    at: usize,
    links: RawBuffer,
    /// Where launches leave the link they end at, in turn.
    results: Vec<RawBuffer>,
    /// Launches since the last check, the latest at the end: which result, and what must be in it.
    expected: VecDeque<(usize, u32)>,
    launches: usize,
    kernel: RawKernel,
    _buffers: Buffers<'d>,
}

impl<'d> Chase<'d> {
    fn prepare(device: &'d dyn Device, size: u64, seed: u64) -> Result<Chase<'d>, DeviceError> {
        let scale = u64::from(device.scale().bytes.max(1));
        let count = (size / scale / SPACING).max(16) as usize;
        let mut buffers = Buffers::new(device);
        let links = buffers.alloc(Place::Device, Bytes((count as u64 * SPACING) as f64))?;
        let order = random_order(count, seed);
        upload_links(&mut *device.stream()?, links, &order)?;
        let results =
            (0..RESULTS).map(|_| buffers.alloc(Place::Device, Bytes(4.0))).collect::<Result<Vec<_>, DeviceError>>()?;
        Ok(Chase {
            info: device.info().clone(),
            size,
            order,
            at: 0,
            links,
            results,
            expected: VecDeque::new(),
            launches: 0,
            kernel: device.load(KernelId::Chase)?,
            _buffers: buffers,
        })
    }

    fn launch(&mut self, stream: &mut dyn Stream, hops: u32) -> Result<(), DeviceError> {
        let result = self.launches % RESULTS;
        let start = self.order[self.at] * WORDS;
        let args = [Arg::Buffer(self.links), Arg::Buffer(self.results[result]), Arg::U32(start), Arg::U32(hops)];
        stream.launch(Launch { kernel: self.kernel, lanes: 1, args: &args })?;
        self.launches += 1;
        self.at = ((self.at as u64 + u64::from(hops)) % self.order.len() as u64) as usize;
        if self.expected.len() == RESULTS {
            self.expected.pop_front();
        }
        self.expected.push_back((result, self.order[self.at] * WORDS));
        Ok(())
    }

    fn times_cache(&self) -> Option<f64> {
        self.info.last_level_cache.filter(|cache| cache.get() > 0.0).map(|cache| self.size as f64 / cache.get())
    }
}

impl Workload for Chase<'_> {
    fn work(&self) -> Work {
        Work { metric: META.metrics[0].id, unit: Unit::Second, better: Better::Lower, amount: HOPS as f64 }
    }

    fn engine(&self) -> Engine {
        // From caches it can only look better than memory is.
        let cached = self.times_cache().is_some_and(|times| times < 4.0);
        let kind = if cached { EngineKind::HighOnly } else { EngineKind::Decisive };
        let conditions = BTreeMap::from([("spacing".to_owned(), format!("{SPACING} bytes"))]);
        Engine { name: "own kernel".to_owned(), version: None, library: None, kind, conditions }
    }

    fn enqueue(&mut self, stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        let mut hops = iterations.saturating_mul(HOPS);
        while hops > 0 {
            let part = hops.min(1 << 31) as u32;
            self.launch(stream, part)?;
            hops -= u64::from(part);
        }
        Ok(())
    }

    fn verify(&mut self, stream: &mut dyn Stream, _moment: Moment) -> Result<Check, DeviceError> {
        if self.expected.is_empty() {
            self.enqueue(stream, 1)?;
        }
        let mut verified = Verified::Right;
        for (result, expected) in std::mem::take(&mut self.expected) {
            let mut word = [0; 4];
            stream.download(self.results[result], 0, &mut word)?;
            let found = u32::from_le_bytes(word);
            if found != expected {
                verified = Verified::Wrong { detail: format!("the chase ended at word {found}, right is {expected}") };
            }
            // Never a link: the next launch must write its own.
            stream.upload(self.results[result], 0, &u32::MAX.to_le_bytes())?;
        }
        let method = format!("end of each chase against the host's (the last {RESULTS} launches before each check)");
        Ok(Check { verified, method, worst: None })
    }

    fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        let times = self.times_cache().map_or_else(
            || Observed::NotObservable("the device does not report its last-level cache".to_owned()),
            |times| Observed::Value(format!("{}×", crate::unit::significant(times))),
        );
        BTreeMap::from([
            ("size".to_owned(), Observed::Value(Bytes(self.size as f64).to_string())),
            ("size against last-level cache".to_owned(), times),
        ])
    }
}

/// A uniformly random order of `count` links (Fisher and Yates). Linking each to the next and the last to
/// the first makes a uniformly random cycle, as Sattolo's algorithm does, and the order of visits is known.
fn random_order(count: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut state = seed;
    for i in (1..count).rev() {
        let j = (u128::from(split_mix(&mut state)) * (i as u128 + 1)) >> 64;
        order.swap(i, j as usize);
    }
    order
}

/// SplitMix64, Steele, Lea and Flood, OOPSLA 2014.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Writes the links: the first word of each holds the word index of the next one.
fn upload_links(stream: &mut dyn Stream, links: RawBuffer, order: &[u32]) -> Result<(), DeviceError> {
    let mut next = vec![0; order.len()];
    for (i, link) in order.iter().enumerate() {
        next[*link as usize] = order[(i + 1) % order.len()];
    }
    const PIECE: usize = 1 << 16;
    for (piece, part) in next.chunks(PIECE).enumerate() {
        let mut bytes = vec![0; part.len() * SPACING as usize];
        for (line, link) in bytes.chunks_exact_mut(SPACING as usize).zip(part) {
            line[..4].copy_from_slice(&(link * WORDS).to_le_bytes());
        }
        stream.upload(links, piece * PIECE * SPACING as usize, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_visits_everything_once_and_depends_on_the_seed() {
        let order = random_order(1000, 7);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(i, link)| i as u32 == *link));
        assert_ne!(order, sorted);
        assert_ne!(order, random_order(1000, 8));
        assert_eq!(order, random_order(1000, 7));
    }
}
