//! Measuring: from a plan to a record. A supervisor that loads no vendor library conducts child processes that
//! do; everything that happens goes to an append-only journal, and the record is composed from it.
//!
//! This is the only module that reads a clock for results. It knows no limit: what is measured, how often, and
//! when it stops follow from the plan, the time and the precision reached, never from the values.

pub mod child;
mod clock;
mod environment;
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

use std::path::{Path, PathBuf};

pub use clock::{boot_id, new_run_id, utc_now};
pub use environment::{Scrubbed, scrub};
pub use journal::{JOURNAL, JournalError, write_atomically};
pub use process::Launcher;
pub use progress::compose;
pub use supervisor::{Deadlines, RECORD, write_record};

use crate::event::Observer;
use crate::record::{FORMAT, Inventory, Plan, Record, Run, RunEnd, Source, Tool};
use crate::unit::Seconds;
use clock::{SupervisorClock, monotonic, nanoseconds};
use journal::{Begin, Entry, Journal};
use progress::{Progress, Standing};
use supervisor::Supervisor;

/// Everything a run needs to know.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Where `journal.ndjson` and `record.json` go; created if absent.
    pub folder: PathBuf,
    /// Run id, see [`new_run_id`].
    pub id: String,
    /// What measures, see [`tool`].
    pub tool: Tool,
    /// Seed of all generated data.
    pub seed: u64,
    /// Command line without the program's path.
    pub arguments: Vec<String>,
    /// Time budget the user asked for; the plan's own counts.
    pub budget: Option<Seconds>,
    /// Suite as used.
    pub suite: Source,
    /// Offer as used.
    pub offer: Option<Source>,
    /// What is there.
    pub inventory: Inventory,
    /// What to do. Ignored by [`resume`], which goes on with the plan it finds.
    pub plan: Plan,
    /// Description of simulated devices.
    pub simulate: Option<String>,
    /// Folder for storage cases.
    pub storage: Option<PathBuf>,
    /// This program, which starts itself for its children; `std::env::current_exe` outside of tests.
    pub executable: PathBuf,
    /// Time already used for discovery and planning; it counts against the budget.
    pub spent: Seconds,
    /// How long a child may take.
    pub deadlines: Deadlines,
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
    /// The run to go on with cannot be read (exit 2).
    #[error("{}: {error}", folder.display())]
    Journal {
        /// its folder
        folder: PathBuf,
        /// why
        error: JournalError,
    },
    /// The run to go on with was on another machine state (exit 2).
    #[error("this run cannot be resumed: {what} changed\n  when it began: {before}\n  now:           {after}")]
    Changed {
        /// what
        what: String,
        /// then
        before: String,
        /// now
        after: String,
    },
    /// The run to go on with is complete (exit 2).
    #[error("{} is complete: there is nothing to resume", folder.display())]
    Complete {
        /// its folder
        folder: PathBuf,
    },
}

/// Measures the plan. Installs signal handlers: SIGINT and SIGTERM end the run at the next block and leave a
/// valid partial record, whose `run.end` says so.
///
/// # Errors
/// [`MeasureError`] if the folder cannot be created or written. Whatever goes wrong with devices or workers is
/// in the record.
pub fn run(options: &RunOptions, observer: &mut dyn Observer) -> Result<Record, MeasureError> {
    signals::install();
    let begin = begin(options);
    let mut journal = Journal::create(&options.folder)?;
    journal.append(&Entry::Begin(Box::new(begin.clone())))?;
    let clock = start_clock(&begin, begin.origin + nanoseconds(options.spent));
    let budget = Seconds(begin.plan.budget.get() - options.spent.get());
    let mut progress = Progress::new(begin);
    progress.ledger.prepare = options.spent;
    progress.ledger.total = options.spent;
    Supervisor::new(options, observer, journal, progress, clock, budget).conduct()
}

/// Goes on with the interrupted run in `folder`, whose plan, suite and offer count. `options` say what the machine
/// is now; `options.folder`, `id`, `plan`, `offer`, `seed` and `arguments` are not used.
///
/// # Errors
/// [`MeasureError::Changed`] if boot, devices, driver, executable or suite are not what they were;
/// [`MeasureError::Complete`] if nothing is left to do; else as [`run`].
pub fn resume(folder: &Path, options: &RunOptions, observer: &mut dyn Observer) -> Result<Record, MeasureError> {
    signals::install();
    let unreadable = |error| MeasureError::Journal { folder: folder.to_owned(), error };
    let bytes = journal::read(folder).map_err(unreadable)?;
    let (mut progress, whole) = Progress::read(&bytes).map_err(unreadable)?;
    if let Some((what, before, after)) = identity::difference(&progress.begin, &begin(options)) {
        return Err(MeasureError::Changed { what, before, after });
    }
    if matches!(progress.end, Some((RunEnd::Complete, _))) {
        return Err(MeasureError::Complete { folder: folder.to_owned() });
    }
    let mut journal = Journal::reopen(folder, whole as u64)?;
    let rounds = progress.cases.iter().map(|c| c.rounds.len() as u32).max().unwrap_or(0);
    let resumed = Entry::Resumed { at: utc_now(), rounds };
    journal.append(&resumed)?;
    progress.apply(resumed);
    let used = progress.record().run.duration;
    let clock = start_clock(&progress.begin, progress.begin.origin + nanoseconds(used));
    // Starting, preparing and heating again are paid for again; the rest of the budget is what was left.
    let open = progress.begin.plan.cases.iter().zip(&progress.cases).filter(|(_, p)| p.standing == Standing::Open);
    let again: Seconds = open.map(|(c, _)| c.estimate.prepare).sum();
    let plan = &progress.begin.plan;
    let left = (plan.budget - progress.ledger.total).get().max(0.0);
    let budget = Seconds(left + again.get() + plan.soak.get());
    let options =
        RunOptions { folder: folder.to_owned(), simulate: progress.begin.simulate.clone(), ..options.clone() };
    Supervisor::new(&options, observer, journal, progress, clock, budget).conduct()
}

/// The measuring tool: this package, the hash of `executable`, and the version of each benchmark's method.
pub fn tool(executable: &Path) -> Tool {
    use sha2::Digest;
    let hash = |bytes: Vec<u8>| sha2::Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
    let versions = crate::benchmark::ALL.iter().map(|b| (b.meta().id.to_owned(), b.meta().version));
    Tool {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        binary_sha256: std::fs::read(executable).ok().map(hash),
        method_versions: versions.collect(),
    }
}

/// What is known before anything is measured.
fn begin(options: &RunOptions) -> Begin {
    let environment = environment::scrub_own();
    let mut inventory = options.inventory.clone();
    for (name, value) in environment.kept {
        // Which devices a process may see, and where drivers are, defines what was rented: kept, and stated.
        inventory.host.attributes.insert(format!("environment.{name}"), value);
    }
    let simulated = is_simulated(&inventory, &options.plan);
    let origin = if simulated { 0 } else { monotonic().saturating_sub(nanoseconds(options.spent)) };
    let run = Run {
        started_at: utc_now(),
        ended_at: None,
        duration: Seconds(0.0),
        boot_id: boot_id(),
        seed: options.seed,
        arguments: options.arguments.clone(),
        budget: options.budget,
        end: RunEnd::Died,
        simulated,
        neutralised_environment: environment.neutralised,
    };
    Begin {
        format: FORMAT,
        id: options.id.clone(),
        tool: options.tool.clone(),
        run,
        suite: options.suite.clone(),
        offer: options.offer.clone(),
        inventory,
        plan: options.plan.clone(),
        simulate: options.simulate.clone(),
        origin,
        telemetry_interval: telemetry::INTERVAL,
    }
}

/// One simulated device makes the run simulated.
fn is_simulated(inventory: &Inventory, plan: &Plan) -> bool {
    let planned = plan.cases.iter().flat_map(|c| &c.devices);
    planned.chain(&inventory.selected).any(|id| inventory.device(id).is_some_and(|d| d.simulated))
}

fn start_clock(begin: &Begin, virtual_now: u64) -> SupervisorClock {
    if begin.run.simulated { SupervisorClock::Virtual { now: virtual_now } } else { SupervisorClock::Real }
}
