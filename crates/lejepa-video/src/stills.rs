//! A few frames of a clip, for a report.

use lejepa_data::Image;
use lejepa_picture::{Jpeg, with_longer_side};
use serde::{Deserialize, Serialize};

use crate::Result;

/// A frame with its mask over it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Still {
    /// The frame's name.
    pub frame: String,
    /// With the mask that was found.
    pub found: Jpeg,
    /// With the true mask, if it has one.
    pub truth: Option<Jpeg>,
}

/// Keeps frames at equal distances from a clip of any length: of `MOST + 1` every other is given up.
#[derive(Debug)]
pub(super) struct Stills {
    kept: Vec<Still>,
    stride: usize,
    seen: usize,
}

/// The most stills of a clip; there are at least half as many if it has the frames.
const MOST: usize = 6;
/// Pixels of the longer side.
const SIDE: usize = 320;
const QUALITY: u8 = 75;

impl Stills {
    pub(super) fn new() -> Self {
        Self { kept: Vec::new(), stride: 1, seen: 0 }
    }

    /// Goes on to the next frame. `make` is asked for it, with the mask that was found and with the true one,
    /// if it is to be kept.
    pub(super) fn next(
        &mut self,
        frame: &str,
        make: impl FnOnce() -> Result<(Image, Option<Image>)>,
    ) -> Result<()> {
        if self.seen.is_multiple_of(self.stride) {
            let (found, truth) = make()?;
            let truth = truth.as_ref().map(picture).transpose()?;
            self.kept.push(Still { frame: frame.into(), found: picture(&found)?, truth });
        }
        self.seen += 1;
        if self.kept.len() > MOST {
            self.kept = std::mem::take(&mut self.kept).into_iter().step_by(2).collect();
            self.stride *= 2;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<Still> {
        self.kept
    }
}

fn picture(image: &Image) -> Result<Jpeg> {
    let side = image.height().max(image.width()).min(SIDE);
    Ok(Jpeg::of(&with_longer_side(image, side)?, QUALITY)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(count: usize) -> Vec<String> {
        let mut stills = Stills::new();
        for number in 0..count {
            let image = Image::from_pixels(2, 3, 1, vec![7; 6]).unwrap();
            stills.next(&number.to_string(), || Ok((image, None))).unwrap();
        }
        stills.finish().into_iter().map(|still| still.frame).collect()
    }

    #[test]
    fn frames_lie_at_equal_distances_and_are_few() {
        assert_eq!(frames(0), [""; 0]);
        assert_eq!(frames(6), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(frames(7), ["0", "2", "4", "6"]);
        assert_eq!(frames(80), ["0", "16", "32", "48", "64"]);
        assert!((MOST / 2..=MOST).contains(&frames(12_345).len()));
    }

    #[test]
    fn frames_that_are_given_up_are_not_drawn_and_large_ones_are_made_small() {
        let mut stills = Stills::new();
        let mut made = 0;
        for _ in 0..100 {
            let image = || Image::from_pixels(100, 640, 3, vec![9; 192_000]).unwrap();
            let make = || {
                made += 1;
                Ok((image(), Some(image())))
            };
            stills.next("frame", make).unwrap();
        }
        assert!(made < 25, "{made}");
        let still = stills.finish().remove(0);
        let shown = Image::decode(&still.truth.unwrap().bytes().unwrap()).unwrap();
        assert_eq!((shown.height(), shown.width()), (50, 320));
    }
}
