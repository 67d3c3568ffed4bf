//! How requests reach the file: the choice of an engine, and what all engines share.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::Histogram;
use super::pattern::{PAGE, Scatter};
use super::test_file::{TestFile, set_direct};
use super::threads::Threads;
use super::uring::{Uring, probe};
use crate::backend::DeviceError;

/// Direction of the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

impl Op {
    /// "read" or "write".
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
        }
    }
}

/// Order in which blocks are visited.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// One after the other, from the start again at the end.
    Sequential,
    /// Scattered; every block once per pass.
    Random(Scatter),
}

/// A stretch of requests of one size.
#[derive(Debug)]
pub struct Batch<'a> {
    file: &'a TestFile,
    /// Direction.
    pub op: Op,
    order: Order,
    /// Bytes per request.
    pub block: usize,
    blocks: u64,
    first: u64,
    /// Requests.
    pub count: u64,
    inspect: bool,
    pages: AtomicU64,
}

impl<'a> Batch<'a> {
    /// `count` requests of `block` bytes, beginning with the `first` of `order`.
    pub fn new(file: &'a TestFile, op: Op, order: Order, block: usize, first: u64, count: u64) -> Batch<'a> {
        let blocks = file.size() / block as u64;
        Batch { file, op, order, block, blocks, first, count, inspect: false, pages: AtomicU64::new(0) }
    }

    /// Neighbouring blocks from number `first`.
    pub fn sequential(file: &'a TestFile, op: Op, block: usize, first: u64, count: u64) -> Batch<'a> {
        Batch::new(file, op, Order::Sequential, block, first, count)
    }

    /// Every page read is also checked, as its request completes.
    pub fn inspected(mut self) -> Batch<'a> {
        self.inspect = true;
        self
    }

    /// Pages that were checked and right.
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// The file.
    pub fn file(&self) -> &'a TestFile {
        self.file
    }

    /// Place of the `i`-th request of this batch.
    pub fn offset(&self, i: u64) -> u64 {
        let block = match self.order {
            Order::Sequential => (self.first + i) % self.blocks,
            Order::Random(scatter) => scatter.at(self.first + i),
        };
        block * self.block as u64
    }

    /// Called before a request is sent; the result is handed back on completion.
    pub fn begin(&self, offset: u64, data: &mut [u8]) -> u64 {
        match self.op {
            Op::Read => 0,
            Op::Write => self.file.fill(offset, data),
        }
    }

    /// Called when a request has completed with `result` bytes or an error.
    pub fn end(&self, offset: u64, ticket: u64, data: &[u8], result: io::Result<usize>) -> Result<(), Failure> {
        let short = |n| io::Error::other(format!("only {n} bytes were transferred"));
        let result = result.and_then(|n| if n == self.block { Ok(()) } else { Err(short(n)) });
        result.map_err(|error| Failure::Io { op: self.op, offset, length: self.block, error })?;
        match self.op {
            Op::Write => self.file.written(offset, self.block, ticket),
            Op::Read if self.inspect => {
                let pages = self.file.check(offset, data, self.file.now()).map_err(Failure::Wrong)?;
                self.pages.fetch_add(pages, Ordering::Relaxed);
            }
            Op::Read => {}
        }
        Ok(())
    }
}

/// Why a stretch of I/O ended early.
#[derive(Debug)]
pub enum Failure {
    /// The kernel refused or broke off a request.
    Io {
        /// direction
        op: Op,
        /// place in the file
        offset: u64,
        /// bytes asked for
        length: usize,
        /// errno with its text
        error: io::Error,
    },
    /// Read data was not what was written.
    Wrong(String),
    /// Anything around the requests.
    Other(String),
}

/// An engine connected to a file: keeps a fixed number of requests in flight.
pub trait Transport {
    /// Performs the batch; returns when all its requests are complete. Latencies from submission to
    /// completion are added to `latency`.
    fn run(&mut self, batch: &Batch<'_>, latency: &mut Histogram) -> Result<(), Failure>;
    /// Place and content of the last completed request of each buffer.
    fn held(&self) -> Vec<(u64, &[u8])>;
    /// Name → text, for the conditions of the engine.
    fn conditions(&self) -> Vec<(&'static str, String)>;
    /// True if the buffers are known to lie on huge pages.
    fn on_huge_pages(&self) -> bool {
        false
    }
}

/// Which engine is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preference {
    /// io_uring, else direct threads, else buffered threads.
    Best,
    /// As if io_uring were refused.
    WithoutUring,
    /// As if O_DIRECT were refused.
    WithoutDirect,
}

/// Engines, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// io_uring on an O_DIRECT file.
    Uring,
    /// One thread per request in flight, pread/pwrite on an O_DIRECT file.
    DirectThreads,
    /// As before through the page cache, which is emptied before each stretch.
    BufferedThreads,
}

impl Kind {
    /// Name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Uring => "io_uring",
            Kind::DirectThreads => "pread threads, O_DIRECT",
            Kind::BufferedThreads => "pread threads, buffered",
        }
    }
}

/// The engine that was chosen for a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Which.
    pub kind: Kind,
    /// Why, in words.
    pub why: String,
}

impl Choice {
    /// Tries what the kernel and the file system allow, best first, with one page of real I/O.
    pub fn probe(file: &File, preference: Preference) -> Choice {
        let direct = match preference {
            Preference::WithoutDirect => Err("O_DIRECT was ruled out by the caller".to_owned()),
            _ => probe_direct(file).map_err(|e| format!("O_DIRECT refused: {e}")),
        };
        if let Err(why) = direct {
            // Cannot fail: the flag that is cleared here could be set at most.
            let _ = set_direct(file, false);
            return Choice { kind: Kind::BufferedThreads, why };
        }
        let uring = match preference {
            Preference::WithoutUring => Err("io_uring was ruled out by the caller".to_owned()),
            _ => probe(file).map_err(|e| format!("io_uring refused: {e}")),
        };
        match uring {
            Ok(()) => Choice { kind: Kind::Uring, why: "io_uring and O_DIRECT are allowed here".to_owned() },
            Err(why) => Choice { kind: Kind::DirectThreads, why },
        }
    }

    /// An engine with `depth` buffers of `block` bytes.
    pub fn connect(&self, file: &TestFile, block: usize, depth: usize) -> Result<Box<dyn Transport>, DeviceError> {
        let error = |e| DeviceError::Storage(format!("{}: {e}", self.kind.name()));
        let buffers = Buffers::new(block, depth).map_err(|e| DeviceError::OutOfMemory(e.to_string()))?;
        Ok(match self.kind {
            Kind::Uring => Box::new(Uring::new(file.fd(), buffers).map_err(error)?),
            Kind::DirectThreads => Box::new(Threads::new(buffers, true)),
            Kind::BufferedThreads => Box::new(Threads::new(buffers, false)),
        })
    }
}

/// Some file systems take the flag and refuse the transfer.
fn probe_direct(file: &File) -> io::Result<()> {
    set_direct(file, true)?;
    let mut buffers = Buffers::new(PAGE, 1)?;
    file.read_at(buffers.slot_mut(0), 0)?;
    file.write_at(buffers.slot_mut(0), 0).map(|_| ())
}

/// Page-aligned buffers of equal size in one mapping.
#[derive(Debug)]
pub struct Buffers {
    start: NonNull<u8>,
    /// Bytes of one buffer.
    pub block: usize,
    /// Number of buffers.
    pub depth: usize,
}

// SAFETY: the mapping belongs to this value alone; nothing in it is tied to a thread.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Maps and touches `depth` buffers of `block` bytes.
    pub fn new(block: usize, depth: usize) -> io::Result<Buffers> {
        let length = block.checked_mul(depth).filter(|n| *n > 0).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made. Huge pages are a wish: fewer pages to pin per request.
        unsafe { libc::madvise(map, length, libc::MADV_HUGEPAGE) };
        let start = NonNull::new(map.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the whole mapping is writable and ours.
        unsafe { start.as_ptr().write_bytes(0, length) };
        Ok(Buffers { start, block, depth })
    }

    /// True if the kernel says that most of the mapping lies on huge pages: they were only wished for.
    pub fn on_huge_pages(&self) -> bool {
        let length = (self.block * self.depth) as u64;
        let Ok(smaps) = std::fs::read_to_string("/proc/self/smaps") else { return false };
        huge_bytes(&smaps, self.start.as_ptr() as u64).is_some_and(|huge| 2 * huge >= length)
    }

    /// Address of buffer `slot`.
    pub fn address(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.depth);
        // SAFETY: slot < depth, so the address is inside the mapping.
        unsafe { self.start.as_ptr().add(slot * self.block) }
    }

    /// Content of buffer `slot`; only while the kernel does not write to it.
    pub fn slot(&self, slot: usize) -> &[u8] {
        // SAFETY: `address` checks the bound; the mapping lives as long as self.
        unsafe { std::slice::from_raw_parts(self.address(slot), self.block) }
    }

    /// Buffer `slot`, to be filled; only while the kernel does not use it.
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        // SAFETY: as in `slot`, and self is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.address(slot), self.block) }
    }

    /// All buffers at once.
    pub fn slots_mut(&mut self) -> std::slice::ChunksExactMut<'_, u8> {
        // SAFETY: the mapping is block × depth bytes, ours, and borrowed mutably through self.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.block * self.depth) }
            .chunks_exact_mut(self.block)
    }
}

/// Bytes on huge pages in the mapping of `smaps` (proc(5)) that holds `address`.
fn huge_bytes(smaps: &str, address: u64) -> Option<u64> {
    let holds = |line: &str| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        Some((from..to).contains(&address))
    };
    let mut lines = smaps.lines().skip_while(|line| holds(line) != Some(true)).skip(1);
    // The fields of this mapping end where the next one begins.
    let line = lines.by_ref().take_while(|line| holds(line).is_none()).find(|l| l.starts_with("AnonHugePages:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // The kernel holds its own references to pages of requests still in flight, so unmapping is safe then too.
        // SAFETY: exactly the mapping made in `new`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.block * self.depth) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_read_from_the_mapping_that_holds_the_address() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0\nSize: 8 kB\nAnonHugePages:  2048 kB\n\
                     3000-5000 rw-p 00000000 00:00 0 [heap]\nSize: 8 kB\n\
                     5000-9000 rw-p 00000000 00:00 0\nAnonHugePages: 0 kB\n";
        assert_eq!(huge_bytes(smaps, 0x1000), Some(2 << 20));
        assert_eq!(huge_bytes(smaps, 0x2fff), Some(2 << 20));
        assert_eq!(huge_bytes(smaps, 0x3000), None, "no field of its own: the next mapping's does not count");
        assert_eq!(huge_bytes(smaps, 0x5000), Some(0));
        assert_eq!(huge_bytes(smaps, 0x9000), None);
        assert_eq!(huge_bytes("", 1), None);
    }

    #[test]
    fn a_buffer_smaller_than_a_huge_page_is_on_none() {
        assert!(!Buffers::new(PAGE, 1).unwrap().on_huge_pages());
    }
}
