//! A scripted device, stream and workload for the tests of this module: one virtual clock, exact times, and
//! faults on demand.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::{
    Backend, Clock, Device, DeviceError, Launch, Probe, RawBuffer, RawGemm, Reading, Sensors, Stream, TimingEvent,
};
use crate::benchmark::{Check, Moment, Work, Workload};
use crate::measure::journal::Begin;
use crate::record::{
    BackendId, BackendState, Better, Block, Case, CaseEstimate, CaseId, DeviceId, DeviceInfo, DeviceKind, Engine,
    EngineKind, Exclusive, FORMAT, Inventory, Ledger, MetricId, Params, Plan, Record, RoundsPlan, Run, RunEnd, Series,
    Source, Telemetry, ThermalState, Tool, Verified, WorkScale,
};
use crate::unit::{Bytes, Seconds, Unit};

/// Virtual nanoseconds.
#[derive(Default)]
pub struct FakeClock(pub AtomicU64);

impl FakeClock {
    fn advance(&self, nanoseconds: u64) {
        self.0.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_until(&self, t: u64) {
        self.0.fetch_max(t, Ordering::Relaxed);
    }
}

/// How the device behaves.
#[derive(Debug, Clone)]
pub struct Script {
    /// Real length of one iteration.
    pub iteration_ns: u64,
    /// Device timer against the run's clock.
    pub timer_rate: f64,
    /// Part of a sample that is still running when its end event is stamped.
    pub early_end: f64,
    /// From queueing to start.
    pub latency_ns: u64,
    /// How late the host wakes up after two of three waits.
    pub late_ns: u64,
    /// What `elapsed` says instead of the truth.
    pub elapsed_is: Option<f64>,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            iteration_ns: 1_000_000,
            timer_rate: 1.0,
            early_end: 0.0,
            latency_ns: 5_000,
            late_ns: 0,
            elapsed_is: None,
        }
    }
}

/// The device.
pub struct Fake {
    /// Its clock.
    pub clock: FakeClock,
    script: Script,
    queued: Cell<u64>,
    waits: Cell<u64>,
    events: RefCell<Vec<u64>>,
}

impl Fake {
    pub fn new(script: Script) -> Fake {
        Fake {
            clock: FakeClock::default(),
            script,
            queued: Cell::new(0),
            waits: Cell::new(0),
            events: RefCell::new(Vec::new()),
        }
    }
    pub fn stream(&self) -> FakeStream<'_> {
        FakeStream(self)
    }
    pub fn workload(&self) -> FakeWorkload<'_> {
        FakeWorkload(self)
    }
}

/// An asynchronous in-order queue: work starts one latency after it is queued on an idle device.
pub struct FakeStream<'f>(&'f Fake);

impl Stream for FakeStream<'_> {
    fn copy(&mut self, _: RawBuffer, _: RawBuffer, _: Bytes) -> Result<(), DeviceError> {
        Ok(())
    }
    fn upload(&mut self, _: RawBuffer, _: usize, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }
    fn download(&mut self, _: RawBuffer, _: usize, _: &mut [u8]) -> Result<(), DeviceError> {
        Ok(())
    }
    fn launch(&mut self, _: Launch<'_>) -> Result<(), DeviceError> {
        Ok(())
    }
    fn gemm(&mut self, _: RawGemm, _: RawBuffer, _: RawBuffer, _: RawBuffer) -> Result<(), DeviceError> {
        Ok(())
    }
    fn record(&mut self) -> Result<TimingEvent, DeviceError> {
        let Fake { clock, script, queued, events, .. } = self.0;
        let work = queued.get();
        // The first event waits for the device to wake up; the second comes after the queued work.
        let stamp = clock.now() + script.latency_ns + work - (work as f64 * script.early_end) as u64;
        events.borrow_mut().push(stamp);
        Ok(TimingEvent(events.borrow().len() as u64 - 1))
    }
    fn wait(&mut self, _: TimingEvent) -> Result<(), DeviceError> {
        Ok(())
    }
    fn synchronize(&mut self) -> Result<(), DeviceError> {
        let Fake { clock, script, queued, waits, .. } = self.0;
        waits.set(waits.get() + 1);
        let late = if waits.get().is_multiple_of(3) { 0 } else { script.late_ns };
        clock.advance(script.latency_ns + queued.take() + late);
        Ok(())
    }
    fn elapsed(&self, start: TimingEvent, end: TimingEvent) -> Result<Seconds, DeviceError> {
        let events = self.0.events.borrow();
        let true_ns = events[end.0 as usize] as f64 - events[start.0 as usize] as f64;
        Ok(Seconds(self.0.script.elapsed_is.unwrap_or(true_ns * 1e-9 * self.0.script.timer_rate)))
    }
}

/// A thousand units of work per iteration.
pub struct FakeWorkload<'f>(&'f Fake);

impl Workload for FakeWorkload<'_> {
    fn work(&self) -> Work {
        Work { metric: "fake.rate", unit: Unit::FlopPerSecond, better: Better::Higher, amount: 1000.0 }
    }
    fn engine(&self) -> Engine {
        Engine {
            name: "fake".to_owned(),
            version: None,
            library: None,
            kind: EngineKind::Decisive,
            conditions: BTreeMap::new(),
        }
    }
    fn enqueue(&mut self, _: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        self.0.queued.set(self.0.queued.get() + iterations * self.0.script.iteration_ns);
        Ok(())
    }
    fn verify(&mut self, _: &mut dyn Stream, _: Moment) -> Result<Check, DeviceError> {
        Ok(Check { verified: Verified::Right, method: "none needed".to_owned(), worst: Some(0.0) })
    }
}

/// A backend with one sensor that works, one that reads nonsense and one that cannot be read.
pub struct FakeBackend;

impl Backend for FakeBackend {
    fn id(&self) -> BackendId {
        BackendId::Host
    }
    fn probe(&self) -> Probe {
        Probe { state: BackendState::Present { version: "1".to_owned(), library: None }, devices: Vec::new() }
    }
    fn open(&self, device: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        Err(DeviceError::Unsupported(device.to_string()))
    }
    fn sensors(&self) -> Option<Box<dyn Sensors>> {
        Some(Box::new(FakeSensors))
    }
}

struct FakeSensors;

impl Sensors for FakeSensors {
    fn not_observable(&self) -> Vec<(String, String)> {
        vec![("host:0.power".to_owned(), "no permission".to_owned())]
    }
    fn read(&mut self, now: u64) -> Vec<Reading> {
        let reading = |sensor: &str, value| Reading {
            source: "host:0".to_owned(),
            sensor: sensor.to_owned(),
            unit: Unit::Ratio,
            counter: false,
            at: now,
            value,
        };
        vec![reading("load", 0.5), reading("steal", f64::NAN)]
    }
}

/// A planned case without surprises.
pub fn case(benchmark: &str, devices: &[DeviceId], slot: &str) -> Case {
    let params = Params::default();
    Case {
        id: CaseId::new(benchmark, &params, devices),
        benchmark: benchmark.to_owned(),
        params,
        devices: devices.to_vec(),
        slot: slot.to_owned(),
        exclusive: devices.iter().cloned().map(Exclusive::Device).collect(),
        gate: true,
        value: 1,
        block: Seconds(0.1),
        precision: 0.01,
        footprint: Bytes(1e9),
        blocks_per_round: 1,
        estimate: CaseEstimate { prepare: Seconds(0.3), round: Seconds(0.15) },
        state: ThermalState::Warm,
    }
}

/// A simulated 80 GB device.
pub fn gpu(index: u32) -> DeviceInfo {
    DeviceInfo {
        id: DeviceId::new(BackendId::Sim, index),
        kind: DeviceKind::Gpu,
        name: "H100".to_owned(),
        vendor: "nvidia".to_owned(),
        uuid: Some(format!("GPU-{index}")),
        pci: None,
        memory: Bytes(80e9),
        last_level_cache: None,
        units: None,
        clock_max: None,
        driver: Some("1.0".to_owned()),
        api: None,
        gemm_types: Vec::new(),
        fma_types: Vec::new(),
        spec: None,
        numa_node: None,
        attributes: BTreeMap::new(),
        scale: WorkScale::ONE,
        simulated: true,
    }
}

/// A run that has begun: one device, two cases.
pub fn begin() -> Begin {
    let device = gpu(0);
    let source = Source { name: "quick".to_owned(), sha256: "5".to_owned(), text: String::new() };
    let record = Record {
        format: FORMAT,
        id: "test".to_owned(),
        tool: Tool {
            name: "gpu-assay".to_owned(),
            version: "0".to_owned(),
            binary_sha256: Some("b".to_owned()),
            method_versions: BTreeMap::new(),
        },
        run: Run {
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            ended_at: None,
            duration: Seconds(0.0),
            boot_id: Some("boot".to_owned()),
            seed: 1,
            arguments: Vec::new(),
            budget: None,
            end: RunEnd::Died,
            simulated: true,
            neutralised_environment: BTreeMap::new(),
        },
        suite: source,
        offer: None,
        plan: Plan {
            cases: vec![
                case("gemm", std::slice::from_ref(&device.id), "a"),
                case("memory_bandwidth", std::slice::from_ref(&device.id), "b"),
            ],
            not_planned: Vec::new(),
            rounds: RoundsPlan { min: 3, max: 5 },
            soak: Seconds(1.0),
            budget: Seconds(60.0),
            estimate: Seconds(10.0),
        },
        inventory: Inventory { selected: vec![device.id.clone()], devices: vec![device], ..Inventory::default() },
        results: Vec::new(),
        telemetry: Telemetry::default(),
        ledger: Ledger::default(),
        notices: Vec::new(),
    };
    Begin { record, simulate: None, storage: None, origin: 0 }
}

/// A primary series with one block per round, `step` seconds apart.
pub fn series(values: &[f64], step: f64) -> Series {
    let block = |(round, value): (usize, &f64)| Block {
        round: round as u32,
        start: Seconds(round as f64 * step),
        value: *value,
        samples: Vec::new(),
        clock: None,
    };
    Series {
        metric: MetricId("fake.rate".to_owned()),
        unit: Unit::FlopPerSecond,
        better: Better::Higher,
        state: ThermalState::Warm,
        labels: BTreeMap::new(),
        primary: true,
        blocks: values.iter().enumerate().map(block).collect(),
    }
}
