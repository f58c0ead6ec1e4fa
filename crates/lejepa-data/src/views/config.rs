//! The `[views]` table of a recipe, and presets for common kinds of images.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{Error, Result};

/// The `[views]` table of a recipe. The defaults are the paper's, for natural images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ViewsConfig {
    /// A preset's name or a TOML file, for the keys that are not given; spelt out when a recipe is read.
    #[serde(skip_serializing)]
    pub preset: Option<String>,
    /// Large crops at the encoder's image size; their mean is the centre that all views predict.
    #[serde(deserialize_with = "global_crops")]
    pub global: CropConfig,
    /// Small crops at `local_size`.
    #[serde(deserialize_with = "local_crops")]
    pub local: CropConfig,
    /// Side of local views in pixels; 3/7 of the image size, in whole patches, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_size: Option<usize>,
    /// Probability of left and right exchanged.
    pub flip: f64,
    /// Probability of top and bottom exchanged.
    pub flip_vertical: f64,
    /// Probability of a turn by 90, 180 or 270 degrees.
    pub quarter_turns: f64,
    /// Probability that brightness, contrast, saturation and hue are changed, in random order.
    pub jitter: f64,
    /// Brightness is multiplied by a number in `[1 - brightness, 1 + brightness]`.
    pub brightness: f64,
    /// Contrast is multiplied by a number in `[1 - contrast, 1 + contrast]`.
    pub contrast: f64,
    /// Saturation is multiplied by a number in `[1 - saturation, 1 + saturation]`.
    pub saturation: f64,
    /// Hue is turned by a share of the colour circle in `[-hue, hue]`.
    pub hue: f64,
    /// Probability that colours are taken away.
    pub grey: f64,
    /// Probability of a Gaussian blur.
    pub blur: f64,
    /// Its standard deviation in pixels: smallest and largest.
    pub blur_sigma: [f64; 2],
    /// Its width in pixels, an odd number.
    pub blur_kernel: usize,
    /// Probability that bright values are inverted.
    pub solarize: f64,
    /// From which value on, 0 to 255.
    pub solarize_threshold: u8,
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

/// Crops of one kind, of which single keys are given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SomeOfCrops {
    count: Option<usize>,
    scale: Option<[f64; 2]>,
}

impl SomeOfCrops {
    fn over(self, default: CropConfig) -> CropConfig {
        let Self { count, scale } = self;
        CropConfig { count: count.unwrap_or(default.count), scale: scale.unwrap_or(default.scale) }
    }
}

fn global_crops<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<CropConfig, D::Error> {
    Ok(SomeOfCrops::deserialize(deserializer)?.over(ViewsConfig::default().global))
}

fn local_crops<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<CropConfig, D::Error> {
    Ok(SomeOfCrops::deserialize(deserializer)?.over(ViewsConfig::default().local))
}

impl Default for ViewsConfig {
    fn default() -> Self {
        Self {
            preset: None,
            global: CropConfig { count: 2, scale: [0.3, 1.] },
            local: CropConfig { count: 6, scale: [0.05, 0.3] },
            local_size: None,
            flip: 0.5,
            flip_vertical: 0.,
            quarter_turns: 0.,
            jitter: 0.8,
            brightness: 0.4,
            contrast: 0.4,
            saturation: 0.2,
            hue: 0.1,
            grey: 0.2,
            blur: 0.5,
            blur_sigma: [0.1, 2.],
            blur_kernel: 7,
            solarize: 0.2,
            solarize_threshold: 128,
        }
    }
}

impl ViewsConfig {
    /// The presets by name, each the text of a `[views]` table.
    pub const PRESETS: [(&str, &str); 4] = [
        ("natural", include_str!("../../presets/natural.toml")),
        ("small", include_str!("../../presets/small.toml")),
        ("grey", include_str!("../../presets/grey.toml")),
        ("galaxies", include_str!("../../presets/galaxies.toml")),
    ];

    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        let refuse = |field, expected: &str, got: String| {
            Err(Error::Setting { field, expected: expected.into(), got })
        };
        if let Some(preset) = &self.preset {
            // Nobody looks it up any more at this point.
            return refuse("views.preset", "replaced by the keys of the preset", preset.clone());
        }
        if self.global.count == 0 {
            return refuse("views.global.count", "at least 1", "0".into());
        }
        if self.global.count + self.local.count < 2 {
            return refuse("views.local.count", "at least 1 when there is one global view", "0".into());
        }
        if self.global.count + self.local.count > Self::MOST_VIEWS {
            let got = (self.global.count + self.local.count).to_string();
            return refuse("views.local.count", "at most 1000 together with the global views", got);
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
            ("views.flip_vertical", self.flip_vertical),
            ("views.quarter_turns", self.quarter_turns),
            ("views.jitter", self.jitter),
            ("views.brightness", self.brightness),
            ("views.contrast", self.contrast),
            ("views.saturation", self.saturation),
            ("views.grey", self.grey),
            ("views.blur", self.blur),
            ("views.solarize", self.solarize),
        ] {
            if !(0. ..=1.).contains(&share) {
                return refuse(field, "between 0 and 1", share.to_string());
            }
        }
        if !(0. ..=0.5).contains(&self.hue) {
            return refuse("views.hue", "between 0 and 0.5", self.hue.to_string());
        }
        let [narrowest, widest] = self.blur_sigma;
        if !(0. < narrowest && narrowest <= widest && widest <= 100.) {
            let got = format!("[{narrowest}, {widest}]");
            return refuse(
                "views.blur_sigma",
                "[smallest, largest] with 0 < smallest <= largest <= 100",
                got,
            );
        }
        if self.blur_kernel.is_multiple_of(2) || self.blur_kernel > Self::WIDEST_KERNEL {
            return refuse("views.blur_kernel", "an odd number up to 99", self.blur_kernel.to_string());
        }
        Ok(())
    }

    const MOST_VIEWS: usize = 1000;
    pub(crate) const WIDEST_KERNEL: usize = 99;
}
