//! `lejepa data`

mod inspect;
mod verify;
mod views;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use lejepa_data::{BrokenImage, Progress, Split, printable_name};

use crate::{output, progress};

/// Look at data before training on it
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Inspect(inspect::Arguments),
    Verify(verify::Arguments),
    Views(views::Arguments),
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Inspect(arguments) => inspect::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Views(arguments) => views::run(arguments),
    }
}

/// Runs a pass over a dataset with a progress bar.
fn with_bar<T>(pass: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> T) -> T {
    let bar = progress::bar(0);
    let passed = pass(&|progress| match progress {
        Progress::Split(split, images) => {
            bar.inc_length(images as u64);
            bar.set_message(format!("{} images", split.name()));
        }
        Progress::Image => bar.inc(1),
    });
    bar.finish_and_clear();
    passed
}

/// Says what of readable images is not in their pixels.
fn print_left_out(split: Split, [transparent, several_pictures, cut]: [usize; 3]) {
    for (count, what) in [
        (transparent, "have transparency, which is left out"),
        (several_pictures, "hold several pictures (MPO), of which the first is used"),
        (cut, "are cut off or damaged: what is missing is grey"),
    ] {
        if count > 0 {
            output::line(format_args!("\nnote: {count} {} images {what}", split.name()));
        }
    }
}

fn print_unreadable(images: &[BrokenImage]) {
    for BrokenImage { name, reason } in images {
        output::line(format_args!("{}: {}", printable_name(name), printable_name(reason)));
    }
}
