//! Encoders of other projects.

use lejepa_data::Preprocess;

/// What has to be known of an ONNX image encoder that does not say it itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignEncoder {
    /// From an image to its input; [`Preprocess::from_hub`] reads a `preprocessor_config.json`.
    pub preprocess: Preprocess,
    /// The output that is the embedding, `(batch, dim)`; needed if there are several.
    pub output: Option<String>,
}
