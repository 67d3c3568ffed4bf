//! What is known about a run so far: the fold of its journal. The supervisor decides by it while measuring; a
//! record is composed from it at the end, or from the file of a run that died.

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::Reading;
use crate::measure::journal::{self, Begin, Entry, JournalError, Point};
use crate::measure::protocol::{Checked, Clocks};
use crate::record::{
    Block, CaseError, CaseId, CaseResult, ClockCheck, FORMAT, Ledger, Measurement, Notice, Observed, Outcome, Record,
    RunEnd, Series, TelemetrySeries, ThermalState, Verification, Verified,
};
use crate::stats;
use crate::unit::Seconds;

/// Most points of one sensor in a record; longer series are thinned evenly.
const TELEMETRY_POINTS: usize = 1200;

/// Where a case stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// More rounds may come.
    Open,
    /// No more rounds are needed.
    Closed,
    /// The device cannot do it.
    Unsupported(String),
    /// It was not run.
    Skipped(String),
    /// It broke.
    Failed(CaseError),
}

/// What is known about one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseProgress {
    /// Where it stands.
    pub standing: Standing,
    /// All blocks so far.
    pub series: Vec<Series>,
    /// Rounds with a block.
    pub rounds: BTreeSet<u32>,
    /// Rounds whose blocks no check has followed yet.
    unchecked: BTreeSet<u32>,
    checks: Vec<Verified>,
    worst: Option<f64>,
    last: Option<Checked>,
    clocks: Vec<Clocks>,
    conditions: BTreeMap<String, Observed<String>>,
}

impl CaseProgress {
    fn new() -> CaseProgress {
        CaseProgress {
            standing: Standing::Open,
            series: Vec::new(),
            rounds: BTreeSet::new(),
            unchecked: BTreeSet::new(),
            checks: Vec::new(),
            worst: None,
            last: None,
            clocks: Vec::new(),
            conditions: BTreeMap::new(),
        }
    }

    /// The series the case exists for, in its first thermal state.
    pub fn primary(&self) -> Option<&Series> {
        self.series.iter().find(|s| s.primary && s.state != ThermalState::Sustained)
    }

    /// Values of the primary series' blocks.
    pub fn values(&self) -> Vec<f64> {
        self.primary().map(|s| s.blocks.iter().map(|b| b.value).collect()).unwrap_or_default()
    }

    fn add_point(&mut self, point: Point) {
        let same =
            |s: &&mut Series| s.metric == point.info.metric && s.labels == point.labels && s.state == point.state;
        match self.series.iter_mut().find(same) {
            Some(series) => series.blocks.push(point.block),
            None => self.series.push(Series {
                metric: point.info.metric,
                unit: point.info.unit,
                better: point.info.better,
                state: point.state,
                labels: point.labels,
                primary: point.primary,
                blocks: vec![point.block],
            }),
        }
    }

    fn clock_check(&self) -> Option<ClockCheck> {
        let of = |part: fn(&Clocks) -> f64| -> Vec<f64> { self.clocks.iter().map(part).collect() };
        let differences = of(Clocks::difference);
        // One that is not a number must not vanish among the others.
        let known = |statistic: f64| if differences.iter().any(|d| d.is_nan()) { f64::NAN } else { statistic };
        let typical = || stats::median(&of(Clocks::rate)).abs().max(stats::quantile(&of(|c| c.uncovered), 0.25));
        let total = |part: fn(&Clocks) -> Seconds| Seconds(self.clocks.iter().map(|c| part(c).get()).sum());
        (!differences.is_empty()).then(|| ClockCheck {
            device: total(|c| c.device),
            monotonic: total(|c| c.monotonic),
            typical: known(typical()),
            worst: known(differences.iter().copied().fold(0.0, f64::max)),
        })
    }

    /// A wrong neighbour makes the case wrong; only the case's own check speaks for its blocks.
    fn add_check(&mut self, checked: Checked, aggressor: bool) {
        self.checks.push(checked.verified.clone());
        self.worst = match (self.worst, checked.worst) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        if !aggressor {
            self.unchecked.clear();
            self.last = Some(checked);
        }
    }

    /// Copies the primary blocks from `from_round` on into a series of sustained state.
    fn add_sustained(&mut self, from_round: u32) {
        let Some(mut sustained) = self.primary().cloned() else { return };
        sustained.state = ThermalState::Sustained;
        sustained.blocks.retain(|b| b.round >= from_round);
        self.series.push(sustained);
    }

    /// The buffers of these blocks are gone: no later check can speak for them.
    fn drop_unchecked(&mut self) {
        let unchecked = std::mem::take(&mut self.unchecked);
        self.rounds.retain(|r| !unchecked.contains(r));
        self.series.iter_mut().for_each(|s| s.blocks.retain(|b| !unchecked.contains(&b.round)));
        self.series.retain(|s| !s.blocks.is_empty());
    }

    fn verification(&self) -> Verification {
        let wrong: Vec<&Verified> = self.checks.iter().filter(|v| matches!(v, Verified::Wrong { .. })).collect();
        let verified = match (wrong.first(), self.checks.contains(&Verified::Right)) {
            (Some(Verified::Wrong { detail }), _) => {
                Verified::Wrong { detail: format!("{detail} (in {} of {} checks)", wrong.len(), self.checks.len()) }
            }
            (_, true) => Verified::Right,
            _ => match self.checks.last() {
                Some(verified) => verified.clone(),
                None => Verified::NotApplicable { reason: "no check was made".to_owned() },
            },
        };
        Verification {
            verified,
            checks: self.checks.len() as u32,
            method: self.last.as_ref().map(|c| c.method.clone()).unwrap_or_default(),
            worst: self.worst,
        }
    }

    /// The measurement, or `None` without a block. `verified_only`: leave out blocks that no check followed,
    /// because the run ended in between; they prove nothing.
    fn measurement(&self, verified_only: bool) -> Option<Measurement> {
        let last = self.last.as_ref()?;
        let mut series = self.series.clone();
        if verified_only {
            series.iter_mut().for_each(|s| s.blocks.retain(|b: &Block| !self.unchecked.contains(&b.round)));
        }
        series.retain(|s| !s.blocks.is_empty());
        if !series.iter().any(|s| s.primary) {
            return None;
        }
        let mut conditions = last.conditions.clone();
        conditions.extend(self.conditions.clone());
        Some(Measurement {
            series,
            verification: self.verification(),
            engine: last.engine.clone(),
            clock_check: self.clock_check(),
            ceiling: last.ceiling.clone(),
            conditions,
        })
    }

    fn outcome(&self, not_run: &str) -> Outcome {
        match &self.standing {
            Standing::Unsupported(reason) => Outcome::Unsupported { reason: reason.clone() },
            Standing::Skipped(reason) => Outcome::Skipped { reason: reason.clone() },
            Standing::Failed(error) => Outcome::Failed { error: error.clone(), partial: self.measurement(false) },
            Standing::Open | Standing::Closed => match self.measurement(true) {
                Some(measurement) => Outcome::Measured(measurement),
                None => Outcome::Skipped { reason: not_run.to_owned() },
            },
        }
    }
}

/// What is known about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How it began.
    pub begin: Begin,
    /// Cases in plan order.
    pub cases: Vec<CaseProgress>,
    /// Time so far.
    pub ledger: Ledger,
    /// Notices so far.
    pub notices: Vec<Notice>,
    /// How it ended, and when (UTC).
    pub end: Option<(RunEnd, String)>,
    index: BTreeMap<CaseId, usize>,
    telemetry: Vec<TelemetrySeries>,
    not_observable: BTreeMap<String, String>,
    last_block: Seconds,
}

impl Progress {
    /// Of a run that has only begun.
    pub fn new(begin: Begin) -> Progress {
        let index = begin.record.plan.cases.iter().enumerate().map(|(i, c)| (c.id.clone(), i)).collect();
        Progress {
            cases: begin.record.plan.cases.iter().map(|_| CaseProgress::new()).collect(),
            index,
            begin,
            ledger: Ledger::default(),
            notices: Vec::new(),
            end: None,
            telemetry: Vec::new(),
            not_observable: BTreeMap::new(),
            last_block: Seconds(0.0),
        }
    }

    /// Folds a journal; returns also how many bytes of it are whole lines.
    ///
    /// # Errors
    /// [`JournalError`] if it has no beginning or a line cannot be understood.
    pub fn read(bytes: &[u8]) -> Result<(Progress, usize), JournalError> {
        let (entries, whole) = journal::entries(bytes)?;
        let mut entries = entries.into_iter();
        let mut progress = match entries.next() {
            Some(Entry::Begin(begin)) if begin.record.format == FORMAT => Progress::new(*begin),
            Some(Entry::Begin(begin)) => return Err(JournalError::Format { found: begin.record.format }),
            Some(_) => return Err(JournalError::NotAJournal),
            None => return Err(JournalError::NoBeginning),
        };
        entries.for_each(|entry| progress.apply(entry));
        Ok((progress, whole))
    }

    /// Adds one entry. An entry about a case that is not planned is ignored.
    pub fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Begin(_) => {}
            Entry::Resumed { rounds, .. } => {
                self.end = None;
                self.notices.push(Notice::Resumed { rounds });
                self.cases.iter_mut().for_each(CaseProgress::drop_unchecked);
            }
            Entry::Blocks { case, round, points, clocks } => {
                let latest = points.iter().map(|p| p.block.start.get()).fold(self.last_block.get(), f64::max);
                self.last_block = Seconds(latest);
                self.with(&case, |c| {
                    c.rounds.insert(round);
                    c.unchecked.insert(round);
                    points.into_iter().for_each(|p| c.add_point(p));
                    c.clocks.extend(clocks);
                });
            }
            Entry::Check { case, aggressor, checked } => self.with(&case, |c| c.add_check(checked, aggressor)),
            Entry::Condition { case, name, value } => self.with(&case, |c| {
                c.conditions.insert(name, value);
            }),
            Entry::Closed { case } => self.stand(&case, Standing::Closed),
            Entry::Sustained { case, from_round } => self.with(&case, |c| c.add_sustained(from_round)),
            Entry::Unsupported { case, reason } => self.stand(&case, Standing::Unsupported(reason)),
            Entry::Skipped { case, reason } => self.stand(&case, Standing::Skipped(reason)),
            Entry::Failed { case, error } => self.stand(&case, Standing::Failed(error)),
            Entry::Notice { notice } => self.notices.push(notice),
            Entry::Telemetry { readings } => readings.iter().for_each(|r| self.add_reading(r)),
            Entry::NotObservable { sensors } => self.not_observable.extend(sensors),
            Entry::Round { ledger, .. } => self.ledger = ledger,
            Entry::End { end, at, ledger } => {
                self.ledger = ledger;
                self.end = Some((end, at));
            }
        }
    }

    /// The planned case called `id`.
    pub fn case(&self, id: &CaseId) -> Option<&CaseProgress> {
        self.index.get(id).and_then(|&i| self.cases.get(i))
    }

    fn with(&mut self, id: &CaseId, f: impl FnOnce(&mut CaseProgress)) {
        if let Some(&i) = self.index.get(id) {
            f(&mut self.cases[i]);
        }
    }

    fn stand(&mut self, id: &CaseId, standing: Standing) {
        self.with(id, |c| c.standing = standing);
    }

    fn add_reading(&mut self, reading: &Reading) {
        let same = |s: &&mut TelemetrySeries| s.source == reading.source && s.sensor == reading.sensor;
        let point = reading.point(self.begin.origin);
        match self.telemetry.iter_mut().find(same) {
            Some(series) => series.points.push(point),
            None => self.telemetry.push(TelemetrySeries {
                source: reading.source.clone(),
                sensor: reading.sensor.clone(),
                unit: reading.unit,
                counter: reading.counter,
                points: vec![point],
            }),
        }
    }

    /// The record: complete, or as far as the run got.
    pub fn record(&self) -> Record {
        let end = self.end.as_ref().map_or(RunEnd::Died, |(end, _)| *end);
        let mut record = self.begin.record.clone();
        record.run.end = end;
        record.run.ended_at = self.end.as_ref().map(|(_, at)| at.clone());
        // A run that died is at least as long as its last block shows.
        let total = self.ledger.total.get();
        record.run.duration = Seconds(if self.end.is_some() { total } else { total.max(self.last_block.get()) });
        let not_run = not_run_reason(end);
        let results = record.plan.cases.iter().zip(&self.cases);
        record.results = results.map(|(c, p)| CaseResult { id: c.id.clone(), outcome: p.outcome(not_run) }).collect();
        record.telemetry.series = self.telemetry.iter().map(thinned).collect();
        record.telemetry.not_observable = self.not_observable.clone();
        record.ledger = self.ledger;
        record.notices = self.notices.clone();
        record
    }
}

fn not_run_reason(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Complete => "the time budget ended before its first block",
        RunEnd::Interrupted => "the run was interrupted before its first verified block",
        RunEnd::Terminated => "the run was terminated before its first verified block",
        RunEnd::Died => "the run died before its first verified block",
    }
}

/// In order of time (workers report independently), and not more than a chart can show.
fn thinned(series: &TelemetrySeries) -> TelemetrySeries {
    let mut thin = series.clone();
    thin.points.sort_by(|a, b| a.at.get().total_cmp(&b.at.get()));
    let count = thin.points.len();
    if count > TELEMETRY_POINTS {
        // Even spacing over the index keeps the first and the last, which counters need.
        let pick = |i: usize| thin.points[i * (count - 1) / (TELEMETRY_POINTS - 1)];
        thin.points = (0..TELEMETRY_POINTS).map(pick).collect();
    }
    thin
}

/// The record of a journal, whole or cut off anywhere.
///
/// # Errors
/// [`JournalError`] if not even the beginning is whole, or a whole line cannot be understood.
pub fn compose(journal: &[u8]) -> Result<Record, JournalError> {
    Ok(Progress::read(journal)?.0.record())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::measure::protocol::MetricInfo;
    use crate::measure::testing::begin;
    use crate::record::{Better, CaseErrorKind, Engine, EngineKind, MetricId};
    use crate::unit::Unit;

    fn blocks(case: &CaseId, round: u32, value: f64) -> Entry {
        let info =
            MetricInfo { metric: MetricId("fake.rate".to_owned()), unit: Unit::FlopPerSecond, better: Better::Higher };
        let start = Seconds(f64::from(round));
        let block = Block { round, start, value, samples: Vec::new(), clock: None };
        let point = Point { info, labels: BTreeMap::new(), state: ThermalState::Warm, primary: true, block };
        let clocks = Clocks { device: Seconds(0.1), monotonic: Seconds(0.1), uncovered: 0.001 };
        Entry::Blocks { case: case.clone(), round, points: vec![point], clocks: vec![clocks] }
    }

    fn check(case: &CaseId, verified: Verified) -> Entry {
        let engine = Engine {
            name: "fake".to_owned(),
            version: None,
            library: None,
            kind: EngineKind::Decisive,
            conditions: BTreeMap::new(),
        };
        let checked = Checked {
            verified,
            method: "exact".to_owned(),
            worst: Some(0.5),
            engine,
            ceiling: None,
            conditions: BTreeMap::new(),
        };
        Entry::Check { case: case.clone(), aggressor: false, checked }
    }

    /// A whole run of two cases: the second fails in its second round.
    fn run() -> Vec<Entry> {
        let begin = begin();
        let ids: Vec<CaseId> = begin.record.plan.cases.iter().map(|c| c.id.clone()).collect();
        let mut entries = vec![Entry::Begin(Box::new(begin))];
        entries.extend(ids.iter().map(|id| check(id, Verified::Right)));
        for round in 0..2 {
            for id in &ids {
                entries.extend([blocks(id, round, 1e12), check(id, Verified::Right)]);
            }
            entries.push(Entry::Round { round, ledger: Ledger::default() });
        }
        let error = CaseError { kind: CaseErrorKind::Hang, message: "no answer".to_owned() };
        entries.push(Entry::Failed { case: ids[1].clone(), error });
        let at = "2026-01-01T00:01:00Z".to_owned();
        entries.push(Entry::End { end: RunEnd::Complete, at, ledger: Ledger::default() });
        entries
    }

    fn bytes(entries: &[Entry]) -> Vec<u8> {
        entries
            .iter()
            .flat_map(|e| serde_json::to_string(e).expect("plain data").into_bytes().into_iter().chain([b'\n']))
            .collect()
    }

    #[test]
    fn a_whole_journal_gives_the_whole_record() {
        let record = compose(&bytes(&run())).expect("whole");
        assert_eq!(record.run.end, RunEnd::Complete);
        let Outcome::Measured(m) = &record.results[0].outcome else { panic!("{:?}", record.results[0]) };
        assert_eq!(m.series[0].blocks.len(), 2);
        assert_eq!((m.verification.checks, &m.verification.verified), (3, &Verified::Right));
        assert!(
            m.clock_check
                .is_some_and(|c| (c.device.get() - 0.2).abs() < 1e-12 && c.typical == 0.001 && c.worst == 0.001)
        );
        let Outcome::Failed { error, partial } = &record.results[1].outcome else { panic!() };
        assert_eq!(error.kind, CaseErrorKind::Hang);
        assert_eq!(partial.as_ref().map(|m| m.series[0].blocks.len()), Some(2), "evidence is kept");
    }

    #[test]
    fn blocks_that_no_check_followed_prove_nothing() {
        let all = run();
        let begin = bytes(&all[..1]);
        let id = begin_id(&all);
        for (entries, blocks) in [(&all[..4], 0), (&all[..5], 1), (&all[..9], 1)] {
            let record = compose(&bytes(entries)).expect("whole lines");
            assert_eq!(record.run.end, RunEnd::Died);
            let found = match &record.results[0].outcome {
                Outcome::Measured(m) => m.series[0].blocks.len(),
                Outcome::Skipped { .. } => 0,
                other => panic!("{other:?}"),
            };
            assert_eq!(found, blocks, "{id}: {} entries", entries.len());
        }
        assert!(compose(&begin).is_ok());
    }

    fn begin_id(entries: &[Entry]) -> String {
        match &entries[0] {
            Entry::Begin(begin) => begin.record.id.clone(),
            _ => String::new(),
        }
    }

    #[test]
    fn a_resumed_run_takes_unverified_blocks_again() {
        let mut entries = run()[..4].to_vec();
        entries.push(Entry::Resumed { at: String::new(), rounds: 1 });
        let (progress, _) = Progress::read(&bytes(&entries)).expect("whole");
        assert!(progress.cases[0].rounds.is_empty());
        assert!(progress.cases[0].series.is_empty());
        assert_eq!(progress.notices, [Notice::Resumed { rounds: 1 }]);
    }

    #[test]
    fn wrong_once_is_wrong() {
        let mut entries = run();
        let id = entries.iter().find_map(|e| match e {
            Entry::Blocks { case, .. } => Some(case.clone()),
            _ => None,
        });
        let id = id.expect("blocks");
        entries.insert(6, check(&id, Verified::Wrong { detail: "element 3".to_owned() }));
        let record = compose(&bytes(&entries)).expect("whole");
        let Outcome::Measured(m) = &record.results[0].outcome else { panic!() };
        assert!(matches!(&m.verification.verified, Verified::Wrong { detail } if detail.contains("element 3")));
    }

    #[test]
    fn a_case_without_any_check_is_not_measured() {
        let entries = run();
        let record = compose(&bytes(&[entries[0].clone(), entries[3].clone()])).expect("whole");
        assert!(matches!(record.results[0].outcome, Outcome::Skipped { .. }), "{:?}", record.results[0]);
    }

    #[test]
    fn nonsense_is_named_by_its_line() {
        let mut journal = bytes(&run()[..2]);
        journal.extend_from_slice(b"{\"entry\":\"blocks\"}\n");
        assert!(matches!(compose(&journal), Err(JournalError::Line { line: 3, .. })));
        assert_eq!(compose(b""), Err(JournalError::NoBeginning));
        assert_eq!(compose(&bytes(&run()[1..])), Err(JournalError::NotAJournal));
        assert!(matches!(compose(b"\xff\xfe\n"), Err(JournalError::Line { line: 1, .. })));
        let mut other = begin();
        other.record.format = 99;
        assert_eq!(compose(&bytes(&[Entry::Begin(Box::new(other))])), Err(JournalError::Format { found: 99 }));
    }

    #[test]
    fn every_cut_gives_a_partial_record_or_says_why_not() {
        let journal = bytes(&run());
        let first = journal.iter().position(|b| *b == b'\n').expect("lines") + 1;
        for cut in (0..first).step_by(7).chain(first..=journal.len()) {
            match compose(&journal[..cut]) {
                Ok(record) => {
                    assert!(cut >= first);
                    let text = serde_json::to_string(&record).expect("plain data");
                    assert_eq!(serde_json::from_str::<Record>(&text).expect("same format"), record);
                    assert_eq!(record.run.end == RunEnd::Complete, cut == journal.len());
                }
                Err(error) => assert_eq!((error, cut < first), (JournalError::NoBeginning, true)),
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0usize..5000, garbage in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut journal = bytes(&run());
            let at = at % journal.len();
            let end = (at + garbage.len()).min(journal.len());
            journal.splice(at..end, garbage);
            // Either is fine; a panic is not.
            let _ = compose(&journal);
        }
    }

    #[test]
    fn long_sensor_series_are_thinned_but_keep_their_ends() {
        let mut progress = Progress::new(begin());
        let reading = |at: u64| Reading {
            source: "machine".to_owned(),
            sensor: "load".to_owned(),
            unit: Unit::Ratio,
            counter: true,
            at: at * 1_000_000_000,
            value: at as f64,
        };
        progress.apply(Entry::Telemetry { readings: (0..5000).map(reading).collect() });
        let points = &progress.record().telemetry.series[0].points;
        assert_eq!(points.len(), TELEMETRY_POINTS);
        assert_eq!((points[0].value, points[TELEMETRY_POINTS - 1].value), (0.0, 4999.0));
    }
}
