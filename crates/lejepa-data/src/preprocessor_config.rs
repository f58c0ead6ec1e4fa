//! `preprocessor_config.json`, in which the Hugging Face hub describes how an image is prepared.

use serde_json::{Value, json};

use crate::{Error, Interpolation, Preprocess, ResizeRule, Result};

/// Pillow's numbers of its filters.
const BILINEAR: u64 = 2;
const BICUBIC: u64 = 3;

impl Preprocess {
    /// The description as other tools read it.
    pub fn to_hub(&self) -> Value {
        let size = match self.resize {
            ResizeRule::ShortSide(side) => json!({ "shortest_edge": side }),
            ResizeRule::Squash => json!({ "height": self.crop_height, "width": self.crop_width }),
        };
        let resample = match self.interpolation {
            Interpolation::Bicubic => BICUBIC,
            Interpolation::Bilinear => BILINEAR,
        };
        // Through text: 0.485 shall not become 0.48500001430511475.
        let decimal = |values: &[f32]| -> Vec<f64> {
            values.iter().map(|value| value.to_string().parse().unwrap_or(f64::from(*value))).collect()
        };
        json!({
            "image_processor_type": "BitImageProcessor",
            "do_convert_rgb": self.channels == 3,
            "do_resize": true,
            "size": size,
            "resample": resample,
            "do_center_crop": matches!(self.resize, ResizeRule::ShortSide(_)),
            "crop_size": { "height": self.crop_height, "width": self.crop_width },
            "do_rescale": true,
            "rescale_factor": 1. / 255.,
            "do_normalize": true,
            "image_mean": decimal(&self.mean),
            "image_std": decimal(&self.std),
        })
    }

    /// Reads such a description; what this crate cannot do is refused.
    pub fn from_hub(config: &Value) -> Result<Self> {
        let refuse = |field, expected: &str, got: &Value| {
            Err(Error::Setting { field, expected: expected.into(), got: got.to_string() })
        };
        for (field, name) in
            [("do_resize", "do_resize"), ("do_rescale", "do_rescale"), ("do_normalize", "do_normalize")]
        {
            if config.get(name).is_some_and(|value| value != true) {
                return refuse(field, "true", &config[name]);
            }
        }
        if let Some(factor) = config.get("rescale_factor")
            && !factor.as_f64().is_some_and(|factor| (factor * 255. - 1.).abs() < 1e-3)
        {
            return refuse("rescale_factor", "1/255", factor);
        }
        let interpolation = match config.get("resample").map(|resample| (resample.as_u64(), resample)) {
            None | Some((Some(BICUBIC), _)) => Interpolation::Bicubic,
            Some((Some(BILINEAR), _)) => Interpolation::Bilinear,
            Some((_, other)) => return refuse("resample", "2 (bilinear) or 3 (bicubic)", other),
        };
        let (resize, resized) = size(config, "size")?;
        let cropped = config.get("do_center_crop").is_some_and(|value| value == true);
        let (crop_height, crop_width) = match (cropped, resized) {
            (true, _) => match size(config, "crop_size")? {
                (ResizeRule::ShortSide(side), _) => (side, side),
                (ResizeRule::Squash, sides) => sides,
            },
            (false, sides) if resize == ResizeRule::Squash => sides,
            (false, _) => {
                return refuse("do_center_crop", "true where only one side is given", &config["size"]);
            }
        };
        if cropped && resize == ResizeRule::Squash && resized != (crop_height, crop_width) {
            return refuse("crop_size", "the same as `size`", &config["crop_size"]);
        }
        let (mean, std) = (numbers(config, "image_mean")?, numbers(config, "image_std")?);
        let preprocess =
            Self { resize, interpolation, crop_height, crop_width, channels: mean.len(), mean, std };
        preprocess.check()?;
        Ok(preprocess)
    }
}

/// A size that is a number (the short side), `{"shortest_edge": ..}` or `{"height": .., "width": ..}`.
fn size(config: &Value, field: &'static str) -> Result<(ResizeRule, (usize, usize))> {
    let value = &config[field];
    let side = |value: &Value| value.as_u64().and_then(|side| usize::try_from(side).ok());
    let short = side(value).or_else(|| side(&value["shortest_edge"]));
    match (short, side(&value["height"]), side(&value["width"])) {
        (Some(short), _, _) => Ok((ResizeRule::ShortSide(short), (short, short))),
        (None, Some(height), Some(width)) => Ok((ResizeRule::Squash, (height, width))),
        _ => Err(Error::Setting {
            field,
            expected: "{\"shortest_edge\": pixels} or {\"height\": pixels, \"width\": pixels}".into(),
            got: value.to_string(),
        }),
    }
}

fn numbers(config: &Value, field: &'static str) -> Result<Vec<f32>> {
    let values: Option<Vec<f32>> = config[field]
        .as_array()
        .and_then(|values| values.iter().map(|value| value.as_f64().map(|value| value as f32)).collect());
    let expected = "a number per channel".to_string();
    values.ok_or_else(|| Error::Setting { field, expected, got: config[field].to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_survives_the_way_through_the_hubs_form() {
        let usual = Preprocess::new(256, (224, 192), 3);
        let squashed = Preprocess {
            resize: ResizeRule::Squash,
            interpolation: Interpolation::Bilinear,
            ..Preprocess::new(32, (32, 48), 1)
        };
        for preprocess in [usual, squashed] {
            assert_eq!(Preprocess::from_hub(&preprocess.to_hub()).unwrap(), preprocess);
        }
        assert_eq!(Preprocess::new(256, (224, 192), 3).to_hub()["image_mean"], json!([0.485, 0.456, 0.406]));
    }

    #[test]
    fn descriptions_from_the_hub_are_understood() {
        let dinov2 = json!({
            "crop_size": {"height": 224, "width": 224}, "do_center_crop": true, "do_resize": true,
            "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
            "resample": 3, "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}
        });
        assert_eq!(Preprocess::from_hub(&dinov2).unwrap(), Preprocess::new(256, (224, 224), 3));
        let vit = json!({
            "do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5], "resample": 2, "size": {"height": 224, "width": 224}
        });
        let vit = Preprocess::from_hub(&vit).unwrap();
        assert_eq!((vit.resize, vit.interpolation), (ResizeRule::Squash, Interpolation::Bilinear));
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let good = Preprocess::new(256, (224, 224), 3).to_hub();
        for (field, value) in [
            ("resample", json!(0)),
            ("do_normalize", json!(false)),
            ("rescale_factor", json!(1)),
            ("size", json!({"longest_edge": 5})),
            ("crop_size", json!("large")),
            ("image_mean", json!([0.5, "x"])),
            ("image_std", Value::Null),
        ] {
            let mut config = good.clone();
            config[field] = value;
            let message = Preprocess::from_hub(&config).unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
    }
}
