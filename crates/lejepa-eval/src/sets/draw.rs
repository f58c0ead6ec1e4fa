//! Which training samples a probe sees: so many of every class, drawn with a seed.

use lejepa_data::{Purpose, generator};
use rand::seq::SliceRandom;

use crate::sets::Shots;

/// Samples of one draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draw {
    /// Its number.
    pub(crate) number: usize,
    /// Positions of the samples among the training images, in rising order.
    pub(crate) samples: Vec<usize>,
}

/// What draws are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawing<'a> {
    /// The class of every training image.
    pub(crate) labels: &'a [usize],
    /// Number of classes.
    pub(crate) classes: usize,
    /// Draws where not all images are taken.
    pub(crate) draws: usize,
    /// Decides all of them.
    pub(crate) seed: u64,
}

impl Drawing<'_> {
    /// The draws of so many samples per class. A class with fewer gives all it has. One draw if that is the
    /// whole split.
    pub(crate) fn draw(&self, shots: Shots) -> Vec<Draw> {
        match shots {
            Shots::Each(count) if !self.takes_all(count) => {
                (0..self.draws).map(|number| self.stratified(count, number)).collect()
            }
            _ => vec![Draw { number: 0, samples: (0..self.labels.len()).collect() }],
        }
    }

    /// Images of every class.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.classes];
        self.labels.iter().filter(|label| **label < self.classes).for_each(|&label| sizes[label] += 1);
        sizes
    }

    fn takes_all(&self, count: usize) -> bool {
        self.sizes().iter().all(|&size| size <= count)
    }

    fn stratified(&self, count: usize, number: usize) -> Draw {
        let mut classes = vec![Vec::new(); self.classes];
        for (sample, &label) in self.labels.iter().enumerate() {
            if let Some(class) = classes.get_mut(label) {
                class.push(sample);
            }
        }
        // The order of a class depends on nothing but seed, draw and class, so that ten shots are the
        // first one and nine more.
        let mut samples = Vec::new();
        for (label, mut class) in classes.into_iter().enumerate() {
            class.shuffle(&mut generator(self.seed, Purpose::Shots, number as u64, label as u64));
            samples.extend_from_slice(&class[..count.min(class.len())]);
        }
        samples.sort_unstable();
        Draw { number, samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [usize; 12] = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2];

    fn drawing(seed: u64) -> Drawing<'static> {
        Drawing { labels: &LABELS, classes: 4, draws: 3, seed }
    }

    #[test]
    fn every_class_gives_as_many_or_all_it_has() {
        let draws = drawing(0).draw(Shots::Each(2));
        assert_eq!(draws.len(), 3);
        for draw in &draws {
            let of = |class| draw.samples.iter().filter(|sample| LABELS[**sample] == class).count();
            assert_eq!((of(0), of(1), of(2)), (2, 2, 1));
        }
        assert_ne!(draws[0].samples, draws[1].samples);
        assert_eq!(draws, drawing(0).draw(Shots::Each(2)), "the same seed");
        assert_ne!(draws, drawing(1).draw(Shots::Each(2)), "another seed");
    }

    #[test]
    fn more_shots_keep_the_samples_of_fewer() {
        let (few, more) = (drawing(0).draw(Shots::Each(1)), drawing(0).draw(Shots::Each(3)));
        for (few, more) in few.iter().zip(&more) {
            assert!(few.samples.iter().all(|sample| more.samples.contains(sample)));
        }
    }

    #[test]
    fn the_whole_split_is_drawn_once() {
        for shots in [Shots::All, Shots::Each(6), Shots::Each(1000)] {
            let draws = drawing(0).draw(shots);
            assert_eq!((draws.len(), draws[0].samples.len()), (1, 12));
        }
    }
}
