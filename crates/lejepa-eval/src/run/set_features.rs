//! One kind of features of both splits of a set.

use std::path::Path;

use lejepa_data::{Output, available_memory};
use lejepa_probe::Features;

use crate::features::source::ImageFeatures;
use crate::run::evaluation::Observer;
use crate::run::memory::lack;
use crate::run::row_hashes::RowHashes;
use crate::run::{Candidate, Event};
use crate::sets::labelled_set::LabelledImages;
use crate::sets::{Draw, LabelledSet, Shots};
use crate::{Error, Result};

/// Features with the classes of their images.
pub(crate) struct SetFeatures {
    /// What of the encoder they are.
    pub(crate) output: Output,
    /// Pixels of an image's short side before the crop, if not what the encoder says itself.
    pub(crate) resize: Option<usize>,
    /// Names of the training and test features.
    pub(crate) keys: [String; 2],
    /// Hashes of the training and test features and labels themselves.
    pub(crate) digests: [String; 2],
    pub(crate) train: Features,
    pub(crate) test: Features,
    /// Numbers of the readable training images.
    pub(crate) train_images: Vec<usize>,
    /// Numbers of the readable test images.
    pub(crate) test_images: Vec<usize>,
    /// What to say of images that are not used.
    pub(crate) notes: Vec<String>,
}

impl SetFeatures {
    /// Computes an output, or finds it in the cache.
    pub(crate) fn compute(
        dataset: &LabelledSet,
        candidate: &Candidate<'_>,
        (output, cache): (Output, &Path),
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        let LabelledSet { train, test, .. } = dataset;
        let images = train.images.len() + test.images.len();
        observer.tell(Event::Extracting { dataset: &dataset.name, candidate: &candidate.name, images })?;
        let source = &candidate.source;
        let needed = (images as u64).saturating_mul(size_of::<f32>() as u64 * source.dim() as u64);
        if let Some(lack) = lack(needed, available_memory()) {
            return Err(Error::Memory { candidate: candidate.name.clone(), lack });
        }
        let mut compute = |part: &LabelledImages| {
            let mut progress = |done| (observer.observe)(Event::Extracted(done));
            source.features(output, &part.images, cache, &mut progress)?.ok_or(Error::Stopped)
        };
        let train_features = compute(train)?;
        let test_features = compute(test)?;
        let (train_images, test_images) = (train_features.images.clone(), test_features.images.clone());
        let splits = [("training", &train_features), ("test", &test_features)];
        let mut notes = unusable(&candidate.name, &splits);
        if !splits.iter().all(|(_, features)| features.is_cached) {
            let cache = cache.display();
            notes.push(format!("features were computed without a cache, which cannot be written: {cache}"));
        }
        let train_features = labelled(dataset, candidate, train, train_features)?;
        let test_features = labelled(dataset, candidate, test, test_features)?;
        let [train_rows, test_rows] =
            [&train_features, &test_features].map(|features| RowHashes::of(features.values().view()));
        if output == Output::Embedding {
            notes.extend(match train_rows.collapsed() {
                Some(different) => Some(format!(
                    "{different} different features: {} has collapsed, or the images are copies",
                    candidate.name
                )),
                None => train_rows.shared_with(&test_rows).map(|shared| {
                    format!("{shared} have the very features of a training image: the splits share images")
                }),
            });
        }
        let digest = |rows: &RowHashes, features: &Features| {
            rows.digest(features.targets().labels().unwrap_or_default())
        };
        Ok(Self {
            output,
            resize: None,
            keys: [source.key(output, &train.images)?, source.key(output, &test.images)?],
            digests: [digest(&train_rows, &train_features), digest(&test_rows, &test_features)],
            train_images,
            test_images,
            notes,
            train: train_features,
            test: test_features,
        })
    }

    /// Draws by the numbers that images have in the set, and not among the readable ones.
    pub(crate) fn in_list(&self, drawn: &[(Shots, Vec<Draw>)]) -> Vec<(Shots, Vec<Draw>)> {
        let in_list = |draw: &Draw| Draw {
            number: draw.number,
            samples: draw.samples.iter().map(|&sample| self.train_images[sample]).collect(),
        };
        drawn.iter().map(|(shots, draws)| (*shots, draws.iter().map(in_list).collect())).collect()
    }
}

/// One sentence for each split with images that a candidate has no features of.
fn unusable(candidate: &str, splits: &[(&str, &ImageFeatures)]) -> Vec<String> {
    let sentence = |(split, found): &(&str, &ImageFeatures)| {
        let (count, first) = (found.broken.len(), found.broken.first()?);
        let (name, reason) = (&first.name, &first.reason);
        Some(format!("{candidate}: {count} {split} images were left out, such as {name}: {reason}"))
    };
    splits.iter().filter_map(sentence).collect()
}

fn labelled(
    dataset: &LabelledSet,
    candidate: &Candidate<'_>,
    part: &LabelledImages,
    features: ImageFeatures,
) -> Result<Features> {
    if features.images.is_empty() {
        return Err(Error::NothingReadable { dataset: dataset.name.clone() });
    }
    let labels = features.images.iter().map(|&image| part.labels[image]).collect();
    Features::labelled(features.values, labels, dataset.classes.len()).map_err(|source| match source {
        lejepa_probe::Error::NotFinite { index } => Error::NotFinite {
            candidate: candidate.name.clone(),
            image: part.images.info(features.images[index]).id,
        },
        source => source.into(),
    })
}
