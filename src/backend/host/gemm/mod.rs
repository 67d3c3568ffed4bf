//! GEMM on the CPU: `C = A·Bᵀ` by packed panels and register tiles, after Goto and van de Geijn, "Anatomy
//! of High-Performance Matrix Multiplication" (2008).
//!
//! Two parallel phases over the pinned pool. First all rows of A and B are packed into panels. Then C is
//! cut into blocks that the threads take in turn: for each k block and each B panel (which stays in the
//! first-level cache) all A panels of the block (which stay in the second) are multiplied into register
//! tiles. A block's sums stay in a small buffer of the thread's own and are converted to C once, at the end.
//! Each element of C is summed in the same order whatever the number of threads: results are repeatable.

mod pack;
mod tile;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::f16;

use self::pack::{Rows, Side};
use self::tile::{Packing, Tile};
use super::memory::{Address, Mapping};
use super::pool::Pool;
use crate::backend::{DeviceError, GemmPlan, GemmProblem, RawGemm};
use crate::record::{DataType, Engine, EngineKind};

/// k units of one block: a B panel of three 64-byte vectors per unit then takes 24 KiB, and half of a first-level
/// cache is left for A and the tile.
const UNITS: usize = 128;
/// Panels of A in one block of C: 256 rows take 128 or 256 KiB of packed A, which fits second-level caches.
const PANELS_A: usize = 32;
/// Panels of B in one block of C; more make the sums' buffer larger, fewer use each panel of A less often.
const PANELS_B: usize = 11;

/// Size from which C is not kept in caches: several second-level caches.
const STREAMING_BYTES: usize = 8 << 20;

/// A planned multiplication with its packed panels and buffers.
pub struct Gemm {
    problem: GemmProblem,
    tile: Tile,
    a: Packed,
    b: Packed,
    /// Sum of each row of B, for the shift of A by 128.
    sums_b: Mapping,
    /// A block's tiles, for each thread.
    blocks: Vec<Mapping>,
    /// C is written past the caches.
    streaming: bool,
}

/// One matrix as panels, k block by k block.
struct Packed {
    side: Side,
    packing: Packing,
    /// Rows of a panel.
    width: usize,
    /// Panels.
    panels: usize,
    /// Rows of the matrix.
    rows: usize,
    /// Bytes of a row of the matrix.
    row_bytes: usize,
    /// k units of a row.
    units: usize,
    memory: Mapping,
}

impl Packed {
    fn new(
        side: Side,
        packing: Packing,
        width: usize,
        rows: usize,
        k: usize,
        pool: &Pool,
    ) -> Result<Packed, DeviceError> {
        let panels = rows.div_ceil(width);
        let units = k.div_ceil(packing.elements());
        let size = checked_product(&[panels, width, units, packing.unit(side)])?;
        let memory = Mapping::new(size, pool)?;
        Ok(Packed { side, packing, width, panels, rows, row_bytes: k * packing.source(), units, memory })
    }

    /// Offset in bytes of panel `panel` in the block of `length` units that begins at unit `from`.
    fn offset(&self, panel: usize, from: usize, length: usize) -> usize {
        (from * self.panels + panel * length) * self.width * self.packing.unit(self.side)
    }

    /// First row of `panel`, and how many it has.
    fn rows_of(&self, panel: usize) -> (usize, usize) {
        let first = panel * self.width;
        (first, self.width.min(self.rows - first))
    }

    /// Packs one panel of the matrix at `source`.
    ///
    /// # Safety
    /// The matrix must be readable, and no other thread may pack the same panel.
    unsafe fn pack(&self, source: *const u8, panel: usize) {
        let (first, count) = self.rows_of(panel);
        // SAFETY: `first` + `count` rows exist; the offset lies inside `memory`.
        unsafe {
            let rows = Rows { start: source.add(first * self.row_bytes), count, bytes: self.row_bytes };
            for (from, length) in blocks_of(self.units, UNITS) {
                let to = self.memory.start().add(self.offset(panel, from, length));
                pack::pack(self.packing, self.side, rows, self.width, from, from + length, to);
            }
        }
    }
}

/// Product of sizes, or out of memory where it does not fit the address space.
fn checked_product(factors: &[usize]) -> Result<usize, DeviceError> {
    let product = factors.iter().try_fold(1usize, |p, f| p.checked_mul(*f));
    product.ok_or_else(|| DeviceError::OutOfMemory(format!("{factors:?} elements exceed the address space")))
}

/// `total` cut into pieces of at most `most`: start and length of each.
fn blocks_of(total: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..total).step_by(most).map(move |from| (from, most.min(total - from)))
}

/// Start of part `i` when `total` is cut into `parts` of nearly equal length.
fn cut(total: usize, parts: usize, i: usize) -> usize {
    total * i / parts
}

impl Gemm {
    /// Plans `problem` with the best tile of this CPU.
    pub fn new(problem: &GemmProblem, pool: &Pool) -> Result<Gemm, DeviceError> {
        let [fp64, fp32, fp16, int8] = tile::tiles();
        let tiles = match problem.data_type {
            DataType::Fp64 => fp64,
            DataType::Fp32 => fp32,
            DataType::Fp16 => fp16,
            DataType::Int8 => int8,
            other => return Err(DeviceError::Unsupported(format!("{other} GEMM on the host"))),
        };
        let tile = tiles.first().copied().ok_or_else(|| DeviceError::Unsupported("no GEMM kernel".to_owned()))?;
        Gemm::with_tile(problem, tile, pool)
    }

    fn with_tile(problem: &GemmProblem, tile: Tile, pool: &Pool) -> Result<Gemm, DeviceError> {
        let GemmProblem { m, n, k, .. } = *problem;
        if m == 0 || n == 0 || k == 0 {
            return Err(DeviceError::Unsupported(format!("an empty GEMM ({m}×{n}×{k})")));
        }
        checked_product(&[m.max(n), k.max(n), 8])?;
        let a = Packed::new(Side::A, tile.packing, tile.rows, m, k, pool)?;
        let b = Packed::new(Side::B, tile.packing, tile.columns, n, k, pool)?;
        let sums_b = Mapping::new(b.panels * tile.columns * size_of::<i32>(), pool)?;
        let block = PANELS_A.min(a.panels) * PANELS_B.min(b.panels) * tile.rows * tile.columns * tile.packing.sum();
        let blocks = (0..pool.threads()).map(|_| Mapping::reserve(block)).collect::<Result<Vec<_>, _>>()?;
        pool.run(&|member| {
            // SAFETY: each member first touches, and later uses, only its own block.
            unsafe { blocks[member].start().write_bytes(0, block) };
        });
        let streaming = m * n * tile.packing.sum() > STREAMING_BYTES;
        Ok(Gemm { problem: *problem, tile, a, b, sums_b, blocks, streaming })
    }

    /// Bytes of A, B and C.
    pub fn bytes(&self) -> [usize; 3] {
        let GemmProblem { data_type, m, n, k } = self.problem;
        [m * k * data_type.size(), n * k * data_type.size(), m * n * self.size_c()]
    }

    fn size_c(&self) -> usize {
        if self.problem.data_type.is_integer() { 4 } else { self.problem.data_type.size() }
    }

    /// What the plan tells its user.
    pub fn plan(&self, raw: RawGemm) -> GemmPlan {
        let half = 2f64.powi(-11);
        let (accumulate, unit_roundoff, output_roundoff) = match self.problem.data_type {
            DataType::Fp64 => ("fp64".to_owned(), 2f64.powi(-53), 2f64.powi(-53)),
            DataType::Fp32 => ("fp32".to_owned(), 2f64.powi(-24), 2f64.powi(-24)),
            DataType::Int8 => ("int32".to_owned(), 0.0, 0.0),
            _ if self.tile.fp16_block == 0 => ("fp32".to_owned(), 2f64.powi(-24), half),
            _ => {
                let block = self.tile.fp16_block;
                let share = (block as f64 / self.problem.k as f64).min(1.0);
                (format!("fp16 over {block} steps, then fp32"), half * share.sqrt(), half)
            }
        };
        let conditions = BTreeMap::from([
            ("accumulate".to_owned(), accumulate),
            ("instruction_set".to_owned(), self.tile.name.to_owned()),
            ("tile".to_owned(), format!("{}×{}", self.tile.rows, self.tile.columns)),
            ("threads".to_owned(), self.blocks.len().to_string()),
        ]);
        let engine = Engine {
            name: format!("own {}", self.tile.name),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            library: None,
            kind: if self.tile.fast { EngineKind::Decisive } else { EngineKind::LowOnly },
            conditions,
        };
        GemmPlan { raw, engine, size_c: self.size_c(), unit_roundoff, output_roundoff }
    }

    /// Computes C; returns when it is complete.
    ///
    /// # Safety
    /// The matrices must have the sizes of [`Gemm::bytes`], C must not overlap A or B, and one plan must not
    /// run twice at the same time.
    pub unsafe fn run(&self, pool: &Pool, a: *const u8, b: *const u8, c: *mut u8) {
        let (a, b, c) = (Address::new(a.cast_mut()), Address::new(b.cast_mut()), Address::new(c));
        let turns = Turns::new(self.a.panels + self.b.panels);
        pool.run(&|_| {
            for i in turns.take() {
                // SAFETY: the caller's promise; each panel is taken once.
                unsafe {
                    match i.checked_sub(self.a.panels) {
                        None => self.a.pack(a.get(), i),
                        Some(i) => self.pack_b(b.get(), i),
                    }
                }
            }
        });
        let (down, across) = (self.a.panels.div_ceil(PANELS_A), self.b.panels.div_ceil(PANELS_B));
        let turns = Turns::new(down * across);
        pool.run(&|member| {
            for i in turns.take() {
                let (i, j) = (i % down, i / down);
                let panels_a = cut(self.a.panels, down, i)..cut(self.a.panels, down, i + 1);
                let panels_b = cut(self.b.panels, across, j)..cut(self.b.panels, across, j + 1);
                let block = self.blocks[member].start();
                // SAFETY: all panels are packed; each block of C is taken once, and `block` is this member's.
                unsafe { self.block(panels_a, panels_b, block, c.get()) };
            }
        });
    }

    unsafe fn pack_b(&self, b: *const u8, panel: usize) {
        // SAFETY: the caller's promise, and `sums_b` has room for every row of every panel.
        unsafe {
            self.b.pack(b, panel);
            if self.tile.packing == Packing::Int8QuadsUnsigned {
                let (first, count) = self.b.rows_of(panel);
                for row in first..first + count {
                    let bytes =
                        std::slice::from_raw_parts(b.add(row * self.b.row_bytes).cast::<i8>(), self.b.row_bytes);
                    *self.sums_b.start().cast::<i32>().add(row) = pack::sum_bytes(bytes);
                }
            }
        }
    }

    /// Multiplies one block of C into `block`, tile by tile, and writes it to C.
    unsafe fn block(
        &self,
        panels_a: std::ops::Range<usize>,
        panels_b: std::ops::Range<usize>,
        block: *mut u8,
        c: *mut u8,
    ) {
        let tile_bytes = self.tile.rows * self.tile.columns * self.tile.packing.sum();
        let place = |i: usize, j: usize| ((j - panels_b.start) * panels_a.len() + (i - panels_a.start)) * tile_bytes;
        // SAFETY: offsets of packed panels and of tiles lie inside their memory.
        unsafe {
            for (from, length) in blocks_of(self.a.units, UNITS) {
                for j in panels_b.clone() {
                    let b = self.b.memory.start().add(self.b.offset(j, from, length));
                    for i in panels_a.clone() {
                        let a = self.a.memory.start().add(self.a.offset(i, from, length));
                        (self.tile.run)(length, a, b, block.add(place(i, j)), from == 0);
                    }
                }
            }
            for j in panels_b.clone() {
                for i in panels_a.clone() {
                    self.write_tile(i, j, block.add(place(i, j)), c);
                }
            }
            pack::finish();
        }
    }

    /// Converts one tile of sums to C, as far as C reaches.
    unsafe fn write_tile(&self, i: usize, j: usize, tile: *const u8, c: *mut u8) {
        let ((first_row, rows), (first_column, columns)) = (self.a.rows_of(i), self.b.rows_of(j));
        let (sum, size_c) = (self.tile.packing.sum(), self.size_c());
        for row in 0..rows {
            // SAFETY: `row` is inside the tile; the target is inside C, and this block's owner alone writes it.
            unsafe {
                let from = tile.add(row * self.tile.columns * sum);
                let to = c.add(((first_row + row) * self.problem.n + first_column) * size_c);
                match self.tile.packing {
                    Packing::Fp16Twice | Packing::Fp16AsFp32 => {
                        let from = std::slice::from_raw_parts(from.cast::<f32>(), columns);
                        pack::narrow(from, std::slice::from_raw_parts_mut(to.cast::<f16>(), columns));
                    }
                    Packing::Int8QuadsUnsigned => {
                        let sums_b = self.sums_b.start().cast::<i32>().add(first_column);
                        for column in 0..columns {
                            let excess = (*sums_b.add(column)).wrapping_mul(128);
                            *to.cast::<i32>().add(column) = (*from.cast::<i32>().add(column)).wrapping_sub(excess);
                        }
                    }
                    _ => pack::write_row(from, to, columns * sum, self.streaming),
                }
            }
        }
    }
}

/// Numbers below a limit, each handed out once to whoever asks first.
struct Turns {
    next: AtomicUsize,
    limit: usize,
}

impl Turns {
    fn new(limit: usize) -> Turns {
        Turns { next: AtomicUsize::new(0), limit }
    }

    fn take(&self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(|| Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::facts;

    fn pool() -> Pool {
        let allowed = facts::affinity();
        Pool::new((0..3).map(|t| allowed[t % allowed.len()]).collect()).unwrap()
    }

    /// Asymmetric values that differ in every position.
    fn value(i: usize, seed: u64) -> i64 {
        (crate::kernel::pattern(i as u64, seed as u32) % 256) as i64 - 128
    }

    fn reference(problem: &GemmProblem, a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64) -> Vec<f64> {
        let GemmProblem { m, n, k, .. } = *problem;
        let element = |i: usize| (0..k).map(|p| a(i / n * k + p) * b(i % n * k + p)).sum();
        (0..m * n).map(element).collect()
    }

    const SHAPES: [(usize, usize, usize); 8] = [
        (1, 1, 1),
        (5, 7, 3),
        (12, 32, 256),
        (13, 33, 257),
        (121, 65, 130),
        (37, 300, 1030),
        (250, 31, 515),
        (64, 64, 2048),
    ];

    fn check<T: Copy + Default + PartialEq + std::fmt::Debug>(
        data_type: DataType,
        tiles: &[Tile],
        from: impl Fn(f64) -> T,
        scale: f64,
        close: impl Fn(usize, usize, f64) -> bool,
        read_c: impl Fn(&[u8], usize) -> f64,
    ) {
        let pool = pool();
        for tile in tiles {
            for (m, n, k) in SHAPES {
                let problem = GemmProblem { data_type, m, n, k };
                let a: Vec<T> = (0..m * k).map(|i| from(value(i, 1) as f64 * scale)).collect();
                let b: Vec<T> = (0..n * k).map(|i| from(value(i, 2) as f64 * scale)).collect();
                let expected = reference(&problem, |i| value(i, 1) as f64 * scale, |i| value(i, 2) as f64 * scale);
                let gemm = Gemm::with_tile(&problem, *tile, &pool).unwrap();
                let size_c = gemm.size_c();
                // Guard bytes behind C show writes past its end.
                let mut c = vec![0xa5u8; m * n * size_c + 256];
                for _ in 0..2 {
                    // SAFETY: the vectors have the sizes of the problem.
                    unsafe { gemm.run(&pool, a.as_ptr().cast(), b.as_ptr().cast(), c.as_mut_ptr()) };
                }
                for (i, expected) in expected.iter().enumerate() {
                    let found = read_c(&c, i);
                    assert!(
                        close(k, i, found - expected),
                        "{} {data_type} {m}×{n}×{k} element {i}: {found}, expected {expected}",
                        tile.name
                    );
                }
                assert!(c[m * n * size_c..].iter().all(|byte| *byte == 0xa5), "wrote past C");
            }
        }
    }

    #[test]
    fn every_fp64_tile_multiplies() {
        let read = |c: &[u8], i: usize| f64::from_le_bytes(c[i * 8..][..8].try_into().unwrap());
        check(DataType::Fp64, &tile::tiles()[0], |x| x, 1.0 / 64.0, |_, _, e| e == 0.0, read);
    }

    #[test]
    fn every_fp32_tile_multiplies() {
        let read = |c: &[u8], i: usize| f64::from(f32::from_le_bytes(c[i * 4..][..4].try_into().unwrap()));
        // 14-bit products, sums below 2²⁴ of their unit up to k = 1024, rarely above for longer ones.
        let close = |k: usize, _: usize, e: f64| if k <= 1024 { e == 0.0 } else { e.abs() < 1e-2 };
        check(DataType::Fp32, &tile::tiles()[1], |x| x as f32, 1.0 / 64.0, close, read);
    }

    #[test]
    fn every_fp16_tile_multiplies() {
        let read = |c: &[u8], i: usize| f16::from_le_bytes([c[i * 2], c[i * 2 + 1]]).to_f64();
        // Values up to 2, exact; rounding errors of 2⁻¹¹ of partial sums of products around 1 mostly cancel.
        let close = |k: usize, _: usize, e: f64| e.abs() < 2f64.powi(-9) * (k + 4) as f64;
        check(DataType::Fp16, &tile::tiles()[2], f16::from_f64, 1.0 / 64.0, close, read);
    }

    #[test]
    fn every_int8_tile_is_exact_on_the_full_range() {
        let read = |c: &[u8], i: usize| f64::from(i32::from_le_bytes(c[i * 4..][..4].try_into().unwrap()));
        check(DataType::Int8, &tile::tiles()[3], |x| x as i8, 1.0, |_, _, e| e == 0.0, read);
    }

    #[test]
    fn int8_extremes_do_not_saturate() {
        let pool = pool();
        let (m, n, k) = (14, 40, 1027);
        for tile in &tile::tiles()[3] {
            for (x, y) in [(-128i8, -128i8), (-128, 127), (127, -128), (127, 127)] {
                let problem = GemmProblem { data_type: DataType::Int8, m, n, k };
                let (a, b) = (vec![x; m * k], vec![y; n * k]);
                let mut c = vec![0i32; m * n];
                let gemm = Gemm::with_tile(&problem, *tile, &pool).unwrap();
                // SAFETY: the vectors have the sizes of the problem.
                unsafe { gemm.run(&pool, a.as_ptr().cast(), b.as_ptr().cast(), c.as_mut_ptr().cast()) };
                assert!(c.iter().all(|c| *c == i32::from(x) * i32::from(y) * k as i32), "{} {x}×{y}", tile.name);
            }
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        let problem = GemmProblem { data_type: DataType::Fp32, m: 130, n: 200, k: 600 };
        let a: Vec<f32> = (0..130 * 600).map(|i| value(i, 3) as f32 * 0.37).collect();
        let b: Vec<f32> = (0..200 * 600).map(|i| value(i, 4) as f32 * 0.71).collect();
        let cpu = facts::affinity()[0];
        let results: Vec<Vec<f32>> = [1, 2, 5]
            .into_iter()
            .map(|threads| {
                let pool = Pool::new(vec![cpu; threads]).unwrap();
                let mut c = vec![0f32; 130 * 200];
                let gemm = Gemm::new(&problem, &pool).unwrap();
                // SAFETY: the vectors have the sizes of the problem.
                unsafe { gemm.run(&pool, a.as_ptr().cast(), b.as_ptr().cast(), c.as_mut_ptr().cast()) };
                c
            })
            .collect();
        assert!(results.iter().all(|c| *c == results[0]));
    }
}
