//! Matrix data: the same for everyone with the same seed, on every machine.
//!
//! Element `i` of matrix `m` depends on nothing but seed, `m` and `i` (a counter-based generator), so that
//! any number of threads makes the same bytes.

use std::sync::OnceLock;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::record::DataType;

/// Segments of the normal quantile function; its knots fit the first-level cache.
const SEGMENTS: usize = 1 << 12;

/// Standard deviation of int8 data: the largest normal values just reach −128 and 127.
const INT8_DEVIATION: f64 = 36.0;

/// A well-mixed 64-bit number for element `i` of matrix `matrix` (finaliser of SplitMix64, Steele et al. 2014).
pub fn random(seed: u64, matrix: u64, i: u64) -> u64 {
    let stream = seed.wrapping_add(matrix.wrapping_mul(0xd1b5_4a32_d192_ed03));
    mix(mix(stream).wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The finaliser of SplitMix64.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Quantile of the standard normal distribution, relative error about 1e-7 (Wichura, algorithm AS 241,
/// PPND7, for probabilities from 1e-5 to 1 − 1e-5).
fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        let numerator = ((59.109_374_720 * r + 159.291_132_02) * r + 50.434_271_938) * r + 3.387_132_717_9;
        let denominator = ((67.187_563_600 * r + 78.757_757_664) * r + 17.895_169_469) * r + 1.0;
        return q * numerator / denominator;
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-tail.ln()).sqrt() - 1.6;
    let numerator = ((0.170_238_211_03 * r + 1.306_728_481_6) * r + 2.756_815_390_0) * r + 1.423_437_277_7;
    let denominator = (0.120_211_329_75 * r + 0.737_001_642_50) * r + 1.0;
    (numerator / denominator).copysign(q)
}

/// Knots of the quantile function, rounded to 2⁻²⁰ so that libraries with another last digit of `ln` agree.
fn knots() -> &'static [f64; SEGMENTS + 1] {
    static KNOTS: OnceLock<[f64; SEGMENTS + 1]> = OnceLock::new();
    KNOTS.get_or_init(|| {
        let unit = f64::from(1 << 20);
        std::array::from_fn(|t| (normal_quantile((t as f64 + 0.5) / (SEGMENTS + 1) as f64) * unit).round() / unit)
    })
}

/// A normal number from 64 random bits: mean 0, deviation 1, no value beyond 3.7, all mantissa bits random.
fn normal(knots: &[f64; SEGMENTS + 1], bits: u64) -> f64 {
    let segment = (bits >> 52) as usize;
    let within = (bits << 12 >> 12) as f64 * 2f64.powi(-52);
    let (low, high) = (knots[segment], knots[segment + 1]);
    low + within * (high - low)
}

/// What a matrix is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Normal random numbers, deviation 1 (int8: 36, rounded, clipped to the full range).
    Normal,
    /// −1, 0 and 1, with at most `most` non-zero elements in a row of `row`: every partial sum of a product
    /// with such a row is a whole number of at most `most`.
    Ternary {
        /// Elements of a row.
        row: usize,
        /// Non-zero elements allowed.
        most: usize,
    },
    /// All 256 bytes alike, −128 included.
    Bytes,
}

/// Element `i` as a number that `data_type` holds exactly, except that floating types still round it.
fn element(content: Content, data_type: DataType, knots: &[f64; SEGMENTS + 1], seed: u64, matrix: u64, i: u64) -> f64 {
    let bits = random(seed, matrix, i);
    match content {
        Content::Normal if data_type.is_integer() => {
            (normal(knots, bits) * INT8_DEVIATION).round().clamp(-128.0, 127.0)
        }
        Content::Normal => normal(knots, bits),
        Content::Bytes => f64::from(bits as u8 as i8),
        Content::Ternary { row, most } => {
            // One element of each group of `spacing` along the row may be non-zero.
            let spacing = row.div_ceil(most.max(1)).max(1) as u64;
            let (line, column) = (i / row as u64, i % row as u64);
            let chosen = random(seed, matrix ^ 0x5151, line * row as u64 + column / spacing) % spacing;
            let sign = [-1.0, 0.0, 1.0][(bits % 3) as usize];
            if column % spacing == chosen { sign } else { 0.0 }
        }
    }
}

/// Threads for work on matrices: what this process may use, but no more than share memory well.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// `count` elements of a matrix, encoded.
pub fn matrix(content: Content, data_type: DataType, seed: u64, matrix: u64, count: usize) -> Vec<u8> {
    let knots = knots();
    let size = data_type.size();
    let mut bytes = vec![0; count * size];
    let part = count.div_ceil(threads()).max(1);
    std::thread::scope(|scope| {
        for (p, bytes) in bytes.chunks_mut(part * size).enumerate() {
            scope.spawn(move || {
                let mut values = [0.0; 1024];
                for (c, bytes) in bytes.chunks_mut(1024 * size).enumerate() {
                    let first = (p * part + c * 1024) as u64;
                    let values = &mut values[..bytes.len() / size];
                    for (i, x) in values.iter_mut().enumerate() {
                        *x = element(content, data_type, knots, seed, matrix, first + i as u64);
                    }
                    encode(data_type, values, bytes);
                }
            });
        }
    });
    bytes
}

/// fp32 with the low 13 bits rounded away: what a TF32 unit keeps of its inputs.
fn to_tf32(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0x0fff + (bits >> 13 & 1)) & !0x1fff)
}

/// Writes `values` as `data_type`, rounding to nearest.
pub fn encode(data_type: DataType, values: &[f64], bytes: &mut [u8]) {
    let single = |x: &f64| *x as f32;
    match data_type {
        DataType::Fp64 => bytes.chunks_exact_mut(8).zip(values).for_each(|(b, x)| b.copy_from_slice(&x.to_le_bytes())),
        DataType::Tf32 => {
            let words = values.iter().map(|x| to_tf32(single(x)).to_le_bytes());
            bytes.chunks_exact_mut(4).zip(words).for_each(|(b, x)| b.copy_from_slice(&x));
        }
        DataType::Fp16 => {
            let mut halves = vec![f16::ZERO; values.len()];
            halves.convert_from_f32_slice(&values.iter().map(single).collect::<Vec<_>>());
            bytes.chunks_exact_mut(2).zip(halves).for_each(|(b, x)| b.copy_from_slice(&x.to_le_bytes()));
        }
        DataType::Bf16 => {
            let words = values.iter().map(|x| bf16::from_f32(single(x)).to_le_bytes());
            bytes.chunks_exact_mut(2).zip(words).for_each(|(b, x)| b.copy_from_slice(&x));
        }
        DataType::Int8 => bytes.iter_mut().zip(values).for_each(|(b, x)| *b = *x as i8 as u8),
        // The remaining types have no GEMM here; `supports` refuses them before any data is made.
        _ => bytes.chunks_exact_mut(4).zip(values).for_each(|(b, x)| b.copy_from_slice(&single(x).to_le_bytes())),
    }
}

/// How elements of a matrix are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// As the input type.
    Input(DataType),
    /// 32-bit sums of int8 products.
    Int32,
}

impl Stored {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Stored::Input(data_type) => data_type.size(),
            Stored::Int32 => 4,
        }
    }

    /// Reads elements as f64, exactly.
    pub fn decode(self, bytes: &[u8], values: &mut [f64]) {
        macro_rules! numbers {
            ($type:ty, $to_f64:expr) => {
                bytes.as_chunks::<{ size_of::<$type>() }>().0.iter().zip(values).for_each(|(b, x)| {
                    let to_f64: fn($type) -> f64 = $to_f64;
                    *x = to_f64(<$type>::from_le_bytes(*b));
                })
            };
        }
        match self {
            Stored::Int32 => numbers!(i32, f64::from),
            Stored::Input(DataType::Fp64) => numbers!(f64, std::convert::identity),
            Stored::Input(DataType::Fp16) => {
                let halves: Vec<f16> = bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b)).collect();
                let mut singles = vec![0f32; halves.len()];
                halves.convert_to_f32_slice(&mut singles);
                values.iter_mut().zip(singles).for_each(|(x, s)| *x = f64::from(s));
            }
            Stored::Input(DataType::Bf16) => numbers!(bf16, bf16::to_f64),
            Stored::Input(DataType::Int8) => numbers!(i8, f64::from),
            Stored::Input(_) => numbers!(f32, f64::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_published_values() {
        for (p, z) in [(0.5, 0.0), (0.75, 0.674_489_8), (0.9, 1.281_551_6), (0.975, 1.959_964), (0.999, 3.090_232_3)] {
            assert!((normal_quantile(p) - z).abs() < 1e-6, "{p}");
            assert!((normal_quantile(1.0 - p) + z).abs() < 1e-6, "{p}");
        }
    }

    fn decoded(content: Content, data_type: DataType, seed: u64, count: usize) -> Vec<f64> {
        let mut values = vec![0.0; count];
        Stored::Input(data_type).decode(&matrix(content, data_type, seed, 1, count), &mut values);
        values
    }

    #[test]
    fn normal_data_has_mean_0_deviation_1_and_normal_tails() {
        for data_type in [DataType::Fp64, DataType::Fp32, DataType::Tf32, DataType::Fp16, DataType::Bf16] {
            let values = decoded(Content::Normal, data_type, 7, 200_000);
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|x| x * x).sum::<f64>() / n;
            let beyond = values.iter().filter(|x| x.abs() > 1.96).count() as f64 / n;
            assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{data_type}: {mean} {variance}");
            assert!((beyond - 0.05).abs() < 0.003, "{data_type}: {beyond}");
        }
    }

    #[test]
    fn int8_data_covers_the_full_range_without_saturating() {
        let values = decoded(Content::Normal, DataType::Int8, 7, 1 << 20);
        assert!(values.contains(&-128.0) && values.contains(&127.0));
        assert!((values.iter().filter(|x| x.abs() >= 127.0).count()) < values.len() / 500);
        let values = decoded(Content::Bytes, DataType::Int8, 7, 1 << 16);
        assert!((-128..128).all(|x| values.contains(&f64::from(x))));
    }

    #[test]
    fn data_is_the_same_everywhere_and_different_for_each_seed_and_matrix() {
        let digest = |bytes: &[u8]| bytes.iter().fold(0u64, |h, b| mix(h ^ u64::from(*b)));
        let of = |seed, m, count| digest(&matrix(Content::Normal, DataType::Fp64, seed, m, count));
        assert_eq!(of(1, 1, 10_000), of(1, 1, 10_000));
        assert_ne!(of(1, 1, 100), of(2, 1, 100));
        assert_ne!(of(1, 1, 100), of(1, 2, 100));
        let long = matrix(Content::Normal, DataType::Fp32, 5, 1, 5000);
        assert_eq!(long[..4000], matrix(Content::Normal, DataType::Fp32, 5, 1, 1000)[..]);
    }

    #[test]
    fn ternary_rows_keep_their_bound() {
        for (row, most) in [(1000, 256), (256, 256), (4096, 2048), (10, 1)] {
            let values = decoded(Content::Ternary { row, most }, DataType::Fp16, 3, row * 20);
            for line in values.chunks(row) {
                assert!(line.iter().all(|x| [-1.0, 0.0, 1.0].contains(x)));
                let used = line.iter().filter(|x| **x != 0.0).count();
                assert!(used <= most, "{used} of {row}");
            }
            let used = values.iter().filter(|x| **x != 0.0).count();
            let expected = 20 * row.div_ceil(row.div_ceil(most)) * 2 / 3;
            assert!(used * 2 > expected, "{used} of about {expected}");
        }
    }

    #[test]
    fn tf32_inputs_have_ten_fraction_bits() {
        assert_eq!(to_tf32(1.0 + 2f32.powi(-10)), 1.0 + 2f32.powi(-10));
        assert_eq!(to_tf32(1.0 + 2f32.powi(-12)), 1.0);
        assert_eq!(to_tf32(1.0 + 2f32.powi(-11)), 1.0, "ties go to even");
        assert_eq!(to_tf32(1.0 + 3.0 * 2f32.powi(-11)), 1.0 + 2f32.powi(-9));
    }
}
