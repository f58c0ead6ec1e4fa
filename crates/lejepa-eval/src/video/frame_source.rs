//! The frames of a clip, one after the other, whatever the clip is.
//!
//! | what | how frames are named | a frame that cannot be read |
//! |---|---|---|
//! | folder of images, in the order of their names | by their files | is an error, and the next frame follows |
//! | GIF, animated PNG or WebP | `00000`, `00001`, ... | is an error, and the last item |
//! | anything that `ffmpeg` reads | `00000`, `00001`, ... | is an error, and the last item |
//!
//! Only the frame that was asked for is in memory.

use std::io::Read;
use std::path::Path;

use image::ImageFormat;

use super::animation::Animation;
use super::frame_folder::FrameFolder;
use super::{Ffmpeg, Frame};
use crate::{Error, Result};

/// Reads frames one after the other.
pub struct FrameSource {
    frames: Box<dyn Iterator<Item = Result<Frame>>>,
    length: Option<usize>,
}

impl FrameSource {
    /// Opens a folder or a file, which is recognised by its content.
    pub fn open(path: &Path, ffmpeg: Option<&Ffmpeg>) -> Result<Self> {
        if path.is_dir() {
            let frames = FrameFolder::open(path)?;
            return Ok(Self { length: Some(frames.len()), frames: Box::new(frames) });
        }
        let frames: Box<dyn Iterator<Item = Result<Frame>>> = match format(path)? {
            Some(format) => match Animation::open(path, format)? {
                Some(animation) => Box::new(animation),
                None => Box::new(FrameFolder::one(path)),
            },
            None => {
                let ffmpeg = ffmpeg.ok_or_else(|| Error::NoFfmpeg { path: path.into() })?;
                Box::new(ffmpeg.frames(path)?)
            }
        };
        Ok(Self { frames, length: None })
    }

    /// How many frames there are, where that is known before they are read.
    pub fn length(&self) -> Option<usize> {
        self.length
    }
}

impl Iterator for FrameSource {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        self.frames.next()
    }
}

/// The format of an image file; nothing for other files.
fn format(path: &Path) -> Result<Option<ImageFormat>> {
    let failed = |source| lejepa_data::Error::Io { action: "read", path: path.into(), source };
    match std::fs::metadata(path) {
        // A pipe would be waited for.
        Ok(metadata) if !metadata.is_file() => {
            return Err(Error::NotAVideo { path: path.into() });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(lejepa_data::Error::NotFound { path: path.into() }.into());
        }
        metadata => metadata.map_err(failed)?,
    };
    let mut start = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(SIGNATURE).read_to_end(&mut start))
        .map_err(failed)?;
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let known = |format: &ImageFormat| [Bmp, Gif, Jpeg, Png, Tiff, WebP].contains(format);
    Ok(image::guess_format(&start).ok().filter(known))
}

/// Bytes that tell the format of a file.
const SIGNATURE: u64 = 32;
