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

/// Bits of the sensor `throttle`, as NVML's clocks event reasons: software power cap.
const POWER_BITS: u64 = 0x04;

/// As [`POWER_BITS`]: software and hardware thermal slowdown.
const THERMAL_BITS: u64 = 0x20 | 0x40;

/// As [`POWER_BITS`]: hardware slowdown (halves the clock or worse) and its external power brake. A sound machine shows
/// neither under load.
const BRAKE_BITS: u64 = 0x08 | 0x80;

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

/// What sensor and state say about the reason of a low clock.
struct Reasons {
    power: bool,
    heat: bool,
    /// Share of the readings with a hardware slowdown; single readings are transitions.
    brake: f64,
}

/// Bits the sensor showed at any time, and what the state says in words.
fn reasons(facts: &Facts<'_>, source: &str) -> Reasons {
    let readings = facts.values(source, "throttle");
    let shows = |bits: u64| readings.iter().filter(|v| **v as u64 & bits != 0).count();
    let words = facts.state(source, "throttle").unwrap_or_default();
    let braked = Some(shows(BRAKE_BITS)).filter(|n| *n > 1).unwrap_or(0);
    Reasons {
        power: shows(POWER_BITS) > 0 || words.contains("power"),
        heat: shows(THERMAL_BITS) > 0 || words.contains("therm"),
        brake: braked as f64 / readings.len().max(1) as f64,
    }
}

/// Share of its highest clock that a device held, where a finding says that it is not the clock that was sold; 1 where
/// it held what its own power limit allows; `None` where the clock is not observable.
pub fn share(facts: &Facts<'_>, device: &DeviceId) -> Option<f64> {
    let clocks = clocks(facts, device)?;
    Some(cause(facts, device).map_or(1.0, |_| clocks.held / clocks.highest))
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    facts.gpus().filter_map(|gpu| of_device(facts, requirements, &gpu.id)).collect()
}

/// Code and topic of what holds the clock down, if something does.
fn cause(facts: &Facts<'_>, device: &DeviceId) -> Option<(&'static str, &'static str)> {
    let clocks = clocks(facts, device)?;
    let source = device.to_string();
    let reasons = reasons(facts, &source);
    let is_held = clocks.held >= HELD * clocks.highest;
    if is_held && !(reasons.heat && slows_down(facts, device)) && reasons.brake == 0.0 {
        return None;
    }
    let is_hot = hottest(facts, &source).is_some_and(|t| t >= HOT);
    let limit = default_limit(facts, device);
    let is_below_limit = limit.map(|tdp| reached(facts, &source) < BELOW_LIMIT * tdp);
    let is_at_limit = limit.is_some_and(|tdp| drawn(facts, &source) >= BELOW_LIMIT * tdp);
    match () {
        () if reasons.heat || (is_hot && !reasons.power && reasons.brake == 0.0) => Some(("GA-THERM-01", "thermal")),
        () if reasons.brake > 0.0 => Some(("GA-BRAKE-01", "hardware_slowdown")),
        // At its model's own limit a device is as fast as it was sold.
        () if is_below_limit == Some(false) && (reasons.power || is_at_limit) => None,
        () if is_below_limit == Some(true) || reasons.power => Some(("GA-POWER-01", "power_cap")),
        () => Some(("GA-CLOCK-01", "low_clock")),
    }
}

/// Highest temperature.
fn hottest(facts: &Facts<'_>, source: &str) -> Option<f64> {
    facts.values(source, "temperature").into_iter().reduce(f64::max)
}

/// Power under load.
fn drawn(facts: &Facts<'_>, source: &str) -> f64 {
    stats::quantile(&facts.values(source, "power"), 0.95)
}

/// The power limit that is set, where it can be read; else what was drawn shows it.
fn reached(facts: &Facts<'_>, source: &str) -> f64 {
    let set = stats::median(&facts.values(source, "power_limit"));
    if set.is_finite() { set } else { drawn(facts, source) }
}

/// The model's default power limit.
fn default_limit(facts: &Facts<'_>, device: &DeviceId) -> Option<f64> {
    facts.device(device).and_then(|d| facts.spec(d)).and_then(|s| s.device_value("tdp"))
}

fn of_device(facts: &Facts<'_>, requirements: &[Requirement], device: &DeviceId) -> Option<Finding> {
    let (code, topic) = cause(facts, device)?;
    let clocks = clocks(facts, device)?;
    let source = device.to_string();
    let number = |value: f64, unit| Quantity { value, unit };
    let mut f = finding(code, topic, std::slice::from_ref(device), FixBy::Provider)
        .arg("held", number(clocks.held, Unit::Hertz))
        .arg("highest", number(clocks.highest, Unit::Hertz))
        .arg("share", Argument::Ratio(clocks.held / clocks.highest));
    f = match topic {
        "power_cap" => f
            .arg("power", watts(reached(facts, &source)))
            .arg("limit", watts(default_limit(facts, device).unwrap_or(f64::NAN))),
        "thermal" => {
            let hottest = hottest(facts, &source);
            f.arg("temperature", hottest.map_or(Argument::Text("–".to_owned()), |t| number(t, Unit::Celsius).into()))
        }
        "hardware_slowdown" => f.arg("readings", Argument::Ratio(reasons(facts, &source).brake)),
        _ => f,
    };
    f = f.effect((1.0 - clocks.held / clocks.highest).max(0.0)).rule_out(facts, device);
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
