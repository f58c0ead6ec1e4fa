//! One picture of a clip.

use std::time::Duration;

use lejepa_data::Image;

/// A picture of a clip.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The file's name without its ending, or the frame's number in five digits.
    pub name: String,
    /// What is seen.
    pub image: Image,
    /// How long it is seen.
    pub duration: Duration,
}

impl Frame {
    /// A frame with more pixels is refused before it is decoded; 8K films have fewer.
    pub const PIXEL_LIMIT: usize = 1 << 25;

    /// Names a frame of a file that has no names.
    pub(super) fn numbered(number: usize, image: Image, duration: Duration) -> Self {
        Self { name: format!("{number:05}"), image, duration }
    }

    pub(super) fn check_size(height: usize, width: usize) -> lejepa_data::Result<()> {
        let fits = height.checked_mul(width).is_some_and(|pixels| (1..=Self::PIXEL_LIMIT).contains(&pixels));
        let refused = lejepa_data::Error::ImageSize { height, width, limit: Self::PIXEL_LIMIT };
        if fits { Ok(()) } else { Err(refused) }
    }
}
