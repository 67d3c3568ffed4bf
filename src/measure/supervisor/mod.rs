//! The supervisor: conducts a run from the first worker to the record. It loads no vendor library, reads no
//! limit, and decides only by the plan, the clock and the uncertainty reached.

mod blocks;
mod fleet;
mod interference;
mod phases;
mod requests;
mod rounds;
mod schedule;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use fleet::Deadlines;

use crate::event::{Event, Observer, Phase};
use crate::measure::clock::{SupervisorClock, nanoseconds, utc_now};
use crate::measure::journal::{Entry, Journal, write_atomically};
use crate::measure::ledger::{Account, Stopwatch};
use crate::measure::progress::{CaseProgress, Progress, Standing};
use crate::measure::protocol::Prepared;
use crate::measure::signals::{self, Urgency};
use crate::measure::telemetry::{INTERVAL, Settings, Watch};
use crate::measure::{MeasureError, Setup};
use crate::record::{Case, CaseId, DeviceId, Notice, Record, RunEnd};
use crate::stats;
use crate::unit::{Quantity, Seconds};
use fleet::Fleet;
use schedule::{Group, Memory};

/// Name of the record in a run's folder.
pub const RECORD: &str = "record.json";

/// Kept free at the end of the budget for what plans never foresee (last samples run over, workers end, judging and
/// writing), in real time: a promise of two minutes is kept.
const CONCLUDE: Seconds = Seconds(2.5);

/// What a prepared case showed about itself.
#[derive(Debug, Clone)]
struct Facts {
    prepared: Prepared,
    /// What one check cost.
    verify: Seconds,
    /// Iterations per second of the neighbour alone.
    aggressor: Option<f64>,
}

/// A run in progress.
pub struct Supervisor<'o> {
    setup: Setup,
    observer: &'o mut dyn Observer,
    journal: Journal,
    progress: Progress,
    cases: Rc<[Case]>,
    groups: Rc<[Group]>,
    clock: SupervisorClock,
    stopwatch: Stopwatch,
    /// End of the time budget on the run's clock.
    budget_end: u64,
    fleet: Fleet,
    watch: Option<Watch>,
    memory: Memory,
    facts: BTreeMap<usize, Facts>,
    /// What a visit of a group cost last time.
    costs: BTreeMap<usize, Seconds>,
    /// Lost workers per device.
    failures: BTreeMap<DeviceId, u32>,
    /// Processes already reported.
    strangers: Vec<String>,
    /// True once something was left out for lack of time.
    out_of_time: bool,
    /// When the devices came under load.
    loaded_since: u64,
}

impl<'o> Supervisor<'o> {
    /// Ready to begin, or to go on where `progress` ends. `budget` counts from now.
    pub fn new(
        setup: Setup,
        observer: &'o mut dyn Observer,
        journal: Journal,
        progress: Progress,
        clock: SupervisorClock,
        budget: Seconds,
    ) -> Supervisor<'o> {
        let inventory = &progress.begin.record.inventory;
        let epoch = progress.begin.record.run.simulated.then_some(progress.begin.origin);
        let cases: Rc<[Case]> = progress.begin.record.plan.cases.clone().into();
        Supervisor {
            journal,
            groups: schedule::groups(&cases).into(),
            cases,
            stopwatch: Stopwatch::start(progress.ledger, clock.now()),
            budget_end: clock.now() + nanoseconds(budget),
            fleet: Fleet::new(setup.launcher.clone(), setup.deadlines, epoch),
            watch: None,
            memory: Memory::new(&inventory.devices, inventory.host.memory_usable.get()),
            facts: BTreeMap::new(),
            costs: BTreeMap::new(),
            failures: BTreeMap::new(),
            strangers: Vec::new(),
            out_of_time: false,
            loaded_since: clock.now(),
            setup,
            observer,
            progress,
            clock,
        }
    }

    /// Measures everything and writes the record.
    ///
    /// # Errors
    /// Only if the journal or the record cannot be written; everything else becomes the outcome of a case.
    pub fn conduct(mut self) -> Result<Record, MeasureError> {
        self.start_telemetry()?;
        self.prepare_all()?;
        self.burst()?;
        self.soak()?;
        self.rounds()?;
        self.last_checks()?;
        self.conclude()
    }

    fn start_telemetry(&mut self) -> Result<(), MeasureError> {
        let inventory = &self.progress.begin.record.inventory;
        let selected = inventory.devices.iter().filter(|d| inventory.selected.contains(&d.id) && !d.simulated);
        let mut backends: Vec<_> = selected.map(|d| d.id.backend).collect();
        if backends.is_empty() {
            return Ok(()); // simulated devices report through their workers
        }
        backends.push(crate::record::BackendId::Host);
        backends.sort_unstable();
        backends.dedup();
        let settings = Settings { backends, supervisor: std::process::id(), interval: INTERVAL };
        match Watch::start(&self.setup.launcher, &settings, !self.clock.is_virtual()) {
            Ok(watch) => self.watch = Some(watch),
            Err(reason) => self.notice(Notice::NoTelemetry { reason })?,
        }
        Ok(())
    }

    /// Takes what telemetry and workers have reported. `measuring`: load by others matters now.
    fn collect(&mut self, measuring: bool) -> Result<(), MeasureError> {
        let mut readings = std::mem::take(&mut self.fleet.readings);
        if let Some(watch) = &mut self.watch {
            let news = watch.look(self.clock.now());
            readings.extend(news.readings);
            if !news.not_observable.is_empty() {
                self.note(Entry::NotObservable { sensors: news.not_observable })?;
            }
            if let Some(reason) = news.lost {
                self.watch = None;
                self.notice(Notice::NoTelemetry { reason })?;
            }
            for load in news.foreign.into_iter().filter(|_| measuring) {
                self.stranger(load)?;
            }
        }
        if readings.is_empty() { Ok(()) } else { self.note(Entry::Telemetry { readings }) }
    }

    /// A foreign process is noted once, at the device whose numbers it can spoil: the host if it is measured.
    fn stranger(&mut self, load: super::foreign::Load) -> Result<(), MeasureError> {
        let inventory = &self.progress.begin.record.inventory;
        let host = inventory.selected.iter().find(|d| d.backend == crate::record::BackendId::Host);
        let Some(device) = host.or(inventory.selected.first()).cloned() else { return Ok(()) };
        if self.strangers.contains(&load.name) {
            return Ok(());
        }
        self.strangers.push(load.name.clone());
        self.notice(Notice::ForeignProcess { device, name: load.name, share: load.share })
    }

    /// Journals an entry and folds it into what is known.
    fn note(&mut self, entry: Entry) -> Result<(), MeasureError> {
        self.journal.append(&entry)?;
        let done = match &entry {
            Entry::Closed { case }
            | Entry::Failed { case, .. }
            | Entry::Skipped { case, .. }
            | Entry::Unsupported { case, .. } => Some(case.clone()),
            _ => None,
        };
        self.progress.apply(entry);
        if let Some(case) = done {
            self.case_done(&case);
        }
        Ok(())
    }

    fn notice(&mut self, notice: Notice) -> Result<(), MeasureError> {
        self.observer.on(&Event::Notice { notice: notice.clone() });
        self.note(Entry::Notice { notice })
    }

    fn case_done(&mut self, id: &CaseId) {
        let Some(case) = self.progress.case(id) else { return };
        let spread = stats::uncertainty(&case.values());
        let value = case.primary().filter(|_| spread.median.is_finite()).map(|series| {
            (Quantity { value: spread.median, unit: series.unit }, spread.expanded / spread.median.abs())
        });
        let error = match &case.standing {
            Standing::Failed(error) => Some(error.clone()),
            _ => None,
        };
        self.observer.on(&Event::CaseDone { case: id.clone(), value, error });
    }

    fn phase(&mut self, phase: Phase, planned: Option<Seconds>) {
        self.observer.on(&Event::Phase { phase, planned });
    }

    fn state(&self, case: usize) -> &CaseProgress {
        &self.progress.cases[case]
    }

    fn is_open(&self, case: usize) -> bool {
        self.state(case).standing == Standing::Open
    }

    /// The user wants to end.
    fn stopping(&self) -> bool {
        signals::urgency() >= Urgency::Soon
    }

    fn charge(&mut self, account: Account) {
        self.stopwatch.charge(account, self.clock.now());
    }

    fn conclude(mut self) -> Result<Record, MeasureError> {
        self.phase(Phase::Conclude, None);
        self.collect(false)?;
        self.fleet.finish();
        if let Some(watch) = self.watch.take() {
            watch.finish();
        }
        let open: Vec<usize> = (0..self.cases.len()).filter(|&i| self.is_open(i)).collect();
        if self.out_of_time && !open.is_empty() {
            let cases = open.iter().map(|&i| self.cases[i].id.clone()).collect();
            self.notice(Notice::BudgetSpent { cases })?;
        }
        for case in open {
            let id = self.cases[case].id.clone();
            self.case_done(&id);
        }
        let end = if self.stopping() { signals::end().unwrap_or(RunEnd::Interrupted) } else { RunEnd::Complete };
        self.charge(Account::Idle);
        self.journal.sync()?;
        self.charge(Account::Write);
        self.note(Entry::End { end, at: utc_now(), ledger: self.stopwatch.ledger() })?;
        self.journal.sync()?;
        let record = self.progress.record();
        write_record(&self.setup.folder, &record)?;
        self.observer.on(&Event::Finished { ledger: record.ledger });
        Ok(record)
    }
}

/// Writes `record.json` into `folder`, whole or not at all.
///
/// # Errors
/// [`MeasureError::Write`] with the path.
fn write_record(folder: &std::path::Path, record: &Record) -> Result<(), MeasureError> {
    let path = folder.join(RECORD);
    let bytes = serde_json::to_vec(record).map_err(|e| MeasureError::Write { path: path.clone(), source: e.into() })?;
    write_atomically(&path, &bytes)
}
