//! What convolutional encoders of four stages have in common.

use crate::{Error, Result};

/// Pixels between neighbouring places of the last map: five halvings.
pub(super) const STRIDE: usize = 32;

/// The sizes of the stages of a convolutional encoder.
pub(super) struct Stages<'a> {
    pub(super) channels: usize,
    pub(super) depths: &'a [usize; 4],
    pub(super) widths: &'a [usize; 4],
    pub(super) drop_path: f64,
}

impl Stages<'_> {
    pub(super) const LARGEST_WIDTH: usize = 16384;

    pub(super) fn check(&self) -> Result<()> {
        let refuse = |field, expected: &str, got: String| {
            Err(Error::Setting { field, expected: expected.into(), got })
        };
        if self.channels != 1 && self.channels != 3 {
            return refuse("encoder.channels", "1 (grey) or 3 (colour)", self.channels.to_string());
        }
        if !self.depths.iter().all(|depth| (1..=1024).contains(depth)) {
            return refuse("encoder.depths", "between 1 and 1024 each", format!("{:?}", self.depths));
        }
        if !self.widths.iter().all(|width| (1..=Self::LARGEST_WIDTH).contains(width)) {
            return refuse("encoder.widths", "between 1 and 16384 each", format!("{:?}", self.widths));
        }
        if !(0. ..1.).contains(&self.drop_path) {
            return refuse("encoder.drop_path", "at least 0 and below 1", self.drop_path.to_string());
        }
        Ok(())
    }
}
