//! How many files the process may have open; every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are none of the connections': the encoder, the runtime's and the listener's own.
const OTHERS: usize = 32;

/// Raises the limit to what the system allows.
pub(crate) fn raise() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where that is refused the old one holds, and `most_connections` goes by it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// As many connections as were asked for, or as many as there can be.
pub(crate) fn most_connections(asked: usize) -> usize {
    match getrlimit(Resource::Nofile).current {
        Some(files) => asked.min(fitting(usize::try_from(files).unwrap_or(usize::MAX))),
        None => asked,
    }
}

fn fitting(files: usize) -> usize {
    files.saturating_sub(OTHERS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_the_system_allows_and_connections_leave_room_for_other_files() {
        raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
        assert_eq!((fitting(64), fitting(1024), fitting(10)), (32, 992, 1));
        assert_eq!(most_connections(1), 1);
    }
}
