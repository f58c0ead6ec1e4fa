//! Looks at an encoder with images that never change.

use lejepa_data::{Dataset, Split};
use lejepa_loss::gauge::{Gauge, Reference};
use ndarray::Array2;

use super::images::WatchedImages;
use super::probes::Probes;
use super::{GaugeMetrics, WatchConfig, WatchMetrics};
use crate::{Error, Result, TrainConfig};

/// Images to look at an encoder with.
#[derive(Debug)]
pub struct Watcher {
    images: WatchedImages,
    probes: Option<Probes>,
    fingerprint: String,
    /// Images per pass of the encoder.
    at_once: usize,
}

/// What the model makes of some images.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedImages {
    /// The encoder's features, image by image.
    pub features: Vec<f32>,
    /// The projector's embeddings, image by image.
    pub embeddings: Vec<f32>,
}

/// Images per pass of the encoder at most; fewer where a step takes fewer.
const CHUNK: usize = 64;
/// Directions of the gauge: enough to tell health from collapse, and a look stays cheap.
const SLICES: usize = 256;
/// Draws these directions; the same in every run, so that runs can be compared.
const SEED: u64 = 0;
/// Changes when the same images and weights get other numbers.
const VERSION: u32 = 1;

impl Watcher {
    /// Draws the images. Nothing if the recipe asks for no looks, or if there are too few images to
    /// say anything about.
    pub fn new(
        config: &WatchConfig,
        train: &TrainConfig,
        training_data: &dyn Dataset,
    ) -> Result<Option<Self>> {
        config.check()?;
        if config.every == 0 {
            return Ok(None);
        }
        let images = match &config.data {
            Some(path) => {
                WatchedImages::draw(lejepa_data::open(path, Split::Train)?.as_ref(), config.images, train)?
            }
            None => WatchedImages::draw(training_data, config.images, train)?,
        };
        if images.len() < WatchConfig::LEAST_IMAGES {
            return Ok(None);
        }
        let probes = Probes::new(images.labels(), config.holdout);
        let fingerprint = format!("{VERSION}:{}:{}", images.fingerprint(), config.holdout);
        let fingerprint = blake3::hash(fingerprint.as_bytes()).to_hex()[..16].to_string();
        let of_step = train.train.micro_batch.map(|samples| samples.saturating_mul(train.views.global.count));
        let at_once = of_step.unwrap_or(CHUNK).clamp(1, CHUNK);
        Ok(Some(Self { images, probes, fingerprint, at_once }))
    }

    /// Tells images and splits from those of other runs.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// What a user should know about the watched images.
    pub fn notes(&self) -> Vec<String> {
        let unreadable = self.images.unreadable();
        let note = format!(
            "watched images that cannot be read and are left out: {unreadable} of {}",
            unreadable + self.images.len()
        );
        Vec::from_iter((unreadable > 0).then_some(note))
    }

    /// Measures the model after `step` steps. `embed` is given the pixels of some images and how many
    /// they are.
    ///
    /// # Shapes
    /// - pixels: `(count, channels, height, width)`
    pub fn look(
        &self,
        step: u64,
        embed: &mut dyn FnMut(&[f32], usize) -> Result<EmbeddedImages>,
    ) -> Result<WatchMetrics> {
        let (mut features, mut embeddings) = (Vec::new(), Vec::new());
        for chunk in self.images.chunks(self.at_once) {
            let (pixels, count) = chunk?;
            let embedded = embed(&pixels, count)?;
            features.extend(embedded.features);
            embeddings.extend(embedded.embeddings);
        }
        let features = self.rows(step, "features", features)?;
        let embeddings = self.rows(step, "embeddings", embeddings)?;
        let scores = self.probes.as_ref().map(|probes| probes.score(&features)).transpose()?;
        Ok(WatchMetrics {
            step,
            watched: Some(self.fingerprint.clone()),
            features: self.gauge(Reference::Shape, &features)?,
            embeddings: self.gauge(Reference::Standard, &embeddings)?,
            knn: scores.as_ref().map(|scores| scores.knn),
            linear: scores.as_ref().map(|scores| scores.linear),
        })
    }

    /// One row per image, all numbers finite.
    fn rows(&self, step: u64, what: &'static str, values: Vec<f32>) -> Result<Array2<f32>> {
        let (images, length) = (self.images.len(), values.len());
        let mismatch = || Error::Embedded { what, images, length };
        let dim = length / images;
        if dim == 0 || dim * images != length {
            return Err(mismatch());
        }
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::LookNotFinite { what, step, image: place / dim });
        }
        Array2::from_shape_vec((images, dim), values).map_err(|_shape| mismatch())
    }

    fn gauge(&self, reference: Reference, rows: &Array2<f32>) -> Result<GaugeMetrics> {
        let gauge = Gauge { reference, slices: SLICES, seed: SEED, ..Gauge::default() };
        let values = rows.as_slice().unwrap_or_default();
        Ok(GaugeMetrics::from(&gauge.measure_rows(values, rows.ncols())?))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lejepa_data::Image;

    use super::*;

    /// Two classes of 4x6 images, dark and bright; some files are no images.
    fn folder_of(images: u8) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for index in 0..images {
            let (class, level) =
                if index % 2 == 0 { ("dark", index / 2) } else { ("bright", 150 + index / 2) };
            let folder = root.path().join(class);
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join(format!("{index:03}.bmp"));
            if index % 20 == 7 {
                std::fs::write(path, "no image").unwrap();
            } else {
                write_bitmap(&path, level);
            }
        }
        root
    }

    /// A 4x6 image of 24 bits per pixel.
    fn write_bitmap(path: &Path, level: u8) {
        let mut bytes = b"BM".to_vec();
        for word in [54 + 4 * 20u32, 0, 54, 40, 6, 4, 1 | 24 << 16, 0, 4 * 20, 0, 0, 0, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend((0..4 * 20).map(|place| level.wrapping_add(place * 3 % 40)));
        std::fs::write(path, bytes).unwrap();
    }

    fn config() -> TrainConfig {
        let overrides = ["encoder.image_size=16", "preprocess.resize_short_side=20"];
        let overrides: Vec<_> =
            overrides.iter().map(|typed| crate::Override::parse(typed).unwrap()).collect();
        TrainConfig::load(None, &overrides).unwrap()
    }

    fn watcher(root: &Path, watch: &WatchConfig) -> Option<Watcher> {
        watcher_of(root, watch, &config())
    }

    fn watcher_of(root: &Path, watch: &WatchConfig, config: &TrainConfig) -> Option<Watcher> {
        let data = lejepa_data::open(root, Split::Train).unwrap();
        Watcher::new(watch, config, data.as_ref()).unwrap()
    }

    /// Brightness, and numbers that look random.
    fn embed(pixels: &[f32], count: usize) -> Result<EmbeddedImages> {
        let of_image = |pixels: &[f32]| {
            let brightness = pixels.iter().sum::<f32>() / pixels.len() as f32;
            let scattered = (1..4).map(move |column| (brightness * 1e4 * column as f32).sin());
            [brightness].into_iter().chain(scattered).collect::<Vec<f32>>()
        };
        let features: Vec<f32> = pixels.chunks(pixels.len() / count).flat_map(of_image).collect();
        Ok(EmbeddedImages { embeddings: vec![0.5; count * 3], features })
    }

    #[test]
    fn a_look_is_reproducible_and_probes_see_the_classes() {
        let root = folder_of(100);
        let watch = WatchConfig { images: 90, ..WatchConfig::default() };
        let look = watcher(root.path(), &watch).unwrap().look(40, &mut embed).unwrap();
        assert_eq!((look.step, look.knn), (40, Some(1.)));
        assert!(look.linear.unwrap() > 0.9, "{look:?}");
        assert_eq!(look.embeddings.verdict, "collapsed");
        assert!(look.features.rankme > 1.5 && look.features.rankme < 4.01, "{look:?}");
        let again = watcher(root.path(), &watch).unwrap().look(40, &mut embed).unwrap();
        assert_eq!(look, again);
    }

    #[test]
    fn a_look_does_not_depend_on_the_seed_of_the_run() {
        let root = folder_of(100);
        let watch = WatchConfig { images: 60, ..WatchConfig::default() };
        let look = |seed| {
            let config = TrainConfig { seed, ..config() };
            let watcher = watcher_of(root.path(), &watch, &config).unwrap();
            serde_json::to_string(&watcher.look(40, &mut embed).unwrap()).unwrap()
        };
        assert!((1..4).all(|seed| look(seed) == look(0)), "{}", look(0));
    }

    #[test]
    fn looks_say_when_images_or_splits_are_others() {
        let (root, other) = (folder_of(100), folder_of(102));
        let fingerprint = |root: &Path, watch: WatchConfig| {
            watcher(root, &watch).unwrap().look(0, &mut embed).unwrap().watched.unwrap()
        };
        let first = fingerprint(root.path(), WatchConfig::default());
        assert_eq!(first, fingerprint(root.path(), WatchConfig { every: 7, ..Default::default() }));
        for watch in [
            WatchConfig { images: 60, ..Default::default() },
            WatchConfig { holdout: 0.5, ..Default::default() },
            WatchConfig { data: Some(other.path().into()), ..Default::default() },
        ] {
            assert_ne!(first, fingerprint(root.path(), watch.clone()), "{watch:?}");
        }
        assert_ne!(first, fingerprint(other.path(), WatchConfig::default()));
    }

    #[test]
    fn kept_images_are_what_the_encoder_would_see() {
        let root = folder_of(40);
        let data = lejepa_data::open(root.path(), Split::Train).unwrap();
        let preprocess = config().preprocess().unwrap();
        let readable = (0..data.len()).filter_map(|index| data.image(index).ok());
        let mut expected: Vec<Vec<f32>> =
            readable.map(|image: Image| preprocess.apply(&image).unwrap()).collect();
        assert_eq!(expected.len(), 38, "two files are no images");
        let mut seen = Vec::new();
        let watcher = watcher(root.path(), &WatchConfig::default()).unwrap();
        let look = watcher.look(0, &mut |pixels, count| {
            seen.extend(pixels.chunks(pixels.len() / count).map(<[f32]>::to_vec));
            embed(pixels, count)
        });
        look.unwrap();
        let by_value = |left: &Vec<f32>, right: &Vec<f32>| left.partial_cmp(right).unwrap();
        seen.sort_by(by_value);
        expected.sort_by(by_value);
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_pass_takes_no_more_images_than_a_step() {
        let root = folder_of(40);
        let most = |more: &[&str]| {
            let typed = ["encoder.image_size=16"].iter().chain(more);
            let typed: Vec<_> = typed.map(|typed| crate::Override::parse(typed).unwrap()).collect();
            let config = TrainConfig::load(None, &typed).unwrap();
            let mut most = 0;
            let watcher = watcher_of(root.path(), &WatchConfig::default(), &config).unwrap();
            let look = watcher.look(0, &mut |pixels, count| {
                most = most.max(count);
                embed(pixels, count)
            });
            look.unwrap();
            most
        };
        assert_eq!(most(&[]), 38, "all of them");
        assert_eq!(most(&["train.micro_batch=1"]), 2, "both global views of a sample");
        assert_eq!(most(&["train.micro_batch=4", "views.global.count=3"]), 12);
        assert_eq!(most(&["train.micro_batch=9000"]), 38);
    }

    #[test]
    fn nothing_is_watched_where_nothing_can_be_said() {
        let root = folder_of(16);
        assert!(watcher(root.path(), &WatchConfig::default()).is_none(), "15 readable images");
        let root = folder_of(30);
        assert!(watcher(root.path(), &WatchConfig { every: 0, ..Default::default() }).is_none());
        let look = watcher(root.path(), &WatchConfig::default()).unwrap().look(0, &mut embed).unwrap();
        assert_eq!((look.knn, look.linear), (None, None), "seven queries are too few");
    }

    #[test]
    fn labelled_images_may_lie_elsewhere() {
        let (flat, labelled) = (tempfile::tempdir().unwrap(), folder_of(100));
        (0..30).for_each(|index| write_bitmap(&flat.path().join(format!("{index}.bmp")), index));
        let look = |data| {
            let watch = WatchConfig { data, ..WatchConfig::default() };
            watcher(flat.path(), &watch).unwrap().look(0, &mut embed).unwrap()
        };
        assert_eq!(look(None).knn, None);
        assert_eq!(look(Some(labelled.path().into())).knn, Some(1.));
    }

    #[test]
    fn a_model_that_is_broken_is_an_error() {
        let root = folder_of(40);
        let watcher = watcher(root.path(), &WatchConfig::default()).unwrap();
        let message = |embed: &mut dyn FnMut(&[f32], usize) -> Result<EmbeddedImages>| {
            watcher.look(7, embed).unwrap_err().to_string()
        };
        let not_finite = message(&mut |pixels, count| {
            let mut embedded = embed(pixels, count)?;
            embedded.features[4 * 3 + 2] = f32::NAN;
            Ok(embedded)
        });
        assert_eq!(not_finite, "the features of watched image 3 are not finite after step: 7");
        let short = message(&mut |pixels, count| {
            let mut embedded = embed(pixels, count)?;
            embedded.embeddings.pop();
            Ok(embedded)
        });
        assert_eq!(
            short,
            "the embeddings of 38 watched images must have rows of equal length, got numbers: 113"
        );
    }
}
