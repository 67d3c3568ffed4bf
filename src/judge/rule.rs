//! The decision rule: one measured value against one limit (ILAC-G8, non-binary statements with a guard band).

use super::Status;
use crate::record::{Better, EngineKind};

/// A measured value as the rule sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// Median over blocks, in the limit's unit.
    pub median: f64,
    /// Expanded uncertainty U, same unit.
    pub uncertainty: f64,
    /// Relative drift over the run, end against start.
    pub drift: f64,
}

/// What it is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Against {
    /// The limit L.
    pub limit: f64,
    /// Direction of the metric.
    pub better: Better,
    /// Šidák factor k of the run.
    pub k: f64,
    /// Largest U/y, and largest |drift|, at which a conditional result stands.
    pub cap: f64,
}

/// Why a value could not be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Value or limit is not a finite positive number.
    NoNumber,
    /// U is not finite: fewer than three blocks.
    NoUncertainty,
    /// Near the limit, and U/y above the cap.
    Noisy,
    /// Near the limit, and the value moved by more than the cap.
    Drifting,
    /// The engine can only read too poor, and the value does not hold the limit.
    EngineLow,
    /// The reading can only be too good, and the value holds the limit.
    EngineHigh,
}

/// Status of `value` against `against` as read by an engine of `kind`.
///
/// `pass` y − U ≥ L · `conditional_pass` L ≤ y < L + U · `conditional_fail` L − kU/2 ≤ y < L · `fail` y < L − kU/2, mirrored
/// where lower is better. Conditional results become inconclusive where U/y or |drift| exceeds the cap. The drift
/// is held against the cap and not against U: held against U, more noise could turn a refusal into a conditional pass.
pub fn decide(value: Value, against: Against, kind: EngineKind) -> (Status, Option<Open>) {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    if !positive(value.median) || !positive(against.limit) || !positive(against.k) {
        return (Status::Inconclusive, Some(Open::NoNumber));
    }
    if !value.uncertainty.is_finite() || value.uncertainty < 0.0 {
        return (Status::Inconclusive, Some(Open::NoUncertainty));
    }
    let status = compare(value, against);
    let is_good = matches!(status, Status::Pass | Status::ConditionalPass);
    match kind {
        EngineKind::LowOnly if !is_good => return (Status::Inconclusive, Some(Open::EngineLow)),
        EngineKind::HighOnly if is_good => return (Status::Inconclusive, Some(Open::EngineHigh)),
        _ => {}
    }
    if matches!(status, Status::Pass | Status::Fail) {
        return (status, None);
    }
    // Written so that a NaN cap is refused.
    let within = |x: f64| x.is_finite() && x <= against.cap;
    if !within(value.uncertainty / value.median) {
        (Status::Inconclusive, Some(Open::Noisy))
    } else if !within(value.drift.abs()) {
        (Status::Inconclusive, Some(Open::Drifting))
    } else {
        (status, None)
    }
}

fn compare(value: Value, against: Against) -> Status {
    // Distance to the limit on the good side.
    let margin = match against.better {
        Better::Higher => value.median - against.limit,
        Better::Lower => against.limit - value.median,
    };
    match margin {
        m if m >= value.uncertainty => Status::Pass,
        m if m >= 0.0 => Status::ConditionalPass,
        m if m >= -against.k * value.uncertainty / 2.0 => Status::ConditionalFail,
        _ => Status::Fail,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn status(median: f64, uncertainty: f64, better: Better) -> Status {
        let value = Value { median, uncertainty, drift: 0.0 };
        decide(value, Against { limit: 100.0, better, k: 3.0, cap: 0.05 }, EngineKind::Decisive).0
    }

    #[test]
    fn the_table_and_its_mirror() {
        for (y, expected) in [
            (103.0, Status::Pass),
            (102.0, Status::Pass),
            (101.9, Status::ConditionalPass),
            (100.0, Status::ConditionalPass),
            (99.9, Status::ConditionalFail),
            (97.0, Status::ConditionalFail),
            (96.9, Status::Fail),
        ] {
            assert_eq!(status(y, 2.0, Better::Higher), expected, "{y}");
            assert_eq!(status(200.0 - y, 2.0, Better::Lower), expected, "{y} mirrored");
        }
    }

    #[test]
    fn conditional_results_need_a_steady_value() {
        let value = Value { median: 101.0, uncertainty: 2.0, drift: 0.0 };
        let against = Against { limit: 100.0, better: Better::Higher, k: 3.0, cap: 0.05 };
        let open = |value, against| decide(value, against, EngineKind::Decisive);
        assert_eq!(open(value, against), (Status::ConditionalPass, None));
        assert_eq!(open(value, Against { cap: 0.01, ..against }), (Status::Inconclusive, Some(Open::Noisy)));
        for drift in [0.06, -0.06, f64::NAN] {
            assert_eq!(open(Value { drift, ..value }, against), (Status::Inconclusive, Some(Open::Drifting)));
        }
        // Pass and fail carry their own margin.
        assert_eq!(open(Value { median: 120.0, drift: 0.2, ..value }, Against { cap: 0.0, ..against }).0, Status::Pass);
        assert_eq!(open(Value { median: 60.0, drift: 0.2, ..value }, Against { cap: 0.0, ..against }).0, Status::Fail);
    }

    #[test]
    fn engines_that_read_one_sided() {
        let against = Against { limit: 100.0, better: Better::Higher, k: 3.0, cap: 0.05 };
        let read = |median, kind| decide(Value { median, uncertainty: 1.0, drift: 0.0 }, against, kind);
        assert_eq!(read(110.0, EngineKind::LowOnly), (Status::Pass, None));
        assert_eq!(read(50.0, EngineKind::LowOnly), (Status::Inconclusive, Some(Open::EngineLow)));
        assert_eq!(read(110.0, EngineKind::HighOnly), (Status::Inconclusive, Some(Open::EngineHigh)));
        assert_eq!(read(50.0, EngineKind::HighOnly), (Status::Fail, None));
    }

    fn any_number() -> impl Strategy<Value = f64> {
        prop_oneof![
            8 => 0.1..1000.0f64,
            1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -5.0, f64::MIN_POSITIVE]),
        ]
    }

    /// How good a status is: fail, conditional fail, inconclusive, conditional pass, pass.
    fn rank(status: Status) -> i32 {
        match status {
            Status::Fail => 0,
            Status::ConditionalFail => 1,
            Status::Inconclusive => 2,
            Status::ConditionalPass => 3,
            Status::Pass => 4,
            Status::NotTested | Status::NotApplicable => unreachable!("the rule never says so"),
        }
    }

    proptest! {
        #[test]
        fn a_better_value_is_never_judged_worse(
            limit in 1.0..1000.0f64, u in 0.0..300.0f64, k in 2.0..4.0f64, cap in 0.001..0.1f64,
            drift in -0.2..0.2f64, a in 0.1..2000.0f64, b in 0.1..2000.0f64, lower in any::<bool>(),
        ) {
            let better = if lower { Better::Lower } else { Better::Higher };
            let against = Against { limit, better, k, cap };
            let (worse, best) = if (a < b) != lower { (a, b) } else { (b, a) };
            let of = |median| {
                decide(Value { median, uncertainty: u, drift }, against, EngineKind::Decisive).0
            };
            // Inconclusive is between the two sides; within one side a smaller y may make U/y exceed the cap.
            let side = |s| (rank(s) - 2).signum();
            prop_assert!(side(of(worse)) <= side(of(best)), "{:?} {:?}", of(worse), of(best));
            prop_assert!(!(of(worse) == Status::Pass && of(best) != Status::Pass));
            prop_assert!(!(of(best) == Status::Fail && of(worse) != Status::Fail));
        }

        #[test]
        fn more_noise_only_moves_towards_inconclusive(
            limit in 1.0..1000.0f64, y in 0.1..2000.0f64, k in 2.0..4.0f64, cap in 0.001..0.1f64,
            drift in -0.2..0.2f64, u in 0.0..300.0f64, more in 0.0..300.0f64, lower in any::<bool>(),
            kind in prop::sample::select(vec![EngineKind::Decisive, EngineKind::LowOnly, EngineKind::HighOnly]),
        ) {
            let better = if lower { Better::Lower } else { Better::Higher };
            let against = Against { limit, better, k, cap };
            let of = |uncertainty| decide(Value { median: y, uncertainty, drift }, against, kind).0;
            let (before, after) = (rank(of(u)) - 2, rank(of(u + more)) - 2);
            prop_assert!(after.abs() <= before.abs() && after * before >= 0, "{before} {after}");
        }

        #[test]
        fn what_is_not_a_number_never_passes(
            median in any_number(), uncertainty in any_number(), drift in any_number(), limit in any_number(),
            k in any_number(), cap in any_number(), lower in any::<bool>(),
        ) {
            let better = if lower { Better::Lower } else { Better::Higher };
            let (status, _) =
                decide(Value { median, uncertainty, drift }, Against { limit, better, k, cap }, EngineKind::Decisive);
            let usable = |x: f64| x.is_finite() && x > 0.0;
            if !usable(median) || !usable(limit) || !usable(k) || !uncertainty.is_finite() {
                prop_assert_eq!(status, Status::Inconclusive);
            }
            if !drift.is_finite() || cap.is_nan() {
                prop_assert!(!matches!(status, Status::ConditionalPass | Status::ConditionalFail));
            }
        }
    }
}
