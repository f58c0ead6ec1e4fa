//! Antialiased resizing of parts of images, as Pillow does it, with SIMD.

use fast_image_resize::images::{TypedCroppedImage, TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

use crate::{CropBox, Error, Image, Result};

/// A rectangle of an image in fractions of pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FractionalBox {
    pub(crate) top: f64,
    pub(crate) left: f64,
    pub(crate) height: f64,
    pub(crate) width: f64,
}

impl Image {
    /// Cuts a rectangle out and resizes it, bilinear and antialiased; pixels outside the rectangle
    /// play no part.
    pub fn resized_crop(&self, crop: CropBox, height: usize, width: usize) -> Result<Self> {
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
        self.resize(crop, &options, height, width)
    }

    /// Resizes a fractional rectangle (bicubic, antialiased) as if the whole image were resized and
    /// then cropped: pixels around the rectangle take part in the filter.
    pub(crate) fn resized_part(&self, part: FractionalBox, height: usize, width: usize) -> Result<Self> {
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom));
        // Columns first, as Pillow does: values are cut to 8 bits in between.
        let columns = options.crop(part.left, 0., part.width, self.height() as f64);
        let narrowed = self.resize(self.whole(), &columns, self.height(), width)?;
        let rows = options.crop(0., part.top, width as f64, part.height);
        narrowed.resize(narrowed.whole(), &rows, height, width)
    }

    fn whole(&self) -> CropBox {
        CropBox { top: 0, left: 0, height: self.height(), width: self.width() }
    }

    fn resize(&self, crop: CropBox, options: &ResizeOptions, height: usize, width: usize) -> Result<Self> {
        Self::check_size(height, width)?;
        let black = vec![0; height * width * self.channels()];
        let mut target = Self::from_pixels(height, width, self.channels(), black)?;
        let resized = match self.channels() {
            1 => resize_pixels::<U8>(self, crop, options, &mut target),
            _ => resize_pixels::<U8x3>(self, crop, options, &mut target),
        };
        resized.map_err(Error::Resize)?;
        Ok(target)
    }
}

/// With the type of a pixel known: code for every other type would only make the program larger.
fn resize_pixels<P: PixelTrait>(
    source: &Image,
    crop: CropBox,
    options: &ResizeOptions,
    target: &mut Image,
) -> std::result::Result<(), String> {
    let whole =
        TypedImageRef::<P>::from_buffer(source.width() as u32, source.height() as u32, source.pixels())
            .map_err(|error| error.to_string())?;
    let [top, left, rows, columns] = [crop.top, crop.left, crop.height, crop.width].map(|n| n as u32);
    let cropped =
        TypedCroppedImage::new(whole, left, top, columns, rows).map_err(|error| error.to_string())?;
    let (height, width) = (target.height() as u32, target.width() as u32);
    let mut target = TypedImage::<P>::from_buffer(width, height, target.pixels_mut())
        .map_err(|error| error.to_string())?;
    Resizer::new().resize_typed(&cropped, &mut target, options).map_err(|error| error.to_string())
}
