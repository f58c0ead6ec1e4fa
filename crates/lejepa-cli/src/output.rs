//! Results go to standard output, and only through here; everything else goes to standard error.

use std::fmt::Display;

/// Prints a result and a line break.
#[allow(clippy::print_stdout)]
pub(crate) fn line(result: impl Display) {
    println!("{result}");
}
