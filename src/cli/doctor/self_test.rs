//! Faults on purpose, on this machine: each must be caught by the same code that guards a run.

use std::path::Path;

use super::{Line, State};
use crate::backend::fault::{Fault, Faulty};
use crate::backend::host::file::{self, Job, Op, Session, Source};
use crate::backend::{Backend, Device, DeviceError, host};
use crate::benchmark::{self, Check, Context, Moment};
use crate::judge::{self, Against, Status, Value};
use crate::record::{BackendId, DataType, DeviceId, EngineKind, Params, Verified};
use crate::unit::{Bytes, Seconds};
use crate::{measure, record, stats};

/// All of them, each after the same thing without a fault was found right.
pub fn all(storage: &Path) -> Vec<Line> {
    let mut lines = Vec::new();
    match open() {
        Ok(device) => {
            lines.extend(DataType::ALL.into_iter().filter(|t| device.info().gemm_types.contains(t)).map(wrong_element))
        }
        Err(error) => lines.push(Line::new("wrong element", State::Failed, error.to_string(), "")),
    }
    lines.push(slow_kernel());
    lines.push(truncated_copy());
    lines.push(flipped_bit(storage));
    lines.push(disk_that_reads_nothing());
    lines
}

fn open() -> Result<Box<dyn Device>, DeviceError> {
    host::Host.open(&DeviceId::new(BackendId::Host, 0))
}

/// The benchmark's own check of `params`, without and with the fault.
fn checked(id: &str, params: &Params, fault: Option<Fault>) -> Result<Check, DeviceError> {
    let device = open()?;
    let devices: [Box<dyn Device>; 1] = [match fault {
        Some(fault) => Box::new(Faulty::new(device, fault)),
        None => device,
    }];
    let context = Context { devices: &devices, seed: 1, storage: None, aggressor: false };
    let benchmark = benchmark::find(id).ok_or_else(|| DeviceError::Unsupported(format!("{id}: no such benchmark")))?;
    let mut workload = benchmark.prepare(&context, params)?;
    let mut stream = devices[0].stream()?;
    workload.enqueue(&mut *stream, 1)?;
    stream.synchronize()?;
    workload.verify(&mut *stream, Moment::Round(0))
}

/// Right without the fault and wrong with it, or it was not caught.
fn caught(what: &str, id: &str, params: &Params, fault: Fault) -> Line {
    let result = checked(id, params, None).and_then(|sound| Ok((sound, checked(id, params, Some(fault))?)));
    match result.map(|(sound, faulty)| (sound.verified, faulty.verified)) {
        Ok((Verified::Right, Verified::Wrong { detail })) => {
            Line::new(what, State::Ok, format!("caught: {detail}"), "")
        }
        Ok((Verified::Right, _)) => Line::new(what, State::Failed, "injected and not noticed", ""),
        Ok((sound, _)) => Line::new(what, State::Failed, format!("without a fault: {sound:?}"), ""),
        Err(error) => Line::new(what, State::Failed, error.to_string(), ""),
    }
}

fn wrong_element(data_type: DataType) -> Line {
    let params = Params::default()
        .with("type", record::Value::Word(data_type.name().to_owned()))
        .with("n", record::Value::Int(512));
    caught(&format!("wrong element {data_type}"), "gemm", &params, Fault::WrongElement)
}

fn truncated_copy() -> Line {
    let params =
        Params::default().with("op", record::Value::Word("copy".to_owned())).with("size", record::Value::Size(8 << 20));
    caught("truncated copy", "memory_bandwidth", &params, Fault::TruncatedCopy(0.9))
}

/// Blocks of each of the two measurements, interleaved so that the machine's own changes hit both alike.
const BLOCKS: u32 = 24;
/// Every tenth launch twice: 10 % more work for the same result, a rate of 1/1.1.
const EVERY: u32 = 10;

/// The limit is what the sound device delivered just now; the rule must fail the slow one.
fn slow_kernel() -> Line {
    match slow_rates() {
        Ok((sound, slow)) => {
            let (limit, value) = (stats::uncertainty(&sound), stats::uncertainty(&slow));
            let measured = Value { median: value.median, uncertainty: value.expanded, drift: 0.0 };
            let against =
                Against { limit: limit.median - limit.expanded, better: record::Better::Higher, k: 3.0, cap: 0.01 };
            let (status, _) = judge::decide(measured, against, EngineKind::Decisive);
            let ratio = value.median / limit.median;
            let detail =
                format!("{:.1} % slower by {:.1} % more work", 100.0 * (1.0 - ratio), 100.0 / f64::from(EVERY));
            match status {
                Status::Fail => Line::new("slow kernel", State::Ok, format!("caught: {detail}"), ""),
                status => Line::new(
                    "slow kernel",
                    State::Failed,
                    format!("{status:?}: {detail}, U {:.1} %", 100.0 * value.expanded / value.median),
                    "this machine is too unsteady to show a difference of this size; run on an idle one",
                ),
            }
        }
        Err(error) => Line::new("slow kernel", State::Failed, error, ""),
    }
}

fn slow_rates() -> Result<(Vec<f64>, Vec<f64>), String> {
    let params = Params::default().with("type", record::Value::Word("fp32".to_owned()));
    let sound: [Box<dyn Device>; 1] = [open().map_err(|e| e.to_string())?];
    let slow: [Box<dyn Device>; 1] =
        [Box::new(Faulty::new(open().map_err(|e| e.to_string())?, Fault::SlowKernel(EVERY)))];
    let benchmark = benchmark::find("fma_peak").ok_or("fma_peak: no such benchmark")?;
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..BLOCKS / 4 {
        for (devices, rates) in [&sound, &slow].into_iter().zip(&mut rates) {
            let context = Context { devices, seed: 1, storage: None, aggressor: false };
            let mut workload = benchmark.prepare(&context, &params).map_err(|e| e.to_string())?;
            let mut stream = devices[0].stream().map_err(|e| e.to_string())?;
            let values = measure::blocks(&*devices[0], &mut *stream, &mut *workload, 4, Seconds(0.05));
            rates.extend(values.map_err(|e| e.message)?);
        }
    }
    let [sound, slow] = rates;
    Ok((sound, slow))
}

/// One bit of the file changes behind the engine's back.
fn flipped_bit(folder: &Path) -> Line {
    let what = "lying disk: wrong bytes";
    let run = || -> Result<Result<u64, String>, DeviceError> {
        let mut session = Session::open(
            &file::Options::new(folder, Bytes::mib(16), 1),
            Job { op: Op::Read, random: false, block: 1 << 20, depth: 4 },
        )?;
        if let Err(wrong) = session.check_file(false)? {
            return Err(DeviceError::Storage(format!("without a fault: {wrong}")));
        }
        session.file().flip_bit(session.file().size() / 2)?;
        session.check_file(false)
    };
    match run() {
        Ok(Err(detail)) => Line::new(what, State::Ok, format!("caught: {detail}"), ""),
        Ok(Ok(_)) => Line::new(what, State::Failed, "injected and not noticed", ""),
        Err(error) => {
            Line::new(what, State::Failed, error.to_string(), "choose a folder you may write to with --storage-dir")
        }
    }
}

/// A file system in memory takes O_DIRECT and reads nothing from a device: it must be called cache.
fn disk_that_reads_nothing() -> Line {
    let what = "lying disk: cache";
    let folder = Path::new("/dev/shm");
    let run = || -> Result<Source, DeviceError> {
        let mut session = Session::open(
            &file::Options::new(folder, Bytes::mib(16), 1),
            Job { op: Op::Read, random: false, block: 1 << 20, depth: 4 },
        )?;
        session.run(16)?;
        Ok(session.source())
    };
    match run() {
        Ok(Source::Device) => Line::new(what, State::Failed, "memory was taken for a device", ""),
        Ok(Source::Cache) => Line::new(what, State::Ok, "caught: no device moved these bytes", ""),
        Ok(Source::Unknown(why)) => {
            Line::new(what, State::Ok, format!("caught: not known to be a device's: {why}"), "")
        }
        Err(error) => Line::new(what, State::NotObservable, error.to_string(), "needs a writable /dev/shm"),
    }
}
