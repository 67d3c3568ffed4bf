//! Host kernels: one Rust function per `KernelId`, with the meaning written there.

pub mod arithmetic;
pub mod memory;
pub mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use half::f16;

use super::memory::{Address, Mapping};
use super::pool::Pool;
use crate::backend::{Arg, DeviceError};
use crate::kernel::{ArgKind, KernelId, READ_LANES};

/// A refused launch.
fn refused(kernel: KernelId, message: String) -> DeviceError {
    DeviceError::Driver { call: format!("launch {kernel}"), message }
}

fn kind(arg: &Arg) -> ArgKind {
    match arg {
        Arg::Buffer(_) => ArgKind::Buffer,
        Arg::U32(_) => ArgKind::U32,
        Arg::I32(_) => ArgKind::I32,
        Arg::U64(_) => ArgKind::U64,
        Arg::F32(_) => ArgKind::F32,
        Arg::F64(_) => ArgKind::F64,
    }
}

/// Arguments of a launch with the buffers behind them, checked as they are taken.
pub struct Args<'a> {
    kernel: KernelId,
    args: &'a [Arg],
    buffers: Vec<Option<Arc<Mapping>>>,
}

impl<'a> Args<'a> {
    /// Matches `args` with the kernel's signature; `find` looks up a buffer.
    pub fn new(
        kernel: KernelId,
        args: &'a [Arg],
        find: impl Fn(&Arg) -> Result<Option<Arc<Mapping>>, DeviceError>,
    ) -> Result<Args<'a>, DeviceError> {
        let expected = kernel.args();
        let matches =
            expected.len() == args.len() && expected.iter().zip(args).all(|(expected, arg)| kind(arg) == *expected);
        if !matches {
            return Err(refused(kernel, format!("arguments {args:?}, expected {expected:?}")));
        }
        let buffers = args.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Args { kernel, args, buffers })
    }

    /// The buffer at position `i`, which must hold `count` elements of `T`.
    fn buffer<T>(&self, i: usize, count: u64) -> Result<*mut T, DeviceError> {
        let buffer = self.buffers.get(i).and_then(Option::as_ref);
        let buffer = buffer.ok_or_else(|| refused(self.kernel, format!("argument {i} is not a buffer")))?;
        let needed = count.checked_mul(size_of::<T>() as u64);
        if needed.is_none_or(|needed| needed > buffer.size() as u64) {
            let message = format!("argument {i}: {count} elements do not fit {} bytes", buffer.size());
            return Err(refused(self.kernel, message));
        }
        Ok(buffer.start().cast())
    }

    fn bytes(&self, i: usize) -> usize {
        self.buffers.get(i).and_then(Option::as_ref).map_or(0, |b| b.size())
    }

    fn u64(&self, i: usize) -> u64 {
        match self.args.get(i) {
            Some(Arg::U64(x)) => *x,
            Some(Arg::U32(x)) => u64::from(*x),
            _ => 0,
        }
    }

    fn u32(&self, i: usize) -> u32 {
        self.u64(i) as u32
    }

    fn i32(&self, i: usize) -> i32 {
        if let Some(Arg::I32(x)) = self.args.get(i) { *x } else { 0 }
    }

    fn f64(&self, i: usize) -> f64 {
        match self.args.get(i) {
            Some(Arg::F32(x)) => f64::from(*x),
            Some(Arg::F64(x)) => *x,
            _ => 0.0,
        }
    }
}

/// What all launches on a device share.
pub struct Team<'a> {
    /// Threads.
    pub pool: &'a Pool,
    /// Bytes of last-level cache: arrays that exceed it together are written past the caches.
    pub cache: f64,
    /// [`READ_LANES`] floats for each member.
    pub sums: &'a Mapping,
}

impl Team<'_> {
    /// Runs one kernel over `lanes` lanes; returns when it is complete.
    pub fn launch(&self, lanes: u64, args: &Args<'_>) -> Result<(), DeviceError> {
        match args.kernel {
            KernelId::Read => self.read(lanes, args),
            KernelId::Write => self.map::<{ stream::WRITE }>(args, [None, None, Some(0)], Some(1), 2),
            KernelId::Copy => self.map::<{ stream::COPY }>(args, [Some(0), None, Some(1)], None, 2),
            KernelId::Scale => self.map::<{ stream::SCALE }>(args, [Some(0), None, Some(1)], Some(2), 3),
            KernelId::Add => self.map::<{ stream::ADD }>(args, [Some(0), Some(1), Some(2)], None, 3),
            KernelId::Triad => self.map::<{ stream::TRIAD }>(args, [Some(0), Some(1), Some(2)], Some(3), 4),
            KernelId::FmaFp64 => self.chain(args, lanes, arithmetic::fp64(), args.f64(1), args.f64(2)),
            KernelId::FmaFp32 => self.chain(args, lanes, arithmetic::fp32(), args.f64(1) as f32, args.f64(2) as f32),
            KernelId::FmaFp16 => {
                let missing = || DeviceError::Unsupported("this CPU has no fp16 arithmetic".to_owned());
                let chain = arithmetic::fp16().ok_or_else(missing)?;
                self.chain(args, lanes, chain, f16::from_f64(args.f64(1)), f16::from_f64(args.f64(2)))
            }
            KernelId::DotInt8 => self.dot(args, lanes),
            KernelId::Chase => self.chase(args),
            KernelId::PatternWrite => self.pattern_write(args),
            KernelId::PatternVerify => self.pattern_verify(args),
            KernelId::Empty => {
                self.pool.run(&|_| {});
                Ok(())
            }
        }
    }

    /// A map kernel: positions of the arrays a, b, c, of the scalar, and of the element count.
    fn map<const OP: u8>(
        &self,
        args: &Args<'_>,
        arrays: [Option<usize>; 3],
        scalar: Option<usize>,
        n: usize,
    ) -> Result<(), DeviceError> {
        let n = args.u64(n);
        let array = |i: Option<usize>| i.map_or(Ok(std::ptr::null_mut()), |i| args.buffer::<f32>(i, n));
        let x = stream::Arrays {
            a: array(arrays[0])?,
            b: array(arrays[1])?,
            c: array(arrays[2])?,
            s: scalar.map_or(0.0, |i| args.f64(i) as f32),
        };
        let bytes = n as usize * 4;
        let streaming = bytes as f64 * arrays.iter().flatten().count() as f64 > self.cache;
        self.pool.run_shares(bytes, |_, part| {
            // SAFETY: all arrays hold `n` floats; shares start at multiples of 64 bytes and do not overlap.
            unsafe { stream::map::<OP>(x, memory::words(&part), streaming) }
        });
        Ok(())
    }

    fn read(&self, lanes: u64, args: &Args<'_>) -> Result<(), DeviceError> {
        let n = args.u64(2);
        if lanes == 0 || lanes > READ_LANES as u64 {
            return Err(refused(args.kernel, format!("{lanes} lanes, allowed are 1 to {READ_LANES}")));
        }
        let lanes = lanes as usize;
        let src = Address::new(args.buffer::<f32>(0, n)?.cast());
        let out = Address::new(args.buffer::<f32>(1, lanes as u64)?.cast());
        let sums = Address::new(self.sums.start());
        // SAFETY: `sums` holds `READ_LANES` floats per member, and no two launches run at once in one pool.
        let member_sums = |member: usize| unsafe { sums.get().cast::<f32>().add(member * READ_LANES) };
        self.pool.run_shares(n as usize * 4, |member, part| {
            let part = memory::words(&part);
            // SAFETY: the member's own sums; its part of `src`, which nobody writes during a launch.
            let (sums, src) = unsafe {
                (
                    std::slice::from_raw_parts_mut(member_sums(member), lanes),
                    std::slice::from_raw_parts(src.get().cast::<f32>().add(part.start), part.len()),
                )
            };
            sums.fill(0.0);
            stream::sum(src, part.start, sums);
        });
        let threads = self.pool.threads();
        self.pool.run_shares(lanes * 4, |_, part| {
            for lane in memory::words(&part) {
                // SAFETY: `lane` < `lanes`; the sums are complete, and each lane of `out` has one writer.
                unsafe {
                    *out.get().cast::<f32>().add(lane) = (0..threads).map(|m| *member_sums(m).add(lane)).sum();
                }
            }
        });
        Ok(())
    }

    fn chain<T: Copy + Send + Sync>(
        &self,
        args: &Args<'_>,
        lanes: u64,
        chain: arithmetic::Chain<T>,
        m: T,
        k: T,
    ) -> Result<(), DeviceError> {
        let out = Address::new(args.buffer::<T>(0, lanes)?.cast());
        let iterations = args.u32(3);
        let size = size_of::<T>();
        self.pool.run_shares(lanes as usize * size, |_, part| {
            // SAFETY: `out` holds `lanes` elements, the shares do not overlap, and the instruction set was found.
            unsafe { chain(out.get().cast(), part.start / size..part.end / size, m, k, iterations) }
        });
        Ok(())
    }

    fn dot(&self, args: &Args<'_>, lanes: u64) -> Result<(), DeviceError> {
        let out = Address::new(args.buffer::<i32>(0, lanes)?.cast());
        let (a, iterations, dot) = (args.i32(1), args.u32(2), arithmetic::dot());
        self.pool.run_shares(lanes as usize * 4, |_, part| {
            // SAFETY: `out` holds `lanes` elements, the shares do not overlap, and the instruction set was found.
            unsafe { dot(out.get().cast(), memory::words(&part), a, iterations) }
        });
        Ok(())
    }

    fn chase(&self, args: &Args<'_>) -> Result<(), DeviceError> {
        let next = Address::new(args.buffer::<u32>(0, 0)?.cast());
        let out = Address::new(args.buffer::<u32>(1, 1)?.cast());
        let (words, start, hops) = (args.bytes(0) / 4, args.u32(2), args.u32(3));
        let outside = AtomicBool::new(false);
        self.pool.run(&|member| {
            if member == 0 {
                // SAFETY: `next` holds `words` words, which nobody writes during a launch; `out` holds one.
                unsafe {
                    let next = std::slice::from_raw_parts(next.get().cast::<u32>(), words);
                    match memory::chase(next, start, hops) {
                        Some(end) => *out.get().cast::<u32>() = end,
                        None => outside.store(true, Ordering::Relaxed),
                    }
                }
            }
        });
        if outside.into_inner() {
            return Err(refused(args.kernel, format!("the chain leaves the buffer of {words} words")));
        }
        Ok(())
    }

    fn pattern_write(&self, args: &Args<'_>) -> Result<(), DeviceError> {
        let n = args.u64(3);
        let words = Address::new(args.buffer::<u32>(0, n)?.cast());
        let (seed, invert) = (args.u32(1), args.u32(2));
        self.pool.run_shares(n as usize * 4, |_, part| {
            let part = memory::words(&part);
            // SAFETY: the buffer holds `n` words, and the shares do not overlap.
            let mine = unsafe { std::slice::from_raw_parts_mut(words.get().cast::<u32>().add(part.start), part.len()) };
            memory::write_pattern(mine, part.start as u64, seed, invert);
        });
        Ok(())
    }

    fn pattern_verify(&self, args: &Args<'_>) -> Result<(), DeviceError> {
        let n = args.u64(4);
        let words = Address::new(args.buffer::<u32>(0, n)?.cast());
        let errors = args.buffer::<u32>(1, 1)?;
        let (seed, invert) = (args.u32(2), args.u32(3));
        let wrong = AtomicU64::new(0);
        self.pool.run_shares(n as usize * 4, |_, part| {
            let part = memory::words(&part);
            // SAFETY: the buffer holds `n` words, which nobody writes during a launch.
            let mine = unsafe { std::slice::from_raw_parts(words.get().cast::<u32>().add(part.start), part.len()) };
            wrong.fetch_add(memory::count_wrong(mine, part.start as u64, seed, invert), Ordering::Relaxed);
        });
        // SAFETY: `errors` holds one word. Saturating: 2³² wrong words must not read as none.
        unsafe { *errors = (*errors).saturating_add(u32::try_from(wrong.into_inner()).unwrap_or(u32::MAX)) };
        Ok(())
    }
}
