//! Batches of consecutive steps, prepared ahead of the training step.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use crate::{Batch, BatchSource, Error, Result};

/// Batches of consecutive steps, prepared by worker threads while the caller trains on earlier ones.
pub struct BatchStream {
    steps: Range<u64>,
    origin: Origin,
}

enum Origin {
    /// The batch is made when it is asked for.
    Caller(Arc<BatchSource>),
    /// Batches wait in a bounded queue.
    Workers(Receiver<Result<Batch>>),
}

/// Batches that may wait for the training step.
const AHEAD: usize = 2;

impl BatchStream {
    /// Batches that are in memory at the same time with so many threads: those that wait, one that is made and one
    /// that is trained on.
    pub fn in_memory(workers: usize) -> usize {
        if workers == 0 { 1 } else { AHEAD + 2 }
    }

    /// Starts to prepare the batches of `steps` with a number of threads; with 0 each batch is made when
    /// it is asked for. The threads end with the last batch, with the first error, or when the stream is
    /// dropped.
    pub fn start(source: Arc<BatchSource>, steps: Range<u64>, workers: usize) -> Result<Self> {
        if workers == 0 {
            return Ok(Self { steps, origin: Origin::Caller(source) });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(workers)
            .thread_name(|worker| format!("views-{worker}"))
            .build()
            .map_err(|_| Error::BatchThread)?;
        let (sender, received) = sync_channel(AHEAD);
        let to_prepare = steps.clone();
        std::thread::Builder::new()
            .name("batches".into())
            .spawn(move || {
                for step in to_prepare {
                    let batch = pool.install(|| source.batch(step));
                    let failed = batch.is_err();
                    if sender.send(batch).is_err() || failed {
                        return;
                    }
                }
            })
            .map_err(|_| Error::BatchThread)?;
        Ok(Self { steps, origin: Origin::Workers(received) })
    }
}

impl Iterator for BatchStream {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.steps.next()?;
        Some(match &self.origin {
            Origin::Caller(source) => source.batch(step),
            Origin::Workers(received) => received.recv().unwrap_or(Err(Error::BatchThread)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BatchConfig, Dataset, Image, Part, Preprocess, Stored, TrainingData, ViewSize, Views, ViewsConfig,
    };

    /// Small pictures, some of which are broken.
    struct Gradients {
        broken: Range<usize>,
    }

    impl Dataset for Gradients {
        fn len(&self) -> usize {
            50
        }
        fn stored(&self, index: usize) -> Result<Stored> {
            if self.broken.contains(&index) {
                return Ok(Stored::File(vec![1, 2, 3]));
            }
            let pixels = (0..32 * 24 * 3).map(|pixel| (pixel * (index + 1) / 5) as u8).collect();
            Ok(Stored::Pixels(Image::from_pixels(32, 24, 3, pixels)?))
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
        fn files(&self) -> Vec<std::path::PathBuf> {
            Vec::new()
        }
    }

    fn source_with(seed: u64, broken: Range<usize>, broken_limit: f64) -> Arc<BatchSource> {
        let local = ViewSize { height: 8, width: 8 };
        let views = Views::new(&ViewsConfig::default(), &Preprocess::new(16, (16, 16), 3), local).unwrap();
        let parts = vec![Part { samples: 50, draws: 50 }];
        let data = TrainingData { dataset: Box::new(Gradients { broken }), parts };
        Arc::new(BatchSource::new(data, views, BatchConfig { batch: 7, seed, broken_limit }).unwrap())
    }

    fn source(seed: u64) -> Arc<BatchSource> {
        source_with(seed, 0..0, 0.)
    }

    fn collect(source: Arc<BatchSource>, steps: Range<u64>, workers: usize) -> Result<Vec<Batch>> {
        BatchStream::start(source, steps, workers)?.collect()
    }

    #[test]
    fn any_number_of_workers_and_a_resume_give_the_same_bytes() {
        // With broken images in between, whose replacements must be the same too.
        let source = || source_with(1, 10..13, 0.1);
        let whole = collect(source(), 0..20, 0).unwrap();
        assert!(whole.iter().any(|batch| !batch.broken.is_empty()));
        for workers in [1, 4] {
            assert!(collect(source(), 0..20, workers).unwrap() == whole, "{workers} workers");
        }
        for workers in [0, 1, 4] {
            assert!(collect(source(), 7..20, workers).unwrap() == whole[7..], "{workers} workers");
        }
        assert!(collect(self::source(2), 0..1, 1).unwrap()[0] != whole[0], "another seed");
        assert_ne!(whole[0].global.pixels, whole[7].global.pixels, "epochs have views of their own");
    }

    #[test]
    fn batches_are_laid_out_view_by_view() {
        let batch = source(1).batch(3).unwrap();
        assert_eq!((batch.global.views, batch.local.views, batch.global.samples), (2, 6, 7));
        assert_eq!(batch.global.pixels.len(), 2 * 7 * 3 * 16 * 16);
        assert_eq!(batch.local.pixels.len(), 6 * 7 * 3 * 8 * 8);
    }

    #[test]
    fn broken_images_are_named_and_replaced() {
        let batches = collect(source_with(1, 10..12, 0.04), 0..7, 2).unwrap();
        let mut named: Vec<&str> =
            batches.iter().flat_map(|batch| &batch.broken).map(|image| image.name.as_str()).collect();
        named.sort_unstable();
        named.dedup();
        assert!(!named.is_empty() && named.iter().all(|name| ["gradient 10", "gradient 11"].contains(name)));
        let black = |pixels: &[f32]| pixels.iter().all(|&value| value == 0.);
        let view = 3 * 16 * 16;
        assert!(batches.iter().all(|batch| !batch.global.pixels.chunks(view).any(black)));
    }

    #[test]
    fn too_many_broken_images_stop_the_run() {
        for broken in [10..12, 0..50] {
            let error = collect(source_with(1, broken, 0.03), 0..14, 2).unwrap_err().to_string();
            assert!(error.contains("of 50 images cannot be used") && error.contains("3 %"), "{error}");
        }
        let all = collect(source_with(1, 0..50, 1.), 0..1, 1).unwrap_err().to_string();
        assert!(all.contains("gradient"), "{all}");
    }

    #[test]
    fn dropping_a_stream_early_is_fine() {
        let mut stream = BatchStream::start(source(1), 0..1_000_000, 2).unwrap();
        assert_eq!(stream.next().unwrap().unwrap().step, 0);
    }
}
