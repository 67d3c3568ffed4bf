//! One statement against the figures of one model: true, true of something else, or not at all.

use super::Class;
use super::read::{About, Direction, Engine, Per, Statement};
use crate::judge::{Argument, Message};
use crate::spec::{GpuSpec, SpecTable};
use crate::unit::{Quantity, Unit};

/// Above the highest figure by more than this nothing explains a number.
const BEYOND: f64 = 1.02;

/// Groups in which makers quote things together: boards, superchips, bridged pairs, nodes.
const TOGETHER: [u32; 3] = [2, 4, 8];

/// The class of a statement with its explanation.
pub type Judged = (Class, Message);

/// What a statement is held against.
pub struct Against<'t> {
    /// The model that was sold.
    pub gpu: &'t GpuSpec,
    /// All models, for siblings.
    pub table: &'t SpecTable,
    /// Devices sold, where the offer says.
    pub count: Option<u32>,
}

/// Judges one statement.
pub fn classify(statement: &Statement, against: &Against<'_>) -> Judged {
    match statement.about {
        About::Rate => rate(statement, against),
        About::Bandwidth => bandwidth(statement, against),
        About::PeerLink => peer_link(statement, against),
        About::HostLink => host_link(statement, against),
        About::Memory => memory(statement, against),
        About::Cache => figure(statement, against, &["l2", "llc"], 0.05),
        About::Clock => figure(statement, against, &["clock_boost", "clock_base", "clock_tensor"], 0.005),
        About::Power => figure(statement, against, &["tdp", "tdp_max"], 0.005),
        About::Units => units(statement, against),
        About::Elsewhere => (Class::Unknown, Message::new("claim.elsewhere")),
    }
}

// ---- arithmetic --------------------------------------------------------------------------------

fn rate(statement: &Statement, against: &Against<'_>) -> Judged {
    // "FP16/BF16": both must hold. Without a type, the best explanation counts.
    if statement.types.is_empty() {
        return untyped(statement, against);
    }
    let all = statement.types.iter().map(|t| of_type(statement, t, against));
    all.max_by_key(|(class, _)| class.gravity()).unwrap_or((Class::Unknown, Message::new("claim.elsewhere")))
}

/// A rate whose type is not said: the best that some figure of the model explains. Integer rates are quoted for INT8;
/// a lower precision nobody named is the least likely reading.
fn untyped(statement: &Statement, against: &Against<'_>) -> Judged {
    let gpu = against.gpu;
    let packages = gpu.devices_per_package;
    let unit = statement.value.unit;
    let named = |n: &&String| gpu.figure(n).is_some_and(|f| f.value.unit == unit) && !is_of(n, "int4");
    let fits = |n: &&String| matches_figure(statement, gpu, n, 1.0);
    if statement.per == Some(Per::Device) && packages > 1 {
        if let Some(name) = rates(gpu).find(|n| matches_figure(statement, gpu, n, 1.0 / f64::from(packages))) {
            return (Class::True, explained("claim.true_device", statement, gpu, name));
        }
        if let Some(name) = rates(gpu).find(fits) {
            return (Class::TrueOfPackage, package(statement, gpu, name, packages));
        }
    }
    if let Some(name) = rates(gpu).filter(named).find(fits) {
        return (Class::True, explained("claim.true", statement, gpu, name));
    }
    if let Some(name) = rates(gpu).find(|n| is_sparse(statement, gpu, n)) {
        return (Class::TrueWithSparsity, explained("claim.sparsity", statement, gpu, name));
    }
    if let Some(name) = rates(gpu).find(fits) {
        return (Class::True, explained("claim.true", statement, gpu, name));
    }
    for near in [true, false] {
        let of =
            siblings(against, near).find_map(|s| Some((s, rates(s).find(|n| matches_figure(statement, s, n, 1.0))?)));
        if let Some((s, name)) = of {
            return (Class::TrueOfSibling, sibling(statement, gpu, s, name));
        }
    }
    let highest = rates(gpu).filter_map(|n| Some((n, gpu.figure(n)?.value.value * sparsity(gpu, n))));
    match highest.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((name, most)) if statement.value.value > BEYOND * most => impossible(statement, gpu, name),
        _ => (Class::Unknown, Message::new("claim.unmatched").with("value", shown(statement.value))),
    }
}

fn of_type(statement: &Statement, data_type: &str, against: &Against<'_>) -> Judged {
    let gpu = against.gpu;
    let usual = usual(statement, data_type, gpu);
    let own: Vec<&String> = rates(gpu).filter(|n| is_of(n, data_type)).collect();
    let packages = f64::from(gpu.devices_per_package);
    if statement.per == Some(Per::Device) && packages > 1.0 {
        if let Some(name) = usual.iter().find(|n| matches_figure(statement, gpu, n, 1.0 / packages)) {
            return (Class::True, explained("claim.true_device", statement, gpu, name));
        }
        if let Some(name) = usual.iter().find(|n| matches_figure(statement, gpu, n, 1.0)) {
            return (Class::TrueOfPackage, package(statement, gpu, name, gpu.devices_per_package));
        }
    }
    if statement.sparse == Some(true)
        && let Some(name) = usual.iter().chain(&own).find(|n| is_sparse(statement, gpu, n))
    {
        return (Class::True, explained("claim.sparsity", statement, gpu, name));
    }
    if let Some(name) = usual.iter().find(|n| matches_figure(statement, gpu, n, 1.0)) {
        let id = if packages > 1.0 { "claim.true_package" } else { "claim.true" };
        return (Class::True, explained(id, statement, gpu, name));
    }
    if let Some(name) = own.iter().find(|n| matches_figure(statement, gpu, n, 1.0)) {
        // A lower figure of the same type, where no unit was named, promises no more than there is.
        let most = usual.iter().filter_map(|n| gpu.figure(n)).map(|f| f.value.value).fold(0.0, f64::max);
        let is_modest = statement.engine.is_none() && statement.accumulate.is_none() && statement.value.value <= most;
        let class = if is_modest { Class::True } else { Class::TrueOfOtherVariant };
        return (
            class,
            other(if is_modest { "claim.true" } else { "claim.other" }, statement, gpu, name, usual.first().copied()),
        );
    }
    if let Some(name) = usual.iter().chain(&own).find(|n| is_sparse(statement, gpu, n)) {
        return (Class::TrueWithSparsity, explained("claim.sparsity", statement, gpu, name));
    }
    if packages > 1.0
        && let Some(name) = usual.iter().find(|n| matches_figure(statement, gpu, n, 1.0 / packages))
    {
        return (Class::TrueOfPackage, explained("claim.true_device", statement, gpu, name));
    }
    elsewhere(statement, data_type, &usual, &own, against)
}

/// Not of this type on this model: of a namesake, another type, a relative, or several together.
fn elsewhere(
    statement: &Statement,
    data_type: &str,
    usual: &[&String],
    own: &[&String],
    against: &Against<'_>,
) -> Judged {
    let gpu = against.gpu;
    let of_sibling = |near: bool| {
        siblings(against, near).find_map(|s| {
            let name = self::usual(statement, data_type, s)
                .into_iter()
                .find(|n| matches_figure(statement, s, n, 1.0) || is_sparse(statement, s, n))?;
            Some((Class::TrueOfSibling, sibling(statement, gpu, s, name)))
        })
    };
    if let Some(judged) = of_sibling(true) {
        return judged;
    }
    let others = || rates(gpu).filter(|n| !is_of(n, data_type));
    if let Some(name) = others().find(|n| matches_figure(statement, gpu, n, 1.0)) {
        return (Class::TrueOfOtherType, other("claim.other", statement, gpu, name, usual.first().copied()));
    }
    if let Some(name) = others().find(|n| is_sparse(statement, gpu, n)) {
        return (Class::TrueOfOtherType, other("claim.other_sparse", statement, gpu, name, usual.first().copied()));
    }
    if let Some(judged) = of_sibling(false) {
        return judged;
    }
    for together in groups(against) {
        if let Some(name) = usual.iter().find(|n| matches_figure(statement, gpu, n, f64::from(together))) {
            return (Class::TrueOfPackage, package(statement, gpu, name, together));
        }
    }
    let most = own
        .iter()
        .filter_map(|n| Some((*n, gpu.figure(n)?.value.value * sparsity(gpu, n))))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    match most {
        Some((name, most)) if statement.value.value > BEYOND * most => impossible(statement, gpu, name),
        None if gpu.unsupported.iter().any(|n| is_of(n, data_type)) => (
            Class::Impossible,
            Message::new("claim.unsupported").with("model", gpu.name.as_str()).with("what", data_type.to_uppercase()),
        ),
        _ => (Class::Unknown, Message::new("claim.unmatched").with("value", shown(statement.value))),
    }
}

/// The figures that a statement about this type is usually about: tensor units with a 32-bit accumulator, but the
/// ordinary units for FP64 and FP32; what the statement names instead where it does.
fn usual<'g>(statement: &Statement, data_type: &str, gpu: &'g GpuSpec) -> Vec<&'g String> {
    let wide = matches!(data_type, "fp64" | "fp32");
    let vector = || rates(gpu).filter(|n| is_of(n, data_type) && n.ends_with("_vector")).collect::<Vec<_>>();
    let matrix = || {
        let all = rates(gpu).filter(|n| is_of(n, data_type) && !n.ends_with("_vector"));
        let wanted = |n: &&String| (statement.accumulate == Some(16)) == n.ends_with("_fp16acc");
        let exact: Vec<&String> = all.clone().filter(wanted).collect();
        if exact.is_empty() { all.collect() } else { exact }
    };
    match statement.engine {
        Some(Engine::Vector) => vector(),
        Some(Engine::Matrix) => matrix(),
        None if wide => {
            if vector().is_empty() {
                matrix()
            } else {
                vector()
            }
        }
        None => {
            if matrix().is_empty() {
                vector()
            } else {
                matrix()
            }
        }
    }
}

/// Figures of arithmetic, the likeliest to be quoted first.
fn rates(gpu: &GpuSpec) -> impl Iterator<Item = &String> + Clone {
    const ORDER: [&str; 10] = ["fp16", "bf16", "tf32", "fp32", "fp8", "int8", "fp64", "fp4", "fp6", "int4"];
    let of_arithmetic = |u: Unit| matches!(u, Unit::FlopPerSecond | Unit::OpPerSecond);
    ORDER.into_iter().flat_map(move |data_type| {
        let own = move |n: &&String| is_of(n, data_type);
        let all = gpu.figures.iter().filter(move |(_, f)| of_arithmetic(f.value.unit)).map(|(n, _)| n).filter(own);
        let is_narrow = |n: &&String| n.ends_with("_fp16acc");
        all.clone().filter(move |n| !is_narrow(n)).chain(all.filter(is_narrow))
    })
}

fn is_of(figure: &str, data_type: &str) -> bool {
    figure.strip_prefix(data_type).is_some_and(|rest| rest.starts_with('_'))
}

fn matches_figure(statement: &Statement, gpu: &GpuSpec, name: &str, factor: f64) -> bool {
    gpu.figure(name).is_some_and(|f| near(statement.value.value, factor * f.value.value, statement.tolerance))
}

fn sparsity(gpu: &GpuSpec, name: &str) -> f64 {
    gpu.sparsity(name).unwrap_or(1.0)
}

fn is_sparse(statement: &Statement, gpu: &GpuSpec, name: &str) -> bool {
    // Makers print sparse and dense figures rounded apart (L40S: 733 and 362).
    let tolerance = statement.tolerance.max(0.015);
    let figure = gpu.figure(name).map(|f| f.value.value);
    gpu.sparsity(name).zip(figure).is_some_and(|(factor, dense)| near(statement.value.value, factor * dense, tolerance))
}

fn near(value: f64, figure: f64, tolerance: f64) -> bool {
    (value / figure - 1.0).abs() <= tolerance
}

// ---- memory and links --------------------------------------------------------------------------

fn bandwidth(statement: &Statement, against: &Against<'_>) -> Judged {
    let judged = plain(statement, against, "memory_bandwidth", 0.01);
    // "900 GB/s" alone may be a link.
    let is_link = matches!(judged.0, Class::Impossible | Class::Unknown);
    match peer_link(statement, against) {
        (Class::True, message) if is_link => (Class::True, message),
        _ => judged,
    }
}

fn memory(statement: &Statement, against: &Against<'_>) -> Judged {
    let gpu = against.gpu;
    let value = statement.value.value;
    if statement.exact_size
        && let Some(reported) = gpu.figure("memory_reported").map(|f| f.value)
    {
        let others = gpu.memory_reported_other.iter().map(|q| q.value);
        if others.chain([reported.value]).any(|r| near(value, r, 0.005)) {
            return (Class::True, explained("claim.true", statement, gpu, "memory_reported"));
        }
        let nominal = gpu.figure("memory_size").map_or(0.0, |f| f.value.value) / 1e9 * 1_073_741_824.0;
        if near(value, nominal, 0.005) && value > reported.value {
            return (
                Class::TrueOfOtherVariant,
                other("claim.other_memory", statement, gpu, "memory_size", Some(&"memory_reported".to_owned())),
            );
        }
    }
    // A size in GiB and the same number of GB are one size in a name.
    let sizes = [1.0, 1_073_741_824.0 / 1e9];
    let fits = |g: &GpuSpec, factor: f64| {
        let figures = ["memory_size", "memory_reported"].into_iter().filter_map(|n| g.figure(n));
        figures.into_iter().any(|f| sizes.iter().any(|s| near(value, factor * s * f.value.value, 0.005)))
    };
    if statement.per == Some(Per::Device) && gpu.devices_per_package > 1 && fits(gpu, 1.0) {
        return (Class::TrueOfPackage, package(statement, gpu, "memory_size", gpu.devices_per_package));
    }
    if fits(gpu, 1.0) {
        return (Class::True, explained("claim.true", statement, gpu, "memory_size"));
    }
    if gpu.devices_per_package > 1 && fits(gpu, 1.0 / f64::from(gpu.devices_per_package)) {
        let class = if statement.per == Some(Per::Device) { Class::True } else { Class::TrueOfPackage };
        return (class, explained("claim.true_device", statement, gpu, "memory_size"));
    }
    if let Some(s) = siblings(against, true).find(|s| fits(s, 1.0)) {
        return (Class::TrueOfSibling, sibling(statement, gpu, s, "memory_size"));
    }
    if let Some(together) = groups(against).into_iter().find(|n| fits(gpu, f64::from(*n))) {
        let is_all = statement.per == Some(Per::Total) && against.count == Some(together);
        let class = if is_all { Class::True } else { Class::TrueOfPackage };
        return (class, package(statement, gpu, "memory_size", together));
    }
    beyond(statement, gpu, &["memory_size", "memory_reported"], 1.08)
}

/// A figure that has one value: of the model, a sibling, or several together.
fn plain(statement: &Statement, against: &Against<'_>, name: &str, least: f64) -> Judged {
    let gpu = against.gpu;
    let tolerance = statement.tolerance.max(least);
    let fits = |g: &GpuSpec, factor: f64| {
        g.figure(name).is_some_and(|f| near(statement.value.value, factor * f.value.value, tolerance))
    };
    let packages = gpu.devices_per_package;
    if statement.per == Some(Per::Device) && packages > 1 && fits(gpu, 1.0) {
        return (Class::TrueOfPackage, package(statement, gpu, name, packages));
    }
    if fits(gpu, 1.0) {
        return (Class::True, explained("claim.true", statement, gpu, name));
    }
    if packages > 1 && fits(gpu, 1.0 / f64::from(packages)) {
        let class = if statement.per == Some(Per::Device) { Class::True } else { Class::TrueOfPackage };
        return (class, explained("claim.true_device", statement, gpu, name));
    }
    if let Some(s) = [true, false].into_iter().find_map(|near| siblings(against, near).find(|s| fits(s, 1.0))) {
        return (Class::TrueOfSibling, sibling(statement, gpu, s, name));
    }
    if let Some(together) = groups(against).into_iter().find(|n| fits(gpu, f64::from(*n))) {
        let is_all = statement.per == Some(Per::Total) && against.count == Some(together);
        let class = if is_all { Class::True } else { Class::TrueOfPackage };
        return (class, package(statement, gpu, name, together));
    }
    beyond(statement, gpu, &[name], BEYOND)
}

/// One of several figures, none of which adds up.
fn figure(statement: &Statement, against: &Against<'_>, names: &[&str], least: f64) -> Judged {
    let tolerance = statement.tolerance.max(least);
    let fits = |g: &GpuSpec| {
        names
            .iter()
            .copied()
            .find(|n| g.figure(n).is_some_and(|f| near(statement.value.value, f.value.value, tolerance)))
    };
    if let Some(name) = fits(against.gpu) {
        return (Class::True, explained("claim.true", statement, against.gpu, name));
    }
    let found = siblings(against, true).find_map(|s| Some((s, fits(s)?)));
    match found {
        Some((s, name)) => (Class::TrueOfSibling, sibling(statement, against.gpu, s, name)),
        None => beyond(statement, against.gpu, names, BEYOND),
    }
}

/// The link to other GPUs: makers quote both directions added up, the figure is one way.
fn peer_link(statement: &Statement, against: &Against<'_>) -> Judged {
    let gpu = against.gpu;
    let value = statement.value.value;
    let tolerance = statement.tolerance.max(0.01);
    let one_way = |g: &GpuSpec| g.figure("peer_bandwidth").map(|f| f.value.value);
    let Some(one) = one_way(gpu) else {
        return match gpu.peer_link.is_none() && statement.about == About::PeerLink {
            true => (Class::Impossible, Message::new("claim.no_link").with("model", gpu.name.as_str())),
            false => (Class::Unknown, Message::new("claim.unmatched").with("value", shown(statement.value))),
        };
    };
    let (is_one, is_both) = (near(value, one, tolerance), near(value, 2.0 * one, tolerance));
    let said = |id: &str| {
        let of = |v: f64| Quantity { value: v, unit: Unit::BytePerSecond };
        Message::new(id).with("value", statement.value).with("one", of(one)).with("both", of(2.0 * one))
    };
    let bridged = statement.all_pairs && gpu.form_factor.to_lowercase().contains("pcie");
    match statement.direction {
        _ if (is_one || is_both) && bridged => (Class::TrueOfOtherVariant, said("claim.bridge")),
        Some(Direction::One) if is_both => (Class::TrueOfOtherDirection, said("claim.direction")),
        Some(Direction::Both) if is_one => (Class::TrueOfOtherDirection, said("claim.direction")),
        _ if is_one || is_both => (Class::True, said("claim.direction")),
        _ => {
            let fits =
                |s: &&GpuSpec| one_way(s).is_some_and(|o| near(value, o, tolerance) || near(value, 2.0 * o, tolerance));
            match [true, false].into_iter().find_map(|near| siblings(against, near).find(fits)) {
                Some(s) => (Class::TrueOfSibling, sibling(statement, gpu, s, "peer_bandwidth")),
                None if value > BEYOND * 2.0 * one => impossible(statement, gpu, "peer_bandwidth"),
                None => (Class::Unknown, said("claim.link_unmatched")),
            }
        }
    }
}

/// Transfers per second and lane that carry data, GB/s one way, by PCIe generation; makers round to powers of two.
const LANE: [f64; 6] = [0.25, 0.5, 0.985, 1.969, 3.938, 7.563];

fn host_link(statement: &Statement, against: &Against<'_>) -> Judged {
    let gpu = against.gpu;
    let of = |name: &str| gpu.figure(name).map(|f| f.value.value);
    let Some((lane, lanes)) =
        of("pcie_generation").and_then(|g| LANE.get((g as usize).checked_sub(1)?)).zip(of("pcie_lanes"))
    else {
        return (Class::Unknown, Message::new("claim.unmatched").with("value", shown(statement.value)));
    };
    let one = 1e9 * lane * lanes;
    let (is_one, is_both) = (near(statement.value.value, one, 0.03), near(statement.value.value, 2.0 * one, 0.03));
    let said = |id: &str| {
        let of = |v: f64| Quantity { value: v, unit: Unit::BytePerSecond };
        Message::new(id).with("value", statement.value).with("one", of(one)).with("both", of(2.0 * one))
    };
    match statement.direction {
        Some(Direction::One) if is_both => (Class::TrueOfOtherDirection, said("claim.direction")),
        Some(Direction::Both) if is_one => (Class::TrueOfOtherDirection, said("claim.direction")),
        _ if is_one || is_both => (Class::True, said("claim.direction")),
        _ if statement.value.value > 1.03 * 2.0 * one => (Class::Impossible, said("claim.link_unmatched")),
        _ => (Class::Unknown, said("claim.link_unmatched")),
    }
}

fn units(statement: &Statement, against: &Against<'_>) -> Judged {
    let gpu = against.gpu;
    let Some(own) = gpu.unit_count else {
        return (Class::Unknown, Message::new("claim.unmatched").with("value", shown(statement.value)));
    };
    let said = |id: &str| {
        let message = Message::new(id).with("model", gpu.name.as_str());
        message.with("value", statement.value).with("figure", u64::from(own))
    };
    let wanted = statement.value.value;
    let is = |n: Option<u32>| n.is_some_and(|n| f64::from(n) == wanted);
    if is(Some(own)) {
        return (Class::True, said("claim.units"));
    }
    if is(gpu.device_units()) {
        let class = if statement.per == Some(Per::Device) { Class::True } else { Class::TrueOfPackage };
        return (class, said("claim.units"));
    }
    match siblings(against, true).find(|s| is(s.unit_count)) {
        Some(s) => (Class::TrueOfSibling, said("claim.units_sibling").with("other", s.name.as_str())),
        None if wanted > f64::from(own) => (Class::Impossible, said("claim.units")),
        None => (Class::Unknown, said("claim.units")),
    }
}

// ---- who else ----------------------------------------------------------------------------------

/// Models that are confused with this one: `near`, those of the same name but for form factor, memory or a letter
/// (A100 PCIe and SXM, L40 and L40S); else those of the same maker and architecture line.
fn siblings<'t>(against: &Against<'t>, near: bool) -> impl Iterator<Item = &'t GpuSpec> + use<'t> {
    let gpu = against.gpu;
    let own = stem(&gpu.id);
    let line = |g: &GpuSpec| g.architecture.split_whitespace().next().unwrap_or_default().to_owned();
    let own_line = line(gpu);
    against.table.all().iter().filter(move |s| {
        let is_near = stem(&s.id) == own;
        s.id != gpu.id && if near { is_near } else { !is_near && s.vendor == gpu.vendor && line(s) == own_line }
    })
}

/// Family and number of an id: "l40s" → "l40", "rtx-4060-ti-16gb" → "rtx-4060".
fn stem(id: &str) -> String {
    let parts: Vec<&str> = id.split('-').collect();
    let end = parts.iter().position(|p| p.contains(|c: char| c.is_ascii_digit())).map_or(parts.len(), |i| i + 1);
    let joined = parts[..end].join("-");
    joined.trim_end_matches(|c: char| c.is_ascii_alphabetic()).to_owned()
}

/// How many of the thing may have been counted together.
fn groups(against: &Against<'_>) -> Vec<u32> {
    let own = [against.gpu.devices_per_package, against.gpu.gpus_per_board];
    let all = own.into_iter().chain(against.count).chain(TOGETHER);
    let mut groups: Vec<u32> = Vec::new();
    for n in all.filter(|n| *n > 1) {
        if !groups.contains(&n) {
            groups.push(n);
        }
    }
    groups
}

// ---- words -------------------------------------------------------------------------------------

/// A figure's name in the words of the field, the same in every language.
pub fn words(name: &str) -> String {
    let (head, tail) = name.split_once('_').unwrap_or((name, ""));
    match (head, tail) {
        ("memory", "size") => "memory".to_owned(),
        ("memory", "reported") => "memory, as drivers show it".to_owned(),
        ("memory", _) | ("clock", _) | ("peer", _) | ("tdp", _) | ("l2" | "llc", _) => name.replace('_', " "),
        (t, "tensor_fp16acc") => format!("{} tensor, FP16 accumulate", t.to_uppercase()),
        (t, "tensor_fp32acc") => format!("{} tensor, FP32 accumulate", t.to_uppercase()),
        (t, kind) => format!("{} {kind}", t.to_uppercase()),
    }
}

/// Sizes in decimal units, as they are sold.
fn shown(value: Quantity) -> Argument {
    match value.unit {
        Unit::Byte if value.value >= 1e9 => format!("{} GB", (value.value / 1e7).round() / 100.0).into(),
        _ => value.into(),
    }
}

fn explained(id: &str, statement: &Statement, gpu: &GpuSpec, name: &str) -> Message {
    let message = Message::new(id).with("value", shown(statement.value)).with("what", words(name));
    match gpu.figure(name) {
        Some(figure) => message.with("figure", shown(figure.value)),
        None => message.with("figure", "–"),
    }
}

fn other(id: &str, statement: &Statement, gpu: &GpuSpec, found: &str, usual: Option<&String>) -> Message {
    let message = explained(id, statement, gpu, found);
    match (id, usual.and_then(|n| Some((n, gpu.figure(n)?)))) {
        ("claim.true", _) => message,
        (_, Some((name, figure))) => message.with("asked", words(name)).with("right", shown(figure.value)),
        (_, None) => message.with("asked", "–").with("right", "–"),
    }
}

fn sibling(statement: &Statement, gpu: &GpuSpec, s: &GpuSpec, name: &str) -> Message {
    let own = gpu.figure(name).map_or_else(|| Argument::from("–"), |f| shown(f.value));
    let message = Message::new("claim.sibling").with("value", shown(statement.value)).with("what", words(name));
    message.with("other", s.name.as_str()).with("model", gpu.name.as_str()).with("figure", own)
}

fn package(statement: &Statement, gpu: &GpuSpec, name: &str, count: u32) -> Message {
    explained("claim.package", statement, gpu, name).with("count", u64::from(count))
}

fn impossible(statement: &Statement, gpu: &GpuSpec, name: &str) -> Judged {
    (Class::Impossible, explained("claim.impossible", statement, gpu, name).with("model", gpu.name.as_str()))
}

fn beyond(statement: &Statement, gpu: &GpuSpec, names: &[&str], limit: f64) -> Judged {
    let all = names.iter().filter_map(|n| Some((*n, gpu.figure(n)?.value.value)));
    match all.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((name, most)) if statement.value.value > limit * most => impossible(statement, gpu, name),
        Some((name, _)) => (Class::Unknown, explained("claim.lower", statement, gpu, name)),
        None => (Class::Unknown, Message::new("claim.unmatched").with("value", shown(statement.value))),
    }
}
