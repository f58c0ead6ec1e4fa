//! Height and width of an image or of a grid of patches.

use std::fmt;

use lejepa_kernels::MapSize;
use serde::{Deserialize, Serialize};

/// Height and width; written as one number where both are equal, as `[height, width]` otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct ImageSize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a number of pixels or [height, width]")]
enum Written {
    Square(usize),
    HeightWidth([usize; 2]),
}

impl From<Written> for ImageSize {
    fn from(written: Written) -> Self {
        match written {
            Written::Square(side) => side.into(),
            Written::HeightWidth([height, width]) => Self { height, width },
        }
    }
}

impl From<ImageSize> for Written {
    fn from(size: ImageSize) -> Self {
        if size.height == size.width {
            Written::Square(size.height)
        } else {
            Written::HeightWidth([size.height, size.width])
        }
    }
}

impl From<usize> for ImageSize {
    fn from(side: usize) -> Self {
        Self { height: side, width: side }
    }
}

impl From<ImageSize> for MapSize {
    fn from(ImageSize { height, width }: ImageSize) -> Self {
        Self { height, width }
    }
}

impl From<MapSize> for ImageSize {
    fn from(MapSize { height, width }: MapSize) -> Self {
        Self { height, width }
    }
}

impl fmt::Display for ImageSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.height, self.width)
    }
}
