//! Discovery on machines written down in one file each, and selection on what it finds.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::backend::{Device, DeviceError, Probe};
use crate::record::{
    BackendId, BackendState, DeviceId, DiskKind, HOST_SIMULATED, NVSWITCHES, PEER_LINK, PciIdentity, WorkScale,
};
use crate::unit::Bytes;

/// A machine of `tests/fixtures/sysfs`: `== path` lines, each followed by the file's text, or `== path -> target`.
fn machine(name: &str) -> tempfile::TempDir {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sysfs").join(format!("{name}.tree"));
    let root = tempfile::tempdir().unwrap();
    for part in fs::read_to_string(file).unwrap().split("== ").filter(|p| !p.is_empty()) {
        let (path, text) = part.split_once('\n').unwrap();
        let (path, target) = path.split_once(" -> ").map_or((path, None), |(path, target)| (path, Some(target)));
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match target {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    root
}

/// A backend with a fixed answer.
struct Fixed(BackendId, Probe);

impl Backend for Fixed {
    fn id(&self) -> BackendId {
        self.0
    }
    fn probe(&self) -> Probe {
        self.1.clone()
    }
    fn open(&self, _device: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        Err(DeviceError::Unsupported("never opened".to_owned()))
    }
}

fn absent(backend: BackendId) -> Box<dyn Backend> {
    let state = BackendState::Absent { reason: "its library is not here".to_owned(), remedy: "install it".to_owned() };
    Box::new(Fixed(backend, Probe { state, devices: Vec::new() }))
}

fn present(backend: BackendId, devices: Vec<DeviceInfo>) -> Box<dyn Backend> {
    let state = BackendState::Present { version: "1".to_owned(), library: None };
    Box::new(Fixed(backend, Probe { state, devices }))
}

fn device(backend: BackendId, index: u32, kind: DeviceKind) -> DeviceInfo {
    DeviceInfo {
        id: DeviceId::new(backend, index),
        kind,
        name: "NVIDIA A100-SXM4-40GB".to_owned(),
        vendor: "NVIDIA".to_owned(),
        uuid: None,
        pci: None,
        memory: Bytes::gib(40),
        last_level_cache: None,
        units: Some(108),
        clock_max: None,
        driver: None,
        api: None,
        gemm_types: Vec::new(),
        fma_types: Vec::new(),
        spec: None,
        numa_node: None,
        attributes: BTreeMap::new(),
        scale: WorkScale::ONE,
        simulated: backend == BackendId::Sim,
    }
}

fn gpu(backend: BackendId, index: u32, address: &str) -> DeviceInfo {
    let pci = PciIdentity { address: address.to_owned(), vendor: 0x10de, device: 0x20b0, subsystem: None };
    DeviceInfo { pci: Some(pci), ..device(backend, index, DeviceKind::Gpu) }
}

fn found(name: &str, backends: &[Box<dyn Backend>]) -> Inventory {
    let root = machine(name);
    discover(backends, &Options { root: root.path().to_owned(), storage: None })
}

fn selected(inventory: &Inventory, names: &[&str]) -> Result<String, SelectError> {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let ids = select(inventory, &names)?;
    Ok(ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
}

#[test]
fn a_container_gets_what_its_group_allows() {
    let host = found("container-with-quota", &[]).host;
    assert!(host.gpus_on_bus().is_empty());
    assert_eq!((host.cpus_total, host.cpus_usable), (8, 1.5));
    assert_eq!((host.memory_total, host.memory_usable), (Bytes(32_880_524.0 * 1024.0), Bytes::gib(4)));
    assert_eq!(host.cpu, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz");
    assert_eq!(host.os, "Ubuntu 24.04.1 LTS");
    assert_eq!(host.kernel, "6.8.0-1021-gcp");
    assert_eq!(host.container.unwrap(), "docker (/.dockerenv, overlay as root file system)");
    assert_eq!(host.virtualization.unwrap(), "kvm (CPU flag hypervisor, DMI \"Google Google Compute Engine\")");
    assert_eq!(host.cloud.unwrap(), "Google Compute Engine");
    assert_eq!(host.numa, ["node0: CPUs 0-7, 31.4 GiB"]);
    assert_eq!(host.attributes["cpu_quota"], "1.5 (/sys/fs/cgroup/cpu.max)");
    assert_eq!(host.attributes["memory_limit"], "4.00 GiB (/sys/fs/cgroup/memory.max)");
    assert_eq!(host.attributes["cpu_affinity"], "0-5");
    assert_eq!(host.attributes["boot_id"], "0f3ab2a4-5f2c-4a52-9d51-0a0a0a0a0a0a");
}

#[test]
fn gpus_on_the_bus_are_seen_without_any_driver() {
    let inventory = found("vm-two-gpus-no-driver", &[absent(BackendId::Cuda), absent(BackendId::Opencl)]);
    let addresses: Vec<&str> = inventory.host.gpus_on_bus().iter().map(|p| p.address.as_str()).collect();
    assert_eq!(addresses, ["0000:10:1c.0", "0000:20:1c.0"]);
    assert_eq!(inventory.host.gpus_on_bus()[0].subsystem, Some((0x10de, 0x144d)));
    assert_eq!(inventory.host.cloud.as_deref(), Some("Amazon EC2 p4d.24xlarge"));
    assert!(inventory.host.virtualization.as_deref().unwrap().starts_with("nitro (CPU flag hypervisor"));
    assert_eq!(inventory.host.container, None);
    assert_eq!((inventory.host.cpus_usable, inventory.host.numa.len()), (96.0, 2));
    assert_eq!(inventory.disagreements.len(), 1);
    let count = &inventory.disagreements[0];
    assert_eq!((&*count.about, &*count.first.1, &*count.second.1), ("count", "2", "0"));
    let error = selected(&inventory, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no GPU to test\n  \
         PCI bus: 0000:10:1c.0 [10de:20b0], which no driver shows\n  \
         PCI bus: 0000:20:1c.0 [10de:20b0], which no driver shows\n  \
         cuda: its library is not here; install it\n  \
         opencl: its library is not here; install it"
    );
}

#[test]
fn hostile_files_are_data() {
    let inventory = found("bare-metal-hostile", &[]);
    let host = &inventory.host;
    assert_eq!(host.cpu, "AMD EPYC 9654 <script>alert(1)</script>");
    assert_eq!(host.hostname, "\u{1b}[31mred\u{1b}[0m");
    assert_eq!(host.os, "{{ 7*7 }}");
    assert_eq!((host.memory_total, host.memory_usable), (Bytes(0.0), Bytes(0.0)));
    assert_eq!((host.cpus_total, host.cpus_usable), (1, 1.0));
    assert!(host.numa.is_empty());
    assert_eq!(
        host.virtualization.as_deref(),
        Some("none (no CPU flag hypervisor, DMI \"Supermicro AS -8125GS-TNMR2\")")
    );
    assert_eq!((host.cloud.as_deref(), host.container.as_deref()), (None, None));
    // The board's own screen is no GPU; a device id that does not fit is left out.
    assert_eq!(host.gpus_on_bus().len(), 1);
    assert_eq!(host.gpus_on_bus()[0].device, 0x74a1);
}

#[test]
fn an_empty_root_gives_an_empty_host() {
    let root = tempfile::tempdir().unwrap();
    let inventory = discover(&[], &Options { root: root.path().to_owned(), storage: None });
    assert_eq!((inventory.host.cpus_total, inventory.host.virtualization), (0, None));
    assert!(inventory.devices.is_empty() && inventory.disagreements.is_empty());
}

#[test]
fn the_bus_completes_what_a_driver_shows() {
    let mut hostile = gpu(BackendId::Cuda, 1, "../../../../proc");
    hostile.name = "unknown".to_owned();
    hostile.pci.as_mut().unwrap().device = 0;
    let cuda = present(BackendId::Cuda, vec![gpu(BackendId::Cuda, 0, "0000:10:1c.0"), hostile]);
    let inventory = found("vm-two-gpus-no-driver", &[cuda]);
    let first = &inventory.devices[0];
    assert_eq!(first.spec.as_deref(), Some("a100-sxm4-40gb"));
    assert_eq!(inventory.devices[1].spec, None);
    assert!(inventory.devices[1].attributes.is_empty());
}

#[test]
fn width_and_speed_of_the_link_come_from_the_bus() {
    let cuda = present(
        BackendId::Cuda,
        vec![gpu(BackendId::Cuda, 0, "0000:10:1C.0"), gpu(BackendId::Cuda, 1, "0000:20:1c.0")],
    );
    let inventory = found("vm-two-gpus-no-driver", &[cuda]);
    let first = &inventory.devices[0];
    assert_eq!((&*first.attributes["pcie_width"], &*first.attributes["pcie_width_max"]), ("8", "16"));
    assert_eq!(first.attributes["pcie_speed"], "16.0 GT/s PCIe");
    assert_eq!(first.attributes["pcie_root"], "pci0000:10");
    assert_eq!(inventory.devices[1].attributes.get("pcie_root"), None);
    assert_eq!((first.numa_node, inventory.devices[1].numa_node), (Some(0), None));
    assert_eq!(first.pci.as_ref().unwrap().subsystem, Some((0x10de, 0x144d)));
    assert!(inventory.disagreements.is_empty(), "{:?}", inventory.disagreements);
}

#[test]
fn disks_and_links_between_gpus_are_seen_without_any_driver() {
    let host = found("vm-two-gpus-no-driver", &[]).host;
    assert_eq!(host.attributes[NVSWITCHES], "1");
    let disks = host.disks.value().unwrap();
    let kinds: Vec<(&str, DiskKind)> = disks.iter().map(|d| (d.name.as_str(), d.kind)).collect();
    assert_eq!(kinds, [("nvme0n1", DiskKind::Network), ("nvme1n1", DiskKind::Nvme)]);
    assert_eq!(disks[1].size, Bytes(1e12));
    let mut amd = gpu(BackendId::Opencl, 0, "0000:05:00.0");
    amd.name = "unknown".to_owned();
    let inventory = found("bare-metal-hostile", &[present(BackendId::Opencl, vec![amd])]);
    assert_eq!(inventory.devices[0].attributes[PEER_LINK], "xGMI");
    assert!(inventory.host.disks.value().unwrap().is_empty(), "a size that is no number is no disk");
    assert_eq!(inventory.host.attributes.get(NVSWITCHES), None);
}

#[test]
fn a_simulated_machine_takes_the_place_of_this_one_and_says_so() {
    let mut sim = gpu(BackendId::Sim, 0, "0000:10:1c.0");
    let host = |sim: &DeviceInfo| found("container-with-quota", &[present(BackendId::Sim, vec![sim.clone()])]).host;
    let before = host(&sim);
    assert!(!before.attributes.contains_key(HOST_SIMULATED) && before.container.is_some());
    sim.attributes.insert("host_cpus".to_owned(), "192".to_owned());
    sim.attributes.insert("host_nvme".to_owned(), "1e12".to_owned());
    let after = host(&sim);
    assert_eq!((after.cpus_total, after.cpus_usable, after.memory_total), (192, 192.0, before.memory_total));
    assert_eq!((after.disks.value().unwrap().len(), after.container), (1, None));
    assert_eq!(after.attributes[HOST_SIMULATED], "cpus nvme");
    // Not even as the reason of a limit do numbers of this machine remain.
    assert!(!after.attributes.contains_key("cpu_quota") && !after.attributes.contains_key("cpu_affinity"));
}

#[test]
fn sources_that_contradict_one_another_are_told() {
    let mut spoofed = gpu(BackendId::Cuda, 0, "0000:10:1c.0");
    spoofed.pci.as_mut().unwrap().device = 0x2330;
    spoofed.uuid = Some("GPU-11".to_owned());
    let mut other = gpu(BackendId::Opencl, 0, "0000:10:1C.0");
    (other.memory, other.units, other.uuid) = (Bytes::gib(20), Some(100), Some("22".to_owned()));
    let backends = [present(BackendId::Cuda, vec![spoofed]), present(BackendId::Opencl, vec![other])];
    let all = found("vm-two-gpus-no-driver", &backends).disagreements;
    let about: Vec<&str> = all.iter().map(|d| d.about.as_str()).collect();
    assert_eq!(about, ["pci id", "uuid", "name", "memory", "units", "count"]);
}

#[test]
fn simulated_devices_are_on_no_bus() {
    let sim = present(BackendId::Sim, vec![gpu(BackendId::Sim, 0, "0000:10:1c.0")]);
    let all = found("vm-two-gpus-no-driver", &[sim]).disagreements;
    assert_eq!(all.iter().map(|d| d.about.as_str()).collect::<Vec<_>>(), ["count"]);
}

/// Two GPUs through cuda and opencl, a CPU through opencl, the host.
fn everything() -> Inventory {
    let same = |backend| vec![gpu(backend, 0, "0000:10:1c.0"), gpu(backend, 1, "0000:20:1c.0")];
    let mut opencl = same(BackendId::Opencl);
    opencl.push(device(BackendId::Opencl, 2, DeviceKind::Cpu));
    let host = vec![device(BackendId::Host, 0, DeviceKind::Cpu)];
    let mut cuda = same(BackendId::Cuda);
    cuda[1].uuid = Some("GPU-ABCD-12".to_owned());
    found(
        "vm-two-gpus-no-driver",
        &[present(BackendId::Opencl, opencl), present(BackendId::Cuda, cuda), present(BackendId::Host, host)],
    )
}

#[test]
fn every_gpu_is_taken_once_through_its_best_backend() {
    let mut inventory = everything();
    assert_eq!(selected(&inventory, &[]).unwrap(), "cuda:0 cuda:1");
    assert_eq!(selected(&inventory, &["gpu"]).unwrap(), "cuda:0 cuda:1");
    assert_eq!(selected(&inventory, &["all"]).unwrap(), "cuda:0 cuda:1 host:0");
    // Without addresses, UUIDs tell.
    for (id, uuid) in [("cuda:0", "GPU-aa"), ("cuda:1", "GPU-BB"), ("opencl:0", "bb"), ("opencl:1", "a-a")] {
        let device = inventory.devices.iter_mut().find(|d| d.id.to_string() == id).unwrap();
        (device.pci, device.uuid) = (None, Some(uuid.to_owned()));
    }
    assert_eq!(selected(&inventory, &[]).unwrap(), "cuda:0 cuda:1");
    // With neither they count as two: better measured twice than not at all.
    inventory.devices.iter_mut().for_each(|d| d.uuid = None);
    assert_eq!(selected(&inventory, &[]).unwrap(), "cuda:0 cuda:1 opencl:0 opencl:1");
}

#[test]
fn slices_of_one_gpu_are_devices_of_their_own() {
    let slices = vec![gpu(BackendId::Cuda, 0, "0000:10:1c.0"), gpu(BackendId::Cuda, 1, "0000:10:1c.0")];
    let inventory = found("vm-two-gpus-no-driver", &[present(BackendId::Cuda, slices)]);
    assert_eq!(selected(&inventory, &[]).unwrap(), "cuda:0 cuda:1");
}

#[test]
fn names_choose_anything_and_unknown_names_show_what_there_is() {
    let inventory = everything();
    assert_eq!(selected(&inventory, &["host"]).unwrap(), "host:0");
    assert_eq!(selected(&inventory, &["opencl:2,cuda:0", "cuda:0"]).unwrap(), "cuda:0 opencl:2");
    assert_eq!(selected(&inventory, &["opencl"]).unwrap(), "opencl:0 opencl:1 opencl:2");
    assert_eq!(selected(&inventory, &["abcd12"]).unwrap(), "cuda:1");
    assert_eq!(selected(&inventory, &["0000:20:1c.0"]).unwrap(), "cuda:1 opencl:1");
    let text = selected(&inventory, &["cuda:7"]).unwrap_err().to_string();
    assert!(text.starts_with("no device is called \"cuda:7\"\n  devices here:\n    cuda:0  NVIDIA A100"), "{text}");
    assert!(matches!(selected(&inventory, &["sim"]), Err(SelectError::Unknown { .. })));
}

#[test]
fn a_cpu_is_never_taken_for_a_gpu() {
    let cpu = device(BackendId::Opencl, 0, DeviceKind::Cpu);
    let host = device(BackendId::Host, 0, DeviceKind::Cpu);
    let backends = [present(BackendId::Opencl, vec![cpu]), present(BackendId::Host, vec![host])];
    let inventory = found("container-with-quota", &backends);
    for names in [&[][..], &["gpu"], &["all"]] {
        let error = selected(&inventory, names).unwrap_err();
        let SelectError::NothingToTest { others, .. } = &error else { panic!("{error}") };
        assert_eq!(others.len(), 2);
        assert!(error.to_string().contains("PCI bus: no GPU\n  opencl: no GPU (1)"), "{error}");
    }
    assert_eq!(selected(&inventory, &["opencl:0"]).unwrap(), "opencl:0");
}

#[test]
fn simulated_gpus_are_not_mixed_with_real_ones_unasked() {
    let sim = present(BackendId::Sim, vec![gpu(BackendId::Sim, 0, "0000:10:00.0")]);
    let cuda = present(BackendId::Cuda, vec![gpu(BackendId::Cuda, 0, "0000:10:1c.0")]);
    let inventory = found("vm-two-gpus-no-driver", &[cuda, sim]);
    assert_eq!(selected(&inventory, &[]).unwrap(), "sim:0");
    assert_eq!(selected(&inventory, &["sim", "cuda"]).unwrap(), "cuda:0 sim:0");
}

#[test]
fn this_machine_is_described() {
    let inventory = discover(&[], &Options { storage: Some(std::env::temp_dir()), ..Options::default() });
    assert!(inventory.host.cpus_total >= 1 && inventory.host.cpus_usable > 0.0);
    assert!(inventory.host.memory_usable.get() > 0.0 && !inventory.host.kernel.is_empty());
    assert!(inventory.storage.is_some());
}
