//! Kernel launches of a simulated device: what they cost and what they compute.

use super::compute;
use super::device::SimDevice;
use super::model::{Access, Work};
use super::state::{Operation, State, refused};
use crate::backend::{Arg, DeviceError, RawBuffer};
use crate::kernel::{ArgKind, KernelId};
use crate::record::DataType;

/// Arguments of a launch, known to fit the kernel.
pub(super) struct Args<'a>(&'a [Arg]);

impl<'a> Args<'a> {
    pub(super) fn check(kernel: KernelId, args: &'a [Arg]) -> Result<Args<'a>, DeviceError> {
        let kind = |a: &Arg| match a {
            Arg::Buffer(_) => ArgKind::Buffer,
            Arg::U32(_) => ArgKind::U32,
            Arg::I32(_) => ArgKind::I32,
            Arg::U64(_) => ArgKind::U64,
            Arg::F32(_) => ArgKind::F32,
            Arg::F64(_) => ArgKind::F64,
        };
        let fits = args.len() == kernel.args().len() && args.iter().zip(kernel.args()).all(|(a, k)| kind(a) == *k);
        if fits { Ok(Args(args)) } else { Err(refused("launch", &format!("arguments do not fit {kernel}"))) }
    }
    fn buffer(&self, i: usize) -> RawBuffer {
        match self.0.get(i) {
            Some(Arg::Buffer(b)) => *b,
            _ => RawBuffer(0), // no buffer has this handle
        }
    }
    fn u32(&self, i: usize) -> u32 {
        match self.0.get(i) {
            Some(Arg::U32(x)) => *x,
            Some(Arg::I32(x)) => *x as u32,
            _ => 0,
        }
    }
    fn f32(&self, i: usize) -> f32 {
        match self.0.get(i) {
            Some(Arg::F32(x)) => *x,
            _ => 0.0,
        }
    }
    fn f64(&self, i: usize) -> f64 {
        match self.0.get(i) {
            Some(Arg::F64(x)) => *x,
            _ => 0.0,
        }
    }
    /// Lanes and the bits of every argument.
    fn bits(&self, lanes: usize) -> [u64; 6] {
        let mut bits = [lanes as u64, 0, 0, 0, 0, 0];
        for (bits, arg) in bits[1..].iter_mut().zip(self.0) {
            *bits = match *arg {
                Arg::Buffer(b) => b.0,
                Arg::U32(x) => u64::from(x),
                Arg::I32(x) => u64::from(x as u32),
                Arg::U64(x) => x,
                Arg::F32(x) => u64::from(x.to_bits()),
                Arg::F64(x) => x.to_bits(),
            };
        }
        bits
    }
    /// The element count: the only 64-bit argument.
    fn n(&self) -> usize {
        self.0.iter().find_map(|a| if let Arg::U64(n) = a { usize::try_from(*n).ok() } else { None }).unwrap_or(0)
    }
}

impl SimDevice {
    /// A launch as work in true sizes.
    pub(super) fn work_of(
        &self,
        state: &State,
        kernel: KernelId,
        lanes: u64,
        args: &Args<'_>,
    ) -> Result<Work, DeviceError> {
        let array = 4.0 * self.true_bytes(args.n());
        // Lanes are divided like the buffers that hold their results.
        let scale = f64::from(self.info.scale.iterations) * f64::from(self.info.scale.bytes);
        let operations = |each: f64, iterations: u32| lanes as f64 * each * f64::from(iterations) * scale;
        Ok(match kernel {
            KernelId::Read | KernelId::PatternVerify => Work::Traffic(Access::Read, array, array),
            KernelId::Write | KernelId::PatternWrite => Work::Traffic(Access::Write, array, array),
            KernelId::Copy | KernelId::Scale => Work::Traffic(Access::Mixed, 2.0 * array, 2.0 * array),
            KernelId::Add | KernelId::Triad => Work::Traffic(Access::Mixed, 3.0 * array, 3.0 * array),
            KernelId::FmaFp64 => Work::Fma(DataType::Fp64, operations(2.0, args.u32(3))),
            KernelId::FmaFp32 => Work::Fma(DataType::Fp32, operations(2.0, args.u32(3))),
            KernelId::FmaFp16 => Work::Fma(DataType::Fp16, operations(2.0, args.u32(3))),
            KernelId::DotInt8 => Work::Fma(DataType::Int8, operations(8.0, args.u32(2))),
            KernelId::Chase => {
                let touched = self.true_bytes(state.buffer("launch", args.buffer(0))?.data.len());
                Work::Chase(f64::from(args.u32(3)), touched)
            }
            KernelId::Empty => Work::Empty,
        })
    }
}

/// Really does what the kernel says.
pub(super) fn run_kernel(
    state: &mut State,
    kernel: KernelId,
    lanes: usize,
    args: &Args<'_>,
) -> Result<(), DeviceError> {
    let call = kernel.entry();
    let size = args.n().checked_mul(4).ok_or_else(|| refused(call, "more elements than memory holds"))?;
    let lane_bytes = |each: usize| lanes.checked_mul(each).ok_or_else(|| refused(call, "too many lanes"));
    let operation = Operation(call, args.bits(lanes));
    let both = [args.buffer(0), args.buffer(1)];
    let inputs = match kernel {
        KernelId::Read | KernelId::Copy | KernelId::Scale => &both[..1],
        KernelId::Add | KernelId::Triad => &both[..],
        _ => &[],
    };
    for input in inputs {
        state.bytes(call, *input, size)?;
    }
    match kernel {
        KernelId::Empty => Ok(()),
        KernelId::Read => {
            if lanes == 0 {
                return Err(refused(call, "no lanes"));
            }
            let out = (args.buffer(1), lane_bytes(4)?);
            state.produce(operation, inputs, out, |s, o| compute::read(&s[0][..size], o, lanes))
        }
        KernelId::Write => {
            let value = args.f32(1);
            state.produce(operation, &[], (args.buffer(0), size), |_, o| compute::write(o, value))
        }
        KernelId::Copy => state.produce(operation, inputs, (args.buffer(1), size), |s, o| {
            o.copy_from_slice(&s[0][..size]);
        }),
        KernelId::Scale => {
            let factor = args.f32(2);
            let out = (args.buffer(1), size);
            state.produce(operation, inputs, out, |s, o| compute::scale(&s[0][..size], o, factor))
        }
        KernelId::Add | KernelId::Triad => {
            let factor = if kernel == KernelId::Add { 1.0 } else { args.f32(3) };
            let out = (args.buffer(2), size);
            let triad = |s: &[&[u8]], o: &mut [u8]| compute::triad(&s[0][..size], &s[1][..size], o, factor);
            state.produce(operation, inputs, out, triad)
        }
        KernelId::FmaFp64 => {
            let (m, k, out) = (args.f64(1), args.f64(2), (args.buffer(0), lane_bytes(8)?));
            state.produce(operation, &[], out, |_, o| compute::fma_fp64(o, m, k, args.u32(3)))
        }
        KernelId::FmaFp32 => {
            let (m, k, out) = (args.f32(1), args.f32(2), (args.buffer(0), lane_bytes(4)?));
            state.produce(operation, &[], out, |_, o| compute::fma_fp32(o, m, k, args.u32(3)))
        }
        KernelId::FmaFp16 => {
            let (m, k, out) = (args.f32(1), args.f32(2), (args.buffer(0), lane_bytes(2)?));
            state.produce(operation, &[], out, |_, o| compute::fma_fp16(o, m, k, args.u32(3)))
        }
        KernelId::DotInt8 => {
            let out = (args.buffer(0), lane_bytes(4)?);
            state.produce(operation, &[], out, |_, o| compute::dot_int8(o, args.u32(1) as i32, args.u32(2)))
        }
        KernelId::Chase => state.try_produce(operation, &[args.buffer(0)], (args.buffer(1), 4), |s, o| {
            let end = compute::chase(s[0], args.u32(2), args.u32(3));
            let end = end.ok_or_else(|| refused(call, "a link points outside the buffer"))?;
            o.copy_from_slice(&end.to_le_bytes());
            Ok(())
        }),
        KernelId::PatternWrite => {
            let (seed, invert, out) = (args.u32(1), args.u32(2), (args.buffer(0), size));
            state.produce(operation, &[], out, |_, o| compute::pattern_write(o, seed, invert))
        }
        KernelId::PatternVerify => {
            // Adds to its output, so it depends on it and is computed every time.
            let found = compute::pattern_errors(state.bytes(call, args.buffer(0), size)?, args.u32(2), args.u32(3));
            state.produce(operation, &[args.buffer(1)], (args.buffer(1), 4), |s, o| {
                let before = s[0].first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
                o.copy_from_slice(&before.wrapping_add(found).to_le_bytes());
            })
        }
    }
}
