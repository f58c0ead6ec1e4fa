//! `lejepa examine-hdf5`, which no user types: this program starts itself with it, so that a damaged HDF5 file ends
//! that process and not a run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lejepa_data::{Hdf5Examiner, ReadOptions, examine_hdf5};

use crate::cache_folder;

/// Read an HDF5 file to see whether that can be survived
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    path: PathBuf,
    #[arg(long)]
    images: Option<String>,
    #[arg(long)]
    labels: Option<String>,
    #[arg(long)]
    unpack_limit: Option<u64>,
}

/// The longest time that the library may take for a few images.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let Arguments { path, images, labels, unpack_limit } = arguments;
    let (images, labels, unpack_limit) = (images.clone(), labels.clone(), *unpack_limit);
    examine_hdf5(path, &ReadOptions { images, labels, unpack_limit, ..Default::default() }).into()
}

/// From now on every HDF5 file is read by such a process first.
pub(crate) fn install() {
    // On Linux this is the running program even if its file was replaced.
    let running = PathBuf::from("/proc/self/exe");
    let program = if running.exists() { Some(running) } else { std::env::current_exe().ok() };
    if let Some(program) = program {
        let arguments = vec!["examine-hdf5".into()];
        Hdf5Examiner { program, arguments, memo: Some(cache_folder::hdf5()), patience: PATIENCE }.install();
    }
}
