//! How fast a simulated device is, and how warm: units × operations per clock × the clock its power limit and
//! temperature allow, bytes over bus width × data rate. Nothing here knows a band, a limit or an expected
//! result. The constants describe a healthy unit and are part of the simulation, not of any judgement.

use std::collections::BTreeMap;

use super::compute;
use super::describe::{Faults, Unit};
use crate::record::DataType;
use crate::spec::{GpuSpec, operations_per_clock};

/// Share of the product bus width × data rate (or of the vendor's figure, if lower) that a healthy unit reads:
/// refresh, bank conflicts and row misses take the rest. Writing and mixing cost a little more.
const DRAM_READ: f64 = 0.93;
const DRAM_WRITE: f64 = 0.92;
const DRAM_MIXED: f64 = 0.91;
/// Bytes per compute unit and clock between the units and the last cache level.
const CACHE_BYTES_PER_CLOCK: f64 = 32.0;
/// First-level cache per unit, and the load latency of each level.
const L1_BYTES: f64 = 128.0 * 1024.0;
const L1_CYCLES: f64 = 35.0;
const L2_CYCLES: f64 = 260.0;
const DRAM_NANOSECONDS: f64 = 350.0;
/// Share of the operations per clock that an unrolled multiply-add chain and a vector-unit GEMM reach.
const FMA_EFFICIENCY: f64 = 0.985;
const VECTOR_GEMM_EFFICIENCY: f64 = 0.92;
/// Work at which the edges of a matrix product cost as much as its inside.
const GEMM_EDGE: f64 = 128.0;
/// One-way PCIe rate per lane by generation, after line coding, in bytes per second.
const PCIE_LANE: [f64; 7] = [0.0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];
/// What packet headers leave of it; page-locked memory reaches this, pageable memory is staged by the CPU.
const LINK_EFFICIENCY: f64 = 0.86;
const PAGEABLE_RATE: f64 = 9e9;
/// One-way rate of the coherent link of superchips, which have no PCIe figures.
const COHERENT_LINK: f64 = 450e9;
/// Copies within host memory.
const HOST_COPY_RATE: f64 = 12e9;
/// Device time of an empty kernel.
const KERNEL_SECONDS: f64 = 1.0e-6;
/// Share of the default power an idle device draws.
const IDLE_POWER: f64 = 0.12;
/// Air or water at the cooler, in °C; temperature at the default power; where slowing down begins.
const AMBIENT: f64 = 30.0;
const WARM: f64 = 72.0;
const SLOWDOWN: f64 = 87.0;
/// Time constant of the heat sink in seconds.
const THERMAL_TIME: f64 = 150.0;
/// Coefficient of variation of a healthy device over time slots, and their length in seconds.
const NOISE: f64 = 0.0025;
const NOISE_SLOT: f64 = 0.2;
/// Time slots in which a neighbour works or rests, and what it leaves while it works.
const NEIGHBOUR_SLOT: f64 = 0.5;
const NEIGHBOUR_LEAVES: f64 = 0.5;
/// Memory a neighbour holds.
const NEIGHBOUR_BYTES: f64 = 6.0 * 1024.0 * 1024.0 * 1024.0;
/// What an aggressor with the fault `aggressor-idle` still gets done.
const IDLE_AGGRESSOR: f64 = 0.01;

/// Throttle reasons, with the bit values of NVML's clock event reasons.
pub const THROTTLE_POWER: u32 = 0x4;
/// Slowed down by temperature.
pub const THROTTLE_THERMAL: u32 = 0x20;
/// Slowed down by the hardware, which a power brake asked for.
pub const THROTTLE_BRAKE: u32 = 0x8 | 0x80;
/// When the fault `hw-slowdown` sets in, in seconds.
const BRAKE_FROM: f64 = 10.0;
/// Rate of one link to another GPU, both directions, before and from Blackwell on; the count follows from the figure.
const PEER_LINK_RATE: f64 = 50e9;
const PEER_LINK_RATE_BLACKWELL: f64 = 100e9;

/// Share of the matrix units' rate that a vendor library reaches on large products, by architecture.
fn matrix_efficiency(architecture: &str) -> f64 {
    match architecture {
        "Volta" => 0.82,
        "Turing" => 0.80,
        "Ampere" => 0.88,
        "Ada Lovelace" => 0.85,
        "Hopper" => 0.76,
        "Blackwell" | "Blackwell Ultra" => 0.80,
        "CDNA" | "CDNA2" => 0.72,
        "CDNA3" | "CDNA4" => 0.62,
        _ => 0.65,
    }
}

/// Parts of a device that processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Arithmetic units.
    Compute,
    /// Device memory.
    Dram,
    /// The last cache level.
    Cache,
    /// The link to the host.
    Link,
}

/// Direction of a copy between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the device.
    In,
    /// From the device.
    Out,
}

/// How a kernel uses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only loads.
    Read,
    /// Only stores.
    Write,
    /// Both.
    Mixed,
}

/// One piece of work in true sizes, before any work scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// Matrix product m×n×k.
    Gemm(DataType, [f64; 3]),
    /// Multiply-add chains: operations.
    Fma(DataType, f64),
    /// Memory traffic: bytes moved, bytes touched.
    Traffic(Access, f64, f64),
    /// Dependent loads: number, bytes touched.
    Chase(f64, f64),
    /// Nothing.
    Empty,
    /// Bytes over the host link, from page-locked memory or not.
    Link(Direction, f64, bool),
    /// Bytes within host memory.
    Host(f64),
}

/// The circumstances of one piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Circumstances {
    /// Seconds since the simulation's epoch.
    pub time: f64,
    /// Processes of this run on each resource, beside this one: compute, memory, cache, link.
    pub companions: [u32; 4],
    /// This process is the neighbour of an interference case, and its victim is at work.
    pub is_neighbour: bool,
    /// Temperature now.
    pub temperature: f64,
}

/// What a piece of work costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Time on the device.
    pub seconds: f64,
    /// Clock held.
    pub clock: f64,
    /// Power drawn.
    pub power: f64,
    /// Throttle reasons.
    pub throttle: u32,
}

/// A device's physics.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    seed: u64,
    faults: Faults,
    /// Units that are there.
    pub units: u32,
    /// Bytes of memory that are there.
    pub memory: f64,
    /// Largest cache level.
    pub cache: f64,
    /// Highest clock.
    pub boost: f64,
    /// Clock that the default power allows under matrix load.
    matrix_clock: f64,
    /// Default power.
    tdp: f64,
    /// Power limit in force.
    pub power_limit: f64,
    dram_rate: f64,
    /// PCIe generation and lanes in use; `None` on superchips.
    pub link: Option<(usize, u32)>,
    link_rate: f64,
    /// Links to other GPUs: those that work and those the model has.
    pub peer_links: Option<(u32, u32)>,
    /// Operations per unit and clock: matrix products by type, with their efficiency and whether matrix units do it.
    gemm: BTreeMap<DataType, (f64, f64, bool)>,
    /// Operations per unit and clock of the vector units.
    vector: BTreeMap<DataType, f64>,
}

impl Model {
    /// Of one unit; the error says which figure is not known.
    pub fn new(unit: &Unit<'_>, seed: u64) -> Result<Model, String> {
        let (spec, faults) = (unit.spec, unit.faults.clone());
        let need = |name: &str| {
            spec.device_value(name).ok_or_else(|| format!("{} cannot be simulated: its {name} is not known", spec.id))
        };
        let units =
            spec.device_units().ok_or_else(|| format!("{} cannot be simulated: its units are not known", spec.id))?;
        let (boost, tdp) = (need("clock_boost")?, need("tdp")?);
        let printed = need("memory_bandwidth")?;
        let physical = spec.device_value("memory_bus_bits").zip(spec.device_value("memory_data_rate"));
        let dram_rate = physical.map_or(printed, |(bus, rate)| printed.min(bus * rate));
        let memory = spec.device_value("memory_reported").map_or_else(|| need("memory_size"), Ok)?;
        let link = spec.device_value("pcie_generation").zip(spec.device_value("pcie_lanes"));
        let link = link.map(|(generation, lanes)| {
            let lanes = if faults.half_link { lanes / 2.0 } else { lanes };
            (generation as usize - usize::from(faults.old_link && generation > 1.0), lanes as u32)
        });
        let link_raw = match link {
            Some((generation, lanes)) => PCIE_LANE.get(generation).copied().unwrap_or(PCIE_LANE[6]) * f64::from(lanes),
            None => COHERENT_LINK * if faults.half_link { 0.5 } else { 1.0 },
        };
        let cache = spec.device_value("l2").unwrap_or(0.0).max(spec.device_value("llc").unwrap_or(0.0));
        Ok(Model {
            seed,
            units: units - faults.fewer_units.unwrap_or(0),
            memory: memory * if faults.half_memory { 0.5 } else { 1.0 },
            cache,
            boost,
            matrix_clock: spec.device_value("clock_tensor").unwrap_or(boost),
            tdp,
            power_limit: tdp * faults.power_cap.unwrap_or(1.0),
            dram_rate: dram_rate * faults.slow_memory.unwrap_or(1.0),
            link,
            link_rate: link_raw * LINK_EFFICIENCY,
            peer_links: peer_links(spec, faults.peer_links.unwrap_or(0)),
            gemm: gemm_operations(spec),
            vector: vector_operations(spec),
            faults,
        })
    }

    /// Types it multiplies.
    pub fn gemm_types(&self) -> Vec<DataType> {
        DataType::ALL.into_iter().filter(|t| self.gemm.contains_key(t)).collect()
    }

    /// Types with a vector rate.
    pub fn fma_types(&self) -> Vec<DataType> {
        DataType::ALL.into_iter().filter(|t| self.vector.contains_key(t)).collect()
    }

    /// What `work` costs.
    pub fn cost(&self, work: Work, at: &Circumstances) -> Cost {
        let (clock, power, throttle) = self.clock(work, at);
        let per_clock = f64::from(self.units) * clock;
        let seconds = match work {
            Work::Gemm(data_type, [m, n, k]) => {
                // Types without a rate never get here: planning refuses them.
                let (operations, efficiency, _) = self.gemm.get(&data_type).copied().unwrap_or((1.0, 1.0, false));
                let slow =
                    self.faults.slow_gemm.iter().filter(|(t, _)| *t == data_type).map(|(_, f)| f).product::<f64>();
                let edges = 1.0 / (1.0 + GEMM_EDGE / m.min(n).min(k));
                let rate = per_clock * operations * efficiency * edges * slow;
                let bytes = (m * k + n * k) * data_type.size() as f64 + m * n * compute::size_c(data_type) as f64;
                let compute = 2.0 * m * n * k / (rate * self.share(Resource::Compute, at));
                // Each input passes twice: tiles are too large for the cache as a whole.
                compute.max(self.traffic_seconds(Access::Read, 2.0 * bytes, bytes, clock, at))
            }
            Work::Fma(data_type, operations) => {
                let rate = per_clock * self.vector.get(&data_type).copied().unwrap_or(1.0) * FMA_EFFICIENCY;
                operations / (rate * self.share(Resource::Compute, at))
            }
            Work::Traffic(access, bytes, touched) => self.traffic_seconds(access, bytes, touched, clock, at),
            Work::Chase(hops, touched) => hops * self.latency(touched, clock, at),
            Work::Empty => 0.0,
            Work::Link(_, bytes, pinned) => {
                let rate = self.link_rate * self.share(Resource::Link, at);
                bytes / if pinned { rate } else { rate.min(PAGEABLE_RATE) }
            }
            Work::Host(bytes) => bytes / HOST_COPY_RATE,
        };
        let lasting = match work {
            Work::Host(_) => 1.0,
            Work::Link(..) => self.noise(3, at.time),
            Work::Chase(..) => self.noise(1, at.time),
            Work::Gemm(..) | Work::Fma(..) | Work::Empty => self.noise(0, at.time) * self.hindrance(at),
            Work::Traffic(..) => self.noise(2, at.time) * self.hindrance(at),
        };
        let before = match work {
            Work::Link(..) | Work::Host(_) => 0.0,
            _ => self.faults.slow_launch.unwrap_or(0.0),
        };
        Cost { seconds: seconds / lasting + KERNEL_SECONDS + before, clock, power, throttle }
    }

    fn traffic_seconds(&self, access: Access, bytes: f64, touched: f64, clock: f64, at: &Circumstances) -> f64 {
        let cache_rate = f64::from(self.units) * clock * CACHE_BYTES_PER_CLOCK * self.share(Resource::Cache, at);
        let efficiency = match access {
            Access::Read => DRAM_READ,
            Access::Write => DRAM_WRITE,
            Access::Mixed => DRAM_MIXED,
        };
        let dram_rate = self.dram_rate * efficiency * self.share(Resource::Dram, at);
        // Everything hits up to three quarters of the cache, nothing beyond twice its size; a companion that
        // works in the cache halves what is left of it.
        let cache = self.cache * self.share(Resource::Cache, at);
        let hits = if cache > 0.0 { ((2.0 - touched / cache) / 1.25).clamp(0.0, 1.0) } else { 0.0 };
        bytes * (hits / cache_rate + (1.0 - hits) / dram_rate)
    }

    /// Seconds of one dependent load somewhere in `touched` bytes.
    fn latency(&self, touched: f64, clock: f64, at: &Circumstances) -> f64 {
        let l1 = (L1_BYTES / touched).min(1.0);
        let cached = (self.cache * self.share(Resource::Cache, at) / touched).min(1.0).max(l1);
        let queueing = 1.0 / self.share(Resource::Dram, at).sqrt();
        let dram = L2_CYCLES / clock + DRAM_NANOSECONDS * 1e-9 * queueing;
        l1 * L1_CYCLES / clock + (cached - l1) * L2_CYCLES / clock + (1.0 - cached) * dram
    }

    /// What companions leave of a resource: an equal share each.
    fn share(&self, resource: Resource, at: &Circumstances) -> f64 {
        if self.faults.aggressor_idle {
            return if at.is_neighbour { IDLE_AGGRESSOR } else { 1.0 };
        }
        1.0 / f64::from(1 + at.companions[resource as usize])
    }

    /// Clock, power and throttle reasons under this work: power rises with the cube of the clock from the idle
    /// power, and matrix products at the matrix clock draw the default power.
    fn clock(&self, work: Work, at: &Circumstances) -> (f64, f64, u32) {
        let idle = IDLE_POWER * self.tdp;
        let activity = match work {
            Work::Gemm(t, _) if self.gemm.get(&t).is_some_and(|(.., matrix)| *matrix) => 1.0,
            Work::Gemm(..) => 0.68,
            Work::Fma(..) => 0.62,
            Work::Traffic(..) => 0.45,
            Work::Chase(..) => 0.08,
            Work::Empty | Work::Link(..) | Work::Host(_) => 0.04,
        };
        let dynamic = (self.tdp - idle) * activity;
        let held = |limit: f64| (self.matrix_clock * ((limit - idle).max(0.0) / dynamic).cbrt()).min(self.boost);
        let is_hot = self.faults.thermal.is_some() && at.temperature >= SLOWDOWN - 0.5;
        // The power at which cooling just holds the slowdown temperature.
        let thermal_limit = if is_hot { (SLOWDOWN - AMBIENT) / self.heating() } else { f64::INFINITY };
        let brake = self.faults.hw_slowdown.filter(|_| at.time >= BRAKE_FROM);
        let clock = held(self.power_limit.min(thermal_limit)).min(self.boost * brake.unwrap_or(1.0));
        let power = idle + dynamic * (clock / self.matrix_clock).powi(3);
        let mut reasons = 0;
        // Also at the default limit, as drivers show it: what is the model's own limit is for others to know.
        if held(self.power_limit) < self.boost * 0.999 {
            reasons |= THROTTLE_POWER;
        }
        if is_hot && held(thermal_limit) < held(self.power_limit) * 0.999 {
            reasons |= THROTTLE_THERMAL;
        }
        if brake.is_some() {
            reasons |= THROTTLE_BRAKE;
        }
        (clock, power, reasons)
    }

    /// °C per watt of the cooler.
    fn heating(&self) -> f64 {
        match self.faults.thermal {
            None => (WARM - AMBIENT) / self.tdp,
            Some(share) => (SLOWDOWN - AMBIENT) / (self.tdp * share),
        }
    }

    /// Power without work.
    pub fn idle_power(&self) -> f64 {
        IDLE_POWER * self.tdp
    }

    /// Clock without work.
    pub fn idle_clock(&self) -> f64 {
        0.2 * self.boost
    }

    /// Temperature after `seconds` at `power`, starting from `temperature`.
    pub fn temperature(&self, temperature: f64, power: f64, seconds: f64) -> f64 {
        let end = AMBIENT + self.heating() * power;
        end + (temperature - end) * (-seconds / THERMAL_TIME).exp()
    }

    /// Temperature at the start: idle for a long time.
    pub fn idle_temperature(&self) -> f64 {
        AMBIENT + self.heating() * self.idle_power()
    }

    /// Slow-downs that are faults: drift, neighbour.
    fn hindrance(&self, at: &Circumstances) -> f64 {
        let drift = self.faults.drift.map_or(1.0, |d| (1.0 - d * at.time / 60.0).max(0.3));
        drift * if self.neighbour_works(at.time) { NEIGHBOUR_LEAVES } else { 1.0 }
    }

    /// Is someone else at work on the device?
    pub fn neighbour_works(&self, time: f64) -> bool {
        let slot = (time / NEIGHBOUR_SLOT) as u64;
        self.faults.neighbour.is_some_and(|share| uniform(self.seed ^ 0x6e62, slot) < share)
    }

    /// Memory that someone else holds.
    pub fn neighbour_memory(&self) -> f64 {
        if self.faults.neighbour.is_some() { NEIGHBOUR_BYTES } else { 0.0 }
    }

    /// Normal noise around 1, constant within a slot of time.
    fn noise(&self, kind: u64, time: f64) -> f64 {
        let cv = self.faults.unsteady.filter(|_| kind != 3).unwrap_or(NOISE);
        let slot = (time / NOISE_SLOT) as u64;
        let (u, v) = (uniform(self.seed ^ kind << 32, slot), uniform(self.seed ^ kind << 32 ^ 0x5eed, slot));
        let normal = (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        1.0 + cv * normal.clamp(-3.0, 3.0)
    }
}

/// Links to other GPUs that work and that the model has, where its figures tell of any.
fn peer_links(spec: &GpuSpec, down: u32) -> Option<(u32, u32)> {
    let each = if spec.architecture.starts_with("Blackwell") { PEER_LINK_RATE_BLACKWELL } else { PEER_LINK_RATE };
    let all = (spec.device_value("peer_bandwidth")? / each).round() as u32;
    (all > 0).then(|| (all.saturating_sub(down), all))
}

/// Uniform in [0, 1), from seed and counter (SplitMix64).
fn uniform(seed: u64, counter: u64) -> f64 {
    let mut z = seed.wrapping_add(counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Figures of matrix products by type, in order of preference; true: made by matrix units.
fn gemm_figures(data_type: DataType) -> &'static [(&'static str, bool)] {
    match data_type {
        DataType::Fp64 => &[("fp64_tensor", true), ("fp64_vector", false)],
        DataType::Fp32 => &[("fp32_matrix", true), ("fp32_vector", false)],
        DataType::Tf32 => &[("tf32_tensor", true)],
        DataType::Fp16 => &[("fp16_tensor_fp32acc", true), ("fp16_vector", false)],
        DataType::Bf16 => &[("bf16_tensor", true)],
        DataType::Fp8 => &[("fp8_tensor", true)],
        DataType::Int8 => &[("int8_tensor", true), ("int8_vector", false)],
        DataType::Fp4 => &[("fp4_tensor", true)],
    }
}

/// Operations per unit and clock of a figure: from the table, or from the figure itself where the table has no
/// entry (a vendor's cut that follows no unit count).
fn per_unit_and_clock(spec: &GpuSpec, figure: &str, matrix: bool) -> Option<f64> {
    let stated = spec.figure(figure)?.value.value;
    operations_per_clock(spec, figure).or_else(|| {
        let boost = spec.device_value("clock_boost")?;
        let clock = spec.device_value("clock_tensor").filter(|_| matrix).unwrap_or(boost);
        Some(stated / (f64::from(spec.unit_count?) * clock))
    })
}

fn gemm_operations(spec: &GpuSpec) -> BTreeMap<DataType, (f64, f64, bool)> {
    let of = |t: DataType| {
        gemm_figures(t).iter().find_map(|(figure, matrix)| {
            let operations = per_unit_and_clock(spec, figure, *matrix)?;
            let efficiency = if *matrix { matrix_efficiency(&spec.architecture) } else { VECTOR_GEMM_EFFICIENCY };
            Some((operations, efficiency, *matrix))
        })
    };
    let can = |t: &DataType| compute::roundoff(*t).is_some();
    DataType::ALL.into_iter().filter(can).filter_map(|t| Some((t, of(t)?))).collect()
}

fn vector_operations(spec: &GpuSpec) -> BTreeMap<DataType, f64> {
    let figures = [
        (DataType::Fp64, "fp64_vector"),
        (DataType::Fp32, "fp32_vector"),
        (DataType::Fp16, "fp16_vector"),
        (DataType::Int8, "int8_vector"),
    ];
    let rate = |figure| per_unit_and_clock(spec, figure, false);
    let mut all: BTreeMap<DataType, f64> = figures.into_iter().filter_map(|(t, f)| Some((t, rate(f)?))).collect();
    // A dot product of four bytes issues at half the rate of fp32 and counts eight operations instead of two.
    if let Some(fp32) = all.get(&DataType::Fp32).copied() {
        all.entry(DataType::Int8).or_insert(2.0 * fp32);
    }
    all
}
