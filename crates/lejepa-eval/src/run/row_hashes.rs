//! Hashes of features, row by row: what went into a result, and rows that two splits have in common.

use std::collections::HashSet;

use lejepa_page::number::{count, counted};
use ndarray::{ArrayView1, ArrayView2};
use rayon::prelude::*;

/// One hash per image.
pub(crate) struct RowHashes(Vec<[u8; 16]>);

impl RowHashes {
    pub(crate) fn of(features: ArrayView2<'_, f32>) -> Self {
        Self((0..features.nrows()).into_par_iter().map(|row| hash(features.row(row))).collect())
    }

    /// A hash of all rows and their labels: the same one stands for the same numbers.
    pub(crate) fn digest(&self, labels: &[usize]) -> String {
        let mut hasher = blake3::Hasher::new();
        self.0.iter().for_each(|row| {
            hasher.update(row);
        });
        labels.iter().for_each(|label| {
            hasher.update(&(*label as u64).to_le_bytes());
        });
        hasher.finalize().to_hex()[..32].to_string()
    }

    /// How many different rows there are, in words, if no more than half of them are: then a shared row says
    /// nothing about shared images.
    pub(crate) fn collapsed(&self) -> Option<String> {
        let different = self.0.iter().collect::<HashSet<_>>().len();
        (self.0.len() > 3 && 2 * different <= self.0.len())
            .then(|| format!("{} have {}", counted(self.0.len(), "training image"), count(different)))
    }

    /// How many rows of a test split are rows of this training split too, in words; none if there are none.
    pub(crate) fn shared_with(&self, test: &Self) -> Option<String> {
        let own: HashSet<&[u8; 16]> = self.0.iter().collect();
        let shared = test.0.iter().filter(|row| own.contains(row)).count();
        (shared > 0).then(|| format!("{} of {}", count(shared), counted(test.0.len(), "test image")))
    }
}

fn hash(row: ArrayView1<'_, f32>) -> [u8; 16] {
    let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
    hash
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_few_copies_are_no_collapse() {
        let rows =
            |values: [f32; 4]| RowHashes::of(ArrayView2::from_shape((4, 1), &values).unwrap()).collapsed();
        assert_eq!(rows([1., 2., 3., 3.]), None);
        assert_eq!(rows([0., 0., 0., 0.]).unwrap(), "4 training images have 1");
    }

    #[test]
    fn every_value_and_every_label_counts() {
        let digest =
            |last: f32, label| RowHashes::of(array![[1., 2.], [3., last]].view()).digest(&[0, label]);
        assert_eq!(digest(4., 1), digest(4., 1));
        assert_ne!(digest(4., 1), digest(4.0000005, 1));
        assert_ne!(digest(4., 1), digest(4., 0));
    }

    #[test]
    fn rows_of_both_splits_are_counted() {
        let train = RowHashes::of(array![[1., 2.], [3., 4.]].view());
        let test = RowHashes::of(array![[3., 4.], [2., 1.], [3., 4.]].view());
        assert_eq!(train.shared_with(&test).as_deref(), Some("2 of 3 test images"));
        assert_eq!(train.shared_with(&RowHashes::of(array![[2., 1.]].view())), None);
    }
}
