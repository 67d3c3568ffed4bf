//! Offer files: TOML in, [`Offer`] out, or a complaint with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Claim, Guarantee, HostSold, Link, Market, Offer, Pcie, Price, StorageKind, StorageSold, schema};
use crate::config::{self, Document, ParseError, Spanned};
use crate::record::{Better, DataType, Source, ThermalState, Vocabulary};
use crate::unit::{Bytes, BytesPerSecond, Quantity, Unit};

/// Most claims or guarantees of one offer.
const MOST: usize = 1000;

/// Most prices of one offer.
const MOST_PRICES: usize = 16;

/// What a provider sold, in its own words. Everything but the provider may be left out; what is not stated is not checked.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "gpu-assay offer")]
pub(super) struct OfferFile {
    /// Who sells it.
    #[schemars(with = "String")]
    provider: Spanned<String>,
    /// Where it is.
    #[schemars(with = "Option<String>")]
    region: Option<Spanned<String>>,
    /// Instance type, in the provider's words or as in `gpu-assay list instances`.
    #[schemars(with = "Option<String>")]
    instance: Option<Spanned<String>>,
    /// How it is rented; also that of a price that names no market.
    #[schemars(with = "Option<String>", extend("enum" = schema::words(&Market::ALL)))]
    market: Option<Spanned<String>>,
    /// True if the offer says that the hardware is not shared with others.
    #[serde(default)]
    dedicated: bool,
    /// One price, or several with their markets; all in one currency.
    #[serde(default)]
    #[schemars(with = "schema::OneOrSeveral<PriceFile>")]
    price: PricesFile,
    /// The GPUs.
    gpu: Option<GpuFile>,
    /// CPUs and memory around the GPUs.
    host: Option<HostFile>,
    /// Disks.
    storage: Option<StorageFile>,
    /// Network.
    network: Option<NetworkFile>,
    /// Nameplate statements: checked, never a limit.
    #[serde(default)]
    claim: Vec<ClaimFile>,
    /// Promised minima or maxima: each is a limit.
    #[serde(default)]
    guarantee: Vec<GuaranteeFile>,
}

/// One `price = { … }`, or several `[[price]]`.
#[derive(Default)]
pub(super) struct PricesFile(Vec<PriceFile>);

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

/// A price of the whole instance for an hour.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Price")]
pub(super) struct PriceFile {
    /// On demand, spot, reserved …; free text.
    #[schemars(with = "Option<String>")]
    market: Option<Spanned<String>>,
    /// The amount.
    #[schemars(with = "f64", range(min = 0.0, max = 1e9))]
    per_hour: Spanned<f64>,
    /// ISO 4217 code.
    #[schemars(with = "String", regex(pattern = "^[A-Z]{3}$"))]
    currency: Spanned<String>,
    /// Where it is from.
    #[schemars(with = "Option<String>")]
    source: Option<Spanned<String>>,
}

/// The GPUs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Gpu")]
pub(super) struct GpuFile {
    /// Id of the spec table, marketing or driver name.
    #[schemars(with = "Option<String>")]
    model: Option<Spanned<String>>,
    /// How many.
    #[schemars(with = "Option<u32>", range(min = 1, max = 1024))]
    count: Option<Spanned<i64>>,
    /// Memory of each, e.g. "80 GB".
    #[schemars(with = "Option<String>")]
    memory: Option<Spanned<String>>,
    /// How they are linked to one another.
    #[schemars(with = "Option<String>", extend("enum" = schema::words(&Link::ALL)))]
    link: Option<Spanned<String>>,
    /// Host link of each.
    pcie: Option<PcieFile>,
}

/// A host link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Pcie")]
pub(super) struct PcieFile {
    /// PCIe generation.
    #[schemars(with = "Option<u32>", range(min = 1, max = 7))]
    generation: Option<Spanned<i64>>,
    /// Lanes.
    #[schemars(with = "Option<u32>", range(min = 1, max = 32))]
    lanes: Option<Spanned<i64>>,
}

/// The machine around the GPUs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Host")]
pub(super) struct HostFile {
    /// Virtual CPUs, as the operating system counts them.
    #[schemars(with = "Option<u32>", range(min = 1, max = 65536))]
    vcpus: Option<Spanned<i64>>,
    /// Main memory, e.g. "2 TiB".
    #[schemars(with = "Option<String>")]
    ram: Option<Spanned<String>>,
    /// True if a container is sold and not a machine: what its limits allow is then what was delivered.
    #[serde(default)]
    container: bool,
}

/// Disks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Storage")]
pub(super) struct StorageFile {
    /// All together, e.g. "30.72 TB".
    #[schemars(with = "String")]
    size: Spanned<String>,
    /// What kind of disks.
    #[schemars(with = "Option<String>", extend("enum" = schema::words(&StorageKind::ALL)))]
    kind: Option<Spanned<String>>,
}

/// Network.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Network")]
pub(super) struct NetworkFile {
    /// Front end or aggregate as the provider lists it, e.g. "3200 Gbps".
    #[schemars(with = "String")]
    rate: Spanned<String>,
}

/// A nameplate statement.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Claim")]
pub(super) struct ClaimFile {
    /// As the provider wrote it.
    #[schemars(with = "String")]
    text: Spanned<String>,
}

/// A promised minimum, or maximum where less is better.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Guarantee")]
pub(super) struct GuaranteeFile {
    /// Metric id, e.g. gemm.throughput.
    #[schemars(with = "String")]
    metric: Spanned<String>,
    /// Conditions: parameters of the benchmark (type, n, op, size …), the label percentile, and the thermal state.
    #[serde(default, rename = "where")]
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    filter: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Where more is better.
    #[schemars(with = "Option<String>")]
    minimum: Option<Spanned<String>>,
    /// Where less is better.
    #[schemars(with = "Option<String>")]
    maximum: Option<Spanned<String>>,
}

/// The offer in `text`. `name` is shown in errors and kept in the record; `vocabulary` holds the metrics a
/// guarantee may name. Errors: anything unknown, missing, absurd or contradictory, each with its place.
pub fn parse(name: &str, text: &str, vocabulary: &Vocabulary) -> Result<Offer, ParseError> {
    let document = Document::new(name, text)?;
    let file: OfferFile = document.read()?;
    let shown =
        |value: &Option<Spanned<String>>, what: &str| value.as_ref().map(|v| document.text(v, what)).transpose();
    let market = word(&document, "market", &file.market, &Market::ALL)?;
    let gpu = file.gpu.as_ref();
    let size = |value: Option<&Spanned<String>>, what: &str, range: RangeInclusive<f64>| {
        value.map(|v| document.quantity(v, what, Unit::Byte, range)).transpose().map(|v| v.map(Bytes))
    };
    let count = gpu.and_then(|g| g.count.as_ref());
    let network = file.network.as_ref().map(|n| &n.rate);
    let network = network.map(|r| document.quantity(r, "rate", Unit::BytePerSecond, 1e3..=1e15)).transpose()?;
    Ok(Offer {
        provider: document.text(&file.provider, "provider")?,
        region: shown(&file.region, "region")?,
        instance: shown(&file.instance, "instance")?,
        model: gpu.map(|g| shown(&g.model, "model")).transpose()?.flatten(),
        count: count.map(|c| document.whole(c, "count", 1..=1024)).transpose()?,
        memory: size(gpu.and_then(|g| g.memory.as_ref()), "memory", 1e6..=1e15)?,
        link: gpu.map(|g| word(&document, "link", &g.link, &Link::ALL)).transpose()?.flatten(),
        pcie: gpu.and_then(|g| g.pcie.as_ref()).map(|p| pcie(&document, p)).transpose()?,
        host: host(&document, file.host.as_ref())?,
        storage: file.storage.as_ref().map(|s| storage(&document, s)).transpose()?,
        network: network.map(BytesPerSecond),
        market,
        dedicated: file.dedicated,
        prices: prices(&document, &file.price, market)?,
        claims: claims(&document, &file)?,
        guarantees: guarantees(&document, &file, vocabulary)?,
        lines: lines(&document, &file),
        source: Source { name: name.to_owned(), sha256: config::sha256(text), text: text.to_owned() },
    })
}

/// One of a closed list of words.
fn word<T: Copy>(
    document: &Document<'_>,
    what: &str,
    value: &Option<Spanned<String>>,
    all: &[(&str, T)],
) -> Result<Option<T>, ParseError> {
    let Some(value) = value else { return Ok(None) };
    let found = all.iter().find(|(word, _)| word == value.get_ref()).map(|(_, known)| *known);
    let unknown = || document.unknown(value.span(), what, value.get_ref(), all.iter().map(|(word, _)| *word));
    found.ok_or_else(unknown).map(Some)
}

fn pcie(document: &Document<'_>, file: &PcieFile) -> Result<Pcie, ParseError> {
    let whole = |value: &Option<Spanned<i64>>, what: &str, most: u32| {
        value.as_ref().map(|v| document.whole(v, what, 1..=most)).transpose()
    };
    Ok(Pcie { generation: whole(&file.generation, "generation", 7)?, lanes: whole(&file.lanes, "lanes", 32)? })
}

fn host(document: &Document<'_>, file: Option<&HostFile>) -> Result<HostSold, ParseError> {
    let Some(file) = file else { return Ok(HostSold::default()) };
    let vcpus = file.vcpus.as_ref().map(|v| document.whole(v, "vcpus", 1..=65536)).transpose()?;
    let ram = file.ram.as_ref().map(|r| document.quantity(r, "ram", Unit::Byte, 1e6..=1e16)).transpose()?;
    Ok(HostSold { vcpus, ram: ram.map(Bytes), container: file.container })
}

fn storage(document: &Document<'_>, file: &StorageFile) -> Result<StorageSold, ParseError> {
    let size = document.quantity(&file.size, "size", Unit::Byte, 1e6..=1e18)?;
    Ok(StorageSold { size: Bytes(size), kind: word(document, "kind of storage", &file.kind, &StorageKind::ALL)? })
}

/// Where each statement of the tables stands.
fn lines(document: &Document<'_>, file: &OfferFile) -> BTreeMap<String, usize> {
    let gpu = file.gpu.as_ref();
    let pcie = gpu.and_then(|g| g.pcie.as_ref());
    let (host, storage) = (file.host.as_ref(), file.storage.as_ref());
    let text = |value: Option<&Spanned<String>>| value.map(|v| v.span());
    let whole = |value: Option<&Spanned<i64>>| value.map(|v| v.span());
    let all = [
        ("instance", text(file.instance.as_ref())),
        ("gpu.model", text(gpu.and_then(|g| g.model.as_ref()))),
        ("gpu.count", whole(gpu.and_then(|g| g.count.as_ref()))),
        ("gpu.memory", text(gpu.and_then(|g| g.memory.as_ref()))),
        ("gpu.link", text(gpu.and_then(|g| g.link.as_ref()))),
        ("gpu.pcie", whole(pcie.and_then(|p| p.generation.as_ref().or(p.lanes.as_ref())))),
        ("host.vcpus", whole(host.and_then(|h| h.vcpus.as_ref()))),
        ("host.ram", text(host.and_then(|h| h.ram.as_ref()))),
        ("storage.size", text(storage.map(|s| &s.size))),
        ("network.rate", text(file.network.as_ref().map(|n| &n.rate))),
    ];
    all.into_iter().filter_map(|(key, span)| Some((key.to_owned(), document.line(span?)))).collect()
}

/// Prices in one currency: others cannot be compared without a rate of exchange, and none is invented.
fn prices(document: &Document<'_>, file: &PricesFile, market: Option<Market>) -> Result<Vec<Price>, ParseError> {
    let PricesFile(all) = file;
    if let Some(one) = all.get(MOST_PRICES) {
        return Err(document.error(one.per_hour.span(), format!("more than {MOST_PRICES} prices in one offer")));
    }
    let prices: Vec<Price> = all.iter().map(|p| price(document, p, market)).collect::<Result<_, _>>()?;
    for (one, file) in prices.iter().zip(all) {
        if one.currency != prices[0].currency {
            return Err(document.error(file.currency.span(), "all prices of an offer are in one currency"));
        }
    }
    Ok(prices)
}

fn price(document: &Document<'_>, file: &PriceFile, market: Option<Market>) -> Result<Price, ParseError> {
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
        market: shown(&file.market, "market")?.or_else(|| market.map(|m| m.word().to_owned())),
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
        if let Some(earlier) =
            guarantees.iter().find(|g| (&g.metric, &g.filter, g.state) == (&made.metric, &made.filter, made.state))
        {
            let message = format!("this metric has a guarantee under the same conditions in line {}", earlier.line);
            return Err(document.error(line.metric.span(), message));
        }
        guarantees.push(made);
    }
    Ok(guarantees)
}

fn guarantee(document: &Document<'_>, line: &GuaranteeFile, vocabulary: &Vocabulary) -> Result<Guarantee, ParseError> {
    let (entry, unit, better) = document.metric(&line.metric, vocabulary)?;
    let (states, others) = line.filter.iter().partition::<Vec<_>, _>(|(name, _)| name.get_ref() == "state");
    let state = states.first().map(|(_, value)| state(document, value)).transpose()?;
    let filter = document.conditions(others, &["state"], entry)?;
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
    Ok(Guarantee { metric: metric.clone(), filter, state, value, line: document.line(line.metric.span()) })
}

/// The thermal state in which a guarantee holds.
fn state(document: &Document<'_>, value: &Spanned<String>) -> Result<ThermalState, ParseError> {
    const STATES: [(&str, ThermalState); 3] =
        [("burst", ThermalState::Burst), ("warm", ThermalState::Warm), ("sustained", ThermalState::Sustained)];
    let known = STATES.iter().find(|(word, _)| word == value.get_ref()).map(|(_, state)| *state);
    known.ok_or_else(|| document.unknown(value.span(), "thermal state", value.get_ref(), STATES.map(|(word, _)| word)))
}
