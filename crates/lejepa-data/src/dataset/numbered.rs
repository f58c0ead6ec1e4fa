//! Classes that have no names but numbers, of which a set may leave some out: `0, 2, 300000`.
//!
//! Labels are indices into the numbers that occur in any split, in their order, so that nothing is counted for
//! numbers that nobody has, and a class has the same index in every split. Where every number up to the
//! largest occurs, the index is the number.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Dataset, Split};
use crate::{Result, Stored};

/// A dataset with indices of numbers in place of the numbers.
struct Numbered {
    dataset: Box<dyn Dataset>,
    numbers: Vec<usize>,
    class_names: Vec<String>,
    notes: Vec<String>,
}

/// Closes the gaps in the numbers of classes. `open` opens another split of the same set.
pub(super) fn without_gaps(
    dataset: Box<dyn Dataset>,
    split: Split,
    open: impl Fn(Split) -> Result<Box<dyn Dataset>>,
) -> Box<dyn Dataset> {
    let names = dataset.class_names();
    let are_numbers = names.iter().enumerate().all(|(number, name)| *name == number.to_string());
    let mut numbers = numbers_of(&*dataset);
    // Without gaps here the indices are the numbers, whatever the other splits have.
    if !are_numbers || numbers.len() == names.len() {
        return dataset;
    }
    for other in Split::ALL.into_iter().filter(|&other| other != split) {
        // A split that cannot be opened is for those who ask for it.
        if let Ok(other) = open(other) {
            numbers.extend(numbers_of(&*other));
        }
    }
    let largest = numbers.last().copied().unwrap_or(0);
    let mut notes = dataset.notes().to_vec();
    if numbers.len() <= largest {
        notes.push(format!("of the class numbers up to {largest}, {} occur", numbers.len()));
    }
    let class_names = numbers.iter().map(usize::to_string).collect();
    Box::new(Numbered { dataset, numbers: numbers.into_iter().collect(), class_names, notes })
}

fn numbers_of(dataset: &dyn Dataset) -> BTreeSet<usize> {
    (0..dataset.len()).filter_map(|index| dataset.label(index)).collect()
}

impl Dataset for Numbered {
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        self.dataset.stored(index)
    }

    fn name(&self, index: usize) -> String {
        self.dataset.name(index)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.numbers.binary_search(&self.dataset.label(index)?).ok()
    }

    fn class_names(&self) -> &[String] {
        &self.class_names
    }

    fn files(&self) -> Vec<PathBuf> {
        self.dataset.files()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A folder of arrays with a grey image of one pixel for every label.
    fn write(folder: &Path, split: &str, labels: &[i64]) {
        let array = |kind: &str, shape: String, values: Vec<u8>| {
            let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
            [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), &values].concat()
        };
        let count = labels.len();
        let images = array("|u1", format!("({count}, 1, 1)"), vec![7; count]);
        std::fs::write(folder.join(format!("{split}_images.npy")), images).unwrap();
        let values = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        std::fs::write(
            folder.join(format!("{split}_labels.npy")),
            array("<i8", format!("({count},)"), values),
        )
        .unwrap();
    }

    fn classes(folder: &Path, split: Split) -> Vec<String> {
        let data = crate::open(folder, split).unwrap();
        (0..data.len()).map(|index| data.class_names()[data.label(index).unwrap()].clone()).collect()
    }

    #[test]
    fn numbers_that_occur_are_classes_with_the_same_index_in_every_split() {
        let folder = tempfile::tempdir().unwrap();
        for (train, test, index_of_two) in
            [(&[2, 0][..], &[0, 1, 2][..], 2), (&[2, 0, 300_000], &[2, 0], 1), (&[2], &[300_000, 5], 0)]
        {
            write(folder.path(), "train", train);
            write(folder.path(), "test", test);
            let numbers = |labels: &[i64]| labels.iter().map(i64::to_string).collect::<Vec<_>>();
            assert_eq!(classes(folder.path(), Split::Train), numbers(train));
            assert_eq!(classes(folder.path(), Split::Test), numbers(test));
            for (split, labels) in [(Split::Train, train), (Split::Test, test)] {
                let data = crate::open(folder.path(), split).unwrap();
                assert!(data.class_names().len() <= 3);
                let place = labels.iter().position(|&label| label == 2);
                assert!(place.is_none_or(|place| data.label(place) == Some(index_of_two)), "{split:?}");
            }
        }
    }

    #[test]
    fn gaps_are_worth_a_note() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "train", &[0, 300_000]);
        let data = crate::open(folder.path(), Split::Train).unwrap();
        assert_eq!(data.notes(), ["of the class numbers up to 300000, 2 occur"]);
        for wrong in [-1, i64::MAX] {
            write(folder.path(), "train", &[0, wrong]);
            let message = crate::open(folder.path(), Split::Train).err().unwrap().to_string();
            assert!(message.contains("expected labels from 0 to 1000000"), "{message}");
        }
    }
}
