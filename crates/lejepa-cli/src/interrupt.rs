//! Ctrl-C asks a long command to save what it has and stop.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit code of a command that Ctrl-C has stopped.
pub(crate) const EXIT_CODE: u8 = 130;

/// From now on the first Ctrl-C is a request, the second one ends the program at once.
pub(crate) fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(EXIT_CODE));
        }
    })
    .context("cannot listen for Ctrl-C")
}

/// Whether Ctrl-C was pressed.
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}
