//! Any probe of a suite: its settings as they stand in TOML, and one way to run it.

use lejepa_data::Output;
use lejepa_probe::{
    Choice, Kernel, Knn, Linear, Logistic, Radius, Ranking, Ridge, Rows, Samples, Size, Watch,
};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::run::cell::TOP;

/// A probe with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Probe {
    /// Nearest neighbours.
    Knn(Knn),
    /// All neighbours within a radius.
    Radius(Radius),
    /// Nadaraya and Watson's kernel regression.
    Kernel(Kernel),
    /// Ridge regression.
    Ridge(Ridge),
    /// Multinomial logistic regression.
    Logistic(Logistic),
    /// LayerNorm and a linear layer.
    Linear(Linear),
}

/// What a probe says of test images, and how it came to it.
pub(crate) struct Answer {
    /// The first classes of every query.
    pub(crate) ranking: Ranking,
    /// What was chosen on held-out training features.
    pub(crate) choice: Option<Choice>,
    /// Queries without a neighbour, which took their nearest.
    pub(crate) alone: usize,
}

impl Probe {
    /// What the probe does and how its setting was chosen, to be put beside a published number.
    pub fn protocol(&self, features: &str, choice: Option<&Choice>) -> String {
        match self {
            Self::Knn(knn) => knn.protocol(features),
            Self::Radius(radius) => radius.protocol(features, choice),
            Self::Kernel(kernel) => kernel.protocol(features, choice),
            Self::Ridge(ridge) => ridge.protocol(features, choice),
            Self::Logistic(logistic) => logistic.protocol(features, choice),
            Self::Linear(linear) => linear.protocol(features, choice),
        }
    }

    /// Bytes that it takes beside the features, about.
    pub(crate) fn memory(&self, size: Size) -> u64 {
        match self {
            Self::Knn(knn) => knn.memory(size),
            Self::Radius(radius) => radius.memory(size),
            Self::Kernel(kernel) => kernel.memory(size),
            Self::Ridge(ridge) => ridge.memory(size),
            Self::Logistic(logistic) => logistic.memory(size),
            Self::Linear(linear) => linear.memory(size),
        }
    }

    /// A column's title, with the setting if there is nothing to choose: a suite may hold several such probes
    /// of a kind.
    pub fn title(&self) -> String {
        let (name, given) = match self {
            Self::Knn(knn) => return format!("k-NN (k = {})", knn.k),
            Self::Radius(radius) => ("radius k-NN", &radius.radii[..]),
            Self::Kernel(kernel) => ("kernel", &kernel.bandwidths[..]),
            Self::Ridge(ridge) => ("ridge", ridge.lambdas.as_deref().unwrap_or_default()),
            Self::Logistic(logistic) => ("logistic", logistic.c.as_deref().unwrap_or_default()),
            Self::Linear(linear) => ("linear", &linear.learning_rates[..]),
        };
        match given {
            [value] => format!("{name} ({} = {value})", self.setting()),
            _ => name.into(),
        }
    }

    /// A column's title with what the probe looks at, if that is not the embedding.
    pub(crate) fn column(&self, output: Output) -> String {
        match output {
            Output::Embedding => self.title(),
            output => match self.title().strip_suffix(')') {
                Some(with_setting) => format!("{with_setting}, {})", output.name()),
                None => format!("{} ({})", self.title(), output.name()),
            },
        }
    }

    /// The chosen setting's letter or name in a protocol string.
    pub(crate) fn setting(&self) -> &'static str {
        match self {
            Self::Knn(_) => "k",
            Self::Radius(_) => "r",
            Self::Kernel(_) => "h",
            Self::Ridge(_) => "lambda",
            Self::Logistic(_) => "C",
            Self::Linear(_) => "lr",
        }
    }

    /// What the probe looks at where an encoder has it; the embedding of others.
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Linear(_) => Output::ClsLast2,
            _ => Output::Embedding,
        }
    }

    /// Neighbours that other k-NN probes can share.
    pub(crate) fn neighbours(&self) -> Option<&Knn> {
        match self {
            Self::Knn(knn) => Some(knn),
            _ => None,
        }
    }

    /// Chooses what there is to choose on training features alone, fits them and ranks the classes of the
    /// queries. k-NN probes look for their neighbours together.
    pub(crate) fn ask(
        probes: &[&Self],
        (train, queries): (Samples<'_>, Rows<'_>),
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Answer>> {
        let neighbours: Option<Vec<&Knn>> = probes.iter().map(|probe| probe.neighbours()).collect();
        if let Some(settings) = neighbours {
            let rankings = Knn::rankings(&settings, train, queries, TOP, watch)?;
            let answer = |ranking| Answer { ranking, choice: None, alone: 0 };
            return Ok(rankings.into_iter().map(answer).collect());
        }
        probes.iter().map(|probe| probe.ask_alone((train, queries), seed, watch)).collect()
    }

    fn ask_alone(
        &self,
        (train, queries): (Samples<'_>, Rows<'_>),
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Answer> {
        let chosen = |ranking, choice| Answer { ranking, choice: Some(choice), alone: 0 };
        Ok(match self {
            Self::Knn(knn) => {
                let ranking = Knn::rankings(&[knn], train, queries, TOP, watch)?.swap_remove(0);
                Answer { ranking, choice: None, alone: 0 }
            }
            Self::Radius(radius) => {
                let (solution, choice) = radius.fit(train, seed, watch)?;
                let (ranking, alone) = solution.ranking(queries, TOP, watch)?;
                Answer { ranking, choice: Some(choice), alone }
            }
            Self::Kernel(kernel) => {
                let (solution, choice) = kernel.fit(train, seed, watch)?;
                chosen(solution.ranking(queries, TOP, watch)?, choice)
            }
            Self::Ridge(ridge) => {
                let (solution, choice) = ridge.fit(train, seed, watch)?;
                chosen(solution.ranking(queries, TOP, watch)?, choice)
            }
            Self::Logistic(logistic) => {
                let (solution, choice) = logistic.fit(train, seed, watch)?;
                chosen(solution.ranking(queries, TOP, watch)?, choice)
            }
            Self::Linear(linear) => {
                let (solution, choice) = linear.fit(train, seed, watch)?;
                chosen(solution.ranking(queries, TOP, watch)?, choice)
            }
        })
    }

    /// Names a setting that no features could be scored with.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        let whole = |name: &str, value: usize| match value {
            0 => Err(format!("`{name}` must be at least 1, got: 0")),
            _ => Ok(()),
        };
        let positive = |name: &str, values: &[f64]| match values {
            [] => Err(format!("`{name}` needs at least one value")),
            _ if values.iter().all(|value| value.is_finite() && *value > 0.) => Ok(()),
            [value] => Err(format!("`{name}` must be a positive number, got: {value}")),
            _ => Err(format!("`{name}` must be positive numbers, got: {values:?}")),
        };
        let share = |holdout: f64| match holdout > 0. && holdout < 1. {
            true => Ok(()),
            false => Err(format!("`holdout` must be between 0 and 1, got: {holdout}")),
        };
        match self {
            Self::Knn(knn) => whole("k", knn.k).and(positive("temperature", &[knn.temperature])),
            Self::Radius(radius) => positive("radii", &radius.radii).and(share(radius.holdout)),
            Self::Kernel(kernel) => positive("bandwidths", &kernel.bandwidths).and(share(kernel.holdout)),
            Self::Ridge(ridge) => positive("lambdas", ridge.lambdas.as_deref().unwrap_or(&Ridge::PATH))
                .and(share(ridge.holdout)),
            Self::Logistic(logistic) => {
                let given = logistic.c.as_deref().map_or(Ok(()), |values| positive("c", values));
                given.and(whole("steps", logistic.steps)).and(share(logistic.holdout))
            }
            Self::Linear(linear) => positive("learning_rates", &linear.learning_rates)
                .and(whole("epochs", linear.epochs))
                .and(whole("batch", linear.batch))
                .and(share(linear.holdout)),
        }
    }
}
