//! timm's names of ConvNeXt V2.

use crate::ConvNextShape;

/// Names to suggest.
pub(super) const TIMM: [&str; 8] = [
    "convnextv2_atto",
    "convnextv2_femto",
    "convnextv2_pico",
    "convnextv2_nano",
    "convnextv2_tiny",
    "convnextv2_base",
    "convnextv2_large",
    "convnextv2_huge",
];

impl ConvNextShape {
    /// The sizes behind a timm name such as `convnextv2_atto`.
    pub fn named(name: &str) -> Option<Self> {
        let (depths, first, conv_mlp) = match name.strip_prefix("convnextv2_")? {
            "atto" => ([2, 2, 6, 2], 40, true),
            "femto" => ([2, 2, 6, 2], 48, true),
            "pico" => ([2, 2, 6, 2], 64, true),
            "nano" => ([2, 2, 8, 2], 80, true),
            "tiny" => ([3, 3, 9, 3], 96, false),
            "small" => ([3, 3, 27, 3], 96, false),
            "base" => ([3, 3, 27, 3], 128, false),
            "large" => ([3, 3, 27, 3], 192, false),
            "huge" => ([3, 3, 27, 3], 352, false),
            _ => return None,
        };
        let widths = [first, 2 * first, 4 * first, 8 * first];
        Some(Self { image_size: 224.into(), channels: 3, depths, widths, conv_mlp, drop_path: 0. })
    }
}
