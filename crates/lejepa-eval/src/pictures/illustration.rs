//! Makes maps and pictures of a set.

use lejepa_data::{Image, Output};
use lejepa_embed::Encoder;
use lejepa_picture::{
    ATTENTION_MASS, AttentionPictures, ComponentsOf, Jpeg, Upsampling, patch_colours, seen, with_longer_side,
};
use ndarray::Axis;
use rayon::prelude::*;
use serde::Serialize;

use super::selection::Selection;
use super::{AttentionJpegs, CandidatePictures, PatchPictures, Pictures, SetPictures, ShownImage};
use crate::features::FeatureSource;
use crate::pictures::Sprite;
use crate::pictures::map::{neighbour_map, principal_map};
use crate::run::Candidate;
use crate::run::program::program;
use crate::run::set_features::SetFeatures;
use crate::sets::LabelledSet;
use crate::{Error, Result};

/// A set whose test images are drawn.
pub(crate) struct Illustration<'a> {
    settings: &'a Pictures,
    dataset: &'a LabelledSet,
    features: &'a SetFeatures,
    seed: u64,
    selection: Selection,
}

/// Pixels of a picture's longer side.
const SIDE: usize = 160;
const QUALITY: u8 = 78;

/// What decides how pictures come out.
#[derive(Serialize)]
struct Key<'a> {
    program: &'a str,
    settings: &'a Pictures,
    seed: u64,
    data: String,
    /// The test features and labels themselves, and the name of what made them.
    features: Option<[&'a str; 2]>,
}

impl<'a> Illustration<'a> {
    /// With the features of any candidate: readable images are the same for all of them.
    pub(crate) fn new(
        settings: &'a Pictures,
        dataset: &'a LabelledSet,
        features: &'a SetFeatures,
        seed: u64,
    ) -> Self {
        let labels = features.test.targets().labels().unwrap_or_default();
        Self { settings, dataset, features, seed, selection: Selection::of(labels, settings, seed) }
    }

    /// A name for what [`Self::set`] makes.
    pub(crate) fn set_key(&self) -> Result<String> {
        self.key(None)
    }

    /// A name for what [`Self::candidate`] makes.
    pub(crate) fn candidate_key(&self) -> Result<String> {
        self.key(Some([&self.features.digests[1], &self.features.keys[1]]))
    }

    fn key(&self, features: Option<[&str; 2]>) -> Result<String> {
        let data = self.dataset.test.images.fingerprint()?;
        let key = Key { program: program(), settings: self.settings, seed: self.seed, data, features };
        let key = serde_json::to_vec(&key).map_err(Error::Json)?;
        Ok(format!("pictures-{}", &blake3::hash(&key).to_hex()[..24]))
    }

    /// The images, without anything that a candidate makes of them.
    pub(crate) fn set(&self) -> Result<SetPictures> {
        // Photographs may be large: one of them per thread at a time.
        let thumbnail = |&sample: &usize| Sprite::thumbnail(&self.image(sample)?);
        let thumbnails = self.selection.points.par_iter().map(thumbnail).collect::<Result<Vec<Image>>>()?;
        Ok(SetPictures {
            thumbnails: Sprite::of(&thumbnails)?,
            points: self.selection.points.iter().map(|&sample| self.shown(sample)).collect(),
            images: self.selection.images.iter().map(|&sample| self.shown(sample)).collect(),
            candidates: Vec::new(),
        })
    }

    /// What a candidate, whose features these are, makes of them.
    pub(crate) fn candidate(&self, candidate: &Candidate<'_>) -> Result<CandidatePictures> {
        let features = self.features.test.values().select(Axis(0), &self.selection.points);
        let mut maps = vec![principal_map(features.view())?];
        maps.extend(neighbour_map(features.view())?);
        let patches = match candidate.source {
            FeatureSource::Encoder(encoder) if encoder.has(Output::PatchTokens) => self.patches(encoder)?,
            _ => Vec::new(),
        };
        Ok(CandidatePictures { candidate: candidate.name.clone(), maps, patches })
    }

    fn patches(&self, encoder: &Encoder) -> Result<Vec<PatchPictures>> {
        self.selection.images.iter().map(|&sample| patches(encoder, &[self.image(sample)?])).collect()
    }

    /// A test sample's image.
    fn image(&self, sample: usize) -> Result<Image> {
        Ok(self.dataset.test.images.image(self.features.test_images[sample])?)
    }

    fn shown(&self, sample: usize) -> ShownImage {
        let image = self.features.test_images[sample];
        let id = self.dataset.test.images.info(image).id;
        ShownImage { id, label: self.dataset.test.labels[image] }
    }
}

/// Of one image.
fn patches(encoder: &Encoder, image: &[Image; 1]) -> Result<PatchPictures> {
    let shown = with_longer_side(&seen(encoder.preprocess(), &image[0])?, SIDE)?;
    let tokens = encoder.patch_tokens(image)?;
    let colours = patch_colours(tokens.view(), ComponentsOf::Image)?.swap_remove(0);
    let components = colours.draw((shown.height(), shown.width()), Upsampling::Smooth)?;
    let attention = if encoder.has(Output::ClsAttention) {
        let drawing = AttentionPictures { mass: ATTENTION_MASS, upsampling: Upsampling::Smooth };
        let attention = encoder.attention(image)?;
        let mean = drawing.of(&shown, attention.index_axis(Axis(0), 0))?.swap_remove(0);
        Some(AttentionJpegs { heat: jpeg(&mean.heat)?, mask: jpeg(&mean.overlay)? })
    } else {
        None
    };
    Ok(PatchPictures { image: jpeg(&shown)?, components: jpeg(&components)?, attention })
}

fn jpeg(image: &Image) -> Result<Jpeg> {
    Ok(Jpeg::of(image, QUALITY)?)
}
