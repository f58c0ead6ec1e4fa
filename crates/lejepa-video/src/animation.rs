//! Frames of a GIF, an animated PNG or an animated WebP, put together as a viewer shows them.
//!
//! Where a frame is transparent, black is seen: `alpha * colour`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use image::codecs::gif::GifDecoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder, Frames, ImageDecoder, ImageFormat, ImageResult, Limits, RgbaImage};
use lejepa_data::{Image, regular_file};

use super::Frame;
use crate::Result;

/// Decodes frames one after the other.
pub(super) struct Animation {
    path: PathBuf,
    /// Nothing after the last frame or the first that could not be decoded: those after it build on it.
    frames: Option<Frames<'static>>,
    number: usize,
}

/// What a viewer shows if a file says nothing or next to nothing.
const USUAL_DURATION: Duration = Duration::from_millis(100);
const SHORTEST_DURATION: Duration = Duration::from_millis(11);
/// Frames of the largest size that decoders hold at the same time.
const FRAMES_OF_A_DECODER: u64 = 6;

impl Animation {
    /// Opens a file; nothing if it is a single image.
    pub(super) fn open(path: &Path, format: ImageFormat) -> Result<Option<Self>> {
        let failed = |source| lejepa_data::Error::Io { action: "read", path: path.into(), source };
        let named = |error| lejepa_data::Error::sample(path.display().to_string(), error);
        let file = BufReader::new(regular_file::open(path).map_err(failed)?);
        let frames = frames(file, format).map_err(named)?;
        Ok(frames.map(|frames| Self { path: path.into(), frames: Some(frames), number: 0 }))
    }
}

impl Iterator for Animation {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        let decoded = self.frames.as_mut()?.next();
        if !matches!(decoded, Some(Ok(_))) {
            self.frames = None;
        }
        let number = self.number;
        self.number += 1;
        let frame = decoded?.map_err(lejepa_data::Error::Decode).and_then(|frame| {
            let delay = Duration::from(frame.delay());
            let duration = if delay < SHORTEST_DURATION { USUAL_DURATION } else { delay };
            Ok(Frame::numbered(number, on_black(frame.into_buffer())?, duration))
        });
        let named = |error| lejepa_data::Error::sample(format!("{} [{number}]", self.path.display()), error);
        Some(frame.map_err(|error| named(error).into()))
    }
}

fn frames(file: BufReader<File>, format: ImageFormat) -> lejepa_data::Result<Option<Frames<'static>>> {
    let failed = lejepa_data::Error::Decode;
    Ok(match format {
        ImageFormat::Gif => {
            let mut decoder = GifDecoder::new(file).map_err(failed)?;
            check(&decoder)?;
            decoder.set_limits(limits()).map_err(failed)?;
            Some(decoder.into_frames())
        }
        ImageFormat::Png => {
            let decoder = PngDecoder::with_limits(file, limits()).map_err(failed)?;
            check(&decoder)?;
            let animated = |decoder: PngDecoder<_>| -> ImageResult<_> {
                Ok(if decoder.is_apng()? { Some(decoder.apng()?.into_frames()) } else { None })
            };
            animated(decoder).map_err(failed)?
        }
        ImageFormat::WebP => {
            let decoder = WebPDecoder::new(file).map_err(failed)?;
            check(&decoder)?;
            decoder.has_animation().then(|| decoder.into_frames())
        }
        _ => None,
    })
}

fn check(decoder: &impl ImageDecoder) -> lejepa_data::Result<()> {
    let (width, height) = decoder.dimensions();
    Frame::check_size(height as usize, width as usize)
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(FRAMES_OF_A_DECODER * 4 * Frame::PIXEL_LIMIT as u64);
    limits
}

fn on_black(frame: RgbaImage) -> lejepa_data::Result<Image> {
    let (width, height) = frame.dimensions();
    let shaded = |value: u8, alpha: u8| ((u32::from(value) * u32::from(alpha) + 127) / 255) as u8;
    let pixels = frame
        .as_raw()
        .as_chunks::<4>()
        .0
        .iter()
        .flat_map(|&[red, green, blue, alpha]| [red, green, blue].map(|value| shaded(value, alpha)));
    Image::from_pixels(height as usize, width as usize, 3, pixels.collect())
}

#[cfg(test)]
mod tests {
    use image::codecs::gif::GifEncoder;
    use image::{Delay, Rgba};
    use rand::Rng;

    use super::*;

    fn gif(frames: Vec<RgbaImage>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let delay = Delay::from_numer_denom_ms(40, 1);
        let frames = frames.into_iter().map(|frame| image::Frame::from_parts(frame, 0, 0, delay));
        GifEncoder::new(&mut bytes).encode_frames(frames).unwrap();
        bytes
    }

    /// Frames that get brighter.
    fn brightening(count: u8) -> Vec<RgbaImage> {
        (0..count).map(|number| RgbaImage::from_pixel(6, 4, Rgba([number * 20, 0, 0, 255]))).collect()
    }

    fn apng(frames: &[RgbaImage]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (width, height) = frames[0].dimensions();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_animated(frames.len() as u32, 0).unwrap();
        encoder.set_frame_delay(1, 10).unwrap();
        let mut writer = encoder.write_header().unwrap();
        frames.iter().for_each(|frame| writer.write_image_data(frame.as_raw()).unwrap());
        writer.finish().unwrap();
        bytes
    }

    /// Made by Pillow 12: 4x3 pixels of `(200, 0, 0, 255)`, then of `(0, 100, 0, 128)`, lossless, 70 ms each.
    const WEBP: &str = "524946468400000057454250565038580a00000012000000030000020000414e494d06000000000000000000\
        414e4d4628000000000000000000030000020000460000025650384c0f0000002f038000000710458efe0722\
        a2ff0100414e4d4628000000000000000000030000020000460000025650384c0f0000002f038000100750b2\
        88020622a2ff0100";

    fn webp() -> Vec<u8> {
        let byte = |place: usize| u8::from_str_radix(&WEBP[place..place + 2], 16).unwrap();
        (0..WEBP.len()).step_by(2).map(byte).collect()
    }

    fn read(bytes: &[u8], format: ImageFormat) -> Result<Vec<Result<Frame>>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Ok(Animation::open(file.path(), format)?.into_iter().flatten().collect())
    }

    #[test]
    fn frames_of_a_gif_and_an_animated_png_come_one_by_one() {
        for (bytes, format, millis) in
            [(gif(brightening(3)), ImageFormat::Gif, 40), (apng(&brightening(3)), ImageFormat::Png, 100)]
        {
            let frames = read(&bytes, format).unwrap();
            let reds: Vec<u8> =
                frames.iter().map(|frame| frame.as_ref().unwrap().image.pixels()[0]).collect();
            assert_eq!(reds, [0, 20, 40], "{format:?}");
            let last = frames[2].as_ref().unwrap();
            assert_eq!((last.name.as_str(), last.image.height(), last.image.width()), ("00002", 4, 6));
            assert_eq!(last.duration, Duration::from_millis(millis));
        }
    }

    #[test]
    fn transparent_pixels_are_black() {
        let clear = RgbaImage::from_pixel(3, 2, Rgba([255, 255, 255, 0]));
        let frames = read(&gif(vec![clear]), ImageFormat::Gif).unwrap();
        assert!(frames[0].as_ref().unwrap().image.pixels().iter().all(|&value| value == 0));
        let half = RgbaImage::from_pixel(3, 2, Rgba([255, 100, 0, 128]));
        let frames = read(&apng(&[half]), ImageFormat::Png).unwrap();
        assert_eq!(frames[0].as_ref().unwrap().image.pixels()[..3], [128, 50, 0]);
    }

    #[test]
    fn frames_of_an_animated_webp_come_one_by_one() {
        let frames = read(&webp(), ImageFormat::WebP).unwrap();
        let seen: Vec<_> = frames
            .iter()
            .map(|frame| frame.as_ref().unwrap())
            .map(|frame| (frame.image.height(), frame.image.width(), frame.duration.as_millis()))
            .collect();
        assert_eq!(seen, [(3, 4, 70), (3, 4, 70)]);
        assert_eq!(frames[0].as_ref().unwrap().image.pixels()[..3], [200, 0, 0]);
    }

    #[test]
    fn a_file_that_is_cut_off_ends_with_one_error() {
        let bytes = gif(brightening(5));
        let frames = read(&bytes[..bytes.len() * 3 / 5], ImageFormat::Gif).unwrap();
        assert!(frames.len() > 1);
        let (last, before) = frames.split_last().unwrap();
        assert!(last.is_err() && before.iter().all(Result::is_ok));
    }

    #[test]
    fn a_png_of_one_image_is_no_animation() {
        let file = tempfile::NamedTempFile::new().unwrap();
        Image::from_pixels(1, 1, 3, vec![9; 3]).unwrap().write_png(file.path()).unwrap();
        assert!(Animation::open(file.path(), ImageFormat::Png).unwrap().is_none());
    }

    #[test]
    fn a_gif_that_claims_an_enormous_canvas_is_refused() {
        let mut bytes = gif(brightening(1));
        bytes[6..10].copy_from_slice(&[255; 4]);
        assert!(read(&bytes, ImageFormat::Gif).is_err());
    }

    /// Of bytes that were changed at random, most are found out by checksums or codes; none may do harm.
    #[test]
    fn damaged_files_neither_crash_nor_go_on_for_ever() {
        let whole = [
            (gif(brightening(4)), ImageFormat::Gif),
            (apng(&brightening(4)), ImageFormat::Png),
            (webp(), ImageFormat::WebP),
        ];
        for (bytes, format) in whole {
            for round in 0..500 {
                let mut random = lejepa_data::generator(3, lejepa_data::Purpose::Inspection, round, 0);
                let mut damaged = bytes.clone();
                for _ in 0..random.random_range(1..6) {
                    let place = random.random_range(6..damaged.len());
                    damaged[place] = random.random();
                }
                damaged.truncate(random.random_range(6..=damaged.len()));
                let Ok(frames) = read(&damaged, format) else { continue };
                assert!(frames.len() <= bytes.len(), "{format:?} {round}");
            }
        }
    }
}
