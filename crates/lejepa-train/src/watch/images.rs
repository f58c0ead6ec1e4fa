//! The images that are looked at, prepared once.

use lejepa_data::{Dataset, Image, Preprocess, Purpose, ResizeRule, generator};
use rand::seq::SliceRandom;
use rayon::prelude::*;

use crate::{Result, TrainConfig};

/// Images at the encoder's size, in random order, with their labels.
///
/// Which ones, and in which order, depends on the data alone: runs with other seeds are looked at with the same.
#[derive(Debug)]
pub(super) struct WatchedImages {
    images: Vec<(Image, Option<usize>)>,
    /// From a kept image to the encoder's input.
    normalise: Preprocess,
    /// Images that were drawn and cannot be read.
    unreadable: usize,
    fingerprint: String,
}

impl WatchedImages {
    /// Draws `count` images; those that cannot be read are left out.
    pub(super) fn draw(dataset: &dyn Dataset, count: usize, train: &TrainConfig) -> Result<Self> {
        let preprocess = train.preprocess()?;
        let mut indices: Vec<usize> = (0..dataset.len()).collect();
        let drawn = count.min(indices.len());
        let (drawn, _) =
            indices.partial_shuffle(&mut generator(dataset.len() as u64, Purpose::Watching, 0, 0), drawn);
        let read: Vec<Option<(Image, [u8; 32])>> = drawn
            .par_iter()
            .map(|&index| {
                let stored = dataset.stored(index).ok()?;
                let content = stored.content();
                // 8 bits take a quarter of the memory, and nothing is lost: normalising comes last.
                let image = stored.decode().and_then(|image| preprocess.resized(&image)).ok()?;
                Some((image, content))
            })
            .collect();
        let mut hasher = blake3::Hasher::new();
        dataset.class_names().iter().for_each(|class| _ = hasher.update(class.as_bytes()).update(b"\n"));
        let mut images = Vec::new();
        for (&index, image) in drawn.iter().zip(read) {
            let Some((image, content)) = image else { continue };
            hasher.update(&content).update(&(index as u64).to_le_bytes());
            hasher.update(&dataset.label(index).map_or(u64::MAX, |label| label as u64).to_le_bytes());
            images.push((image, dataset.label(index)));
        }
        Ok(Self {
            unreadable: drawn.len() - images.len(),
            images,
            normalise: Preprocess { resize: ResizeRule::Squash, ..preprocess },
            fingerprint: hasher.finalize().to_hex()[..16].to_string(),
        })
    }

    /// Tells these images from others, whatever the encoder's size.
    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Images that were drawn and cannot be read.
    pub(super) fn unreadable(&self) -> usize {
        self.unreadable
    }

    pub(super) fn len(&self) -> usize {
        self.images.len()
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = Option<usize>> {
        self.images.iter().map(|(_image, label)| *label)
    }

    /// The pixels of consecutive images, at most `size` at a time, and how many they are.
    ///
    /// # Shapes
    /// - pixels: `(count, channels, height, width)`
    pub(super) fn chunks(&self, size: usize) -> impl Iterator<Item = Result<(Vec<f32>, usize)>> {
        self.images.chunks(size).map(|images| {
            let pixel_count = self.normalise.pixel_count();
            let mut pixels = vec![0.; images.len() * pixel_count];
            pixels
                .par_chunks_exact_mut(pixel_count)
                .zip(images)
                .try_for_each(|(pixels, (image, _label))| self.normalise.apply_into(image, pixels))?;
            Ok((pixels, images.len()))
        })
    }
}
