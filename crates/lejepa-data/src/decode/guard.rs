//! Decoders have faults of their own: a panic inside one is a broken image, not the end of a thread or a run.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::{Error, Result};

thread_local! {
    /// Whether somebody takes a panic of this thread for an error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder; a panic inside it is an error, and is not printed.
pub(super) fn guarded<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    silence_guarded_threads();
    let before = IS_GUARDED.replace(true);
    // What was half done is dropped with the decoder.
    let result = catch_unwind(AssertUnwindSafe(decode));
    IS_GUARDED.set(before);
    result.unwrap_or_else(|panic| Err(Error::DecoderPanic { message: message(&*panic) }))
}

/// Puts a hook before the one that prints panics. A program that sets its own later hears of them all.
fn silence_guarded_threads() {
    static DONE: Once = Once::new();
    // Nobody may touch the hook while a panic is on its way.
    if DONE.is_completed() || std::thread::panicking() {
        return;
    }
    DONE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.try_with(Cell::get).unwrap_or(false) {
                usual(panic);
            }
        }));
    });
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::panic)]
    fn broken_decoder(number: usize) -> Result<()> {
        guarded(|| panic!("a fault at {number}"))
    }

    #[test]
    fn a_panic_of_a_decoder_is_an_error_in_every_thread_and_is_not_printed() {
        const AGAIN: &str = "LEJEPA_TEST_PANIC";
        if std::env::var_os(AGAIN).is_some() {
            std::thread::scope(|scope| {
                for number in 0..4 {
                    scope.spawn(move || {
                        let message = broken_decoder(number).unwrap_err().to_string();
                        assert_eq!(
                            message,
                            format!("the decoder has a fault of its own: a fault at {number}")
                        );
                        assert_eq!(guarded(|| Ok(number)).unwrap(), number, "the thread goes on");
                    });
                }
            });
            return;
        }
        let name = "a_panic_of_a_decoder_is_an_error_in_every_thread_and_is_not_printed";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture", name])
            .env(AGAIN, "1")
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }

    #[test]
    fn other_panics_are_printed_as_ever() {
        let _ = broken_decoder(0);
        assert!(!IS_GUARDED.get());
        let caught =
            std::panic::catch_unwind(|| guarded(|| Ok(())).and_then(|()| broken_decoder(1)).is_err());
        assert!(caught.unwrap() && !IS_GUARDED.get());
    }
}
