//! Placeholder until the backend lands.

pub mod file;

use super::{Backend, Device, DeviceError, Probe};
use crate::record::{BackendId, BackendState, DeviceId};

/// The backend.
pub struct Host;

impl Backend for Host {
    fn id(&self) -> BackendId {
        BackendId::Host
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
