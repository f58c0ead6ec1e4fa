//! How good masks are: of one frame, and of an object over its frames.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::{Contour, LabelMap, jaccard};

/// The two measures of DAVIS.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Score {
    /// J: how far the regions are the same.
    pub jaccard: f64,
    /// F: how far their contours are.
    pub contour: f64,
}

impl Score {
    /// J&F: the mean of both.
    pub fn mean(self) -> f64 {
        (self.jaccard + self.contour) / 2.
    }

    /// The mean of several; nothing for none.
    pub fn average(scores: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut tally = Tally::new(Frames::All);
        scores.into_iter().for_each(|score| tally.add(score));
        tally.average()
    }
}

/// Which frames of a clip are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frames {
    All,
    /// All but the last one, as DAVIS does where the first mask is given; a single one stays.
    NotTheLast,
}

/// Scores that are being averaged.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    frames: Frames,
    sum: Score,
    count: usize,
    latest: Option<Score>,
}

impl Tally {
    pub(super) fn new(frames: Frames) -> Self {
        Self { frames, sum: Score::default(), count: 0, latest: None }
    }

    pub(super) fn add(&mut self, score: Score) {
        let counted = match self.frames {
            Frames::All => Some(score),
            Frames::NotTheLast => self.latest.replace(score),
        };
        if let Some(Score { jaccard, contour }) = counted {
            self.sum.jaccard += jaccard;
            self.sum.contour += contour;
            self.count += 1;
        }
    }

    /// The mean; nothing without scores.
    pub(super) fn average(&self) -> Option<Score> {
        let count = self.count as f64;
        let mean = Score { jaccard: self.sum.jaccard / count, contour: self.sum.contour / count };
        if self.count > 0 { Some(mean) } else { self.latest }
    }
}

/// The objects of a frame as they should be found.
pub(super) struct TrueFrame {
    objects: Vec<(u8, Array2<bool>, Contour)>,
    void: Option<Array2<bool>>,
}

impl TrueFrame {
    /// Prepares a mask; `objects` are those of the whole clip.
    pub(super) fn new(truth: &LabelMap, objects: &[u8]) -> Self {
        let prepared = objects.iter().map(|&label| {
            let mask = truth.object(label);
            let contour = Contour::of(mask.view());
            (label, mask, contour)
        });
        Self { objects: prepared.collect(), void: truth.void_pixels() }
    }

    /// How well a mask fits each object.
    pub(super) fn score(&self, mask: &Array2<bool>) -> Vec<Score> {
        let mask = self.judged(mask);
        let contour = Contour::of(mask.view());
        let score = |(_, truth, outline): &(u8, Array2<bool>, Contour)| Score {
            jaccard: jaccard(mask.view(), truth.view()),
            contour: contour.f_measure(outline),
        };
        self.objects.iter().map(score).collect()
    }

    /// How well each object fits the one of the same label.
    pub(super) fn score_labels(&self, labels: &LabelMap) -> Vec<Score> {
        let score = |(label, truth, outline): &(u8, Array2<bool>, Contour)| {
            let mask = self.judged(&labels.object(*label));
            let contour = Contour::of(mask.view()).f_measure(outline);
            Score { jaccard: jaccard(mask.view(), truth.view()), contour }
        };
        self.objects.iter().map(score).collect()
    }

    fn judged(&self, mask: &Array2<bool>) -> Array2<bool> {
        let mut mask = mask.clone();
        if let Some(void) = &self.void {
            mask.zip_mut_with(void, |pixel, &void| *pixel &= !void);
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn score(value: f64) -> Score {
        Score { jaccard: value, contour: value }
    }

    #[test]
    fn the_last_frame_is_left_out_unless_it_is_the_only_one() {
        let mut tally = Tally::new(Frames::NotTheLast);
        assert_eq!(tally.average(), None);
        tally.add(score(0.25));
        assert_eq!(tally.average(), Some(score(0.25)));
        tally.add(score(0.75));
        tally.add(score(0.));
        assert_eq!(tally.average(), Some(score(0.5)));
        assert_eq!(Score::average([score(0.), score(1.), score(0.5)]), Some(score(0.5)));
    }

    #[test]
    fn void_pixels_are_not_judged() {
        let truth = LabelMap { labels: array![[1, 1, 255, 0], [1, 1, 255, 0]], void: Some(255) };
        let frame = TrueFrame::new(&truth, &[1]);
        let mask = array![[true, true, true, false], [true, true, true, false]];
        assert_eq!(frame.score(&mask), [score(1.)]);
        assert_eq!(frame.score_labels(&LabelMap::of_mask(&mask)), [score(1.)]);
    }

    #[test]
    fn every_object_has_a_score_of_its_own() {
        let truth = LabelMap::new(array![[1, 1, 0, 2], [1, 1, 0, 2]]);
        let frame = TrueFrame::new(&truth, &[1, 2, 3]);
        let found = frame.score_labels(&LabelMap::new(array![[1, 1, 0, 0], [0, 0, 0, 2]]));
        let jaccards: Vec<f64> = found.iter().map(|score| score.jaccard).collect();
        assert_eq!(jaccards, [0.5, 0.5, 1.]);
    }
}
