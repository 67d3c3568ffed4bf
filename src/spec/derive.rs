//! The derivation check: does each stored figure follow from the others? A rate is units × operations per
//! clock × clock, bandwidth is bus width × data rate. What does not follow within 2 % is an error unless the
//! figure states by how much it deviates, and why.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::{GpuSpec, SpecTable, figure_unit};
use crate::unit::Unit;

/// Largest relative difference between a stored and a derived figure that needs no explanation.
pub const TOLERANCE: f64 = 0.02;

/// How exactly a stated deviation must be met.
const DEVIATION_TOLERANCE: f64 = 0.005;

/// Operations per compute unit and clock, dense, by class and figure: `specs/operations-per-clock.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct OpsTable(BTreeMap<String, BTreeMap<String, f64>>);

impl OpsTable {
    /// The table embedded in the binary.
    pub fn embedded() -> &'static OpsTable {
        static TABLE: OnceLock<OpsTable> = OnceLock::new();
        TABLE.get_or_init(|| {
            let text = include_str!("../../specs/operations-per-clock.toml");
            OpsTable(toml::from_str(text).expect("the embedded operations-per-clock table parses (tested)"))
        })
    }
    /// Operations of `figure` per unit and clock in `class`.
    pub fn get(&self, class: &str, figure: &str) -> Option<f64> {
        self.0.get(class)?.get(figure).copied()
    }
    /// Is there such a class?
    pub fn has(&self, class: &str) -> bool {
        self.0.contains_key(class)
    }
    /// All classes.
    pub fn classes(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}

/// Operations of `figure` per unit and clock on this model.
pub fn operations_per_clock(gpu: &GpuSpec, figure: &str) -> Option<f64> {
    OpsTable::embedded().get(gpu.ops_class.as_deref()?, figure)
}

/// Operations of `figure` in one clock of one device as the driver shows it: the physical ceiling of a rate is
/// this × the highest clock. `None` where the rate does not follow from the units.
pub fn ceiling_operations(gpu: &GpuSpec, figure: &str) -> Option<f64> {
    Some(f64::from(gpu.device_units()?) * operations_per_clock(gpu, figure)?)
}

/// Something that does not fit together in a spec table.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Model.
    pub gpu: String,
    /// Figure or field.
    pub field: String,
    /// What is wrong, with the numbers.
    pub message: String,
}

/// Checks every model; an empty list is a clean table.
pub fn check(table: &SpecTable) -> Vec<Problem> {
    let mut problems = Vec::new();
    for gpu in table.all() {
        let mut add = |field: &str, message: String| {
            problems.push(Problem { gpu: gpu.id.clone(), field: field.to_owned(), message });
        };
        for (name, figure) in &gpu.figures {
            match nearest_deviation(gpu, name) {
                Some(found) => check_deviation(name, found, figure.deviation, &mut add),
                None if figure.deviation.is_some() => {
                    add(name, "has an exception, but nothing to derive it from".to_owned());
                }
                None => {}
            }
        }
        check_structure(gpu, &mut add);
    }
    check_identities(table, &mut problems);
    super::sibling::check(table, &mut problems);
    problems
}

/// Number of figures whose value the check could derive, in all and apart from figures that were derived in the
/// first place.
pub fn coverage(table: &SpecTable) -> (usize, usize) {
    let derivable = |g: &&GpuSpec, name: &&String| nearest_deviation(g, name).is_some();
    let all = table.all().iter().flat_map(|g| g.figures.keys().filter(move |n| derivable(&g, n)).map(move |n| (g, n)));
    let independent =
        all.clone().filter(|(g, n)| g.figure(n).is_some_and(|f| f.provenance != super::Provenance::Derived));
    (all.count(), independent.count())
}

/// stored / derived − 1 for a figure that can be derived; matrix rates at the tensor clock or at boost, whichever
/// is nearer.
fn nearest_deviation(gpu: &GpuSpec, name: &str) -> Option<f64> {
    let value = |n: &str| gpu.figure(n).map(|f| f.value.value);
    let stored = value(name)?;
    if name == "memory_bandwidth" {
        return Some(stored / (value("memory_bus_bits")? * value("memory_data_rate")?) - 1.0);
    }
    let per_clock = f64::from(gpu.unit_count?) * operations_per_clock(gpu, name)?;
    let is_matrix = name.contains("_tensor") || name == "fp32_matrix";
    let clocks = [value("clock_boost"), value("clock_tensor").filter(|_| is_matrix)];
    let deviations = clocks.into_iter().flatten().map(|clock| stored / (per_clock * clock) - 1.0);
    deviations.min_by(|a, b| a.abs().total_cmp(&b.abs()))
}

fn check_deviation(name: &str, found: f64, stated: Option<f64>, add: &mut impl FnMut(&str, String)) {
    let percent = |x: f64| format!("{:+.1} %", 100.0 * x);
    match stated {
        None if found.abs() > TOLERANCE => {
            add(name, format!("differs by {} from what units and clocks give, without an exception", percent(found)));
        }
        Some(stated) if found.abs() <= TOLERANCE => {
            add(name, format!("states an exception of {} but fits ({})", percent(stated), percent(found)));
        }
        Some(stated) if (found - stated).abs() > DEVIATION_TOLERANCE => {
            add(name, format!("states a deviation of {} but has {}", percent(stated), percent(found)));
        }
        _ => {}
    }
}

fn check_structure(gpu: &GpuSpec, add: &mut impl FnMut(&str, String)) {
    let value = |n: &str| gpu.figure(n).map(|f| f.value.value);
    if let (Some(reported), Some(size)) = (value("memory_reported"), value("memory_size")) {
        let ratio = reported / size;
        if !(0.93..1.09).contains(&ratio) {
            add("memory_reported", format!("is {ratio:.3} × the size in the name"));
        }
    }
    if let (Some(tdp), Some(max)) = (value("tdp"), value("tdp_max"))
        && max < tdp
    {
        add("tdp_max", format!("{max} W is below the default of {tdp} W"));
    }
    if value("tdp").is_none() {
        add("tdp", "is missing".to_owned());
    }
    for name in &gpu.unsupported {
        if gpu.figure(name).is_some() {
            add(name, "is listed as unsupported and has a value".to_owned());
        }
    }
    for (name, factor) in &gpu.sparsity_factors {
        let is_twice = gpu.sparsity_doubles.contains(name);
        if !(*factor > 1.0 && *factor < 2.0) || is_twice || gpu.figure(name).is_none() {
            add(name, format!("a sparsity factor of {factor} needs a figure and lies between 1 and 2"));
        }
    }
    for name in &gpu.sparsity_doubles {
        let is_rate = matches!(figure_unit(name), Some(Unit::FlopPerSecond | Unit::OpPerSecond));
        if !is_rate || gpu.unsupported.contains(name) {
            add(name, "cannot be doubled by sparsity: not a rate of this model".to_owned());
        }
    }
    if gpu.unit_count.is_some_and(|n| n % gpu.devices_per_package != 0) {
        add("unit_count", "is not a multiple of devices_per_package".to_owned());
    }
    if gpu.pci.is_empty() && gpu.device_names.is_empty() {
        add("pci", "neither a PCI id nor a driver name: it can never be recognised".to_owned());
    }
}

/// Two models that nothing a driver reports can tell apart.
fn check_identities(table: &SpecTable, problems: &mut Vec<Problem>) {
    for (i, a) in table.all().iter().enumerate() {
        for b in &table.all()[i + 1..] {
            let shared = a.pci.iter().any(|p| b.pci.iter().any(|q| (p.vendor, p.device) == (q.vendor, q.device)));
            if shared && !tells_apart(a, b) {
                let message = format!("shares a PCI id with {} and neither subsystem, memory nor name differ", b.id);
                problems.push(Problem { gpu: a.id.clone(), field: "pci".to_owned(), message });
            }
        }
    }
}

fn tells_apart(a: &GpuSpec, b: &GpuSpec) -> bool {
    let subsystems = |g: &GpuSpec| g.pci.iter().flat_map(|p| p.subsystems.clone()).collect::<Vec<_>>();
    let (sa, sb) = (subsystems(a), subsystems(b));
    let by_subsystem = !sa.is_empty() && !sb.is_empty() && !sa.iter().any(|s| sb.contains(s));
    let size = |g: &GpuSpec| g.device_value("memory_size").unwrap_or(0.0);
    let by_memory = (size(a) / size(b) - 1.0).abs() > 0.2;
    let by_name = !a.device_names.iter().any(|n| b.device_names.contains(n));
    by_subsystem || by_memory || by_name
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    /// The table with one model changed.
    fn mutated(id: &str, change: impl Fn(&mut GpuSpec)) -> SpecTable {
        let mut copy = table().clone();
        change(copy.gpus.iter_mut().find(|g| g.id == id).unwrap());
        copy
    }

    fn set(gpu: &mut GpuSpec, name: &str, value: f64) {
        gpu.figures.get_mut(name).unwrap().value.value = value;
    }

    #[test]
    fn the_embedded_table_is_clean() {
        let problems = check(table());
        assert!(problems.is_empty(), "{problems:#?}");
    }

    #[test]
    fn most_figures_are_checked_independently() {
        let (all, independent) = coverage(table());
        // 859 rate rows + 88 bandwidths, 275 of them derived in the first place.
        assert_eq!((all, independent), (947, 672));
    }

    #[test]
    fn wrong_values_are_caught() {
        type Change = fn(&mut GpuSpec);
        let cases: [(&str, &str, Change); 12] = [
            ("a100-sxm4-80gb", "fp16_tensor_fp32acc", |g| set(g, "fp16_tensor_fp32acc", 624e12)),
            ("rtx-a6000", "bf16_tensor", |g| set(g, "bf16_tensor", 38.7e12)),
            ("a10g", "fp32_vector", |g| g.unit_count = Some(72)),
            ("mi300x", "memory_bandwidth", |g| set(g, "memory_bandwidth", 10.3e12)),
            ("h100-sxm5-80gb", "bf16_tensor", |g| set(g, "bf16_tensor", 1979e12)),
            // An excepted figure has no free pass.
            ("b200-sxm", "memory_bandwidth", |g| set(g, "memory_bandwidth", 16e12)),
            ("h200-sxm-141gb", "memory_bandwidth", |g| set(g, "memory_bandwidth", 4917e9)),
            ("l4", "memory_reported", |g| set(g, "memory_reported", 12e9)),
            ("l20", "tdp_max", |g| set(g, "tdp_max", 200.0)),
            ("l4", "tdp", |g| drop(g.figures.remove("tdp"))),
            ("t4", "fp16_vector", |g| g.unsupported.push("fp16_vector".to_owned())),
            ("b100", "memory_bandwidth", |g| {
                g.figures.get_mut("memory_bandwidth").unwrap().deviation = Some(0.1);
            }),
        ];
        for (id, field, change) in cases {
            let problems = check(&mutated(id, change));
            assert!(problems.iter().any(|p| p.gpu == id && p.field == field), "{id} {field}: {problems:?}");
        }
    }

    #[test]
    fn models_that_nothing_tells_apart_are_caught() {
        let twins = mutated("mi60", |g| {
            g.device_names = table().get("mi50").unwrap().device_names.clone();
            set(g, "memory_size", 16e9);
        });
        assert!(check(&twins).iter().any(|p| p.field == "pci"), "{:?}", check(&twins));
    }
}
