//! Timing of one prepared workload in this process, without rounds, journal or neighbours: for the self-test.

use crate::backend::{Device, Stream};
use crate::benchmark::Workload;
use crate::measure::clock::{WorkerClock, nanoseconds};
use crate::measure::sampler::{Fault, Sampler};
use crate::record::CaseError;
use crate::unit::Seconds;

/// Values of `count` blocks of `length` each, in the unit of the workload's metric.
///
/// # Errors
/// What the device said, or a time that is not a finite positive number.
pub fn blocks(
    device: &dyn Device,
    stream: &mut dyn Stream,
    workload: &mut dyn Workload,
    count: u32,
    length: Seconds,
) -> Result<Vec<f64>, CaseError> {
    let simulated = device.info().simulated;
    let clock = WorkerClock::new(device.clock(), simulated, simulated);
    let mut sampler = Sampler { workload, stream, clock: &clock };
    let measure = |sampler: &mut Sampler<'_>| -> Result<Vec<f64>, Fault> {
        let (iterations, _) = sampler.calibrate(length)?;
        (0..count).map(|_| Ok(sampler.block(iterations, clock.now() + nanoseconds(length))?.value)).collect()
    };
    measure(&mut sampler).map_err(|fault| fault.case_error())
}
