//! Which encoder to build: a timm name, or `vit` with sizes of one's own.

use serde::{Deserialize, Serialize};

use crate::{EncoderShape, Error, ImageSize, Result, VitShape};

/// The `[encoder]` table of a recipe, as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EncoderConfig {
    /// A timm name such as `vit_tiny_patch16_224`, or `vit` with the sizes below.
    pub arch: String,
    /// Pixels of a global view; the name's own size if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_size: Option<ImageSize>,
    /// 1 for grey images, 3 for colour.
    pub channels: usize,
    /// Side of a patch in pixels; only with `vit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_size: Option<usize>,
    /// Width of a token; only with `vit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// Number of blocks; only with `vit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    /// drop path
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_path: Option<f64>,
    /// Attention heads; only with `vit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<usize>,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            arch: "vit_tiny_patch16_224".into(),
            image_size: None,
            channels: 3,
            patch_size: None,
            dim: None,
            depth: None,
            drop_path: None,
            heads: None,
        }
    }
}

impl EncoderConfig {
    /// The sizes that the table stands for, checked.
    pub fn resolve(&self) -> Result<EncoderShape> {
        let shape = if self.arch == "vit" { self.own_sizes()? } else { self.named_sizes()? };
        shape.check()?;
        Ok(EncoderShape::Vit(shape))
    }

    fn own_sizes(&self) -> Result<VitShape> {
        let required = |field, value: Option<usize>| {
            value.ok_or_else(|| Error::Setting {
                field,
                expected: "given when encoder.arch is \"vit\"".into(),
                got: "nothing".into(),
            })
        };
        Ok(VitShape {
            image_size: self.image_size.ok_or_else(|| Error::Setting {
                field: "encoder.image_size",
                expected: "given when encoder.arch is \"vit\"".into(),
                got: "nothing".into(),
            })?,
            patch_size: required("encoder.patch_size", self.patch_size)?,
            channels: self.channels,
            dim: required("encoder.dim", self.dim)?,
            depth: required("encoder.depth", self.depth)?,
            heads: required("encoder.heads", self.heads)?,
        })
    }

    fn named_sizes(&self) -> Result<VitShape> {
        let named = timm_shape(&self.arch).ok_or_else(|| Error::Setting {
            field: "encoder.arch",
            expected: "\"vit\" or a name like vit_tiny_patch16_224 (tiny, small, base, large)".into(),
            got: format!("{:?}", self.arch),
        })?;
        let fixed_by_name = [
            ("encoder.patch_size", self.patch_size),
            ("encoder.dim", self.dim),
            ("encoder.depth", self.depth),
            ("encoder.heads", self.heads),
        ];
        for (field, value) in fixed_by_name {
            if let Some(value) = value {
                return Err(Error::Setting {
                    field,
                    expected: format!("absent, because {} fixes it (own sizes: arch = \"vit\")", self.arch),
                    got: value.to_string(),
                });
            }
        }
        Ok(VitShape {
            image_size: self.image_size.unwrap_or(named.image_size),
            channels: self.channels,
            ..named
        })
    }
}

/// Reads `vit_{size}_patch{P}_{S}`.
fn timm_shape(name: &str) -> Option<VitShape> {
    let (size, rest) = name.strip_prefix("vit_")?.split_once("_patch")?;
    let (patch_size, image_size) = rest.split_once('_')?;
    let (dim, depth, heads) = match size {
        "tiny" => (192, 12, 3),
        "small" => (384, 12, 6),
        "base" => (768, 12, 12),
        "large" => (1024, 24, 16),
        _ => return None,
    };
    let image_size: usize = image_size.parse().ok()?;
    Some(VitShape {
        image_size: image_size.into(),
        patch_size: patch_size.parse().ok()?,
        channels: 3,
        dim,
        depth,
        heads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timm_name_gives_timms_sizes() {
        let config = EncoderConfig { arch: "vit_small_patch14_224".into(), ..Default::default() };
        let EncoderShape::Vit(shape) = config.resolve().unwrap() else { unreachable!() };
        assert_eq!((shape.dim, shape.depth, shape.heads, shape.patch_size), (384, 12, 6, 14));
        assert_eq!(shape.grid(), ImageSize::from(16));
    }

    #[test]
    fn a_size_that_the_name_fixes_is_refused() {
        let config = EncoderConfig { dim: Some(64), ..Default::default() };
        let message = config.resolve().unwrap_err().to_string();
        assert!(message.contains("encoder.dim") && message.contains("vit_tiny_patch16_224"), "{message}");
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let own = EncoderConfig {
            arch: "vit".into(),
            image_size: Some(28.into()),
            channels: 1,
            patch_size: Some(7),
            dim: Some(64),
            depth: Some(2),
            drop_path: None,
            heads: Some(4),
        };
        assert!(own.resolve().is_ok());
        let field = |config: EncoderConfig| config.resolve().unwrap_err().to_string();
        assert!(field(EncoderConfig { patch_size: Some(5), ..own.clone() }).contains("encoder.patch_size"));
        assert!(field(EncoderConfig { patch_size: Some(0), ..own.clone() }).contains("encoder.patch_size"));
        assert!(field(EncoderConfig { heads: Some(3), ..own.clone() }).contains("encoder.heads"));
        assert!(field(EncoderConfig { heads: Some(0), ..own.clone() }).contains("encoder.heads"));
        assert!(field(EncoderConfig { depth: Some(0), ..own.clone() }).contains("encoder.depth"));
        assert!(field(EncoderConfig { channels: 2, ..own.clone() }).contains("encoder.channels"));
        assert!(field(EncoderConfig { dim: None, ..own.clone() }).contains("encoder.dim"));
        assert!(field(EncoderConfig { arch: "resnet9000".into(), ..own }).contains("encoder.arch"));
    }
}
