//! timm's names of residual networks.

use crate::{ResNetBlock, ResNetShape};

/// Names to suggest.
pub(super) const TIMM: [&str; 6] =
    ["resnet18", "resnet34", "resnet50", "resnet101", "resnext50_32x4d", "resnext101_32x8d"];

impl ResNetShape {
    /// The sizes behind a timm name such as `resnet18` or `resnext50_32x4d`.
    pub fn named(name: &str) -> Option<Self> {
        use ResNetBlock::{Basic, Bottleneck};
        let (block, depths, groups, group_width) = match name {
            "resnet18" => (Basic, [2, 2, 2, 2], 1, 64),
            "resnet34" => (Basic, [3, 4, 6, 3], 1, 64),
            "resnet50" => (Bottleneck, [3, 4, 6, 3], 1, 64),
            "resnet101" => (Bottleneck, [3, 4, 23, 3], 1, 64),
            "resnet152" => (Bottleneck, [3, 8, 36, 3], 1, 64),
            "resnext50_32x4d" => (Bottleneck, [3, 4, 6, 3], 32, 4),
            "resnext101_32x4d" => (Bottleneck, [3, 4, 23, 3], 32, 4),
            "resnext101_32x8d" => (Bottleneck, [3, 4, 23, 3], 32, 8),
            "resnext101_64x4d" => (Bottleneck, [3, 4, 23, 3], 64, 4),
            _ => return None,
        };
        let widths = [64, 128, 256, 512];
        let image_size = 224.into();
        Some(Self { image_size, channels: 3, block, depths, widths, groups, group_width, drop_path: 0. })
    }
}
