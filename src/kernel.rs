//! Device code: which kernels exist, what their arguments mean, and the text they are built from.
//!
//! A kernel has one meaning on every backend. GPU-like backends build it from `kernels/`; `host` and `sim`
//! run a Rust function of the same meaning. Kernels are grid-stride over `lanes` (see
//! `backend::Launch`): the backend chooses the grid, the result does not depend on it.

use std::fmt;

/// Every kernel that benchmarks launch, by what it does. `T` of arrays is 4-byte `float` unless said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelId {
    /// `(src, out, n)`: adds up `n` floats of `src` into `out[lane]`, lanes ≤ [`READ_LANES`]; reads 4n bytes.
    Read,
    /// `(dst, value: f32, n)`: `dst[i] = value`; writes 4n bytes.
    Write,
    /// `(a, c, n)`: `c[i] = a[i]`; moves 8n bytes.
    Copy,
    /// `(a, c, s: f32, n)`: `c[i] = s·a[i]`; moves 8n bytes.
    Scale,
    /// `(a, b, c, n)`: `c[i] = a[i] + b[i]`; moves 12n bytes.
    Add,
    /// `(a, b, c, s: f32, n)`: `c[i] = a[i] + s·b[i]`; moves 12n bytes.
    Triad,
    /// `(out: f64[lanes], m: f64, k: f64, iterations: u32)`: chain `x = fma(x, m, k)` from `x = 1 + (lane mod 64)/64`.
    FmaFp64,
    /// As [`KernelId::FmaFp64`] in fp32: `(out: f32[lanes], m: f32, k: f32, iterations: u32)`.
    FmaFp32,
    /// As [`KernelId::FmaFp64`] in fp16: `(out: f16[lanes], m: f32, k: f32, iterations: u32)`.
    FmaFp16,
    /// `(out: i32[lanes], a: i32, iterations: u32)`: `x += dot4(bytes of a, bytes of x₀)` wrapping, where
    /// `x₀ = lane·0x01010101`, from `x = lane`.
    DotInt8,
    /// `(next: u32[n], out: u32[1], start: u32, hops: u32)`: `hops` dependent loads, one lane; `out[0]` is where it ends.
    Chase,
    /// `(buffer: u32[n], seed: u32, invert: u32, n)`: writes the address-derived pattern [`pattern`], xor `invert`.
    PatternWrite,
    /// `(buffer: u32[n], errors: u32[1], seed: u32, invert: u32, n)`: adds the number of wrong words to `errors[0]`.
    PatternVerify,
    /// `()`: does nothing; for launch latency.
    Empty,
}

/// Most lanes that [`KernelId::Read`] writes; `out` has this many floats.
pub const READ_LANES: usize = 1 << 16;

/// Kind of one argument, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// device buffer
    Buffer,
    /// 32-bit unsigned
    U32,
    /// 32-bit signed
    I32,
    /// 64-bit unsigned
    U64,
    /// single
    F32,
    /// double
    F64,
}

impl KernelId {
    /// All kernels.
    pub const ALL: [KernelId; 14] = [
        KernelId::Read,
        KernelId::Write,
        KernelId::Copy,
        KernelId::Scale,
        KernelId::Add,
        KernelId::Triad,
        KernelId::FmaFp64,
        KernelId::FmaFp32,
        KernelId::FmaFp16,
        KernelId::DotInt8,
        KernelId::Chase,
        KernelId::PatternWrite,
        KernelId::PatternVerify,
        KernelId::Empty,
    ];

    /// Entry point in the kernel text.
    pub fn entry(self) -> &'static str {
        match self {
            KernelId::Read => "read_f32",
            KernelId::Write => "write_f32",
            KernelId::Copy => "copy_f32",
            KernelId::Scale => "scale_f32",
            KernelId::Add => "add_f32",
            KernelId::Triad => "triad_f32",
            KernelId::FmaFp64 => "fma_fp64",
            KernelId::FmaFp32 => "fma_fp32",
            KernelId::FmaFp16 => "fma_fp16",
            KernelId::DotInt8 => "dot_int8",
            KernelId::Chase => "chase",
            KernelId::PatternWrite => "pattern_write",
            KernelId::PatternVerify => "pattern_verify",
            KernelId::Empty => "empty",
        }
    }

    /// Arguments in order; `n` is always [`ArgKind::U64`]. GPU backends append the hidden argument
    /// `lanes: u64` after these (kernels are grid-stride over it).
    pub fn args(self) -> &'static [ArgKind] {
        use ArgKind::{Buffer, F32, F64, I32, U32, U64};
        match self {
            KernelId::Read => &[Buffer, Buffer, U64],
            KernelId::Write => &[Buffer, F32, U64],
            KernelId::Copy => &[Buffer, Buffer, U64],
            KernelId::Scale => &[Buffer, Buffer, F32, U64],
            KernelId::Add => &[Buffer, Buffer, Buffer, U64],
            KernelId::Triad => &[Buffer, Buffer, Buffer, F32, U64],
            KernelId::FmaFp64 => &[Buffer, F64, F64, U32],
            KernelId::FmaFp32 => &[Buffer, F32, F32, U32],
            KernelId::FmaFp16 => &[Buffer, F32, F32, U32],
            KernelId::DotInt8 => &[Buffer, I32, U32],
            KernelId::Chase => &[Buffer, Buffer, U32, U32],
            KernelId::PatternWrite => &[Buffer, U32, U32, U64],
            KernelId::PatternVerify => &[Buffer, Buffer, U32, U32, U64],
            KernelId::Empty => &[],
        }
    }
}

impl fmt::Display for KernelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry())
    }
}

/// The address-derived test pattern: word `i` for `seed`. Every backend computes exactly this.
pub fn pattern(i: u64, seed: u32) -> u32 {
    let mut x = ((i ^ (i >> 32)) as u32).wrapping_mul(2_654_435_761) ^ seed;
    x ^= x >> 15;
    x = x.wrapping_mul(2_246_822_519);
    x ^ (x >> 13)
}
