//! Storage cases on the host device as a run drives them: between two events of its stream.

use std::time::Instant;

use gpu_assay::backend::{Backend, Device, host::Host};
use gpu_assay::benchmark::{Context, Moment, find};
use gpu_assay::record::{BackendId, DeviceId, Params, Value, Verified};
use gpu_assay::unit::Unit;

#[test]
fn the_work_lies_between_the_events_and_is_verified() {
    let folder = tempfile::tempdir_in(concat!(env!("CARGO_MANIFEST_DIR"), "/target")).unwrap();
    let host = Host.open(&DeviceId::new(BackendId::Host, 0)).unwrap();
    let devices: [Box<dyn Device>; 1] = [host];
    let storage = Some(folder.path().to_owned());
    let context = Context { devices: &devices, seed: 3, storage, aggressor: false };
    let mut stream = devices[0].stream().unwrap();
    for (benchmark, op, unit) in [
        ("storage_sequential", "read", Unit::BytePerSecond),
        ("storage_random", "read", Unit::IoPerSecond),
        ("storage_sequential", "write", Unit::BytePerSecond),
        ("storage_random", "write", Unit::IoPerSecond),
    ] {
        let params = Params::default()
            .with("op", Value::Word(op.to_owned()))
            .with("depth", Value::Int(4))
            .with("size", Value::Size(64 << 20));
        let benchmark = find(benchmark).unwrap();
        benchmark.supports(devices[0].info(), &params).unwrap();
        let mut work = benchmark.prepare(&context, &params).unwrap();
        assert_eq!(work.verify(&mut *stream, Moment::Before).unwrap().verified, Verified::Right);
        let start = stream.record().unwrap();
        let begun = Instant::now();
        work.enqueue(&mut *stream, 40.min(work.max_iterations())).unwrap();
        let took = begun.elapsed().as_secs_f64();
        let end = stream.record().unwrap();
        stream.synchronize().unwrap();
        let elapsed = stream.elapsed(start, end).unwrap().get();
        assert!(elapsed >= took, "events show {elapsed} s, the requests alone took {took} s");
        assert_eq!(work.work().unit, unit);
        for moment in [Moment::Round(0), Moment::After] {
            assert_eq!(work.verify(&mut *stream, moment).unwrap().verified, Verified::Right);
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn storage_is_not_measured_on_a_gpu() {
    let probe = Host.probe();
    let mut device = probe.devices[0].clone();
    device.id = DeviceId::new(BackendId::Cuda, 0);
    let params = Params::default().with("op", Value::Word("read".to_owned()));
    for benchmark in ["storage_sequential", "storage_random"] {
        let reason = find(benchmark).unwrap().supports(&device, &params).unwrap_err();
        assert!(reason.contains("host"), "{reason}");
    }
}
