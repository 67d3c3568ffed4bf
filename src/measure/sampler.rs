//! Timing of one prepared workload, in the worker.
//!
//! A sample is one timed interval between two device events, long against the resolution of any device timer
//! and against the cost of a launch. A block is as many samples as fit its length, at least one; its value is
//! all work over all event time. Launch gaps between samples are outside of both.
//!
//! Two independent checks guard the event timer, per block:
//!
//! - *Rate.* An event on an idle queue is recorded and waited for, before and after the block. Its host time
//!   minus its device time is the offset between the clocks plus a delay that is never negative, so the smallest
//!   of a few tries is the best estimate. If the offset moved over the block, the clocks run at different rates.
//! - *Coverage.* The event interval of a sample may not be longer than the host's time around it, nor shorter
//!   than the host's time from the end of the enqueueing to completion: an event that is stamped before the
//!   work is complete shows here. So does a host that wakes up late, which is no fault of the timer; it delays
//!   some samples more than others, where a timer that stamps too early does so in all of them. Hence the lower
//!   quartile over the samples counts.

use crate::backend::{DeviceError, Stream, TimingEvent};
use crate::benchmark::Workload;
use crate::measure::clock::{WorkerClock, between, nanoseconds};
use crate::measure::protocol::Clocks;
use crate::record::{CaseError, CaseErrorKind, Sample};
use crate::stats;
use crate::unit::Seconds;

/// Shortest sample, unless the work of one sample is bounded by the workload.
pub const SAMPLE: Seconds = Seconds(0.02);

/// Most samples kept per block; beyond it neighbours are added up.
const SAMPLES_KEPT: usize = 256;

/// Events tried at each end of a block to relate the clocks.
const ANCHORS: usize = 5;

/// Why a block or a check has no value.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The device said so.
    Device(DeviceError),
    /// A time or value is not a finite positive number.
    NotANumber(String),
}

impl From<DeviceError> for Fault {
    fn from(error: DeviceError) -> Fault {
        Fault::Device(error)
    }
}

impl Fault {
    /// As the record states it.
    pub fn case_error(&self) -> CaseError {
        let (kind, message) = match self {
            Fault::Device(error) => (kind_of(error), error.to_string()),
            Fault::NotANumber(message) => (CaseErrorKind::NotANumber, message.clone()),
        };
        CaseError { kind, message }
    }
}

fn kind_of(error: &DeviceError) -> CaseErrorKind {
    match error {
        DeviceError::OutOfMemory(_) => CaseErrorKind::OutOfMemory,
        DeviceError::Lost(_) => CaseErrorKind::DeviceLost,
        DeviceError::Storage(_) => CaseErrorKind::Storage,
        DeviceError::Driver { .. } | DeviceError::Unsupported(_) => CaseErrorKind::Driver,
    }
}

/// What a block gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// First timed instant.
    pub start: u64,
    /// Last timed instant.
    pub end: u64,
    /// Value of the workload's metric.
    pub value: f64,
    /// Intervals.
    pub samples: Vec<Sample>,
    /// Event timer against the run's clock.
    pub clocks: Clocks,
}

/// One sample with the host's times around it.
struct Timed {
    elapsed: f64,
    /// From before the first event to completion.
    outer: f64,
    /// From the end of enqueueing to completion.
    inner: f64,
}

/// A workload on its stream, seen by a clock.
pub struct Sampler<'a> {
    /// What runs.
    pub workload: &'a mut dyn Workload,
    /// Where it is queued.
    pub stream: &'a mut dyn Stream,
    /// The run's clock.
    pub clock: &'a WorkerClock<'a>,
}

impl Sampler<'_> {
    /// Iterations of one sample of at least [`SAMPLE`] or what the workload needs (or of `block`, if that is
    /// shorter), and its length.
    /// The first iteration warms up and is not used.
    pub fn calibrate(&mut self, block: Seconds) -> Result<(u64, Seconds), Fault> {
        let target = SAMPLE.get().max(self.workload.least_sample().get()).min(block.get());
        let most = self.workload.max_iterations().clamp(1, 1 << 40);
        self.run(1)?;
        let mut iterations = 1;
        loop {
            let elapsed = self.sample(iterations)?.elapsed;
            if elapsed >= target || iterations >= most {
                return Ok((iterations, Seconds(elapsed)));
            }
            let growth = (1.1 * target / elapsed).clamp(1.25, 1000.0);
            iterations = ((iterations as f64 * growth).ceil() as u64).min(most);
        }
    }

    /// Work that is not timed.
    pub fn run(&mut self, iterations: u64) -> Result<(), Fault> {
        self.workload.enqueue(self.stream, iterations)?;
        Ok(self.stream.synchronize()?)
    }

    /// Takes samples of `iterations` until `until` on the run's clock, at least one.
    pub fn block(&mut self, iterations: u64, until: u64) -> Result<Taken, Fault> {
        let opening = self.anchors()?;
        let start = self.clock.now();
        let mut kept = Kept::default();
        let mut outside = Vec::new();
        loop {
            let timed = self.sample(iterations)?;
            outside.push(outside_bounds(&timed, opening.cost));
            kept.push(Sample { iterations, elapsed: Seconds(timed.elapsed) });
            // Event time alone ends the block too: a clock that stands still must not hold us here.
            if self.clock.now() >= until || nanoseconds(Seconds(kept.elapsed)) >= until.saturating_sub(start) {
                break;
            }
        }
        let end = self.clock.now();
        let closing = self.anchors()?;
        let value = self.workload.work().value(kept.iterations, kept.elapsed);
        if !(value.is_finite() && value > 0.0) {
            return Err(Fault::NotANumber(format!(
                "{value} from {} iterations in {} s",
                kept.iterations, kept.elapsed
            )));
        }
        let clocks = self.compare(&opening, &closing, &outside)?;
        Ok(Taken { start, end, value, samples: kept.samples, clocks })
    }

    fn sample(&mut self, iterations: u64) -> Result<Timed, Fault> {
        let begun = self.clock.now();
        let first = self.stream.record()?;
        self.workload.enqueue(self.stream, iterations)?;
        let last = self.stream.record()?;
        let queued = self.clock.now();
        self.stream.synchronize()?;
        let done = self.clock.now();
        let elapsed = self.stream.elapsed(first, last)?.get();
        if !(elapsed.is_finite() && elapsed > 0.0) {
            return Err(Fault::NotANumber(format!("{iterations} iterations took {elapsed} s by device events")));
        }
        Ok(Timed { elapsed, outer: between(begun, done).get(), inner: between(queued, done).get() })
    }

    fn anchors(&mut self) -> Result<Anchors, Fault> {
        self.stream.synchronize()?;
        let mut points = Vec::with_capacity(ANCHORS);
        let mut cost = f64::INFINITY;
        for _ in 0..ANCHORS {
            let begun = self.clock.now();
            let event = self.stream.record()?;
            self.stream.synchronize()?;
            let done = self.clock.now();
            cost = cost.min(between(begun, done).get());
            points.push((event, done));
        }
        Ok(Anchors { points, cost })
    }

    fn compare(&self, opening: &Anchors, closing: &Anchors, outside: &[f64]) -> Result<Clocks, Fault> {
        let (origin, origin_host) = opening.points[0];
        // Host time minus device time since the first event: clock offset plus a delay that is never negative.
        let offset = |anchors: &Anchors| -> Result<f64, Fault> {
            let mut least = f64::INFINITY;
            for &(event, host) in &anchors.points {
                let device = self.since(origin, event)?;
                least = least.min(between(origin_host, host).get() - device);
            }
            Ok(least)
        };
        let (last, _) = closing.points[ANCHORS - 1];
        let device = self.since(origin, last)?;
        let monotonic = device + offset(closing)? - offset(opening)?;
        Ok(Clocks { device: Seconds(device), monotonic: Seconds(monotonic), uncovered: stats::quantile(outside, 0.25) })
    }

    fn since(&self, origin: TimingEvent, event: TimingEvent) -> Result<f64, Fault> {
        if origin == event {
            return Ok(0.0);
        }
        let elapsed = self.stream.elapsed(origin, event)?.get();
        if elapsed.is_finite() {
            Ok(elapsed)
        } else {
            Err(Fault::NotANumber(format!("{elapsed} s between two device events")))
        }
    }
}

/// Events on an idle queue with the host's time when they were complete.
struct Anchors {
    points: Vec<(TimingEvent, u64)>,
    /// Cheapest event and wait.
    cost: f64,
}

/// By how much, relative to its length, a sample's event time lies outside what the host saw. `cost` is what an
/// event and a wait cost without work.
fn outside_bounds(timed: &Timed, cost: f64) -> f64 {
    let too_long = timed.elapsed - timed.outer;
    let too_short = timed.inner - cost - timed.elapsed;
    too_long.max(too_short).max(0.0) / timed.elapsed
}

/// Samples of a block, thinned by adding neighbours up so that sums stay exact.
#[derive(Default)]
struct Kept {
    samples: Vec<Sample>,
    iterations: u64,
    elapsed: f64,
}

impl Kept {
    fn push(&mut self, sample: Sample) {
        self.iterations += sample.iterations;
        self.elapsed += sample.elapsed.get();
        self.samples.push(sample);
        if self.samples.len() >= 2 * SAMPLES_KEPT {
            let add = |pair: &[Sample]| Sample {
                iterations: pair.iter().map(|s| s.iterations).sum(),
                elapsed: pair.iter().map(|s| s.elapsed).sum(),
            };
            self.samples = self.samples.chunks(2).map(add).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{Fake, Script};

    fn taken(script: Script) -> Result<Taken, Fault> {
        let fake = Fake::new(script);
        let clock = WorkerClock::new(&fake.clock, true, true);
        let (mut workload, mut stream) = (fake.workload(), fake.stream());
        let mut sampler = Sampler { workload: &mut workload, stream: &mut stream, clock: &clock };
        let (iterations, _) = sampler.calibrate(Seconds(0.3))?;
        let until = clock.now() + 300_000_000;
        sampler.block(iterations, until)
    }

    #[test]
    fn samples_are_long_and_the_value_is_work_over_time() {
        let taken = taken(Script::default()).expect("a healthy device");
        assert!((taken.value / 1e6 - 1.0).abs() < 1e-9, "{}", taken.value);
        assert!(taken.samples.iter().all(|s| s.elapsed.get() >= SAMPLE.get()), "{:?}", taken.samples);
        assert!(taken.clocks.difference() < 1e-6, "{:?}", taken.clocks);
    }

    #[test]
    fn a_timer_that_runs_one_percent_wrong_is_seen() {
        for rate in [1.01, 0.99] {
            let taken = taken(Script { timer_rate: rate, ..Script::default() }).expect("it still measures");
            assert!((0.008..0.012).contains(&taken.clocks.difference()), "{rate}: {:?}", taken.clocks);
        }
    }

    #[test]
    fn an_event_stamped_before_completion_is_seen() {
        let taken = taken(Script { early_end: 0.5, ..Script::default() }).expect("it still measures");
        assert!(taken.clocks.uncovered > 0.3, "{:?}", taken.clocks);
    }

    #[test]
    fn launch_latency_is_no_disagreement() {
        let taken = taken(Script { latency_ns: 400_000, ..Script::default() }).expect("a slow launch is healthy");
        assert!(taken.clocks.difference() < 0.001, "{:?}", taken.clocks);
    }

    #[test]
    fn a_host_that_often_wakes_up_late_is_no_disagreement() {
        let taken = taken(Script { late_ns: 2_000_000, ..Script::default() }).expect("a busy host is healthy");
        assert!(taken.clocks.difference() < 0.001, "{:?}", taken.clocks);
    }

    #[test]
    fn times_that_are_not_numbers_fail() {
        for seconds in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            let script = Script { elapsed_is: Some(seconds), ..Script::default() };
            assert!(matches!(taken(script), Err(Fault::NotANumber(_))), "{seconds}");
        }
    }

    #[test]
    fn thinning_keeps_the_sums() {
        let mut kept = Kept::default();
        for _ in 0..10_000 {
            kept.push(Sample { iterations: 3, elapsed: Seconds(0.001) });
        }
        assert!(kept.samples.len() <= 2 * SAMPLES_KEPT);
        assert_eq!(kept.samples.iter().map(|s| s.iterations).sum::<u64>(), 30_000);
        let sum: f64 = kept.samples.iter().map(|s| s.elapsed.get()).sum();
        assert!((sum - 10.0).abs() < 1e-9);
    }
}
