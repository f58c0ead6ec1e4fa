//! Ctrl-C, and what batch systems, containers and closed terminals send instead of it, ask a long command to
//! save what it has and stop.

use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

/// The last signal that came; 0 before that.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// A Ctrl-C so soon after the first request is the same one: `timeout` and some terminals send it to the program and to
/// its group.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// From now on the first signal is a request. A Ctrl-C some time after it ends the program at once; other signals do
/// not, for those who close a session send some of them several times.
pub(crate) fn listen() -> anyhow::Result<()> {
    // Under nohup a closed terminal is none of a command's business.
    let heard =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal));
    let mut signals = Signals::new(heard).context("cannot listen for signals")?;
    let listener = move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            SIGNAL.store(signal, Ordering::SeqCst);
            match first {
                None => first = Some(Instant::now()),
                Some(first) if signal == SIGINT && first.elapsed() > SAME_REQUEST => {
                    low_level::exit(code_of(signal))
                }
                Some(_) => {}
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(listener)
        .context("cannot listen for signals")?;
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
        signal => signal,
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
