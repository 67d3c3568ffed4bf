//! Healthy rates, faults, determinism and the grammar of simulated devices.

use super::*;
use crate::backend::{Arg, Companion, GemmProblem, Launch, Place, RawBuffer, Stream};
use crate::kernel::{KernelId, READ_LANES};
use crate::record::{DataType, Params, Value};
use crate::unit::Bytes;

fn open(text: &str, index: u32) -> Box<dyn Device> {
    let sim = Sim::parse(text).unwrap_or_else(|e| panic!("{e}"));
    sim.open(&DeviceId::new(BackendId::Sim, index)).unwrap()
}

/// Runs `work` repeatedly between two events and gives seconds per repetition.
fn seconds(stream: &mut dyn Stream, repeat: u32, mut work: impl FnMut(&mut dyn Stream)) -> f64 {
    let start = stream.record().unwrap();
    for _ in 0..repeat {
        work(stream);
    }
    let end = stream.record().unwrap();
    stream.synchronize().unwrap();
    stream.elapsed(start, end).unwrap().get() / f64::from(repeat)
}

/// FLOP/s of an 8192³ product, over about a fifth of a second.
fn gemm_rate(device: &dyn Device, data_type: DataType) -> f64 {
    let edge = 8192 / device.scale().edge as usize;
    let problem = GemmProblem { data_type, m: edge, n: edge, k: edge };
    let plan = device.gemm(&problem).unwrap();
    let buffer = |size| device.alloc(Place::Device, Bytes::from(edge * edge * size)).unwrap();
    let (a, b, c) = (buffer(data_type.size()), buffer(data_type.size()), buffer(plan.size_c));
    let mut stream = device.stream().unwrap();
    let once = seconds(&mut *stream, 1, |s| s.gemm(plan.raw, a, b, c).unwrap());
    let repeat = (0.2 / once).ceil() as u32;
    let each = seconds(&mut *stream, repeat, |s| s.gemm(plan.raw, a, b, c).unwrap());
    [a, b, c].into_iter().for_each(|x| device.free(x));
    2.0 * 8192f64.powi(3) / each
}

/// Bytes per second of reading `size` true bytes.
fn read_rate(device: &dyn Device, size: f64) -> f64 {
    let n = (size / f64::from(device.scale().bytes) / 4.0) as usize;
    let src = device.alloc(Place::Device, Bytes::from(4 * n)).unwrap();
    let out = device.alloc(Place::Device, Bytes::from(4 * READ_LANES)).unwrap();
    let kernel = device.load(KernelId::Read).unwrap();
    let args = [Arg::Buffer(src), Arg::Buffer(out), Arg::U64(n as u64)];
    let mut stream = device.stream().unwrap();
    let launch = Launch { kernel, lanes: READ_LANES as u64, args: &args };
    let each = seconds(&mut *stream, 200, |s| s.launch(launch).unwrap());
    [src, out].into_iter().for_each(|x| device.free(x));
    n as f64 * 4.0 * f64::from(device.scale().bytes) / each
}

/// Bytes per second to the device.
fn link_rate(device: &dyn Device, place: Place) -> f64 {
    let size = 256 << 10;
    let host = device.alloc(place, Bytes::from(size)).unwrap();
    let there = device.alloc(Place::Device, Bytes::from(size)).unwrap();
    let mut stream = device.stream().unwrap();
    let each = seconds(&mut *stream, 20, |s| s.copy(there, host, Bytes::from(size)).unwrap());
    [host, there].into_iter().for_each(|x| device.free(x));
    size as f64 * f64::from(device.scale().bytes) / each
}

/// Seconds per hop in `size` true bytes.
fn latency(device: &dyn Device, size: f64) -> f64 {
    let n = (size / f64::from(device.scale().bytes) / 4.0) as u32;
    let next = device.alloc(Place::Device, Bytes::from(4 * n as usize)).unwrap();
    let out = device.alloc(Place::Device, Bytes(4.0)).unwrap();
    let ring: Vec<u8> = (0..n).flat_map(|i| ((i + 1) % n).to_le_bytes()).collect();
    let mut stream = device.stream().unwrap();
    stream.upload(next, 0, &ring).unwrap();
    let kernel = device.load(KernelId::Chase).unwrap();
    let args = [Arg::Buffer(next), Arg::Buffer(out), Arg::U32(0), Arg::U32(100_000)];
    let each = seconds(&mut *stream, 1, |s| s.launch(Launch { kernel, lanes: 1, args: &args }).unwrap());
    [next, out].into_iter().for_each(|x| device.free(x));
    each / 100_000.0
}

/// Everything a fault could touch, as rates of a freshly opened device.
fn profile(text: &str, index: u32) -> BTreeMap<&'static str, f64> {
    let device = open(text, index);
    BTreeMap::from([
        ("bf16", gemm_rate(&*device, DataType::Bf16)),
        ("fp16", gemm_rate(&*device, DataType::Fp16)),
        ("memory", read_rate(&*device, 4e9)),
        ("link", link_rate(&*device, Place::HostPinned)),
        ("capacity", device.info().memory.get()),
        ("units", f64::from(device.info().units.unwrap())),
    ])
}

const H100: &str = "h100-sxm5-80gb";

#[test]
fn a_healthy_h100_is_plausible_and_below_every_figure() {
    let device = open(H100, 0);
    let bf16 = gemm_rate(&*device, DataType::Bf16);
    assert!((0.6..0.9).contains(&(bf16 / 989.4e12)), "{bf16:e}");
    let fp32 = gemm_rate(&*device, DataType::Fp32);
    assert!((0.8..1.0).contains(&(fp32 / 66.9e12)), "{fp32:e}");
    let memory = read_rate(&*device, 4e9);
    assert!((0.85..0.96).contains(&(memory / 3352e9)), "{memory:e}");
    let cached = read_rate(&*device, 16e6);
    assert!(cached > 1.5 * memory, "{cached:e} against {memory:e}");
    let (pinned, pageable) = (link_rate(&*device, Place::HostPinned), link_rate(&*device, Place::HostPageable));
    assert!((50e9..60e9).contains(&pinned) && pageable < 0.5 * pinned, "{pinned:e} {pageable:e}");
    let by_level = [64e3, 16e6, 4e9].map(|size| latency(&*device, size));
    assert!(by_level[0] < 50e-9 && by_level[0] * 2.0 < by_level[1] && by_level[1] * 2.0 < by_level[2], "{by_level:?}");
    assert!(by_level[2] < 1e-6);
}

#[test]
fn every_model_of_the_table_is_simulated_or_says_what_is_missing() {
    let mut simulated = 0;
    for gpu in spec::table().all() {
        match Sim::parse(&gpu.id) {
            Ok(sim) => {
                simulated += 1;
                let info = sim.probe().devices.remove(0);
                assert!(info.simulated && info.name.starts_with("SIMULATED "), "{}", gpu.id);
                assert!(info.uuid.is_some_and(|u| u.starts_with("SIM-")));
                assert_eq!(info.spec.as_deref(), Some(gpu.id.as_str()));
                let device = open(&gpu.id, 0);
                let printed = gpu.device_value("memory_bandwidth").unwrap();
                assert!(read_rate(&*device, 2e9) < 1.02 * printed.max(1.0), "{}", gpu.id);
            }
            Err(error) => assert!(error.contains("is not known") || error.contains("are not known"), "{error}"),
        }
    }
    assert!(simulated >= 90, "{simulated}");
}

#[test]
fn a_package_of_two_devices_is_simulated_as_the_driver_shows_it() {
    let device = open("mi250x", 0);
    assert_eq!(device.info().units, Some(110));
    assert!(read_rate(&*device, 4e9) < 1638.4e9);
}

/// Each fault moves what it is about by about the stated factor, and nothing else by more than the noise.
#[test]
fn faults_touch_what_they_are_about_and_nothing_else() {
    let healthy = profile(H100, 0);
    let cases: &[(&str, &[(&str, f64)])] = &[
        ("power-cap", &[("bf16", 0.87), ("fp16", 0.87)]),
        ("thermal", &[]), // not before minutes of load
        ("slow-memory=0.8", &[("memory", 0.8)]),
        ("half-memory", &[("capacity", 0.5)]),
        ("fewer-units=33", &[("bf16", 0.75), ("fp16", 0.75), ("units", 0.75)]),
        ("half-link", &[("link", 0.5)]),
        ("slow-gemm=fp16=0.7", &[("fp16", 0.7)]),
        ("wrong-gemm=fp16", &[]),
        ("nan", &[]),
        ("neighbour=100%", &[("bf16", 0.5), ("fp16", 0.5), ("memory", 0.5)]),
        ("spoof", &[]),
        ("no-telemetry", &[]),
        ("aggressor-idle", &[]),
    ];
    for (fault, touched) in cases {
        let found = profile(&format!("{H100}:{fault}"), 0);
        for (what, value) in &found {
            let expected = touched.iter().find(|(w, _)| w == what).map_or(1.0, |(_, f)| *f);
            let ratio = value / healthy[what];
            assert!((ratio / expected - 1.0).abs() < 0.02, "{fault}: {what} {ratio:.3}, expected {expected}");
        }
    }
}

#[test]
fn a_fault_of_one_device_leaves_the_others_alone() {
    let text = "4xh100-sxm5-80gb:slow-memory@2=0.5";
    let rates: Vec<f64> = (0..4).map(|i| read_rate(&*open(text, i), 4e9)).collect();
    assert!((rates[2] / rates[1] - 0.5).abs() < 0.01, "{rates:?}");
    assert!((rates[0] / rates[3] - 1.0).abs() < 0.02, "{rates:?}");
}

#[test]
fn thermal_throttling_comes_after_minutes_and_is_shown() {
    let device = open("h100-sxm5-80gb:thermal", 0);
    let fresh = gemm_rate(&*device, DataType::Bf16);
    load(&*device, 60.0);
    let early = gemm_rate(&*device, DataType::Bf16);
    assert!((early / fresh - 1.0).abs() < 0.02, "{early:e} {fresh:e}");
    load(&*device, 240.0);
    let late = gemm_rate(&*device, DataType::Bf16);
    assert!((0.8..0.93).contains(&(late / fresh)), "{}", late / fresh);
    let readings = device.readings();
    let last = |sensor: &str| readings.iter().rfind(|r| r.sensor == sensor).unwrap().value;
    assert_eq!(last("throttle") as u32, THROTTLE_THERMAL | THROTTLE_POWER);
    assert!((86.0..88.0).contains(&last("temperature")));
    assert!(last("clock") < 1830e6 && last("power") < 600.0);
    let healthy = open(H100, 0);
    load(&*healthy, 300.0);
    assert!((gemm_rate(&*healthy, DataType::Bf16) / fresh - 1.0).abs() < 0.02);
}

/// Keeps the matrix units busy for so many simulated seconds.
fn load(device: &dyn Device, seconds: f64) {
    let edge = 65536 / device.scale().edge as usize;
    let problem = GemmProblem { data_type: DataType::Bf16, m: edge, n: 16, k: edge };
    let plan = device.gemm(&problem).unwrap();
    let buffer = |elements| device.alloc(Place::Device, Bytes::from(elements * 2)).unwrap();
    let (a, b, c) = (buffer(edge * edge), buffer(16 * edge), buffer(edge * 16));
    let mut stream = device.stream().unwrap();
    let end = device.clock().now() + (seconds * 1e9) as u64;
    while device.clock().now() < end {
        stream.gemm(plan.raw, a, b, c).unwrap();
        stream.synchronize().unwrap();
    }
    [a, b, c].into_iter().for_each(|x| device.free(x));
}

#[test]
fn a_power_cap_is_shown_by_sensors() {
    let device = open("h100-sxm5-80gb:power-cap", 0);
    load(&*device, 1.0);
    let readings = device.readings();
    let last = |sensor: &str| readings.iter().rfind(|r| r.sensor == sensor).unwrap().value;
    assert!((last("power_limit") - 490.0).abs() < 1e-6 && (last("power") - 490.0).abs() < 1.0);
    assert_eq!(last("throttle") as u32, THROTTLE_POWER);
    assert!(device.readings().is_empty(), "readings are handed out once");
    let mute = open("h100-sxm5-80gb:no-telemetry", 0);
    load(&*mute, 1.0);
    assert!(mute.readings().is_empty());
}

#[test]
fn the_first_reading_shows_the_device_before_anything_is_allocated() {
    let device = open(H100, 0);
    device.alloc(Place::Device, Bytes(32.0 * 1024.0 * 1024.0)).unwrap();
    device.clock().sleep_until(device.clock().now() + 6_000_000_000);
    let readings = device.readings();
    let used: Vec<f64> = readings.iter().filter(|r| r.sensor == "memory_used").map(|r| r.value).collect();
    assert!(used[0] < 1e9 && used[1] - used[0] > 34e9, "{used:?}");
}

#[test]
fn half_link_and_neighbour_are_shown_by_sensors() {
    let last = |text: &str, sensor: &str| {
        let device = open(text, 0);
        device.clock().sleep_until(device.clock().now() + 6_000_000_000);
        device.readings().iter().rfind(|r| r.sensor == sensor).unwrap().value
    };
    assert_eq!((last(H100, "link_width"), last("h100-sxm5-80gb:half-link", "link_width")), (16.0, 8.0));
    assert_eq!((last(H100, "load"), last("h100-sxm5-80gb:neighbour=100%", "load")), (0.0, 1.0));
    assert!(last("h100-sxm5-80gb:neighbour", "memory_used") > last(H100, "memory_used") + 5e9);
}

/// Median and spread of 30 rates, a simulated second apart.
fn spread(text: &str) -> (f64, f64) {
    let device = open(text, 0);
    let mut rates: Vec<f64> = (0..30)
        .map(|_| {
            device.clock().sleep_until(device.clock().now() + 1_000_000_000);
            gemm_rate(&*device, DataType::Bf16)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    (rates[15], (rates[24] - rates[5]) / rates[15])
}

#[test]
fn noise_is_small_unless_asked_for() {
    let (healthy, spread_healthy) = spread(H100);
    assert!((1e-4..0.01).contains(&spread_healthy), "{spread_healthy}");
    let (median, spread_unsteady) = spread("h100-sxm5-80gb:unsteady");
    assert!(spread_unsteady > 0.04, "{spread_unsteady}");
    assert!((median / healthy - 1.0).abs() < 0.05);
    assert!(spread("h100-sxm5-80gb:neighbour").1 > 0.1);
}

#[test]
fn drift_slows_over_time() {
    let device = open("h100-sxm5-80gb:drift=3", 0);
    let start = gemm_rate(&*device, DataType::Bf16);
    device.clock().sleep_until(device.clock().now() + 120_000_000_000);
    let end = gemm_rate(&*device, DataType::Bf16);
    assert!((end / start - 0.94).abs() < 0.01, "{}", end / start);
}

#[test]
fn the_event_timer_can_be_wrong() {
    let device = open("h100-sxm5-80gb:clock-skew", 0);
    let mut stream = device.stream().unwrap();
    let (start, begun) = (stream.record().unwrap(), device.clock().now());
    device.clock().sleep_until(begun + 1_000_000_000);
    let end = stream.record().unwrap();
    stream.synchronize().unwrap();
    assert!((stream.elapsed(start, end).unwrap().get() - 1.01).abs() < 1e-4);
}

#[test]
fn the_same_text_gives_the_same_timeline() {
    let run = |text: &str| {
        let device = open(text, 1);
        let rates =
            [gemm_rate(&*device, DataType::Bf16), read_rate(&*device, 4e9), link_rate(&*device, Place::HostPinned)];
        (rates.map(f64::to_bits), device.clock().now(), device.readings())
    };
    assert_eq!(run("2xa100-sxm4-80gb"), run("2xa100-sxm4-80gb"));
    assert_ne!(run("2xa100-sxm4-80gb").0, run("2xa100-sxm4-80gb:seed=1").0);
}

/// C of a 64³ product of ones in this type, and the same again after the inputs changed.
fn product(text: &str, data_type: DataType) -> Vec<f32> {
    let device = open(text, 0);
    let plan = device.gemm(&GemmProblem { data_type, m: 64, n: 64, k: 64 }).unwrap();
    let one: Vec<u8> = match data_type {
        DataType::Fp16 => half::f16::ONE.to_le_bytes().to_vec(),
        _ => 1f32.to_le_bytes().to_vec(),
    };
    let buffer = |size: usize| device.alloc(Place::Device, Bytes::from(4096 * size)).unwrap();
    let (a, b, c) = (buffer(one.len()), buffer(one.len()), buffer(plan.size_c));
    let mut stream = device.stream().unwrap();
    for input in [a, b] {
        stream.upload(input, 0, &one.repeat(4096)).unwrap();
    }
    stream.gemm(plan.raw, a, b, c).unwrap();
    let mut bytes = vec![0; 4096 * plan.size_c];
    stream.download(c, 0, &mut bytes).unwrap();
    let value = |chunk: &[u8]| match data_type {
        DataType::Fp16 => half::f16::from_le_bytes([chunk[0], chunk[1]]).to_f32(),
        _ => f32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]),
    };
    bytes.chunks_exact(plan.size_c).map(value).collect()
}

#[test]
fn results_are_computed_and_faults_spoil_only_their_type() {
    let wrong = |text: &str, t: DataType| product(text, t).iter().filter(|x| **x != 64.0).count();
    assert_eq!(wrong(H100, DataType::Fp16), 0);
    assert_eq!(wrong("h100-sxm5-80gb:wrong-gemm=fp16", DataType::Fp16), 1);
    assert_eq!(wrong("h100-sxm5-80gb:wrong-gemm=fp16", DataType::Fp32), 0);
    assert_eq!(product("h100-sxm5-80gb:nan", DataType::Fp32).iter().filter(|x| x.is_nan()).count(), 1);
}

#[test]
fn a_result_follows_its_inputs_and_whatever_overwrote_it() {
    let device = open(H100, 0);
    let mut stream = device.stream().unwrap();
    let buffer = || device.alloc(Place::Device, Bytes(16.0)).unwrap();
    let (a, c) = (buffer(), buffer());
    let kernel = device.load(KernelId::Scale).unwrap();
    let args = [Arg::Buffer(a), Arg::Buffer(c), Arg::F32(2.0), Arg::U64(4)];
    let run = |stream: &mut dyn Stream| {
        stream.launch(Launch { kernel, lanes: 4, args: &args }).unwrap();
        let mut bytes = [0; 4];
        stream.download(c, 0, &mut bytes).unwrap();
        f32::from_le_bytes(bytes)
    };
    stream.upload(a, 0, &3f32.to_le_bytes()).unwrap();
    assert_eq!((run(&mut *stream), run(&mut *stream)), (6.0, 6.0));
    stream.upload(c, 0, &[0; 4]).unwrap();
    assert_eq!(run(&mut *stream), 6.0);
    stream.upload(a, 0, &5f32.to_le_bytes()).unwrap();
    assert_eq!(run(&mut *stream), 10.0);
    // In place, twice: the second run starts from the first one's output.
    let args = [Arg::Buffer(a), Arg::Buffer(a), Arg::F32(2.0), Arg::U64(4)];
    for _ in 0..2 {
        stream.launch(Launch { kernel, lanes: 4, args: &args }).unwrap();
    }
    let mut bytes = [0; 4];
    stream.download(a, 0, &mut bytes).unwrap();
    assert_eq!(f32::from_le_bytes(bytes), 20.0);
}

#[test]
fn companions_take_their_share_of_what_they_use() {
    let device = open(H100, 0);
    let (alone, memory) = (gemm_rate(&*device, DataType::Bf16), read_rate(&*device, 4e9));
    let other = |word: &str| Companion {
        benchmark: "interference".to_owned(),
        params: Params::default()
            .with("victim", Value::Word("cache".to_owned()))
            .with("aggressor", Value::Word(word.to_owned())),
    };
    device.companions(&[other("compute")]);
    assert!((gemm_rate(&*device, DataType::Bf16) / alone - 0.5).abs() < 0.02);
    assert!((read_rate(&*device, 4e9) / memory - 1.0).abs() < 0.02);
    device.companions(&[other("memory")]);
    assert!((gemm_rate(&*device, DataType::Bf16) / alone - 1.0).abs() < 0.02);
    assert!((read_rate(&*device, 4e9) / memory - 0.5).abs() < 0.02);
    device.companions(&[]);
    assert!((gemm_rate(&*device, DataType::Bf16) / alone - 1.0).abs() < 0.02);
    // An idle aggressor: nothing for itself, no loss to its victim.
    let text = "h100-sxm5-80gb:aggressor-idle";
    let (victim, aggressor) = (open(text, 0), open(text, 0));
    aggressor.play_neighbour();
    victim.companions(&[other("compute")]);
    aggressor.companions(&[other("compute")]);
    assert!((gemm_rate(&*victim, DataType::Bf16) / alone - 1.0).abs() < 0.02);
    assert!(gemm_rate(&*aggressor, DataType::Bf16) / alone < 0.02);
}

#[test]
fn copies_both_ways_overlap_and_events_order_streams() {
    let device = open(H100, 0);
    let buffer = |place| device.alloc(place, Bytes::from(1 << 20)).unwrap();
    let (h1, h2) = (buffer(Place::HostPinned), buffer(Place::HostPinned));
    let (d1, d2) = (buffer(Place::Device), buffer(Place::Device));
    let (mut up, mut down) = (device.stream().unwrap(), device.stream().unwrap());
    let size = Bytes::from(1 << 20);
    let start = up.record().unwrap();
    up.copy(d1, h1, size).unwrap();
    down.copy(h2, d2, size).unwrap();
    let (up_end, down_end) = (up.record().unwrap(), down.record().unwrap());
    up.wait(down_end).unwrap();
    let both = up.record().unwrap();
    up.synchronize().unwrap();
    let (one, all) = (up.elapsed(start, up_end).unwrap().get(), up.elapsed(start, both).unwrap().get());
    assert!(all < 1.2 * one, "{one} {all}");
}

#[test]
fn a_lost_device_stays_lost() {
    let device = open("h100-sxm5-80gb:lost=3", 0);
    let kernel = device.load(KernelId::Empty).unwrap();
    let mut stream = device.stream().unwrap();
    let launch = Launch { kernel, lanes: 1, args: &[] };
    assert!(stream.launch(launch).is_ok() && stream.launch(launch).is_ok());
    assert!(matches!(stream.launch(launch), Err(DeviceError::Lost(_))));
    assert!(matches!(stream.synchronize(), Err(DeviceError::Lost(_))));
    assert!(matches!(device.alloc(Place::Device, Bytes(4.0)), Err(DeviceError::Lost(_))));
    let late = open("h100-sxm5-80gb:lost=2s", 0);
    assert!(late.stream().is_ok());
    late.clock().sleep_until(late.clock().now() + 2_000_000_000);
    assert!(matches!(late.stream().err(), Some(DeviceError::Lost(_))), "gone for every process");
}

#[test]
fn a_hanging_device_accepts_work_and_never_completes() {
    let (sender, receiver) = std::sync::mpsc::channel();
    // The thread is left behind, as a stuck worker process would be.
    std::thread::spawn(move || {
        let device = open("h100-sxm5-80gb:hang=fp16", 0);
        gemm_rate(&*device, DataType::Bf16);
        sender.send("bf16").unwrap();
        gemm_rate(&*device, DataType::Fp16);
        sender.send("fp16").unwrap();
    });
    assert_eq!(receiver.recv(), Ok("bf16"));
    let more = receiver.recv_timeout(std::time::Duration::from_millis(300));
    assert_eq!(more, Err(std::sync::mpsc::RecvTimeoutError::Timeout));
}

#[test]
fn bad_calls_are_refused() {
    let device = open(H100, 0);
    let small = device.alloc(Place::Device, Bytes(8.0)).unwrap();
    let mut stream = device.stream().unwrap();
    let write = device.load(KernelId::Write).unwrap();
    let mut refuses = |args: &[Arg]| {
        let result = stream.launch(Launch { kernel: write, lanes: 1, args });
        assert!(matches!(result, Err(DeviceError::Driver { .. })), "{args:?}: {result:?}");
    };
    refuses(&[]);
    refuses(&[Arg::Buffer(small), Arg::U32(1), Arg::U64(1)]);
    refuses(&[Arg::Buffer(small), Arg::F32(1.0), Arg::U64(3)]);
    refuses(&[Arg::Buffer(small), Arg::F32(1.0), Arg::U64(u64::MAX)]);
    refuses(&[Arg::Buffer(RawBuffer(99)), Arg::F32(1.0), Arg::U64(1)]);
    assert!(stream.upload(small, 7, &[0; 2]).is_err());
    assert!(stream.upload(small, usize::MAX, &[0; 2]).is_err());
    assert!(stream.download(small, 9, &mut [0; 1]).is_err());
    assert!(matches!(device.alloc(Place::Device, Bytes(1e9)), Err(DeviceError::OutOfMemory(_))));
    let fp4 = GemmProblem { data_type: DataType::Fp4, m: 1, n: 1, k: 1 };
    assert!(matches!(device.gemm(&fp4), Err(DeviceError::Unsupported(_))));
}

#[test]
fn half_the_memory_is_half_the_memory() {
    let device = open("h100-sxm5-80gb:half-memory", 0);
    let gib = |n: f64| Bytes(n * (1u64 << 30) as f64 / f64::from(device.scale().bytes));
    assert!(device.alloc(Place::Device, gib(30.0)).is_ok());
    assert!(matches!(device.alloc(Place::Device, gib(30.0)), Err(DeviceError::OutOfMemory(_))));
}

#[test]
fn a_spoofed_name_leaves_the_hardware_as_it_is() {
    let (info, real) = (open("a100-sxm4-80gb:spoof=h100-sxm5-80gb", 0), open("a100-sxm4-80gb", 0));
    let (info, real) = (info.info(), real.info());
    assert_eq!(info.name, "SIMULATED NVIDIA H100 80GB HBM3");
    assert_eq!((&info.pci, info.units, info.spec.as_deref()), (&real.pci, real.units, Some("a100-sxm4-80gb")));
}
