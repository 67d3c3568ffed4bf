//! One opened simulated device: buffers that hold really computed results, and a virtual timeline.
//!
//! Launches are queued as on a real device: the host's time advances by the cost of a launch, the device's by
//! that of the work, and `synchronize` brings them together. An operation whose inputs have not changed since
//! it last produced its output is not computed again: its result is already there.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::compute;
use super::describe::{Faults, Trigger};
use super::model::{Circumstances, Cost, Direction, Model, Resource, Work};
use super::state::{Buffer, Fate, State, refused};
use super::stream::SimStream;
use crate::backend::{
    Clock, Companion, Device, DeviceError, GemmPlan, GemmProblem, Place, RawBuffer, RawGemm, RawKernel, Reading, Stream,
};
use crate::kernel::KernelId;
use crate::record::{DataType, DeviceInfo, Engine, EngineKind};
use crate::unit::{Bytes, Unit};

/// Host time of a launch, in nanoseconds.
const LAUNCH_NS: f64 = 2200.0;
/// Interval of sensor readings, in nanoseconds.
const SENSOR_NS: f64 = 200e6;
/// Most readings kept between two calls of `readings`.
const READINGS_KEPT: usize = 100_000;
/// One in so many readings includes limits, links and memory in use.
const RARE: u64 = 25;
/// When the fault `ecc-errors` strikes, in nanoseconds.
const ERRORS_AFTER_NS: f64 = 8e9;
/// Memory the driver itself holds.
const DRIVER_BYTES: f64 = 512.0 * 1024.0 * 1024.0;

/// An opened simulated device.
pub struct SimDevice {
    pub(super) info: DeviceInfo,
    pub(super) model: Model,
    pub(super) faults: Faults,
    /// Nanoseconds at which all simulated time begins.
    pub(super) epoch: u64,
    pub(super) state: Mutex<State>,
}

impl SimDevice {
    /// Opens it at the epoch, cool and idle.
    pub fn new(info: DeviceInfo, model: Model, faults: Faults, epoch: u64) -> SimDevice {
        let state = State::new(model.idle_temperature(), SENSOR_NS);
        SimDevice { info, model, faults, epoch, state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in true size.
    pub(super) fn true_bytes(&self, scaled: usize) -> f64 {
        scaled as f64 * f64::from(self.info.scale.bytes)
    }

    /// Puts `work` on the timeline of `stream`; faults that strike now do.
    pub(super) fn queue(&self, state: &mut State, stream: usize, work: Work) -> Result<(), DeviceError> {
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

    pub(super) fn alive(&self, state: &State) -> Result<(), DeviceError> {
        // Once its time has come it is gone for every process.
        let is_over = matches!(self.faults.lost, Some(Trigger::After(seconds)) if state.now >= seconds * 1e9);
        match state.fate {
            _ if is_over => Err(DeviceError::Lost("SIMULATED: the device has fallen off the bus".to_owned())),
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
        self.follow(state, to, &self.idle(), 0.0);
    }

    fn idle(&self) -> Cost {
        Cost { seconds: 0.0, clock: self.model.idle_clock(), power: self.model.idle_power(), throttle: 0 }
    }

    fn read_sensors(&self, state: &mut State, at: f64, cost: &Cost, load: f64) {
        if self.faults.no_telemetry || state.readings.len() >= READINGS_KEPT {
            return;
        }
        let load = if self.model.neighbour_works(at * 1e-9) { 1.0 } else { load };
        let (temperature, is_rare) = (state.temperature, state.sensor_reads.is_multiple_of(RARE));
        state.sensor_reads += 1;
        let used = state.used + DRIVER_BYTES + self.model.neighbour_memory();
        let mut add = |sensor: &str, unit: Unit, value: f64| {
            state.readings.push(Reading {
                source: self.info.id.to_string(),
                sensor: sensor.to_owned(),
                unit,
                counter: sensor == "ecc_uncorrected",
                at: self.epoch + at as u64,
                value,
            });
        };
        add("clock", Unit::Hertz, cost.clock);
        add("power", Unit::Watt, cost.power);
        add("throttle", Unit::Count, f64::from(cost.throttle));
        add("load", Unit::Ratio, load);
        add("temperature", Unit::Celsius, temperature);
        // What rarely changes is read more rarely.
        if is_rare {
            add("power_limit", Unit::Watt, self.model.power_limit);
            add("memory_used", Unit::Byte, used);
            if let Some((generation, lanes)) = self.model.link {
                add("link_generation", Unit::Count, generation as f64);
                add("link_width", Unit::Count, f64::from(lanes));
            }
            if let Some((up, all)) = self.model.peer_links {
                add("peer_links", Unit::Count, f64::from(up));
                add("peer_links_total", Unit::Count, f64::from(all));
            }
            add("ecc_enabled", Unit::Count, f64::from(u8::from(!self.faults.ecc_off)));
            add("remap_pending", Unit::Count, f64::from(u8::from(self.faults.remap_pending)));
            let errors = self.faults.ecc_errors.filter(|_| at > ERRORS_AFTER_NS).unwrap_or(0);
            add("ecc_uncorrected", Unit::Count, f64::from(errors));
        }
    }

    /// One element of C as a fault would leave it.
    pub(super) fn spoiled(&self, data_type: DataType, at: usize, elements: usize) -> impl Fn(usize, f64) -> f64 {
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
        if state.sensor_reads == 0 {
            // The state before this process holds anything, so that what others hold can be told apart.
            let now = state.now;
            self.read_sensors(&mut state, now, &self.idle(), 0.0);
        }
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
        let is_neighbour = state.is_neighbour;
        for resource in others.iter().flat_map(|other| resource(other, is_neighbour)) {
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

/// The part of the device that another process keeps busy. In an interference case that is the victim's part
/// for the neighbour, and the aggressor's for everyone else.
fn resource(other: &Companion, is_neighbour: bool) -> Option<Resource> {
    let role = if is_neighbour { "victim" } else { "aggressor" };
    match other.params.word(role).unwrap_or(&other.benchmark) {
        "gemm" | "fma_peak" | "compute" => Some(Resource::Compute),
        "memory_bandwidth" | "memory" => Some(Resource::Dram),
        "memory_latency" | "cache" => Some(Resource::Cache),
        "host_link" | "transfer" => Some(Resource::Link),
        _ => None,
    }
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
