//! Files as a device: how fast does the storage of this machine really move bytes?
//!
//! A [`Session`] keeps a fixed number of requests in flight on a nameless [`TestFile`] whose content is known
//! byte for byte, through the best engine that kernel and file system allow, and keeps account of the bytes
//! that the device itself moved. A stretch that a cache served is labelled, never reported as the device's.

mod account;
mod histogram;
mod pattern;
mod test_file;
mod threads;
mod transport;
mod uring;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use account::Source;
pub use histogram::Histogram;
pub use pattern::PAGE;
pub use test_file::{Filesystem, Options, TestFile, place, writable};
pub use transport::{Kind, Op, Preference};

use account::{Account, IoCount};
use pattern::Scatter;
use transport::{Batch, Order, Transport};

use crate::backend::DeviceError;
use crate::record::{Engine, EngineKind, Observed};
use crate::unit::Bytes;

/// What a session does with its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Direction.
    pub op: Op,
    /// Scattered instead of one block after the other.
    pub random: bool,
    /// Bytes per request, a multiple of [`PAGE`].
    pub block: usize,
    /// Requests in flight.
    pub depth: usize,
}

impl Job {
    /// Refuses what no engine can do.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            Job { block, .. } if block == 0 || block % PAGE != 0 || block > 64 << 20 => {
                Err(format!("block must be a multiple of {PAGE} bytes up to 64 MiB, not {block}"))
            }
            Job { depth, .. } if depth == 0 || depth > 1024 => Err(format!("depth must be 1 to 1024, not {depth}")),
            Job { block, depth, .. } if block * depth > 1 << 30 => {
                Err(format!("{depth} requests of {block} bytes need more than 1 GiB of buffers"))
            }
            _ => Ok(()),
        }
    }
}

/// One job on one file.
pub struct Session {
    file: Arc<TestFile>,
    job: Job,
    order: Order,
    transport: Box<dyn Transport>,
    position: u64,
    as_of: u64,
    latency: Histogram,
    account: Account,
    pages_right: u64,
}

impl Session {
    /// Makes or shares the file, connects the engine and moves a first few blocks.
    pub fn open(options: &Options, job: Job) -> Result<Session, DeviceError> {
        job.check().map_err(DeviceError::Unsupported)?;
        Session::on(TestFile::shared(options)?, options.seed, job)
    }

    /// As [`Session::open`] on a file that exists.
    pub fn on(file: Arc<TestFile>, seed: u64, job: Job) -> Result<Session, DeviceError> {
        let blocks = file.size() / job.block as u64;
        // Two requests in flight for one block would have no defined outcome.
        if blocks < 2 * job.depth as u64 {
            let size = Bytes(file.size() as f64);
            return Err(DeviceError::Unsupported(format!("a file of {size} is too small for this block and depth")));
        }
        let order = if job.random { Order::Random(Scatter::new(blocks, seed)) } else { Order::Sequential };
        let transport = file.choice().connect(&file, job.block, job.depth)?;
        let mut session = Session {
            file,
            job,
            order,
            transport,
            position: 0,
            as_of: 0,
            latency: Histogram::default(),
            account: Account::default(),
            pages_right: 0,
        };
        // Large enough that the accounting shows at once where the bytes come from.
        session.run((job.depth as u64).max((1 << 20) / job.block as u64))?;
        session.latency.clear();
        Ok(session)
    }

    /// Performs the next `count` requests and returns when all are complete and, for writes, durable
    /// (fdatasync). Errors name folder, offset and errno.
    pub fn run(&mut self, count: u64) -> Result<(), DeviceError> {
        let before = IoCount::now();
        let Job { op, block, .. } = self.job;
        let batch = Batch::new(&self.file, op, self.order, block, self.position, count);
        let result = self.transport.run(&batch, &mut self.latency);
        self.position += count;
        self.as_of = self.file.now();
        result.map_err(|failure| self.file.error(failure))?;
        if op == Op::Write {
            self.file.sync()?;
        }
        let moved = before.and_then(|before| {
            let after = IoCount::now()?;
            Ok(match op {
                Op::Read => after.read.saturating_sub(before.read),
                Op::Write => after.write.saturating_sub(before.write),
            })
        });
        self.account.add(count * block as u64, moved);
        Ok(())
    }

    /// Checks the last requests of the last stretch: for reads what the buffers still hold, for writes what
    /// the device gives back. The number of pages found right, or what is wrong.
    pub fn check_recent(&mut self) -> Result<Result<u64, String>, DeviceError> {
        let result = match self.job.op {
            Op::Read => self.check_buffers(),
            Op::Write => {
                let Job { block, depth, .. } = self.job;
                let count = (depth as u64).min(self.position);
                let first = self.position - count;
                self.file.read_back(Batch::new(&self.file, Op::Read, self.order, block, first, count), depth)?
            }
        };
        self.pages_right += result.as_ref().map_or(0, |pages| *pages);
        Ok(result)
    }

    fn check_buffers(&self) -> Result<u64, String> {
        self.transport.held().into_iter().map(|(offset, data)| self.file.check(offset, data, self.as_of)).sum()
    }

    /// Reads all of the file and checks every page; with `once`, not again if any case has done so before.
    pub fn check_file(&mut self, once: bool) -> Result<Result<u64, String>, DeviceError> {
        let known = self.file.swept.load(Ordering::Relaxed);
        let result = if once && known > 0 { Ok(known) } else { self.file.sweep()? };
        self.pages_right += result.as_ref().map_or(0, |pages| *pages);
        Ok(result)
    }

    /// Latencies since the last call.
    pub fn take_latency(&mut self) -> Histogram {
        std::mem::take(&mut self.latency)
    }

    /// True if a request's latency is the device's: buffered writes end in memory.
    pub fn latency_means_device(&self) -> bool {
        !(self.file.choice().kind == Kind::BufferedThreads && self.job.op == Op::Write)
    }

    /// The file.
    pub fn file(&self) -> &Arc<TestFile> {
        &self.file
    }

    /// Where the bytes of all stretches came from.
    pub fn source(&self) -> Source {
        let filesystem = self.file.filesystem();
        self.account.source((!filesystem.accounted).then_some(filesystem.name.as_str()))
    }

    /// Most requests of one stretch: through the page cache a block counts only once per stretch.
    pub fn longest(&self) -> u64 {
        match self.file.choice().kind {
            Kind::BufferedThreads => self.file.size() / self.job.block as u64,
            _ => u64::MAX,
        }
    }

    /// Who moved the bytes, and what that may decide.
    pub fn engine(&self) -> Engine {
        let choice = self.file.choice();
        let kind = decides(&self.source(), choice.kind, self.job, self.transport.on_huge_pages());
        let mut conditions: BTreeMap<String, String> =
            self.transport.conditions().into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        conditions.insert("chosen_because".to_owned(), choice.why.clone());
        conditions.insert("depth".to_owned(), self.job.depth.to_string());
        Engine { name: choice.kind.name().to_owned(), version: None, library: None, kind, conditions }
    }

    /// What to state beside the numbers: `source` ("device" or "cache"), `delivered`, `file`, `pages_checked`.
    pub fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        let (source, delivered) = match self.source() {
            Source::Device => (Observed::Value("device".to_owned()), self.delivered()),
            Source::Cache => (Observed::Value("cache".to_owned()), self.delivered()),
            Source::Unknown(why) => (Observed::NotObservable(why.clone()), Observed::NotObservable(why)),
        };
        let pages = format!("{} pages of {PAGE} bytes, all right", self.pages_right);
        BTreeMap::from([
            ("source".to_owned(), source),
            ("delivered".to_owned(), delivered),
            ("file".to_owned(), Observed::Value(self.file.description())),
            ("pages_checked".to_owned(), Observed::Value(pages)),
        ])
    }

    fn delivered(&self) -> Observed<String> {
        let (asked, moved) = (self.account.asked, self.account.moved);
        Observed::Value(format!(
            "the device moved {moved} of {asked} bytes (/proc/self/io), at least {:.1} % in each stretch",
            100.0 * self.account.worst.min(1.0)
        ))
    }
}

/// What a reading may decide. Only bytes that the device is known to have moved can pass. Only what was compared with
/// fio and does not read low (benches/compare-storage) can fail a disk: sequential reads through io_uring into huge
/// pages. Random requests of one thread may be bound by its core on a fast disk, small pages cost a fifth here, and
/// writes and the fallbacks are not compared.
fn decides(source: &Source, kind: Kind, job: Job, huge_pages: bool) -> EngineKind {
    match source {
        Source::Cache | Source::Unknown(_) => EngineKind::HighOnly,
        Source::Device if kind == Kind::Uring && job.op == Op::Read && !job.random && huge_pages => {
            EngineKind::Decisive
        }
        Source::Device => EngineKind::LowOnly,
    }
}

#[cfg(test)]
pub(crate) mod tests;
