//! What the judge knows about a run: the record's parts brought together by case and device. No opinions yet,
//! except whether a speed may be judged at all.

use std::collections::BTreeMap;

use super::{Estimate, Message};
use crate::offer::Offer;
use crate::record::{
    CaseError, CaseId, DeviceId, DeviceInfo, DeviceKind, Measurement, Notice, Outcome, Params, Record, Series,
    TelemetrySeries, ThermalState, Verified,
};
use crate::spec::{GpuSpec, Slice, SpecTable};
use crate::stats;
use crate::suite::{DeviceFilter, Suite};

/// Largest relative difference between device events and the run's clock; beyond it the run is invalid.
pub const CLOCK_TOLERANCE: f64 = 0.005;

/// A value above this multiple of its physical ceiling is our own error.
pub const CEILING_TOLERANCE: f64 = 1.02;

/// Share of a device or of the machine that a process of the renter may use before the run is invalid.
pub const FOREIGN_SHARE: f64 = 0.05;

/// Everything judged together.
pub struct Facts<'a> {
    /// The run.
    pub record: &'a Record,
    /// What was demanded.
    pub suite: &'a Suite,
    /// What was sold, if stated.
    pub offer: Option<&'a Offer>,
    /// Vendor figures and bands.
    pub table: &'a SpecTable,
    /// Every case the suite asked for, planned or not, in plan order.
    pub cases: Vec<CaseFacts<'a>>,
}

/// One case with its outcome.
pub struct CaseFacts<'a> {
    /// Its id.
    pub id: &'a CaseId,
    /// Benchmark id.
    pub benchmark: &'a str,
    /// Parameters.
    pub params: &'a Params,
    /// Devices.
    pub devices: &'a [DeviceId],
    /// Thermal state asked for; `None` for cases left out of the plan.
    pub state: Option<ThermalState>,
    /// What happened.
    pub outcome: CaseOutcome<'a>,
    /// JSON pointer to it in the record.
    pub pointer: String,
}

/// What happened to a case, planned or not.
#[derive(Clone, Copy)]
pub enum CaseOutcome<'a> {
    /// Numbers.
    Measured(&'a Measurement),
    /// Cannot run here.
    Unsupported(&'a str),
    /// Was not run.
    Skipped(&'a str),
    /// Broke.
    Failed(&'a CaseError, Option<&'a Measurement>),
    /// The record holds no result for a planned case.
    Absent,
}

impl<'a> CaseFacts<'a> {
    /// Its numbers, if it was measured to the end.
    pub fn measurement(&self) -> Option<&'a Measurement> {
        match self.outcome {
            CaseOutcome::Measured(m) => Some(m),
            _ => None,
        }
    }

    /// Series of `metric` in the thermal state asked for.
    pub fn series<'s>(&'s self, metric: &'s str) -> impl Iterator<Item = &'a Series> + 's {
        let all = self.measurement().map_or(&[][..], |m| &m.series);
        all.iter().filter(move |s| s.metric.0 == metric && Some(s.state) == self.state)
    }

    /// The series the case exists for.
    pub fn primary(&self) -> Option<&'a Series> {
        self.measurement()?.series.iter().find(|s| s.primary && Some(s.state) == self.state)
    }

    /// True if it was measured, but never in the thermal state asked for.
    pub fn is_in_other_state(&self) -> bool {
        self.measurement().is_some_and(|m| !m.series.is_empty() && m.series.iter().all(|s| Some(s.state) != self.state))
    }

    /// A wrong result seen at any time, also before the case broke off.
    pub fn wrong(&self) -> Option<&'a str> {
        let measurement = match self.outcome {
            CaseOutcome::Measured(m) | CaseOutcome::Failed(_, Some(m)) => m,
            _ => return None,
        };
        match &measurement.verification.verified {
            Verified::Wrong { detail } => Some(detail),
            _ => None,
        }
    }

    /// True if the word for every filter name is what the filter says, in parameters or `labels`.
    pub fn matches(&self, filter: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
        filter.iter().all(|(name, word)| match self.params.0.get(name) {
            Some(value) => is_same(value, word),
            None => labels.get(name) == Some(word),
        })
    }
}

/// Filters write sizes either as people do ("256 MiB") or in bytes.
fn is_same(value: &crate::record::Value, word: &str) -> bool {
    use crate::record::Value;
    let number = match value {
        Value::Word(w) => return w == word,
        Value::Int(n) | Value::Size(n) => *n as f64,
    };
    word.parse::<crate::unit::Quantity>().is_ok_and(|q| q.value == number)
}

impl<'a> Facts<'a> {
    /// Brings the parts together.
    pub fn new(record: &'a Record, suite: &'a Suite, offer: Option<&'a Offer>, table: &'a SpecTable) -> Facts<'a> {
        let mut results: BTreeMap<&CaseId, (usize, &Outcome)> = BTreeMap::new();
        for (i, result) in record.results.iter().enumerate() {
            results.entry(&result.id).or_insert((i, &result.outcome));
        }
        let planned = record.plan.cases.iter().enumerate().map(|(i, case)| {
            let (outcome, pointer) = match results.get(&case.id) {
                Some((r, outcome)) => (CaseOutcome::from(*outcome), format!("/results/{r}")),
                None => (CaseOutcome::Absent, format!("/plan/cases/{i}")),
            };
            CaseFacts {
                id: &case.id,
                benchmark: &case.benchmark,
                params: &case.params,
                devices: &case.devices,
                state: Some(case.state),
                outcome,
                pointer,
            }
        });
        let left_out = record.plan.not_planned.iter().enumerate().map(|(i, case)| CaseFacts {
            id: &case.id,
            benchmark: &case.benchmark,
            params: &case.params,
            devices: &case.devices,
            state: None,
            outcome: match case.unsupported {
                true => CaseOutcome::Unsupported(&case.reason),
                false => CaseOutcome::Skipped(&case.reason),
            },
            pointer: format!("/plan/not_planned/{i}"),
        });
        let cases = planned.chain(left_out).collect();
        Facts { record, suite, offer, table, cases }
    }

    /// The device with this id.
    pub fn device(&self, id: &DeviceId) -> Option<&'a DeviceInfo> {
        self.record.inventory.device(id)
    }

    /// Devices chosen for the run.
    pub fn selected(&self) -> impl Iterator<Item = &'a DeviceInfo> + '_ {
        self.record.inventory.selected.iter().filter_map(|id| self.device(id))
    }

    /// Selected GPUs.
    pub fn gpus(&self) -> impl Iterator<Item = &'a DeviceInfo> + '_ {
        self.selected().filter(|d| d.kind == DeviceKind::Gpu)
    }

    /// JSON pointer to a device.
    pub fn device_pointer(&self, id: &DeviceId) -> String {
        let index = self.record.inventory.devices.iter().position(|d| d.id == *id);
        index.map_or("/inventory/devices".to_owned(), |i| format!("/inventory/devices/{i}"))
    }

    /// The model of a device, where it is known.
    pub fn spec(&self, device: &DeviceInfo) -> Option<&'a GpuSpec> {
        self.table.get(device.spec.as_deref()?)
    }

    /// The slice of a GPU that a device is, by its driver's name.
    pub fn slice(&self, device: &DeviceInfo) -> Option<Slice> {
        Slice::of_name(&device.name)
    }

    /// Whether a demand for `filter` is about a case on these devices.
    pub fn is_on(&self, filter: DeviceFilter, devices: &[DeviceId]) -> bool {
        !devices.is_empty()
            && devices.iter().filter_map(|id| self.device(id)).all(|d| covers(filter, d))
            && devices.iter().all(|id| self.device(id).is_some())
    }

    /// As [`CaseFacts::matches`], before the labels of the series are known: a name that is a parameter of no case of the
    /// benchmark may be a label; one that is, and that this case lacks, is not what it says.
    pub fn may_match(&self, case: &CaseFacts<'_>, filter: &BTreeMap<String, String>) -> bool {
        let is_parameter =
            |name: &String| self.cases.iter().any(|c| c.benchmark == case.benchmark && c.params.0.contains_key(name));
        filter.iter().all(|(name, word)| match case.params.0.get(name) {
            Some(value) => is_same(value, word),
            None => !is_parameter(name),
        })
    }

    /// Readings of a sensor of `source` (a device id, or "machine").
    pub fn sensor(&self, source: &str, sensor: &str) -> Option<(&'a TelemetrySeries, String)> {
        let is_it = |s: &TelemetrySeries| s.source == source && s.sensor == sensor && !s.points.is_empty();
        let index = self.record.telemetry.series.iter().position(is_it)?;
        Some((&self.record.telemetry.series[index], format!("/telemetry/series/{index}")))
    }

    /// Values of a sensor that are numbers.
    pub fn values(&self, source: &str, sensor: &str) -> Vec<f64> {
        let points = self.sensor(source, sensor).map_or(&[][..], |(s, _)| &s.points);
        points.iter().map(|p| p.value).filter(|v| v.is_finite()).collect()
    }

    /// A telemetry state in words, lower case.
    pub fn state(&self, source: &str, name: &str) -> Option<String> {
        self.record.telemetry.states.get(&format!("{source}.{name}"))?.value().map(|t| t.to_lowercase())
    }

    /// Relative difference between device events and the run's clock in a case, over the whole case or in a typical
    /// block, whichever is larger; NaN counts as infinite.
    pub fn clock_difference(case: &CaseFacts<'_>) -> Option<f64> {
        let check = case.measurement()?.clock_check?;
        let total = (check.device.0 / check.monotonic.0 - 1.0).abs();
        let larger = total.max(check.typical.abs());
        Some(if total.is_nan() || check.typical.is_nan() { f64::INFINITY } else { larger })
    }

    /// What the arithmetic units of a CPU-type device did in this run for the type of a GEMM case. Not for GPUs, whose
    /// matrix units are faster than the units `fma_peak` measures.
    pub fn fma_peak(&self, case: &CaseFacts<'a>) -> Option<stats::Uncertainty> {
        let [device] = case.devices else { return None };
        if case.benchmark != "gemm" || self.device(device)?.kind != DeviceKind::Cpu {
            return None;
        }
        let data_type = case.params.data_type()?;
        let is_peak = |c: &&CaseFacts<'a>| {
            c.benchmark == "fma_peak" && c.devices == case.devices && c.params.data_type() == Some(data_type)
        };
        let series = self.cases.iter().find(is_peak)?.primary()?;
        let own = case.primary()?;
        (series.unit == own.unit).then(|| stats::uncertainty(&values(series))).filter(|u| u.median > 0.0)
    }

    /// Why the speed of a measured case is not judged, whatever it is. Checked in order of gravity.
    pub fn void(&self, case: &CaseFacts<'a>) -> Option<Message> {
        let measurement = case.measurement()?;
        let verification = &measurement.verification;
        match &verification.verified {
            Verified::Wrong { .. } => return Some(Message::new("reason.void")),
            Verified::NotApplicable { .. } => return Some(Message::new("reason.unverified")),
            Verified::Right if verification.checks == 0 => return Some(Message::new("reason.unverified")),
            Verified::Right if verification.worst.is_some_and(|w| w.is_nan() || w >= 1.0) => {
                return Some(Message::new("reason.unverified"));
            }
            Verified::Right => {}
        }
        if Facts::clock_difference(case).is_some_and(|d| d > CLOCK_TOLERANCE) {
            return Some(Message::new("reason.clock"));
        }
        if self.above_ceiling(case).is_some() {
            return Some(Message::new("reason.implausible"));
        }
        let changed = |n: &Notice| matches!(n, Notice::DeviceChanged { device, .. } if case.devices.contains(device));
        self.record.notices.iter().any(changed).then(|| Message::new("reason.changed"))
    }

    /// True if any process of the renter used any device or the machine more than [`FOREIGN_SHARE`].
    pub fn any_foreign_load(&self) -> bool {
        self.record.inventory.devices.iter().any(|d| self.foreign_load(std::slice::from_ref(&d.id)).is_some())
    }

    /// Processes of the renter that used a device more than [`FOREIGN_SHARE`]: name and share.
    pub fn foreign_load(&self, devices: &[DeviceId]) -> Option<(&'a str, f64)> {
        self.record.notices.iter().find_map(|n| match n {
            // A share that is not a number is not known to be small.
            Notice::ForeignProcess { device, name, share }
                if devices.contains(device) && (share.is_nan() || *share > FOREIGN_SHARE) =>
            {
                Some((name.as_str(), *share))
            }
            _ => None,
        })
    }
}

fn covers(filter: DeviceFilter, device: &DeviceInfo) -> bool {
    use crate::record::BackendId;
    let is_host = device.id.backend == BackendId::Host;
    match filter {
        DeviceFilter::Any => true,
        DeviceFilter::Gpu => device.kind == DeviceKind::Gpu,
        DeviceFilter::Cpu => device.kind == DeviceKind::Cpu && !is_host,
        DeviceFilter::Host | DeviceFilter::Machine => is_host,
    }
}

impl<'a> From<&'a Outcome> for CaseOutcome<'a> {
    fn from(outcome: &'a Outcome) -> CaseOutcome<'a> {
        match outcome {
            Outcome::Measured(m) => CaseOutcome::Measured(m),
            Outcome::Unsupported { reason } => CaseOutcome::Unsupported(reason),
            Outcome::Skipped { reason } => CaseOutcome::Skipped(reason),
            Outcome::Failed { error, partial } => CaseOutcome::Failed(error, partial.as_ref()),
        }
    }
}

/// Values of all blocks.
pub fn values(series: &Series) -> Vec<f64> {
    series.blocks.iter().map(|b| b.value).collect()
}

/// The estimate of a series; `None` unless median and uncertainty are finite.
pub fn estimate(series: &Series) -> Option<Estimate> {
    let values = values(series);
    let u = stats::uncertainty(&values);
    let drift = stats::drift(&values).relative;
    (u.median.is_finite() && u.expanded.is_finite()).then_some(Estimate {
        median: u.median,
        uncertainty: u.expanded,
        p05: u.p05,
        p95: u.p95,
        blocks: u32::try_from(u.blocks).unwrap_or(u32::MAX),
        effective_blocks: u.effective_blocks,
        drift: if drift.is_finite() { drift } else { 0.0 },
    })
}

/// True if the requirement with this id is about the case: `demand/case`, perhaps with series labels or a number after it.
pub fn is_of_case(requirement: &str, case: &CaseId) -> bool {
    let rest = requirement.split_once('/').and_then(|(_, rest)| rest.strip_prefix(case.0.as_str()));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('[') || rest.starts_with('#'))
}

/// Group of a benchmark in reports and in the roll-up.
pub fn domain(benchmark: &str) -> &'static str {
    match benchmark {
        "gemm" | "fma_peak" | "launch_latency" => "compute",
        "memory_bandwidth" | "memory_latency" => "memory",
        "host_link" => "link",
        "interference" => "interference",
        name if name.starts_with("storage") => "storage",
        _ => "other",
    }
}
