//! Maps with their borders, for few channels.
//!
//! A window's row has `kernel * channels` values that lie together, unless the edge cuts it. With three channels, as
//! pixels have, a cut row is too short to be worth a vector: borders are then made, and nothing is cut.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::{MapSize, Window, Windows};

/// Maps of fewer channels get borders.
const FEW_CHANNELS: usize = 8;

/// Maps as they are multiplied.
pub(super) struct Padded<'a> {
    pub(super) rows: Cow<'a, [f32]>,
    pub(super) windows: Windows,
}

impl<'a> Padded<'a> {
    pub(super) fn new(rows: &'a [f32], windows: &Windows, channels: usize) -> Self {
        let Windows { window, images, input, output } = *windows;
        let padding = window.padding;
        if padding == 0 || channels >= FEW_CHANNELS {
            return Self { rows: rows.into(), windows: *windows };
        }
        let size = MapSize { height: input.height + 2 * padding, width: input.width + 2 * padding };
        let mut padded = vec![0.; images * size.height * size.width * channels];
        let line = input.width * channels;
        let maps = rows.par_chunks(input.height * line);
        padded.par_chunks_mut(size.height * size.width * channels).zip(maps).for_each(|(padded, map)| {
            let lines = padded.chunks_exact_mut(size.width * channels).skip(padding);
            for (padded, map) in lines.zip(map.chunks_exact(line)) {
                padded[padding * channels..][..line].copy_from_slice(map);
            }
        });
        let window = Window { padding: 0, ..window };
        Self { rows: padded.into(), windows: Windows { window, images, input: size, output } }
    }
}
