//! Bands from published measurements. Per class of like models, the lowest healthy share of the figure; a model's band
//! is that share of its own figure, in absolute units.
//!
//! `pass_from` is 0.97 of the lowest healthy value, `fail_below` 0.875 of that. 0.97: units of one site differ by up to
//! 3 % (compute, one outlier of 39 rented H100s at 3.8 %); 0.875: the widest healthy spread that is published below a
//! site's median is 8 %, so a unit has to leave it clearly. A vendor's own floor replaces `pass_from` where it is lower.

use std::collections::BTreeSet;

use super::{Band, Strength};
use crate::record::{Better, ThermalState};
use crate::spec::evidence::{Class, Comparable, Evidence, Published, Reads, conditions};
use crate::spec::{Figure, GpuSpec};
use crate::unit::Unit;

/// Share of the lowest healthy value from which on a unit is as healthy ones are.
const PASS: f64 = 0.97;
/// Share of `pass_from` below which a unit is not healthy.
const FAIL: f64 = 0.875;

/// Largest believable share of a figure: boards of the GeForce class run up to 17 % above the clock that theirs is
/// quoted at. What is beyond was done by other instructions than the figure is about (packed fp32 on MI200).
const MOST: f64 = 1.2;

/// Units of a model whose evidence is not mixed with that of its class.
const ENOUGH: u32 = 3;

/// Bytes per second and lane that PCI Express carries, by generation (8b/10b until 2, 128b/130b from 3 on).
const PCIE_LANE: [f64; 6] = [
    0.25e9,
    0.5e9,
    8e9 / 8.0 * 128.0 / 130.0,
    16e9 / 8.0 * 128.0 / 130.0,
    32e9 / 8.0 * 128.0 / 130.0,
    64e9 / 8.0 * 242.0 / 256.0,
];

/// One healthy value as a share of its model's figure.
struct Share<'a> {
    row: Comparable<'a>,
    models: &'a [String],
    share: f64,
}

/// Bands of all models, without what `leave_out` takes away.
pub fn build(evidence: &Evidence, gpus: &[GpuSpec], leave_out: impl Fn(&Published) -> bool) -> Vec<Band> {
    let rows = evidence.published().iter().filter(|p| p.kind == "measurement" && p.label == "healthy" && !leave_out(p));
    let shares: Vec<Share<'_>> = rows.filter_map(|p| share(evidence, gpus, p)).collect();
    let floors: Vec<Comparable<'_>> =
        evidence.floors().filter(|p| !leave_out(p)).filter_map(|p| evidence.floor(p).ok()).collect();
    let mut bands = Vec::new();
    for gpu in gpus {
        let own_floors = floors.iter().filter(|f| evidence.models(f.published).contains(&gpu.id));
        let keys: BTreeSet<(&'static str, (&'static str, String))> =
            (shares.iter().map(|s| &s.row)).chain(own_floors).map(|row| (row.metric, row.parameter.clone())).collect();
        for (metric, parameter) in keys {
            let alike: Vec<&Share<'_>> = shares
                .iter()
                .filter(|s| s.row.metric == metric && s.row.parameter == parameter)
                .filter(|s| is_alike(evidence, gpus, gpu, &s.models[0], metric))
                .collect();
            let floor = floors.iter().find(|f| {
                f.metric == metric && f.parameter == parameter && evidence.models(f.published).contains(&gpu.id)
            });
            bands.extend(band(gpu, metric, &parameter, &alike, floor));
        }
    }
    bands
}

/// What a row is divided by on `gpu`: the name of the figure and its value per device.
pub fn divisor(gpu: &GpuSpec, metric: &str, parameter: &(&'static str, String)) -> Option<(String, f64)> {
    if metric == "host_link.rate" {
        let (generation, lanes) = pcie(gpu)?;
        let lane = PCIE_LANE.get(generation.checked_sub(1)?)?;
        return Some((format!("PCIe {generation} × {lanes}"), lane * lanes as f64));
    }
    let names: &[&str] = match (metric, parameter.1.as_str()) {
        ("memory_bandwidth.rate", _) => &["memory_bandwidth"],
        ("gemm.throughput", "fp64") => &["fp64_tensor", "fp64_vector"],
        ("gemm.throughput", "fp32") => &["fp32_matrix", "fp32_vector"],
        ("gemm.throughput", "tf32") => &["tf32_tensor"],
        ("gemm.throughput", "fp16") => &["fp16_tensor_fp32acc"],
        ("gemm.throughput", "bf16") => &["bf16_tensor"],
        ("gemm.throughput", "fp8") => &["fp8_tensor"],
        ("gemm.throughput", "int8") => &["int8_tensor"],
        ("fma_peak.throughput", "fp64") => &["fp64_vector"],
        ("fma_peak.throughput", "fp32") => &["fp32_vector"],
        _ => &[],
    };
    let name = names.iter().find(|n| gpu.figure(n).is_some())?;
    Some(((*name).to_owned(), gpu.device_value(name)?))
}

fn pcie(gpu: &GpuSpec) -> Option<(usize, usize)> {
    let whole = |name: &str| gpu.figure(name).map(|f: &Figure| f.value.value as usize);
    Some((whole("pcie_generation")?, whole("pcie_lanes")?))
}

fn share<'a>(evidence: &'a Evidence, gpus: &[GpuSpec], published: &'a Published) -> Option<Share<'a>> {
    let models = evidence.models(published);
    let row = evidence.comparable(published).ok()?;
    let gpu = gpus.iter().find(|g| Some(&g.id) == models.first())?;
    let (_, figure) = divisor(gpu, row.metric, &row.parameter)?;
    if published.base_value() > MOST * figure {
        return None;
    }
    Some(Share { share: published.base_value() / figure, row, models })
}

/// Host links are alike by generation and lanes, the rest by the classes of evidence.toml.
fn is_alike(evidence: &Evidence, gpus: &[GpuSpec], gpu: &GpuSpec, other: &str, metric: &str) -> bool {
    if metric == "host_link.rate" {
        let other = gpus.iter().find(|g| g.id == other).and_then(pcie);
        return other.is_some() && other == pcie(gpu);
    }
    let of = if metric == "memory_bandwidth.rate" { "memory" } else { "compute" };
    let has = |class: &&Class, id: &str| class.models.iter().any(|m| m == id);
    evidence.classes().iter().filter(|c| c.of == of).any(|c| has(&c, &gpu.id) && has(&c, other))
}

fn band(
    gpu: &GpuSpec,
    metric: &str,
    parameter: &(&'static str, String),
    alike: &[&Share<'_>],
    floor: Option<&Comparable<'_>>,
) -> Option<Band> {
    let (figure, value) = divisor(gpu, metric, parameter)?;
    // A method that reads only too poor shows no lowest value of healthy units.
    let class: Vec<&&Share<'_>> = alike.iter().filter(|s| s.row.reads != Reads::Low).collect();
    // Enough units of the model itself speak for it alone; else its class does.
    let of_model: Vec<&&Share<'_>> = class.iter().copied().filter(|s| s.models.contains(&gpu.id)).collect();
    let is_enough = count(&of_model, |s| s.row.published.unit_key()) >= ENOUGH;
    let fair = if is_enough { of_model } else { class };
    let lowest = fair.iter().map(|s| s.share).fold(f64::INFINITY, f64::min);
    let measured = lowest.is_finite().then_some(PASS * lowest * value);
    let stated = floor.map(|f| f.published.base_value());
    let pass_from = match (measured, stated) {
        (Some(m), Some(s)) => m.min(s),
        (m, s) => m.or(s)?,
    };
    let own = floor.is_some() || fair.iter().any(|s| s.models.contains(&gpu.id));
    let strength = match own && is_decisive(gpu, &figure) {
        true => strength(&fair, floor.is_some()),
        false => Strength::Weak,
    };
    let unit = fair.first().map_or_else(|| floor.map_or(Unit::Count, |f| f.unit), |s| s.row.unit);
    let mut conditions = conditions(metric);
    conditions.words.insert(parameter.0.to_owned(), parameter.1.clone());
    Some(Band {
        gpu: gpu.id.clone(),
        metric: metric.to_owned(),
        conditions,
        unit,
        better: Better::Higher,
        fail_below: rounded(FAIL * pass_from),
        pass_from: rounded(pass_from),
        strength,
        own,
        states: states(&fair, floor.is_some()),
        values: fair.len() as u32,
        units: count(&fair, |s| s.row.published.unit_key()),
        sources: count(&fair, |s| s.row.published.origin()),
        figure,
        figure_value: value,
        lowest: lowest.is_finite().then(|| (lowest * 1e4).round() / 1e4),
        source: source(&fair, floor, own),
    })
}

fn is_decisive(gpu: &GpuSpec, figure: &str) -> bool {
    gpu.figure(figure).is_none_or(|f| f.provenance.is_decisive())
}

/// Strong: ten units of three sources; medium: three units of two, or a floor that the vendor itself states. Only warm
/// numbers count: a cold card is faster than the same card under load.
fn strength(fair: &[&&Share<'_>], has_floor: bool) -> Strength {
    let warm: Vec<&&Share<'_>> =
        fair.iter().copied().filter(|s| s.row.state != ThermalState::Burst && s.row.reads == Reads::Fair).collect();
    let units = count(&warm, |s| s.row.published.unit_key());
    match (units, count(&warm, |s| s.row.published.origin())) {
        (10.., 3..) => Strength::Strong,
        (3.., 2..) => Strength::Medium,
        _ if has_floor => Strength::Medium,
        _ => Strength::Weak,
    }
}

fn states(fair: &[&&Share<'_>], has_floor: bool) -> Vec<ThermalState> {
    let mut states = Vec::new();
    for state in [ThermalState::Burst, ThermalState::Warm, ThermalState::Sustained] {
        if fair.iter().any(|s| s.row.state == state) || (has_floor && state == ThermalState::Warm) {
            states.push(state);
        }
    }
    states
}

fn count<'a, K: Ord>(shares: &[&&'a Share<'_>], key: impl Fn(&'a Share<'_>) -> K) -> u32 {
    shares.iter().map(|s| key(s)).collect::<BTreeSet<K>>().len() as u32
}

/// Four digits, rounded down: a band never promises more than was seen.
fn rounded(value: f64) -> f64 {
    let step = 10f64.powi(value.log10().floor() as i32 - 3);
    (value / step).floor() * step
}

/// Rows it rests on: the lowest ones first, as keys of measurements.csv.
fn source(fair: &[&&Share<'_>], floor: Option<&Comparable<'_>>, own: bool) -> String {
    let mut rows: Vec<&&&Share<'_>> = fair.iter().collect();
    rows.sort_by(|a, b| a.share.total_cmp(&b.share));
    let keys: Vec<&str> = rows.iter().take(3).map(|s| s.row.published.id.as_str()).collect();
    let mut text = match (keys.is_empty(), own) {
        (true, _) => String::new(),
        (_, true) => format!("lowest healthy: {}", keys.join(" ")),
        (_, false) => format!("lowest of its class: {}", keys.join(" ")),
    };
    if let Some(floor) = floor {
        let separator = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!("{separator}floor of the vendor: {}", floor.published.id));
    }
    text
}
