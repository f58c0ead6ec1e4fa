//! The loss that a checkpoint is judged by: the mean over the steps before it, as many as are between two checkpoints.
//!
//! It is a function of the step alone: a run that was interrupted in between has the same checkpoints, to the last bit.

use std::collections::VecDeque;

use crate::TrainConfig;

/// The losses of the last steps.
#[derive(Debug)]
pub(crate) struct RecentLosses {
    losses: VecDeque<f64>,
    most: usize,
}

impl RecentLosses {
    /// More than these would say little of the weights as they are.
    const MAX: u64 = 10_000;

    pub(crate) fn new(config: &TrainConfig) -> Self {
        Self { losses: VecDeque::new(), most: Self::count(config) }
    }

    /// Steps that a checkpoint is judged by.
    pub(crate) fn count(config: &TrainConfig) -> usize {
        config.train.checkpoint_every.clamp(1, Self::MAX) as usize
    }

    pub(crate) fn push(&mut self, loss: f64) {
        self.losses.push_back(loss);
        self.losses.drain(..self.losses.len().saturating_sub(self.most));
    }

    /// Takes over steps and losses from a log. Steps that it lacks, as one that was removed does, end the row.
    pub(crate) fn recall(&mut self, logged: &[(u64, f64)], taken: u64) {
        let row = logged.iter().rev().zip(1..).take_while(|&(&(step, _), back)| step + back == taken);
        let row: Vec<f64> = row.map(|(&(_, loss), _)| loss).collect();
        row.into_iter().rev().for_each(|loss| self.push(loss));
    }

    /// Nothing before the first step.
    pub(crate) fn mean(&self) -> Option<f64> {
        let sum: f64 = self.losses.iter().sum();
        (!self.losses.is_empty()).then(|| sum / self.losses.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_of_the_last_steps_whether_they_were_taken_or_read() {
        let mut config = TrainConfig::default();
        config.train.checkpoint_every = 3;
        let mut taken = RecentLosses::new(&config);
        assert_eq!(taken.mean(), None);
        (0..5).for_each(|step| taken.push(f64::from(step)));
        assert_eq!(taken.mean(), Some(3.));
        let mut read = RecentLosses::new(&config);
        read.recall(&[(1, 1.), (2, 2.), (3, 3.), (4, 4.)], 5);
        assert_eq!(read.mean(), Some(3.));
        let mut gap = RecentLosses::new(&config);
        gap.recall(&[(2, 2.), (4, 4.)], 5);
        assert_eq!(gap.mean(), Some(4.), "step 3 is missing");
        let mut other = RecentLosses::new(&config);
        other.recall(&[(2, 2.)], 5);
        assert_eq!(other.mean(), None, "the log of other steps");
    }
}
