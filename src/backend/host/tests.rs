//! Every kernel through the public traits, against naive references.

use half::f16;

use super::*;
use crate::kernel::pattern;

fn device() -> Box<dyn Device> {
    Host.open(&DeviceId::new(BackendId::Host, 0)).unwrap()
}

fn bytes<T: Copy>(data: &[T]) -> Vec<u8> {
    // SAFETY: plain numbers have no padding.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }.to_vec()
}

fn upload<T: Copy>(device: &dyn Device, data: &[T]) -> RawBuffer {
    let data = bytes(data);
    let buffer = device.alloc(Place::Device, Bytes::from(data.len())).unwrap();
    device.stream().unwrap().upload(buffer, 0, &data).unwrap();
    buffer
}

fn download<T: Copy + Default>(device: &dyn Device, buffer: RawBuffer, count: usize) -> Vec<T> {
    let mut data = vec![T::default(); count];
    // SAFETY: any bytes are valid for plain numbers.
    let view = unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), count * size_of::<T>()) };
    device.stream().unwrap().download(buffer, 0, view).unwrap();
    data
}

fn launch(device: &dyn Device, kernel: KernelId, lanes: u64, args: &[Arg]) -> Result<(), DeviceError> {
    let kernel = device.load(kernel)?;
    device.stream()?.launch(Launch { kernel, lanes, args })
}

fn floats(count: usize, seed: u32) -> Vec<f32> {
    (0..count).map(|i| pattern(i as u64, seed) as f32 / u32::MAX as f32 - 0.5).collect()
}

/// Runs a map kernel on arrays that end in the middle of a cache line, with and without non-temporal stores.
fn maps(n: usize, streaming: bool) {
    let allowed = facts::affinity();
    let pool = Pool::new(allowed.clone()).unwrap();
    let sums = Mapping::new(64, &pool).unwrap();
    let team = Team { pool: &pool, cache: if streaming { 0.0 } else { f64::INFINITY }, sums: &sums };
    let (a, b, s) = (floats(n, 1), floats(n, 2), 1.7f32);
    let buffer = |data: &[f32]| {
        let mapping = Arc::new(Mapping::new(n * 4 + 64, &pool).unwrap());
        // SAFETY: the mapping holds the data and 64 bytes more.
        unsafe {
            mapping.start().write_bytes(0x5a, n * 4 + 64);
            std::ptr::copy_nonoverlapping(data.as_ptr().cast(), mapping.start(), n * 4);
        }
        mapping
    };
    let (raw, n64) = (|i: u64| Arg::Buffer(RawBuffer(i)), Arg::U64(n as u64));
    type Expected<'a> = Box<dyn Fn(usize) -> f32 + 'a>;
    let cases: [(KernelId, Vec<Arg>, Expected<'_>); 5] = [
        (KernelId::Write, vec![raw(2), Arg::F32(s), n64], Box::new(|_| s)),
        (KernelId::Copy, vec![raw(0), raw(2), n64], Box::new(|i| a[i])),
        (KernelId::Scale, vec![raw(0), raw(2), Arg::F32(s), n64], Box::new(|i| s * a[i])),
        (KernelId::Add, vec![raw(0), raw(1), raw(2), n64], Box::new(|i| a[i] + b[i])),
        (KernelId::Triad, vec![raw(0), raw(1), raw(2), Arg::F32(s), n64], Box::new(|i| a[i] + s * b[i])),
    ];
    for (kernel, args, expected) in cases {
        let buffers = [buffer(&a), buffer(&b), buffer(&vec![0.0; n])];
        let args = Args::new(kernel, &args, |arg| match arg {
            Arg::Buffer(RawBuffer(i)) => Ok(Some(buffers[*i as usize].clone())),
            _ => Ok(None),
        });
        team.launch(n as u64, &args.unwrap()).unwrap();
        // SAFETY: the mapping holds `n` floats and 64 bytes more.
        let (c, guard) = unsafe {
            let c = std::slice::from_raw_parts(buffers[2].start().cast::<f32>(), n);
            (c, std::slice::from_raw_parts(buffers[2].start().add(n * 4), 64))
        };
        assert!((0..n).all(|i| c[i] == expected(i)), "{kernel}, {n} elements, streaming {streaming}");
        assert!(guard.iter().all(|byte| *byte == 0x5a), "{kernel} wrote past the end");
    }
}

#[test]
fn stream_kernels_compute_every_element_and_no_more() {
    for n in [0, 1, 15, 16, 17, 1000, 100_003] {
        maps(n, false);
        maps(n, true);
    }
}

#[test]
fn read_adds_each_element_to_its_lane() {
    let device = device();
    for (n, lanes) in [(100_003usize, 64usize), (5000, 4096), (10, 100), (1 << 20, 65536), (12345, 1000), (7, 1)] {
        let src: Vec<f32> = (0..n).map(|i| (pattern(i as u64, 5) % 7) as f32).collect();
        let mut expected = vec![0f32; lanes];
        src.iter().enumerate().for_each(|(i, x)| expected[i % lanes] += x);
        let (src, out) = (upload(&*device, &src), upload(&*device, &vec![9f32; lanes]));
        let args = [Arg::Buffer(src), Arg::Buffer(out), Arg::U64(n as u64)];
        launch(&*device, KernelId::Read, lanes as u64, &args).unwrap();
        // Small whole numbers: exact in any order.
        assert_eq!(download::<f32>(&*device, out, lanes), expected, "{n} elements, {lanes} lanes");
    }
    let (src, out) = (upload(&*device, &[0f32; 8]), upload(&*device, &[0f32; 8]));
    let args = [Arg::Buffer(src), Arg::Buffer(out), Arg::U64(8)];
    assert!(launch(&*device, KernelId::Read, READ_LANES as u64 + 1, &args).is_err());
    assert!(launch(&*device, KernelId::Read, 0, &args).is_err());
}

#[test]
fn arithmetic_kernels_run_every_lane() {
    let device = device();
    let lanes = 1003;
    let out = upload(&*device, &vec![0f64; lanes]);
    let (m, k) = (-0.75, 2.0);
    let args = [Arg::Buffer(out), Arg::F64(m), Arg::F64(k), Arg::U32(11)];
    launch(&*device, KernelId::FmaFp64, lanes as u64, &args).unwrap();
    let start = |lane: usize| 1.0 + (lane % 64) as f64 / 64.0;
    let expected: Vec<f64> = (0..lanes).map(|lane| (0..11).fold(start(lane), |x, _| x.mul_add(m, k))).collect();
    assert_eq!(download::<f64>(&*device, out, lanes), expected);

    let args = [Arg::Buffer(out), Arg::F32(m as f32), Arg::F32(k as f32), Arg::U32(11)];
    launch(&*device, KernelId::FmaFp32, lanes as u64, &args).unwrap();
    let step = |x: f32, _| x.mul_add(m as f32, k as f32);
    let expected: Vec<f32> = (0..lanes).map(|lane| (0..11).fold(start(lane) as f32, step)).collect();
    assert_eq!(download::<f32>(&*device, out, lanes), expected);

    match launch(&*device, KernelId::FmaFp16, lanes as u64, &args) {
        Ok(()) => {
            let step = |x: f16, _| f16::from_f64(x.to_f64() * m + k);
            let expected: Vec<f16> = (0..lanes).map(|l| (0..11).fold(f16::from_f64(start(l)), step)).collect();
            assert_eq!(download::<f16>(&*device, out, lanes), expected);
        }
        Err(error) => {
            assert!(matches!(error, DeviceError::Unsupported(_)));
            assert!(!device.info().fma_types.contains(&DataType::Fp16));
        }
    }

    let args = [Arg::Buffer(out), Arg::I32(0x80ff_7f01_u32 as i32), Arg::U32(13)];
    launch(&*device, KernelId::DotInt8, lanes as u64, &args).unwrap();
    let dot = |lane: usize| {
        let x = (lane as u32).wrapping_mul(0x0101_0101).to_le_bytes().map(|byte| i32::from(byte as i8));
        x[0] + 127 * x[1] - x[2] - 128 * x[3]
    };
    let expected: Vec<i32> = (0..lanes).map(|lane| lane as i32 + 13 * dot(lane)).collect();
    assert_eq!(download::<i32>(&*device, out, lanes), expected);
}

#[test]
fn a_chase_ends_where_it_must_and_never_outside() {
    let device = device();
    let next: Vec<u32> = (0..1000).map(|i| (i * 7 + 3) % 1000).collect();
    let expected = (0..12345).fold(5u32, |at, _| next[at as usize]);
    let (next, out) = (upload(&*device, &next), upload(&*device, &[0u32]));
    let args = [Arg::Buffer(next), Arg::Buffer(out), Arg::U32(5), Arg::U32(12345)];
    launch(&*device, KernelId::Chase, 1, &args).unwrap();
    assert_eq!(download::<u32>(&*device, out, 1), [expected]);
    let outside = upload(&*device, &[1u32, 2, 3]);
    let args = [Arg::Buffer(outside), Arg::Buffer(out), Arg::U32(0), Arg::U32(9)];
    assert!(matches!(launch(&*device, KernelId::Chase, 1, &args), Err(DeviceError::Driver { .. })));
}

#[test]
fn patterns_are_written_and_every_wrong_word_is_counted() {
    let device = device();
    let n = 10_007;
    let buffer = upload(&*device, &vec![0u32; n]);
    let errors = upload(&*device, &[100u32]);
    let write = [Arg::Buffer(buffer), Arg::U32(77), Arg::U32(u32::MAX), Arg::U64(n as u64)];
    launch(&*device, KernelId::PatternWrite, n as u64, &write).unwrap();
    let found = download::<u32>(&*device, buffer, n);
    assert!(found.iter().enumerate().all(|(i, word)| *word == !pattern(i as u64, 77)));
    let verify = [Arg::Buffer(buffer), Arg::Buffer(errors), Arg::U32(77), Arg::U32(u32::MAX), Arg::U64(n as u64)];
    launch(&*device, KernelId::PatternVerify, n as u64, &verify).unwrap();
    assert_eq!(download::<u32>(&*device, errors, 1), [100]);
    let mut stream = device.stream().unwrap();
    for at in [0, 5000, n - 1] {
        stream.upload(buffer, at * 4, &[1, 2, 3, 4]).unwrap();
    }
    launch(&*device, KernelId::PatternVerify, n as u64, &verify).unwrap();
    assert_eq!(download::<u32>(&*device, errors, 1), [103]);
}

#[test]
fn copies_and_transfers_keep_to_their_bounds() {
    let device = device();
    let data: Vec<u8> = (0..100_003u32).map(|i| (i * 31) as u8).collect();
    let (from, to) = (upload(&*device, &data), upload(&*device, &vec![0u8; data.len()]));
    let mut stream = device.stream().unwrap();
    stream.copy(to, from, Bytes::from(data.len())).unwrap();
    assert_eq!(download::<u8>(&*device, to, data.len()), data);
    assert!(stream.copy(to, from, Bytes::from(data.len() + 1)).is_err());
    assert!(stream.upload(to, data.len() - 1, &[1, 2]).is_err());
    assert!(stream.upload(to, usize::MAX, &[1, 2]).is_err());
    assert!(stream.download(from, data.len(), &mut [0]).is_err());
    device.free(from);
    device.free(from);
    assert!(stream.copy(to, from, Bytes(1.0)).is_err());
}

#[test]
fn wrong_launches_are_refused() {
    let device = device();
    let small = upload(&*device, &[0f32; 4]);
    let refused = |kernel, args: &[Arg]| matches!(launch(&*device, kernel, 4, args), Err(DeviceError::Driver { .. }));
    assert!(refused(KernelId::Copy, &[Arg::Buffer(small), Arg::Buffer(small), Arg::U64(5)]));
    assert!(refused(KernelId::Copy, &[Arg::Buffer(small), Arg::Buffer(small), Arg::U64(u64::MAX)]));
    assert!(refused(KernelId::Copy, &[Arg::Buffer(small), Arg::U64(4)]));
    assert!(refused(KernelId::Copy, &[Arg::Buffer(small), Arg::Buffer(RawBuffer(999)), Arg::U64(4)]));
    assert!(refused(KernelId::FmaFp64, &[Arg::Buffer(small), Arg::F64(1.0), Arg::F64(1.0), Arg::U32(1)]));
    let unknown = Launch { kernel: RawKernel(99), lanes: 1, args: &[] };
    assert!(device.stream().unwrap().launch(unknown).is_err());
    assert!(device.stream().unwrap().gemm(RawGemm(5), small, small, small).is_err());
    assert!(Host.open(&DeviceId::new(BackendId::Host, 1)).is_err());
}

#[test]
fn gemm_through_the_traits() {
    let device = device();
    let problem = GemmProblem { data_type: DataType::Fp32, m: 3, n: 5, k: 4 };
    let plan = device.gemm(&problem).unwrap();
    let (a, b) = (floats(12, 3), floats(20, 4));
    let (raw_a, raw_b, raw_c) = (upload(&*device, &a), upload(&*device, &b), upload(&*device, &[0f32; 15]));
    let mut stream = device.stream().unwrap();
    stream.gemm(plan.raw, raw_a, raw_b, raw_c).unwrap();
    for (i, c) in download::<f32>(&*device, raw_c, 15).into_iter().enumerate() {
        let expected: f32 = (0..4).map(|p| a[i / 5 * 4 + p] * b[i % 5 * 4 + p]).sum();
        assert!((c - expected).abs() < 1e-6);
    }
    assert!(stream.gemm(plan.raw, raw_a, raw_b, raw_a).is_err(), "C does not fit A's buffer");
    let none = GemmProblem { data_type: DataType::Fp8, ..problem };
    assert!(matches!(device.gemm(&none), Err(DeviceError::Unsupported(_))));
    assert!(matches!(device.gemm(&GemmProblem { m: 0, ..problem }), Err(DeviceError::Unsupported(_))));
    let huge = GemmProblem { m: usize::MAX / 2, ..problem };
    assert!(matches!(device.gemm(&huge), Err(DeviceError::OutOfMemory(_))));
}

#[test]
fn the_probe_describes_this_machine() {
    let probe = Host.probe();
    assert!(matches!(probe.state, BackendState::Present { .. }));
    let [info] = &probe.devices[..] else { panic!("one device") };
    assert!(info.units.unwrap() >= 1);
    assert!(info.memory.get() > 0.0);
    assert!(info.attributes.contains_key("instruction_sets") && info.attributes.contains_key("affinity"));
    assert!(!info.simulated && info.uuid.is_none());
}

#[test]
fn events_are_readings_of_the_clock() {
    let device = device();
    let mut stream = device.stream().unwrap();
    let start = stream.record().unwrap();
    device.clock().sleep_until(device.clock().now() + 2_000_000);
    let end = stream.record().unwrap();
    assert!(stream.elapsed(start, end).unwrap().get() >= 0.002);
}
