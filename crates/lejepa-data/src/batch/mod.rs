//! Training batches: a pure function of seed and step.

mod broken;
mod sampler;
mod stream;

pub use broken::BrokenImage;
pub use sampler::{Part, Sampler};
pub use stream::BatchStream;

use std::sync::{Mutex, PoisonError};

use rand::Rng;
use rayon::prelude::*;

use broken::BrokenImages;

use crate::{Dataset, Purpose, Result, TrainingData, ViewSize, Views, Workbench, generator};

/// The views of one training step.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The step it belongs to.
    pub step: u64,
    /// Global views.
    pub global: ViewBatch,
    /// Local views; without any, a batch of zero views.
    pub local: ViewBatch,
    /// Images that could not be used, and that others took the place of.
    pub broken: Vec<BrokenImage>,
}

impl Batch {
    /// The first samples of the batch, which stays as it is.
    pub fn first_samples(&self, samples: usize) -> Self {
        let (global, local) = (self.global.first_samples(samples), self.local.first_samples(samples));
        Self { step: self.step, global, local, broken: Vec::new() }
    }
}

/// Views of one size, `(views, samples, channels, height, width)`.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewBatch {
    /// Views per sample.
    pub views: usize,
    /// Samples.
    pub samples: usize,
    /// Channels.
    pub channels: usize,
    /// Rows and columns.
    pub size: ViewSize,
    /// The values, in the order of the shape.
    pub pixels: Vec<f32>,
}

impl ViewBatch {
    fn black((views, size): (usize, ViewSize), samples: usize, channels: usize) -> Self {
        let pixels = vec![0.; views * samples * channels * size.height * size.width];
        Self { views, samples, channels, size, pixels }
    }

    fn first_samples(&self, samples: usize) -> Self {
        let samples = samples.min(self.samples);
        let length = self.channels * self.size.height * self.size.width;
        let mut pixels = Vec::with_capacity(self.views * samples * length);
        let places = (0..self.views).flat_map(|view| (0..samples).map(move |sample| (view, sample)));
        places.for_each(|(view, sample)| pixels.extend_from_slice(self.view(view, sample)));
        Self { samples, pixels, ..*self }
    }

    /// One view of a sample.
    pub(crate) fn view(&self, view: usize, sample: usize) -> &[f32] {
        let length = self.channels * self.size.height * self.size.width;
        let start = (view * self.samples + sample) * length;
        &self.pixels[start..start + length]
    }

    /// The place of every view, view by view and in each sample by sample.
    fn places(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.pixels.chunks_exact_mut((self.channels * self.size.height * self.size.width).max(1))
    }
}

/// What decides the batches, besides the data and its views.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchConfig {
    /// Samples per step.
    pub batch: usize,
    /// Decides order and views.
    pub seed: u64,
    /// The share of images that may be unusable.
    pub broken_limit: f64,
}

/// Makes the batch of any step.
pub struct BatchSource {
    dataset: Box<dyn Dataset>,
    views: Views,
    sampler: Sampler,
    seed: u64,
    broken: BrokenImages,
    /// One per thread at work, used again for the next sample.
    workbenches: Mutex<Vec<Workbench>>,
}

/// So many images in a row cannot be used: there is no use in trying more.
const ATTEMPTS: usize = 100;

impl BatchSource {
    /// Batches of a dataset.
    pub fn new(data: TrainingData, views: Views, config: BatchConfig) -> Result<Self> {
        let TrainingData { dataset, parts } = data;
        let BatchConfig { batch, seed, broken_limit } = config;
        let sampler = Sampler::new(seed, parts, batch)?;
        let broken = BrokenImages::new(dataset.len(), broken_limit);
        Ok(Self { dataset, views, sampler, seed, broken, workbenches: Mutex::default() })
    }

    /// The data it draws from.
    pub fn dataset(&self) -> &dyn Dataset {
        &*self.dataset
    }

    /// What is made of a sample.
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// The samples of a step.
    pub(crate) fn indices(&self, step: u64) -> Vec<usize> {
        self.sampler.indices(step)
    }

    /// Batches in an epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        self.sampler.steps_per_epoch()
    }

    /// The batch of a step; the same for the same seed, whatever came before and however many threads
    /// make it.
    pub fn batch(&self, step: u64) -> Result<Batch> {
        let indices = self.sampler.indices(step);
        let (samples, channels) = (indices.len(), self.views.channels());
        let mut global = ViewBatch::black(self.views.global(), samples, channels);
        let mut local = ViewBatch::black(self.views.local(), samples, channels);
        let mut places: Vec<Vec<&mut [f32]>> = std::iter::repeat_with(Vec::new).take(samples).collect();
        for (view, place) in global.places().chain(local.places()).enumerate() {
            places[view % samples].push(place);
        }
        let broken = places
            .into_par_iter()
            .zip(indices)
            .enumerate()
            .map(|(slot, (mut places, index))| self.sample(step, slot as u64, index, &mut places))
            .collect::<Result<Vec<_>>>()?;
        Ok(Batch { step, global, local, broken: broken.into_iter().flatten().collect() })
    }

    /// Makes the views of one sample, or of another one if it cannot be used. Returns the unusable ones.
    fn sample(
        &self,
        step: u64,
        slot: u64,
        mut index: usize,
        places: &mut [&mut [f32]],
    ) -> Result<Vec<BrokenImage>> {
        let mut others = generator(self.seed, Purpose::Replacement, step, slot);
        let mut unusable = Vec::new();
        loop {
            let mut generator = generator(self.seed, Purpose::Views, step, slot);
            let mut workbench = self.workbenches().pop().unwrap_or_default();
            let stored = self.dataset.stored(index);
            let made =
                stored.and_then(|stored| self.views.make(stored, &mut generator, &mut workbench, places));
            self.workbenches().push(workbench);
            let Err(error) = made else { return Ok(unusable) };
            let image = BrokenImage::new(self.dataset.name(index), &error);
            self.broken.add(index, &image)?;
            unusable.push(image);
            if unusable.len() == ATTEMPTS {
                return Err(self.broken.too_many(&unusable[0]));
            }
            index = others.random_range(0..self.dataset.len());
        }
    }

    fn workbenches(&self) -> std::sync::MutexGuard<'_, Vec<Workbench>> {
        self.workbenches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
