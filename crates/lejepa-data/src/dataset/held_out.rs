//! A test split for sets that have none: a fifth of every class, always the same. Evaluations ask about it, and training
//! can leave it alone.

use rand::seq::SliceRandom;

use super::noted::Noted;
use super::subset::Subset;
use super::{Dataset, SourceConfig, Split, open_source};
use crate::{Error, Purpose, Result, generator};

/// Share of every class that is held out.
const SHARE: f64 = 0.2;
/// Decides which images, once and for all.
const SEED: u64 = 0;

/// The images that are held out of a set without test split, rising; `labels` are those of all its images.
pub fn held_out(labels: &[usize]) -> Vec<usize> {
    let mut classes: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
    for (index, &label) in labels.iter().enumerate() {
        classes.entry(label).or_default().push(index);
    }
    let mut held_out = Vec::new();
    for (class, mut members) in classes {
        members.shuffle(&mut generator(SEED, Purpose::Split, class as u64, 1));
        // A class with one image has it for training.
        let count = (SHARE * members.len() as f64).round() as usize;
        held_out.extend_from_slice(&members[..count.min(members.len().saturating_sub(1))]);
    }
    held_out.sort_unstable();
    held_out
}

/// The training split of a source without the images that evaluations ask about, if it has no test or validation
/// split for them.
pub(super) fn without_held_out(source: &SourceConfig) -> Result<Box<dyn Dataset>> {
    let dataset = open_source(source, Split::Train)?;
    // Evaluations ask about the first of these that has labels.
    for split in [Split::Test, Split::Validation] {
        match open_source(source, split) {
            Err(Error::NoSplit { .. }) => {}
            Ok(other) if (0..other.len()).any(|index| other.label(index).is_none()) => {}
            Ok(_) => {
                let note = format!(
                    "nothing was held out of training: there is a {} split, which evaluations ask about instead",
                    split.name()
                );
                return Ok(Box::new(Noted::new(dataset, note)));
            }
            Err(error) => return Err(error),
        }
    }
    let unlabelled = |index: usize| Error::Setting {
        field: "data.hold_out",
        expected: "absent for images without labels".into(),
        got: dataset.name(index),
    };
    let label = |index: usize| dataset.label(index).ok_or_else(|| unlabelled(index));
    let labels: Vec<usize> = (0..dataset.len()).map(label).collect::<Result<_>>()?;
    let held_out = held_out(&labels);
    let kept = (0..dataset.len()).filter(|index| held_out.binary_search(index).is_err()).collect();
    let note = format!("held out of training, a fifth of every class: {} images", held_out.len());
    Ok(Box::new(Subset::new(dataset, kept, note)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_every_class_is_held_out_and_one_image_never() {
        let labels: Vec<usize> =
            [vec![0; 10], vec![7; 25], vec![3; 1], vec![300_000; 2]].concat().into_iter().collect();
        let held_out = held_out(&labels);
        let of = |class| held_out.iter().filter(|&&index| labels[index] == class).count();
        assert_eq!((of(0), of(7), of(3), of(300_000)), (2, 5, 0, 0));
        assert!(held_out.is_sorted());
        assert_eq!(held_out, super::held_out(&labels), "always the same");
    }
}
