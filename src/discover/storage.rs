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
    fn a_folder_that_is_not_there_is_no_target() {
        assert_eq!(target(Path::new("/no/such/folder"), Path::new("/")), None);
        let folder = tempfile::tempdir().unwrap();
        let found = target(folder.path(), Path::new("/")).unwrap();
        assert!(found.free.get() > 0.0 && !found.filesystem.is_empty());
    }
}
