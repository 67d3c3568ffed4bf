//! Placeholder until the benchmark lands.

use super::{Benchmark, Context, Meta, Workload};
use crate::backend::DeviceError;
use crate::record::{DeviceInfo, Params};
use crate::unit::Bytes;

/// Not built yet.
pub struct StorageSequential;

impl Benchmark for StorageSequential {
    fn meta(&self) -> &'static Meta {
        &Meta {
            id: "storage_sequential",
            title: "",
            measures: "",
            why: "",
            method: "",
            limits: "",
            version: 0,
            params: &[],
            metrics: &[],
        }
    }
    fn supports(&self, _device: &DeviceInfo, _params: &Params) -> Result<(), String> {
        Err("not built yet".to_owned())
    }
    fn footprint(&self, _device: &DeviceInfo, _params: &Params) -> Bytes {
        Bytes(0.0)
    }
    fn prepare<'d>(&self, _context: &Context<'d>, _params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        Err(DeviceError::Unsupported("not built yet".to_owned()))
    }
}
