//! What is kept of scores: the first few classes of every query.

use crate::Result;
use crate::learnt::Columns;

/// The classes with the highest scores of every query, the highest first; of equals the smallest class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    /// Classes of a query.
    length: usize,
    /// `(queries, length)`
    classes: Vec<usize>,
    /// Queries without a neighbour.
    pub(crate) alone: usize,
}

impl Ranking {
    /// Of at most so many classes, and of none without training samples.
    pub(crate) fn new(columns: &Columns, count: usize) -> Result<Self> {
        Ok(Self { length: columns.known()?.len().min(count), classes: Vec::new(), alone: 0 })
    }

    /// One more query.
    pub(crate) fn push(&mut self, scores: &[f64], known: &[usize]) {
        // The best so far, in falling order: a short list, and nearly no score gets into it.
        let mut best: Vec<(f64, usize)> = Vec::with_capacity(self.length + 1);
        for (&score, &class) in scores.iter().zip(known) {
            let full = best.len() == self.length;
            if full
                && best.last().is_none_or(|last| score.partial_cmp(&last.0).is_none_or(|order| order.is_le()))
            {
                continue;
            }
            let place = best.partition_point(|other| other.0 >= score);
            best.insert(place, (score, class));
            best.truncate(self.length);
        }
        self.classes.extend(best.into_iter().map(|(_, class)| class));
    }

    /// The class with the highest score of every query.
    pub fn predicted(&self) -> Vec<usize> {
        self.classes.chunks(self.length.max(1)).filter_map(|best| best.first().copied()).collect()
    }

    /// Queries that had no sample near enough and took what their nearest says.
    pub fn alone(&self) -> usize {
        self.alone
    }

    /// The share of queries whose label is among the `k` highest scores.
    pub fn top(&self, k: usize, labels: &[usize]) -> f64 {
        let best = self.classes.chunks(self.length.max(1)).map(|best| &best[..k.min(best.len())]);
        let found = best.zip(labels).filter(|(best, label)| best.contains(label)).count();
        found as f64 / labels.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_come_first_and_of_equals_the_smallest_class() {
        let columns = Columns::Classes { known: vec![2, 5, 7, 300_000], all: 300_001 };
        let mut ranking = Ranking::new(&columns, 3).unwrap();
        let known = columns.known().unwrap();
        ranking.push(&[0.1, 0.4, 0.1, 0.4], known);
        ranking.push(&[0., 0., 0., 0.], known);
        assert_eq!(ranking.classes, [5, 300_000, 2, 2, 5, 7]);
        assert_eq!(ranking.predicted(), [5, 2]);
        assert_eq!((ranking.top(1, &[5, 5]), ranking.top(2, &[300_000, 5])), (0.5, 1.));
        assert_eq!(ranking.top(5, &[9, 300_000]), 0.);
        assert!(Ranking::new(&Columns::Values(2), 3).is_err());
    }
}
