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
pub struct FrameSource(Box<dyn Iterator<Item = Result<Frame>>>);

impl FrameSource {
    /// Opens a folder or a file, which is recognised by its content.
    pub fn open(path: &Path, ffmpeg: Option<&Ffmpeg>) -> Result<Self> {
        if path.is_dir() {
            return Ok(Self(Box::new(FrameFolder::open(path)?)));
        }
        let Some(format) = format(path)? else {
            let ffmpeg = ffmpeg.ok_or_else(|| Error::NoFfmpeg { path: path.into() })?;
            return Ok(Self(Box::new(ffmpeg.frames(path)?)));
        };
        Ok(match Animation::open(path, format)? {
            Some(animation) => Self(Box::new(animation)),
            None => Self(Box::new(FrameFolder::one(path))),
        })
    }
}

impl Iterator for FrameSource {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    /// The number of frames where it is known before they are read.
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
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
    lejepa_data::regular_file::open(path)
        .and_then(|file| file.take(SIGNATURE).read_to_end(&mut start))
        .map_err(failed)?;
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let known = |format: &ImageFormat| [Bmp, Gif, Jpeg, Png, Tiff, WebP].contains(format);
    Ok(image::guess_format(&start).ok().filter(known))
}

/// Bytes that tell the format of a file.
const SIGNATURE: u64 = 32;

#[cfg(test)]
mod tests {
    use lejepa_data::Image;

    use super::*;

    #[test]
    fn frames_are_read_when_they_are_asked_for_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = |number: usize| folder.path().join(format!("{number}.png"));
        for number in 0..5 {
            Image::from_pixels(1, 1, 1, vec![7]).unwrap().write_png(&path(number)).unwrap();
        }
        let mut frames = FrameSource::open(folder.path(), None).unwrap();
        assert_eq!(frames.size_hint(), (5, Some(5)));
        assert!(frames.next().unwrap().is_ok());
        // What was not asked for yet was not read.
        std::fs::remove_file(path(1)).unwrap();
        std::fs::remove_file(path(4)).unwrap();
        let readable: Vec<bool> = frames.map(|frame| frame.is_ok()).collect();
        assert_eq!(readable, [false, true, true, false]);
    }

    #[test]
    fn a_file_is_recognised_by_its_content_and_a_still_image_is_a_clip_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.mp4");
        Image::from_pixels(1, 1, 3, vec![7; 3]).unwrap().write_png(&path).unwrap();
        assert_eq!(FrameSource::open(&path, None).unwrap().count(), 1);
        std::fs::write(&path, b"\0\0\0\x18ftypisom").unwrap();
        assert!(matches!(FrameSource::open(&path, None), Err(Error::NoFfmpeg { .. })));
        std::fs::write(&path, b"").unwrap();
        assert!(matches!(FrameSource::open(&path, None), Err(Error::NoFfmpeg { .. })));
    }
}
