//! `spec`: vendor figures and where they come from.

use super::args::{SpecArgs, SpecCommand};
use super::error::CliError;
use super::{inputs, output};
use crate::exit::Exit;
use crate::spec::{self, GpuSpec, Resolution};

/// Runs `spec`.
pub fn spec(args: &SpecArgs) -> Result<Exit, CliError> {
    match &args.command {
        SpecCommand::List { json } => list(*json).map(|()| Exit::Accepted),
        SpecCommand::Show { model, json } => show(model, *json),
        SpecCommand::Check { files } => check(files),
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
        text.push_str(&format!("{:<28} {:<8} {:<16} {}\n", gpu.id, gpu.vendor, gpu.architecture, gpu.name));
    }
    output::stdout(&text)
}

fn show(model: &str, json: bool) -> Result<Exit, CliError> {
    let gpu = resolve(model)?;
    if json {
        output::stdout_json(gpu)?;
    } else {
        output::stdout(&text(gpu))?;
    }
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
