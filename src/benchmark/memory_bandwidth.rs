//! Rate at which memory is read and written by streams, as STREAM defines them.

use std::collections::BTreeMap;

use super::{Benchmark, Buffers, Check, Context, Meta, MetricMeta, Moment, ParamMeta, Work, Workload};
use crate::backend::{Arg, Device, DeviceError, Launch, Place, RawBuffer, RawKernel, Stream};
use crate::kernel::{KernelId, READ_LANES, pattern};
use crate::record::{BackendId, Better, DeviceInfo, DeviceKind, Engine, EngineKind, Observed, Params, Value, Verified};
use crate::unit::{Bytes, Quantity, Seconds, Unit};

/// Streams through arrays.
pub struct MemoryBandwidth;

static META: Meta = Meta {
    id: "memory_bandwidth",
    title: "Memory bandwidth",
    measures: "Rate at which the device's memory is read and written by one kernel that streams through large \
               arrays: read, write, copy, scale (c = s·a), add (c = a + b) and triad (c = a + s·b).",
    why: "Inference of large models, and most of what is not matrix multiplication, runs at the speed of the memory. \
          Fewer or slower memory chips than sold, and memory shared with a neighbour, show here.",
    method: "Arrays of fp32 that together hold at least four times the last-level cache (at least 1 GiB on a GPU, \
             256 MiB on a CPU; at most a quarter of the memory and 4 GiB), or `size` bytes each. Kernels move 16 bytes \
             per access. Counted are the bytes that the kernel names: 4 per element read and 4 per element written; \
             what a cache fetches before a write is not counted. All values are multiples of one half, so that results \
             and sums are exact. After each round eight pieces of 1 MiB of the result (the first, the last and six \
             that change from check to check) are compared element by element, having been overwritten before the \
             round so that it had to produce them. The exact sum of the whole result is compared before the first and \
             after the last round, on GPUs after every round; for read, whose result is the sum, always.",
    limits: "One access pattern: in order, every byte once. Random access is slower (see memory_latency). Arrays below \
             four times the last-level cache measure caches in part; such a result can only read high and never \
             passes. For small arrays the cost of launching is part of the time. CPUs fetch lines before writing them \
             unless the kernel avoids it; rates of kernels that do not are lower than what the memory delivers.",
    version: 1,
    params: &[
        ParamMeta {
            name: "op",
            words: &["read", "write", "copy", "scale", "add", "triad"],
            summary: "what is done with the arrays",
        },
        ParamMeta {
            name: "size",
            words: &[],
            summary: "bytes of one array (default: far beyond the last-level cache)",
        },
    ],
    metrics: &[MetricMeta {
        id: "memory_bandwidth.rate",
        unit: Unit::BytePerSecond,
        better: Better::Higher,
        summary: "bytes read and written per second",
    }],
};

/// What is done with the arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Read,
    Write,
    Copy,
    Scale,
    Add,
    Triad,
}

/// The factor of scale and triad.
const FACTOR: f32 = 3.0;
/// What `write` writes: sums of many are exact.
const WRITTEN: f32 = 0.5;
/// Least size of one array.
const LEAST: u64 = 4096;
/// Arrays hold this many times the last-level cache, unless a size is given.
const CACHE_FACTOR: f64 = 4.0;

impl Op {
    fn of(params: &Params) -> Result<Op, String> {
        match params.word("op") {
            Some("read") => Ok(Op::Read),
            Some("write") => Ok(Op::Write),
            Some("copy") => Ok(Op::Copy),
            Some("scale") => Ok(Op::Scale),
            Some("add") => Ok(Op::Add),
            Some("triad") => Ok(Op::Triad),
            Some(other) => Err(format!("op is read, write, copy, scale, add or triad, not \"{other}\"")),
            None => Err("op is missing: read, write, copy, scale, add or triad".to_owned()),
        }
    }

    fn kernel(self) -> KernelId {
        match self {
            Op::Read => KernelId::Read,
            Op::Write => KernelId::Write,
            Op::Copy => KernelId::Copy,
            Op::Scale => KernelId::Scale,
            Op::Add => KernelId::Add,
            Op::Triad => KernelId::Triad,
        }
    }

    /// Arrays that are read.
    fn inputs(self) -> u64 {
        match self {
            Op::Write => 0,
            Op::Read | Op::Copy | Op::Scale => 1,
            Op::Add | Op::Triad => 2,
        }
    }

    /// Arrays that are read or written; each moves its size once.
    fn arrays(self) -> u64 {
        self.inputs() + u64::from(self != Op::Read)
    }

    /// One element of the result; for `read`, what is summed.
    fn result(self, a: f32, b: f32) -> f32 {
        match self {
            Op::Read | Op::Copy => a,
            Op::Write => WRITTEN,
            Op::Scale => FACTOR * a,
            Op::Add => a + b,
            Op::Triad => a + FACTOR * b,
        }
    }
}

/// Bytes of one array before scaling.
fn array_size(device: &DeviceInfo, op: Op, params: &Params) -> Result<u64, String> {
    match params.0.get("size") {
        Some(Value::Int(size) | Value::Size(size)) if *size < LEAST => {
            Err(format!("size must be at least {}", Bytes(LEAST as f64)))
        }
        Some(Value::Int(size) | Value::Size(size)) => {
            let total = size.saturating_mul(op.arrays()) as f64;
            if total > device.memory.get() / 2.0 {
                return Err(format!("{} are more than half of the device's memory", Bytes(total)));
            }
            Ok(size / 4 * 4)
        }
        Some(Value::Word(word)) => Err(format!("size is a number of bytes, not \"{word}\"")),
        None => {
            let least = if device.kind == DeviceKind::Gpu { Bytes::gib(1) } else { Bytes::mib(256) };
            let cache = device.last_level_cache.map_or(0.0, Bytes::get);
            let most = Bytes::gib(4).get().min(device.memory.get() / 4.0);
            let total = (CACHE_FACTOR * cache).max(least.get()).min(most);
            let pages = (total / op.arrays() as f64 / LEAST as f64).ceil() as u64;
            Ok(pages.max(1) * LEAST)
        }
    }
}

/// Both in unscaled bytes: op and size of one array.
fn plan(device: &DeviceInfo, params: &Params) -> Result<(Op, u64), String> {
    let op = Op::of(params)?;
    Ok((op, array_size(device, op, params)?))
}

impl Benchmark for MemoryBandwidth {
    fn meta(&self) -> &'static Meta {
        &META
    }

    fn supports(&self, device: &DeviceInfo, params: &Params) -> Result<(), String> {
        plan(device, params).map(|_| ())
    }

    fn footprint(&self, device: &DeviceInfo, params: &Params) -> Bytes {
        let arrays = plan(device, params).map_or(0, |(op, size)| op.arrays() * size);
        Bytes(arrays as f64) + Bytes::from(READ_LANES * 4) + Bytes::from((4 + 4 + 8) * Data::TABLE)
    }

    fn prepare_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        Seconds(0.3 + self.footprint(device, params).get() / 2e9)
    }

    fn verify_estimate(&self, device: &DeviceInfo, params: &Params) -> Seconds {
        // The pieces; on GPUs also a pass over the result.
        let size = plan(device, params).map_or(0, |(_, size)| size) as f64;
        Seconds(0.02 + if device.kind == DeviceKind::Gpu { size / 2e11 } else { 0.0 })
    }

    fn prepare<'d>(&self, context: &Context<'d>, params: &Params) -> Result<Box<dyn Workload + 'd>, DeviceError> {
        let device = context.device()?;
        let (op, size) = plan(device.info(), params).map_err(DeviceError::Unsupported)?;
        Ok(Box::new(Streams::prepare(device, op, size, context.seed)?))
    }
}

/// The content of the input arrays: pieces of one table at places that depend on array and piece. Gigabytes
/// are filled at the speed of a copy, no two pieces are alike, and every element can be looked up.
struct Data {
    /// Multiples of one half from −7.5 to 7.5, symmetric about 0: sums of any subset stay small and exact.
    table: Vec<f32>,
    /// The table as a device holds it.
    bytes: Vec<u8>,
    /// Sum of the first `i` elements of the table.
    sums: Vec<f64>,
    seed: u32,
}

impl Data {
    /// Elements of a piece: 1 MiB.
    const PIECE: usize = 1 << 18;
    /// Elements of the table.
    const TABLE: usize = 2 * Data::PIECE;

    fn new(seed: u64) -> Data {
        let seed = (seed ^ (seed >> 32)) as u32;
        let table: Vec<f32> = (0..Data::TABLE as u64).map(|i| (pattern(i, seed) >> 28) as f32 - 7.5).collect();
        let mut sums = Vec::with_capacity(Data::TABLE + 1);
        let mut sum = 0.0;
        sums.push(sum);
        for value in &table {
            sum += f64::from(*value);
            sums.push(sum);
        }
        let bytes = table.iter().flat_map(|v| v.to_le_bytes()).collect();
        Data { table, bytes, sums, seed }
    }

    fn place(&self, array: u32, piece: usize) -> usize {
        pattern(piece as u64, self.seed ^ (array + 1)) as usize % Data::PIECE
    }

    /// The first `length` elements of a piece.
    fn piece(&self, array: u32, piece: usize, length: usize) -> &[f32] {
        let place = self.place(array, piece);
        &self.table[place..place + length]
    }

    /// As [`Data::piece`], as a device holds it.
    fn piece_bytes(&self, array: u32, piece: usize, length: usize) -> &[u8] {
        let place = self.place(array, piece);
        &self.bytes[4 * place..4 * (place + length)]
    }

    /// Exact sum of an array of `n` elements.
    fn sum(&self, array: u32, n: usize) -> f64 {
        let pieces = (0..n.div_ceil(Data::PIECE)).map(|piece| {
            let place = self.place(array, piece);
            self.sums[place + piece_length(n, piece)] - self.sums[place]
        });
        pieces.sum()
    }
}

/// Elements of a piece of an array of `n`.
fn piece_length(n: usize, piece: usize) -> usize {
    Data::PIECE.min(n - piece * Data::PIECE)
}

/// The prepared case.
struct Streams<'d> {
    op: Op,
    /// Elements of one array, after scaling.
    n: usize,
    /// Bytes of all arrays, before scaling.
    total: f64,
    info: DeviceInfo,
    data: Data,
    inputs: Vec<RawBuffer>,
    /// The written array; for `read`, the sums of the lanes.
    output: RawBuffer,
    /// Sums of the lanes when the result is added up.
    sums: RawBuffer,
    kernel: RawKernel,
    read: RawKernel,
    /// True if something was queued since parts of the result were overwritten.
    produced: bool,
    checks: u32,
    /// Pieces of the result that were overwritten and are compared next.
    pieces: Vec<usize>,
    _buffers: Buffers<'d>,
}

impl<'d> Streams<'d> {
    fn prepare(device: &'d dyn Device, op: Op, size: u64, seed: u64) -> Result<Streams<'d>, DeviceError> {
        let scale = u64::from(device.scale().bytes.max(1));
        let n = (size / scale / 4).max(64) as usize;
        let mut buffers = Buffers::new(device);
        let mut stream = device.stream()?;
        let data = Data::new(seed);
        let mut inputs = Vec::new();
        for array in 0..op.inputs() as u32 {
            let input = buffers.alloc(Place::Device, Bytes::from(4 * n))?;
            for piece in 0..n.div_ceil(Data::PIECE) {
                let bytes = data.piece_bytes(array, piece, piece_length(n, piece));
                stream.upload(input, 4 * piece * Data::PIECE, bytes)?;
            }
            inputs.push(input);
        }
        let sums = buffers.alloc(Place::Device, Bytes::from(4 * READ_LANES))?;
        let output = if op == Op::Read { sums } else { buffers.alloc(Place::Device, Bytes::from(4 * n))? };
        let mut streams = Streams {
            op,
            n,
            total: (n as u64 * 4 * scale * op.arrays()) as f64,
            info: device.info().clone(),
            data,
            inputs,
            output,
            sums,
            kernel: device.load(op.kernel())?,
            read: device.load(KernelId::Read)?,
            produced: false,
            checks: 0,
            pieces: Vec::new(),
            _buffers: buffers,
        };
        streams.overwrite(&mut *stream)?;
        Ok(streams)
    }

    fn launch(&self, stream: &mut dyn Stream) -> Result<(), DeviceError> {
        let n = Arg::U64(self.n as u64);
        let s = Arg::F32(FACTOR);
        let input = |i: usize| Arg::Buffer(self.inputs[i]);
        let output = Arg::Buffer(self.output);
        let launch = |stream: &mut dyn Stream, lanes: usize, args: &[Arg]| {
            stream.launch(Launch { kernel: self.kernel, lanes: lanes as u64, args })
        };
        match self.op {
            Op::Read => launch(stream, READ_LANES, &[input(0), output, n]),
            Op::Write => launch(stream, self.n, &[output, Arg::F32(WRITTEN), n]),
            Op::Copy => launch(stream, self.n, &[input(0), output, n]),
            Op::Scale => launch(stream, self.n, &[input(0), output, s, n]),
            Op::Add => launch(stream, self.n, &[input(0), input(1), output, n]),
            Op::Triad => launch(stream, self.n, &[input(0), input(1), output, s, n]),
        }
    }

    /// Chooses the pieces of the next check (the first, the last and six others) and overwrites them with
    /// something that is never right.
    fn overwrite(&mut self, stream: &mut dyn Stream) -> Result<(), DeviceError> {
        let length = self.result_length();
        let count = length.div_ceil(Data::PIECE);
        let salt = self.data.seed ^ self.checks;
        self.pieces = (0..6).map(|i| pattern(i, salt) as usize % count).chain([0, count - 1]).collect();
        self.pieces.sort_unstable();
        self.pieces.dedup();
        let nothing: Vec<u8> = f32::NAN.to_le_bytes().repeat(Data::PIECE.min(length));
        for piece in &self.pieces {
            let bytes = &nothing[..4 * piece_length(length, *piece)];
            stream.upload(self.output, 4 * piece * Data::PIECE, bytes)?;
        }
        self.checks = self.checks.wrapping_add(1);
        self.produced = false;
        Ok(())
    }

    /// Elements of the written array; for `read`, of the sums.
    fn result_length(&self) -> usize {
        if self.op == Op::Read { READ_LANES } else { self.n }
    }

    /// The exact sum of the result.
    fn expected_sum(&self) -> f64 {
        let sum = |array: u32| self.data.sum(array, self.n);
        match self.op {
            Op::Read | Op::Copy => sum(0),
            Op::Write => f64::from(WRITTEN) * self.n as f64,
            Op::Scale => f64::from(FACTOR) * sum(0),
            Op::Add => sum(0) + sum(1),
            Op::Triad => sum(0) + f64::from(FACTOR) * sum(1),
        }
    }

    /// Adds up the whole result on the device; what is wrong with it.
    fn check_sum(&self, stream: &mut dyn Stream) -> Result<Option<String>, DeviceError> {
        if self.op != Op::Read {
            let args = [Arg::Buffer(self.output), Arg::Buffer(self.sums), Arg::U64(self.n as u64)];
            stream.launch(Launch { kernel: self.read, lanes: READ_LANES as u64, args: &args })?;
        }
        let mut bytes = vec![0; 4 * READ_LANES];
        stream.download(self.sums, 0, &mut bytes)?;
        let sum: f64 = floats(&bytes).map(f64::from).sum();
        let expected = self.expected_sum();
        Ok((sum != expected).then(|| format!("the sum of the result is {sum}, right is {expected}")))
    }

    /// Compares one piece of the result; what is wrong with it.
    fn check_piece(&self, stream: &mut dyn Stream, piece: usize) -> Result<Option<String>, DeviceError> {
        let length = piece_length(self.n, piece);
        let mut bytes = vec![0; 4 * length];
        stream.download(self.output, 4 * piece * Data::PIECE, &mut bytes)?;
        let a = self.data.piece(0, piece, length);
        let b = self.data.piece(1, piece, length);
        let wrong = floats(&bytes).zip(a.iter().zip(b)).enumerate().find_map(|(i, (value, (a, b)))| {
            let expected = self.op.result(*a, *b);
            let at = piece * Data::PIECE + i;
            (value != expected).then(|| format!("element {at} is {value}, right is {expected}"))
        });
        Ok(wrong)
    }

    /// How often the arrays hold the last-level cache.
    fn times_cache(&self) -> Option<f64> {
        self.info.last_level_cache.filter(|cache| cache.get() > 0.0).map(|cache| self.total / cache.get())
    }
}

impl Workload for Streams<'_> {
    fn work(&self) -> Work {
        Work { metric: META.metrics[0].id, unit: Unit::BytePerSecond, better: Better::Higher, amount: self.total }
    }

    fn engine(&self) -> Engine {
        let cpu_driver = self.info.id.backend == BackendId::Opencl && self.info.kind == DeviceKind::Cpu;
        let kind = match self.times_cache() {
            Some(times) if times < CACHE_FACTOR => EngineKind::HighOnly,
            // A CPU's driver compiles neither wide vectors nor stores that bypass the cache.
            _ if cpu_driver => EngineKind::LowOnly,
            _ => EngineKind::Decisive,
        };
        let conditions = BTreeMap::from([("element".to_owned(), "fp32, 16 bytes per access".to_owned())]);
        Engine { name: "own kernel".to_owned(), version: None, library: None, kind, conditions }
    }

    fn enqueue(&mut self, stream: &mut dyn Stream, iterations: u64) -> Result<(), DeviceError> {
        self.produced = true;
        (0..iterations).try_for_each(|_| self.launch(stream))
    }

    fn verify(&mut self, stream: &mut dyn Stream, moment: Moment) -> Result<Check, DeviceError> {
        if !self.produced {
            self.enqueue(stream, 1)?;
        }
        // A pass over the whole result costs a GPU nothing and a CPU as much as the block itself.
        let whole = self.op == Op::Read || self.info.kind == DeviceKind::Gpu || !matches!(moment, Moment::Round(_));
        let mut wrong = if whole { self.check_sum(stream)? } else { None };
        if self.op != Op::Read {
            for piece in std::mem::take(&mut self.pieces) {
                if wrong.is_none() {
                    wrong = self.check_piece(stream, piece)?;
                }
            }
        }
        self.overwrite(stream)?;
        let method = match (self.op, self.info.kind) {
            (Op::Read, _) => "exact sum of the whole array, produced anew for each check",
            (_, DeviceKind::Gpu) => {
                "exact sum of the whole result and up to 8 pieces of 1 MiB element by element, produced anew for each \
                 check"
            }
            _ => {
                "up to 8 pieces of 1 MiB element by element, produced anew for each check; exact sum of the whole \
                 result before and after"
            }
        };
        let verified = wrong.map_or(Verified::Right, |detail| Verified::Wrong { detail });
        Ok(Check { verified, method: method.to_owned(), worst: None })
    }

    fn conditions(&self) -> BTreeMap<String, Observed<String>> {
        let times = self.times_cache().map_or_else(
            || Observed::NotObservable("the device does not report its last-level cache".to_owned()),
            |times| Observed::Value(format!("{}×", crate::unit::significant(times))),
        );
        let size = Quantity { value: self.total / self.op.arrays() as f64, unit: Unit::Byte };
        BTreeMap::from([
            ("array size".to_owned(), Observed::Value(size.to_string())),
            ("arrays against last-level cache".to_owned(), times),
        ])
    }
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_agree_with_the_elements() {
        let data = Data::new(42);
        for n in [1, 1000, Data::PIECE, 2 * Data::PIECE + 17] {
            for array in [0, 1] {
                let all: f64 = (0..n.div_ceil(Data::PIECE))
                    .flat_map(|p| data.piece(array, p, piece_length(n, p)))
                    .map(|v| f64::from(*v))
                    .sum();
                assert_eq!(data.sum(array, n), all, "n = {n}");
            }
        }
        assert_ne!(data.piece(0, 0, 64), data.piece(0, 1, 64));
        assert_ne!(data.piece(0, 0, 64), data.piece(1, 0, 64));
    }

    #[test]
    fn moved_bytes_are_those_of_the_kernel() {
        let moved = [Op::Read, Op::Write, Op::Copy, Op::Scale, Op::Add, Op::Triad].map(Op::arrays);
        assert_eq!(moved, [1, 1, 2, 2, 3, 3]);
    }
}
