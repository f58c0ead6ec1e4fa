//! Memory that the process may take for a while, kept by the system: what asks for more gets an error.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{Error, Result};

/// Does something with so many bytes more than the process has, if there is a limit.
pub(crate) fn within_memory<T>(
    limit: Option<u64>,
    name: &str,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let held = limit.and_then(MemoryLimit::set);
    let result = work();
    drop(held);
    result.map_err(|error| match limit {
        Some(limit) if error.is_lack_of_memory() => {
            Error::MemoryLimit { name: name.into(), limit, source: Box::new(error) }
        }
        _ => error,
    })
}

/// One at a time: the limit is that of the whole process.
static SET: Mutex<()> = Mutex::new(());

/// Holds until it is dropped.
struct MemoryLimit {
    before: Rlimit,
    _set: MutexGuard<'static, ()>,
}

impl MemoryLimit {
    /// So many bytes more than the process has now. Nothing where the system does not tell or has a lower limit.
    fn set(more: u64) -> Option<Self> {
        let set = SET.lock().unwrap_or_else(PoisonError::into_inner);
        let before = getrlimit(Resource::Data);
        let current = present()?.saturating_add(more);
        if before.current.is_some_and(|limit| limit <= current) {
            return None;
        }
        setrlimit(Resource::Data, Rlimit { current: Some(current), maximum: before.maximum }).ok()?;
        Some(Self { before, _set: set })
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A limit may always be raised back to where it was.
        let _ = setrlimit(Resource::Data, self.before);
    }
}

/// Bytes that the process has of what is limited.
fn present() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.saturating_mul(1024))
}
