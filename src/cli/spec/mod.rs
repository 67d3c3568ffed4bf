//! `spec`: vendor figures and where they come from.

mod quality;

use super::args::{SpecArgs, SpecCommand};
use super::error::CliError;
use super::{inputs, output};
use crate::exit::Exit;
use crate::spec::{self, GpuSpec, Resolution};

/// Runs `spec`.
pub fn spec(args: &SpecArgs) -> Result<Exit, CliError> {
    match &args.command {
        SpecCommand::List { json } => list(*json).map(|()| Exit::Accepted),
        SpecCommand::Show { model, slice: Some(profile), json } => show_slice(model, profile, *json),
        SpecCommand::Show { model, slice: None, json } => show(model, *json),
        SpecCommand::Check { files } => check(files),
        SpecCommand::Bands => bands(),
        SpecCommand::Quality { json } => quality::quality(*json),
    }
}

/// All models, one line each.
pub fn list(json: bool) -> Result<(), CliError> {
    let table = spec::table();
    if json {
        return output::stdout_json(&table.all());
    }
    let mut text = String::new();
    for gpu in table.all() {
        let bands = evidence_of(gpu);
        text.push_str(&format!("{:<28} {:<8} {:<16} {bands:<14} {}\n", gpu.id, gpu.vendor, gpu.architecture, gpu.name));
    }
    output::stdout(&text)
}

/// "own bands", "borrowed bands" (of its class only) or "no bands".
fn evidence_of(gpu: &GpuSpec) -> &'static str {
    let mut own = spec::table().bands().of_gpu(&gpu.id).iter().map(|b| b.own).peekable();
    match (own.peek().is_some(), own.any(|own| own)) {
        (false, _) => "no bands",
        (_, true) => "own bands",
        _ => "borrowed bands",
    }
}

/// What healthy units of it deliver, with what that rests on.
fn bands_of(gpu: &GpuSpec) -> String {
    let bands = spec::table().bands().of_gpu(&gpu.id);
    if bands.is_empty() {
        return "\nNo published measurement of this model or its class: no bands.\n".to_owned();
    }
    let mut text =
        "\nWhat healthy units deliver (refused below / healthy from; weak evidence refuses 10 % lower):\n".to_owned();
    for band in bands {
        let words: Vec<&str> = band.conditions.words.values().map(String::as_str).collect();
        let value = |value: f64| crate::unit::Quantity { value, unit: band.unit }.to_string();
        let states: Vec<String> = band.states.iter().map(|s| format!("{s:?}").to_lowercase()).collect();
        text.push_str(&format!(
            "  {:<22} {:<11} {:>14} / {:<14} {}; {}\n",
            band.metric,
            words.join(" "),
            value(band.fail_below),
            value(band.pass_from),
            states.join(", "),
            band.basis()
        ));
    }
    text
}

/// The bands rebuilt from the evidence, as `specs/bands.csv` holds them.
fn bands() -> Result<Exit, CliError> {
    let bands = spec::build_bands(spec::evidence(), spec::table().all(), |_| false);
    let text = spec::bands_text(&bands).map_err(|e| CliError::new(Exit::Internal, e))?;
    output::stdout(&text)?;
    Ok(Exit::Accepted)
}

fn show(model: &str, json: bool) -> Result<Exit, CliError> {
    let gpu = resolve(model)?;
    if json {
        let bands = spec::table().bands().of_gpu(&gpu.id);
        output::stdout_json(&serde_json::json!({ "gpu": gpu, "bands": bands }))?;
    } else {
        output::stdout(&text(gpu))?;
    }
    Ok(Exit::Accepted)
}

/// Figures of a slice: shares of the model's, derived.
fn show_slice(model: &str, profile: &str, json: bool) -> Result<Exit, CliError> {
    let gpu = resolve(model)?;
    let slice = spec::Slice::parse(profile)
        .ok_or_else(|| CliError::usage(format_args!("\"{profile}\" is no profile")).help("like 3g.40gb or 20C"))?;
    let figures = slice.figures(gpu).map_err(CliError::usage)?;
    if json {
        output::stdout_json(&serde_json::json!({ "gpu": gpu.id, "slice": slice, "figures": figures }))?;
        return Ok(Exit::Accepted);
    }
    let mut text = format!("{} of {}  {}\n\n", slice.profile, gpu.id, gpu.name);
    for f in &figures {
        text.push_str(&format!(
            "  {:<24} {:>14}  {} ({})\n",
            f.name,
            f.value.to_string(),
            f.provenance.name(),
            f.share
        ));
    }
    text.push_str("\nShares of the whole chip; a driver may give a slice fewer units. They decide nothing.\n");
    output::stdout(&text)?;
    Ok(Exit::Accepted)
}

fn resolve(model: &str) -> Result<&'static GpuSpec, CliError> {
    match spec::table().resolve(model) {
        Resolution::One(gpu) => Ok(gpu),
        Resolution::Several(gpus) => {
            let ids: Vec<&str> = gpus.iter().map(|g| g.id.as_str()).collect();
            Err(CliError::usage(format_args!("\"{model}\" fits several models")).help(ids.join(", ")))
        }
        Resolution::Unknown { nearest } => {
            Err(CliError::usage(format_args!("no model is called \"{model}\"")).help(match nearest.as_slice() {
                [] => "`gpu-assay spec list` shows all models".to_owned(),
                near => format!("did you mean {}?", near.join(", ")),
            }))
        }
    }
}

fn text(gpu: &GpuSpec) -> String {
    let mut text = format!("{}  {}\n", gpu.id, gpu.name);
    let units = gpu.unit_count.map_or("unknown number of".to_owned(), |n| n.to_string());
    text.push_str(&format!(
        "{} · {} · {units} {} · {}\n\n",
        gpu.vendor, gpu.architecture, gpu.unit_kind, gpu.form_factor
    ));
    for (name, figure) in &gpu.figures {
        let provenance = serde_json::to_value(figure.provenance).ok().and_then(|v| v.as_str().map(str::to_owned));
        let meaning = match name.as_str() {
            "memory_size" => Some("as sold, in decimal units"),
            "memory_reported" => Some("as drivers show it"),
            _ => None,
        };
        let notes: Vec<&str> = meaning.into_iter().chain(figure.note.as_deref()).collect();
        let note = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join("; ")) };
        let value = match name.as_str() {
            "memory_size" => format!("{} GB", figure.value.value / 1e9),
            _ => figure.value.to_string(),
        };
        text.push_str(&format!("  {name:<24} {value:>14}  {}{note}\n", provenance.unwrap_or_default()));
    }
    text.push_str(&bands_of(gpu));
    text.push_str("\nAll rates are dense. Names drivers report: ");
    text.push_str(&gpu.device_names.join(", "));
    text.push_str("\nSources:\n");
    for source in &gpu.sources {
        text.push_str(&format!("  {source}\n"));
    }
    let remarks = [("Note", &gpu.notes), ("Sources disagree", &gpu.disagreements), ("Uncertain", &gpu.low_confidence)];
    for (title, texts) in remarks {
        for remark in texts {
            text.push_str(&format!("{title}: {remark}\n"));
        }
    }
    text
}

fn check(files: &[std::path::PathBuf]) -> Result<Exit, CliError> {
    let own;
    let table = if files.is_empty() {
        spec::table()
    } else {
        let texts: Vec<(String, String)> = files.iter().map(|f| inputs::named_text(f)).collect::<Result<_, _>>()?;
        let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        own = spec::SpecTable::parse_files(&texts).map_err(CliError::usage)?;
        &own
    };
    let problems = spec::check(table);
    let mut text = String::new();
    for problem in &problems {
        text.push_str(&format!("{}: {}: {}\n", problem.gpu, problem.field, problem.message));
    }
    text.push_str(&format!("{} models, {} problems\n", table.all().len(), problems.len()));
    output::stdout(&text)?;
    Ok(if problems.is_empty() { Exit::Accepted } else { Exit::Usage })
}
