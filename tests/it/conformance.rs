//! One suite that every backend must pass: what a benchmark may rely on, whatever the device.
//!
//! Each test is written once over `&dyn Device` and instantiated for every backend that can run here.

use gpu_assay::backend::{
    Arg, Backend, Device, DeviceError, GemmProblem, Launch, Place, RawBuffer, RawGemm, RawKernel, Stream, TimingEvent,
};
use gpu_assay::kernel::{KernelId, READ_LANES, pattern};
use gpu_assay::record::{BackendState, DataType};
use gpu_assay::unit::Bytes;
use half::f16;

use crate::component;

/// Odd on purpose: vectors, groups and threads all have a rest.
const N: usize = 10_007;

/// First device of a backend; `None`, with a message, where it cannot be tested here.
pub fn device(name: &str) -> Option<Box<dyn Device>> {
    let backend: Box<dyn Backend> = match name {
        "host" => Box::new(gpu_assay::backend::host::Host),
        "opencl" => Box::new(gpu_assay::backend::opencl::OpenCl),
        _ => Box::new(gpu_assay::backend::sim::Sim::parse("1xh100-sxm5-80gb").expect("a valid description")),
    };
    let probe = backend.probe();
    match &probe.state {
        BackendState::Present { .. } => {
            let info = probe.devices.first().expect("a present backend has a device");
            assert!(!info.name.is_empty() && info.memory.get() > 0.0, "{info:?}");
            Some(backend.open(&info.id).expect("a listed device opens"))
        }
        BackendState::Absent { reason, remedy } => {
            assert!(!reason.is_empty());
            eprintln!("{name} is absent: {reason} ({remedy})");
            // Only a driver may be missing; the other backends need nothing that a machine could lack.
            match name {
                "opencl" => component::missing("pocl"),
                _ => component::missing(name),
            }
            None
        }
    }
}

macro_rules! conformance {
    ($($test:ident),* $(,)?) => {
        mod host { $(#[test] fn $test() { if let Some(device) = super::device("host") { super::$test(&*device); } })* }
        mod sim { $(#[test] fn $test() { if let Some(device) = super::device("sim") { super::$test(&*device); } })* }
        mod opencl { $(#[test] fn $test() { if let Some(device) = super::device("opencl") { super::$test(&*device); } })* }
    };
}

conformance!(
    buffers_hold_what_was_written,
    copies_between_all_places,
    ranges_beyond_a_buffer_are_errors,
    unknown_handles_are_errors,
    memory_kernels_match_their_meaning,
    fp64_chains,
    fp32_chains,
    fp16_chains,
    int8_chains,
    chase_follows_the_links,
    patterns_are_written_and_verified,
    gemm_fp64,
    gemm_fp32,
    gemm_fp16,
    gemm_int8,
    unsupported_gemm_is_an_error,
    events_are_in_order_and_agree_with_the_clock,
    streams_wait_for_each_other,
    results_do_not_depend_on_what_ran_before,
);

fn bytes<T: Copy, const S: usize>(values: &[T], le: fn(T) -> [u8; S]) -> Vec<u8> {
    values.iter().flat_map(|v| le(*v)).collect()
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// A buffer of the device that holds `data`.
fn filled(device: &dyn Device, stream: &mut dyn Stream, place: Place, data: &[u8]) -> RawBuffer {
    let buffer = device.alloc(place, Bytes::from(data.len())).unwrap();
    stream.upload(buffer, 0, data).unwrap();
    buffer
}

fn contents(stream: &mut dyn Stream, buffer: RawBuffer, size: usize) -> Vec<u8> {
    let mut data = vec![0xA5; size];
    stream.download(buffer, 0, &mut data).unwrap();
    data
}

fn run(device: &dyn Device, stream: &mut dyn Stream, kernel: KernelId, lanes: u64, args: &[Arg]) {
    let kernel = device.load(kernel).unwrap();
    stream.launch(Launch { kernel, lanes, args }).unwrap();
    stream.synchronize().unwrap();
}

/// Small values with a fraction: exact in fp16 and in sums.
fn values(n: usize, seed: u32) -> Vec<f32> {
    (0..n).map(|i| (pattern(i as u64, seed) >> 28) as f32 - 7.5).collect()
}

fn buffers_hold_what_was_written(device: &dyn Device) {
    let mut stream = device.stream().unwrap();
    for place in [Place::Device, Place::HostPinned, Place::HostPageable] {
        for size in [1, 3, 4096, 4097, 1 << 20] {
            let data: Vec<u8> = (0..size).map(|i| pattern(i as u64, 3) as u8).collect();
            let buffer = filled(device, &mut *stream, place, &data);
            assert_eq!(contents(&mut *stream, buffer, size), data, "{place:?} {size}");
            if size > 2 {
                stream.upload(buffer, 1, &[7, 8]).unwrap();
                let mut part = [0; 2];
                stream.download(buffer, 1, &mut part).unwrap();
                assert_eq!(part, [7, 8]);
                assert_eq!(contents(&mut *stream, buffer, size)[3..], data[3..]);
            }
            device.free(buffer);
            device.free(buffer);
        }
    }
}

fn copies_between_all_places(device: &dyn Device) {
    let places = [Place::Device, Place::HostPinned, Place::HostPageable];
    let mut stream = device.stream().unwrap();
    let data: Vec<u8> = (0..N).map(|i| pattern(i as u64, 9) as u8).collect();
    for from in places {
        for to in places {
            let source = filled(device, &mut *stream, from, &data);
            let target = filled(device, &mut *stream, to, &vec![0; N]);
            stream.copy(target, source, Bytes::from(N - 5)).unwrap();
            stream.synchronize().unwrap();
            let copied = contents(&mut *stream, target, N);
            assert_eq!(copied[..N - 5], data[..N - 5], "{from:?} to {to:?}");
            assert_eq!(copied[N - 5..], [0; 5], "{from:?} to {to:?} goes beyond its size");
            device.free(source);
            device.free(target);
        }
    }
}

fn ranges_beyond_a_buffer_are_errors(device: &dyn Device) {
    let mut stream = device.stream().unwrap();
    for place in [Place::Device, Place::HostPinned, Place::HostPageable] {
        let small = device.alloc(place, Bytes(100.0)).unwrap();
        let large = device.alloc(Place::Device, Bytes(200.0)).unwrap();
        stream.upload(small, 0, &[0; 101]).unwrap_err();
        stream.upload(small, 100, &[0; 1]).unwrap_err();
        stream.upload(small, usize::MAX, &[0; 2]).unwrap_err();
        stream.download(small, 1, &mut [0; 100]).unwrap_err();
        stream.copy(small, large, Bytes(101.0)).unwrap_err();
        stream.copy(large, small, Bytes(101.0)).unwrap_err();
        device.free(small);
        device.free(large);
    }
    // More than any machine has: an error, not an abort.
    let huge = device.alloc(Place::Device, Bytes(1e18)).unwrap_err();
    assert!(matches!(huge, DeviceError::OutOfMemory(_) | DeviceError::Driver { .. }), "{huge}");
}

fn unknown_handles_are_errors(device: &dyn Device) {
    const NONE: u64 = u64::MAX - 1;
    let mut stream = device.stream().unwrap();
    let known = device.alloc(Place::Device, Bytes(64.0)).unwrap();
    let unknown = RawBuffer(NONE);
    device.free(unknown);
    stream.copy(known, unknown, Bytes(8.0)).unwrap_err();
    stream.copy(unknown, known, Bytes(8.0)).unwrap_err();
    stream.upload(unknown, 0, &[1]).unwrap_err();
    stream.download(unknown, 0, &mut [0]).unwrap_err();
    stream.launch(Launch { kernel: RawKernel(NONE), lanes: 1, args: &[] }).unwrap_err();
    stream.gemm(RawGemm(NONE), known, known, known).unwrap_err();
    stream.wait(TimingEvent(NONE)).unwrap_err();
    let event = stream.record().unwrap();
    stream.synchronize().unwrap();
    stream.elapsed(event, TimingEvent(NONE)).unwrap_err();
    // A freed buffer is unknown; wrong arguments are refused.
    device.free(known);
    stream.upload(known, 0, &[1]).unwrap_err();
    let write = device.load(KernelId::Write).unwrap();
    let args = [Arg::Buffer(known), Arg::F32(1.0), Arg::U64(1)];
    stream.launch(Launch { kernel: write, lanes: 1, args: &args }).unwrap_err();
    stream.launch(Launch { kernel: write, lanes: 1, args: &args[..2] }).unwrap_err();
    let other = device.alloc(Place::Device, Bytes(64.0)).unwrap();
    let swapped = [Arg::F32(1.0), Arg::Buffer(other), Arg::U64(1)];
    stream.launch(Launch { kernel: write, lanes: 1, args: &swapped }).unwrap_err();
    device.free(other);
}

fn memory_kernels_match_their_meaning(device: &dyn Device) {
    let mut stream = device.stream().unwrap();
    let stream = &mut *stream;
    for n in [1, 4, 15, N] {
        let (a, b) = (values(n, 1), values(n, 2));
        let raw_a = filled(device, stream, Place::Device, &bytes(&a, f32::to_le_bytes));
        let raw_b = filled(device, stream, Place::Device, &bytes(&b, f32::to_le_bytes));
        // One float more than the kernels may touch.
        let c = filled(device, stream, Place::Device, &bytes(&vec![-1.0f32; n + 1], f32::to_le_bytes));
        let (a_, b_, c_) = (Arg::Buffer(raw_a), Arg::Buffer(raw_b), Arg::Buffer(c));
        let (s, count) = (Arg::F32(3.0), Arg::U64(n as u64));
        type Case<'a> = (KernelId, Vec<Arg>, Box<dyn Fn(usize) -> f32 + 'a>);
        let cases: [Case<'_>; 5] = [
            (KernelId::Write, vec![c_, s, count], Box::new(|_| 3.0)),
            (KernelId::Copy, vec![a_, c_, count], Box::new(|i| a[i])),
            (KernelId::Scale, vec![a_, c_, s, count], Box::new(|i| 3.0 * a[i])),
            (KernelId::Add, vec![a_, b_, c_, count], Box::new(|i| a[i] + b[i])),
            (KernelId::Triad, vec![a_, b_, c_, s, count], Box::new(|i| a[i] + 3.0 * b[i])),
        ];
        for (kernel, args, expected) in cases {
            run(device, stream, kernel, n as u64, &args);
            let result = f32s(&contents(stream, c, 4 * (n + 1)));
            let expected: Vec<f32> = (0..n).map(expected).collect();
            assert_eq!(result[..n], expected, "{kernel}, n = {n}");
            assert_eq!(result[n], -1.0, "{kernel} writes beyond n = {n}");
        }
        for lanes in [1, 77, READ_LANES] {
            let out = filled(device, stream, Place::Device, &bytes(&vec![1e9f32; lanes], f32::to_le_bytes));
            run(device, stream, KernelId::Read, lanes as u64, &[a_, Arg::Buffer(out), count]);
            let sum: f32 = f32s(&contents(stream, out, 4 * lanes)).iter().sum();
            assert_eq!(sum, a.iter().sum::<f32>(), "read, n = {n}, lanes = {lanes}");
            device.free(out);
        }
        for buffer in [raw_a, raw_b, c] {
            device.free(buffer);
        }
    }
}

/// Runs an arithmetic kernel over an odd number of lanes; `None` if the device rightly lacks the type.
fn chains(device: &dyn Device, data_type: DataType, kernel: KernelId, size: usize, args: &[Arg]) -> Option<Vec<u8>> {
    const LANES: usize = 1003;
    if !device.info().fma_types.contains(&data_type) {
        let error = device.load(kernel).unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported(_)), "{error}");
        return None;
    }
    let mut stream = device.stream().unwrap();
    let out = filled(device, &mut *stream, Place::Device, &vec![0xEE; (LANES + 1) * size]);
    let mut all = vec![Arg::Buffer(out)];
    all.extend_from_slice(args);
    run(device, &mut *stream, kernel, LANES as u64, &all);
    let result = contents(&mut *stream, out, (LANES + 1) * size);
    assert_eq!(result[LANES * size..], vec![0xEE; size], "{kernel} writes beyond its lanes");
    device.free(out);
    Some(result[..LANES * size].to_vec())
}

fn fp64_chains(device: &dyn Device) {
    let (m, k) = (1.000_000_1, -0.37);
    let args = [Arg::F64(m), Arg::F64(k), Arg::U32(37)];
    let Some(result) = chains(device, DataType::Fp64, KernelId::FmaFp64, 8, &args) else { return };
    for (lane, value) in result.chunks_exact(8).enumerate() {
        let start = 1.0 + (lane % 64) as f64 / 64.0;
        let expected = (0..37).fold(start, |x: f64, _| x.mul_add(m, k));
        assert_eq!(f64::from_le_bytes(value.try_into().unwrap()), expected, "lane {lane}");
    }
}

fn fp32_chains(device: &dyn Device) {
    let (m, k) = (1.000_1, -0.37);
    let args = [Arg::F32(m), Arg::F32(k), Arg::U32(37)];
    let Some(result) = chains(device, DataType::Fp32, KernelId::FmaFp32, 4, &args) else { return };
    for (lane, value) in f32s(&result).into_iter().enumerate() {
        let start = 1.0 + (lane % 64) as f32 / 64.0;
        assert_eq!(value, (0..37).fold(start, |x: f32, _| x.mul_add(m, k)), "lane {lane}");
    }
}

fn fp16_chains(device: &dyn Device) {
    let (m, k) = (f16::from_f32(0.75), f16::from_f32(0.3));
    let args = [Arg::F32(m.to_f32()), Arg::F32(k.to_f32()), Arg::U32(11)];
    let Some(result) = chains(device, DataType::Fp16, KernelId::FmaFp16, 2, &args) else { return };
    // The product of two halves and its sum with a third are exact in fp64: one rounding, as in hardware.
    let fma = |x: f16| f16::from_f64(x.to_f64().mul_add(m.to_f64(), k.to_f64()));
    for (lane, value) in result.chunks_exact(2).enumerate() {
        let start = f16::from_f32(1.0 + (lane % 64) as f32 / 64.0);
        let expected = (0..11).fold(start, |x, _| fma(x));
        assert_eq!(f16::from_le_bytes(value.try_into().unwrap()), expected, "lane {lane}");
    }
}

fn int8_chains(device: &dyn Device) {
    for (a, iterations) in [(0x7F80_81FF_u32 as i32, 5u32), (-1, 1), (0x0102_0304, 1_000_003)] {
        let args = [Arg::I32(a), Arg::U32(iterations)];
        let Some(result) = chains(device, DataType::Int8, KernelId::DotInt8, 4, &args) else { return };
        for (lane, value) in u32s(&result).into_iter().enumerate() {
            let bytes = (lane as u32).wrapping_mul(0x0101_0101).to_le_bytes();
            let dot: i32 =
                a.to_le_bytes().iter().zip(bytes).map(|(x, y)| i32::from(*x as i8) * i32::from(y as i8)).sum();
            let expected = (lane as i32).wrapping_add(dot.wrapping_mul(iterations as i32));
            assert_eq!(value as i32, expected, "lane {lane}");
        }
    }
}

fn chase_follows_the_links(device: &dyn Device) {
    let mut stream = device.stream().unwrap();
    let stream = &mut *stream;
    // 5 and 1009 have no common divisor: one cycle through all words.
    let next: Vec<u32> = (0..1009u32).map(|i| (i + 5) % 1009).collect();
    let links = filled(device, stream, Place::Device, &bytes(&next, u32::to_le_bytes));
    let out = filled(device, stream, Place::Device, &[0xFF; 4]);
    for (start, hops) in [(0u32, 0u32), (7, 1), (1008, 123_457)] {
        let args = [Arg::Buffer(links), Arg::Buffer(out), Arg::U32(start), Arg::U32(hops)];
        run(device, stream, KernelId::Chase, 1, &args);
        let expected = (u64::from(start) + 5 * u64::from(hops)) % 1009;
        assert_eq!(u64::from(u32s(&contents(stream, out, 4))[0]), expected);
    }
    device.free(links);
    device.free(out);
}

fn patterns_are_written_and_verified(device: &dyn Device) {
    let mut stream = device.stream().unwrap();
    let stream = &mut *stream;
    let buffer = device.alloc(Place::Device, Bytes::from(4 * N)).unwrap();
    let errors = filled(device, stream, Place::Device, &[0; 4]);
    let count = Arg::U64(N as u64);
    for invert in [0, u32::MAX] {
        run(
            device,
            stream,
            KernelId::PatternWrite,
            N as u64,
            &[Arg::Buffer(buffer), Arg::U32(5), Arg::U32(invert), count],
        );
        let expected: Vec<u32> = (0..N).map(|i| pattern(i as u64, 5) ^ invert).collect();
        assert_eq!(u32s(&contents(stream, buffer, 4 * N)), expected);
    }
    let verify = |stream: &mut dyn Stream, seed: u32| {
        stream.upload(errors, 0, &[0; 4]).unwrap();
        let args = [Arg::Buffer(buffer), Arg::Buffer(errors), Arg::U32(seed), Arg::U32(u32::MAX), count];
        run(device, stream, KernelId::PatternVerify, N as u64, &args);
        u32s(&contents(stream, errors, 4))[0]
    };
    assert_eq!(verify(stream, 5), 0);
    // One flipped bit in the last word, then a wrong seed.
    let last = pattern(N as u64 - 1, 5) ^ u32::MAX ^ 1 << 17;
    stream.upload(buffer, 4 * (N - 1), &last.to_le_bytes()).unwrap();
    assert_eq!(verify(stream, 5), 1);
    assert_eq!(verify(stream, 6) as usize, N);
    // Counts add up.
    let args = [Arg::Buffer(buffer), Arg::Buffer(errors), Arg::U32(5), Arg::U32(u32::MAX), count];
    run(device, stream, KernelId::PatternVerify, N as u64, &args);
    assert_eq!(u32s(&contents(stream, errors, 4))[0] as usize, N + 1);
    device.free(buffer);
    device.free(errors);
}

/// Sizes that are multiples of nothing, thin and flat ones, and one with a long k.
const SHAPES: [(usize, usize, usize); 5] = [(1, 1, 1), (67, 129, 31), (3, 200, 5), (130, 2, 64), (33, 65, 700)];

/// Small integers: every product and sum below is exact in every type.
fn integers(n: usize, seed: u32) -> Vec<i32> {
    (0..n).map(|i| (pattern(i as u64, seed) >> 30) as i32 - 1).collect()
}

fn exact_product(a: &[i32], b: &[i32], (m, n, k): (usize, usize, usize)) -> Vec<i64> {
    let dot = |i: usize, j: usize| (0..k).map(|l| i64::from(a[i * k + l]) * i64::from(b[j * k + l])).sum();
    (0..m * n).map(|at| dot(at / n, at % n)).collect()
}

/// Multiplies with the device; `encode` makes an input element, `decode` reads one of C.
fn gemm<const S: usize>(
    device: &dyn Device,
    data_type: DataType,
    encode: fn(i32) -> [u8; S],
    decode: fn(&[u8]) -> i64,
    input: impl Fn(usize, u32) -> Vec<i32>,
) {
    if !device.info().gemm_types.contains(&data_type) {
        let problem = GemmProblem { data_type, m: 8, n: 8, k: 8 };
        assert!(matches!(device.gemm(&problem), Err(DeviceError::Unsupported(_))));
        return;
    }
    let mut stream = device.stream().unwrap();
    let stream = &mut *stream;
    for shape in SHAPES {
        let (m, n, k) = shape;
        let (a, b) = (input(m * k, 11), input(n * k, 12));
        let plan = device.gemm(&GemmProblem { data_type, m, n, k }).unwrap();
        assert!(!plan.engine.name.is_empty());
        let raw_a = filled(device, stream, Place::Device, &bytes(&a, encode));
        let raw_b = filled(device, stream, Place::Device, &bytes(&b, encode));
        let c = filled(device, stream, Place::Device, &vec![0xEE; m * n * plan.size_c]);
        stream.gemm(plan.raw, raw_a, raw_b, c).unwrap();
        stream.synchronize().unwrap();
        let result: Vec<i64> = contents(stream, c, m * n * plan.size_c).chunks_exact(plan.size_c).map(decode).collect();
        assert_eq!(result, exact_product(&a, &b, shape), "{data_type} {shape:?}");
        for buffer in [raw_a, raw_b, c] {
            device.free(buffer);
        }
    }
    // Buffers that are too small are refused.
    let plan = device.gemm(&GemmProblem { data_type, m: 64, n: 64, k: 64 }).unwrap();
    let small = device.alloc(Place::Device, Bytes(16.0)).unwrap();
    let large = device.alloc(Place::Device, Bytes(64.0 * 64.0 * 8.0)).unwrap();
    for (a, b, c) in [(small, large, large), (large, small, large), (large, large, small)] {
        stream.gemm(plan.raw, a, b, c).unwrap_err();
    }
    device.free(small);
    device.free(large);
}

fn gemm_fp64(device: &dyn Device) {
    let decode = |c: &[u8]| f64::from_le_bytes(c.try_into().unwrap()) as i64;
    gemm(device, DataType::Fp64, |x| f64::from(x).to_le_bytes(), decode, integers);
}

fn gemm_fp32(device: &dyn Device) {
    let decode = |c: &[u8]| f32::from_le_bytes(c.try_into().unwrap()) as i64;
    gemm(device, DataType::Fp32, |x| (x as f32).to_le_bytes(), decode, integers);
}

fn gemm_fp16(device: &dyn Device) {
    let decode = |c: &[u8]| f16::from_le_bytes(c.try_into().unwrap()).to_f64() as i64;
    gemm(device, DataType::Fp16, |x| f16::from_f32(x as f32).to_le_bytes(), decode, integers);
}

fn gemm_int8(device: &dyn Device) {
    // The whole range, −128 included: saturating instructions would show.
    let input =
        |n: usize, seed: u32| (0..n).map(|i| i32::from((pattern(i as u64, seed) >> 24) as i8)).collect::<Vec<_>>();
    let decode = |c: &[u8]| i64::from(i32::from_le_bytes(c.try_into().unwrap()));
    gemm(device, DataType::Int8, |x| (x as i8).to_le_bytes(), decode, input);
    gemm(device, DataType::Int8, |x| (x as i8).to_le_bytes(), decode, |n, _| vec![-128; n]);
}

fn unsupported_gemm_is_an_error(device: &dyn Device) {
    for data_type in DataType::ALL {
        if !device.info().gemm_types.contains(&data_type) {
            let error = device.gemm(&GemmProblem { data_type, m: 64, n: 64, k: 64 }).unwrap_err();
            assert!(matches!(error, DeviceError::Unsupported(_)), "{data_type}: {error}");
        }
    }
}

fn events_are_in_order_and_agree_with_the_clock(device: &dyn Device) {
    let mut stream = device.stream().unwrap();
    let stream = &mut *stream;
    let n = 1 << 20;
    let buffer = filled(device, stream, Place::Device, &vec![0; 4 * n]);
    let kernel = device.load(KernelId::PatternWrite).unwrap();
    let args = [Arg::Buffer(buffer), Arg::U32(1), Arg::U32(0), Arg::U64(n as u64)];
    let launch = Launch { kernel, lanes: n as u64, args: &args };
    stream.launch(launch).unwrap();
    stream.synchronize().unwrap();

    let before = device.clock().now();
    let first = stream.record().unwrap();
    stream.launch(launch).unwrap();
    let second = stream.record().unwrap();
    for _ in 0..7 {
        stream.launch(launch).unwrap();
    }
    let third = stream.record().unwrap();
    stream.synchronize().unwrap();
    let around = (device.clock().now() - before) as f64 * 1e-9;

    let one = stream.elapsed(first, second).unwrap().get();
    let seven = stream.elapsed(second, third).unwrap().get();
    let all = stream.elapsed(first, third).unwrap().get();
    assert!(one > 0.0 && seven > 0.0, "{one} {seven}");
    // The parts are within the whole, and the whole within what the clock saw (5 % for different timers).
    assert!(one + seven <= all * 1.05, "{one} + {seven} against {all}");
    assert!(all <= around * 1.05, "{all} by events, {around} by the clock");
    assert_eq!(stream.elapsed(first, first).unwrap().get(), 0.0);
    device.free(buffer);
}

fn streams_wait_for_each_other(device: &dyn Device) {
    let n = 1 << 18;
    let mut first = device.stream().unwrap();
    let mut second = device.stream().unwrap();
    let a = filled(device, &mut *first, Place::Device, &vec![0; 4 * n]);
    let b = filled(device, &mut *first, Place::Device, &vec![0; 4 * n]);
    let write = device.load(KernelId::Write).unwrap();
    let copy = device.load(KernelId::Copy).unwrap();
    for round in 1..=8u8 {
        let value = f32::from(round);
        let count = Arg::U64(n as u64);
        let args = [Arg::Buffer(a), Arg::F32(value), count];
        // Written on one stream, copied on the other, twice: each waits for the other.
        first.launch(Launch { kernel: write, lanes: n as u64, args: &args }).unwrap();
        let written = first.record().unwrap();
        second.wait(written).unwrap();
        let args = [Arg::Buffer(a), Arg::Buffer(b), count];
        second.launch(Launch { kernel: copy, lanes: n as u64, args: &args }).unwrap();
        let copied = second.record().unwrap();
        first.wait(copied).unwrap();
        let args = [Arg::Buffer(a), Arg::F32(-1.0), count];
        first.launch(Launch { kernel: write, lanes: n as u64, args: &args }).unwrap();
        first.synchronize().unwrap();
        second.synchronize().unwrap();
        let result = f32s(&contents(&mut *second, b, 4 * n));
        assert!(result.iter().all(|x| *x == value), "round {round}");
    }
    // An event that completed long ago does not block.
    let old = first.record().unwrap();
    first.synchronize().unwrap();
    second.wait(old).unwrap();
    second.synchronize().unwrap();
    device.free(a);
    device.free(b);
}

fn results_do_not_depend_on_what_ran_before(device: &dyn Device) {
    // Handles stay apart: freed buffers do not come back under the old handle, kernels keep their arguments apart.
    let mut stream = device.stream().unwrap();
    let stream = &mut *stream;
    let old = device.alloc(Place::Device, Bytes(4096.0)).unwrap();
    device.free(old);
    let new = filled(device, stream, Place::Device, &[1; 4096]);
    assert_ne!(old, new);
    let other = filled(device, stream, Place::Device, &[2; 4096]);
    let kernel = device.load(KernelId::Write).unwrap();
    for (buffer, value) in [(new, 1.0), (other, 2.0)] {
        let args = [Arg::Buffer(buffer), Arg::F32(value), Arg::U64(1024)];
        stream.launch(Launch { kernel, lanes: 1024, args: &args }).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(f32s(&contents(stream, new, 4096)), [1.0; 1024]);
    assert_eq!(f32s(&contents(stream, other, 4096)), [2.0; 1024]);
    device.free(new);
    device.free(other);
}
