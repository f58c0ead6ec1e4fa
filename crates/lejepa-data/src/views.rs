//! The views of a sample: random resized crops, flipped and recoloured (paper, section 5).

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::jitter::{adjust_brightness, adjust_contrast};
use crate::{CropBox, Error, Image, Preprocess, Result};

/// The `[views]` table of a recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ViewsConfig {
    /// Large crops at the encoder's image size; their mean is the centre that all views predict.
    pub global: CropConfig,
    /// Small crops at `local_size`.
    pub local: CropConfig,
    /// Side of local views in pixels; 3/7 of the image size, in whole patches, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_size: Option<usize>,
    /// Probability of a mirror image.
    pub flip: f64,
    /// Probability that brightness and contrast are changed.
    pub jitter: f64,
    /// Brightness is multiplied by a number in `[1 - brightness, 1 + brightness]`.
    pub brightness: f64,
    /// Contrast is multiplied by a number in `[1 - contrast, 1 + contrast]`.
    pub contrast: f64,
}

/// Crops of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CropConfig {
    /// How many per sample.
    pub count: usize,
    /// The share of the image's area that a crop covers: smallest and largest.
    pub scale: [f64; 2],
}

impl Default for ViewsConfig {
    fn default() -> Self {
        Self {
            global: CropConfig { count: 2, scale: [0.3, 1.] },
            local: CropConfig { count: 6, scale: [0.05, 0.3] },
            local_size: None,
            flip: 0.5,
            jitter: 0.8,
            brightness: 0.4,
            contrast: 0.4,
        }
    }
}

impl ViewsConfig {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        let refuse = |field, expected: &str, got: String| {
            Err(Error::Setting { field, expected: expected.into(), got })
        };
        if self.global.count == 0 {
            return refuse("views.global.count", "at least 1", "0".into());
        }
        if self.global.count + self.local.count < 2 {
            return refuse("views.local.count", "at least 1 when there is one global view", "0".into());
        }
        for (field, [smallest, largest]) in
            [("views.global.scale", self.global.scale), ("views.local.scale", self.local.scale)]
        {
            if !(0. < smallest && smallest <= largest && largest <= 1.) {
                let got = format!("[{smallest}, {largest}]");
                return refuse(field, "[smallest, largest] with 0 < smallest <= largest <= 1", got);
            }
        }
        for (field, share) in [
            ("views.flip", self.flip),
            ("views.jitter", self.jitter),
            ("views.brightness", self.brightness),
            ("views.contrast", self.contrast),
        ] {
            if !(0. ..=1.).contains(&share) {
                return refuse(field, "between 0 and 1", share.to_string());
            }
        }
        Ok(())
    }
}

/// Pixels of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewSize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// Makes the views of a sample.
#[derive(Debug, Clone)]
pub struct Views {
    config: ViewsConfig,
    global_size: ViewSize,
    local_size: ViewSize,
    normalise: Preprocess,
}

/// Crops' aspect ratios lie between this and its inverse.
const NARROWEST: f64 = 3. / 4.;

impl Views {
    /// Global views have the size of the encoder's input, which `preprocess` describes together with
    /// channels and normalisation.
    pub fn new(config: &ViewsConfig, preprocess: &Preprocess, local_size: ViewSize) -> Result<Self> {
        config.check()?;
        preprocess.check()?;
        let global_size = ViewSize { height: preprocess.crop_height, width: preprocess.crop_width };
        Ok(Self { config: config.clone(), global_size, local_size, normalise: preprocess.clone() })
    }

    /// Number and size of global views.
    pub fn global(&self) -> (usize, ViewSize) {
        (self.config.global.count, self.global_size)
    }

    /// Number and size of local views.
    pub fn local(&self) -> (usize, ViewSize) {
        (self.config.local.count, self.local_size)
    }

    /// Channels of every view.
    pub fn channels(&self) -> usize {
        self.normalise.channels
    }

    /// All views of an image, global ones first, each `(channels, height, width)`.
    pub fn make(&self, image: Image, generator: &mut ChaCha8Rng) -> Result<Vec<Vec<f32>>> {
        let image = image.with_channels(self.channels());
        let (global, local) = (&self.config.global, &self.config.local);
        let kinds = std::iter::repeat_n((global.scale, self.global_size), global.count)
            .chain(std::iter::repeat_n((local.scale, self.local_size), local.count));
        kinds.map(|(scale, size)| self.view(&image, scale, size, generator)).collect()
    }

    fn view(
        &self,
        image: &Image,
        scale: [f64; 2],
        size: ViewSize,
        generator: &mut ChaCha8Rng,
    ) -> Result<Vec<f32>> {
        let crop = random_crop(image.height(), image.width(), scale, generator);
        let mut view = image.resized_crop(crop, size.height, size.width)?;
        if generator.random_bool(self.config.flip) {
            view.flip_horizontally();
        }
        if generator.random_bool(self.config.jitter) {
            let mut factor = |range: f64| generator.random_range(1. - range..=1. + range) as f32;
            adjust_brightness(&mut view, factor(self.config.brightness));
            adjust_contrast(&mut view, factor(self.config.contrast));
        }
        let mut pixels = vec![0.; self.channels() * size.height * size.width];
        self.normalise.normalise_into(&view, &mut pixels)?;
        Ok(pixels)
    }
}

/// A crop of random area and aspect ratio, as torchvision draws it.
fn random_crop(height: usize, width: usize, scale: [f64; 2], generator: &mut ChaCha8Rng) -> CropBox {
    let area = (height * width) as f64;
    let widest = (1. / NARROWEST).ln();
    for _attempt in 0..10 {
        let target = area * generator.random_range(scale[0]..=scale[1]);
        let aspect = generator.random_range(-widest..=widest).exp();
        let crop_width = (target * aspect).sqrt().round() as usize;
        let crop_height = (target / aspect).sqrt().round() as usize;
        if (1..=width).contains(&crop_width) && (1..=height).contains(&crop_height) {
            return CropBox {
                top: generator.random_range(0..=height - crop_height),
                left: generator.random_range(0..=width - crop_width),
                height: crop_height,
                width: crop_width,
            };
        }
    }
    // No such crop fits a very long image: the largest centre crop of an allowed aspect ratio.
    let crop_height = height.min((width as f64 / NARROWEST).round().max(1.) as usize);
    let crop_width = width.min((height as f64 / NARROWEST).round().max(1.) as usize);
    CropBox {
        top: (height - crop_height) / 2,
        left: (width - crop_width) / 2,
        height: crop_height,
        width: crop_width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purpose, generator};

    #[test]
    fn crops_lie_inside_images_of_any_shape() {
        for (height, width) in [(1, 1), (1, 500), (500, 1), (28, 28), (20, 333)] {
            for part in 0..200 {
                let mut generator = generator(0, Purpose::Views, 0, part);
                let crop = random_crop(height, width, [0.05, 1.], &mut generator);
                assert!(crop.height >= 1 && crop.top + crop.height <= height, "{crop:?}");
                assert!(crop.width >= 1 && crop.left + crop.width <= width, "{crop:?}");
            }
        }
    }

    #[test]
    fn crops_cover_the_share_that_was_asked_for() {
        let shares: Vec<f64> = (0..500)
            .map(|part| {
                let mut generator = generator(0, Purpose::Views, 0, part);
                let crop = random_crop(100, 100, [0.2, 0.4], &mut generator);
                (crop.height * crop.width) as f64 / 10_000.
            })
            .collect();
        assert!(shares.iter().all(|share| (0.18..0.42).contains(share)));
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 0.3).abs() < 0.02, "{mean}");
    }

    #[test]
    fn views_have_the_sizes_that_were_asked_for() {
        let config = ViewsConfig { local_size: Some(14), ..Default::default() };
        let local = ViewSize { height: 14, width: 14 };
        let views = Views::new(&config, &Preprocess::new(28, (28, 20), 1), local).unwrap();
        let image = Image::from_pixels(40, 30, 3, vec![77; 40 * 30 * 3]).unwrap();
        let made = views.make(image, &mut generator(0, Purpose::Views, 0, 0)).unwrap();
        let sizes: Vec<usize> = made.iter().map(Vec::len).collect();
        assert_eq!(sizes, [560, 560, 196, 196, 196, 196, 196, 196]);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let message = |config: ViewsConfig| config.check().unwrap_err().to_string();
        let good = ViewsConfig::default();
        assert!(message(ViewsConfig { flip: 1.5, ..good.clone() }).contains("views.flip"));
        let none = CropConfig { count: 0, scale: [0.3, 1.] };
        assert!(message(ViewsConfig { global: none, ..good.clone() }).contains("views.global.count"));
        let reversed = CropConfig { count: 2, scale: [0.3, 0.1] };
        assert!(message(ViewsConfig { local: reversed, ..good }).contains("views.local.scale"));
    }
}
