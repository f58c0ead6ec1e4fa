//! All probes, one in each file, and the table from which suites name them.

mod kernel;
mod knn;
mod linear;
mod linfa_bayes;
mod logistic;
mod radius;
mod ridge;

use lejepa_data::Output;
use serde::{Deserialize, Serialize};

use crate::estimator::{Answer, Estimator, Question};
use crate::watch::Watch;
use crate::{Choice, Result, Size};

pub use kernel::{Kernel, KernelParams, KernelSolution, KernelValidParams};
pub use knn::{Knn, KnnParams, KnnSolution, KnnValidParams};
pub use linear::{Linear, LinearParams, LinearSolution, LinearValidParams};
pub use linfa_bayes::LinfaBayes;
pub use logistic::{
    Logistic, LogisticParams, LogisticProblem, LogisticSolution, LogisticValidParams, dinov2_path,
};
pub use radius::{Radius, RadiusParams, RadiusScores, RadiusSolution, RadiusValidParams};
pub use ridge::{Ridge, RidgeParams, RidgeSolution, RidgeValidParams};

/// Makes [`Probe`] of a table of names and settings, each of which is an [`Estimator`].
macro_rules! probes {
    ($($(#[$about:meta])* $kind:literal => $Settings:ident,)*) => {
        /// Any probe with its settings, as they stand in the TOML of a suite under `kind = "..."`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Probe {
            $($(#[$about])* #[serde(rename = $kind)] $Settings($Settings),)*
        }

        impl Probe {
            /// Names a setting that no features could be fitted with.
            pub fn check(&self) -> Result<()> {
                match self { $(Self::$Settings(settings) => settings.check(),)* }
            }

            /// A column's title, with the setting if there is nothing to choose.
            pub fn title(&self) -> String {
                match self { $(Self::$Settings(settings) => settings.title(),)* }
            }

            /// What the probe does and how its setting was chosen, to be put beside a published number;
            /// `features` is the kind of features.
            pub fn protocol(&self, features: &str, choice: Option<&Choice>) -> String {
                match self { $(Self::$Settings(settings) => settings.protocol(features, choice),)* }
            }

            /// The chosen setting's letter or name in a protocol string.
            pub fn setting(&self) -> &'static str {
                match self { $(Self::$Settings(_) => <$Settings as Estimator>::SETTING,)* }
            }

            /// The output that the probe looks at where an encoder has it; the embedding of others.
            pub fn output(&self) -> Output {
                match self { $(Self::$Settings(_) => <$Settings as Estimator>::OUTPUT,)* }
            }

            /// Bytes that a fit and its answers take beside the features, about.
            pub fn memory(&self, size: Size) -> u64 {
                match self { $(Self::$Settings(settings) => settings.memory(size),)* }
            }

            /// Whether both learn and answer in one pass over the samples.
            pub fn shares_pass_with(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Self::$Settings(_), Self::$Settings(_)) => <$Settings as Estimator>::SHARES_PASS,)*
                    _ => false,
                }
            }

            /// Chooses what there is to choose on training features alone, fits them and ranks the classes of
            /// the queries, once for every probe. Those of one kind do so together if they share a pass.
            pub fn answers(
                probes: &[&Self],
                question: &Question<'_>,
                watch: &mut Watch<'_>,
            ) -> Result<Vec<Answer>> {
                $(
                    let of_kind = probes.iter().copied().map(|probe| match probe {
                        Self::$Settings(settings) => Some(settings),
                        _ => None,
                    });
                    let settings: Option<Vec<&$Settings>> = of_kind.collect();
                    if let Some(settings) = settings {
                        return <$Settings as Estimator>::answers(&settings, question, watch);
                    }
                )*
                let answer = |probe: &&Self| match probe {
                    $(Self::$Settings(settings) => settings.answer(question, watch),)*
                };
                probes.iter().map(answer).collect()
            }
        }
    };
}

probes! {
    /// Nearest neighbours.
    "knn" => Knn,
    /// All neighbours within a radius.
    "radius" => Radius,
    /// Nadaraya and Watson's kernel regression.
    "kernel" => Kernel,
    /// Ridge regression.
    "ridge" => Ridge,
    /// Multinomial logistic regression.
    "logistic" => Logistic,
    /// LayerNorm and a linear layer.
    "linear" => Linear,
    /// Gaussian naive Bayes of linfa.
    "linfa-bayes" => LinfaBayes,
}

impl Probe {
    /// A column's title with what the probe looks at, if that is not the embedding.
    pub fn column(&self, output: Output) -> String {
        match output {
            Output::Embedding => self.title(),
            output => match self.title().strip_suffix(')') {
                Some(with_setting) => format!("{with_setting}, {})", output.name()),
                None => format!("{} ({})", self.title(), output.name()),
            },
        }
    }
}
