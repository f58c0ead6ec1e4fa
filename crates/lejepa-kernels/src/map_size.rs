//! Height and width of a feature map.

use std::fmt;

/// Height and width of a feature map, in places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapSize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl MapSize {
    /// Places of the map.
    pub fn places(self) -> usize {
        self.height * self.width
    }
}

impl fmt::Display for MapSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.height, self.width)
    }
}
