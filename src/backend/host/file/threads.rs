//! The fallback engine: one thread per request in flight, each with a blocking pread or pwrite.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Instant;

use super::histogram::Histogram;
use super::transport::{Batch, Buffers, Failure, Op, Transport};

/// Threads over the buffers of one session.
pub struct Threads {
    buffers: Buffers,
    held: Vec<Option<u64>>,
    direct: bool,
}

/// Bytes of stack: the threads only call the kernel.
const STACK: usize = 128 << 10;

impl Threads {
    /// One thread per buffer; `direct` if the file is open with O_DIRECT.
    pub fn new(buffers: Buffers, direct: bool) -> Threads {
        Threads { held: vec![None; buffers.depth], buffers, direct }
    }
}

impl Transport for Threads {
    fn run(&mut self, batch: &Batch<'_>, latency: &mut Histogram) -> Result<(), Failure> {
        if !self.direct && batch.op == Op::Read {
            batch.file().forget_cached();
        }
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let failure = Mutex::new(None);
        let fail = |f: Failure| {
            stop.store(true, Ordering::Relaxed);
            if let Ok(mut first) = failure.lock() {
                first.get_or_insert(f);
            }
        };
        let work = |data: &mut [u8], held: &mut Option<u64>| {
            let mut latency = Histogram::default();
            while !stop.load(Ordering::Relaxed) {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= batch.count {
                    break;
                }
                match transfer(batch, batch.offset(i), data, &mut latency) {
                    Ok(offset) => *held = Some(offset),
                    Err(f) => fail(f),
                }
            }
            latency
        };
        std::thread::scope(|scope| {
            let mut running = Vec::new();
            for (data, held) in self.buffers.slots_mut().zip(&mut self.held) {
                let thread = Builder::new().stack_size(STACK).spawn_scoped(scope, || work(data, held));
                match thread {
                    Ok(thread) => running.push(thread),
                    Err(e) => fail(Failure::Other(format!("cannot start a thread: {e}"))),
                }
            }
            for thread in running {
                match thread.join() {
                    Ok(part) => latency.merge(&part),
                    Err(_) => fail(Failure::Other("an I/O thread panicked".to_owned())),
                }
            }
        });
        match failure.into_inner() {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(failure),
            Err(_) => Err(Failure::Other("an I/O thread panicked".to_owned())),
        }
    }

    fn held(&self) -> Vec<(u64, &[u8])> {
        let held = self.held.iter().enumerate();
        held.filter_map(|(slot, offset)| Some(((*offset)?, self.buffers.slot(slot)))).collect()
    }

    fn conditions(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// One request; returns its place.
fn transfer(batch: &Batch<'_>, offset: u64, data: &mut [u8], latency: &mut Histogram) -> Result<u64, Failure> {
    let ticket = batch.begin(offset, data);
    let begun = Instant::now();
    let result = match batch.op {
        Op::Read => whole(data.len(), |done| batch.file().file().read_at(&mut data[done..], offset + done as u64)),
        Op::Write => whole(data.len(), |done| batch.file().file().write_at(&data[done..], offset + done as u64)),
    };
    latency.record(begun.elapsed().as_nanos() as u64);
    batch.end(offset, ticket, data, result)?;
    Ok(offset)
}

/// Repeats `call` from where the last one stopped until `length` bytes are done or nothing more comes.
fn whole(length: usize, mut call: impl FnMut(usize) -> io::Result<usize>) -> io::Result<usize> {
    let mut done = 0;
    while done < length {
        match call(done) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}
