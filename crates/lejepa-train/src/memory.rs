//! How much memory this process has needed, where the system tells (Linux).

/// The peak of resident memory in bytes, since the start or the last [`reset_peak`].
pub(crate) fn peak() -> Option<u64> {
    status("VmHWM:")
}

/// The resident memory in bytes, as it is.
pub(crate) fn now() -> Option<u64> {
    status("VmRSS:")
}

fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Forgets the peak; without effect where the system cannot.
pub(crate) fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
