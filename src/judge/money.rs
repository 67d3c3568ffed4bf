//! What the price buys: price per delivered rate, the price of as much of a full unit, what a shortfall costs in a month.
//! Nothing is invented: without a price of the offer and a speed that counts there is no number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{CaseFacts, Facts, values};
use super::{BasisKind, Requirement, Status};
use crate::offer::Price;
use crate::record::DeviceId;
use crate::stats;
use crate::unit::{Quantity, Unit};

/// Hours of a month: 365 days / 12.
pub const HOURS_PER_MONTH: f64 = 730.0;

/// Power sensors show the mean of up to this many seconds (NVML on Ampere and later: one second).
const POWER_WINDOW: f64 = 1.0;

/// Prices of the offer beside what was delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Money {
    /// The prices, as the offer states them.
    pub prices: Vec<StatedPrice>,
    /// Delivered rates of the whole instance, each with the price of one unit of it for an hour, per price.
    pub rates: Vec<PricedRate>,
    /// The largest shortfall of the instance against a guarantee.
    pub shortfall: Option<Shortfall>,
}

/// One price of the offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatedPrice {
    /// On demand, spot, reserved …, where stated.
    pub market: Option<String>,
    /// Of the instance for an hour.
    pub per_hour: f64,
    /// ISO 4217 code.
    pub currency: String,
    /// Where it is from, where stated.
    pub source: Option<String>,
}

/// A rate that all devices together deliver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PricedRate {
    /// Metric id.
    pub metric: String,
    /// Its parameters in words, e.g. "fp16".
    pub what: String,
    /// Devices that deliver it.
    pub devices: u32,
    /// Median over blocks, added up over devices.
    pub delivered: Quantity,
    /// One PFLOP/s, POP/s or TB/s: what the prices are for.
    pub per: Quantity,
    /// Price of `per` for an hour, one for each of [`Money::prices`].
    pub prices: Vec<f64>,
    /// Energy per operation or byte in joule over all devices, where power is known.
    pub energy: Option<f64>,
}

/// A shortfall against a guarantee in money, for each of [`Money::prices`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shortfall {
    /// The requirement.
    pub requirement: String,
    /// Delivered share of what was guaranteed, over all devices of the instance.
    pub share: f64,
    /// Price per hour at which the delivered share costs what a full unit would.
    pub equivalent_per_hour: Vec<f64>,
    /// What was paid for and not delivered in a month of [`HOURS_PER_MONTH`].
    pub per_month: Vec<f64>,
}

/// Money, where the offer states a price and any rate counts.
pub fn money(facts: &Facts<'_>, requirements: &[Requirement]) -> Option<Money> {
    let offer = facts.offer.filter(|o| !o.prices.is_empty())?;
    let rates = rates(facts, &offer.prices);
    if rates.is_empty() {
        return None;
    }
    let stated = |p: &Price| StatedPrice {
        market: p.market.clone(),
        per_hour: p.per_hour,
        currency: p.currency.clone(),
        source: p.source.clone(),
    };
    Some(Money {
        prices: offer.prices.iter().map(stated).collect(),
        rates,
        shortfall: shortfall(requirements, &offer.prices),
    })
}

/// Arithmetic and memory rates for which every GPU has a speed that counts: part of an instance has no price.
fn rates(facts: &Facts<'_>, prices: &[Price]) -> Vec<PricedRate> {
    let gpus: Vec<DeviceId> = facts.gpus().map(|g| g.id.clone()).collect();
    let mut rates: Vec<PricedRate> = Vec::new();
    let Some(first) = gpus.first() else { return rates };
    for case in facts.cases.iter().filter(|c| c.devices == std::slice::from_ref(first) && is_priced(c)) {
        let same = |c: &&CaseFacts<'_>| c.benchmark == case.benchmark && c.params == case.params;
        let of = |gpu: &DeviceId| {
            let of_gpu = |c: &&CaseFacts<'_>| c.devices == std::slice::from_ref(gpu) && is_alike(c, case);
            facts.cases.iter().filter(same).find(of_gpu).and_then(|c| speed(facts, c))
        };
        let all: Option<Vec<f64>> = gpus.iter().map(of).collect();
        let Some((all, series)) = all.zip(case.primary()) else { continue };
        let scale = match series.unit {
            Unit::FlopPerSecond | Unit::OpPerSecond => 1e15,
            Unit::BytePerSecond => 1e12,
            _ => continue,
        };
        let delivered: f64 = all.iter().sum();
        let words: Vec<String> = case.params.0.values().map(ToString::to_string).collect();
        rates.push(PricedRate {
            metric: series.metric.0.clone(),
            what: words.join(" "),
            devices: gpus.len() as u32,
            delivered: Quantity { value: delivered, unit: series.unit },
            per: Quantity { value: scale, unit: series.unit },
            prices: prices.iter().map(|p| p.per_hour * scale / delivered).collect(),
            energy: power(facts, &gpus, case).map(|watts| watts / delivered),
        });
    }
    rates
}

/// Matrix products of each type, and memory at full size.
fn is_priced(case: &CaseFacts<'_>) -> bool {
    match case.benchmark {
        "gemm" => true,
        "memory_bandwidth" => case.params.int("size").is_none(),
        _ => false,
    }
}

/// Measured in the same company: all devices at once, or each alone.
fn is_alike(a: &CaseFacts<'_>, b: &CaseFacts<'_>) -> bool {
    a.id.0.ends_with("/alone") == b.id.0.ends_with("/alone") && a.state == b.state
}

fn speed(facts: &Facts<'_>, case: &CaseFacts<'_>) -> Option<f64> {
    let median = stats::median(&values(case.primary()?));
    (facts.void(case).is_none() && median.is_finite() && median > 0.0).then_some(median)
}

/// Mean power of all GPUs while the case's blocks ran; `None` unless each was read during at least one of them, and the
/// blocks are no shorter than what a sensor averages over: a shorter one shows its neighbours in the round.
fn power(facts: &Facts<'_>, gpus: &[DeviceId], case: &CaseFacts<'_>) -> Option<f64> {
    let series = case.primary()?;
    let starts: Vec<f64> = series.blocks.iter().map(|b| b.start.0).collect();
    let length = |b: &crate::record::Block| b.samples.iter().map(|s| s.elapsed.0).sum::<f64>();
    if !series.blocks.iter().all(|b| length(b) >= POWER_WINDOW) {
        return None;
    }
    let blocks: Vec<(f64, f64)> = starts.iter().zip(&series.blocks).map(|(s, b)| (*s, s + length(b))).collect();
    let of = |gpu: &DeviceId| {
        let (power, _) = facts.sensor(&gpu.to_string(), "power")?;
        let during = |at: f64| blocks.iter().any(|(from, to)| (*from..*to).contains(&at));
        let readings = power.points.iter().filter(|p| during(p.at.0) && p.value > 0.0 && p.value.is_finite());
        let readings: Vec<f64> = readings.map(|p| p.value).collect();
        (!readings.is_empty()).then(|| readings.iter().sum::<f64>() / readings.len() as f64)
    };
    gpus.iter().map(of).sum()
}

/// The largest shortfall of the whole instance against a guarantee that any of its devices fails: devices that hold it
/// are paid for what they deliver, but what they deliver beyond it makes up for no other. `None` if a device has no
/// value: what it delivers is not known.
fn shortfall(requirements: &[Requirement], prices: &[Price]) -> Option<Shortfall> {
    let is_guaranteed = |r: &Requirement| r.limit.as_ref().is_some_and(|l| l.basis.kind == BasisKind::Guarantee);
    let of_instance = |failed: &Requirement| {
        let same = |r: &&Requirement| {
            is_guaranteed(r) && r.metric == failed.metric && r.labels == failed.labels && r.limit == failed.limit
        };
        let each: Option<Vec<f64>> = requirements.iter().filter(same).map(|r| r.measured.and(r.shortfall())).collect();
        let each = each.filter(|all| !all.is_empty())?;
        Some(each.iter().map(|short| short.max(0.0)).sum::<f64>() / each.len() as f64)
    };
    let failed = requirements.iter().filter(|r| r.status == Status::Fail && is_guaranteed(r));
    let worst = failed.filter_map(|r| Some((r, of_instance(r)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let (requirement, short) = worst.filter(|(_, short)| *short > 0.0 && *short < 1.0)?;
    Some(Shortfall {
        requirement: requirement.id.clone(),
        share: 1.0 - short,
        equivalent_per_hour: prices.iter().map(|p| p.per_hour * (1.0 - short)).collect(),
        per_month: prices.iter().map(|p| p.per_hour * short * HOURS_PER_MONTH).collect(),
    })
}
