//! The settings of a probe: what it is called, what it needs, and how it is fitted.

use lejepa_data::Output;

use crate::features::Samples;
use crate::rows::Rows;
use crate::solution::Solution;
use crate::watch::Watch;
use crate::{Choice, Ranking, Result, Size};

/// Settings that samples can be fitted with.
///
/// All that is known of a probe stands in one implementation of this trait; a line in the table of
/// [`Probe`](crate::Probe) lets suites name it. `ValidParams` makes it an estimator of linfa.
pub trait Estimator: Clone {
    /// The fitted probe; it may borrow the samples.
    type Solution<'a>: Solution;

    /// The probe's name in titles.
    const NAME: &'static str;
    /// The letter or name in a protocol string of the setting that is chosen, if there is one.
    const SETTING: &'static str = "";
    /// The output that the probe looks at where an encoder has it; the embedding of others.
    const OUTPUT: Output = Output::Embedding;
    /// Whether several settings share one pass over the samples: see [`answers`](Self::answers).
    const SHARES_PASS: bool = false;

    /// The check of the settings: an error names one that no features could be fitted with.
    fn check(&self) -> Result<()>;

    /// Values that were given to choose from on held-out training features.
    fn given(&self) -> &[f64] {
        &[]
    }

    /// A column's title, with the setting if there is nothing to choose: a suite may hold several such probes
    /// of a kind.
    fn title(&self) -> String {
        match self.given() {
            [value] => format!("{} ({} = {value})", Self::NAME, Self::SETTING),
            _ => Self::NAME.into(),
        }
    }

    /// The protocol string: what the probe does and how its setting was chosen, to be put beside a published
    /// number; `features` is the kind of features.
    fn protocol(&self, features: &str, choice: Option<&Choice>) -> String;

    /// Bytes that a fit and its answers take beside the features, about.
    fn memory(&self, size: Size) -> u64;

    /// Fits samples with settings that were checked: [`fit`](Self::fit) is what callers want. Chooses on held-out
    /// training features, which `seed` draws, what there is to choose.
    fn learn<'a>(
        &self,
        train: Samples<'a>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Fitted<Self::Solution<'a>>>;

    /// Checks the settings and fits samples.
    fn fit<'a>(
        &self,
        train: impl Into<Samples<'a>>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Fitted<Self::Solution<'a>>> {
        self.check()?;
        self.learn(train.into(), seed, watch)
    }

    /// Fits and ranks once for every one of several settings; probes that share a pass do so here.
    fn answers(settings: &[&Self], question: &Question<'_>, watch: &mut Watch<'_>) -> Result<Vec<Answer>> {
        settings.iter().map(|settings| settings.answer(question, watch)).collect()
    }

    /// Fits the samples of a question and ranks the classes of its queries.
    fn answer(&self, question: &Question<'_>, watch: &mut Watch<'_>) -> Result<Answer> {
        let Question { train, queries, count, seed } = *question;
        let Fitted { solution, choice } = self.fit(train, seed, watch)?;
        Ok(Answer { ranking: solution.ranking(queries, count, watch)?, choice })
    }
}

/// A fitted probe, and how its setting came about.
#[derive(Debug, Clone)]
pub struct Fitted<S> {
    /// The part that predicts.
    pub solution: S,
    /// The value that was chosen, of a probe that chooses one.
    pub choice: Option<Choice>,
}

/// Samples to learn and queries to answer.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Samples with their classes.
    pub train: Samples<'a>,
    /// Features whose classes are asked for.
    pub queries: Rows<'a>,
    /// Classes that a query's ranking holds at most.
    pub count: usize,
    /// Draws the training features that are held out.
    pub seed: u64,
}

/// The answer of a probe: a ranking for every query, and how its setting came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The first classes of every query.
    pub ranking: Ranking,
    /// The value that was chosen on held-out training features.
    pub choice: Option<Choice>,
}
