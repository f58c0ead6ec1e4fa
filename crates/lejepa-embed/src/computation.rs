//! What computed a number.

use lejepa_data::Preprocess;
use serde::{Deserialize, Serialize};

/// All that decides what an encoder makes of an image. Results that are kept are named by it, together with
/// the images that they are of: two that differ in any of it are never mixed.
///
/// Threads and sessions are not part of it: ONNX Runtime shares out rows and columns of a product, never one
/// of its sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Computation {
    /// [`Computation::VERSION`] of the program.
    pub version: u32,
    /// [`Encoder::fingerprint`](crate::Encoder::fingerprint).
    pub encoder: String,
    /// The output's name in the graph.
    pub output: String,
    /// From an image to the input.
    pub preprocess: Preprocess,
    /// Whether vectors are scaled to length one.
    pub normalised: bool,
    /// Images of one inference: sums of larger products are taken in another order.
    pub batch: usize,
    /// The device.
    pub provider: String,
    /// The version of ONNX Runtime.
    pub runtime: String,
    /// The version of the program's decoding and resizing of images.
    pub decoding: u32,
}

impl Computation {
    /// Counts changes of how this crate computes, such as the settings of sessions.
    pub const VERSION: u32 = 1;
}
