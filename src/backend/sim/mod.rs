//! Placeholder until the backend lands.

use super::{Backend, Device, DeviceError, Probe};
use crate::record::{BackendId, BackendState, DeviceId};

/// Simulated devices.
pub struct Sim;

impl Sim {
    /// From `--simulate` text, e.g. `8xh100-sxm5-80gb:power-cap`.
    pub fn parse(_text: &str) -> Result<Sim, String> {
        Ok(Sim)
    }
}

impl Backend for Sim {
    fn id(&self) -> BackendId {
        BackendId::Sim
    }
    fn probe(&self) -> Probe {
        Probe {
            state: BackendState::Absent { reason: "not built yet".to_owned(), remedy: String::new() },
            devices: Vec::new(),
        }
    }
    fn open(&self, device: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        Err(DeviceError::Unsupported(format!("{device}: not built yet")))
    }
}
