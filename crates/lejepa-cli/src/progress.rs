//! Progress on standard error: a bar on a terminal, elsewhere a line now and then.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use lejepa_data::{Hashing, printable};

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// A bar over `total` steps or images.
pub(crate) fn bar(total: u64) -> ProgressBar {
    // The message comes last: it is cut off where the terminal ends.
    let template = match stderr().is_terminal() {
        true => "{bar:16} {pos}/{len}  {eta} left  {wide_msg}",
        false => "{pos}/{len}  {eta} left  {msg}",
    };
    let bar = shown(ProgressBar::new(total));
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
        let message = format!("{set}: MB of files, whose content decides what is known already");
        bar.set_message(printable(&message).into_owned());
    }
    bar.set_position(done >> 20);
    if done == total {
        bar.finish_and_clear();
    }
}

/// Work of unknown length.
pub(crate) fn spinner() -> ProgressBar {
    let spinner = shown(ProgressBar::new_spinner());
    // The prefix is the share that is done, where that is known.
    let template = match stderr().is_terminal() {
        true => "{spinner} {prefix} {wide_msg}",
        false => "{elapsed} {prefix} {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}

fn shown(bar: ProgressBar) -> ProgressBar {
    if !stderr().is_terminal() {
        LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(Lines)));
    }
    bar
}

/// Writes what would be drawn as a line, and most of it not at all.
#[derive(Debug)]
struct Lines;

/// Bars follow each other, and the lines of all of them are rare.
static LAST_LINE: Mutex<Option<Instant>> = Mutex::new(None);

impl Lines {
    fn line(&self, text: &str) -> std::io::Result<()> {
        let mut last = LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner);
        if text.trim().is_empty() || last.is_some_and(|last| last.elapsed() < LINE_EVERY) {
            return Ok(());
        }
        *last = Some(Instant::now());
        writeln!(stderr(), "{}", text.trim())
    }
}

impl TermLike for Lines {
    fn width(&self) -> u16 {
        200
    }

    fn write_line(&self, text: &str) -> std::io::Result<()> {
        self.line(text)
    }

    fn write_str(&self, text: &str) -> std::io::Result<()> {
        self.line(text)
    }

    fn move_cursor_up(&self, _lines: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _lines: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _columns: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _columns: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn clear_line(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> std::io::Result<()> {
        Ok(())
    }
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
