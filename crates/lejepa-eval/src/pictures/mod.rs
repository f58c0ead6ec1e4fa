//! Some images of a set as encoders see them, for its report.

mod illustration;
mod map;
mod selection;
mod settings;

use serde::{Deserialize, Serialize};

pub(crate) use illustration::Illustration;
pub use map::{EmbeddingMap, MapMethod, Sprite};
pub use settings::Pictures;

use lejepa_picture::Jpeg;

/// Maps and pictures of some test images of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetPictures {
    /// Images on the maps, class by class.
    pub points: Vec<ShownImage>,
    /// All of them, in the same order.
    pub thumbnails: Sprite,
    /// Images of which there are pictures.
    pub images: Vec<ShownImage>,
    /// One entry per candidate, in the order of drawing.
    pub candidates: Vec<CandidatePictures>,
}

/// A test image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownImage {
    /// The file, or file and place in it.
    pub id: String,
    /// The number of its class.
    pub label: usize,
}

/// What one kind of features looks like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidatePictures {
    /// The name of its [`CandidateInfo`](crate::report::CandidateInfo).
    pub candidate: String,
    /// Places of all points.
    pub maps: Vec<EmbeddingMap>,
    /// One per image; none for features without places in the image, such as raw pixels.
    pub patches: Vec<PatchPictures>,
}

/// What an encoder sees in one image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchPictures {
    /// The part of the image that it sees.
    pub image: Jpeg,
    /// The first three principal components of its patches.
    pub components: Jpeg,
    /// What a class token looks at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention: Option<AttentionJpegs>,
}

/// The mean over heads in two pictures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttentionJpegs {
    /// The attention.
    pub heat: Jpeg,
    /// The patches that hold most of it.
    pub mask: Jpeg,
}
