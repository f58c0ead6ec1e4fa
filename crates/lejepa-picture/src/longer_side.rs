//! Images made small with their proportions.

use lejepa_data::Image;

use crate::Result;

/// The whole image with its longer side as long as this.
pub fn with_longer_side(image: &Image, side: usize) -> Result<Image> {
    let longer = image.height().max(image.width());
    let scaled = |length: usize| (length * side).div_ceil(longer);
    Ok(image.resized(scaled(image.height()), scaled(image.width()))?)
}
