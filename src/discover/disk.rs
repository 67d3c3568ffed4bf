//! The disks of the machine as sysfs shows them. In a container these are the machine's, whoever may use them.

use std::fs;
use std::path::Path;

use super::read;
use crate::record::{Disk, DiskKind, Observed};
use crate::unit::Bytes;

/// Most disks that are looked at.
const MOST: usize = 1024;

/// Block devices that are made of memory, files or other block devices, or that hold discs one can take out.
const NOT_DISKS: [&str; 8] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd", "mtdblock"];

/// Names of block devices behind which is a network.
const NETWORK_NAMES: [&str; 3] = ["rbd", "nbd", "drbd"];

/// Words in the model text of volumes over the network: AWS and Alibaba write "Elastic Block Store" and "Storage", Google
/// "PersistentDisk" and "nvme_card-pd", Azure's remote disks are "MSFT NVMe Accelerator".
const NETWORK_MODELS: [&str; 4] = ["elastic block stor", "persistentdisk", "card-pd", "nvme accelerator"];

/// Words in the model text of disks that a hypervisor makes up.
const VIRTUAL_MODELS: [&str; 3] = ["qemu", "virtual disk", "virtio"];

/// Disks with a capacity, by name; not observable where the kernel does not show them.
pub fn disks(root: &Path) -> Observed<Vec<Disk>> {
    let entries = match fs::read_dir(root.join("sys/block")) {
        Ok(entries) => entries,
        Err(error) => return Observed::NotObservable(format!("/sys/block: {error}")),
    };
    let mut names: Vec<String> =
        entries.flatten().take(MOST).filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    let is_disk = |name: &&String| !NOT_DISKS.iter().any(|prefix| name.starts_with(prefix)) && !name.contains("boot");
    Observed::Value(names.iter().filter(is_disk).filter_map(|name| disk(root, name)).collect())
}

fn disk(root: &Path, name: &str) -> Option<Disk> {
    let file = |path: &str| read(root, &format!("sys/block/{name}/{path}"));
    let is_set = |path: &str| file(path).is_some_and(|t| t == "1");
    // One path of several to a disk is hidden; a stick or card is no disk of the machine.
    if is_set("hidden") || is_set("removable") {
        return None;
    }
    // The kernel counts in sectors of 512 bytes, whatever those of the disk are.
    let size = file("size")?.parse::<f64>().ok().filter(|sectors| *sectors > 0.0)? * 512.0;
    let model = file("device/model");
    let transport = file("device/transport");
    let kind = kind(name, model.as_deref(), transport.as_deref(), file("queue/rotational").as_deref());
    Some(Disk { name: name.to_owned(), size: Bytes(size), kind, model })
}

fn kind(name: &str, model: Option<&str>, transport: Option<&str>, rotational: Option<&str>) -> DiskKind {
    let model = model.unwrap_or_default().to_lowercase();
    let is_named = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
    let says = |words: &[&str]| words.iter().any(|w| model.contains(w));
    // NVMe over fabrics names its transport.
    let is_remote = transport.is_some_and(|t| t != "pcie");
    match rotational {
        _ if is_named(&NETWORK_NAMES) || says(&NETWORK_MODELS) || is_remote => DiskKind::Network,
        _ if is_named(&["vd", "xvd"]) || says(&VIRTUAL_MODELS) => DiskKind::Virtual,
        _ if is_named(&["nvme"]) => DiskKind::Nvme,
        Some("0") => DiskKind::Ssd,
        Some("1") => DiskKind::Hdd,
        _ => DiskKind::Virtual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_told_apart_by_what_the_kernel_shows() {
        for (name, model, transport, rotational, expected) in [
            ("nvme0n1", Some("Amazon EC2 NVMe Instance Storage"), Some("pcie"), Some("0"), DiskKind::Nvme),
            ("nvme1n1", Some("Amazon Elastic Block Store"), Some("pcie"), Some("0"), DiskKind::Network),
            ("nvme0n1", Some("nvme_card-pd"), None, Some("0"), DiskKind::Network),
            ("nvme0n1", Some("nvme_card"), None, Some("0"), DiskKind::Nvme),
            ("nvme0n1", Some("MSFT NVMe Accelerator v1.0"), None, None, DiskKind::Network),
            ("nvme0n1", Some("Microsoft NVMe Direct Disk"), None, None, DiskKind::Nvme),
            ("nvme0n1", Some("Linux"), Some("tcp"), Some("0"), DiskKind::Network),
            ("vda", None, None, Some("1"), DiskKind::Virtual),
            ("sda", Some("QEMU HARDDISK"), None, Some("1"), DiskKind::Virtual),
            ("sda", Some("ST16000NM001G"), None, Some("1"), DiskKind::Hdd),
            ("sda", Some("SAMSUNG MZ7L33T8"), None, Some("0"), DiskKind::Ssd),
            ("rbd0", None, None, Some("0"), DiskKind::Network),
        ] {
            assert_eq!(kind(name, model, transport, rotational), expected, "{name} {model:?}");
        }
    }

    #[test]
    fn only_whole_disks_with_a_capacity_count() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join("sys/block").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (name, sectors) in
            [("nvme0n1", "7501476528\n"), ("loop0", "8"), ("sdb", "0"), ("dm-0", "8"), ("nvme0c0n1", "8")]
        {
            write(&format!("{name}/size"), sectors);
        }
        write("nvme0n1/device/model", "SAMSUNG MZQL23T8HCLS-00A07   \n");
        write("nvme0n1/queue/rotational", "0\n");
        write("nvme0c0n1/hidden", "1\n");
        write("sdc/size", "100");
        write("sdc/removable", "1\n");
        let Observed::Value(found) = disks(root.path()) else { panic!("shown") };
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].kind, found[0].size), (DiskKind::Nvme, Bytes(3_840_755_982_336.0)));
        assert_eq!(found[0].model.as_deref(), Some("SAMSUNG MZQL23T8HCLS-00A07"));
        assert!(disks(&root.path().join("elsewhere")).value().is_none());
    }
}
