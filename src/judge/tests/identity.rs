//! Other things than were sold.

use super::*;

#[test]
fn fewer_gpus_other_model_less_memory() {
    let a = judged(&node(7), Some(&offer(8)));
    assert_eq!((a.verdict, find(&a, "count").status), (Verdict::NotAccepted, Status::Fail));
    let mut record = node(7);
    record.inventory.host.pci_gpus = Observed::Value((0..8).filter_map(|i| h100(i).pci).collect());
    assert_eq!(judged(&record, Some(&offer(8))).verdict, Verdict::Inconclusive);
    record.inventory.host.pci_gpus = Observed::NotObservable("no sysfs".to_owned());
    assert_eq!(judged(&record, Some(&offer(8))).verdict, Verdict::Inconclusive, "a container may show fewer");
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
fn packages_of_two_devices_are_counted_as_they_were_sold() {
    let machine = |count: u32| {
        let mut record = node(count);
        for device in &mut record.inventory.devices {
            device.spec = Some("mi250x".to_owned());
            device.name = "AMD Instinct MI250X".to_owned();
            (device.pci, device.units, device.memory) = (None, Some(110), Bytes::gib(64));
        }
        record
    };
    let status = |found: u32, sold: u32, memory: Option<f64>| {
        let mut offer = offer(sold);
        (offer.model, offer.memory) = (Some("mi250x".to_owned()), memory.map(Bytes));
        find(&judged(&machine(found), Some(&offer)), "count").status
    };
    for (found, sold, memory, expected) in [
        (8, 4, Some(128e9), Status::Pass),
        (4, 4, Some(128e9), Status::Fail),
        (4, 3, Some(128e9), Status::Fail),
        (4, 4, Some(64e9), Status::Pass),
        (4, 4, None, Status::Inconclusive),
        (8, 4, None, Status::Pass),
        (3, 4, None, Status::Fail),
    ] {
        assert_eq!(status(found, sold, memory), expected, "{found} found, {sold} sold with {memory:?}");
    }
}

#[test]
fn one_gpu_tested_through_two_backends_is_not_two_tested() {
    let mut record = node(2);
    record.inventory.devices[1].id = DeviceId::new(BackendId::Opencl, 0);
    (record.inventory.devices[1].uuid, record.inventory.devices[1].pci) = (Some("GPU-0".to_owned()), h100(0).pci);
    record.inventory.devices.push(h100(1));
    record.inventory.selected = vec![gpu(0), DeviceId::new(BackendId::Opencl, 0)];
    assert_eq!(find(&judged(&record, Some(&offer(2))), "tested").status, Status::NotTested);
}

#[test]
fn a_bus_that_shows_fewer_than_are_in_use_is_not_seen_whole() {
    let mut record = node(4);
    for (i, device) in record.inventory.devices.iter_mut().enumerate() {
        device.id = DeviceId::new(BackendId::Opencl, i as u32);
    }
    record.inventory.selected = record.inventory.devices.iter().map(|d| d.id.clone()).collect();
    assert_eq!(find(&judged(&record, Some(&offer(8))), "count").status, Status::Inconclusive);
    record.inventory.host.pci_gpus = Observed::Value((0..4).filter_map(|i| h100(i).pci).collect());
    assert_eq!(find(&judged(&record, Some(&offer(8))), "count").status, Status::Fail);
    record.inventory.devices[0].units = Some(0);
    assert!(!codes(&judged(&record, Some(&offer(4)))).contains(&"GA-UNIT-01"), "a driver that does not say");
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
    // Everything but the name is what was sold: odd, and nothing is missing.
    for offer in [Some(offer(1)), None] {
        let a = judged(&record, offer.as_ref());
        assert_eq!(a.verdict, Verdict::Inconclusive);
        assert!(codes(&a).contains(&"GA-ID-01"), "{:?}", codes(&a));
        assert_eq!(codes(&a).contains(&"GA-MEM-01"), offer.is_none(), "{:?}", codes(&a));
    }
    // The name is what was sold, the hardware is not.
    let mut record = node(1);
    record.inventory.devices[0].pci.as_mut().unwrap().device = 0x20b2;
    let a = judged(&record, Some(&offer(1)));
    assert_eq!((a.verdict, find(&a, "consistent/sim:0").status), (Verdict::NotAccepted, Status::Fail));
    assert!(codes(&a).contains(&"GA-ID-01"), "{:?}", codes(&a));
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

#[test]
fn a_slice_is_not_the_whole_gpu_that_was_sold() {
    let sliced = |name: &str| {
        let mut record = node(1);
        let device = &mut record.inventory.devices[0];
        (device.name, device.memory, device.units) = (name.to_owned(), Bytes(42e9), Some(60));
        record
    };
    let record = sliced("NVIDIA H100 80GB HBM3 MIG 3g.40gb");
    let mut half = offer(1);
    half.memory = None;
    let a = judged(&record, Some(&half));
    assert_eq!((a.verdict, find(&a, "whole/sim:0").status), (Verdict::NotAccepted, Status::Fail));
    assert!(codes(&a).contains(&"GA-SLICE-01") && !codes(&a).contains(&"GA-UNIT-01"));
    // Sold as that slice: no gate about wholeness, and its memory and units contradict nothing.
    half.model = Some("NVIDIA H100 80GB HBM3 MIG 3g.40gb".to_owned());
    let a = judged(&record, Some(&half));
    assert!(a.requirements.iter().all(|r| !r.id.starts_with("whole/")), "{:?}", a.requirements);
    assert!(codes(&a).contains(&"GA-SLICE-02"));
    assert_eq!(find(&a, "model/sim:0").status, Status::Pass);
    // Whole GPUs are no slices; bands of whole GPUs are not for slices.
    assert!(!codes(&judged(&node(1), Some(&offer(1)))).iter().any(|c| c.starts_with("GA-SLICE")));
    assert_eq!(judged(&record, None).verdict, Verdict::Inconclusive, "nothing to compare a slice with");
    assert!(judged(&record, None).normal.is_empty() && !judged(&node(1), None).normal.is_empty());
}
