//! Exact data: products of whole numbers so small that every type and every order of summation gives the
//! same result, to be compared without tolerance.

use super::data::{self, Content, Stored};
use super::freivalds::{Freivalds, Inputs, dot};
use crate::backend::GemmProblem;
use crate::record::DataType;

/// Lines compared element by element, in each direction; first and last are always among them.
const LINES: usize = 8;

/// Largest partial sum that the type of C holds exactly together with all smaller whole numbers.
fn largest_sum(data_type: DataType) -> usize {
    match data_type {
        DataType::Fp16 => 2048,
        DataType::Bf16 => 256,
        _ => 1 << 24,
    }
}

/// A and B for `problem`.
pub fn inputs(problem: &GemmProblem, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let GemmProblem { data_type, m, n, k } = *problem;
    let (a, b) = match data_type {
        DataType::Int8 => (Content::Bytes, Content::Bytes),
        _ => (Content::Ternary { row: k, most: largest_sum(data_type) }, Content::Ternary { row: k, most: usize::MAX }),
    };
    (data::matrix(a, data_type, seed, 3, m * k), data::matrix(b, data_type, seed, 4, n * k))
}

/// What the data is, for the method's text.
pub fn describe(problem: &GemmProblem) -> String {
    match problem.data_type {
        DataType::Int8 => "exact full-range bytes".to_owned(),
        data_type => format!("exact ternary data with partial sums ≤ {}", largest_sum(data_type).min(problem.k)),
    }
}

/// Expected results.
pub struct Exact {
    problem: GemmProblem,
    freivalds: Freivalds,
    /// Row number and all its elements.
    rows: Vec<(usize, Vec<f64>)>,
    /// Column number and all its elements.
    columns: Vec<(usize, Vec<f64>)>,
}

impl Exact {
    /// Computes them in f64, where they are exact.
    pub fn new(inputs: Inputs<'_>, seed: u64) -> Exact {
        let GemmProblem { m, n, .. } = inputs.problem;
        let line = |is_row: bool, number: usize| (number, expected_line(inputs, is_row, number));
        let (rows, columns) = std::thread::scope(|scope| {
            let rows = scope.spawn(|| lines(m, seed, 5).into_iter().map(|i| line(true, i)).collect::<Vec<_>>());
            let columns = lines(n, seed, 6).into_iter().map(|j| line(false, j)).collect::<Vec<_>>();
            (rows.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), columns)
        });
        Exact { problem: inputs.problem, freivalds: Freivalds::new(inputs, None, 2, !seed), rows, columns }
    }

    /// Rows compared element by element.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Columns compared element by element.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// What is wrong with C, if anything.
    pub fn check(&self, c: &[u8], stored: Stored) -> Option<String> {
        let GemmProblem { m, n, .. } = self.problem;
        let size = stored.size();
        let mut found = vec![0.0; m.max(n)];
        let differs = |found: &[f64], expected: &[f64]| found.iter().zip(expected).position(|(f, e)| f != e);
        for (row, expected) in &self.rows {
            stored.decode(&c[row * n * size..][..n * size], &mut found[..n]);
            if let Some(column) = differs(&found, expected) {
                let (found, expected) = (found[column], expected[column]);
                return Some(format!("element ({row}, {column}) is {found}, expected {expected}"));
            }
        }
        for (column, expected) in &self.columns {
            for (row, x) in found[..m].iter_mut().enumerate() {
                stored.decode(&c[(row * n + column) * size..][..size], std::slice::from_mut(x));
            }
            if let Some(row) = differs(&found, expected) {
                let (found, expected) = (found[row], expected[row]);
                return Some(format!("element ({row}, {column}) is {found}, expected {expected}"));
            }
        }
        let wrong =
            (0..self.freivalds.vectors()).map(|v| self.freivalds.check(c, stored, v)).find(|r| r.worst != 0.0)?;
        let row = wrong.at.0;
        stored.decode(&c[row * n * size..][..n * size], &mut found[..n]);
        let why = if found[..n].iter().any(|x| x.is_nan()) { "holds NaN" } else { "does not add up" };
        Some(format!("row {row} {why}"))
    }
}

/// First, last and random numbers below `count`, ascending.
fn lines(count: usize, seed: u64, stream: u64) -> Vec<usize> {
    let random = (0..LINES as u64 - 2).map(|i| data::random(seed, stream, i) as usize % count);
    let mut lines: Vec<usize> = random.chain([0, count - 1]).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// All elements of one row or column of C.
fn expected_line(inputs: Inputs<'_>, is_row: bool, number: usize) -> Vec<f64> {
    let GemmProblem { m, n, k, .. } = inputs.problem;
    let (mut fixed, mut other) = (vec![0.0; k], vec![0.0; k]);
    if is_row {
        inputs.row_a(number, &mut fixed)
    } else {
        inputs.row_b(number, &mut fixed)
    }
    let element = |i: usize| {
        if is_row {
            inputs.row_b(i, &mut other)
        } else {
            inputs.row_a(i, &mut other)
        }
        dot(&fixed, &other)
    };
    (0..if is_row { n } else { m }).map(element).collect()
}
