//! The product's specification: simulated machines and the verdict a person would expect of each, written by hand.
//! The whole line runs: discovery, plan, worker processes, rounds, judge.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gpu_assay::judge::{Assessment, Validity, Verdict};
use gpu_assay::measure::{Children, Deadlines};
use gpu_assay::plan::PlanOptions;
use gpu_assay::record::{FORMAT, Ledger, Record, Run, RunEnd, Telemetry, Tool};
use gpu_assay::unit::Seconds;
use gpu_assay::{backend, benchmark, discover, judge, measure, offer, plan, spec, suite};

/// Suite, offer and table: files, so that a row is one line and the suite can be tried by hand.
const SUITE: &str = include_str!("../fixtures/scenarios/suite.toml");
const OFFER: &str = include_str!("../fixtures/scenarios/offer.toml");
const TABLE: &str = include_str!("../fixtures/scenarios/table");

/// One row of the table.
struct Row<'a> {
    machine: &'a str,
    offered: u32,
    verdict: &'a str,
    finding: &'a str,
    shows: &'a str,
}

fn rows() -> Vec<Row<'static>> {
    let lines = TABLE.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| match line.split('|').map(str::trim).collect::<Vec<_>>()[..] {
            [machine, offered, verdict, finding, shows] => {
                Row { machine, offered: offered.parse().unwrap(), verdict, finding, shows }
            }
            _ => panic!("five columns: {line}"),
        })
        .collect()
}

fn name(verdict: Verdict) -> String {
    serde_json::to_value(verdict).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn scenarios_get_the_verdict_a_person_would_expect() {
    let mut wrong = Vec::new();
    let rows = rows();
    assert!(rows.len() >= 20);
    for row in &rows {
        let (_, assessment) = run(row.machine, SUITE, row.offered, &[]);
        let codes: Vec<&str> = assessment.findings.iter().map(|f| f.code.as_str()).collect();
        let found = match row.finding {
            "*" => true,
            "-" => codes.is_empty(),
            code => codes.contains(&code),
        };
        let verdict = name(assessment.verdict);
        if verdict != row.verdict || !found || !assessment.simulated {
            wrong.push(format!(
                "{} (offered {}): {}\n  expected {} {}\n  got      {verdict} {codes:?} {:?}\n  {}",
                row.machine,
                row.offered,
                row.shows,
                row.verdict,
                row.finding,
                assessment.validity,
                open(&assessment).join("\n  "),
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// The table covers every fault that the simulation knows, except those below.
#[test]
fn every_simulated_fault_has_a_row() {
    let elsewhere = ["thermal"];
    for (fault, _, _) in backend::sim::FAULTS {
        assert!(elsewhere.contains(fault) || rows().iter().any(|r| r.machine.contains(fault)), "{fault} has no row");
    }
}

#[test]
fn a_wrong_clock_makes_the_run_invalid() {
    let (_, assessment) = run("1xh100-sxm5-80gb:clock-skew", SUITE, 1, &[]);
    assert_eq!(assessment.validity, Validity::Invalid, "{:?}", assessment.validity_reasons);
}

/// Throttles only after minutes of load: the standard suite sees it, on simulated time.
#[test]
fn thermal_throttling_after_minutes_is_found_by_the_standard_suite() {
    let text = suite::builtin("standard").unwrap();
    let only = ["gemm*fp16*", "memory_bandwidth*op=triad*"];
    let (record, hot) = run("1xh100-sxm5-80gb:thermal", text, 1, &only);
    let codes: Vec<&str> = hot.findings.iter().map(|f| f.code.as_str()).collect();
    assert!(record.run.duration.get() > 600.0, "{}", record.run.duration);
    assert!(codes.contains(&"GA-THERM-01"), "{codes:?}");
    assert_eq!(hot.verdict, Verdict::NotAccepted, "{:?}", open(&hot));
    let (_, cool) = run("1xh100-sxm5-80gb", text, 1, &only);
    assert!(cool.findings.iter().all(|f| f.code != "GA-THERM-01"));
}

/// Requirements that are not passed, for messages.
fn open(assessment: &Assessment) -> Vec<String> {
    let shown = |r: &judge::Requirement| {
        let reason = r.reason.as_ref().map_or("", |m| m.id.as_str());
        format!("{:?} {:?} {} {reason}", r.class, r.status, r.id)
    };
    let all = assessment.requirements.iter();
    all.filter(|r| !matches!(r.status, judge::Status::Pass | judge::Status::NotApplicable))
        .map(shown)
        .take(12)
        .collect()
}

/// The whole line on one simulated machine.
fn run(machine: &str, suite: &str, offered: u32, only: &[&str]) -> (Record, Assessment) {
    let vocabulary = benchmark::vocabulary(spec::FIGURES.iter().map(|(name, _)| (*name).to_owned()).collect());
    let suite = suite::parse("scenario.toml", suite, &vocabulary).unwrap();
    let offer = (offered > 0)
        .then(|| offer::parse("offer.toml", &OFFER.replace("COUNT", &offered.to_string()), &vocabulary).unwrap());
    let backends: Vec<_> = backend::all(Some(machine)).unwrap();
    let mut inventory = discover::discover(&backends, &discover::Options::default());
    inventory.selected = discover::select(&inventory, &["sim".to_owned()]).unwrap();
    let guaranteed = offer.iter().flat_map(|o| &o.guarantees).map(|g| (g.metric.clone(), g.filter.clone())).collect();
    let only = only.iter().map(|o| (*o).to_owned()).collect();
    let plan = plan::plan(&suite, &inventory, &PlanOptions { guaranteed, only, ..PlanOptions::default() }).unwrap();
    let record = Record {
        format: FORMAT,
        id: "scenario".to_owned(),
        tool: Tool {
            name: "gpu-assay".to_owned(),
            version: "0".to_owned(),
            binary_sha256: None,
            method_versions: BTreeMap::new(),
        },
        run: Run {
            started_at: measure::utc_now(),
            ended_at: None,
            duration: Seconds(0.0),
            boot_id: None,
            seed: 1,
            arguments: Vec::new(),
            budget: None,
            end: RunEnd::Died,
            simulated: true,
            neutralised_environment: BTreeMap::new(),
        },
        suite: suite.source.clone(),
        offer: offer.as_ref().map(|o| o.source.clone()),
        inventory,
        plan,
        results: Vec::new(),
        telemetry: Telemetry::default(),
        ledger: Ledger::default(),
        notices: Vec::new(),
    };
    let folder = tempfile::tempdir().unwrap();
    let options = measure::Options {
        folder: folder.path().to_owned(),
        record,
        simulate: Some(machine.to_owned()),
        storage: None,
        spent: Seconds(0.0),
        children: Children {
            executable: Some(PathBuf::from(env!("CARGO_BIN_EXE_gpu-assay"))),
            // A simulated block takes milliseconds of real time: a hang shows soon.
            deadlines: Deadlines { factor: 1.0, floor: Seconds(5.0) },
        },
    };
    let record = measure::run(options, &mut |_: &gpu_assay::event::Event| {}).unwrap();
    let assessment = judge::judge(&record, &suite, offer.as_ref(), spec::table());
    (record, assessment)
}
