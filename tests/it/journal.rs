//! The journal of a run: continued, refused, cut off.

use std::path::Path;

use gpu_assay::event::Event;
use gpu_assay::measure::{self, JOURNAL, MeasureError, RECORD, ResumeError};
use gpu_assay::record::{Notice, Outcome, Record, RunEnd};
use sha2::{Digest, Sha256};

use crate::measuring::{children, options, run};

/// A complete run of two rounds, as the tool itself would have begun it.
fn complete(folder: &Path) -> Record {
    let mut options = options(folder, 2, 120.0);
    let program = std::fs::read(options.children.executable.as_ref().unwrap()).unwrap();
    options.record.tool.binary_sha256 = Some(Sha256::digest(program).iter().map(|b| format!("{b:02x}")).collect());
    run(options).unwrap()
}

fn resume(folder: &Path) -> Result<Record, MeasureError> {
    measure::resume(folder, &children(), &mut |_: &Event| {})
}

fn blocks(record: &Record) -> Vec<usize> {
    let count = |outcome: &Outcome| match outcome {
        Outcome::Measured(m) => m.series[0].blocks.len(),
        _ => 0,
    };
    record.results.iter().map(|r| count(&r.outcome)).collect()
}

/// Cuts the journal in the middle of its line `line` (from 0).
fn cut(folder: &Path, line: usize) {
    let path = folder.join(JOURNAL);
    let bytes = std::fs::read(&path).unwrap();
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i).collect();
    std::fs::write(&path, &bytes[..(ends[line - 1] + ends[line]) / 2]).unwrap();
}

#[test]
fn a_run_that_died_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let whole = complete(folder.path());
    assert_eq!(blocks(&whole), [2, 2, 2]);
    // Which line is a block depends on telemetry: cut in the second round, wherever that is.
    let text = std::fs::read_to_string(folder.path().join(JOURNAL)).unwrap();
    let second = text.lines().position(|l| l.contains("\"entry\":\"blocks\"") && l.contains("\"round\":1")).unwrap();
    cut(folder.path(), second);
    let partial = measure::compose(&std::fs::read(folder.path().join(JOURNAL)).unwrap()).unwrap();
    assert_eq!((partial.run.end, blocks(&partial)), (RunEnd::Died, vec![1, 1, 1]));

    let resumed = resume(folder.path()).unwrap();
    assert_eq!((resumed.run.end, blocks(&resumed)), (RunEnd::Complete, vec![2, 2, 2]));
    assert!(resumed.notices.contains(&Notice::Resumed { rounds: 1 }), "{:?}", resumed.notices);
    assert_eq!(resumed.id, whole.id);
    let written: Record = serde_json::from_slice(&std::fs::read(folder.path().join(RECORD)).unwrap()).unwrap();
    assert_eq!(written, resumed);
    assert!(matches!(resume(folder.path()), Err(MeasureError::Resume(ResumeError::Complete { .. }))));
}

#[test]
fn a_run_on_another_state_of_the_machine_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    complete(folder.path());
    cut(folder.path(), 3);
    let path = folder.path().join(JOURNAL);
    let journal = std::fs::read_to_string(&path).unwrap();
    let boot = measure::boot_id().unwrap();
    let first: serde_json::Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let name = serde_json::to_string(&first["record"]["inventory"]["devices"][0]["name"]).unwrap();
    for (old, new, what) in [
        (boot.as_str(), "another", "boot"),
        ("\"binary_sha256\":\"", "\"binary_sha256\":\"0", "executable"),
        ("\"sha256\":\"e3b0", "\"sha256\":\"e3b1", "suite"),
        (name.as_str(), "\"another CPU\"", "host:0"),
    ] {
        let changed = journal.replacen(old, new, 1);
        assert_ne!(changed, journal, "{what}");
        std::fs::write(&path, &changed).unwrap();
        match resume(folder.path()) {
            Err(MeasureError::Resume(ResumeError::Changed { what: named, .. })) => {
                assert!(named.contains(what), "{named}")
            }
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), changed, "a refused journal is not touched");
    }
}

#[test]
fn what_is_no_journal_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = resume(folder.path()).unwrap_err().to_string();
    assert!(error.contains(JOURNAL), "{error}");
    std::fs::write(folder.path().join(JOURNAL), "{\"entry\":\"begin\"}\n").unwrap();
    let error = resume(folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 1"), "{error}");
}
