//! How good predictions are.
//!
//! linfa's metrics take the predictions of a [`Model`](crate::Model) too. These are in f64, take scores, and hold no
//! matrix of all classes, of which there may be hundreds of thousands.

use std::collections::BTreeMap;

use ndarray::Array2;

/// What a probe says about queries: `(queries, outputs)`, one column per class or predicted value.
pub type Scores = Array2<f64>;

/// The class with the highest score for every query; of equals the first.
pub fn predicted(scores: &Scores) -> Vec<usize> {
    let first_largest = |best: (usize, f64), next: (usize, &f64)| {
        if *next.1 > best.1 { (next.0, *next.1) } else { best }
    };
    let largest = |row: ndarray::ArrayView1<'_, f64>| {
        row.iter().enumerate().fold((0, f64::NEG_INFINITY), first_largest).0
    };
    scores.outer_iter().map(largest).collect()
}

/// The share of predictions that are the label; 0 if there are none.
pub fn accuracy(predicted: &[usize], labels: &[usize]) -> f64 {
    let correct = predicted.iter().zip(labels).filter(|(predicted, label)| predicted == label).count();
    correct as f64 / labels.len().max(1) as f64
}

/// The share of queries whose label is among the `k` highest scores; of equals the first classes count.
pub fn top(k: usize, scores: &Scores, labels: &[usize]) -> f64 {
    let found = scores.outer_iter().zip(labels).filter(|(row, label)| {
        let Some(own) = row.get(**label) else { return false };
        let before = |(class, score): (usize, &f64)| score > own || (score == own && class < **label);
        row.iter().enumerate().filter(|entry| before(*entry)).count() < k
    });
    found.count() as f64 / labels.len().max(1) as f64
}

/// How often each class was taken for which: pairs that occur, however many classes there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confusion {
    counts: BTreeMap<(usize, usize), usize>,
}

impl Confusion {
    /// One count per query.
    pub fn new(predicted: &[usize], labels: &[usize]) -> Self {
        let mut confusion = Self::default();
        confusion.add(predicted, labels);
        confusion
    }

    /// Counts more queries, such as those of another draw.
    pub fn add(&mut self, predicted: &[usize], labels: &[usize]) {
        for (&predicted, &label) in predicted.iter().zip(labels) {
            *self.counts.entry((label, predicted)).or_default() += 1;
        }
    }

    /// `[label, predicted class, queries]` where there are any, in rising order.
    pub fn counts(&self) -> Vec<[usize; 3]> {
        self.counts.iter().map(|(&(label, predicted), &count)| [label, predicted, count]).collect()
    }

    /// The accuracy within each of so many classes; nothing for a class without queries.
    pub fn class_accuracies(&self, classes: usize) -> Vec<Option<f64>> {
        let mut sums: BTreeMap<usize, [usize; 2]> = BTreeMap::new();
        for (&(label, predicted), &count) in &self.counts {
            let [right, all] = sums.entry(label).or_default();
            *right += if label == predicted { count } else { 0 };
            *all += count;
        }
        let accuracy = |class| sums.get(&class).map(|&[right, all]| right as f64 / all as f64);
        (0..classes).map(accuracy).collect()
    }
}

/// The mean over queries and outputs of the squared difference.
///
/// # Shapes
/// - both `(queries, outputs)`
pub fn mean_squared_error(scores: &Scores, values: &Array2<f64>) -> f64 {
    let sum: f64 = scores.iter().zip(values).map(|(score, value)| (score - value).powi(2)).sum();
    sum / values.len().max(1) as f64
}

/// `1 - squared error / squared distance from the mean` of every output: 1 is perfect, 0 no better than the
/// mean. A constant output counts 1 if it is met exactly and 0 otherwise.
///
/// # Shapes
/// - both `(queries, outputs)`
pub fn r_squared(scores: &Scores, values: &Array2<f64>) -> Vec<f64> {
    let of = |(scores, values): (ndarray::ArrayView1<'_, f64>, ndarray::ArrayView1<'_, f64>)| {
        let mean = values.sum() / values.len().max(1) as f64;
        let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error: f64 = scores.iter().zip(values).map(|(score, value)| (score - value).powi(2)).sum();
        match total > 0. {
            true => 1. - error / total,
            false => f64::from(u8::from(error == 0.)),
        }
    };
    scores.columns().into_iter().zip(values.columns()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_label_counts_if_it_is_among_the_highest() {
        let scores = array![[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]];
        assert_eq!(predicted(&scores), [0, 2, 0]);
        assert_eq!(top(1, &scores, &[0, 1, 1]), 1. / 3.);
        assert_eq!(top(2, &scores, &[0, 1, 1]), 1.);
        assert_eq!(top(5, &scores, &[2, 0, 2]), 1.);
        assert_eq!(top(1, &scores, &[7, 7, 7]), 0.);
    }

    #[test]
    fn a_class_without_queries_has_no_accuracy() {
        let confusion = Confusion::new(&[0, 1, 1, 2], &[0, 0, 1, 1]);
        assert_eq!(confusion.counts(), [[0, 0, 1], [0, 1, 1], [1, 1, 1], [1, 2, 1]]);
        assert_eq!(confusion.class_accuracies(3), [Some(0.5), Some(0.5), None]);
    }

    /// A matrix of all classes would have 90 thousand million counts.
    #[test]
    fn counts_of_a_large_label_take_no_room() {
        let confusion = Confusion::new(&[7, 300_000], &[300_000, 300_000]);
        assert_eq!(confusion.counts(), [[300_000, 7, 1], [300_000, 300_000, 1]]);
        assert_eq!(confusion.class_accuracies(300_001)[300_000], Some(0.5));
    }

    #[test]
    fn the_mean_explains_nothing() {
        let values = array![[1., 5.], [3., 5.]];
        assert_eq!(r_squared(&values, &values), [1., 1.]);
        assert_eq!(r_squared(&array![[2., 5.], [2., 4.]], &values), [0., 0.]);
        assert_eq!(mean_squared_error(&array![[2., 5.], [2., 4.]], &values), 0.75);
    }
}
