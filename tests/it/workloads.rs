//! Memory, link and launch benchmarks on every backend: right results are accepted, and every kind of work
//! that was not really done is noticed.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use gpu_assay::backend::{
    Arg, Clock, Device, DeviceError, GemmPlan, GemmProblem, Launch, Place, RawBuffer, RawGemm, RawKernel, Stream,
    TimingEvent,
};
use gpu_assay::benchmark::{Context, Moment, Workload, find};
use gpu_assay::kernel::KernelId;
use gpu_assay::record::{BackendId, DeviceInfo, EngineKind, Params, Value, Verified};
use gpu_assay::unit::{Bytes, Seconds};

use crate::conformance::device;

fn word(name: &str, value: &str) -> Params {
    Params::default().with(name, Value::Word(value.to_owned()))
}

/// Small cases of the four benchmarks; sizes are for one real device, a simulated one divides them.
fn cases(info: &DeviceInfo) -> Vec<(&'static str, Params)> {
    let scale = u64::from(info.scale.bytes);
    let size = Value::Size(scale * ((5 << 20) + 44));
    let mut cases = vec![
        ("memory_latency", Params::default().with("size", Value::Size(scale * (1 << 20)))),
        ("launch_latency", Params::default()),
    ];
    for op in ["read", "write", "copy", "scale", "add", "triad"] {
        cases.push(("memory_bandwidth", word("op", op).with("size", size.clone())));
    }
    if info.id.backend != BackendId::Host {
        for direction in ["h2d", "d2h", "both"] {
            for memory in ["pinned", "pageable"] {
                let memory = Value::Word(memory.to_owned());
                cases.push((
                    "host_link",
                    word("direction", direction).with("memory", memory).with("size", size.clone()),
                ));
            }
        }
    }
    cases
}

fn prepare<'d>(devices: &'d [Box<dyn Device>], benchmark: &str, params: &Params) -> Box<dyn Workload + 'd> {
    let benchmark = find(benchmark).expect("a registered benchmark");
    let info = devices[0].info();
    benchmark.supports(info, params).unwrap_or_else(|reason| panic!("{params}: {reason}"));
    assert!(benchmark.footprint(info, params).get() > 0.0);
    let context = Context { devices, seed: 11, storage: None, aggressor: false };
    benchmark.prepare(&context, params).unwrap()
}

fn right(workload: &mut dyn Workload, stream: &mut dyn Stream, moment: Moment) {
    let check = workload.verify(stream, moment).unwrap();
    assert_eq!(check.verified, Verified::Right, "{moment:?}");
    assert!(!check.method.is_empty());
}

fn accepts_right_results(name: &str) {
    let Some(device) = device(name) else { return };
    let devices = [device];
    for (benchmark, params) in cases(devices[0].info()) {
        let mut workload = prepare(&devices, benchmark, &params);
        let mut stream = devices[0].stream().unwrap();
        right(&mut *workload, &mut *stream, Moment::Before);
        for round in 0..2 {
            let start = stream.record().unwrap();
            workload.enqueue(&mut *stream, 3).unwrap();
            workload.enqueue(&mut *stream, 2).unwrap();
            let end = stream.record().unwrap();
            stream.synchronize().unwrap();
            let elapsed = stream.elapsed(start, end).unwrap().get();
            let value = workload.work().value(5, elapsed);
            assert!(value.is_finite() && value > 0.0, "{benchmark} {params}: {value}");
            right(&mut *workload, &mut *stream, Moment::Round(round));
        }
        right(&mut *workload, &mut *stream, Moment::After);
        if benchmark == "launch_latency" {
            let observed = workload.observe();
            assert_eq!(observed.len(), 1);
            assert!(observed[0].value > 0.0);
            assert!(workload.observe().is_empty(), "observations are drained");
        }
    }
}

#[test]
fn host_accepts_right_results() {
    accepts_right_results("host");
}

#[test]
fn sim_accepts_right_results() {
    accepts_right_results("sim");
}

#[test]
fn opencl_accepts_right_results() {
    accepts_right_results("opencl");
}

/// What a dishonest or broken device does once it is armed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Launches of a kernel are ignored.
    Skip(KernelId),
    /// One element of a kernel's output (argument, byte offset) is changed.
    WrongElement(KernelId, usize, usize),
    /// A chase stops one link early.
    ShortChase,
    /// Copies leave out their last four bytes.
    TruncatedCopy,
    /// Copies are ignored.
    NoCopy,
}

/// A device with a fault.
struct Faulty {
    inner: Box<dyn Device>,
    fault: Fault,
    armed: AtomicBool,
    kernels: Mutex<HashMap<u64, KernelId>>,
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.armed.load(Ordering::SeqCst) && self.fault == fault
    }
}

struct FaultyStream<'d> {
    inner: Box<dyn Stream + 'd>,
    device: &'d Faulty,
}

impl Device for Faulty {
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
        let raw = self.inner.load(kernel)?;
        self.kernels.lock().unwrap().insert(raw.0, kernel);
        Ok(raw)
    }
    fn gemm(&self, problem: &GemmProblem) -> Result<GemmPlan, DeviceError> {
        self.inner.gemm(problem)
    }
    fn stream(&self) -> Result<Box<dyn Stream + '_>, DeviceError> {
        Ok(Box::new(FaultyStream { inner: self.inner.stream()?, device: self }))
    }
}

impl Stream for FaultyStream<'_> {
    fn copy(&mut self, to: RawBuffer, from: RawBuffer, size: Bytes) -> Result<(), DeviceError> {
        if self.device.is(Fault::NoCopy) {
            return Ok(());
        }
        let missing = if self.device.is(Fault::TruncatedCopy) { 4.0 } else { 0.0 };
        self.inner.copy(to, from, Bytes(size.get() - missing))
    }
    fn upload(&mut self, to: RawBuffer, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        self.inner.upload(to, offset, data)
    }
    fn download(&mut self, from: RawBuffer, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.download(from, offset, data)
    }
    fn launch(&mut self, launch: Launch<'_>) -> Result<(), DeviceError> {
        let kernel = self.device.kernels.lock().unwrap()[&launch.kernel.0];
        if self.device.is(Fault::Skip(kernel)) {
            return Ok(());
        }
        if kernel == KernelId::Chase && self.device.is(Fault::ShortChase) {
            let mut args = launch.args.to_vec();
            let Arg::U32(hops) = args[3] else { panic!("hops") };
            args[3] = Arg::U32(hops - 1);
            return self.inner.launch(Launch { args: &args, ..launch });
        }
        self.inner.launch(launch)?;
        if let Fault::WrongElement(which, argument, offset) = self.device.fault
            && which == kernel
            && self.device.is(self.device.fault)
        {
            let Arg::Buffer(output) = launch.args[argument] else { panic!("a buffer") };
            let mut element = [0; 4];
            self.inner.download(output, offset, &mut element)?;
            let changed = f32::from_le_bytes(element) + 0.5;
            self.inner.upload(output, offset, &changed.to_le_bytes())?;
        }
        Ok(())
    }
    fn gemm(&mut self, plan: RawGemm, a: RawBuffer, b: RawBuffer, c: RawBuffer) -> Result<(), DeviceError> {
        self.inner.gemm(plan, a, b, c)
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

const ROUND: Moment = Moment::Round(1);

/// After one right round the fault begins: the next check must see it.
fn notices(benchmark: &str, params: &Params, fault: Fault, moment: Moment) {
    let Some(inner) = device("opencl") else { return };
    let faulty = Faulty { inner, fault, armed: AtomicBool::new(false), kernels: Mutex::default() };
    // Shared with the workload through a leak, so that it can be armed from outside.
    let faulty: &'static Faulty = Box::leak(Box::new(faulty));
    let devices: [Box<dyn Device>; 1] = [Box::new(Shared(faulty))];
    let mut workload = prepare(&devices, benchmark, params);
    let mut stream = devices[0].stream().unwrap();
    workload.enqueue(&mut *stream, 2).unwrap();
    right(&mut *workload, &mut *stream, Moment::Round(0));
    faulty.armed.store(true, Ordering::SeqCst);
    workload.enqueue(&mut *stream, 2).unwrap();
    stream.synchronize().unwrap();
    // What checks with the same kernel must itself be sound.
    faulty.armed.store(false, Ordering::SeqCst);
    let check = workload.verify(&mut *stream, moment).unwrap();
    assert!(matches!(check.verified, Verified::Wrong { .. }), "{benchmark} {params} with {fault:?}: {check:?}");
    // The next round is judged on its own.
    workload.enqueue(&mut *stream, 1).unwrap();
    right(&mut *workload, &mut *stream, Moment::Round(2));
}

/// A faulty device that several own.
struct Shared(&'static Faulty);

impl Device for Shared {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }
    fn clock(&self) -> &dyn Clock {
        self.0.clock()
    }
    fn alloc(&self, place: Place, size: Bytes) -> Result<RawBuffer, DeviceError> {
        self.0.alloc(place, size)
    }
    fn free(&self, buffer: RawBuffer) {
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

fn bandwidth(op: &str) -> Params {
    word("op", op).with("size", Value::Size((5 << 20) + 44))
}

#[test]
fn memory_bandwidth_notices_skipped_kernels() {
    for (op, kernel) in [
        ("read", KernelId::Read),
        ("write", KernelId::Write),
        ("copy", KernelId::Copy),
        ("scale", KernelId::Scale),
        ("add", KernelId::Add),
        ("triad", KernelId::Triad),
    ] {
        notices("memory_bandwidth", &bandwidth(op), Fault::Skip(kernel), ROUND);
    }
}

#[test]
fn memory_bandwidth_notices_one_wrong_element() {
    for (op, kernel, output) in [
        ("write", KernelId::Write, 0),
        ("copy", KernelId::Copy, 1),
        ("scale", KernelId::Scale, 1),
        ("add", KernelId::Add, 2),
        ("triad", KernelId::Triad, 2),
    ] {
        // The last piece is compared in every round; one in the middle shows in the sum at the latest.
        notices("memory_bandwidth", &bandwidth(op), Fault::WrongElement(kernel, output, (5 << 20) + 40), ROUND);
        notices(
            "memory_bandwidth",
            &bandwidth(op),
            Fault::WrongElement(kernel, output, (2 << 20) + 4004),
            Moment::After,
        );
    }
}

#[test]
fn memory_latency_notices_short_and_skipped_chases() {
    let params = Params::default().with("size", Value::Size(1 << 20));
    notices("memory_latency", &params, Fault::ShortChase, ROUND);
    notices("memory_latency", &params, Fault::Skip(KernelId::Chase), ROUND);
}

#[test]
fn host_link_notices_truncated_and_missing_copies() {
    for direction in ["h2d", "d2h", "both"] {
        let params = word("direction", direction).with("size", Value::Size(5 << 20));
        notices("host_link", &params, Fault::TruncatedCopy, ROUND);
        notices("host_link", &params, Fault::NoCopy, ROUND);
    }
}

#[test]
fn launch_latency_notices_launches_that_never_ran() {
    notices("launch_latency", &Params::default(), Fault::Skip(KernelId::PatternVerify), ROUND);
}

#[test]
fn parameters_that_make_no_sense_are_refused_with_a_reason() {
    let Some(device) = device("opencl") else { return };
    let info = device.info();
    let refused = |benchmark: &str, params: Params| {
        let reason = find(benchmark).unwrap().supports(info, &params).unwrap_err();
        assert!(!reason.is_empty());
    };
    refused("memory_bandwidth", Params::default());
    refused("memory_bandwidth", word("op", "sort"));
    refused("memory_bandwidth", bandwidth("copy").with("size", Value::Size(1 << 60)));
    refused("memory_bandwidth", bandwidth("copy").with("size", Value::Size(u64::MAX)));
    refused("memory_bandwidth", bandwidth("copy").with("size", Value::Int(0)));
    refused("memory_bandwidth", bandwidth("copy").with("size", Value::Word("big".to_owned())));
    refused("memory_latency", Params::default().with("size", Value::Size(1)));
    refused("memory_latency", Params::default().with("size", Value::Size(u64::MAX)));
    refused("host_link", Params::default());
    refused("host_link", word("direction", "sideways"));
    refused("host_link", word("direction", "h2d").with("memory", Value::Word("paged".to_owned())));
    refused("host_link", word("direction", "h2d").with("size", Value::Size(0)));
    let mut host = info.clone();
    host.id.backend = BackendId::Host;
    let reason = find("host_link").unwrap().supports(&host, &word("direction", "h2d")).unwrap_err();
    assert!(reason.contains("host"), "{reason}");
}

#[test]
fn arrays_that_fit_a_cache_can_never_pass() {
    let Some(device) = device("opencl") else { return };
    if device.info().last_level_cache.is_none_or(|cache| cache.get() < 20e6) {
        return crate::component::missing("an OpenCL device with a last-level cache of 20 MB");
    }
    let devices = [device];
    let workload = prepare(&devices, "memory_bandwidth", &bandwidth("triad"));
    assert_eq!(workload.engine().kind, EngineKind::HighOnly);
    let params = Params::default().with("size", Value::Size(1 << 20));
    assert_eq!(prepare(&devices, "memory_latency", &params).engine().kind, EngineKind::HighOnly);
}
