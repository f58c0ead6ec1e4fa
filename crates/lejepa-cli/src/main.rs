//! The `lejepa` command line: parses, dispatches, prints.

// Messages go through `output`.
#![warn(clippy::print_stderr)]

mod allocator;
mod cache_folder;
mod command_line;
mod commands;
mod encoder_arguments;
mod encoder_file;
mod failure;
mod ffmpeg;
mod hub_file;
mod interrupt;
mod output;
mod picture_arguments;
mod progress;
mod recipe;
mod run_folder;
mod selection;
mod source;
mod table;
mod targets;
mod untrained;
mod written_encoder;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Self-supervised vision encoders: train on your own images, export to ONNX, evaluate.
#[derive(Debug, Parser)]
#[command(name = "lejepa", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Train(commands::train::Arguments),
    Import(commands::import::Arguments),
    Sweep(commands::sweep::Arguments),
    Runs(commands::runs::Arguments),
    Select(commands::select::Arguments),
    Export(commands::export::Arguments),
    Inspect(commands::inspect::Arguments),
    Verify(commands::verify::Arguments),
    Embed(commands::embed::Arguments),
    Eval(commands::eval::Arguments),
    Cache(commands::cache::Arguments),
    Pca(commands::pca::Arguments),
    Attention(commands::attention::Arguments),
    Segment(commands::segment::Arguments),
    Gauge(commands::gauge::Arguments),
    #[command(subcommand)]
    Data(commands::data::Command),
    Doctor(commands::doctor::Arguments),
    #[cfg(feature = "hdf5")]
    #[command(hide = true, name = "examine-hdf5")]
    ExamineHdf5(commands::examine_hdf5::Arguments),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    #[cfg(feature = "hdf5")]
    if !matches!(command, Command::ExamineHdf5(_)) {
        commands::examine_hdf5::install();
    }
    if matches!(command, Command::Train(_) | Command::Sweep(_)) {
        allocator::keep_memory();
    }
    let result = match &command {
        Command::Train(arguments) => commands::train::run(arguments),
        Command::Import(arguments) => commands::import::run(arguments),
        Command::Sweep(arguments) => commands::sweep::run(arguments),
        Command::Runs(arguments) => commands::runs::run(arguments),
        Command::Select(arguments) => commands::select::run(arguments),
        Command::Export(arguments) => commands::export::run(arguments),
        Command::Inspect(arguments) => commands::inspect::run(arguments),
        Command::Verify(arguments) => commands::verify::run(arguments),
        Command::Embed(arguments) => commands::embed::run(arguments),
        Command::Eval(arguments) => commands::eval::run(arguments),
        Command::Cache(arguments) => commands::cache::run(arguments),
        Command::Pca(arguments) => commands::pca::run(arguments),
        Command::Attention(arguments) => commands::attention::run(arguments),
        Command::Segment(arguments) => commands::segment::run(arguments),
        Command::Gauge(arguments) => commands::gauge::run(arguments),
        Command::Data(command) => commands::data::run(command),
        Command::Doctor(arguments) => commands::doctor::run(arguments),
        #[cfg(feature = "hdf5")]
        Command::ExamineHdf5(arguments) => return commands::examine_hdf5::run(arguments),
    };
    result.unwrap_or_else(|error| failure::report(&error))
}
