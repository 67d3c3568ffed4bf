//! `specs/bands.csv`: one line per band, rebuilt by `gpu-assay spec bands`.

use serde::{Deserialize, Serialize};

use super::{Band, Strength};
use crate::record::{Better, ThermalState};
use crate::spec::evidence::Conditions;
use crate::unit::Unit;

#[derive(Serialize, Deserialize)]
struct Row {
    gpu: String,
    metric: String,
    conditions: String,
    unit: Unit,
    fail_below: f64,
    pass_from: f64,
    strength: Strength,
    evidence: String,
    states: String,
    values: u32,
    units: u32,
    sources: u32,
    figure: String,
    figure_value: f64,
    lowest: Option<f64>,
    source: String,
}

/// The file's text.
pub fn text(bands: &[Band]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for band in bands {
        writer.serialize(Row {
            gpu: band.gpu.clone(),
            metric: band.metric.clone(),
            conditions: conditions(band),
            unit: band.unit,
            fail_below: band.fail_below,
            pass_from: band.pass_from,
            strength: band.strength,
            evidence: if band.own { "own" } else { "borrowed" }.to_owned(),
            states: band.states.iter().map(|s| state_name(*s)).collect::<Vec<_>>().join(" "),
            values: band.values,
            units: band.units,
            sources: band.sources,
            figure: band.figure.clone(),
            figure_value: band.figure_value,
            lowest: band.lowest,
            source: band.source.clone(),
        })?;
    }
    let bytes = writer.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the file's text. Errors: what is wrong, with the line.
pub fn parse(text: &str) -> Result<Vec<Band>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize::<Row>().enumerate();
    rows.map(|(i, row)| row.map_err(|e| e.to_string()).and_then(band).map_err(|e| format!("row {}: {e}", i + 1)))
        .collect()
}

/// `type=fp16 n>=8192`, `op=copy !size`.
fn conditions(band: &Band) -> String {
    let words = band.conditions.words.iter().map(|(name, word)| format!("{name}={word}"));
    let least = band.conditions.at_least.iter().map(|(name, n)| format!("{name}>={n}"));
    let without = band.conditions.without.iter().map(|name| format!("!{name}"));
    words.chain(least).chain(without).collect::<Vec<_>>().join(" ")
}

fn band(row: Row) -> Result<Band, String> {
    let mut band = Band {
        gpu: row.gpu,
        metric: row.metric,
        conditions: Conditions::default(),
        unit: row.unit,
        better: Better::Higher,
        fail_below: row.fail_below,
        pass_from: row.pass_from,
        strength: row.strength,
        own: row.evidence == "own",
        states: row.states.split_whitespace().map(state).collect::<Result<_, _>>()?,
        values: row.values,
        units: row.units,
        sources: row.sources,
        figure: row.figure,
        figure_value: row.figure_value,
        lowest: row.lowest,
        source: row.source,
    };
    for condition in row.conditions.split_whitespace() {
        if let Some(name) = condition.strip_prefix('!') {
            band.conditions.without.push(name.to_owned());
        } else if let Some((name, least)) = condition.split_once(">=") {
            let least = least.parse().map_err(|_| format!("{condition:?} is no condition"))?;
            band.conditions.at_least.insert(name.to_owned(), least);
        } else if let Some((name, word)) = condition.split_once('=') {
            band.conditions.words.insert(name.to_owned(), word.to_owned());
        } else {
            return Err(format!("{condition:?} is no condition"));
        }
    }
    Ok(band)
}

fn state_name(state: ThermalState) -> &'static str {
    match state {
        ThermalState::Burst => "burst",
        ThermalState::Warm => "warm",
        ThermalState::Sustained => "sustained",
    }
}

fn state(word: &str) -> Result<ThermalState, String> {
    [ThermalState::Burst, ThermalState::Warm, ThermalState::Sustained]
        .into_iter()
        .find(|s| state_name(*s) == word)
        .ok_or_else(|| format!("{word:?} is no thermal state"))
}
