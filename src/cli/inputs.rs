//! Reading what the user gives: suites, offers, records. Every failure names the file and the place.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::CliError;
use crate::config::sha256;
use crate::offer::{self, Offer};
use crate::record::{FORMAT, Record, Source, Vocabulary};
use crate::spec;
use crate::suite::{self, Suite};

/// No suite or offer is larger; a record of a long run on many GPUs stays below.
const TEXT_MAX: u64 = 1 << 20;
const RECORD_MAX: u64 = 512 << 20;

/// The words that suites and offers may use.
pub fn vocabulary() -> Vocabulary {
    crate::benchmark::vocabulary(spec::FIGURES.iter().map(|(name, _)| (*name).to_owned()).collect())
}

/// A built-in suite by name, or a file.
pub fn suite(name: &str) -> Result<Suite, CliError> {
    let text = match suite::builtin(name) {
        Some(text) => text.to_owned(),
        None if looks_like_path(name) => read_text(Path::new(name), TEXT_MAX)?,
        None => {
            let known: Vec<&str> = suite::BUILTIN.iter().map(|(n, _)| *n).collect();
            return Err(CliError::usage(format_args!("no suite is called \"{name}\""))
                .help(format_args!("built in: {}; or give a path to a .toml file", known.join(", "))));
        }
    };
    parse_suite(name, &text)
}

/// A suite from text that is already there (a record's).
pub fn parse_suite(name: &str, text: &str) -> Result<Suite, CliError> {
    suite::parse(name, text, &vocabulary()).map_err(CliError::diagnostic)
}

/// An offer file.
pub fn offer(path: &Path) -> Result<Offer, CliError> {
    parse_offer(&path.to_string_lossy(), &read_text(path, TEXT_MAX)?)
}

/// An offer from text that is already there (a record's).
pub fn parse_offer(name: &str, text: &str) -> Result<Offer, CliError> {
    offer::parse(name, text, &vocabulary()).map_err(CliError::diagnostic)
}

/// The suite and offer a record was made with.
pub fn recorded(record: &Record) -> Result<(Suite, Option<Offer>), CliError> {
    for source in [Some(&record.suite), record.offer.as_ref()].into_iter().flatten() {
        if source.sha256 != sha256(&source.text) {
            return Err(CliError::usage(format_args!(
                "the record holds another text of {} than its hash says",
                source.name
            ))
            .help("use the record.json as `gpu-assay run` wrote it"));
        }
    }
    let suite = parse_suite(&record.suite.name, &record.suite.text)?;
    let offer = record.offer.as_ref().map(|Source { name, text, .. }| parse_offer(name, text)).transpose()?;
    Ok((suite, offer))
}

/// A record, by file or by the folder it is in.
pub fn record(path: &Path) -> Result<(Record, PathBuf), CliError> {
    let path = if path.is_dir() { path.join("record.json") } else { path.to_owned() };
    let text = read_text(&path, RECORD_MAX)?;
    let record: Record = serde_json::from_str(&text).map_err(|e| {
        CliError::usage(format_args!("{}:{}:{}: not a record: {e}", path.display(), e.line(), e.column()))
            .help("a record is the record.json that `gpu-assay run` writes")
    })?;
    if record.format != FORMAT {
        return Err(CliError::usage(format_args!(
            "{}: record format {} is not {FORMAT}, the one this version reads",
            path.display(),
            record.format
        ))
        .help("use the version of gpu-assay that wrote it"));
    }
    if let Some(contradiction) = record.contradiction() {
        return Err(CliError::usage(format_args!("{}: not the record of one run: {contradiction}", path.display()))
            .help("use the record.json as `gpu-assay run` wrote it"));
    }
    Ok((record, path))
}

/// A text file with its name, for parsers that name the place.
pub fn named_text(path: &Path) -> Result<(String, String), CliError> {
    Ok((path.to_string_lossy().into_owned(), read_text(path, TEXT_MAX)?))
}

fn looks_like_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml") || Path::new(name).exists()
}

pub fn read_text(path: &Path, max: u64) -> Result<String, CliError> {
    let file = std::fs::File::open(path).map_err(|e| CliError::read(path, &e))?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(|e| CliError::read(path, &e))?;
    if bytes.len() as u64 > max {
        return Err(CliError::usage(format_args!("{}: larger than {} MiB, not read", path.display(), max >> 20)));
    }
    String::from_utf8(bytes).map_err(|e| {
        CliError::usage(format_args!("{}: not UTF-8 at byte {}", path.display(), e.utf8_error().valid_up_to()))
    })
}
