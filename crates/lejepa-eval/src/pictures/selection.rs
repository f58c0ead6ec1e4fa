//! Which test images a report shows: drawn by the suite's seed, the same for all candidates.

use std::collections::BTreeMap;

use lejepa_data::{Purpose, generator};
use rand::seq::SliceRandom;

use super::Pictures;

/// Numbers of test samples.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// On the maps, class by class.
    pub(super) points: Vec<usize>,
    /// As encoders see them: one of every class, then a second one, as far as they are asked for.
    pub(super) images: Vec<usize>,
}

impl Selection {
    pub(super) fn of(labels: &[usize], pictures: &Pictures, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.shuffle(&mut generator(seed, Purpose::Pictures, 0, 0));
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        let mut rounds: Vec<(usize, usize)> = Vec::new();
        for &sample in &order {
            let round = seen.entry(labels[sample]).or_default();
            rounds.push((*round, sample));
            *round += 1;
        }
        rounds.sort_by_key(|(round, _)| *round); // stable: the drawn order within a round
        let mut images: Vec<usize> = rounds.iter().map(|(_, sample)| *sample).take(pictures.images).collect();
        let mut points: Vec<usize> = order.into_iter().take(pictures.points).collect();
        for samples in [&mut images, &mut points] {
            samples.sort_by_key(|&sample| (labels[sample], sample));
        }
        Self { points, images }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_of_many_classes_and_points_in_their_order() {
        let labels: Vec<usize> = (0..90).map(|sample| if sample < 80 { 0 } else { sample % 5 }).collect();
        let pictures = Pictures { images: 6, points: 40 };
        let selection = Selection::of(&labels, &pictures, 3);
        assert_eq!(selection, Selection::of(&labels, &pictures, 3));
        assert_ne!(selection, Selection::of(&labels, &pictures, 4));
        let classes: Vec<usize> = selection.images.iter().map(|&sample| labels[sample]).collect();
        assert_eq!(classes.len(), 6);
        assert!((0..5).all(|class| classes.contains(&class)), "{classes:?}");
        assert!(selection.points.is_sorted_by_key(|&sample| labels[sample]));
        assert_eq!(selection.points.len(), 40);
    }

    #[test]
    fn a_small_set_is_shown_whole() {
        let selection = Selection::of(&[1, 0], &Pictures { images: 6, points: 40 }, 0);
        assert_eq!((selection.points, selection.images), (vec![1, 0], vec![1, 0]));
    }
}
