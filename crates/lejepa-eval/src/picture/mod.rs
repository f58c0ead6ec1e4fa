//! Pictures of what an encoder sees: patch features as colours, attention as masks.

mod attention_mask;
mod attention_picture;
pub(crate) mod directions;
mod jpeg;
mod longer_side;
mod overlay;
mod palette;
mod patch_colours;
mod seen;
mod upsample;

pub use attention_mask::{ATTENTION_MASS, attention_mask, mean_attention};
pub use attention_picture::{AttentionPicture, AttentionPictures, attention_sheet};
pub use jpeg::Jpeg;
pub(crate) use longer_side::with_longer_side;
pub use overlay::Overlay;
pub use palette::heat;
pub use patch_colours::{ComponentsOf, PatchColours, patch_colours};
pub use seen::seen;
pub use upsample::Upsampling;
