//! Our host kernels against OpenBLAS and a C STREAM triad: interleaved pairs, each with fresh buffers on both
//! sides, alternating who goes first; prints the median ratio of the rates with its 95 % interval. `benches/compare-host` builds the yardsticks and
//! runs it.
//!
//! Arguments: `folder-of-yardsticks [pairs]`.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use gpu_assay::backend::host::Host;
use gpu_assay::backend::{Arg, Backend, Device, GemmProblem, Launch, Place, RawBuffer, Stream};
use gpu_assay::kernel::KernelId;
use gpu_assay::record::{BackendId, DataType, DeviceId};
use gpu_assay::stats::{median, median_ratio};
use gpu_assay::unit::{Bytes, BytesPerSecond, FlopPerSecond};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Seconds of one piece of work of one side.
type Timer<'a> = Box<dyn FnMut() -> Result<f64> + 'a>;

const EDGE: usize = 2048;
/// Products in one timing.
const PRODUCTS: usize = 3;
/// Bytes of each array of the triad: three exceed any last-level cache.
const ARRAY: usize = 1 << 29;
/// Triads in one timing.
const TRIADS: usize = 5;
/// Timings of each side in one pair, after one that warms up.
const TURNS: usize = 3;
/// Threads of the other side spin for a while after their work: let them fall asleep.
const PAUSE: Duration = Duration::from_millis(100);

/// A helper program that times its work once for each line it is sent.
struct Yardstick {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Yardstick {
    fn start(program: &Path, arguments: &[String], threads: u32) -> Result<Yardstick> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        for name in ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"] {
            command.env(name, threads.to_string());
        }
        let mut child = command.env("OMP_PROC_BIND", "close").spawn()?;
        let ask = child.stdin.take().ok_or("no standard input")?;
        let answer = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Yardstick { child, ask, answer })
    }

    /// Seconds of one piece of work.
    fn time(&mut self) -> Result<f64> {
        writeln!(self.ask)?;
        let mut line = String::new();
        self.answer.read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }
}

impl Drop for Yardstick {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Seconds of one of `count` calls of `work`, by the device's events.
fn time(stream: &mut dyn Stream, count: usize, mut work: impl FnMut(&mut dyn Stream) -> Result<()>) -> Result<f64> {
    let start = stream.record()?;
    for _ in 0..count {
        work(stream)?;
    }
    let end = stream.record()?;
    stream.synchronize()?;
    Ok(stream.elapsed(start, end)?.get() / count as f64)
}

/// Seconds of both sides in interleaved pairs. Each pair is a fresh start of both: where the pages of a buffer come
/// to lie moves the rate by one or two per cent for as long as the buffer lives (two copies of the C STREAM
/// yardstick differ by as much), so that pairs of one start would agree with each other and be wrong together.
fn pairs<'a>(count: usize, start: impl Fn() -> Result<[Timer<'a>; 2]>) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for pair in 0..count {
        let mut sides = start()?;
        let mut seconds = [Vec::new(), Vec::new()];
        for turn in 0..=TURNS {
            for side in if (pair + turn) % 2 == 0 { [0, 1] } else { [1, 0] } {
                std::thread::sleep(PAUSE);
                let time = sides[side]()?;
                // The first turn warms up.
                if turn > 0 {
                    seconds[side].push(time);
                }
            }
        }
        a.push(median(&seconds[0]));
        b.push(median(&seconds[1]));
    }
    Ok((a, b))
}

/// One line of the table; the ratio is that of the rates.
fn print(name: &str, ours: &[f64], theirs: &[f64], rate: impl Fn(f64) -> String) {
    let ratio = median_ratio(theirs, ours);
    println!(
        "{name:28} {:.3}  [{:.3}, {:.3}]  ours {}, yardstick {}, {} pairs",
        ratio.estimate,
        ratio.low,
        ratio.high,
        rate(median(ours)),
        rate(median(theirs)),
        ours.len()
    );
}

/// Buffers that go with their side.
struct Buffers<'a>(&'a dyn Device, Vec<RawBuffer>);

impl<'a> Buffers<'a> {
    fn new(device: &'a dyn Device, count: usize, bytes: usize) -> Result<Buffers<'a>> {
        let buffers = (0..count).map(|_| device.alloc(Place::Device, Bytes::from(bytes)));
        Ok(Buffers(device, buffers.collect::<std::result::Result<_, _>>()?))
    }
}

impl Drop for Buffers<'_> {
    fn drop(&mut self) {
        self.1.iter().for_each(|buffer| self.0.free(*buffer));
    }
}

fn gemm(device: &dyn Device, folder: &Path, threads: u32, data_type: DataType, count: usize) -> Result<()> {
    let letter = if data_type == DataType::Fp64 { "d" } else { "s" };
    let arguments = [letter.to_owned(), EDGE.to_string(), PRODUCTS.to_string()];
    let problem = GemmProblem { data_type, m: EDGE, n: EDGE, k: EDGE };
    let value = |i: usize| (i * 7919 % 1000) as f64 / 1000.0 - 0.5;
    let data: Vec<u8> = match data_type {
        DataType::Fp64 => (0..EDGE * EDGE).flat_map(|i| value(i).to_le_bytes()).collect(),
        _ => (0..EDGE * EDGE).flat_map(|i| (value(i) as f32).to_le_bytes()).collect(),
    };
    let start = || -> Result<[Timer<'_>; 2]> {
        // Started first: an open stream pins this thread, and a child inherits that.
        let mut yardstick = Yardstick::start(&folder.join("gemm"), &arguments, threads)?;
        let plan = device.gemm(&problem)?;
        let mut stream = device.stream()?;
        let buffers = Buffers::new(device, 3, EDGE * EDGE * data_type.size())?;
        for buffer in &buffers.1[..2] {
            stream.upload(*buffer, 0, &data)?;
        }
        let ours = move || {
            let [a, b, c] = buffers.1[..] else { return Err("three matrices".into()) };
            time(&mut *stream, PRODUCTS, |stream| Ok(stream.gemm(plan.raw, a, b, c)?))
        };
        Ok([Box::new(ours), Box::new(move || yardstick.time())])
    };
    let (ours, theirs) = pairs(count, start)?;
    let rate = |seconds: f64| FlopPerSecond(problem.operations() / seconds).to_string();
    print(&format!("{data_type} product / OpenBLAS"), &ours, &theirs, rate);
    Ok(())
}

fn triad(device: &dyn Device, folder: &Path, threads: u32, count: usize) -> Result<()> {
    let arguments = [(ARRAY / 8).to_string(), TRIADS.to_string()];
    let n = (ARRAY / 4) as u64;
    let kernel = device.load(KernelId::Triad)?;
    let start = || -> Result<[Timer<'_>; 2]> {
        let mut yardstick = Yardstick::start(&folder.join("triad"), &arguments, threads)?;
        let mut stream = device.stream()?;
        let buffers = Buffers::new(device, 3, ARRAY)?;
        let ours = move || {
            let [a, b, c] = buffers.1[..] else { return Err("three arrays".into()) };
            let args = [Arg::Buffer(a), Arg::Buffer(b), Arg::Buffer(c), Arg::F32(3.0), Arg::U64(n)];
            time(&mut *stream, TRIADS, |s| Ok(s.launch(Launch { kernel, lanes: n, args: &args })?))
        };
        Ok([Box::new(ours), Box::new(move || yardstick.time())])
    };
    let (ours, theirs) = pairs(count, start)?;
    print("triad / C STREAM", &ours, &theirs, |seconds| BytesPerSecond(3.0 * ARRAY as f64 / seconds).to_string());
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let Some(folder) = arguments.first().map(Path::new) else {
        println!("skipped: benches/compare-host builds the yardsticks and runs this");
        return Ok(());
    };
    let count: usize = arguments.get(1).map_or(Ok(11), |n| n.parse())?;
    let device = Host.open(&DeviceId::new(BackendId::Host, 0))?;
    let threads = device.info().units.unwrap_or(1);
    println!("{}, {threads} threads; ratio of rates with 95 % interval:", device.info().name);
    gemm(&*device, folder, threads, DataType::Fp32, count)?;
    gemm(&*device, folder, threads, DataType::Fp64, count)?;
    triad(&*device, folder, threads, count)
}
