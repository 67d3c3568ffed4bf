//! Where files would be measured.

use std::path::{Path, PathBuf};

use super::read;
use crate::backend::host::file;
use crate::record::StorageTarget;

/// The folder with its file system, backing device and free space; `None` if it cannot be opened.
pub fn target(folder: &Path, root: &Path) -> Option<StorageTarget> {
    let folder = folder.canonicalize().ok()?;
    let (filesystem, free) = file::place(&folder).ok()?;
    let device = read(root, "proc/self/mountinfo").and_then(|table| backing_device(&folder, &table));
    Some(StorageTarget { path: folder.to_string_lossy().into_owned(), filesystem: filesystem.name, device, free })
}

/// The source of the mount that holds `folder`: the longest mount point above it, the latest if mounted twice.
fn backing_device(folder: &Path, table: &str) -> Option<String> {
    let mount = |line: &str| {
        let (fields, rest) = line.split_once(" - ")?;
        let point = PathBuf::from(unescaped(fields.split(' ').nth(4)?));
        let source = unescaped(rest.split(' ').nth(1)?);
        folder.starts_with(&point).then_some((point.components().count(), source))
    };
    let mounts = table.lines().filter_map(mount);
    mounts.max_by_key(|(depth, _)| *depth).map(|(_, source)| source)
}

/// Types of file systems behind which is a network; those of user space tell it by their name after `fuse.`.
const NETWORK: [&str; 13] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "beegfs", "gpfs", "wekafs", "glusterfs", "9p", "virtiofs", "afs"];

/// Mounted file systems whose files are elsewhere, e.g. `nfs4 /data`; `None` if there are none.
pub fn network_file_systems(root: &Path) -> Option<String> {
    let table = read(root, "proc/self/mountinfo")?;
    let mount = |line: &str| {
        let (fields, rest) = line.split_once(" - ")?;
        let kind = rest.split(' ').next()?;
        let is_local = ["fuse.lxcfs", "fuse.fuse-overlayfs", "fuse.snapfuse", "fuse.portal"].contains(&kind);
        let is_remote = NETWORK.contains(&kind) || kind.starts_with("fuse.") && !is_local;
        is_remote.then(|| format!("{kind} {}", unescaped(fields.split(' ').nth(4).unwrap_or_default())))
    };
    let mounts: Vec<String> = table.lines().filter_map(mount).take(16).collect();
    (!mounts.is_empty()).then(|| mounts.join(", "))
}

/// The kernel writes space, tab, newline and backslash as octal escapes.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_holds_the_folder() {
        let table = "22 1 8:1 / / rw - ext4 /dev/root rw\n\
                     23 22 8:2 / /data rw,x shared:1 - xfs /dev/nvme0n1p1 rw\n\
                     24 22 8:3 / /data\\040two rw - btrfs /dev/sdb rw\n\
                     malformed\n";
        let device = |folder: &str| backing_device(Path::new(folder), table).unwrap();
        assert_eq!(device("/data/x"), "/dev/nvme0n1p1");
        assert_eq!(device("/data two/x"), "/dev/sdb");
        assert_eq!(device("/database"), "/dev/root");
        assert_eq!(backing_device(Path::new("/x"), ""), None);
    }

    #[test]
    fn file_systems_over_the_network_are_named() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let table = "22 1 8:1 / / rw - ext4 /dev/root rw\n23 22 0:5 / /data rw - nfs4 10.0.0.2:/x rw\n";
        std::fs::write(root.path().join("proc/self/mountinfo"), table).unwrap();
        assert_eq!(network_file_systems(root.path()).as_deref(), Some("nfs4 /data"));
        assert_eq!(network_file_systems(Path::new("/no/such/root")), None);
    }

    #[test]
    fn a_folder_that_is_not_there_is_no_target() {
        assert_eq!(target(Path::new("/no/such/folder"), Path::new("/")), None);
        let folder = tempfile::tempdir().unwrap();
        let found = target(folder.path(), Path::new("/")).unwrap();
        assert!(found.free.get() > 0.0 && !found.filesystem.is_empty());
    }
}
