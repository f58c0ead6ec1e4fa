//! Scores frozen features: k-NN, ridge.
//!
//! [`Knn`] and [`Ridge`] are fitted to labelled [`Features`] and asked about others; [`spearman`] says
//! whether two scores put things in the same order.
//!
//! ```
//! use lejepa_probe::{Features, Knn, accuracy};
//! use ndarray::array;
//!
//! let train = Features::new(array![[1., 0.], [0.9, 0.1], [0., 1.]], vec![0, 0, 1])?;
//! let test = Features::new(array![[0.1, 0.8], [2., 0.1]], vec![1, 0])?;
//! let predicted = Knn { k: 1, temperature: 0.07 }.predict(&train, &test.values, 2);
//! assert_eq!(accuracy(&predicted, &test.labels), 1.);
//! # Ok::<(), lejepa_probe::Error>(())
//! ```

mod accuracy;
mod error;
mod features;
mod knn;
mod ridge;
mod spearman;

pub use accuracy::accuracy;
pub use error::{Error, Result};
pub use features::Features;
pub use knn::Knn;
pub use ridge::{Ridge, RidgeSolution};
pub use spearman::spearman;
