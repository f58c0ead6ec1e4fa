//! The file systems that files lie on: which one it is, and whether it can be believed.
//!
//! Believed are those that set the time of an inode's last change themselves, whoever writes, and that can be
//! told from every other: by the identity that the system gives (`f_fsid`, for most a number from when they were
//! made), their kind, their device and the disk below them ([`Kernel`]). Not believed is what is mounted
//! read-only, as images of file systems are: another one in its place may have been made with the same inodes and
//! times. An overlay is not believed, because its layers may be such images, and it does not say where they are. On a
//! network the server sets the times, and neither a device nor a read-only mount says anything about it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

#[cfg(target_os = "linux")]
use super::disk::Kernel;

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Volume {
    /// Kind, identity, device and disk.
    pub(super) identity: [u64; 4],
    pub(super) is_believed: bool,
}

/// Those that were met, by device: asking costs a round trip on a network.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    by_device: Mutex<HashMap<u64, Volume>>,
}

impl Volumes {
    /// That of a file on a device.
    pub(super) fn of(&self, path: &Path, device: u64) -> Volume {
        let known = || self.by_device.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(volume) = known().get(&device) {
            return *volume;
        }
        let volume = Volume::of(path, device);
        known().insert(device, volume);
        volume
    }
}

impl Volume {
    #[cfg(target_os = "linux")]
    fn of(path: &Path, device: u64) -> Self {
        use rustix::fs::{StatVfsMountFlags, statfs, statvfs};
        match (statfs(path), statvfs(path)) {
            // The field is wider on some machines, the numbers are not.
            (Ok(system), Ok(mount)) => Self::told(
                system.f_type as u32,
                mount.f_fsid,
                device,
                mount.f_flag.contains(StatVfsMountFlags::RDONLY),
            )
            .on_disk(|| disk(path, device)),
            _ => Self { identity: [0, 0, device, 0], is_believed: false },
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_path: &Path, device: u64) -> Self {
        Self { identity: [0, 0, device, 0], is_believed: true }
    }

    /// By what the system tells.
    #[cfg(target_os = "linux")]
    fn told(kind: u32, identity: u64, device: u64, is_read_only: bool) -> Self {
        /// ext2 to ext4, XFS, Btrfs, F2FS, bcachefs, ZFS.
        const LOCAL: [u32; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, ZFS];
        /// NFS, Ceph, Lustre, Spectrum Scale, BeeGFS, GFS2, OCFS2.
        const NETWORK: [u32; 7] =
            [0x6969, 0x00c3_6400, 0x0bd0_0bd0, 0x4750_4653, 0x1983_0326, 0x0116_1970, 0x7461_636f];
        let is_network = NETWORK.contains(&kind);
        // Machines that share a memo number their mounts each in its own way.
        let device = if is_network { 0 } else { device };
        let is_believed = is_network || LOCAL.contains(&kind) && identity != 0 && !is_read_only;
        Self { identity: [u64::from(kind), identity, device, 0], is_believed }
    }

    /// The same with its disk, which makes the difference where there is one.
    #[cfg(target_os = "linux")]
    fn on_disk(mut self, disk: impl FnOnce() -> Option<u64>) -> Self {
        let [kind, _, device, _] = self.identity;
        // Those of ZFS are below the pool, whose checksums nobody forges.
        if self.is_believed && device != 0 && kind != u64::from(ZFS) {
            match disk() {
                Some(disk) => self.identity[3] = disk,
                None => self.is_believed = false,
            }
        }
        self
    }
}

#[cfg(target_os = "linux")]
const ZFS: u32 = 0x2fc1_2fc1;

/// What tells the disk that a file lies on from every other.
#[cfg(target_os = "linux")]
fn disk(path: &Path, device: u64) -> Option<u64> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, major, minor, statx};
    let kernel = Kernel::running();
    if major(device) != 0 {
        return kernel.disk(major(device), minor(device));
    }
    // Btrfs and others that span disks have a number of their own: their mount names the disks.
    let mount = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    StatxFlags::from_bits_retain(mount.stx_mask).contains(StatxFlags::MNT_ID).then_some(())?;
    let mounts = crate::regular_file::read_to_string(Path::new("/proc/self/mountinfo")).ok()?;
    kernel.source(source_of(&mounts, mount.stx_mnt_id)?)
}

/// The source of a mount in `/proc/self/mountinfo`: the second field after a dash.
#[cfg(target_os = "linux")]
fn source_of(mounts: &str, mount: u64) -> Option<&str> {
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(&mount.to_string()))?;
    line.split_once(" - ")?.1.split(' ').nth(1)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_believed_if_it_sets_times_itself_and_is_like_no_other() {
        const EXT4: u32 = 0xef53;
        const NFS: u32 = 0x6969;
        let is_believed =
            |kind, identity, is_read_only| Volume::told(kind, identity, 1, is_read_only).is_believed;
        assert!(is_believed(EXT4, 7, false));
        assert!(!is_believed(EXT4, 7, true), "an image of one, perhaps");
        assert!(!is_believed(EXT4, 0, false), "without identity");
        assert!(is_believed(NFS, 0, true));
        for (name, kind) in [
            ("overlay", 0x794c_7630),
            ("tmpfs", 0x0102_1994),
            ("vfat", 0x4d44),
            ("iso9660", 0x9660),
            ("squashfs", 0x7371_7368),
            ("erofs", 0xe0f5_e1e2),
            ("fuse", 0x6573_5546),
        ] {
            assert!(!is_believed(kind, 7, false), "{name}");
        }
        assert_ne!(Volume::told(EXT4, 7, 1, false), Volume::told(EXT4, 8, 1, false));
        assert_ne!(Volume::told(EXT4, 7, 1, false), Volume::told(EXT4, 7, 2, false));
        assert_eq!(Volume::told(NFS, 7, 1, false), Volume::told(NFS, 7, 2, false));
    }

    #[test]
    fn a_file_system_is_believed_if_its_disk_can_be_told_from_others() {
        let local = Volume::told(0xef53, 7, 1, false);
        assert!(local.on_disk(|| Some(1)).is_believed);
        assert_ne!(local.on_disk(|| Some(1)), local.on_disk(|| Some(2)));
        assert!(!local.on_disk(|| None).is_believed, "a loop device");
        assert!(Volume::told(0x6969, 0, 1, true).on_disk(|| None).is_believed, "on a network");
        assert!(Volume::told(ZFS, 7, 1, false).on_disk(|| None).is_believed);
    }

    #[test]
    fn the_disks_of_a_file_system_are_those_of_its_mount() {
        let mounts = "27 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      28 27 0:40 /home /home rw,relatime shared:1 master:2 - btrfs /dev/mapper/data rw\n";
        assert_eq!(source_of(mounts, 28), Some("/dev/mapper/data"));
        assert_eq!(source_of(mounts, 2), None);
    }

    #[test]
    fn memory_is_not_believed() {
        assert!(!Volume::of(Path::new("/proc/self/status"), 1).is_believed);
        assert!(!Volume::of(Path::new("/nowhere"), 1).is_believed);
    }
}
