//! The process model, with real processes that are really stopped and killed.

use std::time::{Duration, Instant};

use gpu_assay::event::Event;
use gpu_assay::measure::{self, JOURNAL, MeasureError, RECORD};
use gpu_assay::record::{CaseErrorKind, Notice, Outcome, Record, RunEnd, Verified};

use crate::measuring::{Supervisor, children, is_alive, options, run, send, wait_until};

fn measured(record: &Record, case: usize) -> usize {
    match &record.results[case].outcome {
        Outcome::Measured(m) => {
            assert_eq!(m.verification.verified, Verified::Right);
            m.series.iter().find(|s| s.primary).map_or(0, |s| s.blocks.len())
        }
        other => panic!("{}: {other:?}", record.results[case].id),
    }
}

fn composed(folder: &std::path::Path) -> Record {
    measure::compose(&std::fs::read(folder.join(JOURNAL)).unwrap()).unwrap()
}

#[test]
fn a_run_measures_every_case_in_every_round() {
    let folder = tempfile::tempdir().unwrap();
    let mut events = Vec::new();
    let options = options(folder.path(), 4, 120.0);
    let record = measure::run(options, &mut |event: &Event| events.push(event.clone())).unwrap();
    for case in 0..3 {
        assert_eq!(measured(&record, case), 4, "{case}");
    }
    assert_eq!(record.run.end, RunEnd::Complete);
    let l = record.ledger;
    let sum = l.prepare + l.warm + l.sample + l.verify + l.write + l.idle;
    assert!((sum - l.total).get().abs() < 1e-6, "{l:?}");
    assert!(l.sample.get() >= 3.0 * 4.0 * 0.04 && l.prepare.get() > 0.0 && l.verify.get() > 0.0, "{l:?}");
    let written: Record = serde_json::from_slice(&std::fs::read(folder.path().join(RECORD)).unwrap()).unwrap();
    assert_eq!(written, record);
    assert_eq!(composed(folder.path()), record, "the journal says the same");
    let rounds = events.iter().filter(|e| matches!(e, Event::Round { .. })).count();
    let blocks = events.iter().filter(|e| matches!(e, Event::Block { .. })).count();
    assert_eq!((rounds, blocks), (4, 12));
    assert!(matches!(events.last(), Some(Event::Finished { .. })));
}

#[test]
fn a_folder_that_holds_a_run_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(JOURNAL), "precious").unwrap();
    assert!(matches!(run(options(folder.path(), 1, 60.0)), Err(MeasureError::Create { .. })));
    assert_eq!(std::fs::read_to_string(folder.path().join(JOURNAL)).unwrap(), "precious");
}

#[test]
fn a_hang_costs_its_case_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = Supervisor::start(folder.path(), "");
    supervisor.wait_for_blocks(4);
    let hung = supervisor.children("worker")[0];
    send("STOP", hung);
    wait_until("the hung worker to be killed", || !is_alive(hung));
    let before = std::fs::read_to_string(folder.path().join(JOURNAL)).unwrap().matches("\"entry\":\"blocks\"").count();
    supervisor.wait_for_blocks(before + 6);
    supervisor.signal("INT");
    supervisor.wait();
    let record = composed(folder.path());
    let hangs: Vec<_> = record
        .results
        .iter()
        .filter(|r| matches!(&r.outcome, Outcome::Failed { error, .. } if error.kind == CaseErrorKind::Hang))
        .collect();
    assert_eq!(hangs.len(), 1, "{:?}", record.results);
    assert!(matches!(&hangs[0].outcome, Outcome::Failed { partial: Some(_), .. }), "evidence is kept");
    let others = (0..3).filter(|&i| record.results[i].id != hangs[0].id);
    others.for_each(|case| assert!(measured(&record, case) >= 3));
    assert!(record.notices.iter().any(|n| matches!(n, Notice::Abandoned { cases, .. } if cases[0] == hangs[0].id)));
}

#[test]
fn a_second_crash_ends_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = Supervisor::start(folder.path(), "");
    supervisor.wait_for_blocks(4);
    let first = supervisor.children("worker")[0];
    send("KILL", first);
    wait_until("another worker", || supervisor.children("worker").iter().any(|w| *w != first));
    let second = *supervisor.children("worker").iter().find(|w| **w != first).unwrap();
    send("KILL", second);
    let (code, stderr) = supervisor.wait();
    assert_eq!(code, Some(0), "a lost device is no failure of the run: {stderr}");
    let record = composed(folder.path());
    assert_eq!(record.run.end, RunEnd::Complete);
    for result in &record.results {
        let Outcome::Failed { error, .. } = &result.outcome else { panic!("{result:?}") };
        assert_eq!(error.kind, CaseErrorKind::Crash);
        assert!(error.message.contains("signal 9"), "{}", error.message);
    }
}

#[test]
fn the_death_of_the_supervisor_ends_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = Supervisor::start(folder.path(), "");
    supervisor.wait_for_blocks(4);
    let mut started = supervisor.children("worker");
    started.extend(supervisor.children("telemetry"));
    assert!(started.len() >= 2, "a worker and telemetry");
    supervisor.signal("KILL");
    let killed = Instant::now();
    supervisor.wait();
    wait_until("all children to end", || started.iter().all(|p| !is_alive(*p)));
    // Promised are 2 s; a machine that is busy with other tests gets more before this is called a failure.
    assert!(killed.elapsed() < Duration::from_secs(20));
    let record = composed(folder.path());
    assert_eq!(record.run.end, RunEnd::Died);
    assert!(measured(&record, 0) >= 1);
}

#[test]
fn signals_leave_a_valid_partial_record() {
    for (signal, end) in [("INT", RunEnd::Interrupted), ("TERM", RunEnd::Terminated)] {
        let folder = tempfile::tempdir().unwrap();
        let mut supervisor = Supervisor::start(folder.path(), "");
        supervisor.wait_for_blocks(3);
        let workers = supervisor.children("worker");
        supervisor.signal(signal);
        let (code, stderr) = supervisor.wait();
        assert_eq!(code, Some(0), "{stderr}");
        let bytes = std::fs::read(folder.path().join(RECORD)).unwrap();
        let record: Record = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(record.run.end, end);
        assert!(measured(&record, 0) >= 1);
        assert!(workers.iter().all(|w| !is_alive(*w)), "workers are stopped");
    }
}

#[test]
fn a_disk_that_is_full_is_an_error_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    // A limit on file sizes (in KiB) fails a write as a full disk does.
    let supervisor = Supervisor::start(folder.path(), "trap '' XFSZ; ulimit -f 24");
    let (code, stderr) = supervisor.wait();
    assert_ne!(code, Some(0));
    assert!(stderr.contains("write failed") && stderr.contains(JOURNAL), "{stderr}");
    // What was written until then still gives a record.
    assert_eq!(composed(folder.path()).run.end, RunEnd::Died);
}

#[test]
fn a_program_that_is_no_worker_fails_its_cases_not_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), 2, 60.0);
    options.children = children();
    options.children.executable = Some("/bin/false".into());
    let record = run(options).unwrap();
    assert!(matches!(&record.results[0].outcome, Outcome::Failed { error, .. } if error.kind == CaseErrorKind::Crash));
    assert!(record.notices.iter().any(|n| matches!(n, Notice::NoTelemetry { .. })), "{:?}", record.notices);
}
