//! The paper's numbers in rows: one for each encoder of each of its tables.

use crate::report::{DatasetReport, Published};

/// What the numbers of a row have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaperRow<'a> {
    pub(crate) table: &'a str,
    pub(crate) method: &'a str,
    pub(crate) arch: &'a str,
    /// [`IN_DOMAIN`] if it was the set of the number itself, so that such encoders share a row over sets.
    pub(crate) pretraining: &'a str,
    pub(crate) protocol: &'a str,
    /// Counts numbers that differ in nothing else, such as those of an ablation.
    occurrence: usize,
}

/// What the paper calls pretraining on the training images of the set itself.
const IN_DOMAIN: &str = "in-domain";

impl<'a> PaperRow<'a> {
    /// The paper's numbers for a set with their rows.
    pub(crate) fn of(dataset: &'a DatasetReport) -> Vec<(Self, &'a Published)> {
        let mut numbers: Vec<(Self, &Published)> = Vec::new();
        for published in &dataset.published {
            let Published { table, method, arch, pretraining, protocol, shots, accuracy: _ } = published;
            let pretraining = if *pretraining == dataset.name { IN_DOMAIN } else { pretraining };
            let mut row = Self { table, method, arch, pretraining, protocol, occurrence: 0 };
            while numbers.iter().any(|(other, it)| *other == row && it.shots == *shots) {
                row.occurrence += 1;
            }
            numbers.push((row, published));
        }
        numbers
    }

    /// Whether the encoder was fixed, as ours are.
    pub(crate) fn is_frozen(&self) -> bool {
        self.protocol == "frozen"
    }

    /// Encoder and pretraining, as far as the paper says it.
    pub(crate) fn encoder(&self) -> String {
        if self.pretraining.is_empty() {
            self.arch.into()
        } else {
            format!("{}, {}", self.arch, self.pretraining)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn encoders_of_the_set_itself_share_a_row_and_equal_ones_do_not() {
        let mut report = samples::galaxies();
        let published = &mut report.datasets[0].published;
        let first = published[0].clone();
        published.push(first);
        let rows = PaperRow::of(&report.datasets[0]);
        let ((first, _), (last, _)) = (rows[0], rows[rows.len() - 1]);
        assert_eq!(first.encoder(), "convnextv2_nano, in-domain");
        assert_eq!(last, PaperRow { occurrence: 1, ..first });
    }
}
