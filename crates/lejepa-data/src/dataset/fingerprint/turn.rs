//! Processes that need the hashes of the same files, such as the shares of an embedding, take turns.

use std::fs::{File, TryLockError};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

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
        let file = std::fs::create_dir_all(folder)
            .and_then(|()| File::options().create(true).append(true).open(&path));
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
