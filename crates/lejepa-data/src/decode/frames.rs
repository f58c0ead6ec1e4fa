//! Files with several pictures. Which one is meant only somebody who knows the data can say, so that films and
//! stacks are refused rather than cut down to their first picture.
//!
//! The exception is the JPEG file: what lies behind its end are previews, depths and second views that the
//! format itself does not know of; the first picture is used, and counted where data is inspected.

use std::io::Cursor;

use ::image::ImageFormat;
use gif::DecodeOptions;

use super::sample_format::unhandled;
use crate::Result;

const ONE_FILE_PER_FRAME: &str = "write one file per frame, such as `magick IN -coalesce OUT-%03d.png`";

/// Refuses animations of more than one frame. What is damaged is left to the decoder.
pub(super) fn check(bytes: &[u8], format: Option<ImageFormat>) -> Result<()> {
    let frames = match format {
        Some(ImageFormat::Gif) => of_gif(bytes),
        Some(ImageFormat::Png) => of_png(bytes),
        Some(ImageFormat::WebP) => of_webp(bytes),
        _ => None,
    };
    match frames {
        Some(frames @ 2..) => Err(unhandled(format!("an animation of {frames} frames"), ONE_FILE_PER_FRAME)),
        _ => Ok(()),
    }
}

fn of_gif(bytes: &[u8]) -> Option<usize> {
    let mut options = DecodeOptions::new();
    options.skip_frame_decoding(true);
    let mut file = options.read_info(Cursor::new(bytes)).ok()?;
    let mut frames = 0;
    // A frame that is cut off is one nevertheless.
    while file.next_frame_info().is_ok_and(|frame| frame.is_some()) {
        frames += 1;
    }
    Some(frames)
}

/// The first number of the chunk that animations have before their pixels.
fn of_png(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes.get(8..)?;
    loop {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (kind, content) = behind.split_first_chunk::<4>()?;
        match kind {
            b"acTL" => return content.first_chunk().map(|count| u32::from_be_bytes(*count) as usize),
            b"IDAT" => return None,
            // A checksum follows.
            _ => rest = content.get((u32::from_be_bytes(*length) as usize).checked_add(4)?..)?,
        }
    }
}

/// The number of chunks that hold a frame.
fn of_webp(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes.get(12..)?;
    let mut frames = 0;
    while let Some((kind, behind)) = rest.split_first_chunk::<4>()
        && let Some((length, content)) = behind.split_first_chunk::<4>()
    {
        frames += usize::from(kind == b"ANMF");
        let length = u32::from_le_bytes(*length) as usize;
        rest = content.get(length.checked_next_multiple_of(2)?..).unwrap_or_default();
    }
    Some(frames)
}
