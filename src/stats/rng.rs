//! A small seeded generator, so that every number here can be repeated.

use super::normal_quantile;

/// xoshiro256++ (Blackman and Vigna 2019), seeded through SplitMix64.
#[derive(Debug, Clone)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The same seed gives the same sequence on every machine.
    pub fn new(mut seed: u64) -> Rng {
        let mut split_mix = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Rng([split_mix(), split_mix(), split_mix(), split_mix()])
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in (0, 1), never an end.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Uniform in 0..n; 0 if n is 0. The bias of the multiplication is below n / 2⁶⁴.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_and_xoshiro_reference_values() {
        // First outputs of SplitMix64 with seed 1234567 (reference implementation) are the state here.
        let rng = Rng::new(1_234_567);
        assert_eq!(rng.0[..3], [6457827717110365317, 3203168211198807973, 9817491932198370423]);
        // First outputs of xoshiro256++ from state 1 2 3 4 (reference implementation).
        let mut rng = Rng([1, 2, 3, 4]);
        assert_eq!([rng.bits(), rng.bits(), rng.bits()], [41943041, 58720359, 3588806011781223]);
    }

    #[test]
    fn moments_of_the_normal() {
        let mut rng = Rng::new(3);
        let values: Vec<f64> = (0..20_000).map(|_| rng.normal()).collect();
        let mean = values.iter().sum::<f64>() / 20_000.0;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        assert!((0..1000).all(|_| rng.below(3) < 3));
        assert_eq!(rng.below(0), 0);
    }
}
