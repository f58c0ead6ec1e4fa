//! The disk below a file system: which one it is, if another one in its place could be told from it.
//!
//! A copy of a file system, or one that was made twice in the same way, has the same identity, inodes and times as
//! the first, and may hold other images. Its disk tells them apart: by a name that no other disk in the world has,
//! or by the number that the kernel gives to every disk that appears, until the next start. A file in the place of
//! a disk (a loop device, a network block device) can be exchanged without either.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::regular_file;

/// Disks as a kernel describes them.
pub(super) struct Kernel {
    /// `/sys`.
    pub(super) folder: PathBuf,
    /// The number of this start of the machine, if it is known.
    pub(super) boot: Option<String>,
}

impl Kernel {
    /// The one that runs.
    pub(super) fn running() -> Self {
        let boot = regular_file::read_to_string(Path::new("/proc/sys/kernel/random/boot_id")).ok();
        Self { folder: "/sys".into(), boot }
    }

    /// What tells a disk, or a part of one, from every other; nothing if nothing does.
    pub(super) fn disk(&self, major: u32, minor: u32) -> Option<u64> {
        self.described(&self.folder.join(format!("dev/block/{major}:{minor}")))
    }

    /// The same of all disks that the source of a mount names, such as `/dev/mapper/data`.
    pub(super) fn source(&self, source: &str) -> Option<u64> {
        let mut hasher = blake3::Hasher::new();
        for path in source.split(':') {
            let node = Path::new(path).canonicalize().unwrap_or_else(|_| path.into());
            let disk = self.described(&self.folder.join("class/block").join(node.file_name()?))?;
            hasher.update(&disk.to_le_bytes());
        }
        Some(short(&hasher))
    }

    fn described(&self, folder: &Path) -> Option<u64> {
        let mut folder = folder.canonicalize().ok()?;
        let mut hasher = blake3::Hasher::new();
        if let Some(part) = told(&folder, "partition") {
            hasher.update(part.as_bytes());
            folder.pop();
        }
        let parts: Vec<_> =
            std::fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten().collect();
        for part in &parts {
            hasher.update(&self.described(&part.path())?.to_le_bytes());
        }
        let is_array = !parts.is_empty() && folder.join("md").is_dir();
        if !is_array {
            let is_virtual =
                parts.is_empty() && folder.components().any(|part| part.as_os_str() == OsStr::new("virtual"));
            hasher.update(self.name(&folder, is_virtual)?.as_bytes());
        }
        Some(short(&hasher))
    }

    /// Of a disk by itself.
    fn name(&self, folder: &Path, is_virtual: bool) -> Option<String> {
        // Others are made up from vendor and number, and emulated disks share them.
        let is_worldwide =
            |name: &String| ["eui.", "naa.", "uuid."].iter().any(|kind| name.starts_with(kind));
        let names = [told(folder, "wwid"), told(folder, "device/wwid")];
        let named = names.into_iter().flatten().find(is_worldwide).or_else(|| told(folder, "dm/uuid"));
        named.or_else(|| match is_virtual {
            true => None,
            false => Some(format!("{} since {}", told(folder, "diskseq")?, self.boot.as_ref()?)),
        })
    }
}

/// What the kernel says in a file, if it says anything.
fn told(folder: &Path, file: &str) -> Option<String> {
    let text = regular_file::read_to_string(&folder.join(file)).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

fn short(hasher: &blake3::Hasher) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A kernel with a disk; further files are below the disk's folder.
    fn kernel(folder: &Path, boot: &str, disk: &str, files: &[(&str, &str)]) -> Kernel {
        let place = folder.join("devices").join(disk);
        for (file, text) in files {
            let file = place.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
        for (list, name) in [("dev/block", "8:1"), ("class/block", "data")] {
            fs::create_dir_all(folder.join(list)).unwrap();
            let _ = fs::remove_file(folder.join(list).join(name));
            symlink(&place, folder.join(list).join(name)).unwrap();
        }
        Kernel { folder: folder.into(), boot: Some(boot.into()) }
    }

    fn identity(boot: &str, disk: &str, files: &[(&str, &str)]) -> Option<u64> {
        let folder = tempfile::tempdir().unwrap();
        let kernel = kernel(folder.path(), boot, disk, files);
        let identity = kernel.disk(8, 1);
        assert_eq!(identity.is_some(), kernel.source("/nowhere/data").is_some());
        identity
    }

    #[test]
    fn a_disk_with_a_name_of_its_own_is_the_same_after_a_start() {
        let of = |boot, name| identity(boot, "pci0/block/sda", &[("device/wwid", name), ("diskseq", "9")]);
        assert!(of("first", "naa.5000c500a1b2c3d4").is_some());
        assert_eq!(of("first", "naa.5000c500a1b2c3d4"), of("second", "naa.5000c500a1b2c3d4"));
        assert_ne!(of("first", "naa.5000c500a1b2c3d4"), of("first", "naa.5000c500ffffffff"));
        assert_ne!(
            of("first", "t10.ATA QEMU HARDDISK QM00001"),
            of("second", "t10.ATA QEMU HARDDISK QM00001")
        );
    }

    #[test]
    fn a_disk_without_a_name_is_told_by_when_it_appeared() {
        let of = |boot, number| identity(boot, "pci0/block/vdb", &[("diskseq", number), ("serial", "")]);
        assert!(of("first", "9").is_some());
        assert_eq!(of("first", "9"), of("first", "9"));
        assert_ne!(of("first", "9"), of("first", "10"), "exchanged");
        assert_ne!(of("first", "9"), of("second", "9"));
        assert_eq!(identity("first", "pci0/block/vdb", &[("serial", "")]), None, "of an old kernel");
    }

    #[test]
    fn files_in_the_place_of_disks_are_not_told_apart() {
        assert_eq!(identity("first", "virtual/block/loop0", &[("diskseq", "9")]), None);
        let multipath = [("wwid", "eui.0025385b71b0c1d2"), ("diskseq", "9")];
        assert!(identity("first", "virtual/nvme-subsystem/nvme0n1", &multipath).is_some());
    }

    #[test]
    fn parts_and_volumes_are_what_their_disks_are() {
        let of = |disk: &str, name: &str, array| {
            let folder = tempfile::tempdir().unwrap();
            let below = folder.path().join("devices").join(disk);
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join("diskseq"), "9").unwrap();
            let file = if array { "md/level" } else { "dm/uuid" };
            let kernel =
                kernel(folder.path(), "first", "virtual/block/dm-0", &[(file, name), ("slaves/x", "")]);
            let slaves = folder.path().join("devices/virtual/block/dm-0/slaves");
            fs::remove_file(slaves.join("x")).unwrap();
            symlink(below, slaves.join("data")).unwrap();
            kernel.disk(8, 1)
        };
        assert!(of("pci0/block/vdb", "LVM-1", false).is_some());
        assert_ne!(of("pci0/block/vdb", "LVM-1", false), of("pci0/block/vdb", "LVM-2", false));
        assert_eq!(of("virtual/block/loop0", "LVM-1", false), None);
        assert!(of("pci0/block/vdb", "raid1", true).is_some());
        assert_eq!(of("virtual/block/loop0", "raid1", true), None);
        let part = |number| {
            let folder = tempfile::tempdir().unwrap();
            let disk = folder.path().join("devices/pci0/block/vdb");
            fs::create_dir_all(&disk).unwrap();
            fs::write(disk.join("diskseq"), "9").unwrap();
            kernel(folder.path(), "first", "pci0/block/vdb/vdb1", &[("partition", number)]).disk(8, 1)
        };
        assert!(part("1").is_some());
        assert_ne!(part("1"), part("2"));
    }
}
