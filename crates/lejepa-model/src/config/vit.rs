//! Vision transformers: sizes of one's own, and those behind timm's names.

use super::EncoderConfig;
use super::fields::Allowed;
use crate::{EncoderShape, Error, Result, VitShape};

/// What every vision transformer has and no name fixes.
const OPTIONS: [&str; 7] =
    ["image_size", "registers", "layer_scale", "pool", "class_token", "embed_prefix", "drop_path"];
/// What a name fixes.
const SIZES: [&str; 5] = ["patch_size", "dim", "depth", "heads", "mlp_hidden"];

impl EncoderConfig {
    pub(super) fn own_vit(&self) -> Result<VitShape> {
        let fields = [OPTIONS.as_slice(), &SIZES].concat();
        self.allow(&Allowed { family: "vit", fields: &fields, fixed: &[] })?;
        let dim = self.required("encoder.dim", self.dim)?;
        let shape = VitShape {
            image_size: self.required("encoder.image_size", self.image_size)?,
            patch_size: self.required("encoder.patch_size", self.patch_size)?,
            dim,
            depth: self.required("encoder.depth", self.depth)?,
            heads: self.required("encoder.heads", self.heads)?,
            mlp_hidden: self.mlp_hidden.unwrap_or(dim.saturating_mul(4)),
            ..Default::default()
        };
        self.with_options(shape)
    }

    pub(super) fn named_vit(&self) -> Result<Option<EncoderShape>> {
        if matches!(self.arch.as_str(), "vit_giant_patch14_dinov2" | "vit_giant_patch14_reg4_dinov2") {
            return Err(Error::Setting {
                field: "encoder.arch",
                expected:
                    "a smaller DINOv2, because the giant one has SwiGLU perceptrons, which are not built"
                        .into(),
                got: format!("{:?}", self.arch),
            });
        }
        let Some(shape) = timm_shape(&self.arch) else { return Ok(None) };
        let mut fixed = SIZES.to_vec();
        if shape.registers > 0 {
            fixed.push("registers");
        }
        self.allow(&Allowed { family: "vit", fields: &OPTIONS, fixed: &fixed })?;
        let image_size = self.image_size.unwrap_or(shape.image_size);
        Ok(Some(EncoderShape::Vit(self.with_options(VitShape { image_size, ..shape })?)))
    }

    fn with_options(&self, shape: VitShape) -> Result<VitShape> {
        let shape = VitShape {
            channels: self.channels,
            registers: self.registers.unwrap_or(shape.registers),
            layer_scale: self.layer_scale.or(shape.layer_scale),
            pool: self.pool.unwrap_or(shape.pool),
            class_token: self.class_token.unwrap_or(shape.class_token),
            embed_prefix: self.embed_prefix.unwrap_or(shape.embed_prefix),
            drop_path: self.drop_path.unwrap_or(shape.drop_path),
            ..shape
        };
        match self.embed_prefix {
            Some(given) if shape.prefix() == 0 => Err(Error::Setting {
                field: "encoder.embed_prefix",
                expected: "absent without class token and registers".into(),
                got: given.to_string(),
            }),
            _ => Ok(shape),
        }
    }
}

/// Reads `vit_{size}_patch{P}_{S}`, `vit_{size}_patch{P}_reg{N}_{S}` and timm's DINOv2 names.
fn timm_shape(name: &str) -> Option<VitShape> {
    let (size, rest) = name.strip_prefix("vit_")?.split_once("_patch")?;
    let (patch_size, rest) = rest.split_once('_')?;
    let (registers, training) = match rest.strip_prefix("reg") {
        Some(rest) => rest.split_once('_')?,
        None => ("0", rest),
    };
    let (registers, patch_size) = (number(registers)?, number(patch_size)?);
    let dinov2 = training == "dinov2";
    if dinov2
        && !(patch_size == 14 && [0, 4].contains(&registers) && ["small", "base", "large"].contains(&size))
    {
        return None;
    }
    let (dim, depth, heads, mlp_hidden) = match size {
        "tiny" => (192, 12, 3, 768),
        "small" => (384, 12, 6, 1536),
        "base" => (768, 12, 12, 3072),
        "large" => (1024, 24, 16, 4096),
        "huge" => (1280, 32, 16, 5120),
        "giant" => (1408, 40, 16, 6144),
        "gigantic" => (1664, 48, 16, 8192),
        _ => return None,
    };
    Some(VitShape {
        image_size: if dinov2 { 518 } else { number(training)? }.into(),
        patch_size,
        dim,
        depth,
        heads,
        mlp_hidden,
        registers,
        embed_prefix: registers == 0,
        layer_scale: dinov2.then_some(1e-5),
        ..Default::default()
    })
}

/// Digits alone: `parse` would take a sign too.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
