//! Is it the thing that was sold: count, model, memory and compute units, and do the sources agree about it?

use super::{Check, finding};
use crate::judge::draft::Draft;
use crate::judge::facts::Facts;
use crate::judge::requirements::sells_gpus;
use crate::judge::{Argument, Basis, BasisKind, Class, Finding, FixBy, Limit, Message, Requirement, Status};
use crate::record::{BackendId, Better, DeviceId, DeviceInfo, DeviceKind};
use crate::spec::{GpuSpec, LookupKey, Match};
use crate::unit::{Bytes, Quantity, Unit};

/// Drivers and ECC keep up to 1/16 of the memory, and sizes are sold in decimal and binary units: below this share of
/// the stated size memory is missing.
pub(super) const MEMORY_VISIBLE: f64 = 0.9;

pub const CHECK: Check = Check {
    id: "identity",
    summary: "count, model, memory and compute units against the offer, the model's data and each other",
    requirements,
    findings,
};

/// One contradiction between what a device says of itself and another source.
struct Contradiction {
    about: &'static str,
    says: String,
    other: String,
    /// The quantity in question over what it should be, where it is one.
    ratio: Option<f64>,
}

fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let mut drafts = presence(facts);
    for gpu in facts.gpus() {
        drafts.extend(model(facts, gpu));
        drafts.extend(memory(facts, gpu));
        drafts.push(consistency(facts, gpu));
    }
    drafts
}

/// GPUs of the machine.
fn all_gpus<'a>(facts: &Facts<'a>) -> impl Iterator<Item = &'a DeviceInfo> {
    facts.record.inventory.devices.iter().filter(|d| d.kind == DeviceKind::Gpu)
}

/// Each GPU once: several backends may show the same one.
fn distinct<'a>(gpus: impl Iterator<Item = &'a DeviceInfo>) -> Vec<&'a DeviceInfo> {
    let is_same = |a: &DeviceInfo, b: &DeviceInfo| {
        let uuid = a.uuid.is_some() && a.uuid == b.uuid;
        let address = |d: &DeviceInfo| d.pci.as_ref().map(|p| p.address.to_lowercase());
        uuid || (address(a).is_some() && address(a) == address(b))
    };
    let mut distinct: Vec<&DeviceInfo> = Vec::new();
    for gpu in gpus {
        // Devices of two backends that show neither UUID nor address cannot be told apart: the larger list counts.
        let is_other_view =
            |d: &&DeviceInfo| d.id.backend != gpu.id.backend && d.id.index == gpu.id.index && d.name == gpu.name;
        if !distinct.iter().any(|d| is_same(d, gpu)) && !distinct.iter().any(is_other_view) {
            distinct.push(gpu);
        }
    }
    distinct
}

/// GPUs on the bus, that of the simulation included; `None` where it cannot be seen.
fn gpus_on_bus(facts: &Facts<'_>) -> Option<u64> {
    let simulated = all_gpus(facts).filter(|d| d.id.backend == BackendId::Sim).count();
    facts.record.inventory.host.pci_gpus.value().map(|gpus| (gpus.len() + simulated) as u64)
}

/// Gates about how many GPUs there are and were tested.
fn presence(facts: &Facts<'_>) -> Vec<Draft> {
    let ids: Vec<DeviceId> = facts.gpus().map(|g| g.id.clone()).collect();
    let (found, tested) = (distinct(all_gpus(facts)).len() as u64, distinct(facts.gpus()).len() as u64);
    let gate = |id: &str| Draft::fact(id.to_owned(), "identity", id, &ids, Class::Gate);
    let needs_one = facts.suite.needs_gpu || sells_gpus(facts);
    let Some(sold) = facts.offer.and_then(|o| o.count).map(u64::from) else {
        if needs_one && tested == 0 {
            return vec![gate("gpu").with(Status::NotTested, Some(Message::new("reason.no_gpu")))];
        }
        return Vec::new();
    };
    let (least, most) = devices_sold(facts, sold);
    let mut count = gate("count");
    count.requirement.limit = identity_limit(facts, "gpu.count", sold as f64);
    let (status, reason) = counted(facts, sold);
    let mut drafts = vec![count.with(status, reason)];
    if tested < most && found >= least {
        let reason = Message::new("reason.not_all_tested").with("tested", tested).with("sold", sold);
        drafts.push(gate("tested").with(Status::NotTested, Some(reason)));
    }
    drafts
}

/// Whether as many GPUs are there as were sold, with the reason.
pub(super) fn counted(facts: &Facts<'_>, sold: u64) -> (Status, Option<Message>) {
    let found = distinct(all_gpus(facts)).len() as u64;
    let (least, most) = devices_sold(facts, sold);
    let reason = |id: &str| Some(Message::new(id).with("found", found).with("sold", sold));
    match gpus_on_bus(facts) {
        _ if found >= most => (Status::Pass, reason("reason.count").filter(|_| found > most)),
        _ if found >= least => (Status::Inconclusive, reason("reason.package_or_device")),
        Some(bus) if bus >= least => {
            let reason = Message::new("reason.gpu_without_driver").with("found", found).with("bus", bus);
            (Status::Inconclusive, Some(reason))
        }
        // A bus that shows fewer than there are in use is not seen whole.
        Some(bus) if bus >= found => (Status::Fail, reason("reason.count")),
        // The renter's own container may show fewer than there are.
        _ => (Status::Inconclusive, reason("reason.bus_not_observable")),
    }
}

/// How many devices the sold number stands for, at least and at most: packages with several devices are sold by the
/// package or by the device. The memory size of the offer says which.
fn devices_sold(facts: &Facts<'_>, sold: u64) -> (u64, u64) {
    let Some(spec) = sold_or_found(facts).filter(|s| s.devices_per_package > 1) else { return (sold, sold) };
    let packages = sold * u64::from(spec.devices_per_package);
    let of_device = spec.device_value("memory_size").zip(facts.offer.and_then(|o| o.memory));
    match of_device.map(|(device, sold)| sold.0 / device) {
        Some(r) if r > 1.5 => (packages, packages),
        Some(r) if r > 0.0 => (sold, sold),
        _ => (sold, packages),
    }
}

/// The model that was sold, where the offer names one alone; else that of the first GPU.
fn sold_or_found<'a>(facts: &Facts<'a>) -> Option<&'a GpuSpec> {
    match sold(facts).as_slice() {
        [one] => Some(*one),
        _ => facts.gpus().find_map(|g| facts.spec(g)),
    }
}

/// What the offer states under `key`.
fn identity_limit(facts: &Facts<'_>, key: &str, value: f64) -> Option<Limit> {
    let source = facts.offer.map_or_else(String::new, |o| o.place(key));
    Some(Limit { value, basis: Basis { kind: BasisKind::Identity, source } })
}

/// The models that the offer's name for them stands for.
fn sold<'a>(facts: &Facts<'a>) -> Vec<&'a GpuSpec> {
    let Some(wanted) = facts.offer.and_then(|o| o.model.as_deref()) else { return Vec::new() };
    facts.table.fitting(wanted)
}

fn is_among(spec: &GpuSpec, models: &[&GpuSpec]) -> bool {
    models.iter().any(|m| m.id == spec.id)
}

/// The offer's model on one GPU.
fn model(facts: &Facts<'_>, gpu: &DeviceInfo) -> Option<Draft> {
    let wanted = facts.offer?.model.as_deref()?;
    let mut draft =
        Draft::fact(format!("model/{}", gpu.id), "identity", "model", std::slice::from_ref(&gpu.id), Class::Gate);
    draft.requirement.limit = identity_limit(facts, "gpu.model", 1.0);
    let reason = |id: &str| Some(Message::new(id).with("sold", wanted).with("found", gpu.name.as_str()));
    let sold = sold(facts);
    let is_same_text = gpu.name.trim().eq_ignore_ascii_case(wanted.trim());
    Some(match sold.as_slice() {
        [] if is_same_text => draft.with(Status::Pass, None),
        [] => draft.with(Status::Inconclusive, reason("reason.model_unknown")),
        models => match is_any_of(facts, gpu, models) {
            Some(true) => draft.with(Status::Pass, None),
            Some(false) => draft.with(Status::Fail, reason("reason.other_model")),
            None => draft.with(Status::Inconclusive, reason("reason.model_unclear")),
        },
    })
}

/// Whether a GPU is one of `models`; `None` where nothing says plainly what it is.
pub(super) fn is_any_of(facts: &Facts<'_>, gpu: &DeviceInfo, models: &[&GpuSpec]) -> Option<bool> {
    if let Some(actual) = gpu.spec.as_deref() {
        return Some(models.iter().any(|m| m.id == actual));
    }
    // Not in the table by its ids; its name may still say plainly that it is something else.
    let key = LookupKey { name: Some(&gpu.name), ..LookupKey::default() };
    match facts.table.lookup(&key) {
        Match::One { spec, .. } if !is_among(spec, models) => Some(false),
        _ => None,
    }
}

/// The offer's memory size on one GPU.
fn memory(facts: &Facts<'_>, gpu: &DeviceInfo) -> Option<Draft> {
    let sold = facts.offer?.memory?;
    let mut draft =
        Draft::fact(format!("memory/{}", gpu.id), "identity", "memory", std::slice::from_ref(&gpu.id), Class::Gate);
    draft.requirement.unit = Unit::Byte;
    draft.requirement.limit = identity_limit(facts, "gpu.memory", sold.0 * MEMORY_VISIBLE);
    let per_device = facts.spec(gpu).map_or(1.0, |s| f64::from(s.devices_per_package.max(1)));
    let reason = Message::new("reason.memory").with("found", quantity(gpu.memory)).with("sold", quantity(sold));
    Some(match gpu.memory.0 * per_device / sold.0 {
        r if r >= MEMORY_VISIBLE => draft.with(Status::Pass, None),
        r if r > 0.0 => draft.with(Status::Fail, Some(reason)),
        _ => draft.open(reason),
    })
}

fn quantity(bytes: Bytes) -> Quantity {
    Quantity { value: bytes.0, unit: Unit::Byte }
}

/// Name, ids, units and memory of one GPU agree: a gate, failed only where something other than the name, which anyone
/// can set, contradicts the model of the offer.
fn consistency(facts: &Facts<'_>, gpu: &DeviceInfo) -> Draft {
    let id = format!("consistent/{}", gpu.id);
    let mut draft = Draft::fact(id, "identity", "consistent", std::slice::from_ref(&gpu.id), Class::Gate);
    draft.requirement.limit = Some(Limit {
        value: 0.0,
        basis: Basis { kind: BasisKind::Identity, source: "no contradiction between sources".to_owned() },
    });
    let all = contradictions(facts, gpu);
    let Some(first) = all.first() else {
        return match named(facts, gpu).or(by_pci(facts, gpu)) {
            Some(_) => draft.with(Status::Pass, None),
            None => {
                draft.requirement.class = Class::Graded;
                draft.with(Status::NotTested, Some(Message::new("reason.model_not_in_table")))
            }
        };
    };
    let reason = Message::new("reason.contradiction")
        .with("about", first.about)
        .with("says", first.says.as_str())
        .with("other", first.other.as_str());
    let sold = sold(facts);
    // More than the model has is odd, but nothing is missing.
    let is_short = all.iter().any(|c| c.ratio.is_some_and(|r| r < 1.0));
    let is_other = by_pci(facts, gpu).is_some_and(|ids| !sold.is_empty() && !ids.iter().any(|i| is_among(i, &sold)));
    match facts.offer.is_some_and(|o| o.model.is_some()) && (is_short || is_other) {
        true => draft.with(Status::Fail, Some(reason)),
        false => draft.open(reason),
    }
}

/// The model that the driver's name stands for, alone and with the memory size where one name serves several.
fn named<'a>(facts: &Facts<'a>, gpu: &DeviceInfo) -> Option<Vec<&'a GpuSpec>> {
    let key = LookupKey { name: Some(&gpu.name), ..LookupKey::default() };
    candidates(facts.table.lookup(&key))
}

/// The models that carry the device's PCI id.
fn by_pci<'a>(facts: &Facts<'a>, gpu: &DeviceInfo) -> Option<Vec<&'a GpuSpec>> {
    let pci = gpu.pci.as_ref()?;
    let key = LookupKey { pci: Some((pci.vendor, pci.device)), subsystem: pci.subsystem, ..LookupKey::default() };
    candidates(facts.table.lookup(&key))
}

fn candidates<'a>(found: Match<'a>) -> Option<Vec<&'a GpuSpec>> {
    match found {
        Match::One { spec, .. } => Some(vec![spec]),
        Match::Ambiguous(specs) => Some(specs),
        Match::Unknown => None,
    }
}

fn contradictions(facts: &Facts<'_>, gpu: &DeviceInfo) -> Vec<Contradiction> {
    let mut all = Vec::new();
    let (named, by_pci) = (named(facts, gpu), by_pci(facts, gpu));
    if let (Some(named), Some(ids)) = (&named, &by_pci)
        && !named.iter().any(|n| ids.iter().any(|i| i.id == n.id))
    {
        all.push(Contradiction {
            about: "name",
            says: gpu.name.clone(),
            other: ids.iter().map(|s| s.id.as_str()).collect::<Vec<_>>().join(" / "),
            ratio: None,
        });
    }
    // What was sold must be there if any source claims it; else what the name promises, whatever the ids say.
    let claimed = |s: &&GpuSpec| [&named, &by_pci].into_iter().flatten().any(|models| is_among(s, models));
    let sold: Vec<&GpuSpec> = sold(facts).into_iter().filter(claimed).collect();
    let models = match sold.is_empty() {
        true => named.or(by_pci).or_else(|| facts.spec(gpu).map(|s| vec![s])).unwrap_or_default(),
        false => sold,
    };
    // Units and memory of a slice are a part of the model's: the slice check says so.
    if facts.slice(gpu).is_none() {
        all.extend(unit_contradiction(gpu, &models));
        all.extend(memory_contradiction(gpu, &models));
    }
    for d in facts.record.inventory.disagreements.iter().filter(|d| d.device == gpu.id) {
        all.push(Contradiction {
            about: match d.about.as_str() {
                "name" => "name",
                "memory" => "memory",
                "units" => "units",
                "uuid" => "uuid",
                _ => "identity",
            },
            says: format!("{}: {}", d.first.0, d.first.1),
            other: format!("{}: {}", d.second.0, d.second.1),
            ratio: Some(1.0),
        });
    }
    all
}

/// Compute units that none of `models` has; the one nearest is named.
fn unit_contradiction(gpu: &DeviceInfo, models: &[&GpuSpec]) -> Option<Contradiction> {
    // None at all is a driver that does not say.
    let units = f64::from(gpu.units.filter(|u| *u > 0)?);
    // OpenCL on RDNA counts work-group processors, two compute units each.
    let per_unit = |s: &GpuSpec| {
        let is_rdna = s.architecture.to_lowercase().contains("rdna") && gpu.id.backend == BackendId::Opencl;
        if is_rdna { [1.0, 2.0] } else { [1.0, 1.0] }
    };
    let ratios: Vec<(f64, &GpuSpec)> = models
        .iter()
        .filter_map(|s| Some((*s, f64::from(s.device_units()?))))
        .flat_map(|(s, expected)| per_unit(s).map(|n| (n * units / expected, s)))
        .collect();
    contradiction("units", &ratios, units.to_string(), |s| s.device_units().unwrap_or(0).to_string(), 1e-9)
}

/// Memory that none of `models` has.
fn memory_contradiction(gpu: &DeviceInfo, models: &[&GpuSpec]) -> Option<Contradiction> {
    let size = |s: &GpuSpec| s.device_value("memory_size").filter(|m| *m > 0.0);
    let ratios: Vec<(f64, &GpuSpec)> =
        models.iter().filter_map(|s| Some((gpu.memory.0 / size(s)?, *s))).filter(|(r, _)| *r > 0.0).collect();
    let show = |s: &GpuSpec| quantity(Bytes(size(s).unwrap_or(0.0))).to_string();
    // 10 % less (ECC, driver) to 10 % more (binary units) is the same size.
    contradiction("memory", &ratios, quantity(gpu.memory).to_string(), show, 1.0 - MEMORY_VISIBLE)
}

fn contradiction(
    about: &'static str,
    ratios: &[(f64, &GpuSpec)],
    says: String,
    show: impl Fn(&GpuSpec) -> String,
    tolerance: f64,
) -> Option<Contradiction> {
    let nearest = ratios.iter().min_by(|a, b| (a.0 - 1.0).abs().total_cmp(&(b.0 - 1.0).abs()))?;
    let (ratio, spec) = *nearest;
    ((ratio - 1.0).abs() > tolerance).then(|| Contradiction {
        about,
        says,
        other: format!("{}: {}", spec.id, show(spec)),
        ratio: Some(ratio),
    })
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let mut found = Vec::new();
    for gpu in facts.gpus() {
        for c in contradictions(facts, gpu) {
            let (code, topic) = match (c.about, c.ratio) {
                ("name", None) => ("GA-ID-01", "other_name"),
                ("units", Some(r)) if r < 1.0 => ("GA-UNIT-01", "fewer_units"),
                ("memory", Some(r)) if r < 1.0 => ("GA-MEM-01", "less_memory"),
                _ => ("GA-ID-02", "disagreement"),
            };
            let f = finding(code, topic, std::slice::from_ref(&gpu.id), FixBy::Provider)
                .arg("about", c.about)
                .arg("says", c.says)
                .arg("other", c.other)
                .see(facts.device_pointer(&gpu.id), "device", gpu.id.to_string())
                .effect(c.ratio.map_or(f64::NAN, |r| 1.0 - r))
                .explains(requirements, |r| r.domain == "identity" && r.devices.contains(&gpu.id));
            found.push(f);
        }
    }
    let missing = requirements.iter().filter(|r| {
        matches!(r.metric.as_str(), "count" | "gpu") && r.status != Status::Pass && r.better == Better::Higher
    });
    for r in missing {
        let mut f = finding("GA-ID-04", "missing_gpu", &[], FixBy::Either)
            .see("/inventory/devices", "device", "inventory")
            .explains(requirements, |other| other.id == r.id);
        f = f.arg("found", distinct(all_gpus(facts)).len() as u64);
        f = f.arg("bus", gpus_on_bus(facts).map_or_else(|| "–".into(), Argument::from));
        found.push(f);
    }
    found
}
