//! CPUs, memory, disks, network and links of the offer, against what the machine shows.

use super::*;
use crate::offer::{HostSold, Link, Pcie, StorageKind, StorageSold};
use crate::record::{Disk, DiskKind, HOST_SIMULATED, NVSWITCHES, PEER_LINK};
use crate::unit::BytesPerSecond;

/// A node of real H100s with 64 CPUs and 512 GiB, of which the kernel shows 503.
fn real() -> Record {
    let mut record = node(1);
    for device in &mut record.inventory.devices {
        device.simulated = false;
    }
    let host = &mut record.inventory.host;
    (host.cpus_total, host.cpus_usable) = (64, 64.0);
    (host.memory_total, host.memory_usable) = (Bytes::gib(503), Bytes::gib(503));
    host.attributes.insert("cpu_affinity".to_owned(), "0-63".to_owned());
    record
}

fn record_of_host() -> Record {
    let mut record = record(vec![host()]);
    add_gemm(&mut record, &host().id, &quiet(1e9));
    record
}

fn of_host(vcpus: Option<u32>, ram: Option<Bytes>, container: bool) -> Offer {
    Offer { host: HostSold { vcpus, ram, container }, ..offer(1) }
}

#[test]
fn cpus_that_may_be_used_against_those_sold() {
    let status = |record: &Record, vcpus: u32, container: bool| {
        let a = judged(record, Some(&of_host(Some(vcpus), None, container)));
        let status = find(&a, "cpus").status;
        let is_found = codes(&a).contains(&"GA-OFFER-01");
        assert_eq!(is_found, matches!(status, Status::Fail | Status::Inconclusive), "{:?}", codes(&a));
        (status, a.verdict)
    };
    let record = real();
    assert_eq!(status(&record, 64, false), (Status::Pass, Verdict::Accepted));
    assert_eq!(status(&record, 16, false), (Status::Pass, Verdict::Accepted), "more is fine");
    assert_eq!(status(&record, 65, false), (Status::Fail, Verdict::NotAccepted));
    // A limit on this process may be the renter's own, unless a container was sold.
    let mut limited = real();
    limited.inventory.host.cpus_usable = 15.9;
    assert_eq!(status(&limited, 64, false), (Status::Inconclusive, Verdict::Inconclusive));
    assert_eq!(status(&limited, 64, true), (Status::Fail, Verdict::NotAccepted));
    assert_eq!(status(&limited, 16, true), (Status::Pass, Verdict::Accepted), "a quota is a fraction");
    let mut unknown = real();
    (unknown.inventory.host.cpus_total, unknown.inventory.host.cpus_usable) = (0, 0.0);
    let a = judged(&unknown, Some(&of_host(Some(1), None, false)));
    assert_eq!((find(&a, "cpus").status, a.verdict), (Status::NotTested, Verdict::Inconclusive));
    // The reason says which count it is.
    let a = judged(&limited, Some(&of_host(Some(64), None, false)));
    let reason = find(&a, "cpus").reason.clone().unwrap();
    assert_eq!(reason.args["limits"], Argument::from("cpu_affinity 0-63"));
    assert_eq!((&reason.args["usable"], &reason.args["total"]), (&Argument::Count(16), &Argument::Count(64)));
}

#[test]
fn memory_less_what_firmware_and_kernel_keep() {
    let status = |record: &Record, gib: u64, container: bool| {
        let a = judged(record, Some(&of_host(None, Some(Bytes::gib(gib)), container)));
        let status = find(&a, "ram").status;
        assert_eq!(codes(&a).contains(&"GA-OFFER-02"), matches!(status, Status::Fail | Status::Inconclusive));
        status
    };
    let mut record = real();
    for (sold, expected) in [(256, Status::Pass), (512, Status::Pass), (543, Status::Pass), (544, Status::Fail)] {
        assert_eq!(status(&record, sold, false), expected, "{sold}");
    }
    record.inventory.host.memory_usable = Bytes::gib(64);
    assert_eq!(status(&record, 512, false), Status::Inconclusive);
    assert_eq!(status(&record, 512, true), Status::Fail);
    assert_eq!(status(&record, 64, true), Status::Pass);
    record.inventory.host.memory_total = Bytes(f64::NAN);
    assert_eq!(status(&record, 512, false), Status::NotTested);
}

fn disk(size: f64, kind: DiskKind) -> Disk {
    Disk { name: "x".to_owned(), size: Bytes(size), kind, model: None }
}

#[test]
fn disks_by_size_and_kind() {
    use DiskKind::{Hdd, Network, Nvme, Ssd, Virtual};
    let judge_disks = |disks: &[Disk], sold: f64, kind: Option<StorageKind>, container: bool, elsewhere: bool| {
        let mut record = real();
        let host = &mut record.inventory.host;
        host.disks = Observed::Value(disks.to_vec());
        host.container = container.then(|| "docker".to_owned());
        if elsewhere {
            host.attributes.insert("network_file_systems".to_owned(), "nfs4 /data".to_owned());
        }
        let offer = Offer { storage: Some(StorageSold { size: Bytes(sold), kind }), ..offer(1) };
        let a = judged(&record, Some(&offer));
        let status = find(&a, "storage-size").status;
        assert_eq!(codes(&a).contains(&"GA-OFFER-03"), status == Status::Fail);
        // What cannot be seen is a reservation, not an obstacle.
        let verdict = match status {
            Status::Pass => Verdict::Accepted,
            Status::Fail => Verdict::NotAccepted,
            _ => Verdict::AcceptedWithReservations,
        };
        assert_eq!(a.verdict, verdict);
        status
    };
    let nvme = Some(StorageKind::Nvme);
    let two = [disk(3.84e12, Nvme), disk(3.84e12, Nvme)];
    assert_eq!(judge_disks(&two, 7.68e12, nvme, false, false), Status::Pass);
    assert_eq!(judge_disks(&two, 8.4e12, nvme, false, false), Status::Pass, "decimal and binary units");
    assert_eq!(judge_disks(&two[..1], 7.68e12, nvme, false, false), Status::Fail);
    assert_eq!(judge_disks(&[], 1e12, None, false, false), Status::Fail);
    // Network volumes are no local disks; what a virtual disk is does not show.
    assert_eq!(judge_disks(&[disk(8e12, Network)], 7.68e12, nvme, false, false), Status::Fail);
    assert_eq!(judge_disks(&[disk(8e12, Virtual)], 7.68e12, nvme, false, false), Status::NotTested);
    assert_eq!(judge_disks(&[disk(8e12, Virtual)], 7.68e12, None, false, false), Status::Pass);
    assert_eq!(judge_disks(&[disk(8e12, Nvme)], 7.68e12, Some(StorageKind::Ssd), false, false), Status::Pass);
    assert_eq!(judge_disks(&[disk(8e12, Hdd)], 7.68e12, Some(StorageKind::Ssd), false, false), Status::Fail);
    assert_eq!(judge_disks(&[disk(8e12, Ssd)], 7.68e12, Some(StorageKind::Hdd), false, false), Status::Fail);
    assert_eq!(judge_disks(&[disk(8e12, Network)], 7.68e12, Some(StorageKind::Network), false, false), Status::Pass);
    // A container sees the machine's disks; a file server is no disk.
    assert_eq!(judge_disks(&two, 7.68e12, nvme, true, false), Status::NotTested);
    assert_eq!(judge_disks(&two[..1], 7.68e12, nvme, true, false), Status::Fail);
    assert_eq!(judge_disks(&two, 20e12, None, false, true), Status::NotTested);
    assert_eq!(judge_disks(&two, 20e12, nvme, false, true), Status::Fail);
    assert_eq!(judge_disks(&[], 20e12, Some(StorageKind::Network), false, false), Status::NotTested);
    let mut record = real();
    record.inventory.host.disks = Observed::NotObservable("/sys/block: no such file".to_owned());
    let offer = Offer { storage: Some(StorageSold { size: Bytes(1e12), kind: None }), ..offer(1) };
    assert_eq!(find(&judged(&record, Some(&offer)), "storage-size").status, Status::NotTested);
}

#[test]
fn the_network_is_never_seen_and_never_passes() {
    let offer = Offer { network: Some(BytesPerSecond(4e11)), ..offer(1) };
    let a = judged(&real(), Some(&offer));
    let network = find(&a, "network-rate");
    assert_eq!((network.status, network.class), (Status::NotTested, Class::Graded));
    assert_eq!(a.verdict, Verdict::AcceptedWithReservations);
}

#[test]
fn links_between_gpus() {
    let judge_link = |record: &Record, sold: Link| {
        let a = judged(record, Some(&Offer { link: Some(sold), model: None, memory: None, ..offer(1) }));
        let status = find(&a, "peer-link/sim:0").status;
        assert_eq!(codes(&a).contains(&"GA-OFFER-04"), status == Status::Fail);
        status
    };
    let seen = |link: &str| {
        let mut record = real();
        record.inventory.devices[0].attributes.insert(PEER_LINK.to_owned(), link.to_owned());
        record
    };
    assert_eq!(judge_link(&real(), Link::NvLink), Status::NotTested, "no driver shows it");
    assert_eq!(judge_link(&real(), Link::Xgmi), Status::Fail, "another maker's link");
    assert_eq!(judge_link(&seen("NVLink 4 x18"), Link::NvLink), Status::Pass);
    assert_eq!(judge_link(&seen("NVLink 4 x18"), Link::NvSwitch), Status::NotTested, "what joins it does not show");
    assert_eq!(judge_link(&seen("xGMI"), Link::NvLink), Status::Fail);
    assert_eq!(judge_link(&seen("xGMI"), Link::Xgmi), Status::Pass);
    assert_eq!(judge_link(&real(), Link::Pcie), Status::Pass, "nothing but the bus was sold");
    let mut switched = real();
    switched.inventory.host.attributes.insert(NVSWITCHES.to_owned(), "4".to_owned());
    assert_eq!(judge_link(&switched, Link::NvSwitch), Status::Pass);
    let mut without = real();
    let device = &mut without.inventory.devices[0];
    (device.spec, device.name, device.pci) = (Some("l40s".to_owned()), "NVIDIA L40S".to_owned(), None);
    assert_eq!(judge_link(&without, Link::NvLink), Status::Fail, "the model has none");
    assert_eq!(judge_link(&without, Link::Pcie), Status::NotTested, "not seen on any bus");
    without.inventory.devices[0].spec = None;
    without.inventory.devices[0].name = "Graphics Device".to_owned();
    assert_eq!(judge_link(&without, Link::NvLink), Status::NotTested);
}

#[test]
fn generation_and_lanes_of_the_host_link() {
    let judge_link = |sensors: Option<(f64, f64)>, rest: Option<(&str, &str)>, generation: Option<u32>, lanes| {
        let mut record = real();
        if let Some((generation, lanes)) = sensors {
            add_transfer(&mut record, 20e9);
            add_sensor(&mut record, "sim:0", "link_generation", Unit::Count, &[1.0, generation]);
            add_sensor(&mut record, "sim:0", "link_width", Unit::Count, &[1.0, lanes]);
        }
        if let Some((speed, width)) = rest {
            let attributes = &mut record.inventory.devices[0].attributes;
            attributes.insert("pcie_speed".to_owned(), speed.to_owned());
            attributes.insert("pcie_width".to_owned(), width.to_owned());
        }
        let a = judged(&record, Some(&Offer { pcie: Some(Pcie { generation, lanes }), ..offer(1) }));
        let status = find(&a, "pcie/sim:0").status;
        assert_eq!(codes(&a).contains(&"GA-OFFER-04"), status == Status::Fail);
        status
    };
    let five = Some((5.0, 16.0));
    assert_eq!(judge_link(five, None, Some(5), Some(16)), Status::Pass);
    assert_eq!(judge_link(five, None, Some(4), None), Status::Pass, "more is fine");
    assert_eq!(judge_link(Some((4.0, 16.0)), None, Some(5), Some(16)), Status::Fail);
    assert_eq!(judge_link(Some((5.0, 8.0)), None, None, Some(16)), Status::Fail);
    // Idle links rest narrow and slow: what the bus shows before the run can only speak for it.
    assert_eq!(judge_link(None, Some(("32.0 GT/s PCIe", "16")), Some(5), Some(16)), Status::Pass);
    assert_eq!(judge_link(None, Some(("2.5 GT/s PCIe", "16")), Some(5), Some(16)), Status::NotTested);
    assert_eq!(judge_link(None, Some(("Unknown", "0")), Some(5), Some(16)), Status::NotTested);
    assert_eq!(judge_link(None, None, None, Some(16)), Status::NotTested);
}

#[test]
fn the_machine_around_simulated_devices_counts_only_where_it_is_simulated() {
    let mut record = real();
    record.inventory.devices[0].simulated = true;
    let offer = Offer {
        host: HostSold { vcpus: Some(65), ram: Some(Bytes::gib(1)), container: false },
        storage: Some(StorageSold { size: Bytes(1e12), kind: None }),
        ..offer(1)
    };
    let statuses = |record: &Record| {
        let a = judged(record, Some(&offer));
        ["cpus", "ram", "storage-size"].map(|id| find(&a, id).status)
    };
    assert_eq!(statuses(&record), [Status::NotTested; 3]);
    record.inventory.host.attributes.insert(HOST_SIMULATED.to_owned(), "cpus ram".to_owned());
    assert_eq!(statuses(&record), [Status::Fail, Status::Pass, Status::NotTested]);
    // A simulated machine around anything else is marked as well.
    record = record_of_host();
    assert!(!judged(&record, None).simulated);
    record.inventory.host.attributes.insert(HOST_SIMULATED.to_owned(), "cpus".to_owned());
    assert!(judged(&record, None).simulated);
}

#[test]
fn without_an_offer_the_machine_proposes_an_instance_and_nothing_is_held_against_it() {
    let mut record = real();
    record.inventory.host.cloud = Some("Amazon EC2 p5.48xlarge".to_owned());
    let a = judged(&record, None);
    assert_eq!(a.proposed_instance.as_deref(), Some("aws/p5.48xlarge"));
    assert!(
        a.requirements.iter().all(|r| r.metric != "cpus" && r.metric != "count"),
        "one GPU and 64 CPUs refuse nobody"
    );
    assert_eq!(judged(&record, Some(&offer(1))).proposed_instance, None);
}

#[test]
fn a_guarantee_in_a_state_that_was_not_measured_is_not_tested() {
    let record = real();
    let with = |state: Option<ThermalState>, filter: &[(&str, &str)]| {
        let mut offer = offer(1);
        let guarantee = &mut offer.guarantees[0];
        guarantee.state = state;
        guarantee.filter = filter.iter().map(|(n, w)| ((*n).to_owned(), (*w).to_owned())).collect();
        let a = judged(&record, Some(&offer));
        let of_gemm: Vec<Status> = a
            .requirements
            .iter()
            .filter(|r| r.metric == "gemm.throughput")
            .filter(|r| r.limit.as_ref().is_none_or(|l| l.basis.kind == BasisKind::Guarantee))
            .map(|r| r.status)
            .collect();
        (of_gemm.first().copied(), a.verdict)
    };
    assert_eq!(with(None, &[]), (Some(Status::Pass), Verdict::Accepted));
    assert_eq!(with(Some(ThermalState::Warm), &[("type", "fp16")]), (Some(Status::Pass), Verdict::Accepted));
    let open = (Some(Status::NotTested), Verdict::Inconclusive);
    assert_eq!(with(Some(ThermalState::Sustained), &[]), open);
    assert_eq!(with(None, &[("n", "16384")]), open, "another size");
    assert_eq!(with(None, &[("type", "fp64")]), open, "another type");
    assert_eq!(with(None, &[("percentile", "p99")]), open, "a label that no series has");
}

/// A host link that moved data at this rate.
fn add_transfer(record: &mut Record, rate: f64) {
    let word = |w: &str| crate::record::Value::Word(w.to_owned());
    let params = Params::default().with("direction", word("h2d")).with("memory", word("pinned"));
    let m = measurement("host_link.rate", Unit::BytePerSecond, Better::Higher, &quiet(rate));
    add(record, "host_link", params, &gpu(0), Outcome::Measured(m));
}
