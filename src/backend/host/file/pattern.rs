//! Content of test files: incompressible, seeded, and derivable from where it stands and when it was written.
//!
//! A page of 4 KiB is one of 256 pseudo-random base pages, xor a 64-bit key of (seed, page number, ticket).
//! The ticket names the write that put it there. Filling and checking run at memory speed, and any flipped
//! bit, misplaced page or stale write differs from what is expected.

/// Bytes of one page: the unit in which content is derived and checked.
pub const PAGE: usize = 4096;

const WORDS: usize = PAGE / 8;
const BASE_PAGES: usize = 256;

/// The content of one test file.
#[derive(Debug)]
pub struct Pattern {
    seed: u64,
    base: Vec<u64>,
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection on 64 bits that mixes well.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Pattern {
    /// The pattern of `seed`.
    pub fn new(seed: u64) -> Pattern {
        let word = |i: usize| mix(seed.wrapping_add((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Pattern { seed, base: (0..BASE_PAGES * WORDS).map(word).collect() }
    }

    fn page(&self, page: u64, ticket: u64) -> (u64, &[u64]) {
        let key = mix(mix(page ^ self.seed.rotate_left(32)) ^ ticket);
        let start = (page % BASE_PAGES as u64) as usize * WORDS;
        (key, &self.base[start..start + WORDS])
    }

    /// Writes page number `page` as of `ticket` into `out` ([`PAGE`] bytes).
    pub fn fill(&self, page: u64, ticket: u64, out: &mut [u8]) {
        let (key, base) = self.page(page, ticket);
        for (out, word) in out.chunks_exact_mut(8).zip(base) {
            out.copy_from_slice(&(word ^ key).to_le_bytes());
        }
    }

    /// Offset of the first wrong byte of `data`, which should be page number `page` as of `ticket`.
    pub fn first_wrong(&self, page: u64, ticket: u64, data: &[u8]) -> Option<usize> {
        let (key, base) = self.page(page, ticket);
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        // One accumulated difference first: this is the path of right data, and it vectorises.
        let difference = data.chunks_exact(8).zip(base).fold(0, |d, (bytes, base)| d | (word(bytes) ^ base ^ key));
        if difference == 0 && data.len() == PAGE {
            return None;
        }
        let expected = base.iter().flat_map(|base| (base ^ key).to_le_bytes());
        Some(data.iter().zip(expected).position(|(a, b)| *a != b).unwrap_or(data.len()))
    }
}

/// Visits each of `0..n` once per pass in scattered order; the same order in every pass, so two requests for
/// one block are always `n` requests apart.
#[derive(Debug, Clone, Copy)]
pub struct Scatter {
    n: u64,
    bits: u32,
    seed: u64,
}

impl Scatter {
    /// The order of `seed` over `0..n`, `n` > 0.
    pub fn new(n: u64, seed: u64) -> Scatter {
        Scatter { n, bits: (64 - n.saturating_sub(1).leading_zeros()).max(2), seed }
    }

    /// Position of the `i`-th visit.
    pub fn at(&self, i: u64) -> u64 {
        let mut x = i % self.n;
        // Cycle walking: a permutation of 2^bits becomes one of 0..n, in under two steps on average.
        loop {
            x = self.permute(x);
            if x < self.n {
                return x;
            }
        }
    }

    /// A bijection of `0..2^bits`: each step (xor a constant, xor-shift right, times an odd number) is one.
    fn permute(&self, mut x: u64) -> u64 {
        let mask = (1u64 << self.bits) - 1;
        for round in 0..3 {
            x ^= mix(self.seed.wrapping_add(round)) & mask;
            x ^= x >> (self.bits / 2);
            x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
        }
        x ^ (x >> (self.bits / 2))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn right_pages_pass_and_any_flipped_bit_misplaced_or_stale_page_fails() {
        let pattern = Pattern::new(7);
        let mut page = vec![0; PAGE];
        pattern.fill(300, 5, &mut page);
        assert_eq!(pattern.first_wrong(300, 5, &page), None);
        assert!(pattern.first_wrong(300 + BASE_PAGES as u64, 5, &page).is_some(), "misplaced, same base page");
        assert!(pattern.first_wrong(300, 4, &page).is_some(), "stale");
        assert!(Pattern::new(8).first_wrong(300, 5, &page).is_some(), "another run's data");
        assert_eq!(pattern.first_wrong(300, 5, &page[..PAGE - 8]), Some(PAGE - 8), "short");
        for at in [0, 9, PAGE - 1] {
            page[at] ^= 0x10;
            assert_eq!(pattern.first_wrong(300, 5, &page), Some(at));
            page[at] ^= 0x10;
        }
        assert!(pattern.first_wrong(300, 5, &[0; PAGE]).is_some(), "a hole");
    }

    #[test]
    fn content_does_not_compress() {
        let pattern = Pattern::new(1);
        let mut words = HashSet::new();
        let mut bytes = [0u32; 256];
        let mut page = vec![0; PAGE];
        for number in 0..1024 {
            pattern.fill(number, 0, &mut page);
            words.extend(page.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())));
            page.iter().for_each(|b| bytes[usize::from(*b)] += 1);
        }
        assert_eq!(words.len(), 1024 * WORDS, "no 8-byte word occurs twice in 4 MiB");
        let total = (1024 * PAGE) as f64;
        let entropy: f64 = bytes.iter().map(|n| f64::from(*n) / total).map(|p| -p * p.log2()).sum();
        assert!(entropy > 7.999, "{entropy} bit per byte");
    }

    #[test]
    fn scatter_visits_everything_once_and_not_in_order() {
        for n in [1, 2, 3, 100, 1000, 4096, 262_144] {
            let scatter = Scatter::new(n, 11);
            let seen: HashSet<u64> = (0..n).map(|i| scatter.at(i)).collect();
            assert_eq!(seen.len() as u64, n);
            assert!(seen.iter().all(|x| *x < n));
            assert_eq!(scatter.at(n), scatter.at(0));
        }
        let scatter = Scatter::new(262_144, 3);
        let near = (0..10_000).filter(|i| scatter.at(*i).abs_diff(scatter.at(i + 1)) < 64).count();
        assert!(near < 50, "{near} of 10000 steps land within 64 blocks (5 expected)");
        let odd = (0..10_000).filter(|i| (scatter.at(*i) ^ scatter.at(i + 1)) & 1 == 1).count();
        assert!((4000..6000).contains(&odd), "neighbouring visits change parity {odd} times of 10000");
    }
}
