//! A view while it is being made: 8-bit planes, so that the processor can work on neighbouring values
//! of one channel at once.

use super::ViewSize;
use crate::Preprocess;

/// The planes of a view; the memory is used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Planes {
    size: ViewSize,
    channels: usize,
    planes: [Vec<u8>; 3],
}

/// How a view is turned and flipped: first rows and columns are exchanged, then the flips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Orientation {
    /// Rows become columns.
    pub(super) transpose: bool,
    /// Left and right are exchanged.
    pub(super) flip: bool,
    /// Top and bottom are exchanged.
    pub(super) flip_vertical: bool,
}

impl Orientation {
    /// The orientation after more quarter turns, clockwise.
    pub(super) fn turned(self, quarters: u8) -> Self {
        (0..quarters).fold(self, |Self { transpose, flip, flip_vertical }, _quarter| Self {
            transpose: !transpose,
            flip: !flip_vertical,
            flip_vertical: flip,
        })
    }

    /// The size before turning of what has this size after it.
    pub(super) fn source_size(self, size: ViewSize) -> ViewSize {
        if self.transpose { ViewSize { height: size.width, width: size.height } } else { size }
    }
}

impl Planes {
    pub(super) fn size(&self) -> ViewSize {
        self.size
    }

    /// One slice per channel.
    #[inline(always)]
    pub(super) fn channels(&self) -> &[Vec<u8>] {
        &self.planes[..self.channels]
    }

    /// One slice per channel.
    #[inline(always)]
    pub(super) fn channels_mut(&mut self) -> &mut [Vec<u8>] {
        &mut self.planes[..self.channels]
    }

    /// Takes interleaved pixels of 1 or 3 channels apart and turns them. `size` is the size after turning.
    #[inline(always)]
    pub(super) fn load(&mut self, pixels: &[u8], channels: usize, size: ViewSize, orientation: Orientation) {
        (self.size, self.channels) = (size, channels);
        for plane in self.channels_mut() {
            plane.resize(size.height * size.width, 0);
        }
        if orientation.transpose {
            self.load_transposed(pixels, orientation);
        } else {
            self.load_rows(pixels, orientation);
        }
    }

    #[inline(always)]
    fn load_rows(&mut self, pixels: &[u8], orientation: Orientation) {
        let ViewSize { height, width } = self.size;
        for (row, source) in pixels.chunks_exact(width * self.channels).enumerate() {
            let row = if orientation.flip_vertical { height - 1 - row } else { row };
            let target = row * width..(row + 1) * width;
            match self.channels_mut() {
                [red, green, blue] => {
                    let targets = red[target.clone()].iter_mut().zip(&mut green[target.clone()]);
                    let targets = targets.zip(&mut blue[target.clone()]);
                    for (((red, green), blue), pixel) in targets.zip(source.as_chunks().0) {
                        [*red, *green, *blue] = *pixel;
                    }
                }
                planes => planes.iter_mut().for_each(|grey| grey[target.clone()].copy_from_slice(source)),
            }
            if orientation.flip {
                self.channels_mut().iter_mut().for_each(|plane| plane[target.clone()].reverse());
            }
        }
    }

    #[inline(always)]
    fn load_transposed(&mut self, pixels: &[u8], orientation: Orientation) {
        let (ViewSize { height, width }, channels) = (self.size, self.channels);
        for (source_row, source) in pixels.chunks_exact(height * channels).enumerate() {
            let column = if orientation.flip { width - 1 - source_row } else { source_row };
            for (source_column, pixel) in source.chunks_exact(channels).enumerate() {
                let row = if orientation.flip_vertical { height - 1 - source_column } else { source_column };
                for (plane, &value) in self.planes.iter_mut().zip(pixel) {
                    plane[row * width + column] = value;
                }
            }
        }
    }

    /// Inverts values from the threshold on.
    #[inline(always)]
    pub(super) fn solarize(&mut self, threshold: u8) {
        for plane in self.channels_mut() {
            for value in plane {
                *value = if *value < threshold { *value } else { 255 - *value };
            }
        }
    }

    /// Writes the values that the encoder sees, `(channels, height, width)`.
    #[inline(always)]
    pub(super) fn normalise_into(&self, preprocess: &Preprocess, pixels: &mut [f32]) {
        let targets = pixels.chunks_exact_mut(self.size.height * self.size.width);
        for (channel, (plane, target)) in self.channels().iter().zip(targets).enumerate() {
            let normalise = preprocess.normalise(channel);
            for (target, &value) in target.iter_mut().zip(plane) {
                *target = normalise.apply(value);
            }
        }
    }
}

/// A whole number in `[0, 255]` as a byte: with this number added, it stands in the lowest bits. A
/// plain cast also looks for values out of range, one by one.
#[inline(always)]
pub(super) fn to_byte(value: f32) -> u8 {
    const WHOLE_NUMBERS: f32 = (1 << 23) as f32;
    (value + WHOLE_NUMBERS).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 rows, 3 columns.
    const GREYS: [u8; 6] = [1, 2, 3, 4, 5, 6];

    fn oriented(height: usize, width: usize, orientation: Orientation) -> Vec<u8> {
        let mut planes = Planes::default();
        planes.load(&GREYS, 1, ViewSize { height, width }, orientation);
        planes.channels()[0].clone()
    }

    #[test]
    fn flips_and_turns_move_every_pixel_to_its_place() {
        let upright = Orientation::default();
        assert_eq!(oriented(2, 3, upright), GREYS);
        assert_eq!(oriented(2, 3, Orientation { flip: true, ..upright }), [3, 2, 1, 6, 5, 4]);
        assert_eq!(oriented(2, 3, Orientation { flip_vertical: true, ..upright }), [4, 5, 6, 1, 2, 3]);
        assert_eq!(oriented(3, 2, upright.turned(1)), [4, 1, 5, 2, 6, 3]);
        assert_eq!(oriented(2, 3, upright.turned(2)), [6, 5, 4, 3, 2, 1]);
        assert_eq!(oriented(3, 2, upright.turned(3)), [3, 6, 2, 5, 1, 4]);
        assert_eq!(upright.turned(4), upright);
    }

    #[test]
    fn whole_numbers_become_bytes() {
        assert!((0..=255u8).all(|byte| to_byte(f32::from(byte)) == byte));
    }

    #[test]
    fn channels_are_taken_apart() {
        let mut planes = Planes::default();
        let size = ViewSize { height: 1, width: 2 };
        planes.load(&[1, 2, 3, 4, 5, 6], 3, size, Orientation { flip: true, ..Default::default() });
        assert_eq!(planes.channels(), [vec![4, 1], vec![5, 2], vec![6, 3]]);
        planes.load(&[7, 8], 1, size, Orientation::default());
        assert_eq!(planes.channels(), [vec![7, 8]]);
    }
}
