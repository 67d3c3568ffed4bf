//! Properties of verdicts over random inputs.

use super::*;

fn rank(v: Verdict) -> u32 {
    match v {
        Verdict::Accepted => 0,
        Verdict::AcceptedWithReservations => 1,
        Verdict::Inconclusive => 2,
        Verdict::NotAccepted => 3,
    }
}

fn any_status() -> impl Strategy<Value = Status> {
    prop::sample::select(vec![
        Status::Pass,
        Status::ConditionalPass,
        Status::ConditionalFail,
        Status::Fail,
        Status::Inconclusive,
        Status::NotTested,
        Status::NotApplicable,
    ])
}

fn any_requirement() -> impl Strategy<Value = Requirement> {
    (any_status(), any::<bool>()).prop_map(|(status, gate)| {
        let class = if gate { Class::Gate } else { Class::Graded };
        Draft::fact("x".to_owned(), "compute", "x", &[], class).with(status, None).requirement
    })
}

proptest! {
    #[test]
    fn another_requirement_that_is_not_a_passed_gate_never_improves_the_verdict(
        all in prop::collection::vec(any_requirement(), 0..12), more in any_requirement(),
    ) {
        let is_passed_gate = more.class == Class::Gate && more.status == Status::Pass;
        prop_assume!(!is_passed_gate);
        let before = verdict(&all, Validity::Valid, RunEnd::Complete);
        let after = verdict(&[all, vec![more]].concat(), Validity::Valid, RunEnd::Complete);
        prop_assert!(rank(after) >= rank(before), "{before:?} {after:?}");
    }

    #[test]
    fn a_worse_status_never_improves_the_verdict(
        all in prop::collection::vec(any_requirement(), 1..12), at in any::<prop::sample::Index>(), worse in any_status(),
    ) {
        // Pass < conditional pass < the rest that refuse < fail.
        let order = |s: Status| match s {
            Status::Pass => 0,
            Status::ConditionalPass => 1,
            Status::Inconclusive | Status::NotTested | Status::ConditionalFail => 2,
            Status::Fail => 3,
            Status::NotApplicable => 9,
        };
        let i = at.index(all.len());
        prop_assume!(order(worse) < 9 && order(all[i].status) <= order(worse));
        let mut changed = all.clone();
        changed[i].status = worse;
        for validity in [Validity::Valid, Validity::Invalid, Validity::Unchecked] {
            let (before, after) = (verdict(&all, validity, RunEnd::Complete), verdict(&changed, validity, RunEnd::Complete));
            prop_assert!(rank(after) >= rank(before), "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_run_that_is_not_complete_or_not_valid_is_never_accepted(
        all in prop::collection::vec(any_requirement(), 0..12),
    ) {
        for end in [RunEnd::Interrupted, RunEnd::Terminated, RunEnd::Died] {
            prop_assert!(rank(verdict(&all, Validity::Valid, end)) >= 2);
        }
        prop_assert!(rank(verdict(&all, Validity::Invalid, RunEnd::Complete)) >= 2);
    }

    #[test]
    fn a_node_slower_by_any_factor_is_never_judged_better(slow in 0.05..1.0f64, slower in 0.05..1.0f64) {
        let of = |factor: f64| {
            let mut record = node(1);
            measured(&mut record, 0).series[0].blocks.iter_mut().for_each(|b| b.value *= factor);
            rank(judge(&record, &suite(), Some(&offer(1)), table()).verdict)
        };
        prop_assert!(of(slow.min(slower)) >= of(slow.max(slower)));
    }

    #[test]
    fn block_values_of_any_kind_never_panic_and_bad_ones_never_pass(
        values in prop::collection::vec(
            prop_oneof![3 => 1e12..1e15f64, 1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, 0.0, -1.0, f64::MAX])],
            0..14,
        ),
    ) {
        let mut record = node(3);
        let m = measurement("gemm.throughput", Unit::FlopPerSecond, Better::Higher, &values);
        measured(&mut record, 2).series = m.series;
        let a = judge(&record, &suite(), Some(&offer(3)), table());
        check_form(&a);
        if values.len() < 3 || values.iter().any(|v| !v.is_finite()) {
            prop_assert!(rank(a.verdict) >= 2);
        }
    }
}
