//! Matrix multiplication: the work that GPUs are rented for.

mod data;
mod exact;
mod freivalds;

use std::collections::BTreeMap;

use self::data::{Content, Stored};
use self::exact::Exact;
use self::freivalds::{Freivalds, Inputs};
use super::{Benchmark, Check, Context, Meta, MetricMeta, Moment, ParamMeta, Work, Workload};
use crate::backend::{Arg, Device, DeviceError, GemmPlan, GemmProblem, Launch, Place, RawBuffer, RawKernel, Stream};
use crate::kernel::KernelId;
use crate::record::{Better, DataType, DeviceInfo, DeviceKind, Engine, Observed, Params, Verified};
use crate::unit::{Bytes, Seconds, Unit};

const METRIC: &str = "gemm.throughput";

/// Fresh random vectors; each round uses the next.
const VECTORS: usize = 8;

static META: Meta = Meta {
    id: "gemm",
    title: "Matrix multiplication",
    measures: "Operations per second of C = A·Bᵀ with square matrices, in one arithmetic type, sustained over \
        back-to-back multiplications on the device's best engine.",
    why: "Training and inference spend most of their time in matrix products. The rate is what a price per \
        hour should buy, and it falls when power is capped, the chip is hot, units are missing or somebody \
        shares the device.",
    method: "A and B hold normal random numbers of deviation 1 (int8: deviation 36, rounded, the full range \
        −128…127 occurs), made from the run's seed by a counter-based generator: the same for everyone. The \
        vendor's library multiplies where there is one, our own kernels otherwise; the engine is recorded. \
        m = n = k; one multiplication counts 2·n³ operations. Before anything is timed and after the last \
        block the same plan multiplies exact data into the same C: ternary numbers whose partial sums every type \
        holds exactly (at most 2048 for fp16, 256 for bf16; int8: all 256 byte values), where eight rows and \
        eight columns are compared element by element and all of C by Freivalds' check without tolerance. After \
        every round the C that was timed is checked whole: Freivalds' check with a fresh vector of ±1 and a \
        rounding bound below half a typical element, no NaN or infinity, and a digest equal to that of every \
        other round. Then C is overwritten with a pattern, so that the next round must compute it again.",
    limits: "Square shapes that fill the device say little about small or thin ones. Random data draws more power \
        than zeros or sparse data. fp32 is never replaced by TF32. A rate from an engine of our own may be lower \
        than the hardware allows, and is marked so. Several wrong elements in one row can cancel in one round's \
        check with a probability of at most 1/2, but not in all rounds.",
    version: 1,
    params: &[
        ParamMeta {
            name: "type",
            words: &["fp64", "fp32", "tf32", "fp16", "bf16", "int8"],
            summary: "arithmetic type of the inputs",
        },
        ParamMeta { name: "n", words: &[], summary: "edge of the matrices; default 8192, on CPUs 2048" },
    ],
    metrics: &[MetricMeta {
        id: METRIC,
        unit: Unit::FlopPerSecond,
        better: Better::Higher,
        summary: "operations per second of complete, verified products (int8: OP/s)",
    }],
};

/// The benchmark.
pub struct Gemm;

/// Type and edge asked for.
fn request(device: &DeviceInfo, params: &Params) -> Result<(DataType, usize), String> {
    let words = META.params[0].words;
    let word = params.word("type").ok_or_else(|| format!("\"type\" is missing ({})", words.join(", ")))?;
    let data_type: DataType = word.parse()?;
    if !words.contains(&data_type.name()) {
        return Err(format!("no data for {data_type} products ({})", words.join(", ")));
    }
    let default = if device.kind == DeviceKind::Gpu { 8192 } else { 2048 };
    let n = params.int("n").unwrap_or(default);
    match usize::try_from(n) {
        // Beyond 2¹⁸ sums of int8 products would leave the integers that f64 checks exactly.
        Ok(n) if (16..=1 << 18).contains(&n) => Ok((data_type, n)),
        _ => Err(format!("n = {n} is not between 16 and {}", 1 << 18)),
    }
}

/// Unit in which a type's rate is counted.
fn rate_unit(data_type: DataType) -> Unit {
    if data_type.is_integer() { Unit::OpPerSecond } else { Unit::FlopPerSecond }
}

fn size_c(data_type: DataType) -> usize {
    if data_type.is_integer() { 4 } else { data_type.size() }
}

impl Benchmark for Gemm {
    fn meta(&self) -> &'static Meta {
        &META
    }

    fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String> {
        let (data_type, _) = request(device, params)?;
        if !device.gemm_types.contains(&data_type) {
            return Err(format!("no engine multiplies {data_type} matrices on this device"));
        }
        Ok(())
    }

    fn footprint(&self, device: &DeviceInfo, params: &Params) -> Bytes {
        let Ok((data_type, n)) = request(device, params) else { return Bytes(0.0) };
        // A and B twice (random and exact), C; half as much again for an engine's workspace or packed panels.
        let elements = n as f64 * n as f64;
        Bytes(elements * (6.0 * data_type.size() as f64 + size_c(data_type) as f64))
    }

    fn prepare_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        let elements = scaled_elements(device, params);
        // Four matrices of random numbers, and eight vectors through both inputs: about 100 ns per element
        // and core, on up to eight cores.
        Seconds(0.1 + elements * 100e-9 / data::threads() as f64)
    }

    fn verify_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        // Downloading C, one pass over it, one over the pattern.
        Seconds(0.002 + scaled_elements(device, params) * 6e-9 / data::threads() as f64 * 2.0)
    }

    fn prepare<'d>(&self, context: &Context<'d>, params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        let device = context.devices.first().ok_or_else(|| DeviceError::Unsupported("no device".to_owned()))?;
        let (data_type, n) = request(device.info(), params).map_err(DeviceError::Unsupported)?;
        let edge = (n / device.scale().edge.max(1) as usize).max(16);
        let problem = GemmProblem { data_type, m: edge, n: edge, k: edge };
        Ok(Box::new(Product::new(&**device, problem, n, context.seed)?))
    }
}

/// Elements of one matrix as it is really computed.
fn scaled_elements(device: &DeviceInfo, params: &Params) -> f64 {
    let edge = request(device, params).map_or(0, |(_, n)| n) as f64 / f64::from(device.scale.edge.max(1));
    edge * edge
}

/// Buffers that are freed together.
struct Buffers<'d> {
    device: &'d dyn Device,
    all: Vec<RawBuffer>,
}

impl Buffers<'_> {
    fn alloc(&mut self, size: usize) -> Result<RawBuffer, DeviceError> {
        let buffer = self.device.alloc(Place::Device, Bytes::from(size))?;
        self.all.push(buffer);
        Ok(buffer)
    }

    fn filled(&mut self, data: &[u8]) -> Result<RawBuffer, DeviceError> {
        let buffer = self.alloc(data.len())?;
        self.device.stream()?.upload(buffer, 0, data)?;
        Ok(buffer)
    }
}

impl Drop for Buffers<'_> {
    fn drop(&mut self) {
        for buffer in self.all.drain(..) {
            self.device.free(buffer);
        }
    }
}

/// A prepared multiplication.
struct Product<'d> {
    problem: GemmProblem,
    /// Operations that were asked for, before scaling.
    operations: f64,
    plan: GemmPlan,
    /// Random inputs.
    a: RawBuffer,
    b: RawBuffer,
    /// Exact inputs of the same shape.
    exact_a: RawBuffer,
    exact_b: RawBuffer,
    /// The result of both.
    c: RawBuffer,
    stored: Stored,
    poison: RawKernel,
    freivalds: Freivalds,
    exact: Exact,
    /// Digest of the first product of the random inputs.
    digest: Option<u64>,
    /// C holds a product of work queued since the last check.
    is_fresh: bool,
    checks: usize,
    seed: u64,
    _buffers: Buffers<'d>,
}

impl<'d> Product<'d> {
    fn new(device: &'d dyn Device, problem: GemmProblem, asked: usize, seed: u64) -> Result<Product<'d>, DeviceError> {
        let GemmProblem { data_type, m, n, k } = problem;
        let plan = device.gemm(&problem)?;
        let stored = if data_type.is_integer() { Stored::Int32 } else { Stored::Input(data_type) };
        if plan.size_c != stored.size() {
            let message = format!("C of {data_type} has elements of {} bytes", plan.size_c);
            return Err(DeviceError::Driver { call: "gemm".to_owned(), message });
        }
        let mut buffers = Buffers { device, all: Vec::new() };

        let (data_a, data_b) = (
            data::matrix(Content::Normal, data_type, seed, 1, m * k),
            data::matrix(Content::Normal, data_type, seed, 2, n * k),
        );
        let inputs = Inputs { problem, a: &data_a, b: &data_b };
        let rounds = (!data_type.is_integer()).then_some((plan.unit_roundoff, plan.output_roundoff));
        let freivalds = Freivalds::new(inputs, rounds, VECTORS, seed);
        let (a, b) = (buffers.filled(&data_a)?, buffers.filled(&data_b)?);
        drop((data_a, data_b));

        let (data_a, data_b) = exact::inputs(&problem, seed);
        let exact = Exact::new(Inputs { problem, a: &data_a, b: &data_b }, seed);
        let (exact_a, exact_b) = (buffers.filled(&data_a)?, buffers.filled(&data_b)?);

        let c = buffers.alloc(m * n * plan.size_c)?;
        let poison = device.load(KernelId::PatternWrite)?;
        let operations = 2.0 * (asked as f64).powi(3);
        Ok(Product {
            problem,
            operations,
            plan,
            a,
            b,
            exact_a,
            exact_b,
            c,
            stored,
            poison,
            freivalds,
            exact,
            digest: None,
            is_fresh: false,
            checks: 0,
            seed,
            _buffers: buffers,
        })
    }

    fn size_c(&self) -> usize {
        self.problem.m * self.problem.n * self.plan.size_c
    }

    fn download(&self, stream: &mut dyn Stream) -> Result<Vec<u8>, DeviceError> {
        stream.synchronize()?;
        let mut c = vec![0; self.size_c()];
        stream.download(self.c, 0, &mut c)?;
        Ok(c)
    }

    /// Overwrites C, so that a product that is not computed cannot be taken for the one before.
    fn overwrite(&mut self, stream: &mut dyn Stream) -> Result<(), DeviceError> {
        self.checks += 1;
        let words = self.size_c() as u64 / 4;
        let seed = data::random(self.seed, 9, self.checks as u64) as u32;
        let args = [Arg::Buffer(self.c), Arg::U32(seed), Arg::U32(0), Arg::U64(words)];
        stream.launch(Launch { kernel: self.poison, lanes: words, args: &args })?;
        stream.synchronize()
    }

    /// The product of exact data by the same plan into the same C.
    fn check_exact(&mut self, stream: &mut dyn Stream) -> Result<Option<String>, DeviceError> {
        self.overwrite(stream)?;
        stream.gemm(self.plan.raw, self.exact_a, self.exact_b, self.c)?;
        let c = self.download(stream)?;
        Ok(self.exact.check(&c, self.stored))
    }

    /// The product of random data that is in C now: error relative to its bound, and what is wrong.
    fn check_random(&mut self, stream: &mut dyn Stream) -> Result<(f64, Option<String>), DeviceError> {
        let c = self.download(stream)?;
        let residual = self.freivalds.check(&c, self.stored, self.checks);
        let (row, column) = residual.at;
        let columns = column..(column + self.freivalds.width()).min(self.problem.n);
        let wrong = if residual.worst <= 1.0 {
            let first = *self.digest.get_or_insert(residual.digest);
            (first != residual.digest).then(|| "the same inputs gave another result than before".to_owned())
        } else {
            let place = format!("row {row}, columns {} to {}", columns.start, columns.end - 1);
            let (size, n) = (self.plan.size_c, self.problem.n);
            let mut found = vec![0.0; n];
            self.stored.decode(&c[row * n * size..][..n * size], &mut found);
            if found.iter().any(|x| x.is_nan()) {
                Some(format!("{place}: NaN"))
            } else {
                Some(format!("{place}: {:.3e} times the allowed residual", residual.worst))
            }
        };
        Ok((residual.worst, wrong))
    }

    fn method(&self) -> String {
        let bound = match self.freivalds.relative() {
            0.0 => "no tolerance".to_owned(),
            relative => format!(
                "bound {relative:.1e} typical elements of C in groups of {} columns, 8σ of rounding",
                self.freivalds.width()
            ),
        };
        format!(
            "Freivalds over all of C after each round, {} random ±1 vectors in turn, {bound}: one wrong element beyond it \
             is certain to be caught, several in a row with probability ≥ 1/2 per round; digest equal in all rounds; {} \
             before and after by the same plan: {} rows and {} columns element by element, all of C by 2 exact vectors",
            self.freivalds.vectors(),
            exact::describe(&self.problem),
            self.exact.rows(),
            self.exact.columns(),
        )
    }
}

impl Workload for Product<'_> {
    fn work(&self) -> Work {
        let unit = rate_unit(self.problem.data_type);
        Work { metric: METRIC, unit, better: Better::Higher, amount: self.operations }
    }

    fn engine(&self) -> Engine {
        self.plan.engine.clone()
    }

    fn enqueue(&mut self, stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        for _ in 0..iterations {
            stream.gemm(self.plan.raw, self.a, self.b, self.c)?;
        }
        self.is_fresh |= iterations > 0;
        Ok(())
    }

    fn verify(&mut self, stream: &mut dyn Stream, moment: Moment) -> Result<Check, DeviceError> {
        let (worst, wrong) = match moment {
            Moment::Round(_) => {
                // A block in which this process got no turn left nothing to check: run once.
                if !self.is_fresh {
                    stream.gemm(self.plan.raw, self.a, self.b, self.c)?;
                }
                self.check_random(stream)?
            }
            Moment::Before | Moment::After => match self.check_exact(stream)? {
                Some(wrong) => (f64::INFINITY, Some(format!("exact data: {wrong}"))),
                None => {
                    self.overwrite(stream)?;
                    stream.gemm(self.plan.raw, self.a, self.b, self.c)?;
                    self.check_random(stream)?
                }
            },
        };
        self.overwrite(stream)?;
        self.is_fresh = false;
        let verified = wrong.map_or(Verified::Right, |detail| Verified::Wrong { detail });
        Ok(Check { verified, method: self.method(), worst: worst.is_finite().then_some(worst) })
    }

    fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        let GemmProblem { m, n, k, .. } = self.problem;
        let value = |text: String| Observed::Value(text);
        BTreeMap::from([
            ("shape".to_owned(), value(format!("{m}×{n}×{k}"))),
            ("data".to_owned(), value(format!("seeded normal, seed {}", self.seed))),
            ("unit_roundoff".to_owned(), value(format!("{:.3e}", self.plan.unit_roundoff))),
        ])
    }
}

#[cfg(test)]
mod tests;
