//! The baseline of raw pixels: what an encoder would see, at most [`SIDE`] rows and columns of it.
//!
//! More would not make a better baseline: distances between photographs are those of their coarse shapes and
//! colours. It would make a large one: at 224 pixels an image is 150,528 numbers.

use std::ops::ControlFlow;

use lejepa_data::{BrokenImage, Preprocess, ResizeRule};
use ndarray::Array2;
use rayon::prelude::*;

use crate::features::source::ImageFeatures;
use crate::sets::ImageList;
use crate::{Error, Result};

/// Rows and columns at most.
const SIDE: usize = 32;
/// Images that are prepared between two looks at the progress.
const BATCH: usize = 256;

/// What is kept of the pixels that an encoder would see.
pub(crate) struct Pixels<'a> {
    seen: &'a Preprocess,
    /// What makes them smaller, where they are too many.
    smaller: Option<Preprocess>,
}

/// A row's title: `raw pixels`, or `raw pixels, 32 x 32` for an encoder that would see more of them.
pub fn pixels_title(preprocess: &Preprocess) -> String {
    match &Pixels::new(preprocess).smaller {
        Some(kept) => format!("raw pixels, {} x {}", kept.crop_height, kept.crop_width),
        None => "raw pixels".into(),
    }
}

impl<'a> Pixels<'a> {
    pub(crate) fn new(seen: &'a Preprocess) -> Self {
        let Preprocess { crop_height, crop_width, .. } = *seen;
        let longer = crop_height.max(crop_width);
        let side = |length: usize| ((length * SIDE + longer / 2) / longer).max(1);
        let smaller = (longer > SIDE).then(|| Preprocess {
            resize: ResizeRule::Squash,
            crop_height: side(crop_height),
            crop_width: side(crop_width),
            ..seen.clone()
        });
        Self { seen, smaller }
    }

    /// Values of an image.
    pub(crate) fn count(&self) -> usize {
        self.smaller.as_ref().unwrap_or(self.seen).pixel_count()
    }

    /// A name for these values of these images.
    pub(crate) fn key(&self, images: &ImageList) -> Result<String> {
        let described = serde_json::to_string(&(self.seen, &self.smaller)).map_err(Error::Json)?;
        let key = format!("{described}{} {}", lejepa_data::DECODING, images.fingerprint()?);
        Ok(blake3::hash(key.as_bytes()).to_hex()[..24].to_string())
    }

    fn write(&self, images: &ImageList, index: usize, values: &mut [f32]) -> lejepa_data::Result<()> {
        let image = images.image(index)?;
        match &self.smaller {
            Some(smaller) => smaller.apply_into(&self.seen.resized(&image)?, values),
            None => self.seen.apply_into(&image, values),
        }
    }

    /// Values of all images that can be read; none if `observe` stops the work.
    pub(crate) fn features(
        &self,
        images: &ImageList,
        observe: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<ImageFeatures>> {
        let count = self.count();
        let mut values = Vec::with_capacity(images.len() * count);
        let (mut kept, mut broken) = (Vec::new(), Vec::new());
        let mut batch = vec![0.; BATCH.min(images.len()) * count];
        for first in (0..images.len()).step_by(BATCH) {
            let length = BATCH.min(images.len() - first);
            let rows = batch[..length * count].par_chunks_exact_mut(count).enumerate();
            let written: Vec<_> = rows.map(|(place, row)| self.write(images, first + place, row)).collect();
            for (place, (written, row)) in written.iter().zip(batch.chunks_exact(count)).enumerate() {
                match written {
                    Ok(()) => {
                        values.extend_from_slice(row);
                        kept.push(first + place);
                    }
                    Err(error) => broken.push(BrokenImage::new(images.info(first + place).id, error)),
                }
            }
            if observe(length).is_break() {
                return Ok(None);
            }
        }
        let mismatch = lejepa_probe::Error::Mismatch { features: values.len(), labels: kept.len() };
        let values = Array2::from_shape_vec((kept.len(), count), values).map_err(|_| mismatch)?;
        Ok(Some(ImageFeatures { values, images: kept, broken, is_cached: true }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_32_rows_and_columns_are_kept() {
        let sides = |height, width| {
            let seen = Preprocess::new(height, (height, width), 3);
            let pixels = Pixels::new(&seen);
            (pixels.count(), pixels_title(&seen))
        };
        assert_eq!(sides(28, 28), (28 * 28 * 3, "raw pixels".into()));
        assert_eq!(sides(32, 32), (32 * 32 * 3, "raw pixels".into()));
        assert_eq!(sides(224, 224), (32 * 32 * 3, "raw pixels, 32 x 32".into()));
        assert_eq!(sides(240, 424), (18 * 32 * 3, "raw pixels, 18 x 32".into()));
        assert_eq!(sides(1, 4096), (32 * 3, "raw pixels, 1 x 32".into()));
    }

    #[test]
    fn what_is_kept_is_the_mean_of_what_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("half.png");
        image::GrayImage::from_fn(96, 96, |x, _| image::Luma([if x < 48 { 0 } else { 255 }]))
            .save(&path)
            .unwrap();
        let source = lejepa_data::SourceConfig { path, ..Default::default() };
        let images = ImageList::open(&[source]).unwrap();
        let seen = Preprocess { mean: vec![0.], std: vec![1.], ..Preprocess::new(64, (64, 64), 1) };
        let found =
            Pixels::new(&seen).features(&images, &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
        assert_eq!(found.values.dim(), (1, 32 * 32));
        let mean = found.values.mean().unwrap();
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert!(found.values[(0, 0)] < 0.01 && found.values[(0, 31)] > 0.99);
    }
}
