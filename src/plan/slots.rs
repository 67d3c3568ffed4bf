//! What may run together.

use super::Candidate;

/// All pairs of `n` things in rounds of disjoint pairs (a round-robin tournament): `n − 1` rounds for even `n`,
/// `n` for odd `n`. Each pair is ordered and appears once.
pub fn matchings(n: usize) -> Vec<Vec<(usize, usize)>> {
    let even = n + n % 2;
    let opponent = |round: usize, i: usize| match i {
        0 => 0,
        i => 1 + (i - 1 + round) % (even - 1),
    };
    (0..even.saturating_sub(1))
        .map(|round| {
            let pairs = (0..even / 2).map(|i| (opponent(round, i), opponent(round, even - 1 - i)));
            pairs.map(|(a, b)| (a.min(b), a.max(b))).filter(|(_, b)| *b < n).collect()
        })
        .filter(|round: &Vec<_>| !round.is_empty())
        .collect()
}

/// Puts cases that could run together into as few slots as their exclusive needs allow, in order, and names
/// the slots `name`, `name#2`, …
pub fn assign(name: &str, together: Vec<Candidate>) -> Vec<Candidate> {
    let mut slots: Vec<Vec<Candidate>> = Vec::new();
    for candidate in together {
        let conflicts = |other: &Candidate| candidate.case.exclusive.iter().any(|e| other.case.exclusive.contains(e));
        match slots.iter_mut().find(|slot| !slot.iter().any(conflicts)) {
            Some(slot) => slot.push(candidate),
            None => slots.push(vec![candidate]),
        }
    }
    for (i, slot) in slots.iter_mut().enumerate() {
        for candidate in slot {
            candidate.case.slot = if i == 0 { name.to_owned() } else { format!("{name}#{}", i + 1) };
        }
    }
    slots.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::matchings;

    #[test]
    fn matchings_hold_every_pair_once_and_no_device_twice() {
        for n in 0..17 {
            let rounds = matchings(n);
            let all: Vec<_> = rounds.iter().flatten().copied().collect();
            let distinct: BTreeSet<_> = all.iter().copied().collect();
            assert_eq!(all.len(), distinct.len());
            assert_eq!(all.len(), n * n.saturating_sub(1) / 2, "{n}");
            for round in &rounds {
                let devices: Vec<_> = round.iter().flat_map(|(a, b)| [*a, *b]).collect();
                assert_eq!(devices.len(), devices.iter().collect::<BTreeSet<_>>().len());
                assert!(round.len() == n / 2);
            }
        }
        assert_eq!(matchings(8).len(), 7);
    }
}
