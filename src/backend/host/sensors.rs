//! Sensors of the machine, from `/proc` and `/sys` under a root that tests can replace. What is missing is
//! named with the reason. A reading opens a bounded number of small files, whatever the size of the machine.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::backend::{Reading, Sensors};
use crate::unit::Unit;

/// Source of all readings.
const MACHINE: &str = "machine";
/// Cores whose frequency is read, spread over the machine; reading hundreds would take milliseconds.
const CORES_READ: usize = 16;
/// Most of a file that is read; the kernel makes these texts as they are read.
const READ_LIMIT: u64 = 32 << 10;
/// `/proc/stat` counts in hundredths of a second on every architecture (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;
/// `/proc/diskstats` counts in units of 512 bytes whatever the disk's sector size is.
const SECTOR: f64 = 512.0;

/// One sensor: name, unit, whether it is a running total, and its value.
type Value = (&'static str, Unit, bool, f64);
/// Values, or why there are none.
type Group = Result<Vec<Value>, String>;
/// One source of values, and the sensors that are missing if it cannot be read.
type Reader = (fn(&MachineSensors) -> Group, &'static [&'static str]);

const READERS: &[Reader] = &[
    (MachineSensors::clocks, &["clock", "clock_min"]),
    (MachineSensors::cpu_times, &["busy", "steal", "iowait"]),
    (MachineSensors::load, &["load"]),
    (MachineSensors::temperature, &["temperature"]),
    (MachineSensors::memory, &["memory_used", "memory_available"]),
    (MachineSensors::disks, &["disk_read", "disk_write"]),
    (MachineSensors::network, &["network_received", "network_sent"]),
    (|s| s.pressure("cpu", "pressure_cpu"), &["pressure_cpu"]),
    (|s| s.pressure("memory", "pressure_memory"), &["pressure_memory"]),
    (|s| s.pressure("io", "pressure_io"), &["pressure_io"]),
];

/// Frequency, CPU time, load, temperature, memory, disk and network traffic, and pressure of the machine.
#[derive(Debug)]
pub struct MachineSensors {
    root: PathBuf,
    frequency: Result<Vec<PathBuf>, String>,
    temperature: Result<Vec<PathBuf>, String>,
    /// Whole disks; partitions and devices stacked on others would count twice.
    disks: Vec<String>,
    missing: Vec<(String, String)>,
}

impl MachineSensors {
    /// Looks once at what is there under `root` (`/` on a real machine).
    pub fn new(root: &Path) -> MachineSensors {
        let mut sensors = MachineSensors {
            root: root.to_owned(),
            frequency: frequency_files(root),
            temperature: temperature_files(root),
            disks: whole_disks(root),
            missing: Vec::new(),
        };
        for (read, names) in READERS {
            if let Err(reason) = read(&sensors) {
                sensors.missing.extend(names.iter().map(|name| (format!("{MACHINE}.{name}"), reason.clone())));
            }
        }
        sensors
    }

    fn text(&self, path: &str) -> Result<String, String> {
        read(&self.root.join(path))
    }

    /// Mean and lowest frequency of the cores that are read.
    fn clocks(&self) -> Group {
        let hertz = match &self.frequency {
            Ok(files) => files.iter().filter_map(|f| Some(1e3 * number(&read(f).ok()?)?)).collect(),
            Err(no_cpufreq) => {
                let text = self.text("proc/cpuinfo").map_err(|e| format!("{no_cpufreq}; {e}"))?;
                let mhz = text.lines().filter_map(|l| l.strip_prefix("cpu MHz")?.split(':').nth(1).and_then(number));
                let hertz: Vec<f64> = mhz.map(|mhz| mhz * 1e6).collect();
                if hertz.is_empty() {
                    return Err(format!("{no_cpufreq}; /proc/cpuinfo names no frequency"));
                }
                hertz
            }
        };
        if hertz.is_empty() {
            return Err("cpufreq files cannot be read".to_owned());
        }
        let mean = hertz.iter().sum::<f64>() / hertz.len() as f64;
        let least = hertz.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(vec![("clock", Unit::Hertz, false, mean), ("clock_min", Unit::Hertz, false, least)])
    }

    /// Seconds over all CPUs: working (guests included), taken by the hypervisor for others, waiting for disks.
    fn cpu_times(&self) -> Group {
        let text = self.text("proc/stat")?;
        let line = text.lines().find_map(|l| l.strip_prefix("cpu ")).ok_or("/proc/stat has no line \"cpu\"")?;
        let fields: Vec<f64> = line.split_whitespace().filter_map(number).collect();
        let [user, nice, system, _idle, iowait, irq, softirq, steal, ..] = fields[..] else {
            return Err("/proc/stat: too few fields in line \"cpu\"".to_owned());
        };
        let total = |name, ticks: f64| (name, Unit::Second, true, ticks / TICKS_PER_SECOND);
        let busy = user + nice + system + irq + softirq;
        Ok(vec![total("busy", busy), total("steal", steal), total("iowait", iowait)])
    }

    /// Runnable and uninterruptible tasks, mean over one minute.
    fn load(&self) -> Group {
        let text = self.text("proc/loadavg")?;
        let load = text.split_whitespace().next().and_then(number).ok_or("/proc/loadavg: no number")?;
        Ok(vec![("load", Unit::Count, false, load)])
    }

    /// The hottest of all sensors of the machine.
    fn temperature(&self) -> Group {
        let files = self.temperature.as_ref().map_err(Clone::clone)?;
        let celsius = files.iter().filter_map(|f| Some(1e-3 * number(&read(f).ok()?)?));
        let hottest = celsius.reduce(f64::max).ok_or("no temperature file can be read")?;
        Ok(vec![("temperature", Unit::Celsius, false, hottest)])
    }

    fn memory(&self) -> Group {
        let text = self.text("proc/meminfo")?;
        let field = |name: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
            let kib = line.and_then(|l| number(l.trim_end_matches("kB")));
            kib.map(|kib| kib * 1024.0).ok_or_else(|| format!("/proc/meminfo has no {name}"))
        };
        let (total, available) = (field("MemTotal")?, field("MemAvailable")?);
        let bytes = |name, value| (name, Unit::Byte, false, value);
        Ok(vec![bytes("memory_used", total - available), bytes("memory_available", available)])
    }

    /// Bytes over all whole disks.
    fn disks(&self) -> Group {
        let text = self.text("proc/diskstats")?;
        let (mut read, mut written, mut seen) = (0.0, 0.0, false);
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, name, _, _, sectors_read, _, _, _, sectors_written, ..] = fields[..] else { continue };
            if let (true, Some(r), Some(w)) =
                (self.disks.iter().any(|d| d == name), number(sectors_read), number(sectors_written))
            {
                (read, written, seen) = (read + r, written + w, true);
            }
        }
        if !seen {
            return Err("/proc/diskstats shows no disk".to_owned());
        }
        let total = |name, sectors: f64| (name, Unit::Byte, true, sectors * SECTOR);
        Ok(vec![total("disk_read", read), total("disk_write", written)])
    }

    /// Bytes over all interfaces but the loopback.
    fn network(&self) -> Group {
        let text = self.text("proc/net/dev")?;
        let (mut received, mut sent, mut seen) = (0.0, 0.0, false);
        for line in text.lines() {
            let Some((name, counters)) = line.split_once(':') else { continue };
            let counters: Vec<f64> = counters.split_whitespace().filter_map(number).collect();
            if let (true, Some(r), Some(s)) = (name.trim() != "lo", counters.first(), counters.get(8)) {
                (received, sent, seen) = (received + r, sent + s, true);
            }
        }
        if !seen {
            return Err("/proc/net/dev shows no interface besides the loopback".to_owned());
        }
        Ok(vec![("network_received", Unit::Byte, true, received), ("network_sent", Unit::Byte, true, sent)])
    }

    /// Seconds in which at least one task waited for `resource` (pressure stall information).
    fn pressure(&self, resource: &str, name: &'static str) -> Group {
        let path = format!("proc/pressure/{resource}");
        let text = self.text(&path)?;
        let line = text.lines().find_map(|l| l.strip_prefix("some "));
        let total = line.and_then(|l| l.split_whitespace().find_map(|f| f.strip_prefix("total=").and_then(number)));
        let microseconds = total.ok_or_else(|| format!("/{path} has no total"))?;
        Ok(vec![(name, Unit::Second, true, microseconds * 1e-6)])
    }
}

impl Sensors for MachineSensors {
    fn not_observable(&self) -> Vec<(String, String)> {
        self.missing.clone()
    }

    fn read(&mut self, now: u64) -> Vec<Reading> {
        let values = READERS.iter().filter_map(|(read, _)| read(self).ok()).flatten();
        let reading = |(sensor, unit, counter, value): Value| Reading {
            source: MACHINE.to_owned(),
            sensor: sensor.to_owned(),
            unit,
            counter,
            at: now,
            value,
        };
        values.filter(|v| v.3.is_finite()).map(reading).collect()
    }
}

/// Up to [`READ_LIMIT`] bytes of a file; the error names it.
fn read(path: &Path) -> Result<String, String> {
    let open = || {
        let mut text = Vec::new();
        File::open(path)?.take(READ_LIMIT).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    open().map_err(|e: std::io::Error| format!("{}: {e}", path.display()))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// Names in a folder, sorted; none if it is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// `scaling_cur_freq` of up to [`CORES_READ`] cores at equal distances.
fn frequency_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = root.join("sys/devices/system/cpu");
    let is_core = |name: &String| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
    let file = |name: String| folder.join(name).join("cpufreq/scaling_cur_freq");
    let files: Vec<PathBuf> = names(&folder).into_iter().filter(is_core).map(file).filter(|f| f.exists()).collect();
    if files.is_empty() {
        return Err("cpufreq is not there (usual in virtual machines)".to_owned());
    }
    let step = files.len().div_ceil(CORES_READ);
    Ok(files.into_iter().step_by(step).collect())
}

/// Files in thousandths of a degree: hwmon chips, else thermal zones.
fn temperature_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let hwmon = root.join("sys/class/hwmon");
    let is_input = |name: &String| name.starts_with("temp") && name.ends_with("_input");
    let chip = |chip: String| {
        let folder = hwmon.join(chip);
        names(&folder).into_iter().filter(is_input).map(move |name| folder.join(name)).collect::<Vec<_>>()
    };
    let thermal = root.join("sys/class/thermal");
    let zones = || names(&thermal).into_iter().filter(|n| n.starts_with("thermal_zone"));
    let mut files: Vec<PathBuf> = names(&hwmon).into_iter().flat_map(chip).collect();
    if files.is_empty() {
        files = zones().map(|zone| thermal.join(zone).join("temp")).collect();
    }
    files.truncate(CORES_READ);
    match files.is_empty() {
        true => Err("no hwmon chip and no thermal zone (usual in virtual machines)".to_owned()),
        false => Ok(files),
    }
}

/// Block devices, except those that are made of memory, files or other block devices.
fn whole_disks(root: &Path) -> Vec<String> {
    const STACKED: [&str; 6] = ["loop", "ram", "zram", "dm-", "md", "sr"];
    let disks = names(&root.join("sys/block")).into_iter();
    disks.filter(|name| !STACKED.iter().any(|prefix| name.starts_with(prefix))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn fixture(name: &str) -> MachineSensors {
        MachineSensors::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))
    }

    fn values(sensors: &mut MachineSensors) -> BTreeMap<String, f64> {
        let readings = sensors.read(7);
        assert!(readings.iter().all(|r| r.source == "machine" && r.at == 7));
        readings.into_iter().map(|r| (r.sensor, r.value)).collect()
    }

    #[test]
    fn a_physical_machine_shows_everything() {
        let mut sensors = fixture("proc-physical");
        assert_eq!(sensors.not_observable(), []);
        let expected = [
            ("busy", 1000.0 + 10.0 + 500.0 + 5.0 + 15.0),
            ("clock", 3.0e9),
            ("clock_min", 2.4e9),
            ("disk_read", 1000.0 * 512.0 + 8.0 * 512.0),
            ("disk_write", 2000.0 * 512.0 + 16.0 * 512.0),
            ("iowait", 40.0),
            ("load", 1.5),
            ("memory_available", 900_000.0 * 1024.0),
            ("memory_used", 100_000.0 * 1024.0),
            ("network_received", 5_000_000.0 + 70.0),
            ("network_sent", 6_000_000.0 + 80.0),
            ("pressure_cpu", 1.5),
            ("pressure_io", 0.25),
            ("pressure_memory", 0.0),
            ("steal", 0.5),
            ("temperature", 71.5),
        ];
        let expected: BTreeMap<String, f64> = expected.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
        let seen = values(&mut sensors);
        assert_eq!(seen.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, value) in expected {
            assert!((seen[&name] - value).abs() <= 1e-9 * value.abs(), "{name}: {} not {value}", seen[&name]);
        }
    }

    #[test]
    fn a_bare_virtual_machine_says_what_it_hides() {
        let mut sensors = fixture("proc-virtual");
        let missing: BTreeMap<String, String> = sensors.not_observable().into_iter().collect();
        assert!(missing["machine.temperature"].contains("hwmon"));
        assert!(missing["machine.pressure_cpu"].contains("pressure/cpu"));
        assert!(missing["machine.network_sent"].contains("loopback"));
        assert!(missing["machine.steal"].contains("too few fields"), "a text cut short is no zero");
        let seen = values(&mut sensors);
        assert_eq!(seen["clock"], 2.3e9, "from /proc/cpuinfo");
        assert!(missing.keys().all(|name| !seen.contains_key(name.trim_start_matches("machine."))));
    }

    #[test]
    fn an_empty_root_reads_nothing_and_names_every_sensor() {
        let root = tempfile::tempdir().unwrap();
        let mut sensors = MachineSensors::new(root.path());
        let names: usize = READERS.iter().map(|(_, names)| names.len()).sum();
        assert_eq!(sensors.not_observable().len(), names);
        assert!(sensors.not_observable().iter().all(|(_, reason)| !reason.is_empty()));
        assert_eq!(sensors.read(0), []);
    }

    #[test]
    fn this_machine_is_read_and_every_sensor_is_either_read_or_missing() {
        let mut sensors = MachineSensors::new(Path::new("/"));
        let seen = values(&mut sensors);
        let missing: Vec<String> = sensors.not_observable().into_iter().map(|(name, _)| name).collect();
        for name in READERS.iter().flat_map(|(_, names)| names.iter()) {
            let is_missing = missing.contains(&format!("machine.{name}"));
            assert!(seen.contains_key(*name) != is_missing, "{name}");
        }
        assert!(seen["memory_used"] > 0.0 && seen["busy"] > 0.0);
    }
}
