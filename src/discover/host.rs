//! The machine around the devices, and the part of it that this process may use.

use std::collections::BTreeMap;
use std::path::Path;

use super::{disk, pci, platform, read, storage};
use crate::backend::host::facts;
use crate::record::{DeviceInfo, Disk, DiskKind, HOST_SIMULATED, Host, NVSWITCHES, Observed};
use crate::unit::Bytes;

/// What `/proc`, `/sys` and `/etc` under `root` say.
pub fn host(root: &Path) -> Host {
    let allowed = allowed_cpus(root);
    let online = read(root, "sys/devices/system/cpu/online").and_then(|t| facts::parse_cpu_list(&t));
    let total = online.map_or_else(|| cpus_listed(root), |cpus| cpus.len());
    let quota = facts::cpu_quota(root);
    let usable = match allowed.len() {
        0 => total as f64,
        n => n as f64,
    };
    Host {
        hostname: read(root, "proc/sys/kernel/hostname").unwrap_or_default(),
        cpu: facts::cpu_model(root).1,
        cpus_total: total as u32,
        cpus_usable: quota.as_ref().map_or(usable, |q| q.value.min(usable)),
        memory_total: memory_total(root).unwrap_or_default(),
        memory_usable: Bytes(facts::memory_usable(root)),
        kernel: read(root, "proc/sys/kernel/osrelease").unwrap_or_default(),
        os: distribution(root),
        virtualization: platform::virtualization(root),
        container: platform::container(root),
        cloud: platform::cloud(root),
        pci_gpus: pci::gpus(root),
        disks: disk::disks(root),
        numa: numa(root),
        attributes: attributes(root, &allowed),
    }
}

/// Puts what a simulated device says of the machine around it in place of this machine's; marked, so that nobody takes
/// the one for the other.
pub fn simulate(host: &mut Host, device: &DeviceInfo) {
    let said = |name: &str| device.attributes.get(name).and_then(|text| text.parse::<f64>().ok());
    let mut simulated = Vec::new();
    if let Some(cpus) = said("host_cpus") {
        (host.cpus_total, host.cpus_usable) = (cpus as u32, cpus);
        simulated.push("cpus");
    }
    if let Some(bytes) = said("host_ram") {
        (host.memory_total, host.memory_usable) = (Bytes(bytes), Bytes(bytes));
        simulated.push("ram");
    }
    if let Some(bytes) = said("host_nvme") {
        let disk = Disk { name: "simulated".to_owned(), size: Bytes(bytes), kind: DiskKind::Nvme, model: None };
        host.disks = Observed::Value(vec![disk]);
        simulated.push("nvme");
    }
    if !simulated.is_empty() {
        // Limits of this machine are not those of the simulated one.
        host.container = None;
        for limit in ["cpu_affinity", "cpu_quota", "memory_limit", "network_file_systems", NVSWITCHES] {
            host.attributes.remove(limit);
        }
        host.attributes.insert(HOST_SIMULATED.to_owned(), simulated.join(" "));
    }
}

/// CPUs that the scheduler may put this process on; empty if unknown.
fn allowed_cpus(root: &Path) -> Vec<usize> {
    let status = read(root, "proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    list.and_then(facts::parse_cpu_list).unwrap_or_default()
}

fn cpus_listed(root: &Path) -> usize {
    let text = read(root, "proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|l| l.split(':').next().is_some_and(|k| k.trim() == "processor")).count()
}

fn memory_total(root: &Path) -> Option<Bytes> {
    kib(&read(root, "proc/meminfo")?, "MemTotal:")
}

/// A line of meminfo, e.g. `MemTotal:  263856 kB`.
fn kib(meminfo: &str, name: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|l| l.split_once(name))?.1;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(Bytes(kib * 1024.0))
}

fn distribution(root: &Path) -> String {
    let file = ["etc/os-release", "usr/lib/os-release"].iter().find_map(|path| read(root, path)).unwrap_or_default();
    let field = |name: &str| file.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('=').map(unquoted));
    field("PRETTY_NAME").or_else(|| field("NAME")).unwrap_or_default()
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

/// `node0: CPUs 0-15, 64 GiB`, one line per node.
fn numa(root: &Path) -> Vec<String> {
    let online = read(root, "sys/devices/system/node/online").and_then(|t| facts::parse_cpu_list(&t));
    let node = |n: usize| {
        let folder = format!("sys/devices/system/node/node{n}");
        let cpus = read(root, &format!("{folder}/cpulist")).unwrap_or_else(|| "none".to_owned());
        let memory = read(root, &format!("{folder}/meminfo")).and_then(|t| kib(&t, "MemTotal:"));
        let memory = memory.map_or("memory not shown".to_owned(), |m| m.to_string());
        format!("node{n}: CPUs {cpus}, {memory}")
    };
    online.unwrap_or_default().into_iter().map(node).collect()
}

/// What else explains results: limits with the file they come from, driver modules, boot.
fn attributes(root: &Path, allowed: &[usize]) -> BTreeMap<String, String> {
    let limit = |l: facts::Limit, value: String| format!("{value} ({})", shown_path(root, &l.source));
    let quota = facts::cpu_quota(root).map(|l| {
        let value = l.value.to_string();
        limit(l, value)
    });
    let memory = facts::memory_limit(root).map(|l| {
        let value = Bytes(l.value).to_string();
        limit(l, value)
    });
    let first_line = |path: &str| read(root, path).and_then(|t| t.lines().next().map(str::to_owned));
    let all = [
        ("boot_id", read(root, "proc/sys/kernel/random/boot_id")),
        ("cpu_affinity", (!allowed.is_empty()).then(|| facts::cpu_list(allowed))),
        ("cpu_quota", quota),
        ("memory_limit", memory),
        ("nvidia_kernel_driver", first_line("proc/driver/nvidia/version")),
        ("amdgpu_kernel_driver", read(root, "sys/module/amdgpu/version")),
        ("network_file_systems", storage::network_file_systems(root)),
        (NVSWITCHES, pci::nvswitches(root).map(|n| n.to_string())),
        ("cpu_governor", read(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// A path below an injected root as the machine names it.
fn shown_path(root: &Path, path: &str) -> String {
    Path::new(path).strip_prefix(root).map_or_else(|_| path.to_owned(), |p| format!("/{}", p.display()))
}
