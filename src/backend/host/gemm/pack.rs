//! Packing: rows of A or B, contiguous along k, become panels in which the elements that one step along k
//! needs lie side by side.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::tile::Packing;

/// Which matrix a panel belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Rows of the tile.
    A,
    /// Columns of the tile.
    B,
}

impl Packing {
    /// Elements along k in one unit.
    pub fn elements(self) -> usize {
        match self {
            Packing::Int8QuadsUnsigned | Packing::Int8Quads => 4,
            Packing::Int8PairsAsInt16 => 2,
            _ => 1,
        }
    }

    /// Bytes of one packed unit.
    pub fn unit(self, side: Side) -> usize {
        match self {
            Packing::Fp64 => 8,
            Packing::Fp16Twice if side == Side::B => 2,
            _ => 4,
        }
    }

    /// Bytes of one source element.
    pub fn source(self) -> usize {
        match self {
            Packing::Fp64 => 8,
            Packing::Fp32 => 4,
            Packing::Fp16Twice | Packing::Fp16AsFp32 => 2,
            _ => 1,
        }
    }

    /// Bytes of one tile element.
    pub fn sum(self) -> usize {
        if self == Packing::Fp64 { 8 } else { 4 }
    }
}

/// Some rows of a row-major matrix.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    /// First byte of the first row.
    pub start: *const u8,
    /// Rows there are; missing ones of a panel become zero.
    pub count: usize,
    /// Bytes of a row; rows follow one another without gaps.
    pub bytes: usize,
}

/// Packs units `from..to` of a panel of `width` rows into `panel`.
///
/// # Safety
/// The rows must be readable, and the panel must have room for `width·(to − from)` units.
pub unsafe fn pack(packing: Packing, side: Side, rows: Rows, width: usize, from: usize, to: usize, panel: *mut u8) {
    // SAFETY: the caller's promise; what the vector form has done is left out below.
    unsafe {
        let done = vectors::pack(packing, side, rows, width, from, to, panel);
        let (from, panel) = (from + done, panel.add(done * width * packing.unit(side)));
        pack_scalar(packing, side, rows, width, from, to, panel);
    }
}

unsafe fn pack_scalar(p: Packing, side: Side, rows: Rows, width: usize, from: usize, to: usize, panel: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        match p {
            Packing::Fp64 => transpose::<u64, u64>(rows, width, from, to, panel.cast(), |x| x),
            Packing::Fp32 => transpose::<u32, u32>(rows, width, from, to, panel.cast(), |x| x),
            Packing::Fp16Twice if side == Side::A => {
                transpose::<u16, u32>(rows, width, from, to, panel.cast(), |x| u32::from(x) * 0x1_0001);
            }
            Packing::Fp16Twice => transpose::<u16, u16>(rows, width, from, to, panel.cast(), |x| x),
            Packing::Fp16AsFp32 => {
                transpose::<u16, f32>(rows, width, from, to, panel.cast(), |x| f16::from_bits(x).to_f32());
            }
            Packing::Int8QuadsUnsigned if side == Side::A => {
                transpose::<u32, u32>(rows, width, from, to, panel.cast(), |x| x ^ 0x8080_8080);
            }
            Packing::Int8QuadsUnsigned | Packing::Int8Quads => {
                transpose::<u32, u32>(rows, width, from, to, panel.cast(), |x| x);
            }
            Packing::Int8PairsAsInt16 => transpose::<u16, u32>(rows, width, from, to, panel.cast(), |x| {
                let [low, high] = x.to_le_bytes().map(|byte| i32::from(byte as i8) as u32 & 0xffff);
                low | high << 16
            }),
            Packing::Int8AsInt32 => transpose::<u8, i32>(rows, width, from, to, panel.cast(), |x| i32::from(x as i8)),
        }
    }
}

/// One unit of each of `width` rows, then the next: `S` is a unit in the source, `D` in the panel.
#[inline(always)]
unsafe fn transpose<S: Copy + Default, D: Copy>(
    rows: Rows,
    width: usize,
    from: usize,
    to: usize,
    panel: *mut D,
    convert: impl Fn(S) -> D,
) {
    let whole = rows.bytes / size_of::<S>();
    for row in 0..width {
        let mut done = from;
        // SAFETY: reads stay inside the row, writes inside the panel; `S` and `D` are plain numbers.
        unsafe {
            let to_row = panel.add(row);
            if row < rows.count {
                let source = rows.start.add(row * rows.bytes);
                for unit in from..to.min(whole) {
                    let x = source.cast::<S>().add(unit).read_unaligned();
                    *to_row.add((unit - from) * width) = convert(x);
                }
                done = to.min(whole).max(from);
                if done < to && done == whole {
                    // The row ends inside this unit: what is missing counts as zero.
                    let mut x = S::default();
                    let begin = whole * size_of::<S>();
                    std::ptr::copy_nonoverlapping(source.add(begin), (&raw mut x).cast(), rows.bytes - begin);
                    *to_row.add((whole - from) * width) = convert(x);
                    done += 1;
                }
            }
            for unit in done..to {
                *to_row.add((unit - from) * width) = convert(S::default());
            }
        }
    }
}

/// Rounds sums to fp16.
pub fn narrow(from: &[f32], to: &mut [f16]) {
    let done = vectors::narrow(from, to);
    if done < from.len() {
        to[done..].convert_from_f32_slice(&from[done..]);
    }
}

/// Writes `bytes` bytes of finished results; `streaming` says that C is too large to be kept in caches.
///
/// # Safety
/// Both places must hold `bytes` bytes and not overlap. [`finish`] must follow before anybody else reads.
pub unsafe fn write_row(from: *const u8, to: *mut u8, bytes: usize, streaming: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let done = if streaming { vectors::stream(from, to, bytes) } else { 0 };
        std::ptr::copy_nonoverlapping(from.add(done), to.add(done), bytes - done);
    }
}

/// Makes streamed results visible to other threads.
pub fn finish() {
    vectors::finish();
}

/// Sum of signed bytes, modulo 2³².
pub fn sum_bytes(bytes: &[i8]) -> i32 {
    let (done, sum) = vectors::sum_bytes(bytes);
    bytes[done..].iter().fold(sum, |sum, x| sum.wrapping_add(i32::from(*x)))
}

/// Packing with vector transposes, where the CPU has AVX-512.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::*;

    use super::*;

    /// Bytes ahead: many rows are read side by side, more than the hardware follows.
    const PREFETCH: usize = 512;

    /// Packs as many whole vectors of units as there are; returns the units done.
    pub unsafe fn pack(
        p: Packing,
        side: Side,
        rows: Rows,
        width: usize,
        from: usize,
        to: usize,
        panel: *mut u8,
    ) -> usize {
        if !(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")) {
            return 0;
        }
        let units_in = |size: usize| to.min(rows.bytes / size).saturating_sub(from);
        // SAFETY: the instruction sets were found; only units that all rows have in full are taken.
        unsafe {
            match p {
                Packing::Fp64 => eights(rows, width, from, units_in(8) / 8 * 8, panel.cast()),
                Packing::Fp32 | Packing::Int8Quads => {
                    sixteens(rows, width, from, units_in(4) / 16 * 16, panel.cast(), 0)
                }
                Packing::Int8QuadsUnsigned => {
                    let flip = if side == Side::A { 0x8080_8080 } else { 0 };
                    sixteens(rows, width, from, units_in(4) / 16 * 16, panel.cast(), flip)
                }
                Packing::Fp16Twice if side == Side::A => {
                    halves_twice(rows, width, from, units_in(2) / 32 * 32, panel.cast())
                }
                Packing::Fp16Twice => halves(rows, width, from, units_in(2) / 32 * 32, panel.cast()),
                _ => 0,
            }
        }
    }

    /// 4×4 transpose of 128-bit lanes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn lanes([x0, x1, x2, x3]: [__m512i; 4]) -> [__m512i; 4] {
        let (even01, even23) = (_mm512_shuffle_i32x4::<0x88>(x0, x1), _mm512_shuffle_i32x4::<0x88>(x2, x3));
        let (odd01, odd23) = (_mm512_shuffle_i32x4::<0xdd>(x0, x1), _mm512_shuffle_i32x4::<0xdd>(x2, x3));
        [
            _mm512_shuffle_i32x4::<0x88>(even01, even23),
            _mm512_shuffle_i32x4::<0x88>(odd01, odd23),
            _mm512_shuffle_i32x4::<0xdd>(even01, even23),
            _mm512_shuffle_i32x4::<0xdd>(odd01, odd23),
        ]
    }

    /// 64 bytes from byte `at` of rows `first..first + N`; rows that do not exist are zero.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load<const N: usize>(rows: Rows, first: usize, at: usize) -> [__m512i; N] {
        let mut vectors = [_mm512_setzero_si512(); N];
        for (i, vector) in vectors.iter_mut().enumerate().take(rows.count.saturating_sub(first)) {
            // SAFETY: the caller vouches for 64 bytes there; a prefetch of any address is harmless.
            unsafe {
                let from = rows.start.add((first + i) * rows.bytes + at);
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(PREFETCH).cast());
                *vector = _mm512_loadu_si512(from.cast());
            }
        }
        vectors
    }

    /// 16×16 transpose of 32-bit units.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transpose16(r: [__m512i; 16]) -> [__m512i; 16] {
        let mut u = r;
        for g in 0..4 {
            let [a, b, c, d] = [r[4 * g], r[4 * g + 1], r[4 * g + 2], r[4 * g + 3]];
            let (low_ab, high_ab) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let (low_cd, high_cd) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            u[4 * g] = _mm512_unpacklo_epi64(low_ab, low_cd);
            u[4 * g + 1] = _mm512_unpackhi_epi64(low_ab, low_cd);
            u[4 * g + 2] = _mm512_unpacklo_epi64(high_ab, high_cd);
            u[4 * g + 3] = _mm512_unpackhi_epi64(high_ab, high_cd);
        }
        let mut out = r;
        for c in 0..4 {
            let lane = lanes([u[c], u[4 + c], u[8 + c], u[12 + c]]);
            for (l, lane) in lane.iter().enumerate() {
                out[4 * l + c] = *lane;
            }
        }
        out
    }

    /// Lanes of a strip of up to `most` rows that begins at `strip`.
    fn mask(width: usize, strip: usize, most: usize) -> u16 {
        let lanes = (width - strip).min(most);
        ((1u32 << lanes) - 1) as u16
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn sixteens(rows: Rows, width: usize, from: usize, count: usize, panel: *mut u32, flip: u32) -> usize {
        let flip = _mm512_set1_epi32(flip as i32);
        for unit in (0..count).step_by(16) {
            for strip in (0..width).step_by(16) {
                // SAFETY: all rows have the units; masked stores stay inside the panel.
                unsafe {
                    let columns = transpose16(load::<16>(rows, strip, (from + unit) * 4));
                    for (i, column) in columns.iter().enumerate() {
                        let to = panel.add((unit + i) * width + strip).cast();
                        _mm512_mask_storeu_epi32(to, mask(width, strip, 16), _mm512_xor_si512(*column, flip));
                    }
                }
            }
        }
        count
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn eights(rows: Rows, width: usize, from: usize, count: usize, panel: *mut u64) -> usize {
        for unit in (0..count).step_by(8) {
            for strip in (0..width).step_by(8) {
                // SAFETY: all rows have the units; masked stores stay inside the panel.
                unsafe {
                    let r = load::<8>(rows, strip, (from + unit) * 8);
                    let even = lanes([0, 2, 4, 6].map(|i| _mm512_unpacklo_epi64(r[i], r[i + 1])));
                    let odd = lanes([0, 2, 4, 6].map(|i| _mm512_unpackhi_epi64(r[i], r[i + 1])));
                    for l in 0..4 {
                        for (c, column) in [even[l], odd[l]].iter().enumerate() {
                            let to = panel.add((unit + 2 * l + c) * width + strip).cast();
                            _mm512_mask_storeu_epi64(to, mask(width, strip, 8) as u8, *column);
                        }
                    }
                }
            }
        }
        count
    }

    /// fp16 elements of A, each written twice.
    #[target_feature(enable = "avx512f")]
    unsafe fn halves_twice(rows: Rows, width: usize, from: usize, count: usize, panel: *mut u32) -> usize {
        let low_half = _mm512_set1_epi32(0xffff);
        for unit in (0..count).step_by(32) {
            for strip in (0..width).step_by(16) {
                // SAFETY: all rows have the units; masked stores stay inside the panel.
                unsafe {
                    let pairs = transpose16(load::<16>(rows, strip, (from + unit) * 2));
                    for (i, pair) in pairs.iter().enumerate() {
                        let first = _mm512_or_si512(_mm512_and_si512(*pair, low_half), _mm512_slli_epi32::<16>(*pair));
                        let second =
                            _mm512_or_si512(_mm512_andnot_si512(low_half, *pair), _mm512_srli_epi32::<16>(*pair));
                        let to = panel.add((unit + 2 * i) * width + strip);
                        _mm512_mask_storeu_epi32(to.cast(), mask(width, strip, 16), first);
                        _mm512_mask_storeu_epi32(to.add(width).cast(), mask(width, strip, 16), second);
                    }
                }
            }
        }
        count
    }

    /// fp16 elements of B; its panels are a whole number of 16 rows wide.
    #[target_feature(enable = "avx512f")]
    unsafe fn halves(rows: Rows, width: usize, from: usize, count: usize, panel: *mut u16) -> usize {
        if !width.is_multiple_of(16) {
            return 0;
        }
        for unit in (0..count).step_by(32) {
            for strip in (0..width).step_by(16) {
                // SAFETY: all rows have the units; the panel holds 16 more elements from each place.
                unsafe {
                    let pairs = transpose16(load::<16>(rows, strip, (from + unit) * 2));
                    for (i, pair) in pairs.iter().enumerate() {
                        let to = panel.add((unit + 2 * i) * width + strip);
                        _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(*pair));
                        let second = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(*pair));
                        _mm256_storeu_si256(to.add(width).cast(), second);
                    }
                }
            }
        }
        count
    }

    /// Copies whole cache lines past the caches, if the target is aligned to them; returns the bytes done.
    pub unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) -> usize {
        if !to.cast::<__m512i>().is_aligned() || !is_x86_feature_detected!("avx512f") {
            return 0;
        }
        // SAFETY: the caller's promise; the instruction set was found.
        unsafe { stream_avx512(from, to, bytes / 64 * 64) }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn stream_avx512(from: *const u8, to: *mut u8, bytes: usize) -> usize {
        for at in (0..bytes).step_by(64) {
            // SAFETY: the caller's promise; `to` is aligned.
            unsafe { _mm512_stream_si512(to.add(at).cast(), _mm512_loadu_si512(from.add(at).cast())) };
        }
        bytes
    }

    /// Non-temporal stores are weakly ordered.
    pub fn finish() {
        // SAFETY: every x86-64 CPU has it.
        unsafe { _mm_sfence() };
    }

    /// Elements done and their sum.
    pub fn sum_bytes(bytes: &[i8]) -> (usize, i32) {
        if !(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")) {
            return (0, 0);
        }
        // SAFETY: the instruction sets were found.
        (bytes.len() / 64 * 64, unsafe { sum_vnni(bytes) })
    }

    /// The dot product with ones, of all whole vectors.
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn sum_vnni(bytes: &[i8]) -> i32 {
        let ones = _mm512_set1_epi8(1);
        let mut sums = _mm512_setzero_si512();
        for bytes in bytes.as_chunks::<64>().0 {
            // SAFETY: 64 bytes are there.
            sums = _mm512_dpbusd_epi32(sums, ones, unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) });
        }
        _mm512_reduce_add_epi32(sums)
    }

    /// Rounds as many whole vectors as there are; returns the elements done.
    pub fn narrow(from: &[f32], to: &mut [f16]) -> usize {
        if !is_x86_feature_detected!("avx512f") {
            return 0;
        }
        let count = from.len().min(to.len()) / 16 * 16;
        // SAFETY: AVX-512F was found, and both slices hold `count` elements.
        unsafe { narrow_avx512(from.as_ptr(), to.as_mut_ptr().cast(), count) };
        count
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn narrow_avx512(from: *const f32, to: *mut u16, count: usize) {
        for i in (0..count).step_by(16) {
            // SAFETY: the caller's promise.
            unsafe {
                let halves =
                    _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm512_loadu_ps(from.add(i)));
                _mm256_storeu_si256(to.add(i).cast(), halves);
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod vectors {
    use super::*;

    pub unsafe fn pack(_: Packing, _: Side, _: Rows, _: usize, _: usize, _: usize, _: *mut u8) -> usize {
        0
    }

    pub fn narrow(_: &[f32], _: &mut [f16]) -> usize {
        0
    }

    pub fn sum_bytes(_: &[i8]) -> (usize, i32) {
        (0, 0)
    }

    pub unsafe fn stream(_: *const u8, _: *mut u8, _: usize) -> usize {
        0
    }

    pub fn finish() {}
}
