//! Ranks runs without labels (paper, section on model selection): the best has the smallest
//!
//! ```text
//! score = loss / lambda^alpha,    loss = mean over the last tenth of the steps
//! ```
//!
//! in the paper's convention; a run of another one is converted.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use lejepa_loss::gauge::Verdict;
use lejepa_loss::{Convention, PredictionReduction, ViewPooling};
use lejepa_probe::spearman;
use lejepa_train::TrainConfig;
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::say;
use crate::run_folder::{Run, Tail, group, incomparable};
use crate::table::{self, Column, optional, shortest};

/// Runs in the order of their scores.
pub(crate) struct Selection {
    alpha: f64,
    /// The best first.
    ranked: Vec<Ranked>,
    /// Of runs with several seeds, the best first.
    seeds: Vec<Seeds>,
    /// Runs that have no score, with the reason.
    left_out: Vec<(String, String)>,
    /// Correlations of the score with accuracies.
    correlations: [Correlation; 2],
    /// What does not compare between the runs.
    incomparable: Vec<String>,
}

/// Runs that differ in their seed alone.
struct Seeds {
    /// Names of their folders, the best first.
    runs: Vec<String>,
    score: Spread,
    loss: Spread,
    knn: Option<Spread>,
    linear: Option<Spread>,
    collapsed: usize,
}

/// A number over seeds.
#[derive(Clone, Copy, Serialize)]
struct Spread {
    mean: f64,
    /// Of the sample; with one seed there is none.
    deviation: Option<f64>,
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
    ("run", |ranked| match ranked.is_collapsed() {
        true => format!("{} (collapsed)", ranked.run.name()),
        false => ranked.run.name(),
    }),
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

const SEED_COLUMNS: [Column<Seeds>; 6] = [
    ("over seeds", |seeds| {
        let [first, others @ ..] = &seeds.runs[..] else { return String::new() };
        let collapsed =
            if seeds.collapsed > 0 { format!(" ({} collapsed)", seeds.collapsed) } else { String::new() };
        format!("{first} and {} more{collapsed}", others.len())
    }),
    ("seeds", |seeds| seeds.runs.len().to_string()),
    ("score", |seeds| seeds.score.text(4)),
    ("loss", |seeds| seeds.loss.text(4)),
    ("k-NN", |seeds| seeds.knn.map_or("-".into(), |knn| knn.text(3))),
    ("linear", |seeds| seeds.linear.map_or("-".into(), |linear| linear.text(3))),
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
        // A collapsed run may well have the lowest loss, and is of no use.
        let order = |it: &Ranked| (it.is_collapsed(), it.score);
        ranked.sort_by(|left, right| {
            let ((left_collapsed, left), (right_collapsed, right)) = (order(left), order(right));
            left_collapsed.cmp(&right_collapsed).then(left.total_cmp(&right))
        });
        let seeds = Seeds::of(&ranked);
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
        Ok(Self { alpha, ranked, seeds, left_out, correlations, incomparable })
    }

    /// Whether there is nothing to choose from.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranked.is_empty()
    }

    /// Says on standard error which runs have no score.
    pub(crate) fn note_left_out(&self) {
        for (run, reason) in &self.left_out {
            say!("left out {run}: {reason}");
        }
    }

    /// For a person at a terminal.
    pub(crate) fn text(&self) -> String {
        let tables = self.tables().iter().map(|rows| table::table(rows)).collect::<Vec<_>>().join("\n\n");
        format!("{tables}\n\n{}", self.remarks().join("\n"))
    }

    /// For a file.
    pub(crate) fn markdown(&self) -> String {
        let left_out = self.left_out.iter().map(|(run, reason)| format!("left out `{run}`: {reason}"));
        let remarks = self.remarks().into_iter().chain(left_out).map(|remark| format!("- {remark}\n"));
        let tables = self.tables().iter().map(|rows| table::markdown(rows)).collect::<Vec<_>>().join("\n\n");
        format!("{tables}\n\n{}", remarks.collect::<String>())
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
                "collapsed": ranked.is_collapsed(),
                "run": ranked.run.to_json(),
            })
        };
        let seeds = |seeds: &Seeds| {
            let Seeds { runs, score, loss, knn, linear, collapsed } = seeds;
            json!({
                "runs": runs, "score": score, "loss": loss, "knn": knn, "linear": linear, "collapsed": collapsed,
            })
        };
        let [knn, linear] = &self.correlations;
        json!({
            "alpha": self.alpha,
            "ranked": self.ranked.iter().map(ranked).collect::<Vec<_>>(),
            "over_seeds": self.seeds.iter().map(seeds).collect::<Vec<_>>(),
            "left_out": self.left_out.iter().map(|(run, reason)| json!({ "run": run, "reason": reason }))
                .collect::<Vec<_>>(),
            "spearman": { "knn": knn.rho, "linear": linear.rho },
            "incomparable": self.incomparable,
        })
    }

    /// All runs, and those with several seeds together.
    fn tables(&self) -> Vec<Vec<Vec<String>>> {
        let mut tables = vec![table::rows(&COLUMNS, &self.ranked)];
        if !self.seeds.is_empty() {
            tables.push(table::rows(&SEED_COLUMNS, &self.seeds));
        }
        tables
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![format!("score: loss / lambda^{}, the smallest first", self.alpha)];
        if !self.seeds.is_empty() {
            remarks.push(
                "over seeds: mean and standard deviation of runs that differ in their seed alone".into(),
            );
        }
        let collapsed: Vec<String> = self
            .ranked
            .iter()
            .filter(|ranked| ranked.is_collapsed())
            .map(|ranked| ranked.run.name())
            .collect();
        if !collapsed.is_empty() {
            remarks.push(format!(
                "collapsed, of no use whatever their score, and last for that: {}",
                collapsed.join(", ")
            ));
        }
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

    /// Whether the last look found next to nothing in the features.
    fn is_collapsed(&self) -> bool {
        self.run.watch.as_ref().is_some_and(|watch| watch.features.verdict == Verdict::Collapsed.title())
    }

    fn knn(&self) -> Option<f64> {
        self.run.watch.as_ref()?.knn
    }

    fn linear(&self) -> Option<f64> {
        self.run.watch.as_ref()?.linear
    }
}

impl Seeds {
    /// Of runs in the order of their scores; nothing where no two differ in their seed alone.
    fn of(ranked: &[Ranked]) -> Vec<Self> {
        let without_seed = |run: &Run| {
            let mut config: TrainConfig = run.config.clone();
            config.seed = 0;
            config
        };
        let groups = ranked.iter().map(|ranked| (without_seed(&ranked.run), ranked));
        let mut groups = group(groups);
        for (_, runs) in &mut groups {
            // A copy of a run is no other seed.
            let mut met = BTreeSet::new();
            runs.retain(|ranked| met.insert(ranked.run.config.seed));
        }
        let mut groups: Vec<(bool, Self)> = groups
            .into_iter()
            .filter(|(_, runs)| runs.len() > 1)
            .map(|(_, runs)| {
                let of = |value: fn(&Ranked) -> Option<f64>| {
                    runs.iter().map(|run| value(run)).collect::<Option<Vec<f64>>>().map(|it| Spread::of(&it))
                };
                let all = |value: fn(&Ranked) -> f64| {
                    Spread::of(&runs.iter().map(|run| value(run)).collect::<Vec<_>>())
                };
                let collapsed = runs.iter().filter(|run| run.is_collapsed()).count();
                let seeds = Self {
                    runs: runs.iter().map(|ranked| ranked.run.name()).collect(),
                    score: all(|run| run.score),
                    loss: all(|run| run.loss),
                    knn: of(Ranked::knn),
                    linear: of(Ranked::linear),
                    collapsed,
                };
                (collapsed > 0, seeds)
            })
            .collect();
        groups.sort_by(|(left_collapsed, left), (right_collapsed, right)| {
            left_collapsed.cmp(right_collapsed).then(left.score.mean.total_cmp(&right.score.mean))
        });
        groups.into_iter().map(|(_, seeds)| seeds).collect()
    }
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, deviation: (values.len() > 1).then(|| (squares / (count - 1.)).sqrt()) }
    }

    fn text(self, decimals: usize) -> String {
        match self.deviation {
            Some(deviation) => format!("{:.decimals$} +- {deviation:.decimals$}", self.mean),
            None => format!("{:.decimals$}", self.mean),
        }
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
