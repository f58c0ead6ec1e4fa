//! Results go to standard output, everything else to standard error, and both only through here: what others have
//! named or written never commands the terminal.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

use lejepa_data::printable;

/// Prints a result and a line break.
pub(crate) fn line(result: impl Display) {
    if let Err(error) = writeln!(stdout(), "{}", printable(&result.to_string())) {
        // A reader such as `head` that has seen enough needs no message.
        if error.kind() != ErrorKind::BrokenPipe {
            message(format_args!("error: cannot write to standard output: {error}"));
        }
        std::process::exit(1);
    }
}

/// Prints what is no result and a line break. Nobody is left to tell if that fails.
pub(crate) fn message(message: impl Display) {
    let _ = writeln!(stderr(), "{}", printable(&message.to_string()));
}

/// [`message`] with the arguments of `format!`.
macro_rules! say {
    ($($argument:tt)*) => {
        $crate::output::message(format_args!($($argument)*))
    };
}
pub(crate) use say;
