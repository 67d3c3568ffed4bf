//! Hand-written files: every valid one is read, every invalid one is refused with its place and help, and
//! nothing makes the readers panic.

use std::path::{Path, PathBuf};

use gpu_assay::config::{self, ParseError};
use gpu_assay::record::{ThermalState, Vocabulary};
use gpu_assay::suite::{DeviceFilter, LimitRule, Suite};
use gpu_assay::unit::{Bytes, Seconds};
use gpu_assay::{offer, suite};
use proptest::prelude::*;

use crate::words::vocabulary;

type Reader = fn(&str, &str, &Vocabulary) -> Result<(), ParseError>;

const READERS: [(&str, Reader); 2] =
    [("suites", |n, t, v| suite::parse(n, t, v).map(drop)), ("offers", |n, t, v| offer::parse(n, t, v).map(drop))];

fn fixtures(kind: &str, validity: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(kind).join(validity);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no fixtures for {kind}/{validity}");
    files
}

fn read(reader: Reader, name: &str, bytes: &[u8]) -> Result<(), ParseError> {
    reader(name, config::decode(name, bytes)?, &vocabulary())
}

fn shown(error: &ParseError) -> String {
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none()).with_width(100);
    let mut text = String::new();
    handler.render_report(&mut text, error).unwrap();
    format!("{error}\n{text}")
}

#[test]
fn valid_files_are_read() {
    for (kind, reader) in READERS {
        for file in fixtures(kind, "valid") {
            let result = read(reader, "valid.toml", &std::fs::read(&file).unwrap());
            assert!(result.is_ok(), "{}: {}", file.display(), shown(&result.unwrap_err()));
        }
    }
}

#[test]
fn invalid_files_are_refused_with_their_place() {
    for (kind, reader) in READERS {
        for file in fixtures(kind, "invalid") {
            let case = file.file_stem().unwrap().to_str().unwrap();
            let name = format!("{case}.toml");
            let error = read(reader, &name, &std::fs::read(&file).unwrap())
                .expect_err(&format!("{} should be refused", file.display()));
            insta::assert_snapshot!(format!("{kind}-{case}"), shown(&error));
        }
    }
}

#[test]
fn files_that_are_too_large_are_refused_before_they_are_read() {
    for (_, reader) in READERS {
        let error = read(reader, "large.toml", &vec![b' '; config::MAX_SIZE + 1]).unwrap_err();
        assert_eq!(error.to_string(), "large.toml: 1048577 bytes are too much: such a file has at most 1048576");
    }
}

#[test]
fn a_very_long_line_is_not_printed() {
    let text = format!("title = \"{}\"\nnonsense", "x".repeat(500_000));
    let error = suite::parse("long.toml", &text, &vocabulary()).unwrap_err();
    assert!(shown(&error).len() < 2000, "{}", shown(&error).len());
    let text = format!("title = \"{}", "x".repeat(500_000));
    let error = suite::parse("long.toml", &text, &vocabulary()).unwrap_err();
    assert!(shown(&error).len() < 2000, "{}", shown(&error).len());
}

fn builtin(name: &str) -> Suite {
    let text = suite::builtin(name).unwrap();
    suite::parse(name, text, &vocabulary()).unwrap_or_else(|e| panic!("{}", shown(&e)))
}

#[test]
fn built_in_suites_are_what_the_method_promises() {
    let (quick, standard) = (builtin("quick"), builtin("standard"));
    assert_eq!(quick.budget, Seconds(120.0));
    assert_eq!(standard.budget, Seconds(900.0));
    assert!(quick.rounds.min >= 8 && standard.rounds.min >= 12);
    for suite in [&quick, &standard] {
        for benchmark in &vocabulary().benchmarks {
            assert!(suite.runs.iter().any(|r| r.benchmark == benchmark.id), "{}: no {}", suite.name, benchmark.id);
        }
        for on in [DeviceFilter::Gpu, DeviceFilter::Host, DeviceFilter::Cpu] {
            let gemm = suite.runs.iter().find(|r| r.benchmark == "gemm" && r.on == on).unwrap();
            assert_eq!(gemm.params["type"].len(), 4);
        }
        let gates = suite.demands.iter().filter(|d| d.gate);
        assert!(gates.clone().any(|d| d.limit == LimitRule::Correct));
        assert!(gates.clone().any(|d| d.limit == LimitRule::Complete));
    }
    assert_eq!(suite::builtin("quicker"), None);
}

#[test]
fn the_fields_arrive() {
    let text = std::fs::read_to_string(&fixtures("suites", "valid")[0]).unwrap();
    let suite = suite::parse("everything.toml", &text, &vocabulary()).unwrap();
    let run = &suite.runs[0];
    assert_eq!((run.block, run.precision, run.size_cap), (Seconds(0.25), 0.005, Some(Bytes::gib(4))));
    let cases: Vec<String> = suite::combinations(&run.params).iter().map(ToString::to_string).collect();
    assert_eq!(cases.len(), 4);
    assert_eq!(cases[1], "op=copy,size=1000000000");
    let demand = &suite.demands[0];
    assert_eq!((demand.line, demand.cap, demand.gate), (32, 0.05, true));
    assert_eq!(demand.filter["percentile"], "p99");
    assert_eq!(suite.source.sha256, config::sha256(&text));
}

#[test]
fn the_example_offer_is_read() {
    let text = include_str!("../../examples/offer.toml");
    let offer = offer::parse("offer.toml", text, &vocabulary()).unwrap_or_else(|e| panic!("{}", shown(&e)));
    assert_eq!((offer.count, offer.memory, offer.dedicated), (Some(8), Some(Bytes(80e9)), true));
    let price = &offer.prices[0];
    assert_eq!((price.per_hour, price.currency.as_str()), (19.92, "USD"));
    assert_eq!((offer.claims.len(), offer.guarantees.len()), (3, 3));
    assert_eq!(offer.guarantees[0].value.value, 600e12);
    assert_eq!(offer.guarantees[2].filter["size"], "256 MiB");
}

#[test]
fn what_is_around_the_gpus_arrives_with_its_lines() {
    let text = include_str!("../fixtures/offers/valid/around.toml");
    let offer = offer::parse("around.toml", text, &vocabulary()).unwrap_or_else(|e| panic!("{}", shown(&e)));
    assert_eq!((offer.link, offer.market), (Some(offer::Link::NvSwitch), Some(offer::Market::Spot)));
    let pcie = offer.pcie.unwrap();
    assert_eq!((pcie.generation, pcie.lanes), (Some(5), Some(16)));
    let host = offer.host;
    assert_eq!((host.vcpus, host.ram, host.container), (Some(192), Some(Bytes::gib(2048)), true));
    let storage = offer.storage.unwrap();
    assert_eq!((storage.size, storage.kind), (Bytes(30.72e12), Some(offer::StorageKind::Nvme)));
    assert_eq!(offer.network.unwrap().get(), 4e11);
    // A price that names no market is of the market of the offer.
    assert_eq!(offer.prices[0].market.as_deref(), Some("spot"));
    let states: Vec<_> = offer.guarantees.iter().map(|g| g.state.unwrap()).collect();
    assert_eq!(states, [ThermalState::Sustained, ThermalState::Burst]);
    assert!(offer.guarantees.iter().all(|g| !g.filter.contains_key("state")));
    for (key, line) in [("instance", 2), ("gpu.count", 8), ("gpu.pcie", 11), ("host.vcpus", 14), ("network.rate", 23)] {
        assert_eq!(offer.lines.get(key), Some(&line), "{key}");
    }
    assert_eq!(offer.place("host.ram"), "around.toml:15");
    assert_eq!(offer.place("price"), "around.toml");
}

/// A valid file with some bytes replaced: nearly right is where readers break.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let texts = [suite::builtin("quick").unwrap(), include_str!("../../examples/offer.toml")];
    (0..texts.len(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6)).prop_map(
        move |(text, edits)| {
            let mut bytes = texts[text].as_bytes().to_vec();
            for (at, byte, how) in edits {
                if bytes.is_empty() {
                    break;
                }
                let at = at.index(bytes.len());
                match how {
                    0 => bytes[at] = byte,
                    1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_files_never_panic(bytes in damaged()) {
        for (_, reader) in READERS {
            if let Err(error) = read(reader, "damaged.toml", &bytes) {
                prop_assert!(!shown(&error).is_empty());
            }
        }
    }

    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        for (_, reader) in READERS {
            prop_assert!(read(reader, "any.toml", text.as_bytes()).is_err());
        }
    }

    #[test]
    fn no_number_is_taken_unchecked(n in any::<i64>(), x in any::<f64>()) {
        let text = suite::builtin("quick").unwrap();
        let text = text.replace("n = 8192", &format!("n = {n}")).replace("\"0.25 s\"", &format!("\"{x} s\""));
        if let Ok(suite) = suite::parse("any.toml", &text, &vocabulary()) {
            prop_assert!(n > 0 && suite.runs.iter().all(|r| r.block.get() > 0.0 && r.block.get() <= 600.0));
        }
    }
}
