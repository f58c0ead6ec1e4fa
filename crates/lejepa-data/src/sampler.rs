//! Which samples a step sees: a new permutation of the data for every epoch.

use std::sync::{Arc, Mutex, PoisonError};

use rand::seq::SliceRandom;

use crate::{Error, Purpose, Result, generator};

/// The order of samples as a pure function of seed and step.
#[derive(Debug)]
pub struct Sampler {
    seed: u64,
    samples: usize,
    batch: usize,
    /// The permutation that was used last, because the next step most likely needs it too.
    latest: Mutex<Option<(u64, Arc<Vec<u32>>)>>,
}

impl Sampler {
    /// Batches of `batch` out of `samples`; what is left at the end of an epoch is dropped.
    pub fn new(seed: u64, samples: usize, batch: usize) -> Result<Self> {
        if batch == 0 || batch > samples || u32::try_from(samples).is_err() {
            return Err(Error::Setting {
                field: "train.batch",
                expected: format!("between 1 and the number of training images, {samples}"),
                got: batch.to_string(),
            });
        }
        Ok(Self { seed, samples, batch, latest: Mutex::new(None) })
    }

    /// Batches in an epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        (self.samples / self.batch) as u64
    }

    /// The samples of a step.
    pub fn indices(&self, step: u64) -> Vec<usize> {
        let epoch = step / self.steps_per_epoch();
        let start = (step % self.steps_per_epoch()) as usize * self.batch;
        let order = self.order(epoch);
        order[start..start + self.batch].iter().map(|&index| index as usize).collect()
    }

    fn order(&self, epoch: u64) -> Arc<Vec<u32>> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some((known, order)) if *known == epoch => order.clone(),
            _ => {
                let mut order: Vec<u32> = (0..self.samples as u32).collect();
                order.shuffle(&mut generator(self.seed, Purpose::Order, epoch, 0));
                let order = Arc::new(order);
                *latest = Some((epoch, order.clone()));
                order
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_visits_every_sample_at_most_once() {
        let sampler = Sampler::new(7, 103, 10).unwrap();
        let mut seen: Vec<usize> = (0..10).flat_map(|step| sampler.indices(step)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100);
    }

    #[test]
    fn a_step_does_not_depend_on_the_steps_before_it() {
        let walked = Sampler::new(7, 103, 10).unwrap();
        let order: Vec<_> = (0..25).map(|step| walked.indices(step)).collect();
        assert_ne!(order[0], order[10], "epochs have different orders");
        assert_eq!(Sampler::new(7, 103, 10).unwrap().indices(17), order[17]);
        assert_ne!(Sampler::new(8, 103, 10).unwrap().indices(17), order[17]);
    }

    #[test]
    fn a_batch_of_none_or_of_too_many_is_refused() {
        assert!(Sampler::new(0, 10, 0).is_err());
        assert!(Sampler::new(0, 10, 11).is_err());
        assert!(Sampler::new(0, 10, 10).is_ok());
    }
}
