//! Training batches: a pure function of seed and step, prepared ahead of the training step.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::prelude::*;

use crate::{Dataset, Error, Purpose, Result, Sampler, ViewSize, Views, generator};

/// The views of one training step.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The step it belongs to.
    pub step: u64,
    /// Global views.
    pub global: ViewBatch,
    /// Local views; without any, a batch of zero views.
    pub local: ViewBatch,
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
    fn gather(size: ViewSize, channels: usize, views: Range<usize>, made: &[Vec<Vec<f32>>]) -> Self {
        let of_view = |view: usize| made.iter().flat_map(move |of_sample| &of_sample[view]);
        let count = views.len();
        let pixels: Vec<f32> = views.flat_map(of_view).copied().collect::<Vec<f32>>();
        Self { views: count, samples: made.len(), channels, size, pixels }
    }
}

/// Makes the batch of any step.
pub struct BatchSource {
    dataset: Box<dyn Dataset>,
    views: Views,
    sampler: Sampler,
    seed: u64,
}

impl BatchSource {
    /// Batches of `batch` samples of a dataset.
    pub fn new(dataset: Box<dyn Dataset>, views: Views, batch: usize, seed: u64) -> Result<Self> {
        let sampler = Sampler::new(seed, dataset.len(), batch)?;
        Ok(Self { dataset, views, sampler, seed })
    }

    /// The data it draws from.
    pub fn dataset(&self) -> &dyn Dataset {
        &*self.dataset
    }

    /// Batches in an epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        self.sampler.steps_per_epoch()
    }

    /// The batch of a step; the same for the same seed, whatever came before.
    pub fn batch(&self, step: u64) -> Result<Batch> {
        let made = self
            .sampler
            .indices(step)
            .par_iter()
            .enumerate()
            .map(|(slot, &index)| {
                let mut generator = generator(self.seed, Purpose::Views, step, slot as u64);
                self.views.make(self.dataset.image(index)?, &mut generator)
            })
            .collect::<Result<Vec<_>>>()?;
        let channels = self.views.channels();
        let (global, global_size) = self.views.global();
        let (local, local_size) = self.views.local();
        Ok(Batch {
            step,
            global: ViewBatch::gather(global_size, channels, 0..global, &made),
            local: ViewBatch::gather(local_size, channels, global..global + local, &made),
        })
    }
}

/// Batches of consecutive steps, prepared by a thread while the caller trains on earlier ones.
pub struct BatchStream {
    received: Receiver<Result<Batch>>,
    steps: Range<u64>,
}

impl BatchStream {
    /// Batches that may wait for the training step.
    const AHEAD: usize = 2;

    /// Starts to prepare the batches of `steps`. The thread ends with the last batch, with the first
    /// error, or when the stream is dropped.
    pub fn start(source: Arc<BatchSource>, steps: Range<u64>) -> Result<Self> {
        let (sender, received) = sync_channel(Self::AHEAD);
        let to_prepare = steps.clone();
        std::thread::Builder::new()
            .name("batches".into())
            .spawn(move || {
                for step in to_prepare {
                    let batch = source.batch(step);
                    let failed = batch.is_err();
                    if sender.send(batch).is_err() || failed {
                        return;
                    }
                }
            })
            .map_err(|_| Error::BatchThread)?;
        Ok(Self { received, steps })
    }
}

impl Iterator for BatchStream {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.steps.next()?;
        Some(self.received.recv().unwrap_or(Err(Error::BatchThread)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Image, Preprocess, Stored, ViewsConfig};

    struct Gradients;

    impl Dataset for Gradients {
        fn len(&self) -> usize {
            50
        }
        fn stored(&self, index: usize) -> Result<Stored> {
            let pixels = (0..16 * 12).map(|pixel| (pixel + index * 3) as u8).collect();
            Ok(Stored::Pixels(Image::from_pixels(16, 12, 1, pixels)?))
        }
        fn name(&self, index: usize) -> String {
            format!("gradient {index}")
        }
        fn label(&self, _index: usize) -> Option<usize> {
            None
        }
        fn class_names(&self) -> &[String] {
            &[]
        }
        fn fingerprint(&self) -> &str {
            "gradients"
        }
    }

    fn source(seed: u64) -> Arc<BatchSource> {
        let local = ViewSize { height: 4, width: 4 };
        let views = Views::new(&ViewsConfig::default(), &Preprocess::new(8, (8, 8), 1), local).unwrap();
        Arc::new(BatchSource::new(Box::new(Gradients), views, 7, seed).unwrap())
    }

    #[test]
    fn a_stream_gives_the_same_batches_from_any_start() {
        let whole: Vec<Batch> = BatchStream::start(source(1), 0..20).unwrap().collect::<Result<_>>().unwrap();
        let resumed: Vec<Batch> =
            BatchStream::start(source(1), 13..20).unwrap().collect::<Result<_>>().unwrap();
        assert!(whole[13..] == resumed[..]);
        assert!(source(2).batch(0).unwrap() != whole[0]);
        assert_ne!(whole[0].global.pixels, whole[7].global.pixels, "epochs have views of their own");
    }

    #[test]
    fn batches_are_laid_out_view_by_view() {
        let batch = source(1).batch(3).unwrap();
        assert_eq!((batch.global.views, batch.local.views, batch.global.samples), (2, 6, 7));
        assert_eq!(batch.global.pixels.len(), 2 * 7 * 8 * 8);
        assert_eq!(batch.local.pixels.len(), 6 * 7 * 4 * 4);
    }

    #[test]
    fn dropping_a_stream_early_is_fine() {
        let mut stream = BatchStream::start(source(1), 0..1_000_000).unwrap();
        assert_eq!(stream.next().unwrap().unwrap().step, 0);
    }
}
