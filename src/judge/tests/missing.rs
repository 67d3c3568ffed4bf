//! Wrong results, broken cases, missing evidence.

use super::*;

#[test]
fn a_wrong_result_fails_and_voids_the_speed() {
    for (detail, code) in [("element (3, 4) off by 2.1", "GA-RESULT-01"), ("NaN at (0, 0)", "GA-RESULT-02")] {
        let mut record = node(1);
        measured(&mut record, 0).verification.verified = Verified::Wrong { detail: detail.to_owned() };
        let a = judged(&record, Some(&offer(1)));
        assert_eq!(a.verdict, Verdict::NotAccepted);
        assert_eq!(find(&a, "compute-correct/gemm[n=8192,type=fp16]@sim:0").status, Status::Fail);
        let speed = find(&a, "compute-guarantee/gemm[n=8192,type=fp16]@sim:0");
        assert_eq!((speed.status, speed.reason.as_ref().unwrap().id.as_str()), (Status::Inconclusive, "reason.void"));
        assert_eq!(codes(&a)[0], code);
        // Also if nobody asked.
        let mut silent = suite();
        silent.demands.clear();
        assert_eq!(judge(&record, &silent, Some(&offer(1)), table()).verdict, Verdict::NotAccepted);
    }
}

#[test]
fn without_proof_nothing_passes() {
    let checks: [fn(&mut crate::record::Verification); 3] =
        [|v| v.checks = 0, |v| v.worst = Some(f64::NAN), |v| v.worst = Some(1.5)];
    for spoil in checks {
        let mut record = node(1);
        spoil(&mut measured(&mut record, 0).verification);
        let a = judged(&record, Some(&offer(1)));
        assert_eq!(a.verdict, Verdict::Inconclusive);
        assert_eq!(find(&a, "compute-guarantee/gemm[n=8192,type=fp16]@sim:0").status, Status::Inconclusive);
    }
}

#[test]
fn cases_that_broke() {
    for (kind, verdict, code) in [
        (CaseErrorKind::Hang, Verdict::Inconclusive, "GA-HANG-01"),
        (CaseErrorKind::Crash, Verdict::Inconclusive, "GA-CRASH-01"),
        (CaseErrorKind::DeviceLost, Verdict::NotAccepted, "GA-LOST-01"),
        (CaseErrorKind::OutOfMemory, Verdict::Inconclusive, "GA-FAIL-01"),
        (CaseErrorKind::Driver, Verdict::Inconclusive, "GA-FAIL-02"),
        (CaseErrorKind::NotANumber, Verdict::Inconclusive, "GA-FAIL-04"),
        (CaseErrorKind::Internal, Verdict::Inconclusive, "GA-FAIL-06"),
    ] {
        let mut record = node(2);
        fail(&mut record, 0, kind);
        let a = judged(&record, Some(&offer(2)));
        assert_eq!((a.verdict, codes(&a)[0]), (verdict, code), "{kind:?}");
        assert_eq!(a.not_tested.len(), 1);
    }
}

#[test]
fn missing_results_and_skipped_gates_are_not_tested() {
    let mut record = node(1);
    record.results.remove(0);
    let a = judged(&record, Some(&offer(1)));
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert_eq!(find(&a, "compute-complete/gemm[n=8192,type=fp16]@sim:0").status, Status::NotTested);
    let mut record = node(1);
    let case = record.plan.cases.remove(0);
    record.results.remove(0);
    record.plan.not_planned.push(NotPlanned {
        id: case.id,
        benchmark: case.benchmark,
        params: case.params,
        devices: case.devices,
        unsupported: false,
        reason: "--skip gemm".to_owned(),
    });
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.verdict, codes(&a)[0]), (Verdict::Inconclusive, "GA-TIME-01"));
    record.plan.not_planned.clear();
    let a = judged(&record, None);
    assert_eq!(find(&a, "compute-correct").status, Status::NotTested);
}

#[test]
fn unsupported_is_not_applicable_unless_the_model_has_it() {
    let refuse = |mut record: Record| {
        record.results[0].outcome = Outcome::Unsupported { reason: "no fp16 here".to_owned() };
        record
    };
    let a = judged(&refuse(node(1)), None);
    assert_eq!(find(&a, "compute-complete/gemm[n=8192,type=fp16]@sim:0").status, Status::NotTested);
    let mut cpu = record(vec![host()]);
    add_gemm(&mut cpu, &host().id, &quiet(1e9));
    add_triad(&mut cpu, &host().id, &quiet(1e9));
    let a = judged(&refuse(cpu), None);
    assert_eq!(find(&a, "compute-complete/gemm[n=8192,type=fp16]@host:0").status, Status::NotApplicable);
    // No compute gate is left: that is not an acceptance.
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert_eq!(find(&a, "evidence-compute/host:0").status, Status::NotTested);
}

#[test]
fn interrupted_and_empty_runs_are_never_accepted() {
    for end in [RunEnd::Interrupted, RunEnd::Terminated, RunEnd::Died] {
        let mut record = node(1);
        record.run.end = end;
        assert_eq!(judged(&record, Some(&offer(1))).headline.id, "judge.headline.interrupted");
    }
    for record in [record(Vec::new()), record(vec![host()]), record(vec![h100(0)])] {
        let a = judged(&record, None);
        assert_eq!((a.verdict, a.headline.id.as_str()), (Verdict::Inconclusive, "judge.headline.nothing"));
    }
}

#[test]
fn values_that_are_no_numbers_never_pass() {
    for bad in [f64::NAN, f64::INFINITY, 0.0, -700e12] {
        let mut record = node(3);
        measured(&mut record, 0).series[0].blocks.iter_mut().for_each(|b| b.value = bad);
        let a = judged(&record, Some(&offer(3)));
        assert_eq!(a.verdict, Verdict::Inconclusive, "{bad}");
    }
    let mut record = node(1);
    measured(&mut record, 0).series[0].blocks.truncate(2);
    let a = judged(&record, Some(&offer(1)));
    let r = find(&a, "compute-guarantee/gemm[n=8192,type=fp16]@sim:0");
    assert_eq!((r.status, r.reason.as_ref().unwrap().id.as_str()), (Status::Inconclusive, "reason.too_few_blocks"));
}

#[test]
fn another_thermal_state_is_another_quantity() {
    let mut record = node(1);
    record.plan.cases[0].state = ThermalState::Sustained;
    let a = judged(&record, Some(&offer(1)));
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert!(codes(&a).contains(&"GA-STATE-01"));
}

#[test]
fn few_rounds_decide_nothing() {
    let mut record = node(1);
    for i in 0..2 {
        measured(&mut record, i).series[0].blocks.truncate(3);
    }
    let a = judged(&record, Some(&offer(1)));
    assert_eq!(a.verdict, Verdict::Inconclusive);
    let reasons = a.requirements.iter().filter_map(|r| Some(r.reason.as_ref()?.id.as_str()));
    assert!(reasons.into_iter().any(|id| id == "reason.too_few_rounds"));
    let mut record = node(1);
    measured(&mut record, 0).series[0].blocks.iter_mut().for_each(|b| b.round = 0);
    assert_eq!(judged(&record, Some(&offer(1))).verdict, Verdict::Inconclusive, "one moment of the machine");
}

#[test]
fn peers_of_another_engine_are_missed_aloud() {
    let mut record = node(4);
    measured(&mut record, 6).engine.version = Some("1.0.1".to_owned());
    let a = judged(&record, Some(&offer(4)));
    let peers = a.requirements.iter().find(|r| r.status == Status::NotTested).expect("it is said");
    assert_eq!(peers.reason.as_ref().unwrap().id, "reason.other_engine");
    assert_eq!(a.verdict, Verdict::AcceptedWithReservations);
}

#[test]
fn a_latency_promised_without_a_size_is_about_the_memory() {
    let mut record = node(1);
    for (size, kind) in [(65536, EngineKind::HighOnly), (268_435_456, EngineKind::Decisive)] {
        let params = Params::default().with("size", crate::record::Value::Size(size));
        let mut m = measurement("memory_latency.load", Unit::Second, Better::Lower, &quiet(400e-9));
        m.engine.kind = kind;
        add(&mut record, "memory_latency", params, &gpu(0), Outcome::Measured(m));
    }
    let mut offer = offer(1);
    let mut guarantee = offer.guarantees[0].clone();
    guarantee.metric = "memory_latency.load".to_owned();
    guarantee.filter.clear();
    guarantee.value = crate::unit::Quantity { value: 1e-6, unit: Unit::Second };
    offer.guarantees.push(guarantee);
    let a = judged(&record, Some(&offer));
    assert_eq!(a.verdict, Verdict::Accepted, "{:?}", a.headline);
}
