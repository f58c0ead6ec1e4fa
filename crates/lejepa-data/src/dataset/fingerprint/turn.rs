//! Processes that need the hashes of the same files, such as the shares of an embedding, take turns.

use std::fs::{File, TryLockError};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use crate::own_file::open_own_file;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// The right to read the files of a memo, as long as it lives; or none, where locks are not to be had.
pub(super) struct Turn {
    _lock: Option<File>,
}

impl Turn {
    /// Waits until no other process has it. Nothing if the caller stops waiting.
    pub(super) fn wait_for(memo: &Path, observe: &mut dyn FnMut() -> ControlFlow<()>) -> Option<Self> {
        let path = memo.with_extension("lock");
        let folder = path.parent().unwrap_or(Path::new("."));
        // What is not to be had costs time alone.
        let _ = std::fs::create_dir_all(folder);
        let file = open_own_file(&path, "lock", File::options().create(true).append(true));
        let Ok(file) = file else { return Some(Self { _lock: None }) };
        loop {
            match file.try_lock() {
                Ok(()) => return Some(Self { _lock: Some(file) }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(_)) => return Some(Self { _lock: None }),
            }
            if observe().is_break() {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_in_its_place_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let memo = folder.path().join("files.hashes");
        crate::own_file::with_each_trap(&folder.path().join("files.lock"), |trap| {
            let mut never = || -> ControlFlow<()> { unreachable!("nobody has it") };
            assert!(Turn::wait_for(&memo, &mut never).unwrap()._lock.is_none(), "{trap}");
        });
    }

    #[test]
    fn a_second_one_waits_until_the_first_is_done_or_nobody_wants_it_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let memo = folder.path().join("deep/files.hashes");
        let mut never = || -> ControlFlow<()> { unreachable!("nobody has it") };
        let first = Turn::wait_for(&memo, &mut never).unwrap();
        assert!(Turn::wait_for(&memo, &mut || ControlFlow::Break(())).is_none());
        let mut first = Some(first);
        let mut give_up_the_first = || {
            first = None;
            ControlFlow::Continue(())
        };
        assert!(Turn::wait_for(&memo, &mut give_up_the_first).is_some());
    }
}
