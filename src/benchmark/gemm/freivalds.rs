//! Freivalds' check (Freivalds 1977): `C·x = A·(Bᵀ·x)` for random x of ±1 costs O(n²) instead of O(n³).
//!
//! A single wrong element changes its row of `C·x` by exactly its error, whatever x is: it is caught with
//! certainty if the error exceeds the bound. Several wrong elements of one row cancel for at most half of all
//! x; other x of other rounds see them.
//!
//! For integer data (and for whole numbers in floating types) everything is exact in f64 and the bound is
//! 0. Otherwise the bound of row i is eight standard deviations of what rounding does to it: rounding of
//! C's type, of sums of k products, and of the check itself, for independent data of mean 0,
//!
//! `8·√( w·c²·(u²·k/6 + v²/3) + 2⁻¹⁰⁶·c²·w·(k/6 + w/3) )`, with `c = |aᵢ|·|B| / √(n·k)`
//!
//! where u and v are the rounding units of accumulation and output, w the columns of one group, and c the
//! size of a typical element of the row. It uses no value of C: a wrong element cannot widen its own bound.
//! Columns are checked in groups so narrow that the bound stays below half a typical element.

use super::data::{self, Stored};
use crate::backend::GemmProblem;

/// Where the bound should stay, in typical elements of C.
const TARGET: f64 = 0.5;
/// Standard deviations of rounding that are allowed for.
const DEVIATIONS: f64 = 8.0;
/// More groups than this cost more than they tell.
const GROUPS_MAX: usize = 64;

/// Inputs of a multiplication as they were uploaded.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Shape.
    pub problem: GemmProblem,
    /// A, row-major m×k.
    pub a: &'a [u8],
    /// B, row-major n×k.
    pub b: &'a [u8],
}

impl Inputs<'_> {
    fn stored(&self) -> Stored {
        Stored::Input(self.problem.data_type)
    }
    fn row_bytes(&self) -> usize {
        self.problem.k * self.problem.data_type.size()
    }
    /// Row `i` of A, exactly.
    pub fn row_a(&self, i: usize, values: &mut [f64]) {
        self.stored().decode(&self.a[i * self.row_bytes()..][..self.row_bytes()], values);
    }
    /// Row `j` of B, exactly.
    pub fn row_b(&self, j: usize, values: &mut [f64]) {
        self.stored().decode(&self.b[j * self.row_bytes()..][..self.row_bytes()], values);
    }
}

/// Precomputed right sides for a set of vectors.
pub struct Freivalds {
    problem: GemmProblem,
    /// Columns of one group.
    width: usize,
    groups: usize,
    /// ±1 for each column, one list per vector.
    signs: Vec<Vec<f64>>,
    /// `A·(Bᵀ·x)` by row, then vector, then group.
    expected: Vec<f64>,
    /// Allowed residual of each row.
    bounds: Vec<f64>,
    /// Largest bound in typical elements of its row.
    relative: f64,
}

/// What a check of C found.
#[derive(Debug, Clone, PartialEq)]
pub struct Residual {
    /// Largest residual relative to its bound; infinite where the bound is 0 or C holds NaN or infinity.
    pub worst: f64,
    /// Row and first column of the worst group.
    pub at: (usize, usize),
    /// Digest of all bytes of C.
    pub digest: u64,
}

/// Rounding bound of a row in units of its typical element.
fn relative_bound(k: usize, width: usize, unit: f64, output: f64) -> f64 {
    let (k, w) = (k as f64, width as f64);
    let rounding = w * (unit * unit * k / 6.0 + output * output / 3.0);
    let check = 2f64.powi(-106) * w * (k / 6.0 + w / 3.0);
    DEVIATIONS * (rounding + check).sqrt()
}

/// Widest group whose bound stays below the target.
fn group_width(n: usize, k: usize, unit: f64, output: f64) -> usize {
    let narrowest = n.div_ceil(GROUPS_MAX);
    let fits = |groups: &usize| relative_bound(k, n.div_ceil(*groups), unit, output) <= TARGET;
    (1..=GROUPS_MAX).find(fits).map_or(narrowest, |groups| n.div_ceil(groups)).max(1)
}

impl Freivalds {
    /// Right sides for `vectors` fresh vectors. `roundoff` holds the rounding units of accumulation and output;
    /// `None` for data on which the multiplication is exact.
    pub fn new(inputs: Inputs<'_>, roundoff: Option<(f64, f64)>, vectors: usize, seed: u64) -> Freivalds {
        let problem = inputs.problem;
        let GemmProblem { n, k, .. } = problem;
        let width = roundoff.map_or(n, |(unit, output)| group_width(n, k, unit, output));
        let groups = n.div_ceil(width);
        let sign =
            |v: usize, j: usize| if data::random(seed, 0xF4E1 + v as u64, j as u64) >> 63 == 0 { 1.0 } else { -1.0 };
        let signs: Vec<Vec<f64>> = (0..vectors).map(|v| (0..n).map(|j| sign(v, j)).collect()).collect();
        let (projected, norm_b) = project(inputs, &signs, width, groups);
        let relative = roundoff.map_or(0.0, |(unit, output)| relative_bound(k, width, unit, output));
        let (expected, bounds) = right_sides(inputs, &projected, vectors * groups, |norm_a| {
            relative * norm_a * norm_b / ((n * k) as f64).sqrt()
        });
        Freivalds { problem, width, groups, signs, expected, bounds, relative }
    }

    /// The bound in typical elements of C; 0 where the check is exact.
    pub fn relative(&self) -> f64 {
        self.relative
    }

    /// Columns of one group.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Vectors prepared.
    pub fn vectors(&self) -> usize {
        self.signs.len()
    }

    /// Compares every element of C, given as stored, with vector `vector` (modulo their number).
    pub fn check(&self, c: &[u8], stored: Stored, vector: usize) -> Residual {
        let n = self.problem.n;
        let vector = vector % self.signs.len();
        let row_bytes = n * stored.size();
        let part = self.problem.m.div_ceil(data::threads()).max(1);
        let results = std::thread::scope(|scope| {
            let check = |(p, rows)| scope.spawn(move || self.check_rows(rows, row_bytes, stored, vector, p * part));
            let threads: Vec<_> = c.chunks(part * row_bytes).enumerate().map(check).collect();
            threads.into_iter().map(|t| t.join().unwrap_or(None)).collect::<Vec<_>>()
        });
        let nothing = Residual { worst: 0.0, at: (0, 0), digest: 0 };
        results.into_iter().fold(nothing, |total, part| match part {
            Some(part) => {
                let digest = total.digest.wrapping_add(part.digest);
                let worse = if part.worst > total.worst { part } else { total };
                Residual { digest, ..worse }
            }
            // A check that broke off is no evidence that C is right.
            None => Residual { worst: f64::INFINITY, ..total },
        })
    }

    fn check_rows(
        &self,
        rows: &[u8],
        row_bytes: usize,
        stored: Stored,
        vector: usize,
        first: usize,
    ) -> Option<Residual> {
        let mut values = vec![0.0; self.problem.n];
        let mut result = Residual { worst: 0.0, at: (first, 0), digest: 0 };
        for (r, bytes) in rows.chunks_exact(row_bytes).enumerate() {
            let row = first + r;
            stored.decode(bytes, &mut values);
            let expected = self.expected.get((row * self.signs.len() + vector) * self.groups..)?;
            let columns = values.chunks(self.width).zip(self.signs.get(vector)?.chunks(self.width));
            for (g, ((values, signs), expected)) in columns.zip(expected).enumerate() {
                let error = (dot(values, signs) - expected).abs();
                let bound = *self.bounds.get(row)?;
                // NaN is not ≤ anything.
                let relative = match error {
                    0.0 => 0.0,
                    error if error.is_finite() => error / bound,
                    _ => f64::INFINITY,
                };
                if relative > result.worst {
                    (result.worst, result.at) = (relative, (row, g * self.width));
                }
            }
            result.digest = result.digest.wrapping_add(data::mix(digest(bytes) ^ data::mix(row as u64)));
        }
        Some(result)
    }
}

/// Eight partial sums, so that the compiler may use vectors.
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    let ((xs, x), (ys, y)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (x, y) in xs.iter().zip(ys) {
        for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
            *sum += x * y;
        }
    }
    let rest: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// A 64-bit digest of a row; equal rows have equal digests, others differ but for chance.
fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let step = |h: u64, word: u64| (h.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = words.iter().fold(bytes.len() as u64, |h, word| step(h, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |h, byte| step(h, u64::from(*byte)))
}

/// `Bᵀ·x` for all vectors and groups, each k long, and the Frobenius norm of B.
fn project(inputs: Inputs<'_>, signs: &[Vec<f64>], width: usize, groups: usize) -> (Vec<f64>, f64) {
    let GemmProblem { n, k, .. } = inputs.problem;
    let part = n.div_ceil(data::threads()).max(1);
    let sum_rows = |from: usize, to: usize| {
        let mut sums = vec![0.0; signs.len() * groups * k];
        let mut row = vec![0.0; k];
        let mut squares = 0.0;
        for j in from..to {
            inputs.row_b(j, &mut row);
            squares += dot(&row, &row);
            for (v, signs) in signs.iter().enumerate() {
                let sums = &mut sums[(v * groups + j / width) * k..][..k];
                let sign = signs[j];
                sums.iter_mut().zip(&row).for_each(|(sum, x)| *sum += sign * x);
            }
        }
        (sums, squares)
    };
    std::thread::scope(|scope| {
        let spawn = |from: usize| scope.spawn(move || sum_rows(from, (from + part).min(n)));
        let threads: Vec<_> = (0..n).step_by(part).map(spawn).collect();
        let mut total = (vec![0.0; signs.len() * groups * k], 0.0);
        for thread in threads {
            // A panic in there is a bug of ours: the case fails as one instead of passing unchecked.
            let (sums, squares) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            total.0.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            total.1 += squares;
        }
        (total.0, total.1.sqrt())
    })
}

/// `A·y` for each of `count` projections, by row, and each row's bound from its norm.
fn right_sides(
    inputs: Inputs<'_>,
    projected: &[f64],
    count: usize,
    bound: impl Fn(f64) -> f64 + Sync,
) -> (Vec<f64>, Vec<f64>) {
    let GemmProblem { m, k, .. } = inputs.problem;
    let mut expected = vec![0.0; m * count];
    let mut bounds = vec![0.0; m];
    let part = m.div_ceil(data::threads()).max(1);
    std::thread::scope(|scope| {
        for (p, (expected, bounds)) in expected.chunks_mut(part * count).zip(bounds.chunks_mut(part)).enumerate() {
            let bound = &bound;
            scope.spawn(move || {
                let mut row = vec![0.0; k];
                for (i, (expected, limit)) in expected.chunks_mut(count).zip(bounds).enumerate() {
                    inputs.row_a(p * part + i, &mut row);
                    for (expected, y) in expected.iter_mut().zip(projected.chunks_exact(k)) {
                        *expected = dot(&row, y);
                    }
                    *limit = bound(dot(&row, &row).sqrt());
                }
            });
        }
    });
    (expected, bounds)
}
