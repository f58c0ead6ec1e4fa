//! How the numbers of a file of features are stored.

use half::f16;

use crate::{Error, Result};

/// Bits of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeaturePrecision {
    /// As they were computed.
    F32,
    /// Half of that: eleven binary digits, up to 65504.
    F16,
}

impl FeaturePrecision {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::F32, Self::F16];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|precision| precision.name() == name)
    }

    /// Bytes of a number.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

/// Rounded values; an error if one is too large.
pub(super) fn halved(values: &[f32]) -> Result<Vec<f16>> {
    let half = |&value: &f32| {
        let half = f16::from_f32(value);
        if half.is_finite() { Ok(half) } else { Err(Error::TooLargeForHalf { value }) }
    };
    values.iter().map(half).collect()
}
