//! How a model runs: evaluation, or training with what decides its randomness.

use std::fmt::Debug;
use std::sync::Arc;

use candle_core::{DType, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::{Error, Result};

/// One pass over a batch of images.
#[derive(Debug, Clone)]
pub struct Pass {
    training: Option<Training>,
}

#[derive(Debug, Clone)]
struct Training {
    seed: u64,
    first_image: usize,
    tracking: bool,
    checked: bool,
    dropping: bool,
    masking: f64,
    sums: Option<Arc<dyn SumAcross>>,
}

/// Adds a tensor of sums up over all processes that share a batch, for synchronised batch
/// normalisation. The result must carry the gradient of the local part.
pub trait SumAcross: Debug + Send + Sync {
    /// The sum over all processes, the same on each.
    fn sum(&self, local: &Tensor) -> Result<Tensor>;
}

impl Pass {
    /// Uses what was learnt: running statistics, no randomness.
    pub fn eval() -> Self {
        Self { training: None }
    }

    /// Learns from the batch: its own statistics, stochastic depth. The seed decides all randomness.
    pub fn train(seed: u64) -> Self {
        let training = Training {
            seed,
            first_image: 0,
            tracking: true,
            checked: false,
            dropping: true,
            masking: 0.,
            sums: None,
        };
        Self { training: Some(training) }
    }

    /// The images are those from `first` on of a larger batch: they meet the randomness that they would
    /// meet there.
    pub fn starting_at(self, first: usize) -> Self {
        self.change(|training| training.first_image = first)
    }

    /// Leaves running statistics alone, for a pass that is done twice.
    pub fn without_tracking(self) -> Self {
        self.change(|training| training.tracking = false)
    }

    /// Passes over no block, whatever the model's stochastic depth.
    pub fn without_dropping(self) -> Self {
        self.change(|training| training.dropping = false)
    }

    /// Stops with an error at the first tensor that holds a value which is not finite.
    pub fn checked(self) -> Self {
        self.change(|training| training.checked = true)
    }

    /// Hides this share of every image's patches from a vision transformer.
    pub fn with_masking(self, share: f64) -> Self {
        self.change(|training| training.masking = share)
    }

    /// Batch statistics are those of all processes.
    pub fn with_sums(self, sums: Arc<dyn SumAcross>) -> Self {
        self.change(|training| training.sums = Some(sums))
    }

    fn change(mut self, change: impl FnOnce(&mut Training)) -> Self {
        if let Some(training) = &mut self.training {
            change(training);
        }
        self
    }

    /// Whether layers use the statistics of the batch.
    pub fn is_training(&self) -> bool {
        self.training.is_some()
    }

    /// Whether running statistics follow the batch.
    pub(crate) fn is_tracking(&self) -> bool {
        self.training.as_ref().is_some_and(|training| training.tracking)
    }

    /// Shows the pass what a part of a model has made, for [`checked`](Self::checked).
    pub fn see(&self, part: impl std::fmt::Display, tensor: &Tensor) -> Result<()> {
        if self.is_checked() {
            // A sum of magnitudes is finite only if all of them are.
            let sum: f64 = tensor.abs()?.sum_all()?.to_dtype(DType::F64)?.to_scalar()?;
            if !sum.is_finite() {
                return Err(Error::NotFinite { name: part.to_string() });
            }
        }
        Ok(())
    }

    /// Whether somebody looks at the tensors between layers.
    pub(crate) fn is_checked(&self) -> bool {
        self.training.as_ref().is_some_and(|training| training.checked)
    }

    /// Whether blocks are passed over.
    pub(crate) fn is_dropping(&self) -> bool {
        self.training.as_ref().is_some_and(|training| training.dropping)
    }

    /// The share of patches that is hidden.
    pub(crate) fn masking(&self) -> f64 {
        self.training.as_ref().map_or(0., |training| training.masking)
    }

    /// How sums become those of all processes, if there are others.
    pub(crate) fn sums(&self) -> Option<&dyn SumAcross> {
        self.training.as_ref().and_then(|training| training.sums.as_deref())
    }

    /// The random numbers of one image at one place in the model; nothing in evaluation.
    pub(crate) fn generator(&self, place: u64, image: usize) -> Option<ChaCha8Rng> {
        let training = self.training.as_ref()?;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&training.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&place.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(seed);
        generator.set_stream((training.first_image + image) as u64);
        Some(generator)
    }
}
