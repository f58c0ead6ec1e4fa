//! Which places of a feature map a square window meets: `y = stride * output_y + kernel_y - padding`.
//!
//! Feature maps are rows, channels last: `(images * height * width, channels)`.

use std::ops::Range;

use candle_core::{Device, Result, Tensor, bail};

use crate::MapSize;

/// A square window that moves over a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Places along a side.
    pub kernel: usize,
    /// Places from one window to the next.
    pub stride: usize,
    /// Places beyond every edge.
    pub padding: usize,
}

/// A window over images of one size.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// The window.
    pub window: Window,
    /// How many images.
    pub images: usize,
    /// The map that the window moves over.
    pub input: MapSize,
    /// The places where it stops.
    pub output: MapSize,
}

impl Windows {
    /// Refuses a map that is smaller than the window.
    pub fn new(window: Window, images: usize, input: MapSize) -> Result<Self> {
        let along = |length: usize| {
            let padded = length + 2 * window.padding;
            match padded.checked_sub(window.kernel) {
                Some(rest) if length > 0 => Ok(rest / window.stride.max(1) + 1),
                _ => bail!("a map of {input} is too small for a window of: {}", window.kernel),
            }
        };
        let output = MapSize { height: along(input.height)?, width: along(input.width)? };
        Ok(Self { window, images, input, output })
    }

    /// Places of a window.
    pub(crate) fn taps(&self) -> usize {
        self.window.kernel * self.window.kernel
    }

    /// The part of the kernel that lies on the map, and the place under its first entry.
    pub(crate) fn clip(&self, output: usize, length: usize) -> (Range<usize>, usize) {
        let Window { kernel, stride, padding } = self.window;
        let start = output * stride;
        let first = padding.saturating_sub(start).min(kernel);
        let last = (length + padding).saturating_sub(start).min(kernel);
        (first..last.max(first), (start + first).saturating_sub(padding))
    }

    /// Every place of every window, with `border` where it lies beyond the edge.
    ///
    /// # Shapes
    /// - `rows`: `(images * input places, channels)`
    /// - result: `(images * output places, taps, channels)`
    pub(crate) fn gather(&self, rows: &Tensor, border: f64) -> Result<Tensor> {
        let (_rows, channels) = rows.dims2()?;
        let maps = rows.reshape((self.images, self.input.places(), channels))?;
        let border =
            Tensor::full(border, (self.images, 1, channels), rows.device())?.to_dtype(rows.dtype())?;
        let gathered = Tensor::cat(&[&maps, &border], 1)?
            .contiguous()?
            .index_select(&self.indices(rows.device())?, 1)?;
        gathered.reshape((self.images * self.output.places(), self.taps(), channels))
    }

    /// The place of an image under every tap of every window; the one behind the last beyond the edge.
    fn indices(&self, device: &Device) -> Result<Tensor> {
        let beyond = self.input.places() as u32;
        let mut indices = Vec::with_capacity(self.output.places() * self.taps());
        for output_y in 0..self.output.height {
            let (rows, top) = self.clip(output_y, self.input.height);
            for output_x in 0..self.output.width {
                let (columns, left) = self.clip(output_x, self.input.width);
                for tap_y in 0..self.window.kernel {
                    indices.extend((0..self.window.kernel).map(|tap_x| {
                        if !rows.contains(&tap_y) || !columns.contains(&tap_x) {
                            return beyond;
                        }
                        let (y, x) = (top + tap_y - rows.start, left + tap_x - columns.start);
                        (y * self.input.width + x) as u32
                    }));
                }
            }
        }
        Tensor::new(indices, device)
    }
}
