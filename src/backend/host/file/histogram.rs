//! Latency histogram with logarithmic buckets, each split into 64 equal parts: values are off by under 1.6 %,
//! memory is fixed, and recording is a few instructions.

const PARTS_LOG2: u32 = 6;
const PARTS: u64 = 1 << PARTS_LOG2;
const BUCKETS: usize = ((64 - PARTS_LOG2 as usize) + 1) * PARTS as usize;

/// Counts of latencies in nanoseconds.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0 }
    }
}

fn bucket(value: u64) -> usize {
    let exponent = (value | (PARTS - 1)).ilog2() + 1 - PARTS_LOG2;
    // Below 2·PARTS values are exact; above, the leading PARTS_LOG2 + 1 bits count.
    match exponent {
        0 | 1 => value as usize,
        e => ((u64::from(e - 1) << PARTS_LOG2) + (value >> (e - 1))) as usize,
    }
}

/// Middle of a bucket.
fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < 2 * PARTS {
        return bucket as f64;
    }
    let shift = (bucket >> PARTS_LOG2) - 1;
    let lowest = (bucket - (shift << PARTS_LOG2)) as f64;
    (lowest + 0.5) * 2f64.powi(shift as i32)
}

impl Histogram {
    /// Counts one latency.
    pub fn record(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
        self.total += other.total;
    }

    /// Latencies counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// The latency, in seconds, that a share `q` of the requests did not exceed; `None` unless at least ten
    /// requests lie beyond it.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = (q * self.total as f64).ceil() as u64;
        if self.total.saturating_sub(rank) < 10 {
            return None;
        }
        let mut below = 0;
        let bucket = self.counts.iter().position(|n| {
            below += n;
            below >= rank.max(1)
        })?;
        Some(middle(bucket) * 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_ordered_without_gaps_and_close_to_their_values() {
        let mut last = 0;
        for value in (0..100_000u64).chain((17..64).map(|e| 1 << e)).chain([u64::MAX]) {
            let b = bucket(value);
            assert!(b == last || b == last + 1 || value > 100_000, "{value}: {last} then {b}");
            assert!((middle(b) - value as f64).abs() <= value as f64 / 64.0, "{value} → {}", middle(b));
            last = b;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_need_ten_requests_beyond_them() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile(0.5), None);
        (1..=1000).for_each(|i| h.record(i * 1000));
        assert!((h.quantile(0.5).unwrap() / 500e-6 - 1.0).abs() < 0.02);
        assert!((h.quantile(0.99).unwrap() / 990e-6 - 1.0).abs() < 0.02);
        assert_eq!(h.quantile(0.999), None, "one request of 1000 says nothing about p99.9");
        let mut both = h.clone();
        both.merge(&h);
        assert_eq!(both.count(), 2000);
        both.clear();
        assert_eq!((both.count(), both.quantile(0.5)), (0, None));
    }
}
