//! Antialiased resizing of parts of images, as Pillow does it, with SIMD.

use fast_image_resize::images::{TypedCroppedImage, TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions};

use crate::{CropBox, Error, Image, Interpolation, Result};

/// Resizes one image after the other with the same memory.
#[derive(Debug, Default)]
pub(crate) struct Resizer(fast_image_resize::Resizer);

/// A stretch of an image along one axis, in fractions of pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) start: f64,
    pub(crate) length: f64,
}

/// A part of an image and how it is resized.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) rows: Stretch,
    pub(crate) columns: Stretch,
    pub(crate) interpolation: Interpolation,
}

impl Resizer {
    /// Cuts a rectangle out and resizes it, bilinear and antialiased; pixels outside the rectangle
    /// play no part. The result replaces what is in `target`.
    #[cfg(feature = "datasets")]
    pub(crate) fn crop(
        &mut self,
        image: &Image,
        crop: CropBox,
        (height, width): (usize, usize),
        target: &mut Vec<u8>,
    ) -> Result<()> {
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
        target.resize(height * width * image.channels(), 0);
        self.resize(image, crop, &options, (height, width), target)
    }

    /// Resizes a part (antialiased) as if the whole image were resized and then cropped:
    /// pixels around the part take part in the filter.
    pub(crate) fn part(
        &mut self,
        image: &Image,
        Part { rows, columns, interpolation }: Part,
        (height, width): (usize, usize),
    ) -> Result<Image> {
        let filter = match interpolation {
            Interpolation::Bicubic => FilterType::CatmullRom,
            Interpolation::Bilinear => FilterType::Bilinear,
        };
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
        // The wider filter reaches two pixels of the result to each side.
        let reach = 2. * (rows.length / height as f64).max(1.) + 1.;
        let top = (rows.start - reach).floor().max(0.) as usize;
        let bottom = ((rows.start + rows.length + reach).ceil() as usize).min(image.height());
        let needed = CropBox { top, left: 0, height: bottom - top, width: image.width() };

        // Columns first, as Pillow does: values are cut to 8 bits in between.
        let mut narrowed = Image::black(needed.height, width, image.channels())?;
        let across = options.crop(columns.start, 0., columns.length, needed.height as f64);
        self.resize(image, needed, &across, (needed.height, width), narrowed.pixels_mut())?;
        let mut target = Image::black(height, width, image.channels())?;
        let down = options.crop(0., rows.start - top as f64, width as f64, rows.length);
        self.resize(&narrowed, narrowed.whole(), &down, (height, width), target.pixels_mut())?;
        Ok(target)
    }

    fn resize(
        &mut self,
        image: &Image,
        crop: CropBox,
        options: &ResizeOptions,
        size: (usize, usize),
        target: &mut [u8],
    ) -> Result<()> {
        match image.channels() {
            1 => self.resize_pixels::<U8>(image, crop, options, size, target),
            _ => self.resize_pixels::<U8x3>(image, crop, options, size, target),
        }
        .map_err(Error::Resize)
    }

    /// With the type of a pixel known: code for every other type would only make the program larger.
    fn resize_pixels<P: PixelTrait>(
        &mut self,
        image: &Image,
        crop: CropBox,
        options: &ResizeOptions,
        (height, width): (usize, usize),
        target: &mut [u8],
    ) -> std::result::Result<(), String> {
        let whole =
            TypedImageRef::<P>::from_buffer(image.width() as u32, image.height() as u32, image.pixels())
                .map_err(|error| error.to_string())?;
        let [top, left, rows, columns] = [crop.top, crop.left, crop.height, crop.width].map(|n| n as u32);
        let cropped =
            TypedCroppedImage::new(whole, left, top, columns, rows).map_err(|error| error.to_string())?;
        let mut target = TypedImage::<P>::from_buffer(width as u32, height as u32, target)
            .map_err(|error| error.to_string())?;
        self.0.resize_typed(&cropped, &mut target, options).map_err(|error| error.to_string())
    }
}
