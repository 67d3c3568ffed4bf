//! The STREAM kernels and the read sum, each over one member's share of the arrays.
//!
//! Arrays that do not fit the last-level cache are written with non-temporal stores, as compiled STREAM
//! does: without them every written line is read first, and a third to a half of the traffic is not counted.

use std::ops::Range;

/// What a map kernel computes for each element.
pub const WRITE: u8 = 0;
/// `c = a`
pub const COPY: u8 = 1;
/// `c = s·a`
pub const SCALE: u8 = 2;
/// `c = a + b`
pub const ADD: u8 = 3;
/// `c = a + s·b`
pub const TRIAD: u8 = 4;

/// Arrays of one map kernel; those an operation does not read may be null.
#[derive(Debug, Clone, Copy)]
pub struct Arrays {
    /// First input.
    pub a: *const f32,
    /// Second input.
    pub b: *const f32,
    /// Output, aligned to 64 bytes.
    pub c: *mut f32,
    /// Scalar.
    pub s: f32,
}

// SAFETY: plain addresses; pool members work on disjoint ranges.
unsafe impl Send for Arrays {}
// SAFETY: as above.
unsafe impl Sync for Arrays {}

/// The operation on single numbers; also the tail of every vector form.
#[inline(always)]
unsafe fn scalar<const OP: u8>(x: Arrays, range: Range<usize>) {
    for i in range {
        // SAFETY: the caller vouches for `range` in all arrays that `OP` uses.
        unsafe {
            *x.c.add(i) = match OP {
                WRITE => x.s,
                COPY => *x.a.add(i),
                SCALE => x.s * *x.a.add(i),
                ADD => *x.a.add(i) + *x.b.add(i),
                _ => *x.a.add(i) + x.s * *x.b.add(i),
            };
        }
    }
}

/// `$step` vectors are read and computed before they are written: longer runs in one direction turn the memory bus
/// around less often. Against one vector at a time, 4 lost 1 % and 16 won 2 % of the triad; as many must fit the
/// registers.
#[cfg(target_arch = "x86_64")]
macro_rules! vector_map {
    ($name:ident, $features:literal, $lanes:literal, $step:literal, $load:ident, $store:ident, $stream:ident, $set:ident, $add:ident, $mul:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $name<const OP: u8, const STREAMING: bool>(x: Arrays, range: Range<usize>) {
            use std::arch::x86_64::*;
            const STEP: usize = $step;
            let s = $set(x.s);
            let mut i = range.start;
            // SAFETY: all accesses are below `range.end`; `c` is aligned at multiples of 16 floats, where ranges start.
            unsafe {
                while i + STEP * $lanes <= range.end {
                    let mut v = [s; STEP];
                    for (j, v) in v.iter_mut().enumerate() {
                        let at = i + j * $lanes;
                        *v = match OP {
                            WRITE => s,
                            COPY => $load(x.a.add(at)),
                            SCALE => $mul(s, $load(x.a.add(at))),
                            ADD => $add($load(x.a.add(at)), $load(x.b.add(at))),
                            _ => $add($load(x.a.add(at)), $mul(s, $load(x.b.add(at)))),
                        };
                    }
                    for (j, v) in v.into_iter().enumerate() {
                        let at = x.c.add(i + j * $lanes);
                        if STREAMING { $stream(at, v) } else { $store(at, v) }
                    }
                    i += STEP * $lanes;
                }
                scalar::<OP>(x, i..range.end);
                if STREAMING {
                    // Non-temporal stores are weakly ordered: make them visible before the launch ends.
                    _mm_sfence();
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vector_map!(
    map_avx512,
    "avx512f",
    16,
    16,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_stream_ps,
    _mm512_set1_ps,
    _mm512_add_ps,
    _mm512_mul_ps
);
#[cfg(target_arch = "x86_64")]
vector_map!(
    map_avx2,
    "avx2",
    8,
    8,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_stream_ps,
    _mm256_set1_ps,
    _mm256_add_ps,
    _mm256_mul_ps
);

/// Applies `OP` to elements `range`, which starts at a multiple of 16.
///
/// # Safety
/// `range` lies inside all arrays that `OP` uses, and nobody else writes to it meanwhile.
pub unsafe fn map<const OP: u8>(x: Arrays, range: Range<usize>, streaming: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the instruction set was found; the rest is the caller's promise.
        unsafe {
            match (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("avx2"), streaming) {
                (true, _, true) => return map_avx512::<OP, true>(x, range),
                (true, _, false) => return map_avx512::<OP, false>(x, range),
                (_, true, true) => return map_avx2::<OP, true>(x, range),
                (_, true, false) => return map_avx2::<OP, false>(x, range),
                _ => {}
            }
        }
    }
    let _ = streaming;
    // SAFETY: the caller's promise.
    unsafe { scalar::<OP>(x, range) }
}

/// Rows of `src` added in one pass over the sums: few enough streams for the prefetchers, enough that the
/// sums' own traffic does not show.
const ROWS: usize = 8;

#[inline(always)]
fn sum_body(src: &[f32], first: usize, sums: &mut [f32]) {
    let lanes = sums.len();
    let mut rest = src;
    let mut lane = first % lanes;
    while rest.len() >= ROWS * lanes {
        let (rows, more) = rest.split_at(ROWS * lanes);
        // Rows begin at `lane`: their first part belongs to lanes from there on, the rest to lanes from 0.
        let (head, tail) = sums.split_at_mut(lane);
        add_rows(rows, lanes, 0, tail);
        add_rows(rows, lanes, lanes - lane, head);
        rest = more;
    }
    while !rest.is_empty() {
        let (part, more) = rest.split_at(rest.len().min(lanes - lane));
        sums[lane..].iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        lane = (lane + part.len()) % lanes;
        rest = more;
    }
}

#[inline(always)]
fn add_rows(rows: &[f32], lanes: usize, column: usize, sums: &mut [f32]) {
    let width = sums.len();
    let row = |r: usize| &rows[r * lanes + column..][..width];
    let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
    let (r4, r5, r6, r7) = (row(4), row(5), row(6), row(7));
    for i in 0..width {
        sums[i] += ((r0[i] + r1[i]) + (r2[i] + r3[i])) + ((r4[i] + r5[i]) + (r6[i] + r7[i]));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sum_avx512(src: &[f32], first: usize, sums: &mut [f32]) {
    sum_body(src, first, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(src: &[f32], first: usize, sums: &mut [f32]) {
    sum_body(src, first, sums);
}

/// Adds element `i` of `src`, which is element `first + i` of the whole array, to `sums[(first + i) mod lanes]`.
pub fn sum(src: &[f32], first: usize, sums: &mut [f32]) {
    if sums.is_empty() {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: AVX-512F was found.
            return unsafe { sum_avx512(src, first, sums) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was found.
            return unsafe { sum_avx2(src, first, sums) };
        }
    }
    sum_body(src, first, sums);
}
