//! Features of labelled images: extracted once, shared by all probes.

use lejepa_data::{Dataset, Preprocess};
use lejepa_embed::Encoder;
use ndarray::Array2;
use rayon::prelude::*;

use crate::Result;

/// Where features come from.
#[derive(Debug, Clone, Copy)]
pub enum FeatureSource<'a> {
    /// The embedding of an encoder.
    Encoder(&'a Encoder),
    /// The pixels that an encoder would see.
    Pixels(&'a Preprocess),
}

impl FeatureSource<'_> {
    fn preprocess(&self) -> &Preprocess {
        match self {
            Self::Encoder(encoder) => encoder.preprocess(),
            Self::Pixels(preprocess) => preprocess,
        }
    }

    /// The kind of features in a protocol string.
    pub fn tag(&self) -> &str {
        match self {
            Self::Encoder(encoder) => encoder.feature(),
            Self::Pixels(_) => "pixels",
        }
    }

    /// Length of a feature.
    pub fn dim(&self) -> usize {
        match self {
            Self::Encoder(encoder) => encoder.dim(),
            Self::Pixels(preprocess) => preprocess.pixel_count(),
        }
    }
}

/// Images per inference.
const BATCH: usize = 128;

/// Features of the images at `indices`, in that order. `progress` is told how many more are done.
///
/// # Shapes
/// - result: `(images, dim)`
pub fn extract(
    dataset: &dyn Dataset,
    indices: &[usize],
    source: FeatureSource<'_>,
    progress: &mut dyn FnMut(usize),
) -> Result<Array2<f32>> {
    let preprocess = source.preprocess();
    let pixel_count = preprocess.pixel_count();
    let mut values = Vec::with_capacity(indices.len() * source.dim());
    for chunk in indices.chunks(BATCH) {
        let mut pixels = vec![0.; chunk.len() * pixel_count];
        pixels.par_chunks_exact_mut(pixel_count).zip(chunk).try_for_each(|(pixels, &index)| {
            dataset.image(index).and_then(|image| preprocess.apply_into(&image, pixels))
        })?;
        match source {
            FeatureSource::Encoder(encoder) => values.extend(encoder.embed_pixels(chunk.len(), &pixels)?),
            FeatureSource::Pixels(_) => values.extend(pixels),
        }
        progress(chunk.len());
    }
    let found = values.len() / source.dim().max(1);
    Array2::from_shape_vec((indices.len(), source.dim()), values)
        .map_err(|_| lejepa_probe::Error::Mismatch { features: found, labels: indices.len() }.into())
}
