//! Machines that deliver, and what is said about numbers nobody compared.

use super::*;

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
