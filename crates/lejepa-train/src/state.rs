//! What changes while a run goes on: weights, averages, optimiser and the number of steps.

use std::path::Path;

use candle_core::Device;
use lejepa_data::{Preprocess, SeenImages};
use lejepa_loss::LejepaLoss;
use lejepa_model::Pass;

use crate::divergence::{Divergence, diverged, first_not_finite};
use crate::recent_losses::RecentLosses;
use crate::{
    AdamW, Average, Change, Checkpoint, EmbeddedImages, Error, Model, Objective, Purpose, Result, Snapshot,
    TrainConfig, WatchMetrics, Watcher,
};

/// The state of a run after some steps.
#[derive(Debug)]
pub(crate) struct State {
    /// Steps that were taken.
    pub(crate) taken: u64,
    pub(crate) model: Model,
    pub(crate) average: Option<Average>,
    pub(crate) optimizer: AdamW,
    /// The images that the encoder was trained on, this run's included; nothing if that is not known.
    pub(crate) seen: Option<SeenImages>,
    /// That of the checkpoint that this session began with.
    first_loss: Option<f64>,
    /// The losses before it.
    losses: RecentLosses,
    /// Whether a step was taken since the last checkpoint.
    is_changed: bool,
}

impl State {
    /// Before the first step: a new encoder, or that of the run `train.init`.
    pub(crate) fn new(config: &TrainConfig, device: &Device) -> Result<Self> {
        let model = Model::new(config, device)?;
        let mut seen = SeenImages::default();
        if let Some(init) = &config.train.init {
            let checkpoint = Checkpoint::require(init)?;
            let refuse = |problem| Error::Init { path: init.clone(), problem };
            let parameters = model.encoder_parameters();
            parameters.load(&checkpoint.encoder_weights()).map_err(|error| refuse(error.to_string()))?;
            let [there, here] = [checkpoint.config.encoder.resolve()?, config.encoder.resolve()?];
            // Positions are a list: that of 64x256 pixels is as long as that of 128x128.
            if here.position_grid().is_some() && there.image_size() != here.image_size() {
                let sizes = (there.image_size(), here.image_size());
                return Err(refuse(format!(
                    "its `encoder.image_size` is {}, here it is {}",
                    sizes.0, sizes.1
                )));
            }
            seen = checkpoint.seen.unwrap_or_else(SeenImages::unknown);
        }
        let average = match config.averaging {
            Some(averaging) => Some(Average::new(averaging, config, &model, device)?),
            None => None,
        };
        let optimizer = AdamW::new(&config.optimizer);
        Ok(Self {
            taken: 0,
            model,
            average,
            optimizer,
            seen: Some(seen),
            first_loss: None,
            losses: RecentLosses::new(config),
            is_changed: false,
        })
    }

    /// Where a run stopped, to go on with a configuration that fits it.
    pub(crate) fn resume(mut checkpoint: Checkpoint, config: &TrainConfig, device: &Device) -> Result<Self> {
        checkpoint.config = config.clone();
        let model = checkpoint.model(device)?;
        Ok(Self {
            taken: checkpoint.step,
            average: checkpoint.average(&model, device)?,
            optimizer: checkpoint.optimizer(device)?,
            seen: checkpoint.seen.clone(),
            model,
            first_loss: checkpoint.loss,
            losses: RecentLosses::new(config),
            is_changed: false,
        })
    }

    /// What the next step minimises.
    pub(crate) fn objective<'a>(&'a self, config: &TrainConfig, loss: &'a LejepaLoss) -> Objective<'a> {
        Objective {
            model: &self.model,
            average: self.average.as_ref(),
            loss,
            seed: config.seed,
            masking: config.train.masking,
            micro_batch: config.train.micro_batch,
            purpose: Purpose::Step,
        }
    }

    /// Looks at the model as it is now.
    pub(crate) fn look(&self, watcher: &Watcher, config: &TrainConfig) -> Result<WatchMetrics> {
        let preprocess = config.preprocess()?;
        watcher.look(self.taken, &mut |pixels, images| self.embed(pixels, images, &preprocess))
    }

    /// What the model makes of some images, without gradients.
    pub(crate) fn embed(
        &self,
        pixels: &[f32],
        images: usize,
        preprocess: &Preprocess,
    ) -> Result<EmbeddedImages> {
        let shape = [images, preprocess.channels, preprocess.crop_height, preprocess.crop_width];
        let (layers, pass) = (self.model.frozen(), Pass::eval());
        let features = layers.features(pixels, shape, &pass)?;
        let embeddings = layers.project(&features, &pass)?;
        Ok(EmbeddedImages {
            features: features.flatten_all()?.to_vec1()?,
            embeddings: embeddings.flatten_all()?.to_vec1()?,
        })
    }

    /// Remembers the loss of a step.
    pub(crate) fn note_loss(&mut self, loss: f64) {
        self.losses.push(loss);
        self.is_changed = true;
    }

    /// Remembers the losses of the steps of earlier sessions, if none is missing.
    pub(crate) fn recall_losses(&mut self, losses: &[(u64, f64)]) {
        self.losses.recall(losses, self.taken);
    }

    /// Saves a checkpoint, if a step was taken since the last one. Weights that are not finite are an error:
    /// they must not take the place of good ones.
    pub(crate) fn save(&mut self, origin: &Origin<'_>) -> Result<()> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        if let Some(culprit) = first_not_finite(&self.model)? {
            return Err(diverged(origin, Divergence { step: self.taken - 1, culprit, batch: None }));
        }
        self.write(origin)
    }

    /// Writes a checkpoint of what is there.
    pub(crate) fn write(&self, origin: &Origin<'_>) -> Result<()> {
        self.snapshot(origin).save(origin.run)
    }

    pub(crate) fn snapshot<'a>(&'a self, origin: &Origin<'a>) -> Snapshot<'a> {
        Snapshot {
            step: self.taken,
            loss: self.losses.mean().or(self.first_loss),
            config: origin.config,
            data_fingerprint: origin.data_fingerprint,
            seen: self.seen.as_ref(),
            changes: origin.changes,
            model: &self.model,
            average: self.average.as_ref(),
            optimizer: &self.optimizer,
        }
    }
}

/// What makes a run the same run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) run: &'a Path,
    pub(crate) config: &'a TrainConfig,
    pub(crate) data_fingerprint: &'a str,
    /// What was changed on the way.
    pub(crate) changes: &'a [Change],
}
