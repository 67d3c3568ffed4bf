//! Our storage engine against fio on the very same file: sequential 1 MiB reads at depth 32, random 4 KiB
//! reads at depth 32 and 1. Interleaved pairs, alternating who goes first; prints the median ratio of the rates
//! with its 95 % interval and the CPU time per request of both. `benches/compare-storage` runs it.
//!
//! Arguments: `[folder] [pairs]`, default the current folder and 41.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use gpu_assay::backend::host::file::{Job, Kind, Op, Options, PAGE, Session};
use gpu_assay::stats::{median, median_ratio};
use gpu_assay::unit::{Bytes, Quantity, Seconds, Unit};

/// Seconds of one run: a disk that others use changes within seconds, so many short pairs show more than few long ones.
const RUN: f64 = 0.5;

/// Requests per second and CPU seconds per request.
#[derive(Debug, Clone, Copy)]
struct Run {
    rate: f64,
    cpu: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let folder = arguments.first().map_or(".", String::as_str);
    let pairs: usize = arguments.get(1).map_or(Ok(41), |n| n.parse())?;
    if Command::new("fio").arg("--version").output().is_err() {
        return Err("needs fio".into());
    }
    let sequential = Job { op: Op::Read, random: false, block: 1 << 20, depth: 32 };
    let random = Job { op: Op::Read, random: true, block: PAGE, depth: 32 };
    for job in [sequential, random, Job { depth: 1, ..random }] {
        compare(Path::new(folder), job, pairs)?;
    }
    Ok(())
}

fn compare(folder: &Path, job: Job, pairs: usize) -> Result<(), Box<dyn Error>> {
    let mut session = Session::open(&Options::new(folder, Bytes::gib(1), 1), job)?;
    if session.file().choice().kind != Kind::Uring {
        return Err(format!("fio is asked for io_uring, but here: {}", session.file().choice().why).into());
    }
    let order = if job.random { "random" } else { "sequential" };
    println!("{order} read, block {}, depth {}, file {}", job.block, job.depth, session.file().description());
    // As many requests as take about the wanted time, the same for both.
    let trial = (job.depth as u64 * 64).max(1000);
    let count = (ours(&mut session, trial)?.rate * RUN) as u64;
    let (mut our_runs, mut fio_runs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        if pair % 2 == 0 {
            our_runs.push(ours(&mut session, count)?);
            fio_runs.push(fio(&session, job, count)?);
        } else {
            fio_runs.push(fio(&session, job, count)?);
            our_runs.push(ours(&mut session, count)?);
        }
    }
    report(job, count, &our_runs, &fio_runs);
    println!(
        "  {:?}, bytes from: {:?}",
        session.check_recent()?.map(|pages| format!("{pages} pages right")),
        session.source()
    );
    Ok(())
}

fn ours(session: &mut Session, count: u64) -> Result<Run, Box<dyn Error>> {
    let cpu = cpu_seconds()?;
    let begun = Instant::now();
    session.run(count)?;
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    Ok(Run { rate, cpu: (cpu_seconds()? - cpu) / count as f64 })
}

fn fio(session: &Session, job: Job, count: u64) -> Result<Run, Box<dyn Error>> {
    let output = Command::new("fio")
        .args(["--name=compare", "--ioengine=io_uring", "--direct=1", "--numjobs=1"])
        .args(["--fixedbufs=1", "--registerfiles=1", "--output-format=json", "--allow_file_create=0", "--invalidate=0"])
        // Without it every run reads the same random places, and the disk of a virtual machine keeps them in its cache.
        .arg("--randrepeat=0")
        .arg(if job.random { "--rw=randread" } else { "--rw=read" })
        .arg(format!("--filename={}", session.file().path().display()))
        .arg(format!("--size={}", session.file().size()))
        .arg(format!("--bs={}", job.block))
        .arg(format!("--iodepth={}", job.depth))
        .arg(format!("--io_size={}", count * job.block as u64))
        .output()?;
    let json = serde_json::from_slice::<serde_json::Value>(&output.stdout)
        .map_err(|e| format!("fio: {e}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let job = &json["jobs"][0];
    let number = |value: &serde_json::Value| value.as_f64().ok_or("fio: a number is missing");
    let requests = number(&job["read"]["total_ios"])?;
    let runtime = number(&job["job_runtime"])? * 1e-3;
    let cpu = (number(&job["usr_cpu"])? + number(&job["sys_cpu"])?) / 100.0 * runtime;
    Ok(Run { rate: number(&job["read"]["iops"])?, cpu: cpu / requests })
}

/// CPU time of this process, all threads, user and system.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    // SAFETY: all zeros are a valid rusage, and the call writes to it only.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        if libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + 1e-6 * t.tv_usec as f64;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

fn report(job: Job, count: u64, ours: &[Run], fio: &[Run]) {
    let column = |runs: &[Run], f: fn(&Run) -> f64| runs.iter().map(f).collect::<Vec<_>>();
    let (our_rates, fio_rates) = (column(ours, |r| r.rate), column(fio, |r| r.rate));
    let (our_cpu, fio_cpu) = (column(ours, |r| r.cpu), column(fio, |r| r.cpu));
    let rate = |requests: f64| match job.random {
        true => Quantity { value: requests, unit: Unit::IoPerSecond },
        false => Quantity { value: requests * job.block as f64, unit: Unit::BytePerSecond },
    };
    println!("  {} pairs of {count} requests", ours.len());
    println!("  rate: ours {}, fio {}", rate(median(&our_rates)), rate(median(&fio_rates)));
    let i = median_ratio(&our_rates, &fio_rates);
    println!("  rate ratio ours/fio: {:.4} (95 % interval {:.4} to {:.4})", i.estimate, i.low, i.high);
    println!("  CPU per request: ours {}, fio {}", Seconds(median(&our_cpu)), Seconds(median(&fio_cpu)));
    let i = median_ratio(&our_cpu, &fio_cpu);
    println!("  CPU ratio ours/fio: {:.4} (95 % interval {:.4} to {:.4})", i.estimate, i.low, i.high);
}
