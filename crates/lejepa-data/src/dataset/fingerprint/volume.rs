//! The file systems that files lie on: which one it is, and whether it can be believed.
//!
//! Believed are those that set the time of an inode's last change themselves, whoever writes, and that can be
//! told from every other: by the identity that the system gives (`f_fsid`, for most a number from when they were
//! made), their kind and their device. Not believed is what is mounted read-only, as images of file systems are:
//! another one in its place may have been made with the same inodes and times. On a network the server sets the
//! times, and neither a device nor a read-only mount says anything about it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Volume {
    /// Kind, identity and device.
    pub(super) identity: [u64; 3],
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
            ),
            _ => Self { identity: [0, 0, device], is_believed: false },
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_path: &Path, device: u64) -> Self {
        Self { identity: [0, 0, device], is_believed: true }
    }

    /// By what the system tells.
    #[cfg(target_os = "linux")]
    fn told(kind: u32, identity: u64, device: u64, is_read_only: bool) -> Self {
        /// ext2 to ext4, XFS, Btrfs, F2FS, bcachefs, ZFS, and overlays of these.
        const LOCAL: [u32; 7] =
            [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x2fc1_2fc1, 0x794c_7630];
        /// NFS, Ceph, Lustre, Spectrum Scale, BeeGFS, GFS2, OCFS2.
        const NETWORK: [u32; 7] =
            [0x6969, 0x00c3_6400, 0x0bd0_0bd0, 0x4750_4653, 0x1983_0326, 0x0116_1970, 0x7461_636f];
        let is_network = NETWORK.contains(&kind);
        // Machines that share a memo number their mounts each in its own way.
        let device = if is_network { 0 } else { device };
        let is_believed = is_network || LOCAL.contains(&kind) && identity != 0 && !is_read_only;
        Self { identity: [u64::from(kind), identity, device], is_believed }
    }
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
    fn memory_is_not_believed() {
        assert!(!Volume::of(Path::new("/proc/self/status"), 1).is_believed);
        assert!(!Volume::of(Path::new("/nowhere"), 1).is_believed);
    }
}
