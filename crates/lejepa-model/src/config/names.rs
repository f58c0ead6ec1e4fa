//! What to say of a name that nothing is known by.

/// Names to suggest: what people write most, not all that can be built.
const KNOWN: [&str; 33] = [
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
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "convnextv2_atto",
    "convnextv2_femto",
    "convnextv2_pico",
    "convnextv2_nano",
    "convnextv2_tiny",
    "convnextv2_base",
    "convnextv2_large",
    "convnextv2_huge",
];

/// Edits that a slip of the fingers makes, or two.
const CLOSE: usize = 3;

/// The families and, if one is close, the name that was meant.
pub(super) fn expected(name: &str) -> String {
    let families = "\"vit\", \"resnet\", \"convnextv2\" or a name like vit_small_patch16_224, \
                    vit_small_patch14_reg4_dinov2, resnet50, resnext50_32x4d, convnextv2_tiny";
    // timm's tag of pretrained weights is not part of the architecture.
    let name = name.split_once('.').map_or(name, |(name, _tag)| name).to_lowercase();
    match KNOWN.into_iter().min_by_key(|known| strsim::damerau_levenshtein(known, &name)) {
        Some(nearest) if strsim::damerau_levenshtein(nearest, &name) <= CLOSE => {
            format!("{families} (the nearest is {nearest})")
        }
        _ => families.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_near() {
        assert!(expected("vit_smal_patch16_224").ends_with("(the nearest is vit_small_patch16_224)"));
        assert!(expected("resnet51").contains("(the nearest is resnet50)"));
        assert!(
            expected("vit_base_patch14_dinov2.lvd142m").contains("(the nearest is vit_base_patch14_dinov2)")
        );
        assert!(!expected("alexnet_of_2012").contains("nearest"));
    }
}
