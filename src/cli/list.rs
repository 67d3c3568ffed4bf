//! `list`: benchmarks, suites, GPUs, instance types.

use super::args::{ListArgs, Listing};
use super::error::CliError;
use super::{inputs, output, spec};
use crate::exit::Exit;
use crate::spec::InstanceTable;
use crate::{benchmark, suite};

/// Runs `list`.
pub fn list(args: &ListArgs) -> Result<Exit, CliError> {
    match args.what {
        Listing::Benchmarks => benchmarks(args.json)?,
        Listing::Suites => suites(args.json)?,
        Listing::Gpus => spec::list(args.json)?,
        Listing::Instances => instances(args.json)?,
    }
    Ok(Exit::Accepted)
}

fn benchmarks(json: bool) -> Result<(), CliError> {
    if json {
        let entry = |b: &&dyn benchmark::Benchmark| {
            let meta = b.meta();
            let metrics: Vec<_> = meta
                .metrics
                .iter()
                .map(|m| serde_json::json!({ "id": m.id, "unit": m.unit, "better": m.better, "summary": m.summary }))
                .collect();
            let params: Vec<_> = meta
                .params
                .iter()
                .map(|p| serde_json::json!({ "name": p.name, "words": p.words, "summary": p.summary }))
                .collect();
            serde_json::json!({ "id": meta.id, "title": meta.title, "version": meta.version, "metrics": metrics, "params": params })
        };
        return output::stdout_json(&benchmark::ALL.iter().map(entry).collect::<Vec<_>>());
    }
    let mut text = String::new();
    for b in benchmark::ALL {
        let meta = b.meta();
        text.push_str(&format!("{:<20} {}\n", meta.id, meta.title));
        for p in meta.params {
            let words = if p.words.is_empty() { "number or size".to_owned() } else { p.words.join(" | ") };
            text.push_str(&format!("{:<20}   {} = {words}\n", "", p.name));
        }
    }
    text.push_str("\n`gpu-assay explain ID` says what each measures, why, how, and what it does not show.\n");
    output::stdout(&text)
}

fn instances(json: bool) -> Result<(), CliError> {
    let table = InstanceTable::embedded();
    if json {
        return output::stdout_json(&table.all());
    }
    let mut text = String::new();
    for i in table.all() {
        let count = i.count.map_or_else(|| i.fraction.clone().unwrap_or_else(|| "–".to_owned()), |n| n.to_string());
        let gpu = i.gpu.as_deref().unwrap_or("–");
        text.push_str(&format!("{:<40} {count:>4} × {gpu:<24} {}\n", i.id, i.interconnect.as_deref().unwrap_or("")));
    }
    output::stdout(&text)
}

fn suites(json: bool) -> Result<(), CliError> {
    let parsed: Vec<_> =
        suite::BUILTIN.iter().map(|(name, text)| inputs::parse_suite(name, text)).collect::<Result<_, _>>()?;
    if json {
        let entry = |s: &suite::Suite| serde_json::json!({ "name": s.name, "version": s.version, "title": s.title, "budget_s": s.budget.get(), "runs": s.runs.len(), "demands": s.demands.len(), "sha256": s.source.sha256 });
        return output::stdout_json(&parsed.iter().map(entry).collect::<Vec<_>>());
    }
    let mut text = String::new();
    for s in &parsed {
        text.push_str(&format!("{:<12} v{:<3} ≤ {:<8} {}\n", s.name, s.version, s.budget.to_string(), s.title));
    }
    output::stdout(&text)
}
