//! timm's names of vision transformers.

use crate::{Error, Result, VitShape};

/// Names to suggest.
pub(super) const TIMM: [&str; 19] = [
    "vit_tiny_patch16_224",
    "vit_small_patch8_224",
    "vit_small_patch14_224",
    "vit_small_patch16_224",
    "vit_base_patch8_224",
    "vit_base_patch14_224",
    "vit_base_patch16_224",
    "vit_base_patch32_224",
    "vit_large_patch14_224",
    "vit_large_patch16_224",
    "vit_huge_patch14_224",
    "vit_giant_patch14_224",
    "vit_gigantic_patch14_224",
    "vit_small_patch14_dinov2",
    "vit_base_patch14_dinov2",
    "vit_large_patch14_dinov2",
    "vit_small_patch14_reg4_dinov2",
    "vit_base_patch14_reg4_dinov2",
    "vit_large_patch14_reg4_dinov2",
];

/// The sizes behind a name; an error for one that cannot be built.
pub(super) fn named(arch: &str) -> Result<Option<VitShape>> {
    if matches!(arch, "vit_giant_patch14_dinov2" | "vit_giant_patch14_reg4_dinov2") {
        return Err(Error::Setting {
            field: "encoder.arch",
            expected: "a smaller DINOv2, because the giant one has SwiGLU perceptrons, which are not built"
                .into(),
            got: format!("{arch:?}"),
        });
    }
    Ok(timm_shape(arch))
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
