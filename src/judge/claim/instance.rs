//! The tables of an offer against the instance type that it names.

use super::{CheckedClaim, CheckedStatement, Class};
use crate::judge::Message;
use crate::offer::{Link, Offer};
use crate::spec::{GpuSpec, Instance, InstanceField, InstanceTable, SpecTable};
use crate::unit::{Quantity, Unit};

/// Sizes of memory and disks are stated in decimal and binary units alike.
const SIZE_TOLERANCE: f64 = 0.1;

/// Providers round the rates of networks.
const RATE_TOLERANCE: f64 = 0.02;

/// What the offer and the instance type say of one thing.
struct Both {
    key: &'static str,
    stated: String,
    of_type: String,
    value: Quantity,
    agrees: bool,
    /// False where the table itself is not sure.
    is_certain: bool,
}

/// One statement for each thing that both the offer and the instance type state, and one for the type itself where the
/// table does not hold it. Empty where the offer names no type.
pub fn check(offer: &Offer, specs: &SpecTable, table: &InstanceTable) -> Vec<CheckedClaim> {
    let Some(named) = &offer.instance else { return Vec::new() };
    let Some(instance) = table.of(&offer.provider, named) else {
        let near = table.nearest(named).join(", ");
        let near = if near.is_empty() { "–".to_owned() } else { near };
        let message = Message::new("claim.instance_unknown").with("instance", named.as_str()).with("near", near);
        return vec![claim(
            offer,
            "instance",
            named.clone(),
            Quantity { value: 1.0, unit: Unit::Count },
            Class::Unknown,
            message,
        )];
    };
    let judge = |both: Both| {
        let (class, id) = match (both.agrees, both.is_certain) {
            (true, _) => (Class::True, "claim.as_instance"),
            (false, true) => (Class::Contradicted, "claim.other_than_instance"),
            (false, false) => (Class::Unknown, "claim.instance_uncertain"),
        };
        let message = Message::new(id).with("instance", instance.id.as_str()).with("stated", both.of_type.as_str());
        claim(offer, both.key, format!("{} = {}", both.key, both.stated), both.value, class, message)
    };
    both(offer, specs, instance).into_iter().map(judge).collect()
}

fn claim(offer: &Offer, key: &str, text: String, value: Quantity, class: Class, message: Message) -> CheckedClaim {
    let line = offer.lines.get(key).copied().unwrap_or(0);
    CheckedClaim { text, line, class, statements: vec![CheckedStatement { value, class, message }] }
}

/// How a kind of amount is written: symbol, its size in the base unit, and that unit.
type Written = (&'static str, f64, Unit);

const GB: Written = ("GB", 1e9, Unit::Byte);
const GIB: Written = ("GiB", 1_073_741_824.0, Unit::Byte);
const GBIT: Written = ("Gbit/s", 1.25e8, Unit::BytePerSecond);

fn both(offer: &Offer, specs: &SpecTable, instance: &Instance) -> Vec<Both> {
    // A slice of a GPU has another count and size than its model.
    let spec = instance.gpu.as_deref().filter(|_| instance.fraction.is_none()).and_then(|id| specs.get(id));
    let memory = spec.and_then(|s| s.figure("memory_size")).map(|f| f.value.value / GB.1);
    let is_certain = |field| !instance.is_uncertain(field);
    let (host, storage) = (&offer.host, offer.storage.map(|s| s.size));
    let all = [
        offer.model.as_deref().zip(spec).map(|(stated, spec)| model(specs, stated, spec)),
        offer.count.zip(instance.count).map(|(stated, n)| whole("gpu.count", true, stated, n)),
        offer.memory.zip(memory).map(|(stated, n)| amount("gpu.memory", true, stated.0, n, GB)),
        link(offer, instance),
        host.vcpus
            .zip(instance.vcpus)
            .map(|(stated, n)| whole("host.vcpus", is_certain(InstanceField::Vcpus), stated, n)),
        host.ram
            .zip(instance.ram_gib)
            .map(|(stated, n)| amount("host.ram", is_certain(InstanceField::Ram), stated.0, n, GIB)),
        storage
            .zip(instance.nvme_gb)
            .map(|(stated, n)| amount("storage.size", is_certain(InstanceField::Storage), stated.0, n, GB)),
        offer
            .network
            .zip(instance.network_gbps)
            .map(|(stated, n)| amount("network.rate", is_certain(InstanceField::Network), stated.0, n, GBIT)),
    ];
    all.into_iter().flatten().collect()
}

fn model(specs: &SpecTable, stated: &str, spec: &GpuSpec) -> Both {
    Both {
        key: "gpu.model",
        stated: stated.to_owned(),
        of_type: spec.id.clone(),
        value: Quantity { value: 1.0, unit: Unit::Count },
        agrees: specs.fitting(stated).iter().any(|m| m.id == spec.id),
        is_certain: true,
    }
}

/// A number of things: the same or not.
fn whole(key: &'static str, is_certain: bool, stated: u32, of_type: u32) -> Both {
    let value = Quantity { value: f64::from(stated), unit: Unit::Count };
    let agrees = stated == of_type;
    Both { key, stated: stated.to_string(), of_type: of_type.to_string(), value, agrees, is_certain }
}

/// An amount: `stated` in the base unit, `of_type` as it is written.
fn amount(key: &'static str, is_certain: bool, stated: f64, of_type: f64, written: Written) -> Both {
    let (symbol, size, unit) = written;
    let tolerance = if unit == Unit::Byte { SIZE_TOLERANCE } else { RATE_TOLERANCE };
    let shown = |n: f64| format!("{} {symbol}", (100.0 * n).round() / 100.0);
    Both {
        key,
        stated: shown(stated / size),
        of_type: shown(of_type),
        value: Quantity { value: stated, unit },
        agrees: (stated / size / of_type - 1.0).abs() <= tolerance,
        is_certain,
    }
}

fn link(offer: &Offer, instance: &Instance) -> Option<Both> {
    let stated = offer.link?;
    let words = instance.interconnect.as_deref()?;
    let of_type = Link::of_interconnect(words)?;
    Some(Both {
        key: "gpu.link",
        stated: stated.word().to_owned(),
        of_type: words.to_owned(),
        value: Quantity { value: 1.0, unit: Unit::Count },
        agrees: stated.is_met_by(of_type),
        is_certain: !instance.is_uncertain(InstanceField::Link),
    })
}
