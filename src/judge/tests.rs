//! The judge as a whole on small records: verdict and finding of each kind of trouble, and its properties.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::messages::MESSAGES;
use super::testing::*;
use super::*;
use crate::record::{
    BackendId, Better, CaseErrorKind, CaseId, DeviceId, EngineKind, NotPlanned, Notice, Outcome, Params, RunEnd,
    Verified,
};
use crate::spec::{Band, BandTable, Strength, table};
use crate::unit::{Bytes, Hertz, Unit};

fn judged(record: &Record, offer: Option<&Offer>) -> Assessment {
    let assessment = judge(record, &suite(), offer, table());
    check_form(&assessment);
    assessment
}

fn codes(a: &Assessment) -> Vec<&str> {
    a.findings.iter().map(|f| f.code.as_str()).collect()
}

fn find<'a>(a: &'a Assessment, id: &str) -> &'a Requirement {
    a.requirements.iter().find(|r| r.id == id).unwrap_or_else(|| {
        panic!("no {id} in {:#?}", a.requirements.iter().map(|r| (&r.id, r.status)).collect::<Vec<_>>())
    })
}

fn gpu(index: u32) -> DeviceId {
    DeviceId::new(BackendId::Sim, index)
}

/// Everything any assessment must satisfy: known messages with their arguments, unique ids, explained states.
fn check_form(a: &Assessment) {
    let mut messages: Vec<&Message> = vec![&a.headline];
    messages.extend(&a.validity_reasons);
    messages.extend(a.requirements.iter().filter_map(|r| r.reason.as_ref()));
    messages.extend(a.requirements.iter().flat_map(|r| r.shares.iter().map(|s| &s.of)));
    messages.extend(a.not_tested.iter().map(|n| &n.reason));
    for f in &a.findings {
        messages.extend([&f.observed, &f.why, &f.ask]);
        messages.extend(f.ruled_out.iter().chain(f.evidence.iter().map(|e| &e.message)));
        assert!(!f.evidence.is_empty(), "{} shows nothing", f.code);
    }
    while let Some(message) = messages.pop() {
        let (_, args) = MESSAGES.iter().find(|(id, _)| *id == message.id).unwrap_or_else(|| panic!("{message:?}"));
        let own: Vec<&str> = message.args.keys().map(String::as_str).collect();
        assert_eq!(own, *args, "{}", message.id);
        messages.extend(message.args.values().filter_map(|a| match a {
            Argument::Message(m) => Some(m.as_ref()),
            _ => None,
        }));
    }
    let ids: BTreeSet<&str> = a.requirements.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids.len(), a.requirements.len(), "ids are unique");
    for r in &a.requirements {
        assert!(matches!(r.status, Status::Pass | Status::Fail) || r.reason.is_some(), "{r:?}");
    }
    let text = serde_json::to_string(a).unwrap();
    assert_eq!(&serde_json::from_str::<Assessment>(&text).unwrap(), a, "survives its file");
}

// ---- healthy -----------------------------------------------------------------------------------

#[test]
fn a_healthy_node_that_keeps_its_offer_is_accepted() {
    let a = judged(&node(8), Some(&offer(8)));
    assert_eq!(
        a.verdict,
        Verdict::Accepted,
        "{:#?}",
        a.requirements.iter().filter(|r| r.status != Status::Pass).collect::<Vec<_>>()
    );
    assert_eq!((a.validity, a.not_compared, a.simulated), (Validity::Valid, 0, true));
    let r = find(&a, "compute-guarantee/gemm[n=8192,type=fp16]@sim:3");
    assert_eq!((r.status, r.class), (Status::Pass, Class::Gate));
    // 16 performance gates: k = 3.2; the floor of U is 0.3 % of 700.
    assert!((r.k - 3.23).abs() < 0.02, "{}", r.k);
    assert!((r.detectable.unwrap() - 3.23 * 0.0015 * 700.0 / 650.0).abs() < 2e-4, "{:?}", r.detectable);
    assert_eq!(r.shares[0].of.args["figure"], Argument::Text("fp16_tensor_fp32acc".to_owned()));
}

#[test]
fn without_a_reference_a_gpu_is_never_accepted() {
    let a = judged(&node(8), None);
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert_eq!(find(&a, "reference-compute/sim:0").status, Status::Inconclusive);
    assert!(codes(&a).contains(&"GA-REF-01"));
    // A guarantee for compute alone leaves memory without one.
    let mut half = offer(8);
    half.guarantees.truncate(1);
    let a = judged(&node(8), Some(&half));
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert!(a.requirements.iter().all(|r| r.id != "reference-compute/sim:0"));
}

#[test]
fn the_host_is_accepted_on_right_results_and_says_what_was_not_compared() {
    let mut record = record(vec![host()]);
    let id = host().id;
    add_gemm(&mut record, &id, &quiet(200e9));
    add_triad(&mut record, &id, &quiet(20e9));
    let m = measurement("fma_peak.throughput", Unit::FlopPerSecond, Better::Higher, &quiet(250e9));
    add(&mut record, "fma_peak", gemm_params(), &id, Outcome::Measured(m));
    let a = judged(&record, None);
    assert_eq!((a.verdict, a.not_compared), (Verdict::Accepted, 3));
    assert_eq!(a.headline.id, "judge.headline.accepted_not_compared");
    let r = find(&a, "compute-same-run/gemm[n=8192,type=fp16]@host:0");
    assert_eq!((r.status, r.reason.as_ref().unwrap().id.as_str()), (Status::NotApplicable, "reason.no_limit"));
    assert!((r.shares[0].ratio - 0.8).abs() < 0.01);
}

#[test]
fn a_product_faster_than_the_arithmetic_units_is_our_error() {
    let mut record = record(vec![host()]);
    let id = host().id;
    add_gemm(&mut record, &id, &quiet(260e9));
    add_triad(&mut record, &id, &quiet(20e9));
    let m = measurement("fma_peak.throughput", Unit::FlopPerSecond, Better::Higher, &quiet(250e9));
    add(&mut record, "fma_peak", gemm_params(), &id, Outcome::Measured(m));
    let a = judged(&record, None);
    assert_eq!((a.verdict, a.validity), (Verdict::Inconclusive, Validity::Invalid));
    assert!(codes(&a).contains(&"GA-OWN-01"));
    // Within 2 % and both uncertainties it is not.
    measured(&mut record, 0).series =
        measurement("gemm.throughput", Unit::FlopPerSecond, Better::Higher, &quiet(256e9)).series;
    assert_eq!(judged(&record, None).verdict, Verdict::Accepted);
}

// ---- shortfalls --------------------------------------------------------------------------------

#[test]
fn a_broken_guarantee_is_not_accepted_with_its_shortfall_in_the_headline() {
    let mut record = node(8);
    measured(&mut record, 6).series[0].blocks.iter_mut().for_each(|b| b.value *= 0.88);
    let a = judged(&record, Some(&offer(8)));
    assert_eq!(a.verdict, Verdict::NotAccepted);
    assert_eq!(a.headline.id, "judge.headline.not_accepted_short");
    assert_eq!(a.headline.args["where"], Argument::Text("sim:3".to_owned()));
    let Argument::Ratio(short) = a.headline.args["short"] else { panic!() };
    assert!((short - (1.0 - 616.0 / 650.0)).abs() < 0.002, "{short}");
}

#[test]
fn a_guarantee_binds_even_if_the_suite_has_no_line_for_it_or_nothing_to_show() {
    let mut suite = suite();
    suite.demands.retain(|d| d.limit != crate::suite::LimitRule::Guarantee);
    let mut offer = offer(2);
    offer.guarantees[0].value.value = 800e12;
    let a = judge(&node(2), &suite, Some(&offer), table());
    assert_eq!(find(&a, "guarantee-line-10/gemm[n=8192,type=fp16]@sim:1").status, Status::Fail);
    offer.guarantees[0].metric = "host_link.rate".to_owned();
    let a = judge(&node(2), &suite, Some(&offer), table());
    assert_eq!((find(&a, "guarantee-line-10").status, a.verdict), (Status::NotTested, Verdict::Inconclusive));
}

#[test]
fn guarantees_of_gpus_are_not_held_against_the_host() {
    let mut record = node(2);
    record.inventory.devices.push(host());
    add_triad(&mut record, &host().id, &quiet(20e9));
    assert_eq!(judged(&record, Some(&offer(2))).verdict, Verdict::Accepted);
}

#[test]
fn slow_memory_against_peers() {
    for (factor, code) in [(0.97, "GA-PEER-01"), (0.7, "GA-PEER-01")] {
        let mut record = node(8);
        measured(&mut record, 5).series[0].blocks.iter_mut().for_each(|b| b.value *= factor);
        let mut offer = offer(8);
        offer.guarantees[1].value.value = 2e12;
        let a = judged(&record, Some(&offer));
        assert_eq!(a.verdict, Verdict::AcceptedWithReservations);
        let finding = &a.findings[0];
        assert_eq!((finding.code.as_str(), &finding.devices[..]), (code, &[gpu(2)][..]));
        assert!((finding.effect.unwrap() - (1.0 - factor)).abs() < 0.003);
        assert!(finding.ruled_out.iter().any(|m| m.id == "finding.ruled_out.clock_held"));
    }
}

#[test]
fn two_that_differ_have_no_culprit() {
    let mut record = node(2);
    measured(&mut record, 1).series[0].blocks.iter_mut().for_each(|b| b.value *= 0.96);
    let a = judged(&record, Some(&offer(2)));
    assert!(codes(&a).contains(&"GA-PEER-03"), "{:?}", codes(&a));
    assert!(a.requirements.iter().all(|r| !r.id.starts_with("memory-peers")));
}

#[test]
fn noise_near_the_limit_is_inconclusive_and_far_from_it_is_not() {
    let noisy =
        |center: f64| (0..12).map(|i| center * (1.0 + 0.05 * [1.0, -1.0, 0.6, -0.6][i % 4])).collect::<Vec<_>>();
    for (center, status) in
        [(655e12, Status::Inconclusive), (645e12, Status::Inconclusive), (900e12, Status::Pass), (400e12, Status::Fail)]
    {
        let mut record = node(1);
        measured(&mut record, 0).series =
            measurement("gemm.throughput", Unit::FlopPerSecond, Better::Higher, &noisy(center)).series;
        let a = judged(&record, Some(&offer(1)));
        let r = find(&a, "compute-guarantee/gemm[n=8192,type=fp16]@sim:0");
        assert_eq!(r.status, status, "{center}");
        assert!(codes(&a).contains(&"GA-NOISE-01"));
    }
}

#[test]
fn drift_near_the_limit_is_inconclusive() {
    let mut record = node(1);
    for (i, b) in measured(&mut record, 0).series[0].blocks.iter_mut().enumerate() {
        b.value = 651e12 * (1.03 - 0.005 * i as f64);
    }
    let a = judged(&record, Some(&offer(1)));
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert!(codes(&a).contains(&"GA-DRIFT-01"));
}

#[test]
fn engines_that_read_low_never_fail_and_high_never_pass() {
    let with = |kind, value: f64| {
        let mut record = node(1);
        let m = measured(&mut record, 0);
        m.engine.kind = kind;
        m.series[0].blocks.iter_mut().for_each(|b| b.value *= value / 700e12);
        judged(&record, Some(&offer(1)))
    };
    let a = with(EngineKind::LowOnly, 300e12);
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert!(codes(&a).contains(&"GA-ENGINE-01"));
    assert_eq!(with(EngineKind::LowOnly, 700e12).verdict, Verdict::Accepted);
    assert_eq!(with(EngineKind::HighOnly, 700e12).verdict, Verdict::Inconclusive);
    assert_eq!(with(EngineKind::HighOnly, 300e12).verdict, Verdict::NotAccepted);
}

#[test]
fn bands_give_a_gate_and_a_graded_requirement() {
    let band = |strength| Band {
        gpu: "h100-sxm5-80gb".to_owned(),
        metric: "gemm.throughput".to_owned(),
        filter: [("type".to_owned(), "fp16".to_owned())].into(),
        unit: Unit::FlopPerSecond,
        fail_below: 650e12,
        pass_from: 750e12,
        strength,
        source: "test data".to_owned(),
    };
    let mut suite = suite();
    let metric = crate::suite::Subject::Metric("gemm.throughput".to_owned());
    suite.demands.push(demand("compute-band", metric, crate::suite::LimitRule::Band, true));
    let mut memory = offer(1);
    memory.guarantees.remove(0);
    let with = |strength, value: f64| {
        let table = SpecTable::new(table().all().to_vec(), BandTable(vec![band(strength)]));
        let mut record = node(1);
        measured(&mut record, 0).series[0].blocks.iter_mut().for_each(|b| b.value *= value / 700e12);
        let a = judge(&record, &suite, Some(&memory), &table);
        check_form(&a);
        a
    };
    assert_eq!(with(Strength::Strong, 800e12).verdict, Verdict::Accepted);
    assert_eq!(with(Strength::Strong, 700e12).verdict, Verdict::AcceptedWithReservations);
    assert_eq!(with(Strength::Strong, 600e12).verdict, Verdict::NotAccepted);
    assert_eq!(with(Strength::Weak, 600e12).verdict, Verdict::AcceptedWithReservations);
    assert_eq!(with(Strength::Weak, 500e12).verdict, Verdict::NotAccepted);
}

// ---- wrong, broken, missing --------------------------------------------------------------------

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
    record.plan.cases[0].state = crate::record::ThermalState::Sustained;
    let a = judged(&record, Some(&offer(1)));
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert!(codes(&a).contains(&"GA-STATE-01"));
}

// ---- identity ----------------------------------------------------------------------------------

#[test]
fn fewer_gpus_other_model_less_memory() {
    let a = judged(&node(7), Some(&offer(8)));
    assert_eq!((a.verdict, find(&a, "count").status), (Verdict::NotAccepted, Status::Fail));
    let mut record = node(7);
    record.inventory.host.pci_gpus = (0..8).filter_map(|i| h100(i).pci).collect();
    assert_eq!(judged(&record, Some(&offer(8))).verdict, Verdict::Inconclusive);
    let mut record = node(8);
    record.inventory.selected.truncate(2);
    assert_eq!(find(&judged(&record, Some(&offer(8))), "tested").status, Status::NotTested);
    let mut other = offer(1);
    other.model = Some("a100-sxm4-80gb".to_owned());
    assert_eq!(find(&judged(&node(1), Some(&other)), "model/sim:0").status, Status::Fail);
    other.model = Some("Imaginary 9000".to_owned());
    assert_eq!(find(&judged(&node(1), Some(&other)), "model/sim:0").status, Status::Inconclusive);
    let mut record = node(1);
    record.inventory.devices[0].memory = Bytes(42e9);
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.verdict, find(&a, "memory/sim:0").status), (Verdict::NotAccepted, Status::Fail));
    assert!(codes(&a).contains(&"GA-MEM-01"));
    assert_eq!(judged(&record, None).verdict, Verdict::Inconclusive);
}

#[test]
fn one_gpu_seen_by_two_backends_is_one() {
    let mut record = node(1);
    let mut twin = h100(0);
    twin.id = DeviceId::new(BackendId::Opencl, 0);
    record.inventory.devices.push(twin);
    assert_eq!(find(&judged(&record, Some(&offer(2))), "count").status, Status::Fail);
}

#[test]
fn spoofed_names_fewer_units_and_disagreements() {
    let mut record = node(1);
    record.inventory.devices[0].name = "NVIDIA H200".to_owned();
    for (offer, verdict) in [(Some(offer(1)), Verdict::NotAccepted), (None, Verdict::Inconclusive)] {
        let a = judged(&record, offer.as_ref());
        assert_eq!(a.verdict, verdict);
        assert!(codes(&a).contains(&"GA-ID-01"), "{:?}", codes(&a));
    }
    let mut record = node(1);
    record.inventory.devices[0].units = Some(114);
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.verdict, find(&a, "consistent/sim:0").status), (Verdict::NotAccepted, Status::Fail));
    let unit = a.findings.iter().find(|f| f.code == "GA-UNIT-01").unwrap();
    assert!((unit.effect.unwrap() - 18.0 / 132.0).abs() < 1e-9);
    let mut record = node(1);
    record.inventory.disagreements.push(crate::record::Disagreement {
        device: gpu(0),
        about: "memory".to_owned(),
        first: ("runtime".to_owned(), "85 GB".to_owned()),
        second: ("sysfs".to_owned(), "80 GB".to_owned()),
    });
    let a = judged(&record, Some(&offer(1)));
    assert_eq!(a.verdict, Verdict::Inconclusive);
    assert!(codes(&a).contains(&"GA-ID-02"));
}

#[test]
fn two_different_gpus() {
    let mut record = node(2);
    let d = &mut record.inventory.devices[1];
    (d.name, d.spec) = ("NVIDIA H100 PCIe".to_owned(), Some("h100-pcie-80gb".to_owned()));
    let mut offer = offer(2);
    offer.model = None;
    let a = judged(&record, Some(&offer));
    assert!(codes(&a).contains(&"GA-ID-03"));
    assert_eq!(find(&a, "uniform").status, Status::Fail);
    assert_ne!(a.verdict, Verdict::Accepted);
}

#[test]
fn a_gpu_that_is_asked_for_and_absent() {
    let mut record = record(vec![host()]);
    add_gemm(&mut record, &host().id, &quiet(1e9));
    add_triad(&mut record, &host().id, &quiet(1e9));
    assert_eq!(judged(&record, None).verdict, Verdict::Accepted);
    assert_eq!(judged(&record, Some(&offer(1))).verdict, Verdict::NotAccepted);
    let mut suite = suite();
    suite.needs_gpu = true;
    let a = judge(&record, &suite, None, table());
    assert_eq!((a.verdict, find(&a, "gpu").status), (Verdict::Inconclusive, Status::NotTested));
}

// ---- circumstances -----------------------------------------------------------------------------

#[test]
fn a_clock_one_percent_off_makes_the_run_invalid() {
    for (device, monotonic, worst) in
        [(1.01, 1.0, 0.01), (0.99, 1.0, 0.0), (1.0, 1.0, 0.006), (1.0, 0.0, 0.0), (1.0, 1.0, f64::NAN)]
    {
        let mut record = node(1);
        measured(&mut record, 0).clock_check = Some(crate::record::ClockCheck {
            device: crate::unit::Seconds(device),
            monotonic: crate::unit::Seconds(monotonic),
            worst,
        });
        let a = judged(&record, Some(&offer(1)));
        assert_eq!((a.verdict, a.validity), (Verdict::Inconclusive, Validity::Invalid));
        assert!(codes(&a).contains(&"GA-CLOCK-02"));
        assert_eq!(a.headline.id, "judge.headline.invalid");
    }
}

#[test]
fn load_of_the_renter_excuses_a_shortfall_and_voids_the_run() {
    let mut record = node(1);
    measured(&mut record, 0).series[0].blocks.iter_mut().for_each(|b| b.value *= 0.5);
    let foreign = |share| Notice::ForeignProcess { device: gpu(0), name: "python".to_owned(), share };
    record.notices = vec![foreign(0.4)];
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.verdict, a.validity), (Verdict::Inconclusive, Validity::Invalid));
    record.notices = vec![foreign(0.01)];
    assert_eq!(judged(&record, Some(&offer(1))).verdict, Verdict::NotAccepted);
}

#[test]
fn a_device_that_changed() {
    let mut record = node(1);
    let (before, after) = ("a".to_owned(), "b".to_owned());
    record.notices = vec![Notice::DeviceChanged { device: gpu(0), before, after }];
    assert_eq!(judged(&record, Some(&offer(1))).validity, Validity::Invalid);
}

#[test]
fn nothing_checked_is_unchecked() {
    let mut record = node(1);
    for i in 0..2 {
        measured(&mut record, i).clock_check = None;
    }
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.validity, a.validity_reasons.len()), (Validity::Unchecked, 2));
    add_sensor(&mut record, "sim:0", "clock", Unit::Hertz, &[1.9e9]);
    assert_eq!(judged(&record, Some(&offer(1))).validity, Validity::Valid);
}

#[test]
fn power_cap_heat_and_unexplained_clocks() {
    let slow = |power: f64, temperature: f64| {
        let mut record = node(1);
        for b in &mut measured(&mut record, 0).series[0].blocks {
            (b.value, b.clock) = (b.value * 0.85, Some(Hertz(1.5e9)));
        }
        add_sensor(&mut record, "sim:0", "power", Unit::Watt, &[power; 5]);
        add_sensor(&mut record, "sim:0", "temperature", Unit::Celsius, &[temperature; 5]);
        record
    };
    for (power, temperature, code) in
        [(490.0, 60.0, "GA-POWER-01"), (600.0, 88.0, "GA-THERM-01"), (699.0, 60.0, "GA-CLOCK-01")]
    {
        let a = judged(&slow(power, temperature), Some(&offer(1)));
        let f = a.findings.iter().find(|f| f.code == code).unwrap_or_else(|| panic!("{code}: {:?}", codes(&a)));
        assert!((f.effect.unwrap() - (1.0 - 1.5 / 1.98)).abs() < 1e-9);
        assert!(f.requirements.iter().any(|r| r.starts_with("compute-guarantee")));
    }
    assert!(!codes(&judged(&node(1), Some(&offer(1)))).iter().any(|c| c.starts_with("GA-POWER")));
}

#[test]
fn a_link_of_half_the_width() {
    let link = |rate: f64| {
        let mut record = node(1);
        let word = |w: &str| crate::record::Value::Word(w.to_owned());
        let params = Params::default().with("direction", word("h2d")).with("memory", word("pinned"));
        let m = measurement("host_link.rate", Unit::BytePerSecond, Better::Higher, &quiet(rate));
        add(&mut record, "host_link", params, &gpu(0), Outcome::Measured(m));
        judged(&record, Some(&offer(1)))
    };
    let narrow = link(26e9);
    assert!(codes(&narrow).contains(&"GA-LINK-01"));
    assert_eq!(narrow.verdict, Verdict::AcceptedWithReservations);
    assert_eq!(find(&link(55e9), "link-width/sim:0").status, Status::Pass);
}

#[test]
fn sharing_is_a_gate_where_the_offer_says_dedicated() {
    let mut record = node(1);
    add_sensor(&mut record, "sim:0", "memory_used", Unit::Byte, &[9e9, 8.5e9]);
    let mut offer = offer(1);
    let a = judged(&record, Some(&offer));
    assert_eq!(a.verdict, Verdict::AcceptedWithReservations);
    assert!(codes(&a).contains(&"GA-LOAD-02"));
    offer.dedicated = true;
    assert_eq!(judged(&record, Some(&offer)).verdict, Verdict::Inconclusive);
    record.telemetry.series[0].points.iter_mut().for_each(|p| p.value = 2.5e9);
    assert_eq!(judged(&record, Some(&offer)).verdict, Verdict::Accepted);
    record.telemetry.series.clear();
    assert_eq!(find(&judged(&record, Some(&offer)), "sharing/sim:0").status, Status::NotTested);
}

#[test]
fn a_neighbour_that_works_at_times() {
    let mut record = node(1);
    for i in 0..2 {
        for (n, b) in measured(&mut record, i).series[0].blocks.iter_mut().enumerate() {
            b.value *= if n % 3 == 0 { 0.6 } else { 1.0 };
        }
    }
    let a = judged(&record, Some(&offer(1)));
    assert!(codes(&a).contains(&"GA-LOAD-03"), "{:?}", codes(&a));
    assert_ne!(a.verdict, Verdict::Accepted);
}

#[test]
fn steal_is_graded_and_no_telemetry_is_said() {
    let mut record = node(1);
    add_sensor(&mut record, "machine", "steal", Unit::Ratio, &[0.1, 0.2]);
    let a = judged(&record, Some(&offer(1)));
    assert_eq!(a.verdict, Verdict::AcceptedWithReservations);
    assert!(codes(&a).contains(&"GA-HOST-01") && codes(&a).contains(&"GA-TELE-01"));
    let mut record = node(1);
    record.notices = vec![Notice::NoTelemetry { reason: "permission denied".to_owned() }];
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.verdict, codes(&a)), (Verdict::Accepted, vec!["GA-TELE-01"]));
    record.notices = vec![Notice::BudgetSpent { cases: vec![CaseId("gemm[n=8192,type=fp16]@sim:0".to_owned())] }];
    assert!(codes(&judged(&record, Some(&offer(1)))).contains(&"GA-TIME-02"));
}

// ---- properties --------------------------------------------------------------------------------

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
