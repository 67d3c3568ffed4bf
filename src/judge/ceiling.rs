//! What physics allows. A value above it is an error of the tool or of the record, never a merit of the device.

use super::facts::{CEILING_TOLERANCE, CaseFacts, Facts, values};
use crate::record::{DataType, DeviceInfo, DeviceKind};
use crate::spec::{self, GpuSpec};
use crate::stats;
use crate::unit::{Bytes, Hertz};

/// Clocks above the highest one that is stated occur on models that boost freely; without a sensor that shows the real
/// one, this much is allowed for.
const UNSEEN_BOOST: f64 = 1.25;

/// Arrays that no size is given for are together at least this many last-level caches, and at least a GiB on GPUs.
const ARRAYS_OVER_CACHE: f64 = 4.0;

/// A value beyond its ceiling.
#[derive(Debug, Clone, PartialEq)]
pub struct Excess {
    /// Value over ceiling, beyond [`CEILING_TOLERANCE`].
    pub ratio: f64,
    /// What the ceiling is made of.
    pub derivation: String,
}

impl<'a> Facts<'a> {
    /// By how much a case reads above what its device can do: the benchmark's own ceiling, units × operations per clock
    /// × highest clock, bus width × data rate, or what was measured in the same run; the largest excess.
    pub fn above_ceiling(&self, case: &CaseFacts<'a>) -> Option<Excess> {
        // Whatever else was recorded of the same metric is judged as well.
        let primary = case.primary()?;
        let all = case.measurement()?.series.iter().filter(|s| s.metric == primary.metric && s.unit == primary.unit);
        let y = all.map(|s| stats::uncertainty(&values(s))).max_by(|a, b| a.median.total_cmp(&b.median))?;
        let own = case.measurement()?.ceiling.as_ref().map(|c| (y.median / c.value, c.derivation.clone()));
        let same_run = self.fma_peak(case).map(|peak| {
            // The measured ceiling has an uncertainty of its own.
            ((y.median - y.expanded) / (peak.median + peak.expanded), "fma_peak".to_owned())
        });
        let of_model = self.model_ceiling(case).map(|(ceiling, derivation)| (y.median / ceiling, derivation));
        let all = [own, same_run, of_model].into_iter().flatten();
        let beyond = all.filter(|(ratio, _)| *ratio > CEILING_TOLERANCE);
        let largest = beyond.max_by(|a, b| a.0.total_cmp(&b.0));
        largest.map(|(ratio, derivation)| Excess { ratio, derivation })
    }

    /// The ceiling that follows from the spec of a GPU, in the unit of the case, with its derivation.
    fn model_ceiling(&self, case: &CaseFacts<'a>) -> Option<(f64, String)> {
        let [device] = case.devices else { return None };
        let device = self.device(device).filter(|d| d.kind == DeviceKind::Gpu)?;
        let spec = self.spec(device)?;
        match (case.benchmark, case.params.data_type()) {
            ("gemm" | "fma_peak", Some(data_type)) => {
                let operations = operations_per_clock(spec, data_type, case.benchmark == "gemm")?;
                let clock = self.highest_clock(device, spec)?;
                Some((operations * clock.0, format!("{operations} per clock × {clock}")))
            }
            ("memory_bandwidth", _) if case.params.int("size").is_none() => {
                let rate = spec.device_value("memory_bandwidth")?;
                // What still lies in the cache from the last pass does not cross the bus.
                let cache = device.last_level_cache.map_or(0.0, |c| c.0).max(spec.device_value("l2").unwrap_or(0.0));
                let arrays = (ARRAYS_OVER_CACHE * cache).max(Bytes::gib(1).0);
                Some((rate / (1.0 - cache / arrays), format!("memory_bandwidth, {} of cache", Bytes(cache))))
            }
            _ => None,
        }
    }

    /// The highest clock that the device states, its model is quoted at, or a sensor has shown; nothing that is said here
    /// and now is believed beyond [`UNSEEN_BOOST`] of what the model is quoted at.
    fn highest_clock(&self, device: &DeviceInfo, spec: &GpuSpec) -> Option<Hertz> {
        let quoted = spec.device_value("clock_boost").unwrap_or(0.0);
        let stated = device.clock_max.map_or(0.0, |c| c.0).max(quoted);
        let seen = self.values(&device.id.to_string(), "clock");
        let highest = match seen.is_empty() {
            true => UNSEEN_BOOST * stated,
            false => seen.into_iter().fold(stated, f64::max),
        };
        let believed = if quoted > 0.0 { highest.min(UNSEEN_BOOST * quoted) } else { highest };
        (stated > 0.0).then_some(Hertz(believed))
    }
}

/// The most operations of this type that one device can do in a clock, by vector or matrix units.
fn operations_per_clock(spec: &GpuSpec, data_type: DataType, matrix_units: bool) -> Option<f64> {
    let matrix = ["_tensor", "_tensor_fp32acc", "_tensor_fp16acc", "_matrix"];
    let kinds = matrix.into_iter().filter(|_| matrix_units).chain(["_vector"]);
    let name = data_type.name();
    kinds.filter_map(|kind| spec::ceiling_operations(spec, &format!("{name}{kind}"))).reduce(f64::max)
}
