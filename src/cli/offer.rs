//! `offer`: what a provider sells, before anything is rented.

use std::path::Path;

use super::args::{OfferArgs, OfferCommand};
use super::error::CliError;
use super::{inputs, output};
use crate::exit::Exit;
use crate::judge::claim::{self, CheckedClaim, Class};
use crate::offer::Offer;
use crate::report::{Catalogue, Lang};
use crate::spec::{self, Resolution};

/// Runs `offer`.
pub fn offer(args: &OfferArgs) -> Result<Exit, CliError> {
    match &args.command {
        OfferCommand::Check { file, json, lang } => check(file, *json, *lang),
    }
}

fn check(file: &Path, json: bool, lang: Lang) -> Result<Exit, CliError> {
    let offer = inputs::offer(file)?;
    let claims = claim::check(&offer, spec::table());
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
    } else if any(|c| c == Class::Unknown) || (offer.model.is_some() && model.len() != 1) {
        Exit::Inconclusive
    } else {
        Exit::Accepted
    })
}

/// The models that the offer's name fits.
fn model(offer: &Offer) -> Vec<&'static spec::GpuSpec> {
    match offer.model.as_deref().map(|m| spec::table().resolve(m)) {
        Some(Resolution::One(gpu)) => vec![gpu],
        Some(Resolution::Several(gpus)) => gpus,
        Some(Resolution::Unknown { .. }) | None => Vec::new(),
    }
}

fn text(file: &Path, offer: &Offer, claims: &[CheckedClaim], lang: Lang) -> String {
    let words = Catalogue::of(lang);
    let mut text = String::new();
    if let Some(wanted) = &offer.model {
        let fits: Vec<&str> = model(offer).iter().map(|g| g.id.as_str()).collect();
        let fits = if fits.is_empty() { "–".to_owned() } else { fits.join(", ") };
        text.push_str(&format!("{wanted}: {fits}\n"));
    }
    for claim in claims {
        let class = words.text(&format!("claim.class.{}", claim.class.name()));
        text.push_str(&format!("{}:{}  {}\n  {class}\n", file.display(), claim.line, claim.text));
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
