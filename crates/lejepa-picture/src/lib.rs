//! Draws what an encoder sees in an image: patch features as colours, attention as masks.
//!
//! [`patch_colours`] makes red, green and blue of the first three principal components of patches,
//! [`AttentionPictures`] draws what a class token looks at.
//!
//! ```
//! use lejepa_picture::{ATTENTION_MASS, attention_mask};
//! use ndarray::array;
//!
//! let mask = attention_mask(array![[0.1, 0.7], [0.1, 0.1]].view(), ATTENTION_MASS)?;
//! assert_eq!(mask, array![[false, true], [false, false]]);
//! # Ok::<(), lejepa_picture::Error>(())
//! ```

mod attention_mask;
mod attention_picture;
mod directions;
mod error;
mod jpeg;
mod longer_side;
mod overlay;
mod palette;
mod patch_colours;
mod seen;
mod upsample;

pub use attention_mask::{ATTENTION_MASS, attention_mask, mean_attention};
pub use attention_picture::{AttentionPicture, AttentionPictures, attention_sheet};
pub use directions::{Directions, WIDE, WIDE_SAMPLES};
pub use error::{Error, Result};
pub use jpeg::Jpeg;
pub use longer_side::with_longer_side;
pub use overlay::Overlay;
pub use palette::heat;
pub use patch_colours::{ComponentsOf, PatchColours, patch_colours};
pub use seen::seen;
pub use upsample::Upsampling;
