//! Features of labelled images: extracted once, kept on disk, shared by all probes.

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

use lejepa_data::{BrokenImage, Output, Preprocess};
use lejepa_embed::Encoder;
use ndarray::Array2;

use crate::features::pixels::Pixels;
use crate::features::{Extraction, Share};
use crate::sets::ImageList;
use crate::{Error, Result};

/// Where features come from.
#[derive(Debug, Clone, Copy)]
pub enum FeatureSource<'a> {
    /// An encoder.
    Encoder(&'a Encoder),
    /// The pixels that an encoder would see, at most 32 rows and columns of them.
    Pixels(&'a Preprocess),
}

/// Features of those images that could be read.
#[derive(Debug)]
pub(crate) struct ImageFeatures {
    /// `(images, dim)`
    pub(crate) values: Array2<f32>,
    /// Their numbers in the list.
    pub(crate) images: Vec<usize>,
    /// Images that could not be read.
    pub(crate) broken: Vec<BrokenImage>,
    /// Whether they need not be computed the next time, as far as that is worth it.
    pub(crate) is_cached: bool,
}

/// Encoders of smaller images see all of them.
const LEAST_WITH_MARGIN: usize = 96;

impl FeatureSource<'_> {
    /// What is computed where a probe would like to see an output: that, or the embedding.
    pub(crate) fn output(&self, wanted: Output) -> Output {
        match self {
            Self::Encoder(encoder) if encoder.has(wanted) => wanted,
            _ => Output::Embedding,
        }
    }

    /// How images are prepared if they are to have a margin around the crop. None if that is how they are, and
    /// for encoders of small images, which see all of them.
    pub(crate) fn with_margin(&self, factor: f64) -> Option<Preprocess> {
        let preprocess = match self {
            Self::Encoder(encoder) => encoder.preprocess(),
            Self::Pixels(preprocess) => preprocess,
        };
        let side = preprocess.crop_height.min(preprocess.crop_width);
        preprocess.with_margin(factor).filter(|_| side >= LEAST_WITH_MARGIN)
    }

    /// The kind of features in a protocol string.
    pub(crate) fn tag(&self, output: Output) -> &str {
        match (self, output) {
            (Self::Encoder(encoder), Output::Embedding) => encoder.feature(),
            (Self::Encoder(_), output) => output.name(),
            (Self::Pixels(_), _) => "pixels",
        }
    }

    /// Length of the feature that most probes see.
    pub(crate) fn dim(&self) -> usize {
        match self {
            Self::Encoder(encoder) => encoder.dim(),
            Self::Pixels(preprocess) => Pixels::new(preprocess).count(),
        }
    }

    /// A name for these features of these images: the same one stands for the same numbers.
    pub(crate) fn key(&self, output: Output, images: &ImageList) -> Result<String> {
        match self {
            Self::Encoder(encoder) => Extraction { encoder, output, images }.name(),
            Self::Pixels(preprocess) => Pixels::new(preprocess).key(images),
        }
    }

    /// Computes features, those of an encoder only as far as they are not in the cache yet. `observe` is
    /// told how many more images are done, and may stop the work: then there are none yet.
    pub(crate) fn features(
        &self,
        output: Output,
        images: &ImageList,
        cache: &Path,
        observe: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<ImageFeatures>> {
        match self {
            Self::Pixels(preprocess) => Pixels::new(preprocess).features(images, observe),
            Self::Encoder(encoder) => {
                let extraction = Extraction { encoder, output, images };
                let folder = cache.join(extraction.name()?);
                let mut without_cache = None;
                let extracted = match extraction.begin(&folder, Share::Together) {
                    Err(error) if is_denied(&error) => match extraction.finished(&folder)? {
                        None => {
                            let failed = |source| Error::File { path: std::env::temp_dir(), source };
                            let elsewhere = &*without_cache.insert(tempfile::tempdir().map_err(failed)?);
                            extraction.run(elsewhere.path(), observe)?
                        }
                        finished => finished,
                    },
                    workplace => workplace?.finish(observe)?,
                };
                let Some(extracted) = extracted else { return Ok(None) };
                let mut values = Vec::with_capacity(extracted.indices.len() * extracted.dim);
                extracted.for_each_part(|_, rows| {
                    values.extend_from_slice(rows);
                    Ok(())
                })?;
                let features = matrix(values, extracted.indices, extracted.broken)?;
                Ok(Some(ImageFeatures { is_cached: without_cache.is_none(), ..features }))
            }
        }
    }
}

fn matrix(values: Vec<f32>, images: Vec<usize>, broken: Vec<BrokenImage>) -> Result<ImageFeatures> {
    let dim = values.len() / images.len().max(1);
    let mismatch = lejepa_probe::Error::Mismatch { features: values.len(), labels: images.len() };
    let values = Array2::from_shape_vec((images.len(), dim), values).map_err(|_| mismatch)?;
    Ok(ImageFeatures { values, images, broken, is_cached: true })
}

/// Whether a cache is of somebody who lets others read at most.
fn is_denied(error: &Error) -> bool {
    let (Error::File { source, .. } | Error::Data(lejepa_data::Error::Io { source, .. })) = error else {
        return false;
    };
    [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem].contains(&source.kind())
}
