//! Everything that a run writes down about itself, besides its checkpoints.

use std::path::Path;

use lejepa_data::BrokenImage;

use crate::broken_log::BrokenLog;
use crate::{MetricsLog, Result, StepMetrics, TensorBoard, WatchLog, WatchMetrics};

/// The open logs of a run.
#[derive(Debug)]
pub(crate) struct Journal {
    steps: MetricsLog,
    looks: WatchLog,
    board: TensorBoard,
    broken: BrokenLog,
}

impl Journal {
    /// Opens the logs of a run that goes on at `start`: what a killed session wrote beyond it is dropped. So many of
    /// the last losses are remembered.
    pub(crate) fn open(run: &Path, start: u64, losses: usize) -> Result<Self> {
        Ok(Self {
            steps: MetricsLog::open(&run.join("metrics.jsonl"), start, losses)?,
            looks: WatchLog::open(&run.join("watch.jsonl"), start)?,
            board: TensorBoard::open(&run.join("tensorboard"), start)?,
            broken: BrokenLog::open(&run.join("broken-images.jsonl"))?,
        })
    }

    /// Steps and losses of the last steps of the sessions before.
    pub(crate) fn take_last_losses(&mut self) -> Vec<(u64, f64)> {
        self.steps.take_last_losses()
    }

    /// Writes a step down.
    pub(crate) fn step(&mut self, metrics: &StepMetrics) -> Result<()> {
        self.steps.append(metrics)?;
        let mut scalars = vec![
            ("loss/total", metrics.loss),
            ("loss/prediction", metrics.prediction),
            ("loss/sigreg", metrics.sigreg),
            ("optimizer/lr", metrics.lr),
            ("optimizer/gradient_norm", metrics.gradient_norm),
            ("speed/images_per_second", metrics.images_per_second),
        ];
        scalars.extend(metrics.sigreg_over_floor.map(|ratio| ("loss/sigreg_over_floor", ratio)));
        self.board.scalars(metrics.step, &scalars)
    }

    /// Writes a look down.
    pub(crate) fn look(&mut self, look: &WatchMetrics) -> Result<()> {
        self.looks.append(look)?;
        let mut scalars = vec![
            ("features/sigreg_over_floor", look.features.sigreg_over_floor),
            ("features/rankme", look.features.rankme),
            ("features/weak_directions", look.features.weak_directions as f64),
            ("embeddings/sigreg_over_floor", look.embeddings.sigreg_over_floor),
            ("embeddings/rankme", look.embeddings.rankme),
            ("embeddings/weak_directions", look.embeddings.weak_directions as f64),
        ];
        scalars.extend(look.knn.map(|accuracy| ("probes/knn", accuracy)));
        scalars.extend(look.linear.map(|accuracy| ("probes/linear", accuracy)));
        // Beside the step before it: a session that goes on from here has steps from `look.step` on drawn anew.
        self.board.scalars(look.step.saturating_sub(1), &scalars)
    }

    /// The last look of the sessions before.
    pub(crate) fn last_look(&self) -> Option<&WatchMetrics> {
        self.looks.last_kept()
    }

    /// Writes an unusable image down. Says whether it is new.
    pub(crate) fn broken(&mut self, image: &BrokenImage) -> Result<bool> {
        self.broken.add(image)
    }
}
