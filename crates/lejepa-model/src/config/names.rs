//! What to say of a name that nothing is known by.

use crate::family::FAMILIES;

/// Edits that a slip of the fingers makes, or two.
const CLOSE: usize = 3;

/// The families and, if one is close, the name that was meant.
pub(super) fn expected(name: &str) -> String {
    let quoted = FAMILIES.iter().map(|family| format!("{:?}", family.name())).collect::<Vec<_>>().join(", ");
    let examples =
        FAMILIES.iter().flat_map(|family| family.examples()).copied().collect::<Vec<_>>().join(", ");
    let families = format!("{quoted} or a name like {examples}");
    // timm's tag of pretrained weights is not part of the architecture.
    let name = name.split_once('.').map_or(name, |(name, _tag)| name).to_lowercase();
    let known = FAMILIES.iter().flat_map(|family| family.timm_names());
    match known.min_by_key(|known| strsim::damerau_levenshtein(known, &name)) {
        Some(nearest) if strsim::damerau_levenshtein(nearest, &name) <= CLOSE => {
            format!("{families} (the nearest is {nearest})")
        }
        _ => families,
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
