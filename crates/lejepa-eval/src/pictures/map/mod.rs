//! Features on a plane: where images lie to each other, by two of their principal components and by t-SNE.

mod neighbour_map;
mod principal_map;
mod sprite;

use serde::{Deserialize, Serialize};

pub(crate) use neighbour_map::neighbour_map;
pub(crate) use principal_map::principal_map;
pub use sprite::Sprite;

/// Places of images on a plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingMap {
    /// How they were found.
    pub method: MapMethod,
    /// Horizontal and vertical, one pair per image.
    pub places: Vec<[f32; 2]>,
}

/// How features become places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapMethod {
    /// The first two principal components.
    Pca {
        /// Their share of the variance.
        variance: f64,
    },
    /// t-SNE of the first principal components, begun at the first two.
    Tsne {
        /// About how many neighbours an image has.
        perplexity: f64,
    },
}

/// Digits that can be seen on a map.
pub(crate) fn rounded(value: f64) -> f32 {
    format!("{value:.3e}").parse().unwrap_or(0.)
}
