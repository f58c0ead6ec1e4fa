//! The loss of a batch and its gradients, for the whole batch at once or part by part.
//!
//! One pass of the encoder per view size, one of the projector over all views. With `train.micro_batch`
//! the encoder sees a few samples at a time, and still the step is that of the whole batch: SIGReg
//! compares samples with each other, so that the mean over parts would be another loss. Therefore
//!
//! ```text
//! features = encoder(part) for every part, without gradients
//! loss, d loss / d features = projector and loss of all features
//! for every part again: d loss / d weights += sum(encoder(part) * d loss / d features)
//! ```
//!
//! which costs one more forward pass and keeps the graph of one part only. Batch normalisation inside an
//! encoder sees the part alone.
//!
//! Averaged weights make the centres from whole images, without gradients. All views pass them, though centres are
//! the means of the global ones alone: so that batch normalisation in the projector sees the same views on both
//! sides, and an average that has just begun makes the centres that there would be without it.

use candle_core::{Tensor, Var};
use lejepa_data::{Batch, Purpose as Random, ViewBatch, generator};
use lejepa_loss::{EmbeddedViews, LejepaLoss, LossTerms};
use lejepa_model::{CentreViews, Pass};
use rand::{Rng, RngCore};

use crate::{Average, Gradients, Layers, Model, Result};

/// What a step minimises.
#[derive(Debug, Clone, Copy)]
pub struct Objective<'a> {
    /// What is trained.
    pub model: &'a Model,
    /// What makes the centres, if not the model itself.
    pub average: Option<&'a Average>,
    /// The loss.
    pub loss: &'a LejepaLoss,
    /// Decides what is dropped and masked.
    pub seed: u64,
    /// Share of the patches that is hidden from the encoder.
    pub masking: f64,
    /// Samples that the encoder sees at a time; all of them if absent.
    pub micro_batch: Option<usize>,
    /// What the gradients are for.
    pub purpose: Purpose,
}

/// What gradients are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// A step.
    #[default]
    Step,
    /// To see whether every parameter gets one: no block is passed over, and running statistics stay as they are.
    Audit,
}

/// Images of one size that pass the encoder together: some rows of `(views * samples, ..)`.
struct Part<'a> {
    views: &'a ViewBatch,
    first: usize,
    images: usize,
    pass: Pass,
}

impl Objective<'_> {
    /// The loss of a batch and the gradient of every parameter.
    pub fn gradients(&self, batch: &Batch) -> Result<(LossTerms, Gradients)> {
        let mut gradients = Gradients::default();
        let samples = batch.global.samples;
        let Some(micro_batch) = self.micro_batch.filter(|&part| part < samples) else {
            let layers = self.model.learning();
            let parts = self.parts(batch, samples);
            let features: Vec<Tensor> =
                parts.iter().map(|part| part.features(layers, &part.pass)).collect::<Result<_>>()?;
            let features = Tensor::cat(&features, 0)?; // (views * samples, dim)
            let terms = self.terms(layers, batch, &features, &self.pass(batch, 0))?;
            gradients.add(self.model.trainable(), &terms.loss.backward()?)?;
            return Ok((terms, gradients));
        };

        let parts = self.parts(batch, micro_batch);
        let mut features = Vec::with_capacity(parts.len());
        for part in &parts {
            features.push(part.features(self.model.frozen(), &part.pass.clone().without_tracking())?);
        }
        let features = Var::from_tensor(&Tensor::cat(&features, 0)?)?;
        let terms = self.terms(self.model.learning(), batch, &features, &self.pass(batch, 0))?;
        let store = terms.loss.backward()?;
        gradients.add(self.model.trainable(), &store)?;
        let Some(of_features) = store.get(&features) else { return Ok((terms, gradients)) };
        let mut first = 0;
        for part in &parts {
            let of_part = of_features.narrow(0, first, part.images)?.detach();
            let surrogate = (part.features(self.model.learning(), &part.pass)? * of_part)?.sum_all()?;
            gradients.add(self.model.trainable(), &surrogate.backward()?)?;
            first += part.images;
        }
        Ok((terms, gradients))
    }

    /// Goes through what comes behind the encoder, forward and back, for features that are any numbers.
    pub(crate) fn rehearse_heads(&self, batch: &Batch) -> Result<()> {
        let rows = (batch.global.views + batch.local.views) * batch.global.samples;
        let (layers, mut random) = (self.model.learning(), generator(self.seed, Random::Watching, 0, 1));
        let dim = layers.encoder().dim();
        let values: Vec<f32> = (0..rows * dim).map(|_| random.random::<f32>() - 0.5).collect();
        let features = Var::from_vec(values, (rows, dim), layers.device())?;
        // Averaged weights see the images part by part, as the encoder does.
        let without_average = Self { average: None, ..*self };
        let pass = self.pass(batch, 0).without_tracking();
        let mut gradients = Gradients::default();
        let terms = without_average.terms(layers, batch, &features, &pass)?;
        gradients.add(self.model.trainable(), &terms.loss.backward()?)
    }

    /// Goes through a step's forward pass once more and stops at the first tensor that is not finite.
    pub(crate) fn check(&self, batch: &Batch) -> Result<()> {
        let parts = self.parts(batch, self.micro_batch.unwrap_or(batch.global.samples));
        let mut features = Vec::with_capacity(parts.len());
        for part in &parts {
            let pass = part.pass.clone().without_tracking().checked();
            features.push(part.features(self.model.frozen(), &pass)?);
        }
        let pass = self.pass(batch, 0).without_tracking().checked();
        let features = Tensor::cat(&features, 0)?;
        pass.see("the features", &features)?;
        let terms = self.terms(self.model.frozen(), batch, &features, &pass)?;
        pass.see("the prediction term", &terms.prediction)?;
        pass.see("the SIGReg term", &terms.sigreg)?;
        Ok(())
    }

    /// Projector, predictor, centres and loss.
    fn terms(&self, layers: &Layers, batch: &Batch, features: &Tensor, pass: &Pass) -> Result<LossTerms> {
        let samples = batch.global.samples;
        let views = batch.global.views + batch.local.views;
        let embeddings = layers.project(features, pass)?; // (views * samples, dim)
        pass.see("the embeddings", &embeddings)?;
        let predictions = layers.predict(&embeddings, pass)?;
        let by_view = |rows: &Tensor| rows.reshape((rows.dim(0)? / samples, samples, rows.dim(1)?));
        let predictions = predictions.as_ref().map(by_view).transpose()?;
        let embeddings = by_view(&embeddings)?; // (views, samples, dim)
        let global_views = match self.model.encoder().shape().centre_views() {
            CentreViews::Global => batch.global.views,
            CentreViews::All => views,
        };
        let centres = match self.average {
            None => None,
            Some(average) => {
                let embeddings = by_view(&self.averaged_embeddings(average.model().frozen(), batch)?)?;
                Some(embeddings.narrow(0, 0, global_views)?.mean(0)?)
            }
        };
        let views = EmbeddedViews {
            embeddings: &embeddings,
            global_views,
            predictions: predictions.as_ref(),
            centres: centres.as_ref(),
        };
        Ok(self.loss.forward_views(&views, batch.step)?)
    }

    /// The embeddings of all views under averaged weights: whole images, no gradients.
    fn averaged_embeddings(&self, layers: &Layers, batch: &Batch) -> Result<Tensor> {
        let micro_batch = self.micro_batch.unwrap_or(batch.global.samples);
        let unmasked = Self { masking: 0., ..*self };
        let mut features = Vec::new();
        for part in unmasked.parts(batch, micro_batch) {
            features.push(part.features(layers, &part.pass.clone().without_tracking())?);
        }
        layers.project(&Tensor::cat(&features, 0)?, &self.pass(batch, 0).without_tracking())
    }

    /// The batch in parts of at most so many samples of each view size.
    fn parts<'b>(&self, batch: &'b Batch, micro_batch: usize) -> Vec<Part<'b>> {
        let mut parts = Vec::new();
        for (size, views) in [&batch.global, &batch.local].into_iter().enumerate() {
            let (all, at_once) = (views.views * views.samples, views.views * micro_batch);
            for first in (0..all).step_by(at_once.max(1)) {
                let pass = self.pass(batch, size as u64).starting_at(first);
                parts.push(Part { views, first, images: at_once.min(all - first), pass });
            }
        }
        parts
    }

    fn pass(&self, batch: &Batch, size: u64) -> Pass {
        let seed = generator(self.seed, Random::Dropping, batch.step, size).next_u64();
        let pass = Pass::train(seed).with_masking(self.masking);
        match self.purpose {
            Purpose::Step => pass,
            Purpose::Audit => pass.without_tracking().without_dropping(),
        }
    }
}

impl Part<'_> {
    fn features(&self, layers: &Layers, pass: &Pass) -> Result<Tensor> {
        let ViewBatch { channels, size, pixels, .. } = self.views;
        let shape = [self.images, *channels, size.height, size.width];
        let length = channels * size.height * size.width;
        let pixels = &pixels[self.first * length..(self.first + self.images) * length];
        layers.features(pixels, shape, pass)
    }
}
