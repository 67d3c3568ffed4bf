//! Simulated devices: any GPU of the spec table, with faults on request, in simulated time.
//!
//! A simulated device exists to test everything above it and to show what a report looks like. Its speed comes
//! from units, clocks, bytes and faults ([`model`]), its results are really computed by reference functions
//! ([`compute`]) on buffers that are smaller by a recorded work scale, and verification sees those results.
//! It is deterministic: the same text gives the same timeline.
//!
//! Whatever it touches is marked: names begin with "SIMULATED", UUIDs with "SIM-", `DeviceInfo::simulated` is
//! set, and the record of a run keeps that mark.

mod compute;
mod describe;
mod device;
mod launch;
mod model;
mod state;
mod stream;

use std::collections::BTreeMap;

pub use describe::FAULTS;
pub use model::{THROTTLE_POWER, THROTTLE_THERMAL};

use describe::{Faults, SimulatedHost, Unit};
use model::Model;

use super::{Backend, Device, DeviceError, Probe};
use crate::record::{BackendId, BackendState, DeviceId, DeviceInfo, DeviceKind, PEER_LINK, PciIdentity, WorkScale};
use crate::spec::{self, GpuSpec};
use crate::unit::{Bytes, Hertz};

/// Environment variable with the time in nanoseconds at which simulated time begins, the same for all processes
/// of a run; 0 if not set.
pub const EPOCH_VARIABLE: &str = "GPU_ASSAY_SIM_EPOCH";

/// Edges are divided by 32, and so is the area of matrices by 1024, as all buffers are. Loop counts stay: lanes
/// of arithmetic kernels repeat every 64, so few chains are all there is to compute.
const SCALE: WorkScale = WorkScale { edge: 32, bytes: 1024, iterations: 1 };

/// A simulated machine.
pub struct Sim {
    text: String,
    epoch: u64,
    devices: Vec<(DeviceInfo, Model, Faults)>,
}

impl Sim {
    /// From `--simulate` text, e.g. `8xh100-sxm5-80gb:power-cap,slow-memory@3=0.97+1xa100-sxm4-80gb`: groups of
    /// count (1 if left out), GPU id and faults. [`FAULTS`] lists the faults. The error names what is not known
    /// and what may have been meant.
    pub fn parse(text: &str) -> Result<Sim, String> {
        let machine = describe::parse(text, spec::table())?;
        let device = |(index, unit): (usize, &Unit<'_>)| {
            let model = Model::new(unit, mix(machine.seed, index as u64))?;
            let mut info = device_info(text, index as u32, unit, &model);
            info.attributes.extend(host_attributes(&machine.host));
            Ok((info, model, unit.faults.clone()))
        };
        let devices = machine.units.iter().enumerate().map(device).collect::<Result<_, String>>()?;
        let epoch = match std::env::var(EPOCH_VARIABLE) {
            Ok(value) => value.parse().map_err(|_| format!("{EPOCH_VARIABLE}: \"{value}\" is not a whole number"))?,
            Err(_) => 0,
        };
        Ok(Sim { text: text.to_owned(), epoch, devices })
    }
}

impl Backend for Sim {
    fn id(&self) -> BackendId {
        BackendId::Sim
    }
    fn probe(&self) -> Probe {
        let version = format!("SIMULATED: {}", self.text);
        Probe {
            state: BackendState::Present { version, library: None },
            devices: self.devices.iter().map(|(info, ..)| info.clone()).collect(),
        }
    }
    fn open(&self, device: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        let found = self.devices.iter().find(|(info, ..)| info.id == *device);
        let (info, model, faults) =
            found.ok_or_else(|| DeviceError::Unsupported(format!("{device}: no such simulated device")))?;
        Ok(Box::new(device::SimDevice::new(info.clone(), model.clone(), faults.clone(), self.epoch)))
    }
}

fn mix(seed: u64, index: u64) -> u64 {
    (seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn device_info(text: &str, index: u32, unit: &Unit<'_>, model: &Model) -> DeviceInfo {
    let spec = unit.spec;
    let shown = unit.faults.spoof.as_deref().and_then(|id| spec::table().get(id)).unwrap_or(spec);
    let digest = text.bytes().fold(0u64, |h, b| mix(h, u64::from(b) + 1));
    DeviceInfo {
        id: DeviceId::new(BackendId::Sim, index),
        kind: DeviceKind::Gpu,
        name: format!("SIMULATED {}", shown.device_names.first().unwrap_or(&shown.name)),
        vendor: format!("SIMULATED {}", spec.vendor),
        uuid: Some(format!("SIM-{:08x}-{index:04}", digest as u32)),
        pci: pci_identity(spec, index),
        memory: Bytes(model.memory),
        last_level_cache: (model.cache > 0.0).then_some(Bytes(model.cache)),
        units: Some(model.units),
        clock_max: Some(Hertz(model.boost)),
        driver: Some("SIMULATED".to_owned()),
        api: Some("SIMULATED".to_owned()),
        gemm_types: model.gemm_types(),
        fma_types: model.fma_types(),
        spec: Some(spec.id.clone()),
        numa_node: None,
        attributes: attributes(text, spec),
        scale: SCALE,
        simulated: true,
    }
}

/// What the device says beside its facts: where it comes from, and the link to other GPUs that its model has.
fn attributes(text: &str, spec: &GpuSpec) -> BTreeMap<String, String> {
    let link = spec.peer_link.iter().map(|link| (PEER_LINK.to_owned(), link.clone()));
    link.chain([("simulation".to_owned(), text.to_owned())]).collect()
}

/// The simulated machine around the devices, for discovery: numbers in base units.
fn host_attributes(host: &SimulatedHost) -> Vec<(String, String)> {
    let all = [
        ("host_cpus", host.cpus.map(|n| n.to_string())),
        ("host_ram", host.ram.map(|b| b.get().to_string())),
        ("host_nvme", host.nvme.map(|b| b.get().to_string())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The first PCI id of the model, on a bus of its own.
fn pci_identity(spec: &GpuSpec, index: u32) -> Option<PciIdentity> {
    let first = spec.pci.first()?;
    Some(PciIdentity {
        address: format!("0000:{:02x}:00.0", 0x10 + index),
        vendor: first.vendor,
        device: first.device,
        subsystem: first.subsystems.first().copied(),
    })
}

#[cfg(test)]
mod tests;
