//! The workload on the host device, honest and spoiled.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::backend::host::Host;
use crate::backend::{Backend, Clock, RawGemm, TimingEvent};
use crate::record::{BackendId, DeviceId, Value};

/// What is done to C after each product.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spoil {
    Nothing,
    /// Adds this many typical elements (√k for random data) to element `i`.
    Add {
        i: usize,
        typical: f64,
    },
    /// Adds opposite errors to neighbours in one row.
    Pair {
        i: usize,
        typical: f64,
    },
    Nan(usize),
    Infinity(usize),
    /// The product is not computed at all from this call on.
    Skip {
        from: u64,
    },
    /// From this call on the last bit of one element flips: within the bound, but not repeatable.
    Flicker {
        from: u64,
    },
}

struct Spoiled {
    inner: Box<dyn Device>,
    spoil: Spoil,
    problem: std::sync::Mutex<Option<GemmProblem>>,
    calls: AtomicU64,
}

impl Spoiled {
    fn open(spoil: Spoil) -> Box<dyn Device> {
        let inner = Host.open(&DeviceId::new(BackendId::Host, 0)).unwrap();
        Box::new(Spoiled { inner, spoil, problem: std::sync::Mutex::default(), calls: AtomicU64::new(0) })
    }
}

impl Device for Spoiled {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }
    fn clock(&self) -> &dyn Clock {
        self.inner.clock()
    }
    fn alloc(&self, place: Place, size: Bytes) -> Result<RawBuffer, DeviceError> {
        self.inner.alloc(place, size)
    }
    fn free(&self, buffer: RawBuffer) {
        self.inner.free(buffer);
    }
    fn load(&self, kernel: KernelId) -> Result<RawKernel, DeviceError> {
        self.inner.load(kernel)
    }
    fn gemm(&self, problem: &GemmProblem) -> Result<GemmPlan, DeviceError> {
        *self.problem.lock().unwrap() = Some(*problem);
        self.inner.gemm(problem)
    }
    fn stream(&self) -> Result<Box<dyn Stream + '_>, DeviceError> {
        Ok(Box::new(SpoiledStream { device: self, inner: self.inner.stream()? }))
    }
}

struct SpoiledStream<'d> {
    device: &'d Spoiled,
    inner: Box<dyn Stream + 'd>,
}

impl SpoiledStream<'_> {
    fn change(&mut self, c: RawBuffer, i: usize, change: impl Fn(f64) -> f64) -> Result<(), DeviceError> {
        let data_type = self.device.problem.lock().unwrap().unwrap().data_type;
        let size = size_c(data_type);
        let mut bytes = vec![0; size];
        self.inner.download(c, i * size, &mut bytes)?;
        let mut value = [0.0];
        if data_type.is_integer() {
            let old = i32::from_le_bytes(bytes[..4].try_into().unwrap());
            bytes = (change(f64::from(old)) as i32).to_le_bytes().to_vec();
        } else {
            Stored::Input(data_type).decode(&bytes, &mut value);
            data::encode(data_type, &[change(value[0])], &mut bytes);
        }
        self.inner.upload(c, i * size, &bytes)
    }
}

impl Stream for SpoiledStream<'_> {
    fn copy(&mut self, to: RawBuffer, from: RawBuffer, size: Bytes) -> Result<(), DeviceError> {
        self.inner.copy(to, from, size)
    }
    fn upload(&mut self, to: RawBuffer, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        self.inner.upload(to, offset, data)
    }
    fn download(&mut self, from: RawBuffer, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.download(from, offset, data)
    }
    fn launch(&mut self, launch: Launch<'_>) -> Result<(), DeviceError> {
        self.inner.launch(launch)
    }
    fn gemm(&mut self, plan: RawGemm, a: RawBuffer, b: RawBuffer, c: RawBuffer) -> Result<(), DeviceError> {
        let call = self.device.calls.fetch_add(1, Ordering::Relaxed);
        if matches!(self.device.spoil, Spoil::Skip { from } if call >= from) {
            return Ok(());
        }
        self.inner.gemm(plan, a, b, c)?;
        let problem = self.device.problem.lock().unwrap().unwrap();
        let unit = if problem.data_type.is_integer() { 36.0 * 36.0 } else { 1.0 };
        let typical_element = (problem.k as f64).sqrt() * unit;
        match self.device.spoil {
            Spoil::Add { i, typical } => self.change(c, i, |x| x + typical * typical_element),
            Spoil::Pair { i, typical } => {
                self.change(c, i, |x| x + typical * typical_element)?;
                self.change(c, i + 1, |x| x - typical * typical_element)
            }
            Spoil::Nan(i) => self.change(c, i, |_| f64::NAN),
            Spoil::Infinity(i) => self.change(c, i, |_| f64::INFINITY),
            Spoil::Flicker { from } if call >= from => self.change(c, 5, |x| x * (1.0 + 2f64.powi(-10))),
            _ => Ok(()),
        }
    }
    fn record(&mut self) -> Result<TimingEvent, DeviceError> {
        self.inner.record()
    }
    fn wait(&mut self, event: TimingEvent) -> Result<(), DeviceError> {
        self.inner.wait(event)
    }
    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
    fn elapsed(&self, start: TimingEvent, end: TimingEvent) -> Result<Seconds, DeviceError> {
        self.inner.elapsed(start, end)
    }
}

fn params(data_type: &str, n: u64) -> Params {
    Params::default().with("type", Value::Word(data_type.to_owned())).with("n", Value::Int(n))
}

/// Checks of three moments, each after a timed product.
fn checks(spoil: Spoil, data_type: &str, n: u64, moments: &[Moment]) -> Vec<Check> {
    let devices = vec![Spoiled::open(spoil)];
    let context = Context { devices: &devices, seed: 42, storage: None, aggressor: false };
    let mut workload = Gemm.prepare(&context, &params(data_type, n)).unwrap();
    let mut stream = devices[0].stream().unwrap();
    let mut check = |moment: &Moment| {
        workload.enqueue(&mut *stream, 1).unwrap();
        workload.verify(&mut *stream, *moment).unwrap()
    };
    moments.iter().map(&mut check).collect()
}

fn wrong(check: &Check) -> bool {
    matches!(check.verified, Verified::Wrong { .. })
}

const TYPES: [&str; 4] = ["fp64", "fp32", "fp16", "int8"];

#[test]
fn honest_products_pass_every_check() {
    for data_type in TYPES {
        for n in [16, 129, 256, 1000] {
            let moments = [Moment::Before, Moment::Round(0), Moment::Round(1), Moment::Round(2), Moment::After];
            for check in checks(Spoil::Nothing, data_type, n, &moments) {
                assert_eq!(check.verified, Verified::Right, "{data_type} {n}: {}", check.method);
                assert!(check.worst.unwrap() < 0.9, "{data_type} {n}: {:?} is close to its bound", check.worst);
            }
        }
    }
}

#[test]
fn one_wrong_element_of_typical_size_is_always_caught() {
    for data_type in TYPES {
        for n in [256u64, 777, 2048] {
            let last = (n * n - 1) as usize;
            for i in [0, last / 3, last] {
                let spoil = Spoil::Add { i, typical: 1.0 };
                let found = checks(spoil, data_type, n, &[Moment::Round(0)]);
                assert!(wrong(&found[0]), "{data_type} {n} element {i}: {found:?}");
                if n == 2048 {
                    break;
                }
            }
        }
    }
}

#[test]
fn exact_data_catches_the_smallest_error_anywhere() {
    // 1 in a whole number: far below the bound of the random check, but the exact one has none.
    for data_type in TYPES {
        let typical = if data_type == "int8" { 1.0 / (36.0 * 36.0 * 16.0) } else { 1.0 / 16.0 };
        for i in [0, 256 * 100 + 33, 256 * 256 - 1] {
            let found = checks(Spoil::Add { i, typical }, data_type, 256, &[Moment::Before, Moment::After]);
            assert!(found.iter().all(wrong), "{data_type} element {i}: {found:?}");
        }
    }
}

#[test]
fn not_a_number_and_infinity_are_wrong() {
    for data_type in ["fp64", "fp32", "fp16"] {
        for spoil in [Spoil::Nan(77), Spoil::Infinity(256 * 255)] {
            let found = checks(spoil, data_type, 256, &[Moment::Before, Moment::Round(0)]);
            assert!(found.iter().all(wrong), "{data_type} {spoil:?}: {found:?}");
        }
    }
}

#[test]
fn opposite_errors_are_caught_within_a_few_rounds() {
    let moments: Vec<Moment> = (0..8).map(Moment::Round).collect();
    let found = checks(Spoil::Pair { i: 500, typical: 1.0 }, "fp32", 256, &moments);
    let caught = found.iter().filter(|check| wrong(check)).count();
    assert!((1..8).contains(&caught), "caught in {caught} of 8 rounds");
}

#[test]
fn a_product_that_is_not_computed_is_wrong() {
    for data_type in TYPES {
        // Calls: exact and random product of `Before` with its timed one, then one per round.
        let moments = [Moment::Before, Moment::Round(0), Moment::Round(1)];
        let found = checks(Spoil::Skip { from: 4 }, data_type, 256, &moments);
        assert_eq!(found.iter().map(wrong).collect::<Vec<_>>(), [false, false, true], "{data_type}");
    }
}

#[test]
fn a_result_that_changes_within_the_bound_is_wrong() {
    let moments = [Moment::Before, Moment::Round(0), Moment::Round(1)];
    let found = checks(Spoil::Flicker { from: 4 }, "fp16", 256, &moments);
    assert_eq!(found.iter().map(wrong).collect::<Vec<_>>(), [false, false, true], "{found:?}");
}

#[test]
fn work_is_what_was_asked_for() {
    let devices = vec![Spoiled::open(Spoil::Nothing)];
    let context = Context { devices: &devices, seed: 1, storage: None, aggressor: false };
    let workload = Gemm.prepare(&context, &params("int8", 100)).unwrap();
    assert_eq!(workload.work().amount, 2e6);
    assert_eq!(workload.work().unit, Unit::OpPerSecond);
    let workload = Gemm.prepare(&context, &params("fp32", 100)).unwrap();
    assert_eq!(workload.work().unit, Unit::FlopPerSecond);
    assert_eq!(
        workload.engine(),
        devices[0].gemm(&GemmProblem { data_type: DataType::Fp32, m: 100, n: 100, k: 100 }).unwrap().engine
    );
}

#[test]
fn bad_parameters_are_refused_with_a_reason() {
    let device = Host.open(&DeviceId::new(BackendId::Host, 0)).unwrap();
    for bad in [params("fp8", 64), params("fp33", 64), params("fp32", 1), params("fp32", u64::MAX), Params::default()] {
        assert!(!Gemm.supports(device.info(), &bad).unwrap_err().is_empty());
    }
    assert!(Gemm.supports(device.info(), &params("fp32", 64)).is_ok());
    assert!(Gemm.supports(device.info(), &params("bf16", 64)).is_err(), "the host has no bf16 engine");
}

#[test]
fn buffers_are_freed_with_the_workload() {
    thread_local!(static LIVE: Cell<i64> = const { Cell::new(0) });
    struct Counting(Box<dyn Device>);
    impl Device for Counting {
        fn info(&self) -> &DeviceInfo {
            self.0.info()
        }
        fn clock(&self) -> &dyn Clock {
            self.0.clock()
        }
        fn alloc(&self, place: Place, size: Bytes) -> Result<RawBuffer, DeviceError> {
            LIVE.set(LIVE.get() + 1);
            self.0.alloc(place, size)
        }
        fn free(&self, buffer: RawBuffer) {
            LIVE.set(LIVE.get() - 1);
            self.0.free(buffer);
        }
        fn load(&self, kernel: KernelId) -> Result<RawKernel, DeviceError> {
            self.0.load(kernel)
        }
        fn gemm(&self, problem: &GemmProblem) -> Result<GemmPlan, DeviceError> {
            self.0.gemm(problem)
        }
        fn stream(&self) -> Result<Box<dyn Stream + '_>, DeviceError> {
            self.0.stream()
        }
    }
    let devices: Vec<Box<dyn Device>> =
        vec![Box::new(Counting(Host.open(&DeviceId::new(BackendId::Host, 0)).unwrap()))];
    let context = Context { devices: &devices, seed: 1, storage: None, aggressor: false };
    let workload = Gemm.prepare(&context, &params("fp32", 64)).unwrap();
    assert!(LIVE.get() > 0);
    drop(workload);
    assert_eq!(LIVE.get(), 0);
}
