//! What was sold around the GPUs: CPUs, memory, disks, network, and how the GPUs are linked. More than was sold is fine;
//! what this run cannot see is not tested, and a reservation rather than an obstacle.

use super::{Check, finding};
use crate::judge::draft::Draft;
use crate::judge::facts::Facts;
use crate::judge::{Basis, BasisKind, Class, Finding, FixBy, Limit, Message, Requirement, Status};
use crate::offer::{Link, Offer, Pcie, StorageKind};
use crate::record::{DeviceId, DeviceInfo, DiskKind, HOST_SIMULATED, Host, NVSWITCHES, Observed, PEER_LINK};
use crate::unit::{Bytes, Quantity, Unit};

pub const CHECK: Check = Check {
    id: "sold",
    summary: "CPUs, memory, disks, network and links of the offer against what the machine shows",
    requirements,
    findings,
};

/// Firmware and kernel keep a part of the memory to themselves: page structures alone are 64 of each 4096 bytes. Karpenter,
/// which places work on AWS by the memory of instance types, takes 7.5 % off what is sold (VM_MEMORY_OVERHEAD_PERCENT,
/// github:aws/karpenter-provider-aws); below this share of it memory is missing.
const RAM_VISIBLE: f64 = 0.925;

/// Disks are sold in decimal and binary units: 1 TB is 0.909 TiB. Below this share of the stated size a disk is missing.
const STORAGE_VISIBLE: f64 = 0.9;

fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let Some(offer) = facts.offer else { return Vec::new() };
    let mut drafts: Vec<Draft> = Vec::new();
    drafts.extend(cpus(facts, offer));
    drafts.extend(ram(facts, offer));
    drafts.extend(storage(facts, offer));
    drafts.extend(network(offer));
    for gpu in facts.gpus() {
        drafts.extend(peer_link(facts, offer, gpu));
        drafts.extend(pcie(facts, offer, gpu));
    }
    drafts
}

/// A gate on what the offer states under `key`.
fn gate(offer: &Offer, id: String, metric: &str, devices: &[DeviceId], key: &str, limit: Quantity) -> Draft {
    let mut draft = Draft::fact(id, "identity", metric, devices, Class::Gate);
    draft.requirement.unit = limit.unit;
    let basis = Basis { kind: BasisKind::Identity, source: offer.place(key) };
    draft.requirement.limit = Some(Limit { value: limit.value, basis });
    draft
}

/// A gate on the machine as a whole.
fn machine(offer: &Offer, metric: &str, key: &str, limit: Quantity) -> Draft {
    gate(offer, metric.replace('_', "-"), metric, &[], key, limit)
}

/// Not tested, and graded: no run of this tool could see it here.
fn unobservable(mut draft: Draft, reason: Message) -> Draft {
    draft.requirement.class = Class::Graded;
    draft.with(Status::NotTested, Some(reason))
}

/// True if the devices are simulated and this part of the machine around them is not: it is another machine's.
fn is_other_machine(facts: &Facts<'_>, part: &str) -> bool {
    let simulated = facts.record.inventory.host.attributes.get(HOST_SIMULATED);
    let is_simulated = simulated.is_some_and(|all| all.split(' ').any(|p| p == part));
    facts.selected().any(|d| d.simulated) && !is_simulated
}

/// The limits on this process as the record names them, for a reason.
fn limits(host: &Host, names: &[&str]) -> String {
    let all = names.iter().filter_map(|n| Some(format!("{n} {}", host.attributes.get(*n)?)));
    let all: Vec<String> = all.collect();
    if all.is_empty() { "–".to_owned() } else { all.join(", ") }
}

/// How much of something there is, and how much of it this process may use.
struct Visible {
    usable: f64,
    total: f64,
}

/// What may be used here passes; a machine that has less than was sold fails. In between stands a limit on this process:
/// where a container was sold it is what was delivered, else it may be the renter's own.
fn by_limits(draft: Draft, visible: &Visible, needed: f64, is_container_sold: bool, reason: Message) -> Draft {
    match visible {
        v if v.total.is_nan() || v.total <= 0.0 => {
            draft.with(Status::NotTested, Some(Message::new("reason.not_shown")))
        }
        v if v.usable >= needed => draft.with(Status::Pass, Some(reason)),
        v if v.total < needed || is_container_sold => draft.with(Status::Fail, Some(reason)),
        _ => draft.open(reason),
    }
}

/// CPUs that affinity and control group leave to this process, against the virtual CPUs sold.
fn cpus(facts: &Facts<'_>, offer: &Offer) -> Option<Draft> {
    let sold = offer.host.vcpus?;
    let host = &facts.record.inventory.host;
    let limit = Quantity { value: f64::from(sold), unit: Unit::Count };
    let draft = machine(offer, "cpus", "host.vcpus", limit);
    if is_other_machine(facts, "cpus") {
        return Some(unobservable(draft, Message::new("reason.not_simulated")));
    }
    // A quota is a fraction; half a CPU is rounding.
    let visible = Visible { usable: host.cpus_usable.round(), total: f64::from(host.cpus_total) };
    let reason = Message::new("reason.cpus")
        .with("usable", visible.usable as u64)
        .with("total", u64::from(host.cpus_total))
        .with("limits", limits(host, &["cpu_affinity", "cpu_quota"]))
        .with("sold", u64::from(sold));
    Some(by_limits(draft, &visible, f64::from(sold), offer.host.container, reason))
}

/// Memory of the machine, and what its control group leaves to this process.
fn ram(facts: &Facts<'_>, offer: &Offer) -> Option<Draft> {
    let sold = offer.host.ram?;
    let host = &facts.record.inventory.host;
    let needed = sold * RAM_VISIBLE;
    let draft = machine(offer, "ram", "host.ram", bytes(needed));
    if is_other_machine(facts, "ram") {
        return Some(unobservable(draft, Message::new("reason.not_simulated")));
    }
    let visible = Visible { usable: host.memory_usable.0, total: host.memory_total.0 };
    let reason = Message::new("reason.ram")
        .with("usable", bytes(host.memory_usable))
        .with("total", bytes(host.memory_total))
        .with("limits", limits(host, &["memory_limit"]))
        .with("sold", bytes(sold));
    Some(by_limits(draft, &visible, needed.0, offer.host.container, reason))
}

fn bytes(bytes: Bytes) -> Quantity {
    Quantity { value: bytes.0, unit: Unit::Byte }
}

/// Disks are sold in decimal units.
fn decimal(size: Bytes) -> String {
    bytes(size).with_scale(bytes(size).scale())
}

/// Whether a disk is of the kind sold; `None` where what it is does not show.
fn is_of_kind(sold: Option<StorageKind>, disk: DiskKind) -> Option<bool> {
    match (sold, disk) {
        (None, _) => Some(true),
        (Some(_), DiskKind::Virtual) => None,
        // Whether a volume's model text names the network is the provider's choice.
        (Some(StorageKind::Network), DiskKind::Nvme) => None,
        (Some(StorageKind::Nvme), disk) => Some(disk == DiskKind::Nvme),
        (Some(StorageKind::Ssd), disk) => Some(matches!(disk, DiskKind::Ssd | DiskKind::Nvme)),
        (Some(StorageKind::Hdd), disk) => Some(disk == DiskKind::Hdd),
        (Some(StorageKind::Network), disk) => Some(disk == DiskKind::Network),
    }
}

/// Capacity of the disks that the kernel shows.
fn storage(facts: &Facts<'_>, offer: &Offer) -> Option<Draft> {
    let sold = offer.storage?;
    let host = &facts.record.inventory.host;
    let needed = sold.size * STORAGE_VISIBLE;
    let draft = machine(offer, "storage_size", "storage.size", bytes(needed));
    let disks = match &host.disks {
        _ if is_other_machine(facts, "nvme") => {
            return Some(unobservable(draft, Message::new("reason.not_simulated")));
        }
        Observed::NotObservable(why) => {
            let reason = Message::new("reason.disks_not_observable").with("text", why.as_str());
            return Some(unobservable(draft, reason));
        }
        Observed::Value(disks) => disks,
    };
    let sum = |wanted: fn(Option<bool>) -> bool| {
        disks.iter().filter(|d| wanted(is_of_kind(sold.kind, d.kind))).map(|d| d.size).sum::<Bytes>()
    };
    let (sure, possible) = (sum(|is| is == Some(true)), sum(|is| is != Some(false)));
    // A container sees the disks of the machine, whoever may use them; a file server is no disk.
    let has_elsewhere = sold.kind == Some(StorageKind::Network)
        || sold.kind.is_none() && host.attributes.contains_key("network_file_systems");
    let reason = |id: &str| Message::new(id).with("found", decimal(possible)).with("sold", decimal(sold.size));
    Some(match (sure >= needed, possible >= needed) {
        (true, _) if host.container.is_none() => draft.with(Status::Pass, Some(reason("reason.storage_size"))),
        (_, false) if !has_elsewhere => draft.with(Status::Fail, Some(reason("reason.storage_size"))),
        _ => unobservable(draft, reason("reason.storage_unclear")),
    })
}

/// The network is never used unasked, so its rate is not seen.
fn network(offer: &Offer) -> Option<Draft> {
    let limit = Quantity { value: offer.network?.0, unit: Unit::BytePerSecond };
    let draft = machine(offer, "network_rate", "network.rate", limit);
    Some(unobservable(draft, Message::new("reason.network_not_observable")))
}

/// The link of one GPU to the others: as a driver, the bus or the vendor's data of its model shows it.
fn peer_link(facts: &Facts<'_>, offer: &Offer, gpu: &DeviceInfo) -> Option<Draft> {
    let sold = offer.link?;
    let one = Quantity { value: 1.0, unit: Unit::Count };
    let draft =
        gate(offer, format!("peer-link/{}", gpu.id), "peer_link", std::slice::from_ref(&gpu.id), "gpu.link", one);
    let reason = |id: &str, found: &str| Message::new(id).with("found", found).with("sold", sold.word());
    let unseen = |draft| unobservable(draft, Message::new("reason.link_not_observable").with("sold", sold.word()));
    let of_model = facts.spec(gpu).map(|s| (s.id.as_str(), s.peer_link.as_deref()));
    Some(match (seen_link(facts, gpu), of_model) {
        // Nothing more than the bus was sold, and on the bus it is.
        _ if sold == Link::Pcie && gpu.pci.is_some() => draft.with(Status::Pass, None),
        _ if sold == Link::Pcie => unseen(draft),
        (Some((actual, _)), _) if sold.is_met_by(actual) => draft.with(Status::Pass, None),
        (Some((actual, text)), _) if !sold.is_like(actual) => {
            draft.with(Status::Fail, Some(reason("reason.link", text)))
        }
        // The technology is there; what joins it does not show.
        (Some((_, text)), _) => unobservable(draft, reason("reason.link_joint", text)),
        (None, Some((model, None))) => draft.with(Status::Fail, Some(reason("reason.link_of_model", model))),
        (None, Some((_, Some(link)))) if Link::named(link).is_some_and(|l| !sold.is_like(l)) => {
            draft.with(Status::Fail, Some(reason("reason.link", link)))
        }
        (None, _) => unseen(draft),
    })
}

/// The link that a GPU shows, and in whose words. Switches on the bus say how NVLink is joined.
fn seen_link<'a>(facts: &Facts<'a>, gpu: &'a DeviceInfo) -> Option<(Link, &'a str)> {
    let text = gpu.attributes.get(PEER_LINK).map(String::as_str);
    let of_model = facts.spec(gpu).and_then(|s| s.peer_link.as_deref());
    let has_switch = facts.record.inventory.host.attributes.contains_key(NVSWITCHES);
    let is_nvlink = |t: &&str| Link::named(t) == Some(Link::NvLink);
    match text.or(of_model.filter(|_| has_switch)).filter(is_nvlink) {
        Some(text) if has_switch => Some((Link::NvSwitch, text)),
        _ => text.and_then(|t| Some((Link::named(t)?, t))),
    }
}

/// Generation and lanes of a host link, where they show.
#[derive(Clone, Copy)]
struct Seen {
    /// Highest reading of a sensor over a run in which the link was at work.
    under_load: Option<f64>,
    /// When the device was found, perhaps idle.
    at_rest: Option<f64>,
}

impl Seen {
    fn of(sensor: Option<f64>, at_work: bool, at_rest: Option<f64>) -> Seen {
        match at_work {
            true => Seen { under_load: sensor, at_rest },
            false => Seen { under_load: None, at_rest: sensor.into_iter().chain(at_rest).reduce(f64::max) },
        }
    }

    /// Whether what was sold is there. Links rest narrow and slow: only a reading over the run can say that it is not.
    fn holds(self, sold: Option<u32>) -> Option<bool> {
        let Some(sold) = sold.map(f64::from) else { return Some(true) };
        let most = self.under_load.into_iter().chain(self.at_rest).reduce(f64::max);
        match most.is_some_and(|most| most >= sold) {
            true => Some(true),
            false => self.under_load.map(|_| false),
        }
    }

    fn most(self) -> Option<f64> {
        self.under_load.into_iter().chain(self.at_rest).reduce(f64::max)
    }
}

/// The host link of one GPU.
fn pcie(facts: &Facts<'_>, offer: &Offer, gpu: &DeviceInfo) -> Option<Draft> {
    let sold = offer.pcie.filter(|p| *p != Pcie::default())?;
    let lanes_or_generation = sold.lanes.or(sold.generation).unwrap_or(0);
    let limit = Quantity { value: f64::from(lanes_or_generation), unit: Unit::Count };
    let draft = gate(offer, format!("pcie/{}", gpu.id), "pcie", std::slice::from_ref(&gpu.id), "gpu.pcie", limit);
    let (generation, lanes) = host_link(facts, gpu);
    let shown = |generation: Option<f64>, lanes: Option<f64>| {
        let number = |n: Option<f64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        format!("PCIe {} x{}", number(generation), number(lanes))
    };
    let reason = Message::new("reason.pcie")
        .with("found", shown(generation.most(), lanes.most()))
        .with("sold", shown(sold.generation.map(f64::from), sold.lanes.map(f64::from)));
    Some(match (generation.holds(sold.generation), lanes.holds(sold.lanes)) {
        (Some(true), Some(true)) => draft.with(Status::Pass, None),
        (Some(false), _) | (_, Some(false)) => draft.with(Status::Fail, Some(reason)),
        _ => unobservable(draft, Message::new("reason.pcie_not_observable")),
    })
}

/// Generation and lanes as sensors and the bus show them.
fn host_link(facts: &Facts<'_>, gpu: &DeviceInfo) -> (Seen, Seen) {
    let sensor =
        |name: &str| facts.values(&gpu.id.to_string(), name).into_iter().filter(|v| *v >= 1.0).reduce(f64::max);
    let at_work = super::link::was_at_work(facts, &gpu.id);
    let text = |name: &str| gpu.attributes.get(name).map(String::as_str);
    let lanes = text("pcie_width").and_then(|t| t.trim_start_matches('x').parse().ok()).filter(|n| *n >= 1.0);
    let generation = text("pcie_speed").and_then(generation_of);
    (Seen::of(sensor("link_generation"), at_work, generation), Seen::of(sensor("link_width"), at_work, lanes))
}

/// "16.0 GT/s PCIe" is the rate of generation 4 (PCI-SIG base specifications 1.0 to 6.0).
fn generation_of(speed: &str) -> Option<f64> {
    let rate: f64 = speed.split_whitespace().next()?.parse().ok()?;
    [2.5, 5.0, 8.0, 16.0, 32.0, 64.0].iter().position(|r| *r == rate).map(|i| (i + 1) as f64)
}

/// One finding for each requirement that falls short or that a limit leaves open.
fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let short = requirements.iter().filter(|r| matches!(r.status, Status::Fail | Status::Inconclusive));
    let found = short.filter_map(|r| {
        let (code, topic) = match r.metric.as_str() {
            "cpus" => ("GA-OFFER-01", "fewer_cpus"),
            "ram" => ("GA-OFFER-02", "less_ram"),
            "storage_size" => ("GA-OFFER-03", "less_storage"),
            "peer_link" | "pcie" => ("GA-OFFER-04", "other_link"),
            _ => return None,
        };
        let fix_by = if r.status == Status::Fail { FixBy::Provider } else { FixBy::Either };
        let is_of_gpu = matches!(r.metric.as_str(), "peer_link" | "pcie");
        let devices = if is_of_gpu { &r.devices[..] } else { &[] };
        let mut f = finding(code, topic, devices, fix_by).explains(requirements, |other| other.id == r.id);
        f.observed.args = r.reason.as_ref()?.args.clone();
        Some(match r.devices.first().filter(|_| is_of_gpu) {
            Some(gpu) => f
                .see(facts.device_pointer(gpu), "device", gpu.to_string())
                .see_sensor(facts, &gpu.to_string(), "link_generation")
                .see_sensor(facts, &gpu.to_string(), "link_width"),
            None => f.see("/inventory/host", "host", r.metric.as_str()),
        })
    });
    found.collect()
}
