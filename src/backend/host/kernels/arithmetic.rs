//! Arithmetic kernels: independent chains of fused multiply-adds or dot products, enough of them in
//! registers to hide the latency of two wide units. All forms give the same bits as the scalar one.

use std::ops::Range;

use half::f16;

/// Where an arithmetic kernel starts lane `lane`: `1 + (lane mod 64)/64`, exact in every type.
pub fn start(lane: usize) -> f64 {
    1.0 + (lane % 64) as f64 / 64.0
}

/// A chain kernel: writes the lanes of `range` to `out[range]`; `m` and `k` are the step `x = m·x + k`.
pub type Chain<T> = unsafe fn(out: *mut T, range: Range<usize>, m: T, k: T, iterations: u32);

/// `x = fma(x, m, k)`, `$vectors` vectors of `$lanes` chains at a time. A last group that is not full is
/// computed in full and stored in part: scalar chains would take longer than all the rest.
macro_rules! chain {
    ($(#[$meta:meta])* $name:ident, $type:ty, $vectors:literal x $lanes:literal, $load:expr, $store:expr, $set:expr, $fma:expr, $from:expr) => {
        $(#[$meta])*
        unsafe fn $name(out: *mut $type, range: Range<usize>, m: $type, k: $type, iterations: u32) {
            const GROUP: usize = $vectors * $lanes;
            let mut first = range.start;
            while first < range.end {
                let mut lanes: [$type; GROUP] = std::array::from_fn(|i| $from(start(first + i)));
                // SAFETY: loads and stores stay inside `lanes`, the copy inside `out[range]`.
                unsafe {
                    let (m, k) = ($set(m), $set(k));
                    let mut x: [_; $vectors] = std::array::from_fn(|v| $load(lanes.as_ptr().add(v * $lanes)));
                    for _ in 0..iterations {
                        for x in &mut x {
                            *x = $fma(*x, m, k);
                        }
                    }
                    for (v, x) in x.into_iter().enumerate() {
                        $store(lanes.as_mut_ptr().add(v * $lanes), x);
                    }
                    let count = GROUP.min(range.end - first);
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), out.add(first), count);
                }
                first += GROUP;
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;

    use super::*;

    chain!(#[target_feature(enable = "avx512f")] fp64_avx512, f64, 16 x 8,
        |p| _mm512_loadu_pd(p), |p, x| _mm512_storeu_pd(p, x), |x| _mm512_set1_pd(x), |x, m, k| _mm512_fmadd_pd(x, m, k), |x| x);
    chain!(#[target_feature(enable = "avx512f")] fp32_avx512, f32, 16 x 16,
        |p| _mm512_loadu_ps(p), |p, x| _mm512_storeu_ps(p, x), |x| _mm512_set1_ps(x), |x, m, k| _mm512_fmadd_ps(x, m, k), |x| x as f32);
    chain!(#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512fp16")] fp16_avx512, f16, 16 x 32,
        |p: *const f16| _mm512_castsi512_ph(_mm512_loadu_si512(p.cast())),
        |p: *mut f16, x| _mm512_storeu_si512(p.cast(), _mm512_castph_si512(x)),
        |x: f16| _mm512_castsi512_ph(_mm512_set1_epi16(x.to_bits() as i16)), |x, m, k| _mm512_fmadd_ph(x, m, k), f16::from_f64);
    // 12 of 16 registers: more chains than two units of latency 5 need, and room for the constants.
    chain!(#[target_feature(enable = "avx2,fma")] fp64_avx2, f64, 12 x 4,
        |p| _mm256_loadu_pd(p), |p, x| _mm256_storeu_pd(p, x), |x| _mm256_set1_pd(x), |x, m, k| _mm256_fmadd_pd(x, m, k), |x| x);
    chain!(#[target_feature(enable = "avx2,fma")] fp32_avx2, f32, 12 x 8,
        |p| _mm256_loadu_ps(p), |p, x| _mm256_storeu_ps(p, x), |x| _mm256_set1_ps(x), |x, m, k| _mm256_fmadd_ps(x, m, k), |x| x as f32);

    /// `vpdpbusd` multiplies unsigned by signed bytes: `a` is shifted by 128, and what that adds in all
    /// iterations together is taken off once at the end, modulo 2³² as everything here.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub unsafe fn dot_vnni(out: *mut i32, range: Range<usize>, a: i32, iterations: u32) {
        // Sums, their operands and `a` fill 25 of 32 registers.
        const SUMS: usize = 12;
        const GROUP: usize = SUMS * 16;
        let shifted = _mm512_set1_epi32(a ^ 0x8080_8080_u32 as i32);
        let mut first = range.start;
        while first < range.end {
            let mut lanes: [i32; GROUP] = std::array::from_fn(|i| (first + i) as i32);
            let bytes: [i32; GROUP] = std::array::from_fn(|i| splat(first + i));
            // SAFETY: loads and stores stay inside the two arrays.
            unsafe {
                let load = |from: &[i32; GROUP], v: usize| _mm512_loadu_si512(from.as_ptr().add(v * 16).cast());
                let mut x: [__m512i; SUMS] = std::array::from_fn(|v| load(&lanes, v));
                let y: [__m512i; SUMS] = std::array::from_fn(|v| load(&bytes, v));
                for _ in 0..iterations {
                    for (x, y) in x.iter_mut().zip(&y) {
                        *x = _mm512_dpbusd_epi32(*x, shifted, *y);
                    }
                }
                for (v, x) in x.into_iter().enumerate() {
                    _mm512_storeu_si512(lanes.as_mut_ptr().add(v * 16).cast(), x);
                }
            }
            for (i, lane) in lanes.iter_mut().enumerate().take(range.end - first) {
                let excess = 128 * dot4(0x0101_0101, splat(first + i));
                // SAFETY: `first + i` < `range.end`.
                unsafe { *out.add(first + i) = lane.wrapping_sub(excess.wrapping_mul(iterations as i32)) };
            }
            first += GROUP;
        }
    }

    /// Without VNNI: bytes widened to 16 bits, two exact pair products and two additions per dot product.
    #[target_feature(enable = "avx2")]
    pub unsafe fn dot_avx2(out: *mut i32, range: Range<usize>, a: i32, iterations: u32) {
        const SUMS: usize = 4;
        const GROUP: usize = SUMS * 8;
        let pair = |x: i32, low: usize| {
            let half = |at: usize| i32::from(x.to_le_bytes()[at] as i8) & 0xffff;
            half(low) | half(low + 1) << 16
        };
        let (a01, a23) = (_mm256_set1_epi32(pair(a, 0)), _mm256_set1_epi32(pair(a, 2)));
        let mut first = range.start;
        while first < range.end {
            let mut lanes: [i32; GROUP] = std::array::from_fn(|i| (first + i) as i32);
            let low: [i32; GROUP] = std::array::from_fn(|i| pair(splat(first + i), 0));
            let high: [i32; GROUP] = std::array::from_fn(|i| pair(splat(first + i), 2));
            // SAFETY: loads and stores stay inside the arrays, the copy inside `out[range]`.
            unsafe {
                let load = |from: &[i32; GROUP], v: usize| _mm256_loadu_si256(from.as_ptr().add(v * 8).cast());
                let mut x: [__m256i; SUMS] = std::array::from_fn(|v| load(&lanes, v));
                let mut y: [[__m256i; 2]; SUMS] = std::array::from_fn(|v| [load(&low, v), load(&high, v)]);
                for _ in 0..iterations {
                    for (x, [low, high]) in x.iter_mut().zip(&mut y) {
                        // The compiler must not know that the products are the same every time.
                        asm!(
                            "/* {0} {1} */",
                            inout(ymm_reg) * low,
                            inout(ymm_reg) * high,
                            options(nomem, nostack, preserves_flags)
                        );
                        let sum = _mm256_add_epi32(*x, _mm256_madd_epi16(a01, *low));
                        *x = _mm256_add_epi32(sum, _mm256_madd_epi16(a23, *high));
                    }
                }
                for (v, x) in x.into_iter().enumerate() {
                    _mm256_storeu_si256(lanes.as_mut_ptr().add(v * 8).cast(), x);
                }
                std::ptr::copy_nonoverlapping(lanes.as_ptr(), out.add(first), GROUP.min(range.end - first));
            }
            first += GROUP;
        }
    }

    pub fn fp64() -> Option<Chain<f64>> {
        if is_x86_feature_detected!("avx512f") {
            return Some(fp64_avx512);
        }
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(fp64_avx2 as Chain<f64>)
    }

    pub fn fp32() -> Option<Chain<f32>> {
        if is_x86_feature_detected!("avx512f") {
            return Some(fp32_avx512);
        }
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(fp32_avx2 as Chain<f32>)
    }

    pub fn fp16() -> Option<Chain<f16>> {
        let found = is_x86_feature_detected!("avx512fp16") && is_x86_feature_detected!("avx512vl");
        found.then_some(fp16_avx512 as Chain<f16>)
    }

    pub fn dot() -> Option<Dot> {
        if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512bw") {
            return Some(dot_vnni);
        }
        is_x86_feature_detected!("avx2").then_some(dot_avx2 as Dot)
    }

    #[cfg(test)]
    pub fn all_fp64() -> Vec<Chain<f64>> {
        let mut all: Vec<Chain<f64>> = Vec::new();
        all.extend(is_x86_feature_detected!("avx512f").then_some(fp64_avx512 as Chain<f64>));
        all.extend(is_x86_feature_detected!("fma").then_some(fp64_avx2 as Chain<f64>));
        all
    }

    #[cfg(test)]
    pub fn all_fp32() -> Vec<Chain<f32>> {
        let mut all: Vec<Chain<f32>> = Vec::new();
        all.extend(is_x86_feature_detected!("avx512f").then_some(fp32_avx512 as Chain<f32>));
        all.extend(is_x86_feature_detected!("fma").then_some(fp32_avx2 as Chain<f32>));
        all
    }

    #[cfg(test)]
    pub fn all_dot() -> Vec<Dot> {
        let mut all: Vec<Dot> = Vec::new();
        all.extend(is_x86_feature_detected!("avx512vnni").then_some(dot_vnni as Dot));
        all.extend(is_x86_feature_detected!("avx2").then_some(dot_avx2 as Dot));
        all
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;
    use std::arch::asm;

    use super::*;

    chain!(#[target_feature(enable = "neon")] fp64_neon, f64, 16 x 2,
        |p| vld1q_f64(p), |p, x| vst1q_f64(p, x), |x| vdupq_n_f64(x), |x, m, k| vfmaq_f64(k, x, m), |x| x);
    chain!(#[target_feature(enable = "neon")] fp32_neon, f32, 16 x 4,
        |p| vld1q_f32(p), |p, x| vst1q_f32(p, x), |x| vdupq_n_f32(x), |x, m, k| vfmaq_f32(k, x, m), |x| x as f32);

    #[target_feature(enable = "neon,dotprod")]
    unsafe fn dot_neon(out: *mut i32, range: Range<usize>, a: i32, iterations: u32) {
        const GROUP: usize = 8 * 4;
        let a = vdupq_n_s32(a);
        let mut first = range.start;
        while first < range.end {
            let mut lanes: [i32; GROUP] = std::array::from_fn(|i| (first + i) as i32);
            let bytes: [i32; GROUP] = std::array::from_fn(|i| splat(first + i));
            // SAFETY: loads and stores stay inside the two arrays, the copy inside `out[range]`.
            unsafe {
                let mut x: [int32x4_t; 8] = std::array::from_fn(|v| vld1q_s32(lanes.as_ptr().add(v * 4)));
                let y: [int32x4_t; 8] = std::array::from_fn(|v| vld1q_s32(bytes.as_ptr().add(v * 4)));
                for _ in 0..iterations {
                    for (x, y) in x.iter_mut().zip(&y) {
                        asm!("sdot {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) *x, in(vreg) a, in(vreg) *y,
                            options(pure, nomem, nostack, preserves_flags));
                    }
                }
                for (v, x) in x.into_iter().enumerate() {
                    vst1q_s32(lanes.as_mut_ptr().add(v * 4), x);
                }
                std::ptr::copy_nonoverlapping(lanes.as_ptr(), out.add(first), GROUP.min(range.end - first));
            }
            first += GROUP;
        }
    }

    pub fn fp64() -> Option<Chain<f64>> {
        Some(fp64_neon)
    }

    pub fn fp32() -> Option<Chain<f32>> {
        Some(fp32_neon)
    }

    pub fn fp16() -> Option<Chain<f16>> {
        None
    }

    pub fn dot() -> Option<Dot> {
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(dot_neon as Dot)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod none {
    use super::*;

    pub fn fp64() -> Option<Chain<f64>> {
        None
    }
    pub fn fp32() -> Option<Chain<f32>> {
        None
    }
    pub fn fp16() -> Option<Chain<f16>> {
        None
    }
    pub fn dot() -> Option<Dot> {
        None
    }
}

#[cfg(target_arch = "aarch64")]
use arm as native;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use none as native;
#[cfg(target_arch = "x86_64")]
use x86 as native;

chain!(fp64_scalar, f64, 8 x 1, |p: *const f64| *p, |p: *mut f64, x| *p = x, |x| x, |x: f64, m, k| x.mul_add(m, k), |x| x);
chain!(fp32_scalar, f32, 8 x 1, |p: *const f32| *p, |p: *mut f32, x| *p = x, |x| x, |x: f32, m, k| x.mul_add(m, k), |x| x as f32);

/// A dot-product kernel: writes lanes `range` of `x += dot4(bytes of a, bytes of x₀)` to `out[range]`.
pub type Dot = unsafe fn(out: *mut i32, range: Range<usize>, a: i32, iterations: u32);

/// `x₀` of a lane, whose bytes are multiplied.
fn splat(lane: usize) -> i32 {
    (lane as u32).wrapping_mul(0x0101_0101) as i32
}

/// Dot product of four signed bytes.
fn dot4(a: i32, b: i32) -> i32 {
    a.to_le_bytes().iter().zip(b.to_le_bytes()).map(|(a, b)| i32::from(*a as i8) * i32::from(b as i8)).sum()
}

unsafe fn dot_scalar(out: *mut i32, range: Range<usize>, a: i32, iterations: u32) {
    for lane in range {
        let mut x = lane as i32;
        for _ in 0..iterations {
            // The compiler must not know that the products are the same every time.
            x = x.wrapping_add(dot4(a, std::hint::black_box(splat(lane))));
        }
        // SAFETY: `lane` is in the range that the caller owns.
        unsafe { *out.add(lane) = x };
    }
}

/// The widest fp64 chain this CPU has.
pub fn fp64() -> Chain<f64> {
    native::fp64().unwrap_or(fp64_scalar)
}

/// The widest fp32 chain this CPU has.
pub fn fp32() -> Chain<f32> {
    native::fp32().unwrap_or(fp32_scalar)
}

/// The fp16 chain; `None` where the CPU has no fp16 arithmetic that we use.
pub fn fp16() -> Option<Chain<f16>> {
    native::fp16()
}

/// The widest int8 dot product this CPU has.
pub fn dot() -> Dot {
    native::dot().unwrap_or(dot_scalar)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes in the middle of a larger array, to see that nothing outside is touched.
    fn lanes<T: Copy>(filler: T, range: Range<usize>, run: impl FnOnce(*mut T)) -> Vec<T> {
        let mut out = vec![filler; range.end + 40];
        run(out.as_mut_ptr());
        out
    }

    #[test]
    fn every_fp_chain_gives_the_bits_of_the_scalar_one() {
        let range = 64..64 + 333;
        let (m, k) = (-1.0 + 2f64.powi(-20), 3.0);
        // SAFETY: the array holds the range.
        let expected = lanes(9.0, range.clone(), |out| unsafe { fp64_scalar(out, range.clone(), m, k, 77) });
        assert_eq!(expected[64], { (0..77).fold(start(64), |x, _| x.mul_add(m, k)) });
        assert!(expected[..64].iter().chain(&expected[64 + 333..]).all(|x| *x == 9.0));
        // SAFETY: as above.
        let expected32 =
            lanes(9f32, range.clone(), |out| unsafe { fp32_scalar(out, range.clone(), m as f32, k as f32, 77) });
        let forms64: Vec<Chain<f64>> = vec![fp64()];
        let forms32: Vec<Chain<f32>> = vec![fp32()];
        #[cfg(target_arch = "x86_64")]
        let (forms64, forms32) = ([forms64, x86::all_fp64()].concat(), [forms32, x86::all_fp32()].concat());
        for form in forms64 {
            // SAFETY: as above, and the instruction set was found.
            assert_eq!(lanes(9.0, range.clone(), |out| unsafe { form(out, range.clone(), m, k, 77) }), expected);
        }
        for form in forms32 {
            // SAFETY: as above, and the instruction set was found.
            let found = lanes(9f32, range.clone(), |out| unsafe { form(out, range.clone(), m as f32, k as f32, 77) });
            assert_eq!(found, expected32);
        }
    }

    #[test]
    fn the_fp16_chain_rounds_once_per_step() {
        let Some(form) = fp16() else { return eprintln!("skipped: needs AVX512-FP16") };
        let (m, k) = (f16::from_f64(-1.0 + 2f64.powi(-10)), f16::from_f64(3.0));
        let range = 32..32 + 77;
        // SAFETY: the array holds the range, and the instruction set was found.
        let found = lanes(f16::ZERO, range.clone(), |out| unsafe { form(out, range.clone(), m, k, 51) });
        for lane in range {
            // Products of 11-bit numbers near 1 and their sum with 3 are exact in f64.
            let step = |x: f16, _| f16::from_f64(x.to_f64() * m.to_f64() + k.to_f64());
            assert_eq!(found[lane], (0..51).fold(f16::from_f64(start(lane)), step), "lane {lane}");
        }
    }

    #[test]
    fn every_dot_product_is_exact_for_all_signs() {
        let range = 96..96 + 401;
        for a in [0x0102_0304, 0x80808080_u32 as i32, 0x7f80_ff01, -1] {
            // SAFETY: the array holds the range.
            let expected = lanes(5, range.clone(), |out| unsafe { dot_scalar(out, range.clone(), a, 9) });
            assert_eq!(expected[96], 96 + 9 * dot4(a, splat(96)));
            let forms: Vec<Dot> = vec![dot()];
            #[cfg(target_arch = "x86_64")]
            let forms = [forms, x86::all_dot()].concat();
            for form in forms {
                // SAFETY: as above, and the instruction set was found.
                assert_eq!(lanes(5, range.clone(), |out| unsafe { form(out, range.clone(), a, 9) }), expected);
            }
        }
        assert_eq!(dot4(0x80808080_u32 as i32, 0x80808080_u32 as i32), 65536);
    }

    #[test]
    fn dot_products_wrap() {
        let range = 0..128;
        // SAFETY: the array holds the range.
        let found = lanes(0, range.clone(), |out| unsafe { dot()(out, range.clone(), 0x7f7f_7f7f, 1 << 20) });
        let sum = 127i64 * 127 * 4 * (1 << 20) + 127;
        assert_eq!(found[127], sum as i32);
    }
}
