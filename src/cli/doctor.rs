//! `doctor`: what this machine lets the tool see; and with `--self-test`, whether the tool catches faults here.

mod self_test;

use std::path::Path;

use serde::Serialize;

use super::args::DoctorArgs;
use super::error::CliError;
use super::{devices, output};
use crate::backend::{self, host::file};
use crate::exit::Exit;
use crate::record::{BackendState, DeviceKind, Inventory, Observed};

/// One line of the doctor.
#[derive(Debug, Serialize)]
pub struct Line {
    /// What was looked at.
    pub what: String,
    /// How it stands.
    pub state: State,
    /// What was seen.
    pub detail: String,
    /// What the user can do; empty if nothing.
    pub remedy: String,
}

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Limits what can be measured.
    Attention,
    /// Cannot be seen from here.
    NotObservable,
    /// A fault was injected and not caught.
    Failed,
}

impl Line {
    fn new(what: &str, state: State, detail: impl Into<String>, remedy: &str) -> Line {
        Line { what: what.to_owned(), state, detail: detail.into(), remedy: remedy.to_owned() }
    }
}

/// Runs `doctor`. Exit 0, or 3 if an injected fault was not caught: results of this machine then prove nothing.
pub fn doctor(args: &DoctorArgs) -> Result<Exit, CliError> {
    let inventory = devices::inventory(None, &args.storage_dir)?;
    let mut lines = look(&inventory, &args.storage_dir);
    if args.self_test {
        lines.extend(self_test::all(&args.storage_dir));
    }
    if args.json {
        output::stdout_json(&lines)?;
    } else {
        output::stdout(&output::printable(&text(&lines)))?;
    }
    let failed = lines.iter().any(|l| l.state == State::Failed);
    Ok(if failed { Exit::Inconclusive } else { Exit::Accepted })
}

fn text(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let state = match line.state {
            State::Ok => "ok",
            State::Attention => "attention",
            State::NotObservable => "not observable",
            State::Failed => "FAILED",
        };
        text.push_str(&format!("{state:>14}  {:<22} {}\n", line.what, line.detail));
        if !line.remedy.is_empty() {
            text.push_str(&format!("{:>14}  {:<22} → {}\n", "", "", line.remedy));
        }
    }
    text
}

fn look(inventory: &Inventory, storage: &Path) -> Vec<Line> {
    let mut lines = Vec::new();
    for report in &inventory.backends {
        lines.push(match &report.state {
            BackendState::Present { version, .. } => {
                let found = inventory.devices.iter().filter(|d| d.id.backend == report.id).count();
                Line::new(report.id.name(), State::Ok, format!("{version}, devices: {found}"), "")
            }
            BackendState::Absent { reason, remedy } => Line::new(report.id.name(), State::Attention, reason, remedy),
        });
    }
    lines.push(gpus(inventory));
    lines.push(cores(inventory));
    let disagree = inventory.disagreements.iter().map(|d| {
        let detail = format!("{}: {} says {}, {} says {}", d.device, d.first.0, d.first.1, d.second.0, d.second.1);
        Line::new(&d.about, State::Attention, detail, "ask the provider which of the two is right")
    });
    lines.extend(disagree);
    lines.push(disk(storage));
    lines.push(accounting());
    lines.push(clock_source());
    lines.extend(sensors());
    lines
}

fn gpus(inventory: &Inventory) -> Line {
    let usable = inventory.devices.iter().filter(|d| d.kind == DeviceKind::Gpu).count();
    let on_bus = match &inventory.host.pci_gpus {
        Observed::Value(gpus) => gpus.len(),
        Observed::NotObservable(reason) => {
            let detail = format!("{usable} behind a driver; the PCI bus is not observable: {reason}");
            return Line::new("GPU", State::Attention, detail, "mount sysfs into the container");
        }
    };
    match (on_bus, usable) {
        (0, 0) => Line::new(
            "GPU",
            State::Attention,
            "none on the PCI bus, none behind a driver",
            "only host and CPU devices can be measured",
        ),
        (bus, usable) if usable < bus => Line::new(
            "GPU",
            State::Attention,
            format!("{bus} on the PCI bus, {usable} behind a driver"),
            "install the vendor's driver, or pass the devices into the container",
        ),
        (bus, usable) => Line::new("GPU", State::Ok, format!("{bus} on the PCI bus, {usable} behind a driver"), ""),
    }
}

fn cores(inventory: &Inventory) -> Line {
    let host = &inventory.host;
    let detail = format!(
        "{} of {} usable, {} of {} memory",
        host.cpus_usable, host.cpus_total, host.memory_usable, host.memory_total
    );
    let limited = host.cpus_usable < f64::from(host.cpus_total);
    let remedy = if limited {
        "affinity or a cgroup limits this process; run where all of what was rented is usable"
    } else {
        ""
    };
    Line::new("CPU", if limited { State::Attention } else { State::Ok }, detail, remedy)
}

fn disk(folder: &Path) -> Line {
    let options = file::Options::new(folder, crate::unit::Bytes::mib(16), 1);
    let made = file::writable(folder).and_then(|()| file::TestFile::create(&options).map_err(|e| e.to_string()));
    match made {
        Ok(test) => {
            let direct = test.filesystem().accounted;
            let state = if direct { State::Ok } else { State::Attention };
            let remedy = if direct {
                ""
            } else {
                "reads here do not come from a device; choose another folder with --storage-dir"
            };
            Line::new("storage", state, test.description(), remedy)
        }
        Err(error) => {
            Line::new("storage", State::Attention, error, "choose a folder you may write to with --storage-dir")
        }
    }
}

fn accounting() -> Line {
    match std::fs::read_to_string("/proc/self/io") {
        Ok(_) => Line::new("bytes really read", State::Ok, "/proc/self/io", ""),
        Err(e) => Line::new(
            "bytes really read",
            State::NotObservable,
            format!("/proc/self/io: {e}"),
            "storage results are then labelled \"cache\"",
        ),
    }
}

fn clock_source() -> Line {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match std::fs::read_to_string(path) {
        Ok(name) => Line::new("clock source", State::Ok, name.trim(), ""),
        Err(e) => Line::new("clock source", State::NotObservable, format!("{path}: {e}"), ""),
    }
}

fn sensors() -> Vec<Line> {
    let Ok(backends) = backend::all(None) else { return Vec::new() };
    let missing = backends.iter().filter_map(|b| b.sensors()).flat_map(|s| s.not_observable());
    missing.map(|(sensor, reason)| Line::new(&sensor, State::NotObservable, reason, "")).collect()
}
