//! Ranks runs without labels (paper, section on model selection): the best has the smallest
//!
//! ```text
//! score = loss / lambda^alpha,    loss = mean over the last tenth of the steps
//! ```
//!
//! in the paper's convention; a run of another one is converted.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use lejepa_loss::{Convention, PredictionReduction, ViewPooling};
use lejepa_probe::spearman;
use serde_json::{Value, json};

use crate::run_folder::{Run, Tail, incomparable};
use crate::table::{self, Column, optional, shortest};

/// Runs in the order of their scores.
pub(crate) struct Selection {
    alpha: f64,
    /// The best first.
    ranked: Vec<Ranked>,
    /// Runs that have no score, with the reason.
    left_out: Vec<(String, String)>,
    /// Correlations of the score with accuracies.
    correlations: [Correlation; 2],
    /// What does not compare between the runs.
    incomparable: Vec<String>,
}

struct Ranked {
    run: Run,
    /// In the paper's convention.
    lambda: f64,
    /// In the paper's convention.
    loss: f64,
    score: f64,
}

struct Correlation {
    title: &'static str,
    /// Runs that have this accuracy.
    runs: usize,
    rho: Option<f64>,
    /// Whether all accuracies are of the same images.
    compares: bool,
}

const COLUMNS: [Column<Ranked>; 10] = [
    ("run", |ranked| ranked.run.name()),
    ("score", |ranked| optional(Some(ranked.score), 4)),
    ("loss", |ranked| optional(Some(ranked.loss), 4)),
    ("lambda", |ranked| shortest((ranked.lambda * 1e6).round() / 1e6)),
    ("lr", |ranked| shortest(ranked.run.config.optimizer.lr)),
    ("SIGReg x floor", |ranked| optional(ranked.run.tail.and_then(|tail| tail.sigreg_over_floor), 2)),
    ("RankMe", |ranked| optional(ranked.run.watch.as_ref().map(|watch| watch.features.rankme), 1)),
    ("verdict", |ranked| {
        ranked.run.watch.as_ref().map_or("-".into(), |watch| watch.features.verdict.clone())
    }),
    ("k-NN", |ranked| optional(ranked.knn(), 3)),
    ("linear", |ranked| optional(ranked.linear(), 3)),
];

impl Selection {
    /// Ranks runs; those without a score are left out.
    pub(crate) fn of(runs: Vec<Run>, alpha: f64) -> Result<Self> {
        let (mut ranked, mut left_out) = (Vec::new(), Vec::new());
        for run in runs {
            let name = run.name();
            match Ranked::new(run, alpha) {
                Ok(run) => ranked.push(run),
                Err(reason) => left_out.push((name, format!("{reason:#}"))),
            }
        }
        refuse_different_statistics(&ranked)?;
        ranked.sort_by(|left, right| left.score.total_cmp(&right.score));
        let correlation = |title, accuracy: fn(&Ranked) -> Option<f64>| {
            let pairs = ranked.iter().filter_map(|ranked| Some((ranked.score, accuracy(ranked)?)));
            let (scores, accuracies): (Vec<f64>, Vec<f64>) = pairs.unzip();
            let measured = ranked.iter().filter(|ranked| accuracy(ranked).is_some());
            let compares = measured.map(|ranked| ranked.run.watched()).collect::<BTreeSet<_>>().len() < 2;
            let rho = spearman(&scores, &accuracies).filter(|_| compares);
            Correlation { title, runs: scores.len(), rho, compares }
        };
        let correlations =
            [correlation("k-NN accuracy", Ranked::knn), correlation("linear probe accuracy", Ranked::linear)];
        let incomparable = incomparable(ranked.iter().map(|ranked| &ranked.run));
        Ok(Self { alpha, ranked, left_out, correlations, incomparable })
    }

    /// Whether there is nothing to choose from.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranked.is_empty()
    }

    /// Says on standard error which runs have no score.
    pub(crate) fn note_left_out(&self) {
        for (run, reason) in &self.left_out {
            eprintln!("left out {run}: {reason}");
        }
    }

    /// For a person at a terminal.
    pub(crate) fn text(&self) -> String {
        format!("{}\n\n{}", table::table(&self.rows()), self.remarks().join("\n"))
    }

    /// For a file.
    pub(crate) fn markdown(&self) -> String {
        let left_out = self.left_out.iter().map(|(run, reason)| format!("left out `{run}`: {reason}"));
        let remarks = self.remarks().into_iter().chain(left_out).map(|remark| format!("- {remark}\n"));
        format!("{}\n\n{}", table::markdown(&self.rows()), remarks.collect::<String>())
    }

    /// For a machine.
    pub(crate) fn to_json(&self) -> Value {
        let ranked = |ranked: &Ranked| {
            json!({
                "score": ranked.score,
                "loss": ranked.loss,
                "lambda": ranked.lambda,
                "knn": ranked.knn(),
                "linear": ranked.linear(),
                "run": ranked.run.to_json(),
            })
        };
        let [knn, linear] = &self.correlations;
        json!({
            "alpha": self.alpha,
            "ranked": self.ranked.iter().map(ranked).collect::<Vec<_>>(),
            "left_out": self.left_out.iter().map(|(run, reason)| json!({ "run": run, "reason": reason }))
                .collect::<Vec<_>>(),
            "spearman": { "knn": knn.rho, "linear": linear.rho },
            "incomparable": self.incomparable,
        })
    }

    fn rows(&self) -> Vec<Vec<String>> {
        table::rows(&COLUMNS, &self.ranked)
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![format!("score: loss / lambda^{}, the smallest first", self.alpha)];
        remarks.extend(self.incomparable.iter().cloned());
        for Correlation { title, runs, rho, compares } in &self.correlations {
            remarks.push(match rho {
                None if !compares => format!(
                    "Spearman correlation of the score with {title}: none, runs were watched with different images"
                ),
                Some(rho) => format!(
                    "Spearman correlation of the score with {title}: {rho:.3} over {runs} runs \
                     (a negative one is hoped for: lower loss, higher accuracy)"
                ),
                None => format!(
                    "Spearman correlation of the score with {title}: none, it takes 3 runs that differ, got: \
                     {runs}"
                ),
            });
        }
        remarks
    }
}

impl Ranked {
    fn new(run: Run, alpha: f64) -> Result<Self> {
        let Some(tail) = run.tail else { bail!("it has not taken a step") };
        if let Some(total) = run.total {
            ensure!(run.steps >= total, "it has taken {} of {total} steps", run.steps);
        }
        let (lambda, loss) = in_the_papers_convention(&run, tail)?;
        ensure!(lambda > 0., "there is no score without SIGReg, lambda: {lambda}");
        let score = loss / lambda.powf(alpha);
        ensure!(score.is_finite(), "its score is not a number");
        Ok(Self { run, lambda, loss, score })
    }

    fn knn(&self) -> Option<f64> {
        self.run.watch.as_ref()?.knn
    }

    fn linear(&self) -> Option<f64> {
        self.run.watch.as_ref()?.linear
    }
}

/// Lambda and loss of a run as if it had been trained with the paper's convention.
fn in_the_papers_convention(run: &Run, tail: Tail) -> Result<(f64, f64)> {
    let (own, paper) = (run.config.loss.convention(), Convention::default());
    if own == paper {
        return Ok((run.config.loss.lambda, tail.loss));
    }
    let dim = run.config.projector.dim;
    let views = run.config.views.global.count + run.config.views.local.count;
    let lambda = own.convert(run.config.loss.lambda, paper, dim, views)?;
    let prediction = match own.prediction {
        PredictionReduction::Mean => tail.prediction,
        PredictionReduction::Sum => tail.prediction / dim as f64,
    };
    let sigreg = match own.views {
        ViewPooling::Each => tail.sigreg,
        ViewPooling::Pooled => tail.sigreg / views as f64,
    };
    Ok((lambda, (1. - lambda) * prediction + lambda * sigreg))
}

/// A number of one statistic says nothing beside a number of another.
fn refuse_different_statistics(ranked: &[Ranked]) -> Result<()> {
    let measured = |ranked: &Ranked| {
        let loss = &ranked.run.config.loss;
        (loss.statistic.clone(), loss.reduction)
    };
    if let [first, others @ ..] = ranked
        && let Some(other) = others.iter().find(|other| measured(other) != measured(first))
    {
        let (first, other) = (first.run.name(), other.run.name());
        bail!("losses with different statistics or reductions cannot be compared: {first}, {other}");
    }
    Ok(())
}
