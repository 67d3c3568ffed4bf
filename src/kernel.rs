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
    /// Every lane is written; each holds the sum of its own share of about n / lanes elements. Which ones is
    /// the backend's choice, so only the sum over all lanes has a meaning.
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
    /// `x₀ = lane·0x01010101`, from `x = lane`. `iterations` < 2³¹.
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

/// Source files of device code; one program each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Kernels that move memory.
    Memory,
    /// Arithmetic at full rate.
    Arithmetic,
    /// Dependent loads.
    Latency,
    /// Address-derived patterns.
    Pattern,
    /// Matrix multiplication without a vendor library: `gemm_fp64`, `gemm_fp32`, `gemm_fp16`, `gemm_int8`, each
    /// `(a, b, c, m: u32, n: u32, k: u32)` with [`GEMM_GROUP`] items per [`GEMM_TILE`]² tile of C, tiles in
    /// row-major order.
    Gemm,
    /// Nothing.
    Empty,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 6] =
        [Family::Memory, Family::Arithmetic, Family::Latency, Family::Pattern, Family::Gemm, Family::Empty];

    /// Name, also of its file.
    pub fn name(self) -> &'static str {
        match self {
            Family::Memory => "memory",
            Family::Arithmetic => "arithmetic",
            Family::Latency => "latency",
            Family::Pattern => "pattern",
            Family::Gemm => "gemm",
            Family::Empty => "empty",
        }
    }

    /// Complete source text: the common prelude and the family's file.
    pub fn source(self) -> &'static str {
        macro_rules! text {
            ($file:literal) => {
                concat!(include_str!("../kernels/portable.h"), include_str!(concat!("../kernels/", $file)))
            };
        }
        match self {
            Family::Memory => text!("memory.c"),
            Family::Arithmetic => text!("arithmetic.c"),
            Family::Latency => text!("latency.c"),
            Family::Pattern => text!("pattern.c"),
            Family::Gemm => text!("gemm.c"),
            Family::Empty => text!("empty.c"),
        }
    }
}

/// Edge of the tile of C that one group of a [`Family::Gemm`] kernel makes.
pub const GEMM_TILE: usize = 64;
/// Items in a group of a [`Family::Gemm`] kernel; no group of any kernel may be larger.
pub const GEMM_GROUP: usize = 256;
/// Default of the macro `CHAINS` of the device code: chains that one item of an arithmetic kernel runs.
pub const CHAINS: u64 = 8;

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

    /// The source file that holds it.
    pub fn family(self) -> Family {
        match self {
            KernelId::Read | KernelId::Write | KernelId::Copy | KernelId::Scale | KernelId::Add | KernelId::Triad => {
                Family::Memory
            }
            KernelId::FmaFp64 | KernelId::FmaFp32 | KernelId::FmaFp16 | KernelId::DotInt8 => Family::Arithmetic,
            KernelId::Chase => Family::Latency,
            KernelId::PatternWrite | KernelId::PatternVerify => Family::Pattern,
            KernelId::Empty => Family::Empty,
        }
    }

    /// Lanes that one item of the device code takes at a time (16-byte vectors, parallel chains): more items
    /// than lanes divided by this have nothing to do.
    pub fn lanes_per_item(self) -> u64 {
        match self.family() {
            Family::Memory if self != KernelId::Read => 4,
            Family::Arithmetic if self == KernelId::FmaFp16 => 2 * CHAINS,
            Family::Arithmetic => CHAINS,
            _ => 1,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_in_its_source_with_its_arguments_and_lanes() {
        for kernel in KernelId::ALL {
            let source = kernel.family().source();
            let name = format!("KERNEL({})(", kernel.entry());
            // Kernels made by a macro have their parameter list there.
            let at = source.find(&name).or_else(|| {
                source.find(&format!("FMA_KERNEL({},", kernel.entry()))?;
                source.find("KERNEL(NAME)(")
            });
            let at = at.unwrap_or_else(|| panic!("{kernel} is not in its source"));
            let end = at + source[at..].find('{').unwrap();
            let parameters = source[at..end].matches(',').count() + 1;
            assert_eq!(parameters, kernel.args().len() + 1, "{kernel}: {}", &source[at..end]);
            assert!(source[at..end].contains("u64 lanes"), "{kernel}");
        }
        assert!(Family::Arithmetic.source().contains(&format!("#define CHAINS {CHAINS}\n")));
        assert!(Family::Gemm.source().contains(&format!("#define GROUP_SIZE {GEMM_GROUP} ")));
        assert!(Family::Gemm.source().contains(&format!("#define TILE {GEMM_TILE}\n")));
    }
}
