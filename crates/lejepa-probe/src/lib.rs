//! Scores frozen features: k-NN, radius k-NN, kernel, ridge, logistic regression, LayerNorm and a linear
//! layer.
//!
//! [`Features`] hold values and [`Targets`]: a class per image, or values. The settings of a probe are an
//! [`Estimator`]: [`Knn`] and [`Logistic`] predict classes; [`Radius`], [`Kernel`], [`Ridge`] and [`Linear`] both.
//! They learn from all features or from [`Samples`], without a copy. Settings are chosen on held-out training features
//! alone ([`Choice`]); a [`Watch`] is told how far a fit is and may stop it. The [`Solution`] gives [`Scores`], from
//! which [`predicted`], [`top`], [`Confusion`], [`r_squared`] and [`mean_squared_error`] tell how good it is, or a
//! [`Ranking`], which takes less room; [`spearman`] says whether two scores put things in the same order. [`Probe`] is
//! any of them, as suites name them.
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
//!
//! # With linfa
//!
//! Every probe is an estimator of [linfa](https://docs.rs/linfa): its [`Params`] are checked into [`ValidParams`],
//! which fit datasets of views on f32 records, borrowed; the fitted [`Model`] predicts, and linfa's metrics judge it.
//! `examples/linfa.rs` validates several of them across folds. [`LinfaClassifier`] is the other direction: a classifier
//! of linfa as a probe, such as [`LinfaBayes`].
//!
//! ```
//! use lejepa_probe::Logistic;
//! use linfa::prelude::*;
//! use ndarray_linfa::array; // version 0.16, which linfa uses
//!
//! let records = array![[1.0_f32, 0.2], [0.9, 0.1], [0.1, 1.], [0.2, 0.9]];
//! let dataset = Dataset::new(records, array![0_usize, 0, 1, 1]);
//! let model = Logistic::params().c(vec![1.]).fit(&dataset.view())?;
//! let predicted = model.predict(&dataset);
//! assert_eq!(predicted.confusion_matrix(&dataset)?.accuracy(), 1.);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adamw;
mod centred;
mod choice;
mod dataset;
mod demand;
mod distance;
mod error;
mod estimator;
mod exponential;
mod features;
mod layer;
mod lbfgs;
mod learnt;
mod linfa_classifier;
mod losses;
mod matrix;
mod metrics;
mod model;
mod nearest;
mod panels;
mod params;
mod principal;
mod probe;
mod ranking;
mod real;
mod rows;
mod settings;
mod skinny;
mod softmax;
mod solution;
mod spearman;
mod split;
mod targets;
mod tiles;
mod watch;

pub use choice::{Choice, Chosen};
pub use dataset::DatasetTargets;
pub use demand::Size;
pub use error::{Error, Result};
pub use estimator::{Answer, Estimator, Fitted, Question};
pub use features::{Features, Samples};
pub use learnt::Columns;
pub use linfa_classifier::{ClassDataset, LinfaClassifier, LinfaSolution};
pub use metrics::{Confusion, Scores, accuracy, mean_squared_error, predicted, r_squared, top};
pub use model::Model;
pub use params::{Params, ValidParams};
pub use probe::*;
pub use ranking::Ranking;
pub use rows::Rows;
pub use solution::{Solution, Take};
pub use spearman::spearman;
pub use targets::Targets;
pub use watch::{Watch, unwatched};
