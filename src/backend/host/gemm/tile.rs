//! Register tiles: `tile (+)= A·Bᵀ` for one panel of A rows and one panel of B rows, both packed along k.
//!
//! Two or three vectors of B and one broadcast element of A feed as many fused multiply-adds. The tile is a small
//! contiguous array in cache, so that no form needs to know about the edges of C.

/// `(units, a, b, tile, first)`: multiplies `units` packed k units; `first` overwrites the tile.
pub type TileFn = unsafe fn(usize, *const u8, *const u8, *mut u8, bool);

/// How the elements of a panel are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "each architecture uses some of them")]
pub enum Packing {
    /// As they are.
    Fp64,
    /// As they are.
    Fp32,
    /// B as it is; in A each element twice, since only 32-bit broadcasts are free.
    Fp16Twice,
    /// Widened to fp32.
    Fp16AsFp32,
    /// Four bytes along k to a unit; A shifted by 128 to be unsigned.
    Int8QuadsUnsigned,
    /// Four bytes along k to a unit.
    Int8Quads,
    /// Two bytes along k widened to 16 bits.
    Int8PairsAsInt16,
    /// Widened to 32 bits.
    Int8AsInt32,
}

/// A register tile and what it wants.
#[derive(Debug, Clone, Copy)]
pub struct Tile {
    /// Instruction set, for the engine's name.
    pub name: &'static str,
    /// Rows: elements of A per k unit.
    pub rows: usize,
    /// Columns: elements of B per k unit.
    pub columns: usize,
    /// Storage of the panels.
    pub packing: Packing,
    /// Steps summed in fp16 before they are added in fp32; 0 if not done.
    pub fp16_block: usize,
    /// False if the form is far from what the CPU could do.
    pub fast: bool,
    /// The code.
    pub run: TileFn,
}

/// Steps along k that the fp16 tile sums in fp16: more would cost accuracy, fewer speed.
#[cfg(target_arch = "x86_64")]
const FP16_BLOCK: usize = 128;

/// How many units ahead of their use panels are fetched: the hardware's own prefetch alone leaves a tenth of
/// the time waiting.
const AHEAD: usize = 16;

/// A tile of `$rows` rows by `$vectors` vectors of `$width` bytes.
macro_rules! tile {
    ($(#[$meta:meta])* $name:ident, $rows:expr, $vectors:literal x $width:literal, $unit:ty, $vector:ty, $zero:expr, $load:expr, $store:expr, $broadcast:expr, $multiply_add:expr, $add:expr) => {
        $(#[$meta])*
        unsafe fn $name(units: usize, a: *const u8, b: *const u8, tile: *mut u8, first: bool) {
            // SAFETY: the panels hold `units` units of all rows and columns, the tile all of its elements.
            unsafe {
                if !first {
                    for line in (0..$rows * $vectors * $width).step_by(64) {
                        prefetch(tile.add(line));
                    }
                }
                let mut sums: [[$vector; $vectors]; $rows] = [[$zero; $vectors]; $rows];
                let (mut a, mut b) = (a, b);
                for _ in 0..units {
                    prefetch(a.add(AHEAD * $rows * size_of::<$unit>()));
                    let mut ys: [$vector; $vectors] = [$zero; $vectors];
                    for (j, y) in ys.iter_mut().enumerate() {
                        prefetch(b.add((AHEAD * $vectors + j) * $width));
                        *y = $load(b.add(j * $width));
                    }
                    for (i, sums) in sums.iter_mut().enumerate() {
                        let x = $broadcast(a.cast::<$unit>().add(i).read_unaligned());
                        for (sum, y) in sums.iter_mut().zip(&ys) {
                            *sum = $multiply_add(*sum, x, *y);
                        }
                    }
                    a = a.add($rows * size_of::<$unit>());
                    b = b.add($vectors * $width);
                }
                // By reference: consuming iterators would send the sums through the stack.
                for (i, sum) in sums.iter().enumerate() {
                    for (j, sum) in sum.iter().enumerate() {
                        let at = tile.add((i * $vectors + j) * $width);
                        $store(at, if first { *sum } else { $add(*sum, $load(at)) });
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::*;

    /// Rows of the AVX-512 tiles: 24 sums, three vectors of B and one element of A take 28 of 32 registers. Wider
    /// tiles of fewer rows need fewer loads per multiplication than the opposite.
    const ROWS: usize = 8;

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }

    tile!(
        #[target_feature(enable = "avx512f")]
        fp64_avx512,
        ROWS,
        3 x 64,
        f64,
        __m512d,
        _mm512_setzero_pd(),
        |p: *const u8| _mm512_loadu_pd(p.cast()),
        |p: *mut u8, x| _mm512_storeu_pd(p.cast(), x),
        |x| _mm512_set1_pd(x),
        |s, a, b| _mm512_fmadd_pd(a, b, s),
        |x, y| _mm512_add_pd(x, y)
    );
    tile!(
        #[target_feature(enable = "avx512f")]
        fp32_avx512,
        ROWS,
        3 x 64,
        f32,
        __m512,
        _mm512_setzero_ps(),
        |p: *const u8| _mm512_loadu_ps(p.cast()),
        |p: *mut u8, x| _mm512_storeu_ps(p.cast(), x),
        |x| _mm512_set1_ps(x),
        |s, a, b| _mm512_fmadd_ps(a, b, s),
        |x, y| _mm512_add_ps(x, y)
    );
    tile!(
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        int8_avx512,
        ROWS,
        3 x 64,
        i32,
        __m512i,
        _mm512_setzero_si512(),
        |p: *const u8| _mm512_loadu_si512(p.cast()),
        |p: *mut u8, x| _mm512_storeu_si512(p.cast(), x),
        |x| _mm512_set1_epi32(x),
        |s, a, b| _mm512_dpbusd_epi32(s, a, b),
        |x, y| _mm512_add_epi32(x, y)
    );
    tile!(
        #[target_feature(enable = "avx2,fma")]
        fp64_avx2,
        6,
        2 x 32,
        f64,
        __m256d,
        _mm256_setzero_pd(),
        |p: *const u8| _mm256_loadu_pd(p.cast()),
        |p: *mut u8, x| _mm256_storeu_pd(p.cast(), x),
        |x| _mm256_set1_pd(x),
        |s, a, b| _mm256_fmadd_pd(a, b, s),
        |x, y| _mm256_add_pd(x, y)
    );
    tile!(
        #[target_feature(enable = "avx2,fma")]
        fp32_avx2,
        6,
        2 x 32,
        f32,
        __m256,
        _mm256_setzero_ps(),
        |p: *const u8| _mm256_loadu_ps(p.cast()),
        |p: *mut u8, x| _mm256_storeu_ps(p.cast(), x),
        |x| _mm256_set1_ps(x),
        |s, a, b| _mm256_fmadd_ps(a, b, s),
        |x, y| _mm256_add_ps(x, y)
    );
    tile!(
        #[target_feature(enable = "avx2")]
        int8_avx2,
        6,
        2 x 32,
        i32,
        __m256i,
        _mm256_setzero_si256(),
        |p: *const u8| _mm256_loadu_si256(p.cast()),
        |p: *mut u8, x| _mm256_storeu_si256(p.cast(), x),
        |x| _mm256_set1_epi32(x),
        |s, a, b| _mm256_add_epi32(s, _mm256_madd_epi16(a, b)),
        |x, y| _mm256_add_epi32(x, y)
    );

    /// Sums [`FP16_BLOCK`] steps in fp16, then adds them to the fp32 tile: the rounding error stays that of
    /// short sums, at a few percent of the time.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512fp16")]
    unsafe fn fp16_avx512(units: usize, a: *const u8, b: *const u8, tile: *mut u8, first: bool) {
        for from in (0..units).step_by(FP16_BLOCK) {
            let steps = FP16_BLOCK.min(units - from);
            // SAFETY: the caller's promise, for a part of the units.
            unsafe { fp16_block(steps, a.add(from * ROWS * 4), b.add(from * 192), tile, first && from == 0) };
        }
    }

    /// One short sum.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512fp16")]
    unsafe fn fp16_block(steps: usize, a: *const u8, b: *const u8, tile: *mut u8, first: bool) {
        let mut sums: [[__m512h; 3]; ROWS] = [[_mm512_setzero_ph(); 3]; ROWS];
        let (mut a, mut b) = (a, b);
        // SAFETY: the panels hold `steps` units of all rows and columns, the tile all of its elements.
        unsafe {
            for _ in 0..steps {
                prefetch(a.add(AHEAD * ROWS * 4));
                let ys = [0, 64, 128].map(|at| _mm512_castsi512_ph(_mm512_loadu_si512(b.add(at).cast())));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_castsi512_ph(_mm512_set1_epi32(a.cast::<i32>().add(i).read_unaligned()));
                    for (sum, y) in sums.iter_mut().zip(&ys) {
                        *sum = _mm512_fmadd_ph(x, *y, *sum);
                    }
                }
                a = a.add(ROWS * 4);
                b = b.add(192);
            }
            for (i, sum) in sums.iter().enumerate() {
                for (j, sum) in sum.iter().enumerate() {
                    let halves = _mm512_castph_si512(*sum);
                    let low = _mm512_cvtxph_ps(_mm256_castsi256_ph(_mm512_castsi512_si256(halves)));
                    let high = _mm512_cvtxph_ps(_mm256_castsi256_ph(_mm512_extracti64x4_epi64::<1>(halves)));
                    let at = tile.cast::<f32>().add((i * 3 + j) * 32);
                    if first {
                        _mm512_storeu_ps(at, low);
                        _mm512_storeu_ps(at.add(16), high);
                    } else {
                        _mm512_storeu_ps(at, _mm512_add_ps(low, _mm512_loadu_ps(at)));
                        _mm512_storeu_ps(at.add(16), _mm512_add_ps(high, _mm512_loadu_ps(at.add(16))));
                    }
                }
            }
        }
    }

    /// Tiles of each type that this CPU can run, best first.
    pub fn tiles() -> [Vec<Tile>; 4] {
        let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let vnni = avx512 && is_x86_feature_detected!("avx512vnni");
        let fp16 = avx512 && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512fp16");
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let tile =
            |name, rows, columns, packing, run| Tile { name, rows, columns, packing, fp16_block: 0, fast: true, run };
        let [mut fp64, mut fp32, mut half, mut int8] = [const { Vec::new() }; 4];
        if fp16 {
            let tile = tile("AVX512-FP16", ROWS, 96, Packing::Fp16Twice, fp16_avx512);
            half.push(Tile { fp16_block: FP16_BLOCK, ..tile });
        }
        if vnni {
            int8.push(tile("AVX512-VNNI", ROWS, 48, Packing::Int8QuadsUnsigned, int8_avx512));
        }
        if avx512 {
            fp64.push(tile("AVX-512", ROWS, 24, Packing::Fp64, fp64_avx512));
            fp32.push(tile("AVX-512", ROWS, 48, Packing::Fp32, fp32_avx512));
            half.push(Tile { fast: false, ..tile("AVX-512", ROWS, 48, Packing::Fp16AsFp32, fp32_avx512) });
        }
        if avx2 {
            fp64.push(tile("AVX2", 6, 8, Packing::Fp64, fp64_avx2));
            fp32.push(tile("AVX2", 6, 16, Packing::Fp32, fp32_avx2));
            half.push(Tile { fast: false, ..tile("AVX2", 6, 16, Packing::Fp16AsFp32, fp32_avx2) });
            int8.push(tile("AVX2", 6, 16, Packing::Int8PairsAsInt16, int8_avx2));
        }
        [fp64, fp32, half, int8]
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;
    use std::arch::asm;

    use super::*;

    #[inline(always)]
    unsafe fn prefetch(_at: *const u8) {}

    /// `s + dot4(a, b)` in each lane; the intrinsic is not stable yet.
    #[inline(always)]
    unsafe fn sdot(s: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
        let mut s = s;
        // SAFETY: only registers are touched; callers enable `dotprod`.
        unsafe {
            asm!(".arch_extension dotprod", "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) s, in(vreg) a, in(vreg) b,
                options(pure, nomem, nostack, preserves_flags));
        }
        s
    }

    tile!(
        #[target_feature(enable = "neon")]
        fp64_neon,
        8,
        2 x 16,
        f64,
        float64x2_t,
        vdupq_n_f64(0.0),
        |p: *const u8| vld1q_f64(p.cast()),
        |p: *mut u8, x| vst1q_f64(p.cast(), x),
        |x| vdupq_n_f64(x),
        |s, a, b| vfmaq_f64(s, a, b),
        |x, y| vaddq_f64(x, y)
    );
    tile!(
        #[target_feature(enable = "neon")]
        fp32_neon,
        8,
        2 x 16,
        f32,
        float32x4_t,
        vdupq_n_f32(0.0),
        |p: *const u8| vld1q_f32(p.cast()),
        |p: *mut u8, x| vst1q_f32(p.cast(), x),
        |x| vdupq_n_f32(x),
        |s, a, b| vfmaq_f32(s, a, b),
        |x, y| vaddq_f32(x, y)
    );
    tile!(
        #[target_feature(enable = "neon")]
        int8_neon_dot,
        8,
        2 x 16,
        i32,
        int32x4_t,
        vdupq_n_s32(0),
        |p: *const u8| vld1q_s32(p.cast()),
        |p: *mut u8, x| vst1q_s32(p.cast(), x),
        |x| vdupq_n_s32(x),
        |s, a, b| sdot(s, a, b),
        |x, y| vaddq_s32(x, y)
    );

    /// Tiles of each type that this CPU can run, best first.
    pub fn tiles() -> [Vec<Tile>; 4] {
        let tile =
            |name, columns, packing, run| Tile { name, rows: 8, columns, packing, fp16_block: 0, fast: true, run };
        let half = Tile { fast: false, ..tile("NEON", 8, Packing::Fp16AsFp32, fp32_neon) };
        let mut int8 = Vec::new();
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            int8.push(tile("NEON dot product", 8, Packing::Int8Quads, int8_neon_dot));
        }
        [
            vec![tile("NEON", 4, Packing::Fp64, fp64_neon)],
            vec![tile("NEON", 8, Packing::Fp32, fp32_neon)],
            vec![half],
            int8,
        ]
    }
}

#[cfg(target_arch = "aarch64")]
use arm as native;
#[cfg(target_arch = "x86_64")]
use x86 as native;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod native {
    pub fn tiles() -> [Vec<super::Tile>; 4] {
        [const { Vec::new() }; 4]
    }
}

/// A 4×8 tile in portable code; the compiler vectorises it with what every CPU of the architecture has.
macro_rules! portable {
    ($name:ident, $type:ty, $multiply_add:expr) => {
        unsafe fn $name(units: usize, a: *const u8, b: *const u8, tile: *mut u8, first: bool) {
            let mut sums = [[<$type>::default(); 8]; 4];
            // SAFETY: the panels hold `units` units of all rows and columns, the tile all of its elements.
            unsafe {
                for p in 0..units {
                    let (a, b) = (a.cast::<[$type; 4]>().add(p).read(), b.cast::<[$type; 8]>().add(p).read());
                    for (sums, a) in sums.iter_mut().zip(a) {
                        sums.iter_mut().zip(b).for_each(|(s, b)| *s = $multiply_add(*s, a, b));
                    }
                }
                for (i, sum) in sums.into_iter().flatten().enumerate() {
                    let at = tile.cast::<$type>().add(i);
                    *at = if first { sum } else { sum + *at };
                }
            }
        }
    };
}

portable!(fp64_portable, f64, |s: f64, a: f64, b: f64| s + a * b);
portable!(fp32_portable, f32, |s: f32, a: f32, b: f32| s + a * b);
portable!(int8_portable, i32, |s: i32, a: i32, b: i32| s.wrapping_add(a * b));

/// Tiles for fp64, fp32, fp16 and int8, best first; the last of each works everywhere.
pub fn tiles() -> [Vec<Tile>; 4] {
    let portable =
        |packing, run| Tile { name: "portable", rows: 4, columns: 8, packing, fp16_block: 0, fast: false, run };
    let mut all = native::tiles();
    all[0].push(portable(Packing::Fp64, fp64_portable));
    all[1].push(portable(Packing::Fp32, fp32_portable));
    all[2].push(portable(Packing::Fp16AsFp32, fp32_portable));
    all[3].push(portable(Packing::Int8AsInt32, int8_portable));
    all
}
