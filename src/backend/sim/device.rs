//! One opened simulated device: buffers that hold really computed results, and a virtual timeline.
//!
//! Launches are queued as on a real device: the host's time advances by the cost of a launch, the device's by
//! that of the work, and `synchronize` brings them together. An operation whose inputs have not changed since
//! it last produced its output is not computed again: its result is already there.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::compute;
use super::describe::{Faults, Trigger};
use super::model::{Access, Circumstances, Cost, Direction, Model, Resource, Work};
use crate::backend::{
    Arg, Clock, Companion, Device, DeviceError, GemmPlan, GemmProblem, Launch, Place, RawBuffer, RawGemm, RawKernel,
    Reading, Stream, TimingEvent,
};
use crate::kernel::{ArgKind, KernelId};
use crate::record::{DataType, DeviceInfo, Engine, EngineKind, Value};
use crate::unit::{Bytes, Seconds, Unit};

/// Host time of a launch and of waiting for completion, in nanoseconds.
const LAUNCH_NS: f64 = 2200.0;
const SYNC_NS: f64 = 4000.0;
/// Interval of sensor readings, in nanoseconds.
const SENSOR_NS: f64 = 200e6;
/// Most readings kept between two calls of `readings`.
const READINGS_KEPT: usize = 100_000;
/// Memory the driver itself holds.
const DRIVER_BYTES: f64 = 512.0 * 1024.0 * 1024.0;

/// An opened simulated device.
pub struct SimDevice {
    info: DeviceInfo,
    model: Model,
    faults: Faults,
    /// Nanoseconds at which all simulated time begins.
    epoch: u64,
    state: Mutex<State>,
}

/// What has become of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Fate {
    #[default]
    Works,
    /// Queued work never completes.
    Hangs,
    /// Gone.
    Lost,
}

struct Buffer {
    data: Vec<u8>,
    place: Place,
    /// Changes whenever the content does.
    version: u64,
}

/// An operation with its arguments: which, then lanes or edges and the bits of each argument.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Operation(&'static str, [u64; 6]);

/// What produced the content of a buffer.
#[derive(PartialEq)]
struct Origin {
    operation: Operation,
    /// Handle and version of up to two inputs.
    inputs: [(u64, u64); 2],
    /// Version of the output it made.
    output: u64,
}

/// Times are nanoseconds since the epoch.
struct State {
    fate: Fate,
    /// The host's time.
    now: f64,
    /// When each engine is free: kernels, copies in, copies out.
    engines: [f64; 3],
    /// When each stream's queued work ends.
    streams: Vec<f64>,
    events: Vec<f64>,
    buffers: HashMap<u64, Buffer>,
    origins: HashMap<u64, Origin>,
    gemms: Vec<GemmProblem>,
    last_handle: u64,
    last_version: u64,
    /// Device memory in use, in true size.
    used: f64,
    launches: u64,
    companions: [u32; 4],
    has_companions: bool,
    is_neighbour: bool,
    temperature: f64,
    /// How far temperature and sensors have been followed.
    followed: f64,
    next_reading: f64,
    readings: Vec<Reading>,
}

impl SimDevice {
    /// Opens it at the epoch, cool and idle.
    pub fn new(info: DeviceInfo, model: Model, faults: Faults, epoch: u64) -> SimDevice {
        let state = State {
            fate: Fate::Works,
            now: 0.0,
            engines: [0.0; 3],
            streams: Vec::new(),
            events: Vec::new(),
            buffers: HashMap::new(),
            origins: HashMap::new(),
            gemms: Vec::new(),
            last_handle: 0,
            last_version: 0,
            used: 0.0,
            launches: 0,
            companions: [0; 4],
            has_companions: false,
            is_neighbour: false,
            temperature: model.idle_temperature(),
            followed: 0.0,
            next_reading: SENSOR_NS,
            readings: Vec::new(),
        };
        SimDevice { info, model, faults, epoch, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in true size.
    fn true_bytes(&self, scaled: usize) -> f64 {
        scaled as f64 * f64::from(self.info.scale.bytes)
    }

    /// Puts `work` on the timeline of `stream`; faults that strike now do.
    fn queue(&self, state: &mut State, stream: usize, work: Work) -> Result<(), DeviceError> {
        self.alive(state)?;
        state.launches += 1;
        state.now += LAUNCH_NS;
        self.strike(state, work)?;
        let engine = match work {
            Work::Link(Direction::In, ..) => 1,
            Work::Link(Direction::Out, ..) => 2,
            _ => 0,
        };
        let start = state.now.max(state.streams[stream]).max(state.engines[engine]);
        self.follow_idle(state, start);
        let at = Circumstances {
            time: start * 1e-9,
            companions: state.companions,
            is_neighbour: state.is_neighbour && state.has_companions,
            temperature: state.temperature,
        };
        let cost = self.model.cost(work, &at);
        let end = start + cost.seconds * 1e9;
        state.streams[stream] = end;
        state.engines[engine] = end;
        self.follow(state, end, &cost, 1.0);
        Ok(())
    }

    fn alive(&self, state: &State) -> Result<(), DeviceError> {
        match state.fate {
            Fate::Lost => Err(DeviceError::Lost("SIMULATED: the device has fallen off the bus".to_owned())),
            Fate::Works | Fate::Hangs => Ok(()),
        }
    }

    fn strike(&self, state: &mut State, work: Work) -> Result<(), DeviceError> {
        let strikes = |trigger: Option<Trigger>| match trigger {
            None => false,
            Some(Trigger::Launch(n)) => state.launches >= n,
            Some(Trigger::After(seconds)) => state.now >= seconds * 1e9,
            Some(Trigger::Gemm(t)) => matches!(work, Work::Gemm(of, _) if of == t),
        };
        if strikes(self.faults.crash) {
            std::process::abort();
        }
        if strikes(self.faults.lost) {
            state.fate = Fate::Lost;
        } else if strikes(self.faults.hang) {
            state.fate = Fate::Hangs;
        }
        self.alive(state)
    }

    /// Lets temperature and sensors follow up to `to` at the cost of some work, with `load` shown as busy.
    fn follow(&self, state: &mut State, to: f64, cost: &Cost, load: f64) {
        // A jump of hours is not read every fifth of a second.
        state.next_reading = state.next_reading.max(to - SENSOR_NS * READINGS_KEPT as f64);
        while state.next_reading <= to {
            let at = state.next_reading.max(state.followed);
            state.temperature = self.model.temperature(state.temperature, cost.power, (at - state.followed) * 1e-9);
            state.followed = at;
            self.read_sensors(state, at, cost, load);
            state.next_reading += SENSOR_NS;
        }
        if to > state.followed {
            let seconds = (to - state.followed) * 1e-9;
            state.temperature = self.model.temperature(state.temperature, cost.power, seconds);
            state.followed = to;
        }
    }

    fn follow_idle(&self, state: &mut State, to: f64) {
        let idle = Cost { seconds: 0.0, clock: self.model.idle_clock(), power: self.model.idle_power(), throttle: 0 };
        self.follow(state, to, &idle, 0.0);
    }

    fn read_sensors(&self, state: &mut State, at: f64, cost: &Cost, load: f64) {
        if self.faults.no_telemetry || state.readings.len() >= READINGS_KEPT {
            return;
        }
        let load = if self.model.neighbour_works(at * 1e-9) { 1.0 } else { load };
        let mut add = |sensor: &str, unit: Unit, value: f64| {
            state.readings.push(Reading {
                source: self.info.id.to_string(),
                sensor: sensor.to_owned(),
                unit,
                counter: false,
                at: self.epoch + at as u64,
                value,
            });
        };
        add("clock", Unit::Hertz, cost.clock);
        add("power", Unit::Watt, cost.power);
        add("power_limit", Unit::Watt, self.model.power_limit);
        add("throttle", Unit::Count, f64::from(cost.throttle));
        add("load", Unit::Ratio, load);
        add("memory_used", Unit::Byte, state.used + DRIVER_BYTES + self.model.neighbour_memory());
        if let Some((generation, lanes)) = self.model.link {
            add("link_generation", Unit::Count, generation as f64);
            add("link_width", Unit::Count, f64::from(lanes));
        }
        add("temperature", Unit::Celsius, state.temperature);
    }

    /// One element of C as a fault would leave it.
    fn spoiled(&self, data_type: DataType, at: usize, elements: usize) -> impl Fn(usize, f64) -> f64 {
        let wrong = self.faults.wrong_gemm.contains(&data_type);
        let nan = self.faults.nan.contains(&data_type);
        let victim = at % elements.max(1);
        move |i, x| match (i == victim, nan, wrong) {
            (true, true, _) => f64::NAN,
            // More than any rounding of any type at the sizes of the simulation.
            (true, _, true) => x + 64.0,
            _ => x,
        }
    }
}

impl Clock for SimDevice {
    fn now(&self) -> u64 {
        self.epoch + self.state().now as u64
    }
    fn sleep_until(&self, t: u64) {
        let mut state = self.state();
        let to = t.saturating_sub(self.epoch) as f64;
        if to > state.now {
            state.now = to;
            if to > state.followed {
                self.follow_idle(&mut state, to);
            }
        }
    }
}

impl Device for SimDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn clock(&self) -> &dyn Clock {
        self
    }
    fn alloc(&self, place: Place, size: Bytes) -> Result<RawBuffer, DeviceError> {
        let mut state = self.state();
        self.alive(&state)?;
        if place == Place::Device {
            let used = state.used + self.true_bytes(size.count());
            let free = self.model.memory - DRIVER_BYTES - self.model.neighbour_memory();
            if used > free {
                let message = format!("SIMULATED: {} of {} used", Bytes(used), Bytes(free.max(0.0)));
                return Err(DeviceError::OutOfMemory(message));
            }
            state.used = used;
        }
        state.last_handle += 1;
        let handle = state.last_handle;
        let version = state.next_version();
        state.buffers.insert(handle, Buffer { data: vec![0; size.count()], place, version });
        Ok(RawBuffer(handle))
    }
    fn free(&self, buffer: RawBuffer) {
        let mut state = self.state();
        state.origins.remove(&buffer.0);
        if let Some(Buffer { data, place: Place::Device, .. }) = state.buffers.remove(&buffer.0) {
            state.used -= self.true_bytes(data.len());
        }
    }
    fn load(&self, kernel: KernelId) -> Result<RawKernel, DeviceError> {
        self.alive(&self.state())?;
        if let Some(t) = kernel_type(kernel)
            && !self.info.fma_types.contains(&t)
        {
            return Err(DeviceError::Unsupported(format!("{} has no {t} vector rate", self.info.name)));
        }
        let index = KernelId::ALL.iter().position(|k| *k == kernel);
        index.map(|i| RawKernel(i as u64)).ok_or_else(|| DeviceError::Unsupported(format!("kernel {kernel}")))
    }
    fn gemm(&self, problem: &GemmProblem) -> Result<GemmPlan, DeviceError> {
        let mut state = self.state();
        self.alive(&state)?;
        let roundoff =
            compute::roundoff(problem.data_type).filter(|_| self.info.gemm_types.contains(&problem.data_type));
        let Some((unit_roundoff, output_roundoff)) = roundoff else {
            return Err(DeviceError::Unsupported(format!("{} has no {} GEMM", self.info.name, problem.data_type)));
        };
        if problem.m == 0 || problem.n == 0 || problem.k == 0 {
            return Err(refused("gemm", "an edge is zero"));
        }
        state.gemms.push(*problem);
        let engine = Engine {
            name: "simulated".to_owned(),
            version: None,
            library: None,
            kind: EngineKind::Decisive,
            conditions: [("accumulate".to_owned(), accumulate(problem.data_type).to_owned())].into(),
        };
        let raw = RawGemm(state.gemms.len() as u64 - 1);
        Ok(GemmPlan { raw, engine, size_c: compute::size_c(problem.data_type), unit_roundoff, output_roundoff })
    }
    fn stream(&self) -> Result<Box<dyn Stream + '_>, DeviceError> {
        let mut state = self.state();
        self.alive(&state)?;
        let now = state.now;
        state.streams.push(now);
        Ok(Box::new(SimStream { device: self, index: state.streams.len() - 1 }))
    }
    fn companions(&self, others: &[Companion]) {
        let mut state = self.state();
        state.companions = [0; 4];
        state.has_companions = !others.is_empty();
        for resource in others.iter().flat_map(resources) {
            state.companions[resource as usize] += 1;
        }
    }
    fn play_neighbour(&self) {
        self.state().is_neighbour = true;
    }
    fn readings(&self) -> Vec<Reading> {
        std::mem::take(&mut self.state().readings)
    }
}

/// The parts of the device that another process keeps busy, by the words of its case.
fn resources(companion: &Companion) -> Vec<Resource> {
    let named = |word: &str| match word {
        "gemm" | "fma_peak" | "compute" => Some(Resource::Compute),
        "memory_bandwidth" | "memory" | "bandwidth" | "dram" => Some(Resource::Dram),
        "memory_latency" | "cache" => Some(Resource::Cache),
        "host_link" | "transfer" | "link" => Some(Resource::Link),
        _ => None,
    };
    let words = companion.params.0.values().filter_map(|v| match v {
        Value::Word(word) => Some(word.as_str()),
        _ => None,
    });
    let mut found: Vec<Resource> =
        std::iter::once(companion.benchmark.as_str()).chain(words).filter_map(named).collect();
    found.sort();
    found.dedup();
    found
}

/// Type of an arithmetic kernel.
fn kernel_type(kernel: KernelId) -> Option<DataType> {
    match kernel {
        KernelId::FmaFp64 => Some(DataType::Fp64),
        KernelId::FmaFp32 => Some(DataType::Fp32),
        KernelId::FmaFp16 => Some(DataType::Fp16),
        KernelId::DotInt8 => Some(DataType::Int8),
        _ => None,
    }
}

fn accumulate(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Fp64 => "fp64",
        DataType::Int8 => "int32",
        _ => "fp32",
    }
}

fn refused(call: &str, message: &str) -> DeviceError {
    DeviceError::Driver { call: call.to_owned(), message: format!("SIMULATED: {message}") }
}

impl State {
    fn next_version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    fn buffer(&self, call: &str, handle: RawBuffer) -> Result<&Buffer, DeviceError> {
        self.buffers.get(&handle.0).ok_or_else(|| refused(call, "no such buffer"))
    }

    /// The first `size` bytes of a buffer.
    fn bytes(&self, call: &str, handle: RawBuffer, size: usize) -> Result<&[u8], DeviceError> {
        self.buffer(call, handle)?.data.get(..size).ok_or_else(|| refused(call, "beyond the end of a buffer"))
    }

    /// Computes the first `size` bytes of `out` from `inputs`, unless they still hold exactly that.
    fn produce(
        &mut self,
        call: &str,
        operation: Operation,
        inputs: &[RawBuffer],
        (out, size): (RawBuffer, usize),
        compute: impl FnOnce(&[&[u8]], &mut [u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.bytes(call, out, size)?;
        let mut versions = [(0, 0); 2];
        for (version, input) in versions.iter_mut().zip(inputs) {
            *version = (input.0, self.buffer(call, *input)?.version);
        }
        let current = self.buffer(call, out)?.version;
        let is_there = self
            .origins
            .get(&out.0)
            .is_some_and(|o| o.output == current && o.operation == operation && o.inputs == versions);
        if is_there {
            return Ok(());
        }
        // The output leaves the map while its inputs are read; an output that is also an input is copied.
        let mut data = match self.buffers.get_mut(&out.0) {
            Some(buffer) if inputs.contains(&out) => buffer.data.clone(),
            Some(buffer) => std::mem::take(&mut buffer.data),
            None => return Err(refused(call, "no such buffer")),
        };
        let sources: Vec<&[u8]> = inputs.iter().map(|b| self.buffers.get(&b.0).map_or(&[][..], |b| &b.data)).collect();
        let result = compute(&sources, &mut data[..size]);
        let version = self.next_version();
        if let Some(buffer) = self.buffers.get_mut(&out.0) {
            buffer.data = data;
            buffer.version = version;
        }
        self.origins.insert(out.0, Origin { operation, inputs: versions, output: version });
        result
    }
}

/// An in-order queue of a simulated device.
struct SimStream<'d> {
    device: &'d SimDevice,
    index: usize,
}

impl SimStream<'_> {
    /// Host time catches up with everything queued here; never returns if the device hangs.
    fn complete(&self) -> Result<MutexGuard<'_, State>, DeviceError> {
        let mut state = self.device.state();
        if state.fate == Fate::Hangs {
            drop(state);
            loop {
                std::thread::sleep(std::time::Duration::from_secs(3600));
            }
        }
        self.device.alive(&state)?;
        state.now = state.now.max(state.streams[self.index]) + SYNC_NS;
        Ok(state)
    }
}

impl Stream for SimStream<'_> {
    fn copy(&mut self, to: RawBuffer, from: RawBuffer, size: Bytes) -> Result<(), DeviceError> {
        let mut state = self.device.state();
        let (call, size) = ("copy", size.count());
        state.bytes(call, from, size)?;
        let (target, source) = (state.buffer(call, to)?.place, state.buffer(call, from)?.place);
        let bytes = self.device.true_bytes(size);
        let pinned = Place::HostPinned;
        let work = match (source, target) {
            (Place::Device, Place::Device) => Work::Traffic(Access::Mixed, 2.0 * bytes, 2.0 * bytes),
            (host, Place::Device) => Work::Link(Direction::In, bytes, host == pinned),
            (Place::Device, host) => Work::Link(Direction::Out, bytes, host == pinned),
            _ => Work::Host(bytes),
        };
        self.device.queue(&mut state, self.index, work)?;
        state.produce(call, Operation("copy", [size as u64, 0, 0, 0, 0, 0]), &[from], (to, size), |sources, out| {
            out.copy_from_slice(&sources[0][..size]);
            Ok(())
        })
    }

    fn upload(&mut self, to: RawBuffer, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        let mut state = self.complete()?;
        let bytes = self.device.true_bytes(data.len());
        let version = state.next_version();
        let buffer = state.buffers.get_mut(&to.0).ok_or_else(|| refused("upload", "no such buffer"))?;
        let end = offset.checked_add(data.len());
        let target = end.and_then(|end| buffer.data.get_mut(offset..end));
        target.ok_or_else(|| refused("upload", "beyond the end of a buffer"))?.copy_from_slice(data);
        buffer.version = version;
        self.device.queue(&mut state, self.index, Work::Link(Direction::In, bytes, false))?;
        drop(state);
        self.complete().map(drop)
    }

    fn download(&mut self, from: RawBuffer, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        let mut state = self.complete()?;
        let bytes = self.device.true_bytes(data.len());
        let buffer = state.buffer("download", from)?;
        let end = offset.checked_add(data.len());
        let source = end.and_then(|end| buffer.data.get(offset..end));
        data.copy_from_slice(source.ok_or_else(|| refused("download", "beyond the end of a buffer"))?);
        self.device.queue(&mut state, self.index, Work::Link(Direction::Out, bytes, false))?;
        drop(state);
        self.complete().map(drop)
    }

    fn launch(&mut self, launch: Launch<'_>) -> Result<(), DeviceError> {
        let kernel = KernelId::ALL.get(launch.kernel.0 as usize);
        let kernel = *kernel.ok_or_else(|| refused("launch", "no such kernel"))?;
        let args = Args::check(kernel, launch.args)?;
        let mut state = self.device.state();
        self.device.alive(&state)?;
        // Computing first refuses what does not fit before any of it is on the timeline.
        run_kernel(&mut state, kernel, launch.lanes as usize, &args)?;
        let work = self.device.work_of(&state, kernel, launch.lanes, &args)?;
        self.device.queue(&mut state, self.index, work)
    }

    fn gemm(&mut self, plan: RawGemm, a: RawBuffer, b: RawBuffer, c: RawBuffer) -> Result<(), DeviceError> {
        let mut state = self.device.state();
        let problem = *state.gemms.get(plan.0 as usize).ok_or_else(|| refused("gemm", "no such plan"))?;
        let GemmProblem { data_type, m, n, k } = problem;
        let (size, size_c) = (data_type.size(), compute::size_c(data_type));
        state.bytes("gemm", a, m * k * size)?;
        state.bytes("gemm", b, n * k * size)?;
        state.bytes("gemm", c, m * n * size_c)?;
        let edge = f64::from(self.device.info.scale.edge);
        let true_edges = [m, n, k].map(|e| e as f64 * edge);
        self.device.queue(&mut state, self.index, Work::Gemm(data_type, true_edges))?;
        let spoil = self.device.spoiled(data_type, 7919, m * n);
        let operation = Operation("gemm", [plan.0, 0, 0, 0, 0, 0]);
        state.produce("gemm", operation, &[a, b], (c, m * n * size_c), |sources, out| {
            let (a, b) = (&sources[0][..m * k * size], &sources[1][..n * k * size]);
            compute::gemm(data_type, [m, n, k], a, b, out, spoil);
            Ok(())
        })
    }

    fn record(&mut self) -> Result<TimingEvent, DeviceError> {
        let mut state = self.device.state();
        self.device.alive(&state)?;
        let at = state.now.max(state.streams[self.index]);
        state.events.push(at);
        Ok(TimingEvent(state.events.len() as u64 - 1))
    }

    fn wait(&mut self, event: TimingEvent) -> Result<(), DeviceError> {
        let mut state = self.device.state();
        self.device.alive(&state)?;
        let at = *state.events.get(event.0 as usize).ok_or_else(|| refused("wait", "no such event"))?;
        state.streams[self.index] = state.streams[self.index].max(at);
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.complete().map(drop)
    }

    fn elapsed(&self, start: TimingEvent, end: TimingEvent) -> Result<Seconds, DeviceError> {
        let state = self.device.state();
        let at =
            |e: TimingEvent| state.events.get(e.0 as usize).copied().ok_or_else(|| refused("elapsed", "no such event"));
        let skew = 1.0 + self.device.faults.clock_skew.unwrap_or(0.0);
        Ok(Seconds((at(end)? - at(start)?) * 1e-9 * skew))
    }
}

/// Arguments of a launch, known to fit the kernel.
struct Args<'a>(&'a [Arg]);

impl<'a> Args<'a> {
    fn check(kernel: KernelId, args: &'a [Arg]) -> Result<Args<'a>, DeviceError> {
        let kind = |a: &Arg| match a {
            Arg::Buffer(_) => ArgKind::Buffer,
            Arg::U32(_) => ArgKind::U32,
            Arg::I32(_) => ArgKind::I32,
            Arg::U64(_) => ArgKind::U64,
            Arg::F32(_) => ArgKind::F32,
            Arg::F64(_) => ArgKind::F64,
        };
        let fits = args.len() == kernel.args().len() && args.iter().zip(kernel.args()).all(|(a, k)| kind(a) == *k);
        if fits { Ok(Args(args)) } else { Err(refused("launch", &format!("arguments do not fit {kernel}"))) }
    }
    fn buffer(&self, i: usize) -> RawBuffer {
        match self.0.get(i) {
            Some(Arg::Buffer(b)) => *b,
            _ => RawBuffer(0), // no buffer has this handle
        }
    }
    fn u32(&self, i: usize) -> u32 {
        match self.0.get(i) {
            Some(Arg::U32(x)) => *x,
            Some(Arg::I32(x)) => *x as u32,
            _ => 0,
        }
    }
    fn f32(&self, i: usize) -> f32 {
        match self.0.get(i) {
            Some(Arg::F32(x)) => *x,
            _ => 0.0,
        }
    }
    fn f64(&self, i: usize) -> f64 {
        match self.0.get(i) {
            Some(Arg::F64(x)) => *x,
            _ => 0.0,
        }
    }
    /// Lanes and the bits of every argument.
    fn bits(&self, lanes: usize) -> [u64; 6] {
        let mut bits = [lanes as u64, 0, 0, 0, 0, 0];
        for (bits, arg) in bits[1..].iter_mut().zip(self.0) {
            *bits = match *arg {
                Arg::Buffer(b) => b.0,
                Arg::U32(x) => u64::from(x),
                Arg::I32(x) => u64::from(x as u32),
                Arg::U64(x) => x,
                Arg::F32(x) => u64::from(x.to_bits()),
                Arg::F64(x) => x.to_bits(),
            };
        }
        bits
    }
    /// The element count: the only 64-bit argument.
    fn n(&self) -> usize {
        self.0.iter().find_map(|a| if let Arg::U64(n) = a { usize::try_from(*n).ok() } else { None }).unwrap_or(0)
    }
}

impl SimDevice {
    /// A launch as work in true sizes.
    fn work_of(&self, state: &State, kernel: KernelId, lanes: u64, args: &Args<'_>) -> Result<Work, DeviceError> {
        let array = 4.0 * self.true_bytes(args.n());
        let scale = f64::from(self.info.scale.iterations);
        let operations = |each: f64, iterations: u32| lanes as f64 * each * f64::from(iterations) * scale;
        Ok(match kernel {
            KernelId::Read | KernelId::PatternVerify => Work::Traffic(Access::Read, array, array),
            KernelId::Write | KernelId::PatternWrite => Work::Traffic(Access::Write, array, array),
            KernelId::Copy | KernelId::Scale => Work::Traffic(Access::Mixed, 2.0 * array, 2.0 * array),
            KernelId::Add | KernelId::Triad => Work::Traffic(Access::Mixed, 3.0 * array, 3.0 * array),
            KernelId::FmaFp64 => Work::Fma(DataType::Fp64, operations(2.0, args.u32(3))),
            KernelId::FmaFp32 => Work::Fma(DataType::Fp32, operations(2.0, args.u32(3))),
            KernelId::FmaFp16 => Work::Fma(DataType::Fp16, operations(2.0, args.u32(3))),
            KernelId::DotInt8 => Work::Fma(DataType::Int8, operations(8.0, args.u32(2))),
            KernelId::Chase => {
                let touched = self.true_bytes(state.buffer("launch", args.buffer(0))?.data.len());
                Work::Chase(f64::from(args.u32(3)), touched)
            }
            KernelId::Empty => Work::Empty,
        })
    }
}

/// Really does what the kernel says.
fn run_kernel(state: &mut State, kernel: KernelId, lanes: usize, args: &Args<'_>) -> Result<(), DeviceError> {
    let call = kernel.entry();
    let size = args.n().checked_mul(4).ok_or_else(|| refused(call, "more elements than memory holds"))?;
    let lane_bytes = |each: usize| lanes.checked_mul(each).ok_or_else(|| refused(call, "too many lanes"));
    let operation = Operation(call, args.bits(lanes));
    let both = [args.buffer(0), args.buffer(1)];
    let inputs = match kernel {
        KernelId::Read | KernelId::Copy | KernelId::Scale => &both[..1],
        KernelId::Add | KernelId::Triad => &both[..],
        _ => &[],
    };
    for input in inputs {
        state.bytes(call, *input, size)?;
    }
    match kernel {
        KernelId::Empty => Ok(()),
        KernelId::Read => {
            if lanes == 0 {
                return Err(refused(call, "no lanes"));
            }
            let out = (args.buffer(1), lane_bytes(4)?);
            state.produce(call, operation, inputs, out, |s, o| Ok(compute::read(&s[0][..size], o, lanes)))
        }
        KernelId::Write => {
            let value = args.f32(1);
            state.produce(call, operation, &[], (args.buffer(0), size), |_, o| Ok(compute::write(o, value)))
        }
        KernelId::Copy => state.produce(call, operation, inputs, (args.buffer(1), size), |s, o| {
            o.copy_from_slice(&s[0][..size]);
            Ok(())
        }),
        KernelId::Scale => {
            let factor = args.f32(2);
            let out = (args.buffer(1), size);
            state.produce(call, operation, inputs, out, |s, o| Ok(compute::scale(&s[0][..size], o, factor)))
        }
        KernelId::Add | KernelId::Triad => {
            let factor = if kernel == KernelId::Add { 1.0 } else { args.f32(3) };
            let out = (args.buffer(2), size);
            let triad = |s: &[&[u8]], o: &mut [u8]| Ok(compute::triad(&s[0][..size], &s[1][..size], o, factor));
            state.produce(call, operation, inputs, out, triad)
        }
        KernelId::FmaFp64 => {
            let (m, k, out) = (args.f64(1), args.f64(2), (args.buffer(0), lane_bytes(8)?));
            state.produce(call, operation, &[], out, |_, o| Ok(compute::fma_fp64(o, m, k, args.u32(3))))
        }
        KernelId::FmaFp32 => {
            let (m, k, out) = (args.f32(1), args.f32(2), (args.buffer(0), lane_bytes(4)?));
            state.produce(call, operation, &[], out, |_, o| Ok(compute::fma_fp32(o, m, k, args.u32(3))))
        }
        KernelId::FmaFp16 => {
            let (m, k, out) = (args.f32(1), args.f32(2), (args.buffer(0), lane_bytes(2)?));
            state.produce(call, operation, &[], out, |_, o| Ok(compute::fma_fp16(o, m, k, args.u32(3))))
        }
        KernelId::DotInt8 => {
            let out = (args.buffer(0), lane_bytes(4)?);
            state.produce(call, operation, &[], out, |_, o| Ok(compute::dot_int8(o, args.u32(1) as i32, args.u32(2))))
        }
        KernelId::Chase => state.produce(call, operation, &[args.buffer(0)], (args.buffer(1), 4), |s, o| {
            let end = compute::chase(s[0], args.u32(2), args.u32(3));
            let end = end.ok_or_else(|| refused(call, "a link points outside the buffer"))?;
            o.copy_from_slice(&end.to_le_bytes());
            Ok(())
        }),
        KernelId::PatternWrite => {
            let (seed, invert, out) = (args.u32(1), args.u32(2), (args.buffer(0), size));
            state.produce(call, operation, &[], out, |_, o| Ok(compute::pattern_write(o, seed, invert)))
        }
        KernelId::PatternVerify => {
            // Adds to its output, so it depends on it and is computed every time.
            let found = compute::pattern_errors(state.bytes(call, args.buffer(0), size)?, args.u32(2), args.u32(3));
            state.produce(call, operation, &[args.buffer(1)], (args.buffer(1), 4), |s, o| {
                let before = s[0].first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
                o.copy_from_slice(&before.wrapping_add(found).to_le_bytes());
                Ok(())
            })
        }
    }
}
