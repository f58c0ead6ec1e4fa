//! The program that reads and writes films.

use lejepa_video::Ffmpeg;

/// The one that a shell would find.
pub(crate) fn installed() -> Option<Ffmpeg> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    Ffmpeg::find(std::env::split_paths(&folders))
}
