//! Files that a user has named and that are about to be written.

use clap::Args;
use lejepa_data::Overwrite;

/// What every command that writes where it is told to takes.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TargetArguments {
    /// Replace files that are there already and are not of the same command
    #[arg(long)]
    overwrite: bool,
}

/// A drawing that tells what made it.
pub(crate) fn marked_svg(mark: &str, svg: &str) -> String {
    // Behind the first tag: some readers want that at the beginning.
    let (tag, rest) = svg.split_once('>').unwrap_or((svg, ""));
    format!("{tag}>\n<!-- {mark} -->{rest}")
}

impl TargetArguments {
    pub(crate) fn overwrite(self) -> Overwrite {
        if self.overwrite { Overwrite::Always } else { Overwrite::Never }
    }
}
