//! Rate of copies between the host's memory and the device's.

use std::collections::BTreeMap;

use super::{Benchmark, Buffers, Check, Context, Meta, MetricMeta, Moment, ParamMeta, Work, Workload};
use crate::backend::{Arg, Device, DeviceError, Launch, Place, RawBuffer, RawKernel, Stream};
use crate::kernel::{KernelId, pattern};
use crate::record::{
    BackendId, Better, DeviceInfo, DeviceKind, Engine, EngineKind, Exclusive, Observed, Params, Value, Verified,
};
use crate::unit::{Bytes, Seconds, Unit};

/// Copies between host and device.
pub struct HostLink;

static META: Meta = Meta {
    id: "host_link",
    title: "Host link",
    measures: "Rate of large copies from host memory to the device (h2d), back (d2h), or both at once, for page-locked \
               and for ordinary host memory.",
    why: "Loading models, feeding data and offloading go over this link. A GPU in a narrow slot, behind a shared switch \
          or on an older PCIe generation than sold shows here.",
    method: "Copies of 128 MiB (32 MiB where the device is a processor, or `size`; at most an eighth of the device's memory) queued back to back. `both` runs \
             one copy each way per iteration on two streams that start and end together, and counts the bytes of both. \
             The source holds a pattern derived from address and seed; after each round the device, or the host, \
             compares every word that arrived, and the source is filled with another pattern, so that the next round \
             must copy again.",
    limits: "Large copies only: small ones are limited by their set-up time. The processor's memory can limit `both`. \
             Ordinary (pageable) memory is copied through a buffer of the driver and says more about the host's \
             processor than about the link.",
    version: 1,
    params: &[
        ParamMeta {
            name: "direction",
            words: &["h2d", "d2h", "both"],
            summary: "host to device, device to host, both",
        },
        ParamMeta { name: "memory", words: &["pinned", "pageable"], summary: "kind of host memory (default pinned)" },
        ParamMeta { name: "size", words: &[], summary: "bytes of one copy (default 128 MiB, on CPUs 32 MiB)" },
    ],
    metrics: &[MetricMeta {
        id: "host_link.rate",
        unit: Unit::BytePerSecond,
        better: Better::Higher,
        summary: "bytes copied per second, both directions together for `both`",
    }],
};

/// A millisecond or more on the fastest links.
const DEFAULT_SIZE: u64 = 128 << 20;
/// Where the device is the processor: nothing is gained by waiting longer.
const DEFAULT_SIZE_CPU: u64 = 32 << 20;
const LEAST: u64 = 4096;

/// What the parameters say; size in bytes before scaling.
struct Plan {
    to_device: bool,
    to_host: bool,
    place: Place,
    size: u64,
}

impl Plan {
    fn of(device: &DeviceInfo, params: &Params) -> Result<Plan, String> {
        let (to_device, to_host) = match params.word("direction") {
            Some("h2d") => (true, false),
            Some("d2h") => (false, true),
            Some("both") => (true, true),
            Some(other) => return Err(format!("direction is h2d, d2h or both, not \"{other}\"")),
            None => return Err("direction is missing: h2d, d2h or both".to_owned()),
        };
        let place = match params.word("memory") {
            None | Some("pinned") => Place::HostPinned,
            Some("pageable") => Place::HostPageable,
            Some(other) => return Err(format!("memory is pinned or pageable, not \"{other}\"")),
        };
        let most = (device.memory.get() / 8.0) as u64;
        let size = match params.0.get("size") {
            None if device.kind == DeviceKind::Cpu => DEFAULT_SIZE_CPU.min(most),
            None => DEFAULT_SIZE.min(most),
            Some(Value::Int(size) | Value::Size(size)) => *size,
            Some(Value::Word(word)) => return Err(format!("size is a number of bytes, not \"{word}\"")),
        };
        if size < LEAST || size > most {
            return Err(format!("size must be between {} and {}", Bytes(LEAST as f64), Bytes(most as f64)));
        }
        Ok(Plan { to_device, to_host, place, size: size / 4 * 4 })
    }

    fn directions(&self) -> u64 {
        u64::from(self.to_device) + u64::from(self.to_host)
    }
}

impl Benchmark for HostLink {
    fn meta(&self) -> &'static Meta {
        &META
    }

    fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String> {
        if device.id.backend == BackendId::Host {
            return Err("the host has no link to itself: it is one end of every link".to_owned());
        }
        Plan::of(device, params).map(|_| ())
    }

    fn footprint(&self, device: &DeviceInfo, params: &Params) -> Bytes {
        Plan::of(device, params).map_or(Bytes(0.0), |plan| Bytes((2 * plan.size * plan.directions()) as f64))
    }

    fn exclusive(&self, device: &DeviceInfo, _params: &Params) -> Vec<Exclusive> {
        // Without a known root the device's own address stands for it: copies of one device never overlap.
        let root = device.attributes.get("pcie_root").or(device.pci.as_ref().map(|pci| &pci.address));
        let mut all = vec![Exclusive::Device(device.id.clone()), Exclusive::HostMemory];
        all.extend(root.cloned().map(Exclusive::PcieRoot));
        all
    }

    fn prepare_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        Seconds(0.3 + self.footprint(device, params).get() / 1e9)
    }

    fn verify_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        Seconds(0.02 + self.footprint(device, params).get() / 2e9)
    }

    fn prepare<'d>(&self, context: &Context<'d>, params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        let device = context.device()?;
        let plan = Plan::of(device.info(), params).map_err(DeviceError::Unsupported)?;
        Ok(Box::new(Copies::prepare(device, &plan, context.seed)?))
    }
}

/// One direction: where the pattern is written and where it must arrive.
#[derive(Clone, Copy)]
struct Route {
    source: RawBuffer,
    target: RawBuffer,
}

/// The prepared case.
struct Copies<'d> {
    info: DeviceInfo,
    place: Place,
    /// 32-bit words of one copy, after scaling.
    words: usize,
    /// Bytes of one copy, before scaling.
    size: f64,
    to_device: Option<Route>,
    to_host: Option<Route>,
    /// For the other direction of `both`.
    second: Option<Box<dyn Stream + 'd>>,
    /// Seed of the pattern in the sources; raised after each check.
    seed: u32,
    /// True if something was copied since the sources were filled.
    copied: bool,
    errors: RawBuffer,
    pattern_write: RawKernel,
    pattern_verify: RawKernel,
    _buffers: Buffers<'d>,
}

impl<'d> Copies<'d> {
    fn prepare(device: &'d dyn Device, plan: &Plan, seed: u64) -> Result<Copies<'d>, DeviceError> {
        let scale = u64::from(device.scale().bytes.max(1));
        let words = (plan.size / scale / 4).max(64) as usize;
        let bytes = Bytes::from(4 * words);
        let mut buffers = Buffers::new(device);
        let mut route = |from: Place, to: Place| -> Result<Route, DeviceError> {
            Ok(Route { source: buffers.alloc(from, bytes)?, target: buffers.alloc(to, bytes)? })
        };
        let to_device = plan.to_device.then(|| route(plan.place, Place::Device)).transpose()?;
        let to_host = plan.to_host.then(|| route(Place::Device, plan.place)).transpose()?;
        let both = plan.to_device && plan.to_host;
        let mut copies = Copies {
            info: device.info().clone(),
            place: plan.place,
            words,
            size: (words as u64 * 4 * scale) as f64,
            to_device,
            to_host,
            second: both.then(|| device.stream()).transpose()?,
            seed: (seed ^ (seed >> 32)) as u32,
            copied: false,
            errors: buffers.alloc(Place::Device, Bytes(4.0))?,
            pattern_write: device.load(KernelId::PatternWrite)?,
            pattern_verify: device.load(KernelId::PatternVerify)?,
            _buffers: buffers,
        };
        copies.fill(&mut *device.stream()?)?;
        Ok(copies)
    }

    /// Fills the sources with the pattern of the current seed.
    fn fill(&mut self, stream: &mut dyn Stream) -> Result<(), DeviceError> {
        if let Some(route) = self.to_device {
            let mut bytes = vec![0; 4 * PIECE];
            for (piece, range) in pieces(self.words) {
                let part = &mut bytes[..4 * range.len()];
                for (word, i) in part.chunks_exact_mut(4).zip(range) {
                    word.copy_from_slice(&pattern(i as u64, self.seed).to_le_bytes());
                }
                stream.upload(route.source, 4 * piece * PIECE, part)?;
            }
        }
        if let Some(route) = self.to_host {
            let args =
                [Arg::Buffer(route.source), Arg::U32(self.seed), Arg::U32(u32::MAX), Arg::U64(self.words as u64)];
            stream.launch(Launch { kernel: self.pattern_write, lanes: self.words as u64, args: &args })?;
        }
        self.copied = false;
        stream.synchronize()
    }

    /// Words of the device that do not hold the pattern.
    fn wrong_on_device(&self, stream: &mut dyn Stream, target: RawBuffer) -> Result<u64, DeviceError> {
        stream.upload(self.errors, 0, &[0; 4])?;
        let args = [
            Arg::Buffer(target),
            Arg::Buffer(self.errors),
            Arg::U32(self.seed),
            Arg::U32(0),
            Arg::U64(self.words as u64),
        ];
        stream.launch(Launch { kernel: self.pattern_verify, lanes: self.words as u64, args: &args })?;
        let mut count = [0; 4];
        stream.download(self.errors, 0, &mut count)?;
        Ok(u64::from(u32::from_le_bytes(count)))
    }

    /// Words of the host that do not hold the pattern.
    fn wrong_on_host(&self, stream: &mut dyn Stream, target: RawBuffer) -> Result<u64, DeviceError> {
        let mut wrong = 0;
        let mut bytes = vec![0; 4 * PIECE];
        for (piece, range) in pieces(self.words) {
            let part = &mut bytes[..4 * range.len()];
            stream.download(target, 4 * piece * PIECE, part)?;
            let expected = range.map(|i| (pattern(i as u64, self.seed) ^ u32::MAX).to_le_bytes());
            wrong += part.chunks_exact(4).zip(expected).filter(|(found, expected)| found != expected).count() as u64;
        }
        Ok(wrong)
    }
}

/// Words that are generated or compared at a time.
const PIECE: usize = 1 << 20;

/// Number and words of each piece.
fn pieces(words: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
    (0..words.div_ceil(PIECE)).map(move |piece| (piece, piece * PIECE..words.min((piece + 1) * PIECE)))
}

impl Workload for Copies<'_> {
    fn work(&self) -> Work {
        let directions = u64::from(self.to_device.is_some()) + u64::from(self.to_host.is_some());
        Work {
            metric: META.metrics[0].id,
            unit: Unit::BytePerSecond,
            better: Better::Higher,
            amount: self.size * directions as f64,
        }
    }

    fn engine(&self) -> Engine {
        let conditions = BTreeMap::from([(
            "host memory".to_owned(),
            if self.place == Place::HostPinned { "page-locked" } else { "pageable" }.to_owned(),
        )]);
        let name = "copy by the driver".to_owned();
        Engine { name, version: self.info.driver.clone(), library: None, kind: EngineKind::Decisive, conditions }
    }

    fn enqueue(&mut self, stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        self.copied = true;
        let size = Bytes::from(4 * self.words);
        let copy = |stream: &mut dyn Stream, route: Route| stream.copy(route.target, route.source, size);
        match (self.to_device, self.to_host, &mut self.second) {
            (Some(to_device), Some(to_host), Some(second)) => {
                // Both begin after this point, and this stream goes on after both.
                let begin = stream.record()?;
                second.wait(begin)?;
                for _ in 0..iterations {
                    copy(stream, to_device)?;
                    copy(&mut **second, to_host)?;
                }
                let end = second.record()?;
                stream.wait(end)
            }
            (to_device, to_host, _) => {
                for _ in 0..iterations {
                    for route in to_device.into_iter().chain(to_host) {
                        copy(stream, route)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn verify(&mut self, stream: &mut dyn Stream, _moment: Moment) -> Result<Check, DeviceError> {
        if !self.copied {
            self.enqueue(stream, 1)?;
        }
        stream.synchronize()?;
        if let Some(second) = &mut self.second {
            second.synchronize()?;
        }
        let on_device = self.to_device.map(|route| self.wrong_on_device(stream, route.target)).transpose()?;
        let on_host = self.to_host.map(|route| self.wrong_on_host(stream, route.target)).transpose()?;
        let wrong: Vec<String> = [("to the device", on_device), ("to the host", on_host)]
            .into_iter()
            .filter_map(|(way, count)| Some((way, count.filter(|count| *count > 0)?)))
            .map(|(way, count)| format!("{count} of {} words copied {way} are wrong", self.words))
            .collect();
        self.seed = self.seed.wrapping_add(1);
        self.fill(stream)?;
        let verified = if wrong.is_empty() { Verified::Right } else { Verified::Wrong { detail: wrong.join("; ") } };
        Ok(Check {
            verified,
            method: "every word of the last copy, with a new pattern for each check".to_owned(),
            worst: None,
        })
    }

    fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        let mut all = BTreeMap::from([("copy size".to_owned(), Observed::Value(Bytes(self.size).to_string()))]);
        if self.info.kind == DeviceKind::Cpu {
            let text = "the device is the processor itself: copies stay in its memory and cross no link";
            all.insert("link".to_owned(), Observed::NotObservable(text.to_owned()));
        }
        all
    }
}
