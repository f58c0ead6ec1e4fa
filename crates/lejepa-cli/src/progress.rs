//! Progress bars: on standard error, and only if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lejepa_data::Hashing;

/// A bar over `total` steps or images.
pub(crate) fn bar(total: u64) -> ProgressBar {
    // The message comes last: it is cut off where the terminal ends.
    let template = "{bar:16} {pos}/{len}  {eta} left  {wide_msg}";
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// How far the files of a set are read. Those that were read before take no time worth a bar.
pub(crate) fn hashing(bar: &mut ProgressBar, set: &str, Hashing { done, total }: Hashing) {
    const WORTH_A_BAR: u64 = 1 << 30;
    if total < WORTH_A_BAR {
        return;
    }
    if bar.is_hidden() || bar.length() != Some(total >> 20) {
        bar.finish_and_clear();
        *bar = self::bar(total >> 20);
        bar.set_message(format!("{set}: MB of files, whose content decides what is known already"));
    }
    bar.set_position(done >> 20);
    if done == total {
        bar.finish_and_clear();
    }
}

/// Work of unknown length.
pub(crate) fn spinner() -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    // The prefix is the share that is done, where that is known.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {wide_msg}") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}

/// `7.3s`, `2m05s` or `3h07m`.
pub(crate) fn duration(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 60. {
        format!("{seconds:.1}s")
    } else if seconds < 3600. {
        format!("{}m{:02.0}s", seconds as u64 / 60, (seconds % 60.).floor())
    } else {
        format!("{}h{:02}m", seconds as u64 / 3600, seconds as u64 % 3600 / 60)
    }
}
