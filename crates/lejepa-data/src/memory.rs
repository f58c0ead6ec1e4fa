//! How much memory may still be taken before the system kills the program.

use std::path::{Path, PathBuf};

/// Bytes that are available: the machine's, or those of a container where there are fewer. None where the
/// system does not tell.
pub fn available_memory() -> Option<u64> {
    let machine = kilobytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:");
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let container = control_groups(&groups).iter().filter_map(|folder| left(folder)).min();
    [machine, container].into_iter().flatten().min()
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// The folders of the groups that this program is in, and of those around them.
fn control_groups(text: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                Path::new("/sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        let own = root.join(path.trim_start_matches('/'));
        folders.extend(own.ancestors().take_while(|folder| folder.starts_with(root)).map(PathBuf::from));
    }
    folders
}

/// What a group may still take; files that it read count as free.
fn left(folder: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let statistics = read("memory.stat").unwrap_or_default();
    let files = |name: &str| {
        let line = statistics.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    let files = files("inactive_file ").or_else(|| files("total_inactive_file ")).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_those_around_it_are_asked() {
        let folders = control_groups("12:cpu,cpuacct:/a\n7:memory:/docker/x\n0::/user/me\n");
        let expected = ["/memory/docker/x", "/memory/docker", "/memory", "/user/me", "/user", ""];
        let expected = expected.map(|folder| PathBuf::from(format!("/sys/fs/cgroup{folder}")));
        assert_eq!(folders, expected);
    }

    #[test]
    fn files_that_were_read_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(left(folder.path()), None);
        write("memory.max", "max\n");
        write("memory.current", "900\n");
        assert_eq!(left(folder.path()), None, "without limit");
        write("memory.max", "1000\n");
        write("memory.stat", "anon 500\ninactive_file 300\n");
        assert_eq!(left(folder.path()), Some(400));
        assert_eq!(kilobytes("MemFree: 1 kB\nMemAvailable:    20 kB\n", "MemAvailable:"), Some(20480));
    }
}
