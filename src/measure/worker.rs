//! The worker: owns one device set, keeps its cases prepared, and does what the supervisor asks, one request at
//! a time. It knows no plan, no rounds and no limits.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError};

use crate::backend::{Backend, Device, DeviceError, Reading, Stream};
use crate::benchmark::{Benchmark, Context, Observation, Workload};
use crate::measure::clock::{WorkerClock, nanoseconds};
use crate::measure::protocol::{
    Accompanying, Answer, BlockReply, Checked, Mark, Message, MetricInfo, Open, Prepared, Reply, Request, TimedRequest,
    When,
};
use crate::measure::sampler::{Fault, Sampler};
use crate::record::{CaseError, CaseErrorKind, CaseId, DeviceId, MetricId, Params};
use crate::unit::{Hertz, Seconds};

/// Looks a benchmark up by id; `benchmark::find` outside of tests.
pub type Find = dyn Fn(&str) -> Option<&'static dyn Benchmark>;

/// Most marks a load reports; neighbours are merged beyond it.
const MARKS: usize = 4096;

/// Serves requests until the channel ends or `Shutdown`. `answer` sends one answer; an error of it ends the
/// worker (nobody listens any more).
pub fn serve(
    requests: &Receiver<Message>,
    mut answer: impl FnMut(Answer) -> std::io::Result<()>,
    backends: &[Box<dyn Backend>],
    find: &Find,
) -> std::io::Result<()> {
    let Ok(Message { now, request: Request::Open(open) }) = requests.recv() else { return Ok(()) };
    let devices: Result<Vec<_>, DeviceError> = open.devices.iter().map(|id| open_device(backends, id)).collect();
    let devices = match devices {
        Ok(devices) if !devices.is_empty() => devices,
        Ok(_) => return answer(failed_open(now, &DeviceError::Unsupported("an empty device set".to_owned()))),
        Err(error) => return answer(failed_open(now, &error)),
    };
    if open.aggressor {
        devices.iter().for_each(|d| d.play_neighbour());
    }
    let context =
        Context { devices: &devices, seed: open.seed, storage: open.storage.clone(), aggressor: open.aggressor };
    let stream = match devices[0].stream() {
        Ok(stream) => stream,
        Err(error) => return answer(failed_open(now, &error)),
    };
    let mut worker = Worker::new(&context, &open, stream, find);
    worker.clock.hear(now);
    // Some runtimes open a device that is gone; none completes a queue on it.
    if let Err(error) = worker.stream.synchronize() {
        return answer(failed_open(now, &error));
    }
    answer(worker.answer(Reply::Opened { devices: devices.iter().map(|d| d.info().clone()).collect() }))?;
    while let Ok(message) = requests.recv() {
        worker.clock.hear(message.now);
        let reply = match message.request {
            Request::Shutdown => break,
            Request::Stop => continue, // came after the load had ended by itself
            request => worker.reply(request, requests),
        };
        answer(worker.answer(reply))?;
    }
    Ok(())
}

fn open_device(backends: &[Box<dyn Backend>], id: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
    let backend = backends.iter().find(|b| b.id() == id.backend);
    backend.ok_or_else(|| DeviceError::Unsupported(format!("{id}: no such backend here")))?.open(id)
}

fn failed_open(now: u64, error: &DeviceError) -> Answer {
    Answer { now, readings: Vec::new(), reply: failed(&Fault::Device(error.clone())) }
}

fn failed(fault: &Fault) -> Reply {
    match fault {
        Fault::Device(DeviceError::Unsupported(reason)) => Reply::Unsupported { reason: reason.clone() },
        fault => Reply::Failed { error: fault.case_error() },
    }
}

fn internal(message: String) -> Reply {
    Reply::Failed { error: CaseError { kind: CaseErrorKind::Internal, message } }
}

/// A case that is ready to run.
struct Ready<'d> {
    workload: Box<dyn Workload + 'd>,
    iterations: u64,
    sample: Seconds,
    /// Nothing was timed since it was prepared; other cases were, and its pages and clocks may be cold.
    fresh: bool,
}

struct Worker<'d> {
    context: &'d Context<'d>,
    stream: Box<dyn Stream + 'd>,
    clock: WorkerClock<'d>,
    ready: BTreeMap<CaseId, Ready<'d>>,
    /// Not yet reported.
    readings: Vec<Reading>,
    find: &'d Find,
}

impl<'d> Worker<'d> {
    fn new(context: &'d Context<'d>, open: &Open, stream: Box<dyn Stream + 'd>, find: &'d Find) -> Worker<'d> {
        let first = &context.devices[0];
        let clock = WorkerClock::new(first.clock(), first.info().simulated, open.virtual_time);
        Worker { context, stream, clock, ready: BTreeMap::new(), readings: Vec::new(), find }
    }

    fn answer(&mut self, reply: Reply) -> Answer {
        self.collect_readings();
        Answer { now: self.clock.now(), readings: std::mem::take(&mut self.readings), reply }
    }

    /// Readings only this process can make; those that JSON cannot carry are dropped.
    fn collect_readings(&mut self) {
        let all = self.context.devices.iter().flat_map(|d| d.readings());
        self.readings.extend(all.filter(|r| r.value.is_finite()));
    }

    fn reply(&mut self, request: Request, requests: &Receiver<Message>) -> Reply {
        let result = match request {
            Request::Prepare { case, benchmark, params, block } => self.prepare(case, &benchmark, &params, block),
            Request::Block(ask) => self.block(&ask),
            Request::Load(ask) => self.load(&ask, requests),
            Request::Verify { case, when } => self.verify(&case, when),
            Request::Release { case } => {
                self.ready.remove(&case);
                Ok(Reply::Released)
            }
            Request::Open(_) | Request::Stop | Request::Shutdown => Ok(internal("request out of order".to_owned())),
        };
        result.unwrap_or_else(|fault| failed(&fault))
    }

    fn prepare(&mut self, case: CaseId, benchmark: &str, params: &Params, block: Seconds) -> Result<Reply, Fault> {
        let Some(benchmark) = (self.find)(benchmark) else {
            return Ok(internal(format!("no benchmark is called \"{benchmark}\"")));
        };
        let Some(primary) = benchmark.meta().metrics.first() else {
            return Ok(internal(format!("{} has no metric", benchmark.meta().id)));
        };
        self.ready.remove(&case); // what it held must be free before it is allocated again
        let mut workload = benchmark.prepare(self.context, params)?;
        let work = workload.work();
        let mut sampler = Sampler { workload: &mut *workload, stream: &mut *self.stream, clock: &self.clock };
        let (iterations, sample) = sampler.calibrate(block)?;
        workload.observe(); // calibration is not a result
        self.ready.insert(case, Ready { workload, iterations, sample, fresh: true });
        let info = |metric: &str, unit, better| MetricInfo { metric: MetricId(metric.to_owned()), unit, better };
        // The unit of the work is authoritative: integer types report OP/s under the same metric.
        let unit = if primary.id == work.metric { work.unit } else { primary.unit };
        Ok(Reply::Prepared(Prepared {
            work: info(work.metric, work.unit, work.better),
            primary: info(primary.id, unit, primary.better),
            iterations,
            sample,
        }))
    }

    /// Runs `f` on a prepared case and its sampler after the common start.
    fn timed<T>(
        &mut self,
        ask: &TimedRequest,
        f: impl FnOnce(&mut Sampler<'_>, u64) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Some(ready) = self.ready.get_mut(&ask.case) else {
            let message = format!("{} is not prepared", ask.case);
            return Err(Fault::Device(DeviceError::Driver { call: "block".to_owned(), message }));
        };
        for device in self.context.devices {
            device.companions(&ask.companions);
        }
        self.clock.sleep_until(ask.start_at);
        let mut sampler = Sampler { workload: &mut *ready.workload, stream: &mut *self.stream, clock: &self.clock };
        // A lead-in of one sample; from the second block on only if that is no great part of the block.
        let fresh = std::mem::take(&mut ready.fresh);
        if ask.lead_in && (fresh || ready.sample.get() <= 0.25 * ask.length.get()) {
            sampler.run(ready.iterations)?;
            sampler.workload.observe();
        }
        let taken = f(&mut sampler, ready.iterations);
        for device in self.context.devices {
            device.companions(&[]);
        }
        taken
    }

    fn block(&mut self, ask: &TimedRequest) -> Result<Reply, Fault> {
        let until = ask.start_at + nanoseconds(ask.length);
        let (taken, observations) = self.timed(ask, |sampler, iterations| {
            let taken = sampler.block(iterations, until)?;
            Ok((taken, sampler.workload.observe()))
        })?;
        self.collect_readings();
        let clock = held_clock(&self.readings, &self.context.devices[0].info().id, taken.start, taken.end);
        Ok(Reply::Block(BlockReply {
            start: taken.start,
            end: taken.end,
            value: taken.value,
            samples: taken.samples,
            clocks: taken.clocks,
            clock,
            observations: observations.into_iter().filter_map(accompanying).collect(),
        }))
    }

    fn load(&mut self, ask: &TimedRequest, requests: &Receiver<Message>) -> Result<Reply, Fault> {
        let until = ask.start_at + nanoseconds(ask.length);
        let marks = self.timed(ask, |sampler, iterations| {
            let mut marks = vec![Mark { at: sampler.clock.now(), iterations: 0 }];
            let mut done = 0;
            let told = |clock: &WorkerClock<'_>| {
                !clock.is_virtual() && !matches!(requests.try_recv(), Err(TryRecvError::Empty))
            };
            while sampler.clock.now() < until && !told(sampler.clock) {
                let before = sampler.clock.now();
                sampler.run(iterations)?;
                done += iterations;
                push_mark(&mut marks, Mark { at: sampler.clock.now(), iterations: done });
                if sampler.clock.now() <= before {
                    return Err(Fault::NotANumber("the clock stood still during a load".to_owned()));
                }
            }
            sampler.workload.observe();
            Ok(marks)
        })?;
        Ok(Reply::Load { marks })
    }

    fn verify(&mut self, case: &CaseId, when: When) -> Result<Reply, Fault> {
        let Some(ready) = self.ready.get_mut(case) else {
            return Ok(internal(format!("{case} is not prepared")));
        };
        let check = ready.workload.verify(&mut *self.stream, when.into())?;
        ready.workload.observe();
        Ok(Reply::Checked(Checked {
            verified: check.verified,
            method: check.method,
            worst: check.worst.filter(|w| w.is_finite()),
            engine: ready.workload.engine(),
            ceiling: ready.workload.ceiling().filter(|c| c.value.is_finite() && c.value > 0.0),
            conditions: ready.workload.conditions(),
        }))
    }
}

fn push_mark(marks: &mut Vec<Mark>, mark: Mark) {
    marks.push(mark);
    if marks.len() > MARKS {
        // Cumulative counts: dropping every other mark loses resolution, no work. The last one stays.
        let last = marks.len() - 1;
        let mut index = 0;
        marks.retain(|_| {
            index += 1;
            (index - 1) % 2 == 0 || index - 1 == last
        });
    }
}

fn accompanying(o: Observation) -> Option<Accompanying> {
    let info = MetricInfo { metric: MetricId(o.metric.to_owned()), unit: o.unit, better: o.better };
    o.value.is_finite().then_some(Accompanying { info, labels: o.labels, value: o.value })
}

/// Mean of the device's own `clock` sensor within the block, where there is one.
fn held_clock(readings: &[Reading], device: &DeviceId, start: u64, end: u64) -> Option<Hertz> {
    let device = device.to_string();
    let within = |r: &&Reading| r.sensor == "clock" && r.source == device && (start..=end).contains(&r.at);
    let values: Vec<f64> = readings.iter().filter(within).map(|r| r.value).collect();
    (!values.is_empty()).then(|| Hertz(values.iter().sum::<f64>() / values.len() as f64))
}
