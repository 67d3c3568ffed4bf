//! The text that describes simulated devices (`--simulate`):
//!
//! ```text
//! machine = group { "+" group } [ "+host:" what "=" value { "," what "=" value } ]
//! group   = [ count "x" ] model [ ":" option { "," option } ]
//! option  = fault [ "@" device ] [ "=" value [ "=" value ] ]  |  "seed=" number
//! ```
//!
//! `model` is an id of the spec table, `device` a number as in `sim:3` (left out: every device of the group).
//! The faults and their values are in [`FAULTS`]. Shares are written 0.97 or 97%. `what` is `cpus`, `ram` or `nvme`: the
//! machine around the devices, e.g. `+host:cpus=192,ram=2TiB,nvme=30.72TB`; what is left out is not simulated.

use crate::record::DataType;
use crate::spec::{GpuSpec, SpecTable, nearest};
use crate::unit::Bytes;

/// Every fault: name, value, what it does.
pub const FAULTS: &[(&str, &str, &str)] = &[
    ("power-cap", "=share", "the power limit is this share of the default, 0.7"),
    ("thermal", "=share", "cooling carries away this share of the power, 0.7: throttles after minutes of load"),
    ("slow-memory", "=factor", "device memory at this factor of its rate, 0.7"),
    ("half-memory", "", "half the memory is there"),
    ("fewer-units", "=count", "so many compute units are missing, one in sixteen"),
    ("half-link", "", "half the PCIe lanes"),
    ("old-link", "", "the PCIe link trains one generation lower"),
    ("peer-links", "=count", "so many links to other GPUs are down, 1"),
    ("hw-slowdown", "=share", "a hardware brake holds the clock at this share, 0.5, from 10 s on"),
    ("ecc-off", "", "error correction of the memory is switched off"),
    ("ecc-errors", "=count", "so many uncorrected memory errors occur during the run, 1"),
    ("remap-pending", "", "rows of memory wait to be remapped"),
    ("slow-launch", "=microseconds", "each kernel costs so much more before it starts, 500"),
    ("wrong-gemm", "=type", "one element of each matrix product of this type is wrong"),
    ("nan", "=type", "one element of each floating-point matrix product (of this type) is NaN"),
    ("slow-gemm", "=type=factor", "matrix products of this type at this factor of their rate, 0.8"),
    ("hang", "=when", "work never completes, after 200 launches"),
    ("crash", "=when", "the process aborts, after 200 launches"),
    ("lost", "=when", "the device is lost, after 20s; at a launch, to that process only"),
    ("neighbour", "=share", "someone else works on the device this share of the time, 0.3, and holds 6 GiB"),
    ("unsteady", "=cv", "rates vary by this coefficient of variation, 0.05"),
    ("drift", "=percent", "everything slows by so many percent per minute, 2"),
    ("spoof", "=model", "the driver reports the name of another model"),
    ("no-telemetry", "", "no sensor can be read"),
    ("clock-skew", "=share", "the event timer counts this share too much, 0.01"),
    ("aggressor-idle", "", "the neighbour process of interference cases gets nothing done"),
];

/// When a fault strikes: `200` launches, `20s` of run time, or in a matrix product of a type (`fp16`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trigger {
    /// At this launch of the process, counted from 1.
    Launch(u64),
    /// From this time on, in seconds since the simulation's epoch.
    After(f64),
    /// In a matrix product of this type.
    Gemm(DataType),
}

/// What is wrong with one device; the default is a healthy one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults {
    /// Power limit as a share of the default.
    pub power_cap: Option<f64>,
    /// Share of the default power that cooling carries away.
    pub thermal: Option<f64>,
    /// Factor on the rate of device memory.
    pub slow_memory: Option<f64>,
    /// Half the memory.
    pub half_memory: bool,
    /// Units missing.
    pub fewer_units: Option<u32>,
    /// Half the lanes.
    pub half_link: bool,
    /// One PCIe generation lower.
    pub old_link: bool,
    /// Links to other GPUs that are down.
    pub peer_links: Option<u32>,
    /// Share of the clock that a hardware brake leaves.
    pub hw_slowdown: Option<f64>,
    /// Memory without error correction.
    pub ecc_off: bool,
    /// Uncorrected memory errors in the run.
    pub ecc_errors: Option<u32>,
    /// Rows of memory wait to be remapped.
    pub remap_pending: bool,
    /// Seconds each kernel costs more.
    pub slow_launch: Option<f64>,
    /// Types whose products are wrong.
    pub wrong_gemm: Vec<DataType>,
    /// Types whose products hold a NaN.
    pub nan: Vec<DataType>,
    /// Types whose products are slow, with the factor.
    pub slow_gemm: Vec<(DataType, f64)>,
    /// Work stops completing.
    pub hang: Option<Trigger>,
    /// The process dies.
    pub crash: Option<Trigger>,
    /// The device is gone.
    pub lost: Option<Trigger>,
    /// Share of the time someone else works on it.
    pub neighbour: Option<f64>,
    /// Coefficient of variation of rates.
    pub unsteady: Option<f64>,
    /// Relative slow-down per minute.
    pub drift: Option<f64>,
    /// Id of the model whose name is reported.
    pub spoof: Option<String>,
    /// No sensors.
    pub no_telemetry: bool,
    /// Relative error of the event timer.
    pub clock_skew: Option<f64>,
    /// The aggressor gets nothing done.
    pub aggressor_idle: bool,
}

/// One simulated device.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit<'t> {
    /// What the hardware is.
    pub spec: &'t GpuSpec,
    /// What is wrong with it.
    pub faults: Faults,
}

/// The machine around simulated devices, as far as it is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulatedHost {
    /// CPUs.
    pub cpus: Option<u32>,
    /// Main memory.
    pub ram: Option<Bytes>,
    /// Local NVMe disks together.
    pub nvme: Option<Bytes>,
}

/// A simulated machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine<'t> {
    /// Devices in order of their numbers.
    pub units: Vec<Unit<'t>>,
    /// The machine around them.
    pub host: SimulatedHost,
    /// Seed of the noise.
    pub seed: u64,
}

/// Most devices of one machine.
const MOST: usize = 64;

/// Reads a description; the error names the part that is wrong and what may have been meant.
pub fn parse<'t>(text: &str, table: &'t SpecTable) -> Result<Machine<'t>, String> {
    let mut machine = Machine { units: Vec::new(), host: SimulatedHost::default(), seed: 0 };
    for group in text.split('+') {
        let (head, options) = group.split_once(':').map_or((group, None), |(h, o)| (h, Some(o)));
        if head.trim() == "host" {
            for option in options.unwrap_or_default().split(',').map(str::trim) {
                describe_host(&mut machine.host, option)?;
            }
            continue;
        }
        let (count, id) = count_and_model(head.trim())?;
        let Some(spec) = table.get(id) else {
            let near = nearest(id, table.all().iter().map(|g| g.id.as_str()));
            return Err(unknown("GPU of the spec table", id, &near));
        };
        let first = machine.units.len();
        if first + count > MOST {
            return Err(format!("\"{text}\": more than {MOST} simulated devices"));
        }
        machine.units.extend(std::iter::repeat_n(Unit { spec, faults: Faults::default() }, count));
        for option in options.into_iter().flat_map(|o| o.split(',')).map(str::trim) {
            apply(&mut machine, first, option, table)?;
        }
    }
    match machine.units.is_empty() {
        true => Err(format!("\"{text}\": no simulated device")),
        false => Ok(machine),
    }
}

fn count_and_model(head: &str) -> Result<(usize, &str), String> {
    match head.split_once('x') {
        Some((count, id)) if !count.is_empty() && count.chars().all(|c| c.is_ascii_digit()) => {
            let n = count.parse().ok().filter(|n| (1..=MOST).contains(n));
            n.map(|n| (n, id)).ok_or_else(|| format!("\"{head}\": the count is not between 1 and {MOST}"))
        }
        _ => Ok((1, head)),
    }
}

fn unknown(kind: &str, name: &str, near: &[String]) -> String {
    let help = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    format!("\"{name}\" is no {kind}{help}")
}

/// One statement about the machine around the devices.
fn describe_host(host: &mut SimulatedHost, option: &str) -> Result<(), String> {
    const WHAT: [&str; 3] = ["cpus", "ram", "nvme"];
    let (what, value) = option.split_once('=').unwrap_or((option, ""));
    let (what, value) = (what.trim(), value.trim());
    let size = || value.parse::<Bytes>().map_err(|e| format!("\"{option}\": {e}"));
    match what {
        "cpus" => {
            let cpus = value.parse().ok().filter(|n| (1..=65536).contains(n));
            host.cpus = Some(cpus.ok_or_else(|| format!("\"{option}\": \"{value}\" is not between 1 and 65536"))?);
        }
        "ram" => host.ram = Some(size()?),
        "nvme" => host.nvme = Some(size()?),
        _ => return Err(unknown("part of the host that is simulated", what, &nearest(what, WHAT))),
    }
    Ok(())
}

/// Applies one option to the devices from `first` on.
fn apply(machine: &mut Machine<'_>, first: usize, option: &str, table: &SpecTable) -> Result<(), String> {
    let mut parts = option.split('=');
    let head = parts.next().unwrap_or_default().trim();
    let values: Vec<&str> = parts.map(str::trim).collect();
    let (name, device) = head.split_once('@').map_or((head, None), |(n, d)| (n, Some(d)));
    if name == "seed" {
        let [number] = values[..] else { return Err(format!("\"{option}\": seed=number")) };
        machine.seed = number.parse().map_err(|_| format!("\"{option}\": \"{number}\" is not a whole number"))?;
        return Ok(());
    }
    let Some((_, expected, _)) = FAULTS.iter().find(|(n, ..)| *n == name) else {
        return Err(unknown("fault", name, &nearest(name, FAULTS.iter().map(|f| f.0))));
    };
    if values.len() > expected.matches('=').count() || values.contains(&"") {
        return Err(format!("\"{option}\": written {name}{expected}"));
    }
    let hit = match device {
        None => first..machine.units.len(),
        Some(text) => {
            let n: usize = text.parse().map_err(|_| format!("\"{option}\": \"{text}\" is not a device number"))?;
            if !(first..machine.units.len()).contains(&n) {
                return Err(format!(
                    "\"{option}\": device {n} is not in this group ({first} to {})",
                    machine.units.len() - 1
                ));
            }
            n..n + 1
        }
    };
    for unit in &mut machine.units[hit] {
        set(unit, name, &values, table).map_err(|e| format!("\"{option}\": {e}"))?;
    }
    Ok(())
}

fn set(unit: &mut Unit<'_>, name: &str, values: &[&str], table: &SpecTable) -> Result<(), String> {
    let faults = &mut unit.faults;
    let value = values.first().copied();
    match name {
        "power-cap" => faults.power_cap = Some(share(value, 0.7, 0.3, 1.0)?),
        "thermal" => faults.thermal = Some(share(value, 0.7, 0.3, 1.0)?),
        "slow-memory" => faults.slow_memory = Some(share(value, 0.7, 0.01, 1.0)?),
        "half-memory" => faults.half_memory = true,
        "fewer-units" => faults.fewer_units = Some(missing_units(unit.spec, value)?),
        "half-link" => faults.half_link = true,
        "old-link" => faults.old_link = true,
        "peer-links" => faults.peer_links = Some(count(value, 1)?),
        "hw-slowdown" => faults.hw_slowdown = Some(share(value, 0.5, 0.05, 1.0)?),
        "ecc-off" => faults.ecc_off = true,
        "ecc-errors" => faults.ecc_errors = Some(count(value, 1)?),
        "remap-pending" => faults.remap_pending = true,
        "slow-launch" => faults.slow_launch = Some(f64::from(count(value, 500)?) * 1e-6),
        "wrong-gemm" => faults.wrong_gemm.push(data_type(value)?),
        "nan" => faults.nan.extend(float_types(value)?),
        "slow-gemm" => {
            let factor = share(values.get(1).copied(), 0.8, 0.01, 1.0)?;
            faults.slow_gemm.push((data_type(value)?, factor));
        }
        "hang" => faults.hang = Some(trigger(value, Trigger::Launch(200))?),
        "crash" => faults.crash = Some(trigger(value, Trigger::Launch(200))?),
        "lost" => faults.lost = Some(trigger(value, Trigger::After(20.0))?),
        "neighbour" => faults.neighbour = Some(share(value, 0.3, 0.01, 1.0)?),
        "unsteady" => faults.unsteady = Some(share(value, 0.05, 0.001, 0.3)?),
        "drift" => faults.drift = Some(percent_per_minute(value)?),
        "spoof" => faults.spoof = Some(pretended(unit.spec, value, table)?),
        "no-telemetry" => faults.no_telemetry = true,
        "clock-skew" => faults.clock_skew = Some(share(value, 0.01, -0.5, 0.5)?),
        "aggressor-idle" => faults.aggressor_idle = true,
        _ => return Err(format!("fault \"{name}\" is listed and not known")),
    }
    Ok(())
}

fn number(text: &str) -> Result<f64, String> {
    let n: f64 = text.parse().map_err(|_| format!("\"{text}\" is not a number"))?;
    if n.is_finite() { Ok(n) } else { Err(format!("\"{text}\" is not a number")) }
}

fn share(value: Option<&str>, default: f64, least: f64, most: f64) -> Result<f64, String> {
    let share = match value {
        None => default,
        Some(text) => match text.strip_suffix('%') {
            Some(percent) => number(percent.trim())? / 100.0,
            None => number(text)?,
        },
    };
    if (least..=most).contains(&share) { Ok(share) } else { Err(format!("{share} is not between {least} and {most}")) }
}

fn percent_per_minute(value: Option<&str>) -> Result<f64, String> {
    let Some(text) = value else { return Ok(0.02) };
    let percent = number(text.trim_end_matches("/min").trim_end_matches('%'))?;
    if (0.0..=50.0).contains(&percent) {
        Ok(percent / 100.0)
    } else {
        Err(format!("{percent} is not between 0 and 50"))
    }
}

fn data_type(value: Option<&str>) -> Result<DataType, String> {
    let text = value.ok_or("needs a type, e.g. fp16")?;
    text.parse().map_err(|e: String| {
        let near = nearest(text, DataType::ALL.iter().map(|t| t.name()));
        if near.is_empty() { e } else { format!("{e}; did you mean {}?", near.join(", ")) }
    })
}

fn float_types(value: Option<&str>) -> Result<Vec<DataType>, String> {
    if value.is_none() {
        return Ok(DataType::ALL.into_iter().filter(|t| !t.is_integer()).collect());
    }
    match data_type(value)? {
        t if t.is_integer() => Err(format!("{t} has no NaN")),
        t => Ok(vec![t]),
    }
}

fn trigger(value: Option<&str>, default: Trigger) -> Result<Trigger, String> {
    let Some(text) = value else { return Ok(default) };
    if let Ok(data_type) = text.parse() {
        return Ok(Trigger::Gemm(data_type));
    }
    if let Some(seconds) = text.strip_suffix('s')
        && let Ok(seconds) = number(seconds)
    {
        return Ok(Trigger::After(seconds));
    }
    let launch = text.parse().map_err(|_| format!("\"{text}\" is none of: 200 (launches), 20s, fp16"))?;
    Ok(Trigger::Launch(launch))
}

/// A count from 1 to a million.
fn count(value: Option<&str>, default: u32) -> Result<u32, String> {
    let Some(text) = value else { return Ok(default) };
    let n = text.parse().map_err(|_| format!("\"{text}\" is not a count"))?;
    if (1..=1_000_000).contains(&n) { Ok(n) } else { Err(format!("{n} is not between 1 and 1000000")) }
}

fn missing_units(spec: &GpuSpec, value: Option<&str>) -> Result<u32, String> {
    let units = spec.device_units().unwrap_or(0);
    let missing = match value {
        None => (units / 16).max(1),
        Some(text) => text.parse().map_err(|_| format!("\"{text}\" is not a count"))?,
    };
    if missing < units { Ok(missing) } else { Err(format!("{} has only {units} units", spec.id)) }
}

/// The model a spoofed name pretends: as written, else one that is worth more.
fn pretended(spec: &GpuSpec, value: Option<&str>, table: &SpecTable) -> Result<String, String> {
    if let Some(id) = value {
        let near = || nearest(id, table.all().iter().map(|g| g.id.as_str()));
        return table.get(id).map(|g| g.id.clone()).ok_or_else(|| unknown("GPU of the spec table", id, &near()));
    }
    let better = ["h200-sxm-141gb", "b200-sxm", "mi300x", "mi325x", "max-1550", "max-1100"];
    let other = better.into_iter().filter_map(|id| table.get(id)).find(|g| g.vendor == spec.vendor && g.id != spec.id);
    other.map(|g| g.id.clone()).ok_or_else(|| "name the model: spoof=model".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::table;

    #[test]
    fn reads_counts_groups_faults_and_values() {
        let machine =
            parse("8xh100-sxm5-80gb:power-cap,slow-memory@3=0.97,slow-gemm=bf16=90%,seed=7+a100-sxm4-80gb", table())
                .unwrap();
        assert_eq!((machine.units.len(), machine.seed), (9, 7));
        assert_eq!(machine.units[0].faults.power_cap, Some(0.7));
        assert_eq!(machine.units[3].faults.slow_memory, Some(0.97));
        assert_eq!(machine.units[2].faults.slow_memory, None);
        assert_eq!(machine.units[7].faults.slow_gemm, [(DataType::Bf16, 0.9)]);
        assert_eq!(
            (machine.units[8].spec.id.as_str(), &machine.units[8].faults),
            ("a100-sxm4-80gb", &Faults::default())
        );
        let hang = |text: &str| parse(&format!("l4:hang={text}"), table()).unwrap().units[0].faults.hang;
        assert_eq!(hang("fp16"), Some(Trigger::Gemm(DataType::Fp16)));
        assert_eq!(hang("30s"), Some(Trigger::After(30.0)));
        assert_eq!(hang("12"), Some(Trigger::Launch(12)));
        let machine = parse("2xl4+host:cpus=16, ram=64GiB", table()).unwrap();
        assert_eq!((machine.units.len(), machine.host.cpus), (2, Some(16)));
        assert_eq!((machine.host.ram, machine.host.nvme), (Some(Bytes::gib(64)), None));
    }

    #[test]
    fn every_fault_is_known_and_changes_something() {
        for (name, value, _) in FAULTS {
            let needs = if *name == "wrong-gemm" || *name == "slow-gemm" { "=fp32" } else { "" };
            let machine = parse(&format!("h100-sxm5-80gb:{name}{needs}"), table()).unwrap_or_else(|e| panic!("{e}"));
            assert_ne!(machine.units[0].faults, Faults::default(), "{name}{value}");
        }
    }

    #[test]
    fn errors_name_the_part_and_the_nearest() {
        for (text, words) in [
            ("8xh100-sxm5-80g", "did you mean h100-sxm5-80gb"),
            ("", "is no GPU"),
            ("h100-sxm5-80gb+", "is no GPU"),
            ("0xl4", "between 1 and 64"),
            ("60xl4+5xl4", "more than 64"),
            ("99999999999999999999xl4", "between 1 and 64"),
            ("l4:powercap", "did you mean power-cap"),
            ("l4:slow-memory=fast", "not a number"),
            ("l4:slow-memory=nan", "not a number"),
            ("l4:slow-memory=2", "not between"),
            ("l4:half-memory=3", "written half-memory"),
            ("l4:slow-memory=", "written slow-memory=factor"),
            ("2xl4:drift@2", "device 2 is not in this group (0 to 1)"),
            ("2xl4:drift@x", "not a device number"),
            ("l4:wrong-gemm", "needs a type"),
            ("l4:wrong-gemm=fp23", "did you mean"),
            ("l4:nan=int8", "has no NaN"),
            ("l4:hang=soon", "none of"),
            ("l4:fewer-units=58", "has only 58 units"),
            ("l4:spoof=h100", "is no GPU"),
            ("l4:seed=x", "not a whole number"),
            ("host:cpus=4", "no simulated device"),
            ("l4+host", "part of the host"),
            ("l4+host:cpu=4", "did you mean cpus"),
            ("l4+host:cpus=0", "not between 1"),
            ("l4+host:ram=64", "expected B"),
        ] {
            let error = parse(text, table()).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
