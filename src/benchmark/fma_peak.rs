//! Peak rate of the arithmetic units: chains of fused multiply-adds in registers, no memory.

use std::collections::BTreeMap;

use half::f16;

use super::{Benchmark, Check, Context, Meta, MetricMeta, Moment, ParamMeta, Work, Workload};
use crate::backend::{Arg, Device, DeviceError, Launch, Place, RawBuffer, RawKernel, Stream};
use crate::kernel::KernelId;
use crate::record::{Better, DataType, DeviceInfo, Engine, EngineKind, Observed, Params, Verified};
use crate::unit::{Bytes, Seconds, Unit};

const METRIC: &str = "fma_peak.throughput";

static META: Meta = Meta {
    id: "fma_peak",
    title: "Peak arithmetic",
    measures: "Operations per second of the device's ordinary arithmetic units (no matrix units), in one type.",
    why: "It is the ceiling of everything that does not use matrix units, and shows missing units and low clocks \
        directly: the rate is units × operations per clock × clock. On a CPU it is the ceiling that the matrix \
        products of the same run are compared with.",
    method: "Every lane runs one chain x = x·m + k of fused multiply-adds (int8: x += dot product of four byte \
        pairs) in registers; there are many more lanes than the device can run at once. m = −(1 − 2⁻²⁰) (fp16: \
        −(1 − 2⁻¹⁰)) and k = 3 let x swing between 1 and 2 without ever settling within a launch, so that operand bits keep toggling. \
        A fused multiply-add counts as two operations, a dot product of four as eight. After every round all \
        lanes are compared bit for bit with a scalar reference and then overwritten.",
    limits: "Says nothing about memory. Compilers of GPU drivers may not reach the peak of every architecture with \
        one source text: a low reading alone does not condemn a device. In fp16 the chain enters a cycle of few \
        values, so that the number of steps is proven less strictly than in the other types.",
    version: 1,
    params: &[ParamMeta { name: "type", words: &["fp64", "fp32", "fp16", "int8"], summary: "arithmetic type" }],
    metrics: &[MetricMeta {
        id: METRIC,
        unit: Unit::FlopPerSecond,
        better: Better::Higher,
        summary: "operations per second (int8: OP/s)",
    }],
};

/// Threads that one unit of a GPU holds at most.
const THREADS_PER_UNIT: u64 = 2048;
/// How often the lanes fill the device: the last, partly filled turn then matters little.
const TURNS: u64 = 3;
/// Units assumed where a device does not tell.
const UNITS: u32 = 64;
/// Factor of the int8 dot product: four different bytes of both signs.
const BYTES: i32 = 0x7f81_35a9;

/// The benchmark.
pub struct FmaPeak;

/// One arithmetic type's form.
#[derive(Debug, Clone, Copy)]
struct Form {
    data_type: DataType,
    kernel: KernelId,
    /// Steps of a chain: one launch then takes some milliseconds on CPUs and GPUs alike.
    iterations: u32,
    /// Operations of one step.
    operations: f64,
}

fn form(params: &Params) -> Result<Form, String> {
    let words = META.params[0].words;
    let word = params.word("type").ok_or_else(|| format!("\"type\" is missing ({})", words.join(", ")))?;
    let form = |kernel, iterations, operations, data_type| Ok(Form { data_type, kernel, iterations, operations });
    match word.parse()? {
        t @ DataType::Fp64 => form(KernelId::FmaFp64, 1 << 12, 2.0, t),
        t @ DataType::Fp32 => form(KernelId::FmaFp32, 1 << 13, 2.0, t),
        t @ DataType::Fp16 => form(KernelId::FmaFp16, 1 << 13, 2.0, t),
        t @ DataType::Int8 => form(KernelId::DotInt8, 1 << 13, 8.0, t),
        other => Err(format!("no chain kernel for {other} ({})", words.join(", "))),
    }
}

fn lanes(device: &DeviceInfo, kernel: KernelId) -> u64 {
    u64::from(device.units.unwrap_or(UNITS).max(1)) * THREADS_PER_UNIT * kernel.lanes_per_item() * TURNS
}

/// Bytes of one lane's result.
fn lane_size(data_type: DataType) -> usize {
    if data_type.is_integer() { 4 } else { data_type.size() }
}

/// Step of the floating-point chains. Both are exact in every type that uses them.
fn step(data_type: DataType) -> (f64, f64) {
    let contraction = if data_type == DataType::Fp16 { -10 } else { -20 };
    (-(1.0 - 2f64.powi(contraction)), 3.0)
}

impl Benchmark for FmaPeak {
    fn meta(&self) -> &'static Meta {
        &META
    }

    fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String> {
        let form = form(params)?;
        if device.fma_types.contains(&form.data_type) {
            Ok(())
        } else {
            Err(format!("this device has no {} arithmetic", form.data_type))
        }
    }

    fn footprint(&self, device: &DeviceInfo, params: &Params) -> Bytes {
        form(params).map_or(Bytes(0.0), |f| Bytes(lanes(device, f.kernel) as f64 * lane_size(f.data_type) as f64))
    }

    fn prepare_estimate(&self, _device: &DeviceInfo, _params: &Params) -> Seconds {
        Seconds(0.2)
    }

    fn verify_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        Seconds(0.002 + self.footprint(device, params).get() / 2e9)
    }

    fn prepare<'d>(&self, context: &Context<'d>, params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        let device = context.devices.first().ok_or_else(|| DeviceError::Unsupported("no device".to_owned()))?;
        let form = form(params).map_err(DeviceError::Unsupported)?;
        Ok(Box::new(Chains::new(&**device, form)?))
    }
}

/// A prepared launch.
struct Chains<'d> {
    device: &'d dyn Device,
    form: Form,
    lanes: u64,
    /// Steps of one launch, scaled.
    iterations: u32,
    kernel: RawKernel,
    poison: RawKernel,
    out: RawBuffer,
    /// Expected bytes of all lanes, or of the period of 64 after which floating-point lanes repeat.
    expected: Vec<u8>,
    rounds: u32,
    /// The lanes hold results of work queued since the last check.
    is_fresh: bool,
}

impl<'d> Chains<'d> {
    fn new(device: &'d dyn Device, form: Form) -> Result<Chains<'d>, DeviceError> {
        // Divided like all buffers; what is left still holds whole periods of 64 lanes.
        let lanes = (lanes(device.info(), form.kernel) / u64::from(device.scale().bytes.max(1))).next_multiple_of(64);
        let iterations = (form.iterations / device.scale().iterations.max(1)).max(1);
        let (kernel, poison) = (device.load(form.kernel)?, device.load(KernelId::PatternWrite)?);
        let expected = expected(form.data_type, lanes, iterations);
        let out = device.alloc(Place::Device, Bytes::from(lanes as usize * lane_size(form.data_type)))?;
        Ok(Chains { device, form, lanes, iterations, kernel, poison, out, expected, rounds: 0, is_fresh: false })
    }

    fn args(&self) -> Vec<Arg> {
        let (m, k) = step(self.form.data_type);
        let (out, iterations) = (Arg::Buffer(self.out), Arg::U32(self.iterations));
        match self.form.data_type {
            DataType::Fp64 => vec![out, Arg::F64(m), Arg::F64(k), iterations],
            DataType::Int8 => vec![out, Arg::I32(BYTES), iterations],
            _ => vec![out, Arg::F32(m as f32), Arg::F32(k as f32), iterations],
        }
    }

    fn launch(&self, stream: &mut dyn Stream) -> Result<(), DeviceError> {
        stream.launch(Launch { kernel: self.kernel, lanes: self.lanes, args: &self.args() })
    }

    /// Overwrites the results, so that a launch that does nothing cannot pass.
    fn overwrite(&mut self, stream: &mut dyn Stream) -> Result<(), DeviceError> {
        self.rounds += 1;
        let words = self.lanes * lane_size(self.form.data_type) as u64 / 4;
        let args = [Arg::Buffer(self.out), Arg::U32(self.rounds), Arg::U32(0), Arg::U64(words)];
        stream.launch(Launch { kernel: self.poison, lanes: words, args: &args })?;
        stream.synchronize()
    }

    fn compare(&self, stream: &mut dyn Stream) -> Result<Option<String>, DeviceError> {
        stream.synchronize()?;
        let size = lane_size(self.form.data_type);
        let mut found = vec![0; self.lanes as usize * size];
        stream.download(self.out, 0, &mut found)?;
        let wrong = found.chunks(self.expected.len()).enumerate().find_map(|(p, found)| {
            let expected = &self.expected[..found.len()];
            let at = (found != expected).then(|| found.iter().zip(expected).position(|(f, e)| f != e))??;
            Some(p * self.expected.len() / size + at / size)
        });
        Ok(wrong.map(|lane| format!("lane {lane} of {} differs from the scalar reference", self.lanes)))
    }
}

impl Drop for Chains<'_> {
    fn drop(&mut self) {
        self.device.free(self.out);
    }
}

/// Bytes of the lanes after `iterations` steps: one period of 64 for floating-point types, all for int8.
fn expected(data_type: DataType, lanes: u64, iterations: u32) -> Vec<u8> {
    let (m, k) = step(data_type);
    let starts = (0..64).map(|lane| 1.0 + f64::from(lane) / 64.0);
    match data_type {
        DataType::Fp64 => {
            let chain = |x: f64| (0..iterations).fold(x, |x, _| x.mul_add(m, k));
            starts.flat_map(|x| chain(x).to_le_bytes()).collect()
        }
        DataType::Fp16 => starts.flat_map(|x| fp16_chain(x, m, k, iterations).to_le_bytes()).collect(),
        DataType::Int8 => (0..lanes as u32).flat_map(|lane| int8_chain(lane, iterations).to_le_bytes()).collect(),
        _ => {
            let chain = |x: f32| (0..iterations).fold(x, |x, _| x.mul_add(m as f32, k as f32));
            starts.flat_map(|x| chain(x as f32).to_le_bytes()).collect()
        }
    }
}

/// The fp16 chain with one rounding per step: products of 11-bit numbers between 1 and 2, and their sums
/// with 3, are exact in f64.
fn fp16_chain(start: f64, m: f64, k: f64, iterations: u32) -> f16 {
    let start = f16::from_f64(start);
    let mut x = start;
    for i in 0..iterations {
        x = f16::from_f64(x.to_f64() * m + k);
        // An 11-bit state repeats soon: the rest is whole turns of the cycle. Only a return to the first
        // value is looked for; chains that settle elsewhere are followed to their end.
        if x == start {
            return fp16_chain_plain(start, m, k, (iterations - i - 1) % (i + 1));
        }
    }
    x
}

fn fp16_chain_plain(start: f16, m: f64, k: f64, iterations: u32) -> f16 {
    (0..iterations).fold(start, |x, _| f16::from_f64(x.to_f64() * m + k))
}

/// Every step adds the same dot product, modulo 2³².
fn int8_chain(lane: u32, iterations: u32) -> i32 {
    let x = lane.wrapping_mul(0x0101_0101).to_le_bytes();
    let dot: i32 = BYTES.to_le_bytes().iter().zip(x).map(|(a, b)| i32::from(*a as i8) * i32::from(b as i8)).sum();
    (lane as i32).wrapping_add(dot.wrapping_mul(iterations as i32))
}

impl Workload for Chains<'_> {
    fn work(&self) -> Work {
        let unit = if self.form.data_type.is_integer() { Unit::OpPerSecond } else { Unit::FlopPerSecond };
        let lanes = self.lanes as f64 * f64::from(self.device.scale().bytes);
        let amount = lanes * f64::from(self.form.iterations) * self.form.operations;
        Work { metric: METRIC, unit, better: Better::Higher, amount }
    }

    fn engine(&self) -> Engine {
        let info = self.device.info();
        let mut conditions = BTreeMap::from([("kernel".to_owned(), self.form.kernel.entry().to_owned())]);
        conditions.extend(info.attributes.get("instruction_sets").map(|s| ("instruction_sets".to_owned(), s.clone())));
        Engine {
            name: format!("own {} kernel", info.id.backend),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            library: None,
            kind: EngineKind::LowOnly,
            conditions,
        }
    }

    fn enqueue(&mut self, stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        for _ in 0..iterations {
            self.launch(stream)?;
        }
        self.is_fresh |= iterations > 0;
        Ok(())
    }

    fn verify(&mut self, stream: &mut dyn Stream, moment: Moment) -> Result<Check, DeviceError> {
        if moment == Moment::Before {
            self.overwrite(stream)?;
            self.is_fresh = false;
        }
        // Nothing ran since the results were overwritten (before the first block, after the last, a block in which
        // a neighbour got no turn): run once, there is nothing else to check.
        if !self.is_fresh {
            self.launch(stream)?;
        }
        let wrong = self.compare(stream)?;
        self.overwrite(stream)?;
        self.is_fresh = false;
        let worst = if wrong.is_some() { None } else { Some(0.0) };
        Ok(Check {
            verified: wrong.map_or(Verified::Right, |detail| Verified::Wrong { detail }),
            method: "every lane bit for bit against a scalar chain after each round, then overwritten".to_owned(),
            worst,
        })
    }

    fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        BTreeMap::from([
            ("lanes".to_owned(), Observed::Value(self.lanes.to_string())),
            ("steps".to_owned(), Observed::Value(self.iterations.to_string())),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::backend::host::Host;
    use crate::record::{BackendId, DeviceId, Value};

    fn params(word: &str) -> Params {
        Params::default().with("type", Value::Word(word.to_owned()))
    }

    fn devices() -> Vec<Box<dyn Device>> {
        vec![Host.open(&DeviceId::new(BackendId::Host, 0)).unwrap()]
    }

    #[test]
    fn every_type_of_this_host_is_right_and_a_changed_lane_is_wrong() {
        let devices = devices();
        let context = Context { devices: &devices, seed: 1, storage: None, aggressor: false };
        for word in META.params[0].words {
            if let Err(reason) = FmaPeak.supports(devices[0].info(), &params(word)) {
                eprintln!("skipped: {word}: {reason}");
                continue;
            }
            let form = form(&params(word)).unwrap();
            // Few steps: the meaning is the same, and unoptimised builds stay quick.
            let form = Form { iterations: 101, ..form };
            let mut chains = Chains::new(&*context.devices[0], form).unwrap();
            let mut stream = devices[0].stream().unwrap();
            for moment in [Moment::Before, Moment::Round(0), Moment::Round(1), Moment::After] {
                if matches!(moment, Moment::Round(_)) {
                    chains.enqueue(&mut *stream, 2).unwrap();
                }
                let check = chains.verify(&mut *stream, moment).unwrap();
                assert_eq!(check.verified, Verified::Right, "{word} {moment:?}");
            }
            // A launch that did nothing leaves the overwritten results.
            chains.is_fresh = true;
            let check = chains.verify(&mut *stream, Moment::Round(2)).unwrap();
            assert!(matches!(check.verified, Verified::Wrong { .. }), "{word}");
            // One bit of one lane.
            for lane in [0, chains.lanes - 1, chains.lanes / 2 + 7] {
                chains.enqueue(&mut *stream, 1).unwrap();
                let mut byte = [0];
                let at = lane as usize * lane_size(form.data_type);
                stream.download(chains.out, at, &mut byte).unwrap();
                stream.upload(chains.out, at, &[byte[0] ^ 1]).unwrap();
                let check = chains.verify(&mut *stream, Moment::Round(3)).unwrap();
                let Verified::Wrong { detail } = check.verified else { panic!("{word} lane {lane} passed") };
                assert!(detail.contains(&format!("lane {lane} ")), "{detail}");
            }
        }
    }

    #[test]
    fn one_step_less_gives_another_result() {
        for data_type in [DataType::Fp64, DataType::Fp32, DataType::Fp16, DataType::Int8] {
            let iterations = form(&params(data_type.name())).unwrap().iterations;
            let full = expected(data_type, 512, iterations);
            assert_ne!(full, expected(data_type, 512, iterations - 1), "{data_type}");
            if data_type != DataType::Fp16 {
                assert_ne!(full, expected(data_type, 512, iterations - 2), "{data_type}");
                assert_ne!(full, expected(data_type, 512, iterations / 2), "{data_type}");
            }
        }
    }

    #[test]
    fn the_shortcut_of_the_fp16_chain_changes_nothing() {
        let (m, k) = step(DataType::Fp16);
        for lane in 0..64 {
            let start = 1.0 + f64::from(lane) / 64.0;
            for iterations in [0, 1, 2, 7, 100, 1001] {
                let plain = fp16_chain_plain(f16::from_f64(start), m, k, iterations);
                assert_eq!(fp16_chain(start, m, k, iterations), plain);
            }
        }
    }

    #[test]
    fn work_counts_every_operation() {
        let devices = devices();
        let context = Context { devices: &devices, seed: 1, storage: None, aggressor: false };
        let units = f64::from(devices[0].info().units.unwrap());
        let work = FmaPeak.prepare(&context, &params("fp32")).unwrap().work();
        assert_eq!(work.amount, units * 2048.0 * 8.0 * 3.0 * 8192.0 * 2.0);
        let work = FmaPeak.prepare(&context, &params("int8")).unwrap().work();
        assert_eq!((work.amount, work.unit), (units * 2048.0 * 8.0 * 3.0 * 8192.0 * 8.0, Unit::OpPerSecond));
        assert!(FmaPeak.supports(devices[0].info(), &params("bf16")).is_err());
        assert!(FmaPeak.supports(devices[0].info(), &Params::default()).is_err());
    }
}
