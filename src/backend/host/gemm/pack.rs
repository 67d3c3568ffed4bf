//! Packing: rows of A or B, contiguous along k, become panels in which the elements that one step along k
//! needs lie side by side.

use half::f16;

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
    // SAFETY: the caller's promise.
    unsafe {
        match packing {
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
