//! Labels as files hold them: numbers that must fit the names of the classes.

use super::array_labels::{LARGEST, numbered_classes};
use crate::{Error, Result};

/// The label of every sample, and what the numbers mean.
#[derive(Debug)]
pub(super) struct Labels {
    values: Vec<Option<u32>>,
    class_names: Vec<String>,
}

impl Labels {
    /// Checks the labels; without names the classes are called by their numbers. `sample` is what a
    /// person calls a sample.
    pub(super) fn new(
        values: Vec<Option<u32>>,
        class_names: Vec<String>,
        sample: impl Fn(usize) -> String,
    ) -> Result<Self> {
        let classes = if class_names.is_empty() { LARGEST + 1 } else { class_names.len() };
        for (index, value) in values.iter().enumerate() {
            let Some(label) = value.map(|label| label as usize) else { continue };
            if label >= classes {
                return Err(Error::Label { name: sample(index), label, classes });
            }
        }
        let class_names = if class_names.is_empty() {
            numbered_classes(values.iter().flatten().map(|&label| label as usize))
        } else {
            class_names
        };
        Ok(Self { values, class_names })
    }

    /// Number of samples, labelled or not.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<usize> {
        self.values.get(index).copied().flatten().map(|label| label as usize)
    }

    pub(super) fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// Says how many samples lack a label where others have one.
    pub(super) fn note(&self) -> Option<String> {
        let without = self.values.iter().filter(|label| label.is_none()).count();
        let count = self.values.len();
        (without > 0 && without < count).then(|| format!("{without} of {count} images have no label"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[Option<u32>], names: &[&str]) -> Result<Labels> {
        let names = names.iter().map(|name| name.to_string()).collect();
        Labels::new(values.to_vec(), names, |index| format!("sample {index}"))
    }

    #[test]
    fn classes_without_names_are_called_by_their_numbers() {
        let numbered = labels(&[Some(2), None, Some(0)], &[]).unwrap();
        assert_eq!(numbered.class_names(), ["0", "1", "2"]);
        assert_eq!((numbered.get(0), numbered.get(1)), (Some(2), None));
        assert_eq!(numbered.note().unwrap(), "1 of 3 images have no label");
        assert!(labels(&[None, None], &[]).unwrap().note().is_none());
    }

    #[test]
    fn labels_outside_the_classes_are_refused() {
        let message = labels(&[Some(0), Some(2)], &["cat", "dog"]).unwrap_err().to_string();
        assert_eq!(message, "label 2 of sample 1 is not one of 2 classes");
        assert!(labels(&[Some(1_000_001)], &[]).is_err());
    }
}
