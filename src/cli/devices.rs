//! `devices`: what can be measured here, and why other backends show nothing.

use std::path::Path;
use std::time::Duration;

use super::args::DevicesArgs;
use super::error::CliError;
use super::output;
use crate::exit::Exit;
use crate::measure;
use crate::record::{BackendState, DeviceKind, Inventory};

/// A driver that needs longer to say what it has is not going to be measured.
const DISCOVERY_DEADLINE: Duration = Duration::from_secs(30);

/// Looks at the machine in a child process: a driver may hang or crash there.
pub fn inventory(simulate: Option<&str>, storage_dir: &Path) -> Result<Inventory, CliError> {
    if let Some(text) = simulate {
        // Checked here so that a typing mistake is a usage error, not a crashed child.
        crate::backend::all(Some(text)).map_err(CliError::usage)?;
    }
    let folder = storage_dir
        .to_str()
        .ok_or_else(|| CliError::usage(format_args!("{}: a folder name that is not UTF-8", storage_dir.display())))?;
    let mut arguments = vec!["discover", "--storage-dir", folder];
    if let Some(text) = simulate {
        arguments.extend(["--simulate", text]);
    }
    let output = measure::child::call(&arguments, DISCOVERY_DEADLINE)
        .map_err(|e| CliError::new(Exit::Internal, format_args!("discovery: {e}")))?;
    serde_json::from_slice(&output)
        .map_err(|e| CliError::new(Exit::Internal, format_args!("discovery gave no inventory: {e}")))
}

/// Runs `devices`.
pub fn devices(args: &DevicesArgs) -> Result<Exit, CliError> {
    let inventory = inventory(args.simulate.as_deref(), Path::new("."))?;
    if args.json {
        output::stdout_json(&inventory)?;
    } else {
        output::stdout(&output::printable(&table(&inventory)))?;
    }
    Ok(Exit::Accepted)
}

fn table(inventory: &Inventory) -> String {
    let mut text = String::new();
    for d in &inventory.devices {
        let kind = match d.kind {
            DeviceKind::Gpu => "GPU",
            DeviceKind::Cpu => "CPU",
            DeviceKind::Accelerator => "accelerator",
        };
        let units = d.units.map_or(String::new(), |u| format!(" · {u} units"));
        let spec = d.spec.as_deref().map_or(String::new(), |s| format!(" · spec {s}"));
        let simulated = if d.simulated { " · SIMULATED" } else { "" };
        text.push_str(&format!("{:<10} {kind:<4} {}{units} · {}{spec}{simulated}\n", d.id, d.name, d.memory));
    }
    if inventory.devices.is_empty() {
        text.push_str("no devices\n");
    }
    for report in &inventory.backends {
        match &report.state {
            BackendState::Present { version, library } => {
                let library = library.as_deref().map_or(String::new(), |l| format!(" ({l})"));
                text.push_str(&format!("{:<10} {version}{library}\n", report.id));
            }
            BackendState::Absent { reason, remedy } => {
                text.push_str(&format!("{:<10} not usable: {reason}\n", report.id));
                if !remedy.is_empty() {
                    text.push_str(&format!("{:<10} {remedy}\n", ""));
                }
            }
        }
    }
    for d in &inventory.disagreements {
        text.push_str(&format!(
            "{:<10} {}: {} says {}, {} says {}\n",
            d.device, d.about, d.first.0, d.first.1, d.second.0, d.second.1
        ));
    }
    text
}
