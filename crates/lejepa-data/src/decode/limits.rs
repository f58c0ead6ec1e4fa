//! What one image may ask for before it is decoded.

use crate::Image;

/// Limits of an image from a stranger, of which each would let a small file take any time or memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Pixels.
    pub pixels: usize,
    /// Scans of a JPEG file, each a pass over all of its pixels.
    pub scans: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { pixels: Image::PIXEL_LIMIT, scans: Image::SCAN_LIMIT }
    }
}

impl From<usize> for DecodeLimits {
    fn from(pixels: usize) -> Self {
        Self { pixels, ..Self::default() }
    }
}
