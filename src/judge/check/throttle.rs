//! Clock not held: power limit, heat, or no visible reason. A shortfall is units × clock × efficiency per clock;
//! this is the clock's part.

use super::{Check, finding, no_requirements};
use crate::judge::facts::Facts;
use crate::judge::{Argument, Finding, FixBy, Requirement};
use crate::record::DeviceId;
use crate::stats;
use crate::unit::{Quantity, Unit};

pub const CHECK: Check = Check {
    id: "throttle",
    summary: "clock held under load against the highest, with power, temperature and throttle reasons",
    requirements: no_requirements,
    findings,
};

/// From this share of the highest clock on the clock is held.
pub const HELD: f64 = 0.97;

/// Under load, power below this share of the model's default limit while the clock is not held points to a lower limit.
const BELOW_LIMIT: f64 = 0.95;

/// Die temperature from which data-centre and consumer GPUs slow down (83 to 90 °C by model), in °C.
const HOT: f64 = 83.0;

/// Bits of the sensor `throttle`, as NVML's clocks event reasons: software power cap and hardware power brake.
const POWER_BITS: u64 = 0x04 | 0x80;

/// As [`POWER_BITS`]: software and hardware thermal slowdown.
const THERMAL_BITS: u64 = 0x20 | 0x40;

/// Clocks of a device under compute load, in Hz.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// Median over blocks of matrix products.
    pub held: f64,
    /// Highest the device reports, or the one its matrix rates are quoted at where that is lower.
    pub highest: f64,
}

/// The clock a device held in matrix products, where both clocks are observable.
pub fn clocks(facts: &Facts<'_>, device: &DeviceId) -> Option<Clocks> {
    let of_device = facts.cases.iter().filter(|c| c.devices == std::slice::from_ref(device) && c.benchmark == "gemm");
    let series = of_device.filter_map(|c| c.primary());
    let mut held: Vec<f64> = series.flat_map(|s| s.blocks.iter().filter_map(|b| Some(b.clock?.0))).collect();
    if held.is_empty() {
        held = facts.values(&device.to_string(), "clock");
    }
    let info = facts.device(device)?;
    // Matrix units are quoted at a lower clock than the rest on some models.
    let quoted = facts.spec(info).and_then(|s| s.device_value("clock_tensor")).unwrap_or(f64::INFINITY);
    let clocks = Clocks { held: stats::median(&held), highest: info.clock_max?.0.min(quoted) };
    (clocks.held > 0.0 && clocks.highest.is_finite()).then_some(clocks)
}

/// Bits the sensor showed at any time, and what the state says in words.
fn reasons(facts: &Facts<'_>, source: &str) -> (bool, bool) {
    let bits = facts.values(source, "throttle").iter().fold(0u64, |all, v| all | *v as u64);
    let words = facts.state(source, "throttle").unwrap_or_default();
    (bits & POWER_BITS != 0 || words.contains("power"), bits & THERMAL_BITS != 0 || words.contains("therm"))
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    facts.gpus().filter_map(|gpu| of_device(facts, requirements, &gpu.id)).collect()
}

fn of_device(facts: &Facts<'_>, requirements: &[Requirement], device: &DeviceId) -> Option<Finding> {
    let clocks = clocks(facts, device)?;
    let source = device.to_string();
    let hottest = facts.values(&source, "temperature").into_iter().reduce(f64::max);
    let (by_power, by_heat) = reasons(facts, &source);
    let slowing = slows_down(facts, device);
    if clocks.held >= HELD * clocks.highest && !(by_heat && slowing) {
        return None;
    }
    let power = stats::quantile(&facts.values(&source, "power"), 0.95);
    let default_limit = facts.device(device).and_then(|d| facts.spec(d)).and_then(|s| s.device_value("tdp"));
    let set_limit = stats::median(&facts.values(&source, "power_limit"));
    // The limit that is set, where it can be read; else what was drawn shows it.
    let reached = if set_limit.is_finite() { set_limit } else { power };
    let is_below_limit = default_limit.map(|tdp| reached < BELOW_LIMIT * tdp);
    let is_at_limit = default_limit.is_some_and(|tdp| power >= BELOW_LIMIT * tdp);
    let is_hot = hottest.is_some_and(|t| t >= HOT);
    let topic = match () {
        () if by_heat || (is_hot && !by_power) => ("GA-THERM-01", "thermal"),
        // At its model's own limit a device is as fast as it was sold.
        () if is_below_limit == Some(false) && (by_power || is_at_limit) => return None,
        () if is_below_limit == Some(true) || by_power => ("GA-POWER-01", "power_cap"),
        () => ("GA-CLOCK-01", "low_clock"),
    };
    let number = |value: f64, unit| Quantity { value, unit };
    let mut f = finding(topic.0, topic.1, std::slice::from_ref(device), FixBy::Provider)
        .arg("held", number(clocks.held, Unit::Hertz))
        .arg("highest", number(clocks.highest, Unit::Hertz))
        .arg("share", Argument::Ratio(clocks.held / clocks.highest));
    if topic.1 == "power_cap" {
        f = f.arg("power", watts(reached)).arg("limit", watts(default_limit.unwrap_or(f64::NAN)));
    }
    if topic.1 == "thermal" {
        f = f.arg("temperature", hottest.map_or(Argument::Text("–".to_owned()), |t| number(t, Unit::Celsius).into()));
    }
    f = f.effect(1.0 - clocks.held / clocks.highest).rule_out(facts, device);
    for sensor in ["clock", "power", "power_limit", "temperature", "throttle"] {
        f = f.see_sensor(facts, &source, sensor);
    }
    Some(f.explains(requirements, |r| r.domain == "compute" && r.devices.contains(device)))
}

fn watts(value: f64) -> Argument {
    match value.is_finite() {
        true => Quantity { value, unit: Unit::Watt }.into(),
        false => "–".into(),
    }
}

/// True if the clock in matrix products fell by more than 3 % over the run.
fn slows_down(facts: &Facts<'_>, device: &DeviceId) -> bool {
    let of_device = facts.cases.iter().filter(|c| c.devices == std::slice::from_ref(device) && c.benchmark == "gemm");
    of_device.filter_map(|c| c.primary()).any(|s| {
        let clocks: Vec<f64> = s.blocks.iter().filter_map(|b| Some(b.clock?.0)).collect();
        stats::drift(&clocks).relative < HELD - 1.0
    })
}
