//! Which samples a step sees: a new permutation of the data for every epoch.

use std::sync::{Arc, Mutex, PoisonError};

use rand::seq::SliceRandom;

use crate::{Error, Purpose, Result, generator};

/// The order of samples as a pure function of seed and step.
#[derive(Debug)]
pub struct Sampler {
    seed: u64,
    parts: Vec<Part>,
    batch: usize,
    /// The permutation that was used last, because the next step most likely needs it too.
    latest: Mutex<Option<(u64, Arc<Vec<u32>>)>>,
}

/// One of several datasets that lie one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Its samples.
    pub samples: usize,
    /// How many samples an epoch draws from it: all of them once if it equals `samples`.
    pub draws: usize,
}

impl Part {
    /// Parts of the given sizes whose samples are drawn in proportion to weights, or each as often as
    /// the others without. An epoch has as many draws as there are samples.
    pub(crate) fn weighted(sizes_and_weights: &[(usize, Option<f64>)]) -> Result<Vec<Self>> {
        let total: usize = sizes_and_weights.iter().map(|(samples, _)| samples).sum();
        let sum: f64 = sizes_and_weights.iter().filter_map(|(_, weight)| *weight).sum();
        let part = |&(samples, weight): &(usize, Option<f64>)| match weight {
            None if sum == 0. => Ok(Self { samples, draws: samples }),
            Some(weight) if weight.is_finite() && weight > 0. => {
                let draws = (total as f64 * weight / sum).round().max(1.) as usize;
                Ok(Self { samples, draws })
            }
            _ => Err(Error::Setting {
                field: "data.mix.weight",
                expected: "a positive number for every dataset, or for none".into(),
                got: weight.map_or("nothing".into(), |weight| weight.to_string()),
            }),
        };
        sizes_and_weights.iter().map(part).collect()
    }
}

impl Sampler {
    /// Batches of `batch` samples; what is left at the end of an epoch is dropped.
    pub fn new(seed: u64, parts: Vec<Part>, batch: usize) -> Result<Self> {
        let samples: usize = parts.iter().map(|part| part.samples).sum();
        let draws: usize = parts.iter().map(|part| part.draws).sum();
        if batch == 0 || batch > draws || u32::try_from(samples).is_err() {
            return Err(Error::Setting {
                field: "train.batch",
                expected: format!("between 1 and the number of training images, {draws}"),
                got: batch.to_string(),
            });
        }
        Ok(Self { seed, parts, batch, latest: Mutex::new(None) })
    }

    /// Batches in an epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        let draws: usize = self.parts.iter().map(|part| part.draws).sum();
        (draws / self.batch) as u64
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
                let mut order = Vec::new();
                let mut first = 0;
                for (number, part) in self.parts.iter().enumerate() {
                    self.draw(epoch, number as u64, part, first, &mut order);
                    first += part.samples as u32;
                }
                order.shuffle(&mut generator(self.seed, Purpose::Order, epoch, 0));
                let order = Arc::new(order);
                *latest = Some((epoch, order.clone()));
                order
            }
        }
    }

    /// Adds an epoch's draws of a part whose samples begin at `first`: pass after pass over all of its
    /// samples, so that over the epochs each is drawn as often as the others.
    fn draw(&self, epoch: u64, number: u64, part: &Part, first: u32, order: &mut Vec<u32>) {
        let samples = part.samples as u64;
        let draws = epoch * part.draws as u64..(epoch + 1) * part.draws as u64;
        let mut pass: Vec<u32> = (first..first + part.samples as u32).collect();
        if part.draws == part.samples {
            return order.append(&mut pass); // one whole pass, which is shuffled with the other parts
        }
        let mut shuffled = None;
        for draw in draws {
            if shuffled != Some(draw / samples) {
                shuffled = Some(draw / samples);
                pass.sort_unstable();
                pass.shuffle(&mut generator(self.seed, Purpose::Mixture, draw / samples, number));
            }
            order.push(pass[(draw % samples) as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(samples: usize) -> Vec<Part> {
        Part::weighted(&[(samples, None)]).unwrap()
    }

    #[test]
    fn an_epoch_visits_every_sample_at_most_once() {
        let sampler = Sampler::new(7, plain(103), 10).unwrap();
        let mut seen: Vec<usize> = (0..10).flat_map(|step| sampler.indices(step)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100);
    }

    #[test]
    fn a_step_does_not_depend_on_the_steps_before_it() {
        let mixed = || Part::weighted(&[(60, Some(1.)), (43, Some(3.))]).unwrap();
        for parts in [plain(103), mixed()] {
            let walked = Sampler::new(7, parts.clone(), 10).unwrap();
            let order: Vec<_> = (0..25).map(|step| walked.indices(step)).collect();
            assert_ne!(order[0], order[10], "epochs have different orders");
            assert_eq!(Sampler::new(7, parts.clone(), 10).unwrap().indices(17), order[17]);
            assert_ne!(Sampler::new(8, parts, 10).unwrap().indices(17), order[17]);
        }
    }

    #[test]
    fn weights_decide_how_often_a_dataset_is_drawn_and_its_samples_take_turns() {
        let parts = Part::weighted(&[(300, Some(1.)), (100, Some(3.))]).unwrap();
        let sampler = Sampler::new(1, parts, 100).unwrap();
        let mut drawn = [0; 400];
        for step in 0..12 {
            sampler.indices(step).into_iter().for_each(|index| drawn[index] += 1);
        }
        // Three epochs of 400 draws: 300 from the first (each sample once), 900 from the second.
        assert!(drawn[..300].iter().all(|&count| count == 1), "{drawn:?}");
        assert!(drawn[300..].iter().all(|&count| count == 9), "{drawn:?}");
    }

    #[test]
    fn weights_are_given_for_all_or_for_none() {
        assert!(Part::weighted(&[(3, None), (4, Some(1.))]).is_err());
        assert!(Part::weighted(&[(3, Some(-1.)), (4, Some(1.))]).is_err());
        assert!(Part::weighted(&[(3, Some(f64::NAN))]).is_err());
        assert_eq!(Part::weighted(&[(3, None), (4, None)]).unwrap()[1], Part { samples: 4, draws: 4 });
    }

    #[test]
    fn a_batch_of_none_or_of_too_many_is_refused() {
        assert!(Sampler::new(0, plain(10), 0).is_err());
        assert!(Sampler::new(0, plain(10), 11).is_err());
        assert!(Sampler::new(0, plain(10), 10).is_ok());
    }
}
