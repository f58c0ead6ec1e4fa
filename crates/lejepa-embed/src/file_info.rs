//! What an encoder file says, without ONNX Runtime.

use std::path::Path;

use lejepa_data::{EncoderCard, SelfTest};

use crate::builder::{card_of, self_test_of};
use crate::model::Model;
use crate::{Error, FileLimits, GraphOutput, Result};

/// All that can be read from an encoder file without running it.
#[derive(Debug, Clone)]
pub struct FileInfo {
    /// What the encoder says about itself.
    pub card: EncoderCard,
    /// Whether it holds a checksum; one that does not match is an error.
    pub is_checked: bool,
    /// What it should answer, if that is inside.
    pub self_test: Option<SelfTest>,
    /// What it can compute.
    pub outputs: Vec<GraphOutput>,
}

impl FileInfo {
    /// Reads a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let (model, file) = Model::open(path.as_ref(), &FileLimits::default())?;
        let refuse = |problem| Error::NotAnEncoder { name: model.name.clone(), problem };
        Ok(Self {
            card: card_of(&file).map_err(refuse)?,
            self_test: self_test_of(&file).map_err(refuse)?,
            is_checked: file.checksum.is_some(),
            outputs: file.outputs,
        })
    }
}
