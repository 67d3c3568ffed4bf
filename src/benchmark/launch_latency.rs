//! Cost of launching a kernel that does nothing.

use std::collections::BTreeMap;

use super::{Benchmark, Buffers, Check, Context, Meta, MetricMeta, Moment, Observation, Work, Workload};
use crate::backend::{Arg, DeviceError, Launch, Place, RawBuffer, RawKernel, Stream};
use crate::kernel::KernelId;
use crate::record::{Better, DeviceInfo, Engine, EngineKind, Params, Verified};
use crate::unit::{Bytes, Unit};

/// Launches of an empty kernel.
pub struct LaunchLatency;

static META: Meta = Meta {
    id: "launch_latency",
    title: "Launch latency",
    measures: "Time per launch of an empty kernel when many are queued back to back, and the time from one launch to \
               its completion when the program waits for each.",
    why: "Small models and small batches launch thousands of short kernels. A slow host processor, a driver with \
          checks switched on and virtualisation make each of them dearer, however fast the GPU is.",
    method: "Empty kernels of one work item are queued in order without waiting; the time between two events around a \
             batch is divided by its length. The last launch of each batch counts in the device's memory, and the \
             count must be the number of batches: an in-order queue that reached the last has run all before it. \
             Besides, 16 times per round: event, launch, wait for completion, event; the median is the round trip.",
    limits: "Launches through this backend's interface; frameworks add their own cost, graphs avoid some of it. The \
             round trip includes marking its two ends. A driver that drops empty kernels would not be noticed, except \
             by a time that is too good.",
    version: 1,
    params: &[],
    metrics: &[
        MetricMeta {
            id: "launch_latency.time",
            unit: Unit::Second,
            better: Better::Lower,
            summary: "time per launch, queued back to back",
        },
        MetricMeta {
            id: "launch_latency.round_trip",
            unit: Unit::Second,
            better: Better::Lower,
            summary: "time from a launch to its completion as the program sees it",
        },
    ],
};

/// Round trips per check.
const ROUND_TRIPS: usize = 16;

impl Benchmark for LaunchLatency {
    fn meta(&self) -> &'static Meta {
        &META
    }

    fn supports(&self, _device: &DeviceInfo, _params: &Params) -> Result<(), String> {
        Ok(())
    }

    fn footprint(&self, _device: &DeviceInfo, _params: &Params) -> Bytes {
        Bytes(8.0)
    }

    fn prepare<'d>(&self, context: &Context<'d>, _params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        let device = context.device()?;
        let mut buffers = Buffers::new(device);
        let word = buffers.alloc(Place::Device, Bytes(4.0))?;
        let count = buffers.alloc(Place::Device, Bytes(4.0))?;
        let mut stream = device.stream()?;
        // Not the pattern's first word: verifying it finds one error each time.
        stream.upload(word, 0, &(!crate::kernel::pattern(0, 0)).to_le_bytes())?;
        stream.upload(count, 0, &[0; 4])?;
        Ok(Box::new(Launches {
            empty: device.load(KernelId::Empty)?,
            counter: device.load(KernelId::PatternVerify)?,
            word,
            count,
            batches: 0,
            round_trip: None,
            _buffers: buffers,
        }))
    }
}

/// The prepared case.
struct Launches<'d> {
    empty: RawKernel,
    /// Verifies one wrong word, which adds 1 to `count`.
    counter: RawKernel,
    word: RawBuffer,
    count: RawBuffer,
    /// Batches queued since the last check.
    batches: u32,
    round_trip: Option<f64>,
    _buffers: Buffers<'d>,
}

impl Launches<'_> {
    fn launch_counter(&self, stream: &mut dyn Stream) -> Result<(), DeviceError> {
        let args = [Arg::Buffer(self.word), Arg::Buffer(self.count), Arg::U32(0), Arg::U32(0), Arg::U64(1)];
        stream.launch(Launch { kernel: self.counter, lanes: 1, args: &args })
    }

    fn launch_empty(&self, stream: &mut dyn Stream) -> Result<(), DeviceError> {
        stream.launch(Launch { kernel: self.empty, lanes: 1, args: &[] })
    }

    /// Median time in seconds from a launch to its completion.
    fn measure_round_trip(&self, stream: &mut dyn Stream) -> Result<f64, DeviceError> {
        let mut times = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let start = stream.record()?;
            self.launch_empty(stream)?;
            stream.synchronize()?;
            let end = stream.record()?;
            stream.synchronize()?;
            times.push(stream.elapsed(start, end)?.get());
        }
        times.sort_by(f64::total_cmp);
        Ok((times[ROUND_TRIPS / 2 - 1] + times[ROUND_TRIPS / 2]) / 2.0)
    }
}

impl Workload for Launches<'_> {
    fn work(&self) -> Work {
        Work { metric: META.metrics[0].id, unit: Unit::Second, better: Better::Lower, amount: 1.0 }
    }

    fn engine(&self) -> Engine {
        Engine {
            name: "own kernel".to_owned(),
            version: None,
            library: None,
            kind: EngineKind::Decisive,
            conditions: BTreeMap::from([("kernel".to_owned(), "empty, one work item".to_owned())]),
        }
    }

    fn enqueue(&mut self, stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        if iterations == 0 {
            return Ok(());
        }
        for _ in 1..iterations {
            self.launch_empty(stream)?;
        }
        self.batches += 1;
        self.launch_counter(stream)
    }

    fn verify(&mut self, stream: &mut dyn Stream, _moment: Moment) -> Result<Check, DeviceError> {
        if self.batches == 0 {
            self.enqueue(stream, 1)?;
        }
        stream.synchronize()?;
        let mut count = [0; 4];
        stream.download(self.count, 0, &mut count)?;
        let (found, expected) = (u32::from_le_bytes(count), self.batches);
        stream.upload(self.count, 0, &[0; 4])?;
        self.batches = 0;
        self.round_trip = Some(self.measure_round_trip(stream)?);
        let verified = if found == expected {
            Verified::Right
        } else {
            Verified::Wrong { detail: format!("{found} of {expected} batches reached their last launch") }
        };
        let method = "the last launch of each batch counts in the device's memory".to_owned();
        Ok(Check { verified, method, worst: None })
    }

    fn observe(&mut self) -> Vec<Observation> {
        let round_trip = self.round_trip.take().map(|value| Observation {
            metric: META.metrics[1].id,
            unit: Unit::Second,
            better: Better::Lower,
            labels: BTreeMap::new(),
            value,
        });
        round_trip.into_iter().collect()
    }
}
