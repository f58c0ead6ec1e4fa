//! Splits training features into those that are fitted and those on which a setting is chosen.

use std::collections::BTreeMap;

use lejepa_data::{Purpose, generator};
use rand::seq::SliceRandom;

use crate::{Features, Targets};

/// Fitted and held-out features. Of every class the share `holdout` is held out, at least one sample and
/// never all: a class with one sample is only fitted. Values are split as one class.
pub(crate) fn split(train: &Features, holdout: f64, seed: u64) -> (Features, Features) {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for image in 0..train.len() {
        let group = match train.targets() {
            Targets::Classes { labels, .. } => labels[image],
            Targets::Values(_) => 0,
        };
        groups.entry(group).or_default().push(image);
    }
    let (mut fitted, mut held_out) = (Vec::new(), Vec::new());
    let mut random = generator(seed, Purpose::Evaluation, 0, 1);
    for (_, mut images) in groups {
        images.shuffle(&mut random);
        let count = images.len();
        let asked = ((count as f64 * holdout).round() as usize).max(1).min(count - 1);
        held_out.extend_from_slice(&images[..asked]);
        fitted.extend_from_slice(&images[asked..]);
    }
    fitted.sort_unstable();
    held_out.sort_unstable();
    (train.select(&fitted), train.select(&held_out))
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    #[test]
    fn every_class_is_split_and_one_sample_stays() {
        let labels = [vec![0; 20], vec![1], vec![2; 2], vec![3; 5]].concat();
        let values = Array2::from_shape_fn((labels.len(), 1), |(image, _)| image as f32);
        let train = Features::labelled(values, labels, 5).unwrap();
        let (fitted, held_out) = split(&train, 0.1, 3);
        assert_eq!(held_out.labels("test").unwrap(), [0, 0, 2, 3]);
        assert_eq!(fitted.len() + held_out.len(), train.len());
        let again = split(&train, 0.1, 3);
        assert_eq!((fitted, held_out), again);
        assert_ne!(split(&train, 0.1, 4), again);
    }
}
