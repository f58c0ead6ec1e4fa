//! What the pixels of a file are made of, and what of that is handled: 8 bits, grey or colour, one picture.
//!
//! Deeper values need a stretch that only somebody who knows the data can choose, and bands and pages a
//! choice: they are refused rather than clipped or dropped. Transparency is dropped, and counted where data
//! is inspected.

use std::io::Cursor;

use ::image::ColorType;
use tiff::decoder::Decoder;
use tiff::tags::Tag;

use super::tiff_jpeg;
use crate::{Error, Result};

const STRETCH: &str =
    "convert it with a stretch of your choice, such as `magick IN -contrast-stretch 0.1% -depth 8 OUT.png`";
const CHOOSE_BANDS: &str = "choose one or three of them, such as `gdal_translate -b 3 -b 2 -b 1 IN OUT.tif`";
const ONE_FILE_PER_PAGE: &str = "write one file per page, such as `magick IN OUT-%03d.png`";
const WHOLE_PICTURE: &str =
    "write the picture itself as a file, such as with `tifffile.imread` and `imwrite`";
const PLAIN_TIFF: &str = "convert it to plain TIFF, such as with `gdal_translate -co BIGTIFF=NO IN OUT.tif`";
const ONE_FILE_PER_SLICE: &str = "write one file per slice, such as with `tifffile.imread` and `imwrite`";

/// Refuses values that do not fit into 8 bits.
pub(super) fn check(colour: ColorType) -> Result<()> {
    let found = match colour {
        ColorType::L8 | ColorType::La8 | ColorType::Rgb8 | ColorType::Rgba8 => return Ok(()),
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => "16 bits per value",
        ColorType::Rgb32F | ColorType::Rgba32F => "floating-point values",
        _ => "values of another kind",
    };
    Err(unhandled(found, STRETCH))
}

/// TIFF's ways to keep values, by their numbers in the format.
const UNSIGNED: u16 = 1;
const SIGNED: u16 = 2;
const FLOAT: u16 = 3;
/// Extra samples that are transparency.
const ALPHAS: [u16; 2] = [1, 2];
/// Photometric interpretations with one and with four samples; the others have three.
const ONE_SAMPLE: [u16; 4] = [0, 1, 3, 4];
const CMYK: u16 = 5;
/// The number of slices of a volume that is kept as one picture.
const IMAGE_DEPTH: Tag = Tag::Unknown(32997);
/// A picture that is a smaller copy of another one.
const REDUCED: u32 = 1;

/// Names a format that is known and not read; what is of no known one is left to the decoder.
pub(super) fn check_unknown(bytes: &[u8]) -> Result<()> {
    /// The first bytes of the TIFF format for more than 4 GB, in either order of bytes.
    const BIG_TIFF: [&[u8]; 2] = [b"II\x2b\0", b"MM\0\x2b"];
    match BIG_TIFF.iter().any(|start| bytes.starts_with(start)) {
        true => Err(unhandled("BigTIFF, which is not read", PLAIN_TIFF)),
        false => Ok(()),
    }
}

/// Nobody counts more pages, thumbnails and copies; and each may have 65,535 entries, which they may share.
const MOST_PAGES: usize = 1000;

/// Refuses TIFF files with deep values, with bands besides grey or colour, and with several pages. What is
/// damaged is left to the decoder, which says more.
pub(super) fn check_tiff(bytes: &[u8]) -> Result<()> {
    let Ok(mut file) = Decoder::new(Cursor::new(bytes)) else { return Ok(()) };
    let mut numbers = |tag| file.find_tag_unsigned_vec::<u16>(tag).ok().flatten().unwrap_or_default();
    let bits = numbers(Tag::BitsPerSample).into_iter().max().unwrap_or(1);
    let kind = numbers(Tag::SampleFormat).into_iter().max().unwrap_or(UNSIGNED);
    let samples = usize::from(numbers(Tag::SamplesPerPixel).first().copied().unwrap_or(1));
    let extra = numbers(Tag::ExtraSamples);
    let base = match numbers(Tag::PhotometricInterpretation).first() {
        Some(photometric) if ONE_SAMPLE.contains(photometric) => 1,
        Some(&CMYK) => 4,
        _ => 3,
    };
    let found = match kind {
        FLOAT => format!("floating-point values of {bits} bits"),
        SIGNED => format!("signed values of {bits} bits"),
        _ if bits > 8 => format!("{bits} bits per value"),
        _ => String::new(),
    };
    if !found.is_empty() {
        return Err(unhandled(found, STRETCH));
    }
    let alphas = extra.iter().filter(|sample| ALPHAS.contains(sample)).count().min(1);
    if samples > base + alphas {
        return Err(unhandled(format!("{samples} bands"), CHOOSE_BANDS));
    }
    let kind = file.find_tag_unsigned::<u32>(Tag::NewSubfileType).ok().flatten().unwrap_or(0);
    if kind & REDUCED != 0 {
        return Err(unhandled(
            "a preview in front of the picture, which lies deeper in the file",
            WHOLE_PICTURE,
        ));
    }
    tiff_jpeg::check(&mut file, bytes)?;
    let slices = slices(&mut file, samples);
    let pages = pages(&mut file);
    if pages > 1 {
        let found =
            if pages == MOST_PAGES { format!("{pages} pages or more") } else { format!("{pages} pages") };
        return Err(unhandled(found, ONE_FILE_PER_PAGE));
    }
    if slices > 1 {
        return Err(unhandled(format!("{slices} slices"), ONE_FILE_PER_SLICE));
    }
    Ok(())
}

/// Slices that lie behind the first one without a page of their own: of volumes, and of stacks by ImageJ and
/// tifffile, which say so in their descriptions alone.
fn slices(file: &mut Decoder<Cursor<&[u8]>>, samples: usize) -> usize {
    let depth = file.find_tag_unsigned::<u32>(IMAGE_DEPTH).ok().flatten().unwrap_or(1);
    let text = file.find_tag(Tag::ImageDescription).ok().flatten().and_then(|text| text.into_string().ok());
    let text = text.unwrap_or_default();
    let of_imagej =
        text.starts_with("ImageJ=").then(|| text.lines().find_map(|line| line.strip_prefix("images=")));
    let of_imagej = of_imagej.flatten().and_then(|count| count.trim().parse().ok()).unwrap_or(1);
    let (width, height) = file.dimensions().unwrap_or((1, 1));
    let of_tifffile = stack_of_tifffile(&text, u64::from(width) * u64::from(height) * samples as u64);
    of_imagej.max(of_tifffile).max(depth as usize)
}

/// `{"shape": [3, 64, 96]}` is what tifffile writes of an array of any shape; a page has so many values of it.
fn stack_of_tifffile(text: &str, page: u64) -> usize {
    #[derive(serde::Deserialize)]
    struct Description {
        shape: Vec<u64>,
    }
    let Ok(Description { shape }) = serde_json::from_str(text) else { return 1 };
    let values = shape.iter().fold(1u64, |values, &size| values.saturating_mul(size));
    let pictures = values / page.max(1);
    usize::try_from(pictures).unwrap_or(usize::MAX).max(1)
}

/// Pictures of a file without thumbnails and smaller copies.
fn pages(file: &mut Decoder<Cursor<&[u8]>>) -> usize {
    let (mut pages, mut seen) = (1, 1);
    while seen < MOST_PAGES && file.more_images() && file.next_image().is_ok() {
        let kind = file.find_tag_unsigned::<u32>(Tag::NewSubfileType).ok().flatten().unwrap_or(0);
        pages += usize::from(kind & REDUCED == 0);
        seen += 1;
    }
    pages
}

pub(super) fn unhandled(found: impl Into<String>, advice: &'static str) -> Error {
    Error::Unhandled { found: found.into(), advice }
}
