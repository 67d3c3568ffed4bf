//! Devices behind an OpenCL driver of any vendor.
//!
//! The loader library is opened at run time. Kernels are built by the driver from the portable source in
//! `kernels/`; the driver caches what it built. Times are the profiling stamps of the device.
//!
//! OpenCL objects are held through `cl3`, the function layer of the `opencl3` crate: the object layer above
//! it panics when a release fails, which is what happens once a device is lost.

mod device;
mod error;
mod object;
mod probe;
mod stream;

use super::{Backend, Device, DeviceError, Probe};
use crate::record::{BackendId, DeviceId};

/// The OpenCL backend.
pub struct OpenCl;

impl Backend for OpenCl {
    fn id(&self) -> BackendId {
        BackendId::Opencl
    }

    fn probe(&self) -> Probe {
        match probe::list() {
            Ok(found) => {
                Probe { state: probe::present(&found), devices: found.into_iter().map(|listed| listed.info).collect() }
            }
            Err(absent) => Probe { state: absent, devices: Vec::new() },
        }
    }

    fn open(&self, device: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        let found = probe::list().map_err(|state| DeviceError::Unsupported(probe::reason(&state)))?;
        let listed = found
            .into_iter()
            .find(|listed| listed.info.id == *device)
            .ok_or_else(|| DeviceError::Unsupported(format!("{device}: no such OpenCL device")))?;
        Ok(Box::new(device::OpenClDevice::open(listed)?))
    }
}
