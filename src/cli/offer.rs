//! `offer`: what a provider sells, before anything is rented.

use std::path::Path;

use super::args::{OfferArgs, OfferCommand};
use super::error::CliError;
use super::{inputs, output};
use crate::exit::Exit;
use crate::judge::claim::{self, CheckedClaim, Class};
use crate::offer::{Link, Offer};
use crate::report::{Catalogue, Lang};
use crate::spec::{self, Instance, InstanceField, InstanceTable, Resolution};

/// Runs `offer`.
pub fn offer(args: &OfferArgs) -> Result<Exit, CliError> {
    match &args.command {
        OfferCommand::New { instance } => output::stdout(&of_instance(instance)?).map(|()| Exit::Accepted),
        OfferCommand::Prices { file, instance, region } => prices(file, instance, region.as_deref()),
        OfferCommand::Check { file, json, lang } => check(file, *json, *lang),
    }
}

/// The offer file that an instance type of the table stands for: provider, GPUs and their link, CPUs, memory, disks and
/// network. What the table is not sure of is a comment: no machine is held against it.
pub fn of_instance(text: &str) -> Result<String, CliError> {
    let table = InstanceTable::embedded();
    let Some(instance) = table.get(text) else {
        let near = table.nearest(text).join(", ");
        let help = if near.is_empty() {
            "`gpu-assay list instances` shows all".to_owned()
        } else {
            format!("did you mean {near}?")
        };
        return Err(CliError::usage(format_args!("no instance type is called \"{text}\"")).help(help));
    };
    let gpu = instance.gpu.as_deref().and_then(|id| spec::table().get(id));
    let (Some(gpu), Some(count)) = (gpu, instance.count) else {
        let what = format_args!("{}: a slice of a GPU, or a model outside of the spec table", instance.id);
        return Err(CliError::usage(what).help("write an offer file that says what was sold, and give it with --offer"));
    };
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let sources: Vec<&str> = table.sources(instance).collect();
    let mut offer = format!("# {}, as the instance table states it. From: {}\n", instance.id, sources.join("; "));
    for doubt in &instance.low_confidence {
        offer.push_str(&format!("# uncertain: {doubt}\n"));
    }
    offer.push_str(&format!("provider = {}\ninstance = {}\n\n", quoted(&instance.provider), quoted(&instance.name)));
    offer.push_str(&format!("[gpu]\nmodel = {}\ncount = {count}\n", quoted(&gpu.id)));
    if let Some(size) = gpu.figure("memory_size") {
        offer.push_str(&format!("memory = \"{} GB\"\n", size.value.value / 1e9));
    }
    let link = instance.interconnect.as_deref().and_then(Link::of_interconnect);
    offer.push_str(&stated(instance, InstanceField::Link, link.map(|l| format!("link = \"{}\"", l.word()))));
    offer.push_str(&around(instance));
    Ok(offer)
}

/// One line of an offer file; a comment where the table is not sure of it.
fn stated(instance: &Instance, field: InstanceField, line: Option<String>) -> String {
    match line {
        Some(line) if instance.is_uncertain(field) => format!("# not certain: {line}\n"),
        Some(line) => format!("{line}\n"),
        None => String::new(),
    }
}

/// The tables about the machine around the GPUs.
fn around(instance: &Instance) -> String {
    let line = |field, text: Option<String>| stated(instance, field, text);
    let container = instance.virtualization.as_deref() == Some("container");
    let host = [
        line(InstanceField::Vcpus, instance.vcpus.map(|n| format!("vcpus = {n}"))),
        line(InstanceField::Ram, instance.ram_gib.map(|n| format!("ram = \"{n} GiB\""))),
        if container { "container = true\n".to_owned() } else { String::new() },
    ];
    let storage = instance.nvme_gb.filter(|n| *n > 0.0).map(|n| format!("size = \"{n} GB\"\nkind = \"nvme\""));
    let network = instance.network_gbps.map(|n| format!("rate = \"{n} Gbps\""));
    let mut text = String::new();
    if host.iter().any(|l| !l.is_empty()) {
        text.push_str(&format!("\n[host]\n{}", host.concat()));
    }
    // A table that must have a key is left out as a whole.
    for (field, name, lines) in
        [(InstanceField::Storage, "storage", storage), (InstanceField::Network, "network", network)]
    {
        let Some(lines) = lines else { continue };
        let mark = if instance.is_uncertain(field) { "# " } else { "" };
        text.push('\n');
        for line in std::iter::once(format!("[{name}]").as_str()).chain(lines.lines()) {
            text.push_str(&format!("{mark}{line}\n"));
        }
    }
    text
}

/// Largest catalogue that is read: those of large clouds have some megabytes.
const CATALOGUE_MAX: u64 = 64 << 20;

/// `[[price]]` entries for an offer file.
fn prices(file: &Path, instance: &str, region: Option<&str>) -> Result<Exit, CliError> {
    let text = inputs::read_text(file, CATALOGUE_MAX)?;
    let name = file.display().to_string();
    let found = crate::offer::prices(&text, &name, instance, region)
        .map_err(|e| CliError::usage(output::printable(&format!("{name}: {e}"))))?;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let entry = |p: &crate::offer::Price| {
        let words = [("market", &p.market), ("source", &p.source)];
        let words = words.map(|(n, v)| v.as_deref().map_or_else(String::new, |v| format!("{n} = {}\n", quoted(v))));
        format!("[[price]]\nper_hour = {:?}\ncurrency = {}\n{}\n", p.per_hour, quoted(&p.currency), words.concat())
    };
    output::stdout(&output::printable(&found.iter().map(entry).collect::<String>()))?;
    Ok(Exit::Accepted)
}

fn check(file: &Path, json: bool, lang: Lang) -> Result<Exit, CliError> {
    let offer = inputs::offer(file)?;
    let claims = claim::check_all(&offer, spec::table(), InstanceTable::embedded());
    let model = model(&offer);
    if json {
        let fits: Vec<&str> = model.iter().map(|g| g.id.as_str()).collect();
        output::stdout_json(&serde_json::json!({ "offer": offer.source.name, "models": fits, "claims": claims }))?;
    } else {
        output::stdout(&output::printable(&text(file, &offer, &claims, lang)))?;
    }
    let any = |wanted: fn(Class) -> bool| claims.iter().any(|c| wanted(c.class));
    Ok(if any(Class::is_false) {
        Exit::NotAccepted
    } else if claims.is_empty() || any(|c| c == Class::Unknown) || (offer.model.is_some() && model.len() != 1) {
        Exit::Inconclusive
    } else {
        Exit::Accepted
    })
}

/// The models that the offer's name fits.
fn model(offer: &Offer) -> Vec<&'static spec::GpuSpec> {
    offer.model.as_deref().map_or_else(Vec::new, |m| spec::table().fitting(m))
}

fn text(file: &Path, offer: &Offer, claims: &[CheckedClaim], lang: Lang) -> String {
    let words = Catalogue::of(lang);
    let mut text = String::new();
    if let Some(wanted) = &offer.model {
        let fits: Vec<&str> = model(offer).iter().map(|g| g.id.as_str()).collect();
        let fits = match spec::table().resolve(wanted) {
            Resolution::Unknown { nearest } if !nearest.is_empty() => format!("– ({}?)", nearest.join(", ")),
            Resolution::Unknown { .. } => "–".to_owned(),
            _ => fits.join(", "),
        };
        text.push_str(&format!("{wanted}: {fits}\n"));
    }
    for claim in claims {
        let class = words.text(&format!("claim.class.{}", claim.class.name()));
        let line = if claim.line == 0 { String::new() } else { format!(":{}", claim.line) };
        text.push_str(&format!("{}{line}  {}\n  {class}\n", file.display(), claim.text));
        for statement in &claim.statements {
            text.push_str(&format!("  {}\n", words.message(&statement.message)));
        }
    }
    let count = |wanted: fn(Class) -> bool| claims.iter().filter(|c| wanted(c.class)).count().to_string();
    let numbers = [
        ("claims", claims.len().to_string()),
        ("true", count(|c| c == Class::True)),
        ("false", count(Class::is_false)),
        ("unknown", count(|c| c == Class::Unknown)),
    ];
    text.push_str(&words.fill("claim.summary", &numbers.each_ref().map(|(n, v)| (*n, v.as_str()))));
    text.push('\n');
    text
}
