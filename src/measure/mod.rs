//! Measuring: from a plan to a record. A supervisor that loads no vendor library conducts child processes that
//! do; everything that happens goes to an append-only journal, and the record is composed from it.
//!
//! This is the only module that reads a clock for results. It knows no limit: what is measured, how often, and
//! when it stops follow from the plan, the time and the precision reached, never from the values.

mod alone;
pub mod child;
mod clock;
pub mod environment;
mod foreign;
mod identity;
mod journal;
mod ledger;
mod process;
mod progress;
mod protocol;
mod sampler;
pub mod signals;
mod supervisor;
mod telemetry;
#[cfg(test)]
mod testing;
mod worker;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use alone::blocks;
pub use clock::{boot_id, new_run_id, utc_now};
pub use journal::{JOURNAL, JournalError, write_atomically};
pub use process::Launcher;
pub use progress::compose;
pub use supervisor::{Deadlines, RECORD};

use sha2::{Digest, Sha256};

use crate::event::Observer;
use crate::record::{Inventory, Record, RunEnd};
use crate::unit::Seconds;
use clock::{SupervisorClock, monotonic, nanoseconds};
use identity::Identity;
use journal::{Begin, Entry, Journal};
use progress::{Progress, Standing};
use supervisor::Supervisor;

/// Time that discovery may take when a run is resumed.
const DISCOVERY: Duration = Duration::from_secs(60);

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where `journal.ndjson` and `record.json` go; created if absent.
    pub folder: PathBuf,
    /// The record as far as it is known: id, tool, run, suite, offer, inventory and plan.
    pub record: Record,
    /// Description of simulated devices.
    pub simulate: Option<String>,
    /// Folder for storage cases.
    pub storage: Option<PathBuf>,
    /// Time already used for discovery and planning; it counts against the budget.
    pub spent: Seconds,
    /// How child processes are run.
    pub children: Children,
}

/// How child processes are run.
#[derive(Debug, Clone)]
pub struct Children {
    /// The program; this executable if `None`.
    pub executable: Option<PathBuf>,
    /// How long a child may take.
    pub deadlines: Deadlines,
}

impl Children {
    /// This executable, usual deadlines.
    pub const USUAL: Children = Children { executable: None, deadlines: Deadlines::USUAL };

    fn launcher(&self, simulate: Option<String>) -> Result<Launcher, MeasureError> {
        let program = self.executable.clone().map_or_else(std::env::current_exe, Ok);
        let program = program.map_err(|e| MeasureError::Internal(format!("this executable cannot be found: {e}")))?;
        Ok(Launcher { program, simulate })
    }
}

/// Why there is no record. What goes wrong with a device is never among these: it is the outcome of a case.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The run's folder or journal cannot be created (exit 73).
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// what
        path: PathBuf,
        /// why
        source: std::io::Error,
    },
    /// The journal or record cannot be written (exit 74).
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// what
        path: PathBuf,
        /// why
        source: std::io::Error,
    },
    /// The run cannot be gone on with (exit 2).
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// A bug, or a machine on which nothing works (exit 70).
    #[error("{0}")]
    Internal(String),
}

/// Why a run cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// Its journal gives nothing.
    #[error("{}: {error}", folder.display())]
    Journal {
        /// its folder
        folder: PathBuf,
        /// why
        error: JournalError,
    },
    /// Boot, devices, driver, executable or suite are not what they were.
    #[error("this run cannot be resumed: {what} changed\n  when it began: {before}\n  now:           {after}")]
    Changed {
        /// what
        what: String,
        /// then
        before: String,
        /// now
        after: String,
    },
    /// It is complete.
    #[error("{} is complete: there is nothing to resume", folder.display())]
    Complete {
        /// its folder
        folder: PathBuf,
    },
    /// The devices cannot be looked at.
    #[error("cannot see whether the devices are still the same: {0}")]
    Discovery(String),
}

/// Measures the plan. Installs signal handlers: SIGINT and SIGTERM end the run at the next block and leave a
/// valid partial record, whose `run.end` says so.
///
/// # Errors
/// [`MeasureError`] if the folder cannot be created or written. Whatever goes wrong with devices or workers is
/// in the record.
pub fn run(options: Options, observer: &mut dyn Observer) -> Result<Record, MeasureError> {
    signals::install();
    let launcher = options.children.launcher(options.simulate.clone())?;
    let spent = options.spent;
    let begin = begin(options.record, options.simulate, options.storage, spent);
    let mut journal = Journal::create(&options.folder)?;
    journal.append(&Entry::Begin(Box::new(begin.clone())))?;
    let clock = start_clock(&begin, spent);
    let budget = Seconds(begin.record.plan.budget.get() - spent.get());
    let mut progress = Progress::new(begin);
    progress.ledger.prepare = spent;
    progress.ledger.total = spent;
    let setup = Setup { folder: options.folder, launcher, deadlines: options.children.deadlines };
    Supervisor::new(setup, observer, journal, progress, clock, budget).conduct()
}

/// Goes on with the interrupted run in `folder`, with its plan, suite and offer.
///
/// # Errors
/// [`ResumeError::Changed`] if boot, devices, driver, executable or suite are not what they were,
/// [`ResumeError::Complete`] if nothing is left to do; else as [`run`].
pub fn resume(folder: &Path, children: &Children, observer: &mut dyn Observer) -> Result<Record, MeasureError> {
    signals::install();
    let unreadable = |error| ResumeError::Journal { folder: folder.to_owned(), error };
    let bytes = journal::read(folder).map_err(unreadable)?;
    let (mut progress, whole) = Progress::read(&bytes).map_err(unreadable)?;
    if matches!(progress.end, Some((RunEnd::Complete, _))) {
        return Err(ResumeError::Complete { folder: folder.to_owned() }.into());
    }
    let launcher = children.launcher(progress.begin.simulate.clone())?;
    let now = identity_now(&progress.begin, &launcher)?;
    if let Some((what, before, after)) = identity::difference(&progress.begin.record, &now) {
        return Err(ResumeError::Changed { what, before, after }.into());
    }
    let used = progress.record().run.duration;
    let mut journal = Journal::reopen(folder, whole as u64)?;
    let rounds = progress.cases.iter().map(|c| c.rounds.len() as u32).max().unwrap_or(0);
    let resumed = Entry::Resumed { at: utc_now(), rounds };
    journal.append(&resumed)?;
    progress.apply(resumed);
    let clock = start_clock(&progress.begin, used);
    let budget = budget_left(&progress);
    let setup = Setup { folder: folder.to_owned(), launcher, deadlines: children.deadlines };
    Supervisor::new(setup, observer, journal, progress, clock, budget).conduct()
}

/// Starting, preparing and heating again are paid for again; the rest is what was left.
fn budget_left(progress: &Progress) -> Seconds {
    let plan = &progress.begin.record.plan;
    let open = plan.cases.iter().zip(&progress.cases).filter(|(_, p)| p.standing == Standing::Open);
    let again: Seconds = open.map(|(c, _)| c.estimate.prepare).sum();
    let left = (plan.budget - progress.ledger.total).get().max(0.0);
    Seconds(left) + again + plan.soak
}

fn identity_now(begin: &Begin, launcher: &Launcher) -> Result<Identity, ResumeError> {
    let mut args = vec!["discover".to_owned()];
    for (flag, value) in [("--simulate", begin.simulate.clone()), ("--storage-dir", storage_text(begin))] {
        args.extend(value.into_iter().flat_map(|v| [flag.to_owned(), v]));
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = child::call_with(launcher, &args, DISCOVERY).map_err(|e| ResumeError::Discovery(e.to_string()))?;
    let inventory: Inventory = serde_json::from_slice(&output).map_err(|e| ResumeError::Discovery(e.to_string()))?;
    // A suite from a file may have been edited since; a built-in one is part of the executable.
    let suite = &begin.record.suite;
    let text = std::fs::read(&suite.name).unwrap_or_else(|_| suite.text.clone().into_bytes());
    Ok(Identity {
        boot_id: boot_id(),
        binary_sha256: hash_of(&launcher.program),
        suite_sha256: sha256(&text),
        inventory,
    })
}

fn storage_text(begin: &Begin) -> Option<String> {
    begin.storage.as_ref().map(|p| p.display().to_string())
}

/// SHA-256 of this executable, hexadecimal; `None` if it cannot be read.
pub fn binary_sha256() -> Option<String> {
    std::env::current_exe().ok().and_then(|path| hash_of(&path))
}

fn hash_of(path: &Path) -> Option<String> {
    let mut hash = Sha256::new();
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).ok()?);
    loop {
        let part = file.fill_buf().ok()?;
        if part.is_empty() {
            return Some(hex(&hash.finalize()));
        }
        hash.update(part);
        let length = part.len();
        file.consume(length);
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Where the run's files go and how its children start.
struct Setup {
    folder: PathBuf,
    launcher: Launcher,
    deadlines: Deadlines,
}

/// What is known before anything is measured.
fn begin(mut record: Record, simulate: Option<String>, storage: Option<PathBuf>, spent: Seconds) -> Begin {
    let environment = environment::scrub_own();
    for (name, value) in environment.kept {
        // Which devices a process may see, and where drivers are, defines what was rented: kept, and stated.
        record.inventory.host.attributes.insert(format!("environment.{name}"), value);
    }
    record.run.neutralised_environment = environment.neutralised;
    record.run.simulated |= is_simulated(&record);
    record.run.end = RunEnd::Died;
    record.telemetry.interval = telemetry::INTERVAL;
    let origin = if record.run.simulated { 0 } else { monotonic().saturating_sub(nanoseconds(spent)) };
    Begin { record, simulate, storage, origin }
}

/// One simulated device makes the run simulated.
fn is_simulated(record: &Record) -> bool {
    let planned = record.plan.cases.iter().flat_map(|c| &c.devices);
    let mut all = planned.chain(&record.inventory.selected);
    all.any(|id| record.inventory.device(id).is_some_and(|d| d.simulated))
}

/// `used`: time on the run's clock so far.
fn start_clock(begin: &Begin, used: Seconds) -> SupervisorClock {
    match begin.record.run.simulated {
        true => SupervisorClock::Virtual { now: begin.origin + nanoseconds(used) },
        false => SupervisorClock::Real,
    }
}
