//! Clocks, load, heat, power, links and sensors.

use super::*;
use crate::record::ClockCheck;

#[test]
fn a_clock_one_percent_off_makes_the_run_invalid() {
    for (device, monotonic, typical) in
        [(1.01, 1.0, 0.01), (0.99, 1.0, 0.0), (1.0, 1.0, 0.006), (1.0, 0.0, 0.0), (1.0, 1.0, f64::NAN)]
    {
        let mut record = node(1);
        measured(&mut record, 0).clock_check =
            Some(ClockCheck { device: Seconds(device), monotonic: Seconds(monotonic), typical, worst: typical });
        let a = judged(&record, Some(&offer(1)));
        assert_eq!((a.verdict, a.validity), (Verdict::Inconclusive, Validity::Invalid));
        assert!(codes(&a).contains(&"GA-CLOCK-02"));
        assert_eq!(a.headline.id, "judge.headline.invalid");
    }
}

#[test]
fn one_block_in_which_the_host_was_held_up_says_nothing_about_the_clock() {
    let mut record = node(1);
    let check = ClockCheck { device: Seconds(1.0), monotonic: Seconds(1.0), typical: 0.001, worst: 0.08 };
    measured(&mut record, 0).clock_check = Some(check);
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.verdict, a.validity), (Verdict::Accepted, Validity::Valid));
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
fn an_invalid_run_decides_no_speed_on_any_device_and_refuses_what_does_not_depend_on_it() {
    let mut slow = node(2);
    measured(&mut slow, 2).series[0].blocks.iter_mut().for_each(|b| b.value *= 0.5);
    assert_eq!(judged(&slow, Some(&offer(2))).verdict, Verdict::NotAccepted);
    let spoiled = |spoil: fn(&mut Record)| {
        let mut record = slow.clone();
        spoil(&mut record);
        record
    };
    let runs = [
        spoiled(|r| measured(r, 0).clock_check.as_mut().unwrap().typical = 0.01),
        spoiled(|r| r.notices = vec![Notice::ForeignProcess { device: gpu(0), name: "x".to_owned(), share: 0.5 }]),
        spoiled(|r| measured(r, 0).series[0].blocks.iter_mut().for_each(|b| b.value *= 1e9)),
        spoiled(|r| {
            let (before, after) = ("a".to_owned(), "b".to_owned());
            r.notices = vec![Notice::DeviceChanged { device: gpu(0), before, after }];
        }),
    ];
    for mut record in runs {
        let a = judged(&record, Some(&offer(2)));
        assert_eq!((a.verdict, a.validity), (Verdict::Inconclusive, Validity::Invalid), "{:?}", a.headline);
        let a = judged(&record, Some(&offer(8)));
        assert_eq!((a.verdict, a.validity), (Verdict::NotAccepted, Validity::Invalid));
        assert_eq!(a.headline.id, "judge.headline.not_accepted_invalid");
        let wrong = Verified::Wrong { detail: "C[0,0]".to_owned() };
        measured(&mut record, 3).verification.verified = wrong;
        assert_eq!(judged(&record, Some(&offer(2))).verdict, Verdict::NotAccepted, "a wrong result stays wrong");
    }
}

#[test]
fn a_device_lost_beside_a_process_of_the_renter_is_not_held_against_the_provider() {
    let mut record = node(2);
    fail(&mut record, 3, CaseErrorKind::DeviceLost);
    assert_eq!(judged(&record, Some(&offer(2))).verdict, Verdict::NotAccepted);
    record.notices = vec![Notice::ForeignProcess { device: gpu(1), name: "x".to_owned(), share: 0.5 }];
    assert_eq!(judged(&record, Some(&offer(2))).verdict, Verdict::Inconclusive);
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
    record.telemetry.series.clear();
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.validity, a.validity_reasons.len()), (Validity::Unchecked, 2));
    add_sensor(&mut record, "sim:0", "clock", Unit::Hertz, &[1.9e9]);
    assert_eq!(judged(&record, Some(&offer(1))).validity, Validity::Unchecked, "sensors say nothing about clocks");
}

#[test]
fn power_cap_heat_and_unexplained_clocks() {
    let slow = |power: f64, limit: f64, temperature: f64| {
        let mut record = node(1);
        for b in &mut measured(&mut record, 0).series[0].blocks {
            (b.value, b.clock) = (b.value * 0.85, Some(Hertz(1.5e9)));
        }
        add_sensor(&mut record, "sim:0", "power", Unit::Watt, &[power; 5]);
        add_sensor(&mut record, "sim:0", "power_limit", Unit::Watt, &[limit]);
        add_sensor(&mut record, "sim:0", "temperature", Unit::Celsius, &[temperature; 5]);
        record
    };
    for (power, limit, temperature, code) in [
        (490.0, 490.0, 60.0, "GA-POWER-01"),
        (490.0, f64::NAN, 60.0, "GA-POWER-01"),
        (600.0, 700.0, 88.0, "GA-THERM-01"),
        (500.0, 700.0, 60.0, "GA-CLOCK-01"),
    ] {
        let a = judged(&slow(power, limit, temperature), Some(&offer(1)));
        let f = a.findings.iter().find(|f| f.code == code).unwrap_or_else(|| panic!("{code}: {:?}", codes(&a)));
        // Matrix rates of this model are quoted at about 1.83 GHz.
        assert!((f.effect.unwrap() - (1.0 - 1.5 / 1.83)).abs() < 2e-3, "{:?}", f.effect);
        assert!(f.requirements.iter().any(|r| r.starts_with("compute-guarantee")));
    }
    // At the model's own limit a lower clock is what was sold.
    let at_limit = judged(&slow(699.0, 700.0, 60.0), Some(&offer(1)));
    for a in [at_limit, judged(&node(1), Some(&offer(1)))] {
        assert!(!codes(&a).iter().any(|c| c.starts_with("GA-POWER") || c.starts_with("GA-CLOCK")), "{:?}", codes(&a));
    }
    // The throttle sensor names the reason where power alone would not.
    let mut record = slow(690.0, 700.0, 70.0);
    add_sensor(&mut record, "sim:0", "throttle", Unit::Count, &[0.0, 32.0]);
    assert!(codes(&judged(&record, Some(&offer(1)))).contains(&"GA-THERM-01"));
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
    for (lanes, status) in [(8.0, Status::Fail), (16.0, Status::Pass)] {
        let mut record = node(1);
        add_sensor(&mut record, "sim:0", "link_width", Unit::Count, &[1.0, lanes]);
        let a = judged(&record, Some(&offer(1)));
        assert_eq!(find(&a, "link-lanes/sim:0").status, status);
        assert_eq!(codes(&a).contains(&"GA-LINK-01"), status == Status::Fail);
    }
}

#[test]
fn sharing_is_a_gate_where_the_offer_says_dedicated() {
    let mut record = node(1);
    record.telemetry.series.clear();
    add_sensor(&mut record, "sim:0", "memory_used", Unit::Byte, &[9e9, 8.5e9]);
    let mut offer = offer(1);
    let a = judged(&record, Some(&offer));
    assert_eq!(a.verdict, Verdict::AcceptedWithReservations);
    assert!(codes(&a).contains(&"GA-LOAD-02"));
    offer.dedicated = true;
    assert_eq!(judged(&record, Some(&offer)).verdict, Verdict::Inconclusive);
    // A reading taken while our own buffers were there (two cases of 1 GB) shows only what exceeds them.
    let readings = &mut record.telemetry.series[0].points;
    readings.iter_mut().for_each(|p| (p.at, p.value) = (Seconds(20.0), 3.9e9));
    assert_eq!(judged(&record, Some(&offer)).verdict, Verdict::Accepted);
    record.telemetry.series[0].points.iter_mut().for_each(|p| (p.at, p.value) = (Seconds(0.0), 1.5e9));
    assert_eq!(judged(&record, Some(&offer)).verdict, Verdict::Accepted);
    record.telemetry.series.clear();
    assert_eq!(find(&judged(&record, Some(&offer)), "sharing/sim:0").status, Status::NotTested);
    offer.dedicated = false;
    assert_eq!(judged(&record, Some(&offer)).verdict, Verdict::AcceptedWithReservations, "hiding it earns nothing");
}

#[test]
fn a_neighbour_who_comes_later_or_behind_a_visible_process_is_seen() {
    let mut offer = offer(1);
    offer.dedicated = true;
    let sharing = |readings: &[f64], notices: &[Notice]| {
        let mut record = node(1);
        record.telemetry.series.clear();
        add_sensor(&mut record, "sim:0", "memory_used", Unit::Byte, readings);
        record.notices = notices.to_vec();
        let a = judged(&record, Some(&offer));
        (find(&a, "sharing/sim:0").status, codes(&a).contains(&"GA-LOAD-02"))
    };
    assert_eq!(sharing(&[5e8, 2.5e9], &[]), (Status::Pass, false));
    assert_eq!(sharing(&[5e8, 84e9, 5e8], &[]), (Status::Inconclusive, true));
    assert_eq!(sharing(&[-1.0, 5e8], &[]).0, Status::NotTested);
    let visible = Notice::ForeignProcess { device: gpu(0), name: "x".to_owned(), share: 0.001 };
    assert_eq!(sharing(&[60e9, 60e9], &[visible]), (Status::Inconclusive, false));
    let blind = Notice::NoTelemetry { reason: "it ended".to_owned() };
    assert_eq!(sharing(&[5e8], &[blind]).0, Status::NotTested);
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
    assert_eq!((a.verdict, codes(&a)), (Verdict::AcceptedWithReservations, vec!["GA-TELE-01"]));
    record.notices = vec![Notice::BudgetSpent { cases: vec![CaseId("gemm[n=8192,type=fp16]@sim:0".to_owned())] }];
    assert!(codes(&judged(&record, Some(&offer(1)))).contains(&"GA-TIME-02"));
}

#[test]
fn a_value_that_physics_forbids_is_our_own_error_and_never_a_pass() {
    for (case, factor) in [(0, 1e15), (0, 3.0), (1, 2.0)] {
        let mut record = node(1);
        measured(&mut record, case).series[0].blocks.iter_mut().for_each(|b| b.value *= factor);
        let a = judged(&record, Some(&offer(1)));
        assert_eq!((a.verdict, a.validity), (Verdict::Inconclusive, Validity::Invalid), "{case} × {factor}");
        assert!(codes(&a).contains(&"GA-OWN-01"), "{case} × {factor}");
    }
    // Where a sensor shows a higher clock than is stated, the ceiling is higher too, but not without end.
    let at = |factor: f64, clock: f64| {
        let mut record = node(1);
        measured(&mut record, 0).series[0].blocks.iter_mut().for_each(|b| b.value *= factor);
        add_sensor(&mut record, "sim:0", "clock", Unit::Hertz, &[clock]);
        codes(&judged(&record, Some(&offer(1)))).contains(&"GA-OWN-01")
    };
    assert!(at(1.7, 1.98e9) && !at(1.7, 2.4e9));
    assert!(at(3.0, 1e300), "one reading lifts no ceiling");
    let mut record = node(1);
    let mut high = measured(&mut record, 0).series[0].clone();
    (high.primary, high.state) = (false, ThermalState::Burst);
    high.blocks.iter_mut().for_each(|b| b.value *= 10.0);
    measured(&mut record, 0).series.push(high);
    assert!(codes(&judged(&record, Some(&offer(1)))).contains(&"GA-OWN-01"), "not only the primary series");
}

#[test]
fn what_nothing_was_checked_of_passes_nothing() {
    for checks in [0, 3] {
        let mut record = node(1);
        let verification = &mut measured(&mut record, 0).verification;
        verification.checks = checks;
        verification.verified = Verified::NotApplicable { reason: "nothing there".to_owned() };
        assert_eq!(judged(&record, Some(&offer(1))).verdict, Verdict::Inconclusive, "{checks} checks");
    }
}

/// A node of two with a transfer of `rate` on the first GPU, changed by `change`.
fn with_transfer(rate: f64, change: impl Fn(&mut Record)) -> Assessment {
    let mut record = node(2);
    let word = |w: &str| crate::record::Value::Word(w.to_owned());
    let params = Params::default().with("direction", word("h2d")).with("memory", word("pinned"));
    let m = measurement("host_link.rate", Unit::BytePerSecond, Better::Higher, &quiet(rate));
    add(&mut record, "host_link", params, &gpu(0), Outcome::Measured(m));
    change(&mut record);
    judged(&record, Some(&offer(2)))
}

#[test]
fn a_lower_generation_counts_only_where_the_link_was_at_work() {
    let sensor = |record: &mut Record| add_sensor(record, "sim:0", "link_generation", Unit::Count, &[1.0, 4.0]);
    assert!(codes(&with_transfer(26e9, sensor)).contains(&"GA-LINK-02"));
    // Faster than generation 4 can: the sensor was read at rest.
    assert!(!codes(&with_transfer(55e9, sensor)).contains(&"GA-LINK-02"));
    let mut at_rest = node(1);
    sensor(&mut at_rest);
    let a = judged(&at_rest, Some(&offer(1)));
    assert!(a.requirements.iter().all(|r| r.metric != "link_generation") && !codes(&a).contains(&"GA-LINK-02"));
}

#[test]
fn links_between_gpus_that_are_down_and_cards_that_nothing_joins() {
    let links = |up: [f64; 2]| {
        with_transfer(55e9, |record| {
            for (i, up) in up.iter().enumerate() {
                add_sensor(record, &format!("sim:{i}"), "peer_links", Unit::Count, &[*up]);
                add_sensor(record, &format!("sim:{i}"), "peer_links_total", Unit::Count, &[18.0]);
            }
        })
    };
    let down = links([18.0, 16.0]);
    assert!(codes(&down).contains(&"GA-LINK-03"));
    assert_eq!(find(&down, "peer-links/sim:1").status, Status::Fail);
    for fine in [[18.0, 18.0], [0.0, 0.0]] {
        assert!(!codes(&links(fine)).contains(&"GA-LINK-03"), "{fine:?}");
    }
}

#[test]
fn memory_health_says_only_what_sensors_show() {
    let health = |sensors: &[(&str, &[f64])]| {
        let a = with_transfer(55e9, |record| {
            for (sensor, values) in sensors {
                add_sensor(record, "sim:0", sensor, Unit::Count, values);
            }
        });
        let of = |id: &str| a.requirements.iter().find(|r| r.id == format!("{id}/sim:0")).map(|r| r.status);
        let ecc: Vec<String> = a.findings.iter().map(|f| f.code.clone()).filter(|c| c.starts_with("GA-ECC")).collect();
        (of("memory-errors"), of("memory-rows"), ecc.join(" "))
    };
    let text = |t: &str| t.to_owned();
    assert_eq!(health(&[("ecc_uncorrected", &[7.0, 7.0])]), (Some(Status::Pass), None, text("")));
    assert_eq!(health(&[("ecc_uncorrected", &[7.0, 9.0])]), (Some(Status::Fail), None, text("GA-ECC-01")));
    assert_eq!(health(&[("ecc_uncorrected", &[7.0])]), (None, None, text("")), "one reading shows no difference");
    let off = [("ecc_enabled", &[0.0][..]), ("ecc_uncorrected", &[0.0, 0.0][..])];
    assert_eq!(health(&off), (None, None, text("GA-ECC-03")), "nothing counts errors without error correction");
    assert_eq!(health(&[("remap_pending", &[0.0])]), (None, Some(Status::Pass), text("")));
    assert_eq!(health(&[("remap_failed", &[1.0])]), (None, Some(Status::Fail), text("GA-ECC-02")));
}

#[test]
fn cpus_on_another_node_than_the_device() {
    let found = |affinity: &str| {
        let a = with_transfer(55e9, |record| {
            record.inventory.devices[0].numa_node = Some(1);
            let host = &mut record.inventory.host;
            host.numa = vec![text("node0: CPUs 0-7, 31.4 GiB"), text("node1: CPUs 8-15,24-31, 31.4 GiB")];
            host.attributes.insert(text("cpu_affinity"), affinity.to_owned());
        });
        codes(&a).contains(&"GA-HOST-03")
    };
    assert!(found("0-7") && found("0,2,4") && found("16-23"));
    assert!(!found("0-8") && !found("24") && !found("not a list"));
}

fn text(t: &str) -> String {
    t.to_owned()
}

#[test]
fn a_pair_of_gpus_short_of_a_limit() {
    let mut record = node(2);
    let m = measurement("host_link.rate", Unit::BytePerSecond, Better::Higher, &quiet(100e9));
    let i = add(&mut record, "host_link", Params::default(), &gpu(0), Outcome::Measured(m));
    let devices = vec![gpu(0), gpu(1)];
    let id = CaseId::new("host_link", &Params::default(), &devices);
    let case = record.plan.cases.last_mut().unwrap();
    (case.devices, case.id) = (devices, id.clone());
    record.results[i].id = id;
    let mut offer = offer(2);
    let mut promised = offer.guarantees[1].clone();
    promised.metric = text("host_link.rate");
    promised.value.value = 300e9;
    offer.guarantees.push(promised);
    let a = judged(&record, Some(&offer));
    assert!(codes(&a).contains(&"GA-LINK-04"), "{:?}", codes(&a));
}
