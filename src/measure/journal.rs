//! The journal: one JSON value per line, append-only, written as things happen. What it says is folded by
//! [`super::progress::Progress`], both while measuring and when a record is composed from the file.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::backend::Reading;
use crate::measure::MeasureError;
use crate::measure::protocol::{Checked, Clocks, MetricInfo};
use crate::record::{Block, CaseError, CaseId, Ledger, Notice, Observed, Record, RunEnd, ThermalState};

/// Name of the journal in a run's folder.
pub const JOURNAL: &str = "journal.ndjson";

/// Everything known before anything is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// The record as far as it is known: no results, no telemetry, no end.
    pub record: Record,
    /// Description of simulated devices.
    pub simulate: Option<String>,
    /// Folder for storage cases.
    pub storage: Option<PathBuf>,
    /// The run's clock when the run began, nanoseconds.
    pub origin: u64,
}

/// One value of one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which metric.
    pub info: MetricInfo,
    /// Labels that tell series apart.
    pub labels: BTreeMap<String, String>,
    /// Thermal state.
    pub state: ThermalState,
    /// Is it what the case exists for?
    pub primary: bool,
    /// The block.
    pub block: Block,
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// Always the first.
    Begin(Box<Begin>),
    /// Another process goes on with this run.
    Resumed {
        /// UTC
        at: String,
        /// rounds taken over
        rounds: u32,
    },
    /// Blocks of one case in one round.
    Blocks {
        /// case
        case: CaseId,
        /// round from 0
        round: u32,
        /// primary and accompanying values
        points: Vec<Point>,
        /// event timer against the run's clock
        clocks: Vec<Clocks>,
    },
    /// A check.
    Check {
        /// case
        case: CaseId,
        /// of the neighbour's work instead of the case's own
        aggressor: bool,
        /// what it said
        checked: Checked,
    },
    /// A condition found by the supervisor.
    Condition {
        /// case
        case: CaseId,
        /// name
        name: String,
        /// text
        value: Observed<String>,
    },
    /// No more rounds are needed for this case.
    Closed {
        /// case
        case: CaseId,
    },
    /// The primary blocks of these rounds are in sustained state.
    Sustained {
        /// case
        case: CaseId,
        /// first of them
        from_round: u32,
    },
    /// The device cannot do it.
    Unsupported {
        /// case
        case: CaseId,
        /// why
        reason: String,
    },
    /// The case was not run.
    Skipped {
        /// case
        case: CaseId,
        /// why
        reason: String,
    },
    /// The case broke.
    Failed {
        /// case
        case: CaseId,
        /// how
        error: CaseError,
    },
    /// Trust is limited.
    Notice {
        /// by what
        notice: Notice,
    },
    /// Sensor readings.
    Telemetry {
        /// in order of time
        readings: Vec<Reading>,
    },
    /// Sensors that cannot be read.
    NotObservable {
        /// `source.sensor` → reason
        sensors: BTreeMap<String, String>,
    },
    /// A round is over.
    Round {
        /// which
        round: u32,
        /// time so far
        ledger: Ledger,
    },
    /// Always the last.
    End {
        /// how
        end: RunEnd,
        /// UTC
        at: String,
        /// time in all
        ledger: Ledger,
    },
}

/// Appends entries to the file.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Lines not yet written.
    pending: Vec<u8>,
    holding: bool,
}

impl Journal {
    /// A new journal in `folder`, which is created.
    ///
    /// # Errors
    /// [`MeasureError::Create`] if that is not possible or there is one already.
    pub fn create(folder: &Path) -> Result<Journal, MeasureError> {
        let create = |path: &Path, source| MeasureError::Create { path: path.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(|e| create(folder, e))?;
        let path = folder.join(JOURNAL);
        let file = OpenOptions::new().append(true).create_new(true).open(&path).map_err(|e| create(&path, e))?;
        Ok(Journal { file, path, pending: Vec::new(), holding: false })
    }

    /// Goes on with the journal in `folder`, after its first `length` bytes: a torn last line is cut off.
    ///
    /// # Errors
    /// [`MeasureError::Write`] if that is not possible.
    pub fn reopen(folder: &Path, length: u64) -> Result<Journal, MeasureError> {
        let path = folder.join(JOURNAL);
        let open = || -> std::io::Result<File> {
            let file = OpenOptions::new().append(true).open(&path)?;
            file.set_len(length)?;
            Ok(file)
        };
        let file = open().map_err(|source| MeasureError::Write { path: path.clone(), source })?;
        Ok(Journal { file, path, pending: Vec::new(), holding: false })
    }

    /// Adds one line; written at once unless held.
    ///
    /// # Errors
    /// [`MeasureError::Write`].
    pub fn append(&mut self, entry: &Entry) -> Result<(), MeasureError> {
        // Entries are plain data with string keys: they always serialise; a failure would be an I/O error.
        let line = serde_json::to_vec(entry).map_err(|e| self.error(e.into()))?;
        self.pending.extend_from_slice(&line);
        self.pending.push(b'\n');
        if self.holding { Ok(()) } else { self.write() }
    }

    /// Keeps lines in memory: storage is being measured.
    pub fn hold(&mut self) {
        self.holding = true;
    }

    /// Writes what was held.
    ///
    /// # Errors
    /// [`MeasureError::Write`].
    pub fn release(&mut self) -> Result<(), MeasureError> {
        self.holding = false;
        self.write()
    }

    /// Forces everything to the disk.
    ///
    /// # Errors
    /// [`MeasureError::Write`].
    pub fn sync(&mut self) -> Result<(), MeasureError> {
        self.release()?;
        self.file.sync_data().map_err(|e| self.error(e))
    }

    fn write(&mut self) -> Result<(), MeasureError> {
        self.file.write_all(&self.pending).map_err(|e| self.error(e))?;
        self.pending.clear();
        Ok(())
    }

    fn error(&self, source: std::io::Error) -> MeasureError {
        MeasureError::Write { path: self.path.clone(), source }
    }
}

/// Why a journal gives no record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read.
    #[error("cannot read {path}: {message}")]
    Read {
        /// file
        path: String,
        /// why
        message: String,
    },
    /// Not even the first line is whole.
    #[error("the journal is cut off before its first line ends: nothing was measured")]
    NoBeginning,
    /// The first line is not a beginning.
    #[error("line 1 of the journal does not begin a run")]
    NotAJournal,
    /// A whole line that cannot be understood.
    #[error("line {line} of the journal cannot be read: {message}")]
    Line {
        /// from 1
        line: usize,
        /// why
        message: String,
    },
    /// Written by another version.
    #[error("the journal has format {found}; this version reads format {}", crate::record::FORMAT)]
    Format {
        /// as written
        found: u32,
    },
}

/// Longest journal that is read back.
const MOST_BYTES: u64 = 2 << 30;

/// Reads the journal of a run's folder.
///
/// # Errors
/// [`JournalError::Read`].
pub fn read(folder: &Path) -> Result<Vec<u8>, JournalError> {
    let path = folder.join(JOURNAL);
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(&path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|e| JournalError::Read { path: path.display().to_string(), message: e.to_string() })
}

/// The entries of a journal and how many bytes they take. A last line without its newline was torn when the
/// writer died, and is left out.
///
/// # Errors
/// [`JournalError`] naming the line that cannot be understood.
pub fn entries(bytes: &[u8]) -> Result<(Vec<Entry>, usize), JournalError> {
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |last| last + 1);
    let mut entries = Vec::new();
    for (index, line) in bytes[..whole].split(|b| *b == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let entry =
            serde_json::from_slice(line).map_err(|e| JournalError::Line { line: index + 1, message: e.to_string() })?;
        entries.push(entry);
    }
    Ok((entries, whole))
}

/// Writes `bytes` to `path` so that a reader sees the old or the new content, never a part: a file beside it,
/// forced to disk, then renamed.
///
/// # Errors
/// [`MeasureError::Write`] with the path; the old file is untouched then.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), MeasureError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|source| {
        // The error that matters is `source`.
        let _ = std::fs::remove_file(&temporary);
        MeasureError::Write { path: path.to_owned(), source }
    })
}
