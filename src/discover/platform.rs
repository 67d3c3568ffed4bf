//! What is below us: hypervisor, container, cloud. Each answer carries the evidence it rests on.

use std::path::Path;

use super::read;

/// Hypervisors by the words their DMI tables use.
const HYPERVISORS: [(&str, &str); 12] = [
    ("amazon ec2", "nitro"),
    ("google compute engine", "kvm"),
    ("microsoft corporation virtual machine", "hyper-v"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("xen", "xen"),
    ("openstack", "kvm"),
    ("alibaba cloud", "kvm"),
    ("tencent cloud", "kvm"),
    ("kvm", "kvm"),
    ("qemu", "kvm or qemu"),
    ("bochs", "bochs"),
];

/// Clouds by the words their DMI tables use, with the name to show.
const CLOUDS: [(&str, &str); 18] = [
    ("amazon ec2", "Amazon EC2"),
    ("google", "Google Cloud"),
    ("7783-7084-3265-9085-8269-3286-77", "Microsoft Azure"),
    ("oraclecloud.com", "Oracle Cloud"),
    ("alibaba cloud", "Alibaba Cloud"),
    ("tencent cloud", "Tencent Cloud"),
    ("huawei cloud", "Huawei Cloud"),
    ("baidu cloud", "Baidu Cloud"),
    ("bytedance", "Volcano Engine"),
    ("digitalocean", "DigitalOcean"),
    ("hetzner", "Hetzner"),
    ("vultr", "Vultr"),
    ("linode", "Linode"),
    ("akamai", "Linode"),
    ("scaleway", "Scaleway"),
    ("coreweave", "CoreWeave"),
    ("lambda", "Lambda"),
    ("openstack", "OpenStack"),
];

/// Container runtimes by the words their control groups use.
const RUNTIMES: [(&str, &str); 6] = [
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
    ("machine.slice", "systemd-nspawn"),
];

/// One DMI field as firmware or hypervisor wrote it.
fn dmi(root: &Path, field: &str) -> Option<String> {
    read(root, &format!("sys/class/dmi/id/{field}"))
}

/// The fields that name vendor and product, together.
fn product(root: &Path) -> String {
    let fields = ["sys_vendor", "product_name", "bios_vendor", "chassis_asset_tag", "board_vendor"];
    fields.iter().filter_map(|f| dmi(root, f)).collect::<Vec<_>>().join(" ")
}

fn known<'t>(table: &[(&str, &'t str)], text: &str) -> Option<&'t str> {
    let text = text.to_lowercase();
    table.iter().find(|(word, _)| text.contains(word)).map(|(_, name)| *name)
}

/// The hypervisor with its evidence, "none" where the CPU says there is none; `None` if nothing can be said.
pub fn virtualization(root: &Path) -> Option<String> {
    let cpuinfo = read(root, "proc/cpuinfo")?;
    let flags = cpuinfo.lines().find(|l| l.starts_with("flags"));
    let flagged = flags.is_some_and(|l| l.split_whitespace().any(|f| f == "hypervisor"));
    let (product, kernel) = (product(root), read(root, "sys/hypervisor/type"));
    let tree = read(root, "proc/device-tree/hypervisor/compatible");
    let mut evidence = Vec::new();
    if flagged {
        evidence.push("CPU flag hypervisor".to_owned());
    }
    evidence.extend(kernel.as_ref().map(|t| format!("/sys/hypervisor/type {t}")));
    evidence.extend(tree.as_ref().map(|t| format!("device tree {t}")));
    if evidence.is_empty() && flags.is_some() {
        let dmi = if product.is_empty() { String::new() } else { format!(", DMI {product:?}") };
        return Some(format!("none (no CPU flag hypervisor{dmi})"));
    }
    let by_dmi = known(&HYPERVISORS, &product);
    if by_dmi.is_some() || !evidence.is_empty() && !product.is_empty() {
        evidence.push(format!("DMI {product:?}"));
    }
    let name = kernel.or(tree).or_else(|| by_dmi.map(str::to_owned));
    (!evidence.is_empty()).then(|| format!("{} ({})", name.as_deref().unwrap_or("unknown"), evidence.join(", ")))
}

/// The container runtime with its evidence; `None` if nothing points to one.
pub fn container(root: &Path) -> Option<String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    if root.join("var/run/secrets/kubernetes.io").exists() {
        found.push(("kubernetes", "/var/run/secrets/kubernetes.io".to_owned()));
    }
    if root.join("run/.containerenv").exists() {
        found.push(("podman", "/run/.containerenv".to_owned()));
    }
    if root.join(".dockerenv").exists() {
        found.push(("docker", "/.dockerenv".to_owned()));
    }
    let told = read(root, "run/systemd/container");
    found.extend(told.as_ref().map(|t| (t.as_str(), "/run/systemd/container".to_owned())));
    let cgroup = read(root, "proc/self/cgroup").unwrap_or_default();
    found.extend(known(&RUNTIMES, &cgroup).map(|name| (name, "/proc/self/cgroup".to_owned())));
    let mounts = read(root, "proc/self/mountinfo").unwrap_or_default();
    if mounts.lines().any(is_overlay_root) {
        found.push(("unknown runtime", "overlay as root file system".to_owned()));
    }
    let name = found.first()?.0;
    Some(format!("{name} ({})", found.iter().map(|(_, e)| e.as_str()).collect::<Vec<_>>().join(", ")))
}

/// `… / / … - overlay …`: the mount point is the fifth field, the type follows the dash.
fn is_overlay_root(line: &str) -> bool {
    let mount_point = line.split(' ').nth(4);
    let kind = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next());
    mount_point == Some("/") && kind == Some("overlay")
}

/// The cloud and its instance type as DMI tells them; `None` if no cloud is known by these words.
pub fn cloud(root: &Path) -> Option<String> {
    let name = known(&CLOUDS, &product(root))?;
    let first_word = name.split(' ').next().unwrap_or(name).to_lowercase();
    Some(match dmi(root, "product_name") {
        Some(product) if product.to_lowercase().contains(&first_word) => product,
        Some(product) => format!("{name} {product}"),
        None => name.to_owned(),
    })
}
