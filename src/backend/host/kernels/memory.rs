//! Pointer chase and test patterns.

use std::ops::Range;

use crate::kernel::pattern;

/// Follows `next` for `hops` dependent loads from `start`; `None` if an index points outside. The check is
/// a predicted branch beside the chain of loads, not part of it.
pub fn chase(next: &[u32], start: u32, hops: u32) -> Option<u32> {
    let mut at = start;
    for _ in 0..hops {
        at = *next.get(at as usize)?;
    }
    Some(at)
}

#[inline(always)]
fn write_body(words: &mut [u32], first: u64, seed: u32, invert: u32) {
    for (i, word) in words.iter_mut().enumerate() {
        *word = pattern(first + i as u64, seed) ^ invert;
    }
}

#[inline(always)]
fn count_body(words: &[u32], first: u64, seed: u32, invert: u32) -> u64 {
    let wrong = |(i, word): (usize, &u32)| u64::from(*word != pattern(first + i as u64, seed) ^ invert);
    words.iter().enumerate().map(wrong).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn write_avx2(words: &mut [u32], first: u64, seed: u32, invert: u32) {
    write_body(words, first, seed, invert);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn count_avx2(words: &[u32], first: u64, seed: u32, invert: u32) -> u64 {
    count_body(words, first, seed, invert)
}

/// Writes the pattern of words `first..` into `words`.
pub fn write_pattern(words: &mut [u32], first: u64, seed: u32, invert: u32) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was found.
        return unsafe { write_avx2(words, first, seed, invert) };
    }
    write_body(words, first, seed, invert);
}

/// Words that differ from the pattern of words `first..`.
pub fn count_wrong(words: &[u32], first: u64, seed: u32, invert: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was found.
        return unsafe { count_avx2(words, first, seed, invert) };
    }
    count_body(words, first, seed, invert)
}

/// Range of 4-byte elements in a range of bytes whose bounds are multiples of 4.
pub fn words(bytes: &Range<usize>) -> Range<usize> {
    bytes.start / 4..bytes.end / 4
}
