//! The best engine: io_uring on an O_DIRECT file. One thread keeps the queue full; completions are reaped and
//! their buffers sent again in one system call. File and buffers are registered where the kernel lets us.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Instant;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};

use super::histogram::Histogram;
use super::pattern::PAGE;
use super::transport::{Batch, Buffers, Failure, Op, Transport};

/// Requests submitted by one system call at most: one by one costs a call each, all that are free at once lets the
/// disk idle while the batch is prepared. Between 1 and 32 no comparison so far stands out of its interval.
const BURST: u64 = 4;
/// Filling a buffer larger than this takes so long that the write before it is submitted first.
const EAGER: usize = 64 << 10;

/// A ring over the buffers of one session.
pub struct Uring {
    // Before `buffers`: the ring is closed first.
    ring: IoUring,
    buffers: Buffers,
    slots: Vec<Slot>,
    fd: RawFd,
    fixed_file: bool,
    fixed_buffers: Result<(), String>,
    mode: &'static str,
    huge: bool,
    broken: bool,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    offset: u64,
    ticket: u64,
    sent: Instant,
    held: bool,
}

/// Completions without interrupting the submitting thread (Linux 5.19), or as it always was (5.1). Handling
/// them only on request (DEFER_TASKRUN, 6.1) showed no difference.
fn ring(entries: u32) -> io::Result<(IoUring, &'static str)> {
    if let Ok(ring) = IoUring::builder().setup_coop_taskrun().build(entries) {
        return Ok((ring, "cooperative task work"));
    }
    Ok((IoUring::new(entries)?, "default"))
}

/// Reads one page through a ring: seccomp filters and sysctl refuse in different places.
pub fn probe(file: &File) -> io::Result<()> {
    let mut uring = Uring::new(file.as_raw_fd(), Buffers::new(PAGE, 1)?)?;
    let entry = uring.entry(Op::Read, 0, 0).user_data(0);
    uring.push(&entry)?;
    uring.ring.submit_and_wait(1)?;
    match uring.ring.completion().next().map(|c| c.result()) {
        Some(n) if n >= 0 => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(-errno)),
        None => Err(io::Error::other("no completion arrived")),
    }
}

impl Uring {
    /// A ring with one entry per buffer.
    pub fn new(fd: RawFd, buffers: Buffers) -> io::Result<Uring> {
        let (ring, mode) = ring(buffers.depth as u32)?;
        let vectors: Vec<libc::iovec> = (0..buffers.depth)
            .map(|slot| libc::iovec { iov_base: buffers.address(slot).cast(), iov_len: buffers.block })
            .collect();
        // SAFETY: the mapping outlives the ring (field order), and its size does not change.
        let fixed_buffers = unsafe { ring.submitter().register_buffers(&vectors) }.map_err(|e| e.to_string());
        let fixed_file = ring.submitter().register_files(&[fd]).is_ok();
        // Saves a look-up per system call (Linux 5.18); without it everything works the same.
        let _ = ring.submitter().register_ring_fd();
        let slot = Slot { offset: 0, ticket: 0, sent: Instant::now(), held: false };
        let slots = vec![slot; buffers.depth];
        let huge = buffers.on_huge_pages();
        Ok(Uring { ring, buffers, slots, fd, fixed_file, fixed_buffers, mode, huge, broken: false })
    }

    fn entry(&self, op: Op, slot: usize, offset: u64) -> Entry {
        let (address, length) = (self.buffers.address(slot), self.buffers.block as u32);
        let index = slot as u16;
        macro_rules! with_target {
            ($target:expr) => {
                match (op, self.fixed_buffers.is_ok()) {
                    (Op::Read, true) => opcode::ReadFixed::new($target, address, length, index).offset(offset).build(),
                    (Op::Read, false) => opcode::Read::new($target, address, length).offset(offset).build(),
                    (Op::Write, true) => {
                        opcode::WriteFixed::new($target, address, length, index).offset(offset).build()
                    }
                    (Op::Write, false) => opcode::Write::new($target, address, length).offset(offset).build(),
                }
            };
        }
        if self.fixed_file { with_target!(types::Fixed(0)) } else { with_target!(types::Fd(self.fd)) }
    }

    fn push(&mut self, entry: &Entry) -> io::Result<()> {
        // SAFETY: the entry's buffer lives in self.buffers and is not touched until its completion is reaped.
        unsafe { self.ring.submission().push(entry) }.map_err(|_| io::Error::other("submission queue is full"))
    }

    /// Fills buffer `slot` for request `i` and queues it.
    fn send(&mut self, batch: &Batch<'_>, slot: usize, offset: u64) -> Result<(), Failure> {
        let ticket = batch.begin(offset, self.buffers.slot_mut(slot));
        self.slots[slot] = Slot { offset, ticket, sent: Instant::now(), held: false };
        self.resend(batch, slot)
    }

    /// Submits what is queued without waiting; what is refused for the moment stays queued for [`Uring::wait`].
    fn submit(&mut self) -> Result<(), Failure> {
        match self.ring.submit() {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR)) => {
                self.broken = true;
                Err(Failure::Other(format!("io_uring_enter: {e}")))
            }
            _ => Ok(()),
        }
    }

    fn resend(&mut self, batch: &Batch<'_>, slot: usize) -> Result<(), Failure> {
        let entry = self.entry(batch.op, slot, self.slots[slot].offset).user_data(slot as u64);
        self.push(&entry).map_err(|e| Failure::Other(format!("io_uring: {e}")))
    }

    /// Takes one completion; true if the request is done, false if the kernel asks for it again.
    fn finish(&mut self, batch: &Batch<'_>, slot: usize, result: i32) -> Result<bool, Failure> {
        if matches!(-result, libc::EAGAIN | libc::EINTR) {
            self.resend(batch, slot)?;
            return Ok(false);
        }
        let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        let Slot { offset, ticket, .. } = self.slots[slot];
        batch.end(offset, ticket, self.buffers.slot(slot), result)?;
        self.slots[slot].held = true;
        Ok(true)
    }

    /// Submits what is queued and returns when a completion is there.
    fn wait(&mut self) -> Result<(), Failure> {
        if !self.ring.completion().is_empty() {
            return if self.ring.submission().is_empty() { Ok(()) } else { self.submit() };
        }
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Out of requests for the moment: what is in flight must complete first.
                Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => return Ok(()),
                Err(e) => {
                    self.broken = true;
                    return Err(Failure::Other(format!("io_uring_enter: {e}")));
                }
            }
        }
    }
}

impl Transport for Uring {
    fn run(&mut self, batch: &Batch<'_>, latency: &mut Histogram) -> Result<(), Failure> {
        if self.broken {
            return Err(Failure::Other("io_uring: the ring broke earlier".to_owned()));
        }
        // First in, first out: every buffer takes its turn, so that all of them hold recent requests to be checked.
        let mut idle: VecDeque<usize> = (0..self.buffers.depth).collect();
        let mut done: Vec<(usize, i32)> = Vec::with_capacity(self.buffers.depth);
        let burst = if batch.op == Op::Write && batch.block > EAGER { 1 } else { BURST };
        let (mut next, mut in_flight) = (0, 0usize);
        let mut failure = None;
        loop {
            while failure.is_none() && next < batch.count {
                let Some(slot) = idle.pop_front() else { break };
                match self.send(batch, slot, batch.offset(next)) {
                    Ok(()) => (next, in_flight) = (next + 1, in_flight + 1),
                    Err(f) => failure = Some(f),
                }
                // The last ones go with the call that waits.
                if next % burst == 0 && !idle.is_empty() {
                    self.submit()?;
                }
            }
            if in_flight == 0 {
                break;
            }
            self.wait()?;
            let now = Instant::now();
            done.extend(self.ring.completion().map(|c| (c.user_data() as usize, c.result())));
            for (slot, result) in done.drain(..) {
                let took = now.duration_since(self.slots[slot].sent);
                match self.finish(batch, slot, result) {
                    Ok(false) => continue,
                    Ok(true) => latency.record(took.as_nanos() as u64),
                    Err(f) => failure = failure.or(Some(f)),
                }
                in_flight -= 1;
                idle.push_back(slot);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn held(&self) -> Vec<(u64, &[u8])> {
        let slots = self.slots.iter().enumerate().filter(|(_, s)| s.held);
        slots.map(|(slot, s)| (s.offset, self.buffers.slot(slot))).collect()
    }

    fn conditions(&self) -> Vec<(&'static str, String)> {
        let buffers = match &self.fixed_buffers {
            Ok(()) => "registered".to_owned(),
            Err(e) => format!("not registered: {e}"),
        };
        let file = if self.fixed_file { "registered" } else { "not registered" };
        let pages = if self.huge { "huge pages" } else { "small pages" };
        let buffers = format!("{buffers}, {pages}");
        vec![("ring", self.mode.to_owned()), ("buffers", buffers), ("file_handle", file.to_owned())]
    }
    fn on_huge_pages(&self) -> bool {
        self.huge
    }
}
