//! Ctrl-C, and what batch systems, containers and closed terminals send instead of it, ask a long command to
//! save what it has and stop.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// The last signal that came; 0 before that.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

const REFUSED: &str = "cannot listen for signals";

/// From now on the first signal is a request. A Ctrl-C after it ends the program at once; other signals do
/// not, for those who close a session send some of them several times.
pub(crate) fn listen() -> anyhow::Result<()> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Under nohup a closed terminal is none of a command's business.
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
        if signal == SIGINT {
            // Before the flag is raised: the first one finds nothing asked yet.
            flag::register_conditional_shutdown(signal, code_of(signal), Arc::clone(&asked))
                .context(REFUSED)?;
        }
        flag::register(signal, Arc::clone(&asked)).context(REFUSED)?;
        flag::register_usize(signal, Arc::clone(&SIGNAL), signal.unsigned_abs() as usize).context(REFUSED)?;
    }
    Ok(())
}

/// Whether somebody asked the command to stop.
pub(crate) fn requested() -> bool {
    SIGNAL.load(Ordering::SeqCst) != 0
}

/// How a command exits that was asked to stop: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
pub(crate) fn exit_code() -> ExitCode {
    let signal = match SIGNAL.load(Ordering::SeqCst) {
        0 => SIGINT,
        signal => signal as i32,
    };
    ExitCode::from(code_of(signal) as u8)
}

/// What shells make of a signal.
fn code_of(signal: i32) -> i32 {
    128 + signal
}

/// Whether whoever started the program wants a signal to be ignored; where that cannot be told, no.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
