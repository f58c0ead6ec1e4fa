//! Scores frozen features: k-NN, radius k-NN, kernel, ridge, logistic regression, LayerNorm and a linear
//! layer.
//!
//! [`Features`] hold values and [`Targets`]: a class per image, or values. [`Knn`] and [`Logistic`] predict
//! classes; [`Radius`], [`Kernel`], [`Ridge`] and [`Linear`] both. They learn from all of them or from [`Samples`],
//! without a copy. Settings are chosen on held-out training features alone ([`Choice`]); a [`Watch`] is told how
//! far a fit is and may stop it. Every probe gives [`Scores`], from which [`predicted`], [`top`], [`Confusion`],
//! [`r_squared`] and [`mean_squared_error`] tell how good it is, or a [`Ranking`], which takes less room;
//! [`spearman`] says whether two scores put things in the same order.
//!
//! ```
//! use lejepa_probe::{Features, Knn, accuracy, predicted};
//! use ndarray::array;
//!
//! let train = Features::labelled(array![[1., 0.], [0.9, 0.1], [0., 1.]], vec![0, 0, 1], 2)?;
//! let scores = Knn { k: 1, temperature: 0.07 }.scores(&train, &array![[0.1, 0.8], [2., 0.1]])?;
//! assert_eq!(accuracy(&predicted(&scores), &[1, 0]), 1.);
//! # Ok::<(), lejepa_probe::Error>(())
//! ```

mod adamw;
mod centred;
mod choice;
mod dataset;
mod demand;
mod distance;
mod error;
mod exponential;
mod features;
mod kernel;
mod knn;
mod layer;
mod lbfgs;
mod learnt;
mod linear;
mod logistic;
mod losses;
mod metrics;
mod nearest;
mod panels;
mod principal;
mod radius;
mod ranking;
mod real;
mod ridge;
mod rows;
mod skinny;
mod spearman;
mod split;
mod targets;
mod tiles;
mod watch;

pub use choice::{Choice, Chosen};
pub use demand::Size;
pub use error::{Error, Result};
pub use features::{Features, Samples};
pub use kernel::{Kernel, KernelSolution};
pub use knn::Knn;
pub use linear::{Linear, LinearSolution};
pub use logistic::{Logistic, LogisticProblem, LogisticSolution, dinov2_path};
pub use metrics::{Confusion, Scores, accuracy, mean_squared_error, predicted, r_squared, top};
pub use radius::{Radius, RadiusScores, RadiusSolution};
pub use ranking::Ranking;
pub use ridge::{Ridge, RidgeSolution};
pub use rows::Rows;
pub use spearman::spearman;
pub use targets::Targets;
pub use watch::{Watch, unwatched};
