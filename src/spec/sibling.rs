//! Siblings: a figure far from what the same kind of chip has elsewhere is a slip of the pen, whatever its source says.

use super::derive::Problem;
use super::{GpuSpec, SpecTable};

/// Largest believable ratio between a figure and the nearest of its siblings. Products of one chip are cut down by up to
/// four times (tensor rates of the H20), several alike by more (fp64 for export), a slip of a decimal or of a binary
/// unit moves one value by ten or sixteen.
const FACTOR: f64 = 8.0;

/// Figures compared as they are, among models of one architecture and memory type.
const PLAIN: [&str; 8] =
    ["memory_data_rate", "clock_base", "clock_boost", "clock_tensor", "clock_memory", "tdp", "tdp_max", "pcie_lanes"];

/// Adds every outlier. A figure with a stated exception was looked at and is left out.
pub fn check(table: &SpecTable, problems: &mut Vec<Problem>) {
    for gpu in table.all() {
        for (name, figure) in gpu.figures.iter().filter(|(_, f)| f.deviation.is_none()) {
            let Some(own) = comparable(gpu, name) else { continue };
            let is_sibling = |other: &&GpuSpec| other.id != gpu.id && is_alike(gpu, other, name);
            let ratios = table.all().iter().filter(is_sibling).filter_map(|other| Some(own / comparable(other, name)?));
            let nearest = ratios.min_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()));
            if let Some(ratio) = nearest.filter(|r| !(1.0 / FACTOR..=FACTOR).contains(r)) {
                problems.push(Problem {
                    gpu: gpu.id.clone(),
                    field: name.clone(),
                    message: format!(
                        "{} is {ratio:.2} × what the nearest of its siblings has, for its units and clock",
                        figure.value
                    ),
                });
            }
        }
    }
}

/// Rates are those of one unit and clock; bandwidth that of one bit of the bus.
fn comparable(gpu: &GpuSpec, name: &str) -> Option<f64> {
    let value = |n: &str| gpu.figure(n).map(|f| f.value.value);
    if name == "memory_bandwidth" {
        return Some(value(name)? / value("memory_bus_bits")?);
    }
    if PLAIN.contains(&name) {
        return value(name);
    }
    let is_rate = name.contains("_vector") || name.contains("_tensor") || name.contains("_matrix");
    is_rate.then(|| Some(value(name)? / (f64::from(gpu.unit_count?) * value("clock_boost")?)))?
}

fn is_alike(a: &GpuSpec, b: &GpuSpec, name: &str) -> bool {
    let is_plain = PLAIN.contains(&name) || name == "memory_bandwidth";
    match is_plain {
        true => a.architecture == b.architecture && a.memory_type == b.memory_type,
        false => a.architecture == b.architecture && a.die == b.die,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::table;

    fn outliers(id: &str, name: &str, factor: f64) -> Vec<String> {
        let mut table = table().clone();
        let gpu = table.gpus.iter_mut().find(|g| g.id == id).unwrap();
        gpu.figures.get_mut(name).unwrap().value.value *= factor;
        let mut problems = Vec::new();
        check(&table, &mut problems);
        problems.into_iter().map(|p| format!("{} {}", p.gpu, p.field)).collect()
    }

    #[test]
    fn a_slip_of_sixteen_or_ten_is_caught_and_the_table_is_clean() {
        assert_eq!(outliers("a100-sxm4-80gb", "clock_boost", 1.0), [""; 0]);
        for (id, name) in
            [("b200-sxm", "fp16_tensor_fp32acc"), ("rtx-4090", "fp32_vector"), ("a100-pcie-40gb", "memory_bandwidth")]
        {
            for factor in [16.0, 1.0 / 16.0, 10.0, 0.1] {
                let found = outliers(id, name, factor);
                assert!(found.contains(&format!("{id} {name}")), "{id} {name} × {factor}: {found:?}");
            }
        }
        assert_eq!(outliers("a100-sxm4-80gb", "tdp", 16.0), ["a100-sxm4-80gb tdp"]);
    }
}
