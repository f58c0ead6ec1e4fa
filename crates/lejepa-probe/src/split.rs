//! Splits samples into those that are fitted and those on which a setting is chosen.

use std::collections::BTreeMap;

use lejepa_data::{Purpose, generator};
use rand::seq::SliceRandom;

use crate::Chosen;
use crate::features::Samples;
use crate::targets::TargetsView;

/// Samples below which a share of them says little: then every sample is held out once.
const ENOUGH: usize = 500;
/// Parts that are held out in turn.
const FOLDS: usize = 5;

/// Images that are fitted and held out, once or in turn.
pub(crate) struct Splits {
    pub(crate) folds: Vec<Split>,
    pub(crate) by: Chosen,
}

pub(crate) struct Split {
    pub(crate) fitted: Vec<usize>,
    pub(crate) held_out: Vec<usize>,
}

impl Splits {
    /// Of every class the share `holdout` is held out, at least one sample and never all, if these are enough to
    /// choose on. Else every sample is, once: of every class a fifth at a time, or one sample at a time where
    /// there are fewer. A class with one sample is only fitted. Values are split as one class.
    pub(crate) fn of(samples: Samples<'_>, holdout: f64, seed: u64) -> Self {
        let mut random = generator(seed, Purpose::Evaluation, 0, 1);
        let mut classes = members(samples);
        classes.iter_mut().for_each(|class| class.shuffle(&mut random));
        let share = |class: &Vec<usize>| {
            ((class.len() as f64 * holdout).round() as usize).max(1).min(class.len() - 1)
        };
        if classes.iter().map(share).sum::<usize>() >= ENOUGH {
            let held_out = |class: &Vec<usize>, place: usize| place < share(class);
            return Self { folds: vec![Split::new(&classes, held_out)], by: Chosen::Holdout };
        }
        let count = classes.iter().map(Vec::len).max().unwrap_or(0).min(FOLDS);
        if count < 2 {
            return Self { folds: Vec::new(), by: Chosen::Middle };
        }
        let fold =
            |fold: usize| Split::new(&classes, |class, place| class.len() > 1 && place % count == fold);
        Self { folds: (0..count).map(fold).collect(), by: Chosen::Folds(count) }
    }
}

impl Split {
    fn new(classes: &[Vec<usize>], is_held_out: impl Fn(&Vec<usize>, usize) -> bool) -> Self {
        let (mut fitted, mut held_out) = (Vec::new(), Vec::new());
        for class in classes {
            for (place, &image) in class.iter().enumerate() {
                if is_held_out(class, place) { held_out.push(image) } else { fitted.push(image) }
            }
        }
        fitted.sort_unstable();
        held_out.sort_unstable();
        Self { fitted, held_out }
    }
}

/// The images of every class.
fn members(samples: Samples<'_>) -> Vec<Vec<usize>> {
    let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for image in (0..samples.len()).map(|sample| samples.image(sample)) {
        let class = match samples.targets() {
            TargetsView::Classes { labels, .. } => labels[image],
            TargetsView::Values(_) => 0,
        };
        classes.entry(class).or_default().push(image);
    }
    classes.into_values().collect()
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::Features;

    fn features(sizes: &[usize]) -> Features {
        let labels: Vec<usize> =
            sizes.iter().enumerate().flat_map(|(class, &size)| vec![class; size]).collect();
        Features::labelled(Array2::zeros((labels.len(), 1)), labels, sizes.len()).unwrap()
    }

    fn labels(features: &Features, images: &[usize]) -> Vec<usize> {
        images.iter().map(|&image| features.targets().labels().unwrap()[image]).collect()
    }

    #[test]
    fn of_many_samples_a_share_of_every_class_is_held_out_and_one_sample_stays() {
        let features = features(&[6000, 1, 2, 40]);
        let splits = Splits::of((&features).into(), 0.1, 3);
        assert_eq!((splits.by, splits.folds.len()), (Chosen::Holdout, 1));
        let Split { fitted, held_out } = &splits.folds[0];
        assert_eq!(labels(&features, held_out)[599..], [0, 2, 3, 3, 3, 3]);
        assert_eq!(fitted.len() + held_out.len(), features.len());
        let again = |seed| Splits::of((&features).into(), 0.1, seed).folds.swap_remove(0).held_out;
        assert_eq!(*held_out, again(3));
        assert_ne!(*held_out, again(4));
    }

    #[test]
    fn of_few_samples_each_is_held_out_once() {
        let features = features(&[10, 10, 1, 3]);
        let splits = Splits::of((&features).into(), 0.1, 0);
        assert_eq!((splits.by, splits.folds.len()), (Chosen::Folds(5), 5));
        let mut all: Vec<usize> = Vec::new();
        for Split { fitted, held_out } in &splits.folds {
            assert_eq!(fitted.len() + held_out.len(), features.len());
            let of = |class| labels(&features, held_out).iter().filter(|label| **label == class).count();
            assert!((of(0), of(1), of(2)) == (2, 2, 0) && of(3) <= 1);
            all.extend(held_out);
        }
        all.sort_unstable();
        let expected: Vec<usize> = (0..24).filter(|image| *image != 20).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn two_shots_are_two_folds_and_one_shot_is_none() {
        let two = Splits::of((&features(&[2, 2, 2])).into(), 0.1, 0);
        assert_eq!((two.by, two.folds[1].held_out.len()), (Chosen::Folds(2), 3));
        let one = Splits::of((&features(&[1, 1, 1])).into(), 0.1, 0);
        assert_eq!((one.by, one.folds.len()), (Chosen::Middle, 0));
    }
}
