//! Results go to standard output, and only through here; everything else goes to standard error.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stdout};

/// Prints a result and a line break.
pub(crate) fn line(result: impl Display) {
    if let Err(error) = writeln!(stdout(), "{result}") {
        // A reader such as `head` that has seen enough needs no message.
        if error.kind() != ErrorKind::BrokenPipe {
            eprintln!("error: cannot write to standard output: {error}");
        }
        std::process::exit(1);
    }
}
