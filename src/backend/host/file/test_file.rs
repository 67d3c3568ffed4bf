//! The file that is measured: nameless, of bounded size, filled with known content.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::pattern::{PAGE, Pattern};
use super::transport::{Batch, Choice, Failure, Op, Preference};
use crate::backend::DeviceError;
use crate::unit::Bytes;

const MIB: u64 = 1 << 20;
/// Block and depth of laying the file out and of reading all of it back.
pub(super) const SWEEP: (usize, usize) = (MIB as usize, 8);
/// Written before the clock may stop the layout: less would fit into any cache.
const LEAST: u64 = 64 * MIB;
/// Content of this page is not known: never written, or a write to it is under way. Larger than any ticket.
const UNKNOWN: u64 = u64::MAX;

/// Where and how large.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Folder in which the file is made.
    pub folder: PathBuf,
    /// Wanted size; the free space may allow less.
    pub size: Bytes,
    /// Seed of the content.
    pub seed: u64,
    /// Largest share of the free space that is taken.
    pub share: f64,
    /// Free space that is always left.
    pub reserve: Bytes,
    /// The layout stops after this time; the file is then smaller.
    pub layout: Duration,
    /// Engine asked for; anything but `Best` is for tests and comparisons.
    pub preference: Preference,
}

impl Options {
    /// At most a tenth of the free space, at least 1 GiB left free, 3 s of layout, the best engine.
    pub fn new(folder: &Path, size: Bytes, seed: u64) -> Options {
        Options {
            folder: folder.to_owned(),
            size,
            seed,
            share: 0.1,
            reserve: Bytes::gib(1),
            layout: Duration::from_secs(3),
            preference: Preference::Best,
        }
    }
}

/// A nameless file with known content, shared by all storage cases of this process that ask for the same one.
#[derive(Debug)]
pub struct TestFile {
    file: File,
    folder: PathBuf,
    filesystem: Filesystem,
    nameless: &'static str,
    size: u64,
    smaller: Option<String>,
    choice: Choice,
    pattern: Pattern,
    /// The write that put each page there.
    tickets: Vec<AtomicU64>,
    next_ticket: AtomicU64,
    /// Pages found right by a full read.
    pub(super) swept: AtomicU64,
}

/// Kind of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filesystem {
    /// Name, or its magic number where this list has no name for it.
    pub name: String,
    /// False if transfers of this kind never appear in `/proc/self/io`.
    pub accounted: bool,
}

type Key = (PathBuf, u64, u64, Preference);
static SHARED: Mutex<Option<HashMap<Key, Weak<TestFile>>>> = Mutex::new(None);

impl TestFile {
    /// The file for `options`: the one that another case of this process still holds, or a new one.
    pub fn shared(options: &Options) -> Result<Arc<TestFile>, DeviceError> {
        let key = (options.folder.clone(), options.size.0.to_bits(), options.seed, options.preference);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.get_or_insert_with(HashMap::new);
        if let Some(file) = shared.get(&key).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = Arc::new(TestFile::create(options)?);
        shared.insert(key, Arc::downgrade(&file));
        Ok(file)
    }

    /// Makes the file and writes all of it.
    pub fn create(options: &Options) -> Result<TestFile, DeviceError> {
        let folder = &options.folder;
        let (file, nameless) = nameless(folder).map_err(|e| failed(folder, "create a file", &e))?;
        let wanted = options.size.count() as u64 / MIB * MIB;
        let free = free_space(&file).map_err(|e| failed(folder, "ask for free space", &e))?;
        let (size, smaller) = allowed(wanted, free, options)?;
        reserve(&file, size).map_err(|e| failed(folder, &format!("reserve {}", Bytes(size as f64)), &e))?;
        let choice = Choice::probe(&file, options.preference);
        let mut made = TestFile {
            filesystem: filesystem(&file),
            file,
            folder: folder.clone(),
            nameless,
            size,
            smaller,
            choice,
            pattern: Pattern::new(options.seed),
            tickets: (0..size / PAGE as u64).map(|_| AtomicU64::new(UNKNOWN)).collect(),
            next_ticket: AtomicU64::new(0),
            swept: AtomicU64::new(0),
        };
        made.lay_out(options.layout)?;
        Ok(made)
    }

    /// Writes every block once, and cuts the file short if that takes too long.
    fn lay_out(&mut self, limit: Duration) -> Result<(), DeviceError> {
        let begun = Instant::now();
        let (block, depth) = SWEEP;
        let mut transport = self.choice.connect(self, block, depth)?;
        let total = self.size / block as u64;
        let mut written = 0;
        while written < total && (written * MIB < LEAST || begun.elapsed() < limit) {
            let count = (total - written).min(LEAST / 2 / MIB);
            let batch = Batch::sequential(self, Op::Write, block, written, count);
            transport.run(&batch, &mut Default::default()).map_err(|e| self.error(e))?;
            self.sync()?;
            written += count;
        }
        drop(transport);
        if written < total {
            self.size = written * block as u64;
            self.smaller = Some(format!("the layout stopped after {} s", limit.as_secs_f64()));
            self.file.set_len(self.size).map_err(|e| failed(&self.folder, "shorten the file", &e))?;
        }
        self.forget_cached();
        Ok(())
    }

    /// Size in bytes, a multiple of 1 MiB.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The engine that fits this file, and why.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The file system it is on.
    pub fn filesystem(&self) -> &Filesystem {
        &self.filesystem
    }

    /// Size, place and, if smaller than asked for, why.
    pub fn description(&self) -> String {
        let size = Bytes(self.size as f64);
        let place = format!("{size} in {} ({}), {}", self.folder.display(), self.filesystem.name, self.nameless);
        match &self.smaller {
            Some(why) => format!("{place}; smaller than asked for: {why}"),
            None => place,
        }
    }

    /// A path under which other programs can open this file while it lives, for comparing with them.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd()).into()
    }

    pub(super) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Makes everything written durable.
    pub fn sync(&self) -> Result<(), DeviceError> {
        self.file.sync_data().map_err(|e| failed(&self.folder, "fdatasync", &e))
    }

    /// Asks the kernel to drop its cached pages of this file; it may refuse, which the accounting will show.
    pub(super) fn forget_cached(&self) {
        // SAFETY: plain call on a descriptor we own; no memory is involved.
        unsafe { libc::posix_fadvise(self.fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }

    /// Fills `data` for a write at `offset` and returns its ticket. The pages count as unknown until
    /// [`TestFile::written`] says that the write is complete.
    pub(super) fn fill(&self, offset: u64, data: &mut [u8]) -> u64 {
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        for (page, out) in (offset / PAGE as u64..).zip(data.chunks_exact_mut(PAGE)) {
            self.tickets[page as usize].store(UNKNOWN, Ordering::Relaxed);
            self.pattern.fill(page, ticket, out);
        }
        ticket
    }

    /// The write of `ticket` at `offset` is complete.
    pub(super) fn written(&self, offset: u64, length: usize, ticket: u64) {
        let first = (offset / PAGE as u64) as usize;
        self.tickets[first..first + length / PAGE].iter().for_each(|t| t.store(ticket, Ordering::Relaxed));
    }

    /// The ticket that the next write will get: everything below it was sent before now.
    pub(super) fn now(&self) -> u64 {
        self.next_ticket.load(Ordering::Relaxed)
    }

    /// Compares `data`, read at `offset` when [`TestFile::now`] was `as_of`, with what was last written there;
    /// returns the number of pages compared, or where the first wrong byte is. Pages written since, or of
    /// unknown content, are not compared.
    pub(super) fn check(&self, offset: u64, data: &[u8], as_of: u64) -> Result<u64, String> {
        let mut checked = 0;
        for (page, data) in (offset / PAGE as u64..).zip(data.chunks_exact(PAGE)) {
            let ticket = self.tickets[page as usize].load(Ordering::Relaxed);
            if ticket >= as_of {
                continue;
            }
            if let Some(at) = self.pattern.first_wrong(page, ticket, data) {
                let place = page * PAGE as u64 + at as u64;
                return Err(format!(
                    "{}: byte {place} of the test file is not what was written",
                    self.folder.display()
                ));
            }
            checked += 1;
        }
        Ok(checked)
    }

    /// Reads the whole file with the measured engine and checks every page; returns the number of pages
    /// found right, or where the first wrong byte is.
    pub fn sweep(&self) -> Result<Result<u64, String>, DeviceError> {
        let (block, depth) = SWEEP;
        let batch = Batch::sequential(self, Op::Read, block, 0, self.size / block as u64);
        let result = self.read_back(batch, depth)?;
        if let Ok(pages) = result {
            self.swept.store(pages, Ordering::Relaxed);
        }
        Ok(result)
    }

    /// Reads what `batch` covers into fresh buffers and checks every page.
    pub(super) fn read_back(&self, batch: Batch<'_>, depth: usize) -> Result<Result<u64, String>, DeviceError> {
        self.forget_cached();
        let mut transport = self.choice.connect(self, batch.block, depth)?;
        let batch = batch.inspected();
        match transport.run(&batch, &mut Default::default()) {
            Ok(()) => Ok(Ok(batch.pages())),
            Err(Failure::Wrong(detail)) => Ok(Err(detail)),
            Err(failure) => Err(self.error(failure)),
        }
    }

    /// Flips one bit of the stored data behind the back of the bookkeeping: the fault that a check must find.
    pub fn flip_bit(&self, offset: u64) -> Result<(), DeviceError> {
        let fault = |e: io::Error| failed(&self.folder, "inject a fault", &e);
        // A path of its own, without O_DIRECT, so that one byte can be written.
        let file = OpenOptions::new().read(true).write(true).open(self.path()).map_err(fault)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).map_err(fault)?;
        file.write_all_at(&[byte[0] ^ 1], offset).map_err(fault)?;
        file.sync_all().map_err(fault)?;
        self.forget_cached();
        Ok(())
    }

    pub(super) fn error(&self, failure: Failure) -> DeviceError {
        match failure {
            Failure::Io { op, offset, length, error } => failed(
                &self.folder,
                &format!("{} {length} bytes at offset {offset} of the test file", op.name()),
                &error,
            ),
            Failure::Wrong(detail) | Failure::Other(detail) => DeviceError::Storage(detail),
        }
    }
}

/// "folder: cannot do: No space left on device (os error 28)".
pub(super) fn failed(folder: &Path, doing: &str, error: &io::Error) -> DeviceError {
    DeviceError::Storage(format!("{}: cannot {doing}: {error}", folder.display()))
}

/// A new file in `folder` that no name leads to: gone with its last descriptor, whatever ends the process.
fn nameless(folder: &Path) -> io::Result<(File, &'static str)> {
    let tmpfile = OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    match tmpfile {
        Ok(file) => Ok((file, "never had a name (O_TMPFILE)")),
        // Not every file system has O_TMPFILE; some kernels report the folder instead.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => unlinked(folder),
        Err(e) => Err(e),
    }
}

/// As [`nameless`] where O_TMPFILE is refused: the name exists for the moment between two system calls.
fn unlinked(folder: &Path) -> io::Result<(File, &'static str)> {
    for attempt in 0..100 {
        let path = folder.join(format!(".gpu-assay-{}-{attempt}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok((file, "unlinked at once"));
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "100 names are taken"))
}

/// The size that may be taken of `free` bytes, and why if it is less than wanted.
fn allowed(wanted: u64, free: u64, options: &Options) -> Result<(u64, Option<String>), DeviceError> {
    let room = free.saturating_sub(options.reserve.count() as u64).min((free as f64 * options.share) as u64);
    let size = wanted.min(room) / MIB * MIB;
    let limits = format!(
        "{} are free; at most {:.0} % of that is taken and {} are left",
        Bytes(free as f64),
        options.share * 100.0,
        options.reserve
    );
    if size < LEAST.min(wanted) || size == 0 {
        return Err(DeviceError::Unsupported(format!("{}: too little space: {limits}", options.folder.display())));
    }
    Ok((size, (size < wanted).then_some(limits)))
}

/// File system of a folder, and the space left on it.
pub fn place(folder: &Path) -> io::Result<(Filesystem, Bytes)> {
    let folder = File::open(folder)?;
    Ok((filesystem(&folder), Bytes(free_space(&folder)? as f64)))
}

fn free_space(file: &File) -> io::Result<u64> {
    // SAFETY: all-zero is a valid statvfs, and the pointer is valid for the call.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: as above; the descriptor is open.
    match unsafe { libc::fstatvfs(file.as_raw_fd(), &mut stat) } {
        0 => Ok(stat.f_bavail * stat.f_frsize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reserves space, so that a full disk is known before anything is written; file systems that cannot are fine.
fn reserve(file: &File, size: u64) -> io::Result<()> {
    file.set_len(size)?;
    // SAFETY: plain call on an open descriptor; no memory is involved.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size as libc::off_t) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            e if e.kind() == ErrorKind::StorageFull => Err(e),
            _ => Ok(()),
        },
    }
}

fn filesystem(file: &File) -> Filesystem {
    // SAFETY: all-zero is a valid statfs, and the pointer is valid for the call.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: as above; the descriptor is open.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &mut stat) } != 0 {
        return Filesystem { name: "unknown file system".to_owned(), accounted: true };
    }
    // Magic numbers of linux/magic.h and of the file systems kept elsewhere.
    let (name, accounted) = match stat.f_type as u32 {
        0xef53 => ("ext4", true),
        0x5846_5342 => ("xfs", true),
        0x9123_683e => ("btrfs", true),
        0x0102_1994 => ("tmpfs", true),
        0x8584_58f6 => ("ramfs", true),
        0x794c_7630 => ("overlayfs", true),
        0xf2f5_2010 => ("f2fs", true),
        0x2fc1_2fc1 => ("zfs", false),
        0x6969 => ("nfs", true),
        0xff53_4d42 | 0xfe53_4d42 => ("cifs", true),
        0x6573_5546 => ("fuse", false),
        0x0102_1997 => ("9p", false),
        0x0bd0_0bd0 => ("lustre", false),
        magic => return Filesystem { name: format!("file system {magic:#x}"), accounted: true },
    };
    Filesystem { name: name.to_owned(), accounted }
}

/// Switches O_DIRECT on or off; `Err` where the file system refuses it.
pub(super) fn set_direct(file: &File, on: bool) -> io::Result<()> {
    // SAFETY: plain calls on an open descriptor; no memory is involved.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    let flags = if on { flags | libc::O_DIRECT } else { flags & !libc::O_DIRECT };
    // SAFETY: as above.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// True if files can be made in `folder`; the reason if not. Nothing is left there.
pub fn writable(folder: &Path) -> Result<(), String> {
    if CString::new(folder.as_os_str().as_bytes()).is_err() {
        return Err("the folder's name holds a zero byte".to_owned());
    }
    nameless(folder).map(|_| ()).map_err(|e| format!("{}: {e}", folder.display()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn nameless_for_tests(folder: &Path) -> io::Result<(File, &'static str)> {
        nameless(folder)
    }

    pub fn reserve_for_tests(file: &File, size: u64) -> io::Result<()> {
        reserve(file, size)
    }

    fn options(size: Bytes) -> Options {
        Options::new(Path::new("/anywhere"), size, 1)
    }

    #[test]
    fn takes_a_tenth_and_leaves_a_gibibyte() {
        let gib = 1u64 << 30;
        assert_eq!(allowed(gib, 100 * gib, &options(Bytes::gib(1))), Ok((gib, None)));
        let (size, why) = allowed(gib, 4 * gib, &options(Bytes::gib(1))).unwrap();
        assert!(size <= 4 * gib / 10 && size % MIB == 0);
        assert!(why.unwrap().contains("10 %"));
        let (size, _) = allowed(gib, gib + 100 * MIB, &options(Bytes::gib(1))).unwrap();
        assert_eq!(size, 100 * MIB);
        for free in [0, gib, gib + 10 * MIB] {
            assert!(matches!(allowed(gib, free, &options(Bytes::gib(1))), Err(DeviceError::Unsupported(_))), "{free}");
        }
    }

    #[test]
    fn files_have_no_name() {
        let folder = tempfile::tempdir().unwrap();
        for file in [nameless(folder.path()), unlinked(folder.path())] {
            let (file, _) = file.unwrap();
            file.write_all_at(b"x", 0).unwrap();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        assert!(writable(folder.path()).is_ok());
        assert!(writable(&folder.path().join("absent")).unwrap_err().contains("absent"));
    }
}
