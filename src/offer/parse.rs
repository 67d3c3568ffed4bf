//! Offer files: TOML in, [`Offer`] out, or a complaint with its place.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Claim, Guarantee, Offer, Price};
use crate::config::{self, Document, ParseError, Spanned};
use crate::record::{Better, DataType, Source, Vocabulary};
use crate::unit::{Bytes, Quantity, Unit};

/// Most claims or guarantees of one offer.
const MOST: usize = 1000;

/// Most prices of one offer.
const MOST_PRICES: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferFile {
    provider: Spanned<String>,
    region: Option<Spanned<String>>,
    instance: Option<Spanned<String>>,
    #[serde(default)]
    dedicated: bool,
    #[serde(default)]
    price: PricesFile,
    gpu: Option<GpuFile>,
    #[serde(default)]
    claim: Vec<ClaimFile>,
    #[serde(default)]
    guarantee: Vec<GuaranteeFile>,
}

/// One `price = { … }`, or several `[[price]]`.
#[derive(Default)]
struct PricesFile(Vec<PriceFile>);

impl<'de> Deserialize<'de> for PricesFile {
    // By hand: an untagged enum buffers the values, and their places in the file are lost.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PricesFile, D::Error> {
        struct Prices;
        impl<'de> Visitor<'de> for Prices {
            type Value = PricesFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with per_hour and currency, or several of them")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PricesFile, A::Error> {
                PriceFile::deserialize(MapAccessDeserializer::new(map)).map(|one| PricesFile(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<PricesFile, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(sequence)).map(PricesFile)
            }
        }
        deserializer.deserialize_any(Prices)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    market: Option<Spanned<String>>,
    per_hour: Spanned<f64>,
    currency: Spanned<String>,
    source: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuFile {
    model: Option<Spanned<String>>,
    count: Option<Spanned<i64>>,
    memory: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    text: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuaranteeFile {
    metric: Spanned<String>,
    #[serde(default, rename = "where")]
    filter: BTreeMap<Spanned<String>, Spanned<String>>,
    minimum: Option<Spanned<String>>,
    maximum: Option<Spanned<String>>,
}

/// The offer in `text`. `name` is shown in errors and kept in the record; `vocabulary` holds the metrics a
/// guarantee may name. Errors: anything unknown, missing, absurd or contradictory, each with its place.
pub fn parse(name: &str, text: &str, vocabulary: &Vocabulary) -> Result<Offer, ParseError> {
    let document = Document::new(name, text)?;
    let file: OfferFile = document.read()?;
    let shown =
        |value: &Option<Spanned<String>>, what: &str| value.as_ref().map(|v| document.text(v, what)).transpose();
    let gpu = file.gpu.as_ref();
    let memory = gpu.and_then(|g| g.memory.as_ref());
    let memory = memory.map(|m| document.quantity(m, "memory", Unit::Byte, 1e6..=1e15)).transpose()?;
    let count = gpu.and_then(|g| g.count.as_ref());
    Ok(Offer {
        provider: document.text(&file.provider, "provider")?,
        region: shown(&file.region, "region")?,
        instance: shown(&file.instance, "instance")?,
        model: gpu.map(|g| shown(&g.model, "model")).transpose()?.flatten(),
        count: count.map(|c| document.whole(c, "count", 1..=1024)).transpose()?,
        memory: memory.map(Bytes),
        dedicated: file.dedicated,
        prices: prices(&document, &file.price)?,
        claims: claims(&document, &file)?,
        guarantees: guarantees(&document, &file, vocabulary)?,
        source: Source { name: name.to_owned(), sha256: config::sha256(text), text: text.to_owned() },
    })
}

/// Prices in one currency: others cannot be compared without a rate of exchange, and none is invented.
fn prices(document: &Document<'_>, file: &PricesFile) -> Result<Vec<Price>, ParseError> {
    let PricesFile(all) = file;
    if let Some(one) = all.get(MOST_PRICES) {
        return Err(document.error(one.per_hour.span(), format!("more than {MOST_PRICES} prices in one offer")));
    }
    let prices: Vec<Price> = all.iter().map(|p| price(document, p)).collect::<Result<_, _>>()?;
    for (one, file) in prices.iter().zip(all) {
        if one.currency != prices[0].currency {
            return Err(document.error(file.currency.span(), "all prices of an offer are in one currency"));
        }
    }
    Ok(prices)
}

fn price(document: &Document<'_>, file: &PriceFile) -> Result<Price, ParseError> {
    let per_hour = *file.per_hour.get_ref();
    if !(per_hour.is_finite() && per_hour > 0.0 && per_hour <= 1e9) {
        let message = format!("per_hour must be a positive amount, not {per_hour}");
        return Err(document.error(file.per_hour.span(), message));
    }
    let currency = file.currency.get_ref();
    if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_uppercase()) {
        let message = "currency must be a code of three capital letters";
        return Err(document.error(file.currency.span(), message).with_help("for example \"USD\", \"EUR\" or \"CNY\""));
    }
    let shown =
        |value: &Option<Spanned<String>>, what: &str| value.as_ref().map(|v| document.text(v, what)).transpose();
    Ok(Price {
        market: shown(&file.market, "market")?,
        per_hour,
        currency: currency.clone(),
        source: shown(&file.source, "source")?,
    })
}

fn claims(document: &Document<'_>, file: &OfferFile) -> Result<Vec<Claim>, ParseError> {
    if let Some(one) = file.claim.get(MOST) {
        return Err(document.error(one.text.span(), format!("more than {MOST} [[claim]] in one offer")));
    }
    let claim = |c: &ClaimFile| Ok(Claim { text: document.text(&c.text, "text")?, line: document.line(c.text.span()) });
    file.claim.iter().map(claim).collect()
}

fn guarantees(
    document: &Document<'_>,
    file: &OfferFile,
    vocabulary: &Vocabulary,
) -> Result<Vec<Guarantee>, ParseError> {
    if let Some(one) = file.guarantee.get(MOST) {
        return Err(document.error(one.metric.span(), format!("more than {MOST} [[guarantee]] in one offer")));
    }
    let mut guarantees: Vec<Guarantee> = Vec::new();
    for line in &file.guarantee {
        let made = guarantee(document, line, vocabulary)?;
        if let Some(earlier) = guarantees.iter().find(|g| g.metric == made.metric && g.filter == made.filter) {
            let message = format!("this metric has a guarantee under the same conditions in line {}", earlier.line);
            return Err(document.error(line.metric.span(), message));
        }
        guarantees.push(made);
    }
    Ok(guarantees)
}

fn guarantee(document: &Document<'_>, line: &GuaranteeFile, vocabulary: &Vocabulary) -> Result<Guarantee, ParseError> {
    let (entry, unit, better) = document.metric(&line.metric, vocabulary)?;
    let filter = document.conditions(&line.filter, entry)?;
    let metric = line.metric.get_ref();
    let (text, what) = match (&line.minimum, &line.maximum, better) {
        (Some(text), None, Better::Higher) => (text, "minimum"),
        (None, Some(text), Better::Lower) => (text, "maximum"),
        (Some(_), Some(text), _) => {
            return Err(document.error(text.span(), "a guarantee has a minimum or a maximum, not both"));
        }
        (None, None, Better::Higher) => {
            return Err(document.error(line.metric.span(), format!("the guarantee of {metric} needs a minimum")));
        }
        (None, None, Better::Lower) => {
            return Err(document.error(line.metric.span(), format!("the guarantee of {metric} needs a maximum")));
        }
        (Some(text), None, Better::Lower) => {
            let message = format!("less {metric} is better: promise a maximum, not a minimum");
            return Err(document.error(text.span(), message));
        }
        (None, Some(text), Better::Higher) => {
            let message = format!("more {metric} is better: promise a minimum, not a maximum");
            return Err(document.error(text.span(), message));
        }
    };
    // Integer arithmetic reports in OP/s what floating-point arithmetic reports in FLOP/s.
    let integer = filter.get("type").and_then(|t| t.parse().ok()).is_some_and(DataType::is_integer);
    let unit = if unit == Unit::FlopPerSecond && integer { Unit::OpPerSecond } else { unit };
    let value = document.quantity(text, what, unit, 1e-12..=1e24)?;
    let value = Quantity { value, unit };
    Ok(Guarantee { metric: metric.clone(), filter, value, line: document.line(line.metric.span()) })
}
