//! The isotropy argument made visible (paper, lemmas 1 and 2, theorem 1).
//!
//! Of all features with the same total variance, isotropic ones should serve probes best when the task is not
//! known. With `lambda_k` the variances of the features along their principal directions:
//!
//! ```text
//! lemma 1     ridge: squared bias of the coefficients = sum_k (lambda / (n lambda_k + lambda))^2 beta_k^2
//! lemma 2     OLS:   variance of the coefficients     = sigma^2 tr (X^T X)^-1, about sigma^2 / n sum_k 1 / lambda_k
//! theorem 1   radius k-NN, kernel: integrated squared bias = r^4 / (d + 2)^2 (tau^2 J(p) + curvature) + smaller,
//!             where J(p) >= sum_k 1 / lambda_k, with equality for a Gaussian
//! ```
//!
//! [`Isotropy`] measures bias and variance on given features: as they are, whitened, and made anisotropic on
//! purpose, all with the same total variance, over many draws of training samples. [`Demonstration`] does the
//! same without a model, where the true function is known and the formulae above can be put to the test.
//!
//! What the statements do not say: lemma 2 is about coefficients, and the predictions of OLS are the same
//! whatever the shape; theorem 1 is about small radii, and a radius beyond the narrowest direction no longer
//! sees it.

mod demonstration;
mod experiment;
pub(crate) mod figure;
mod judgement;
mod linear;
mod measurement;
mod moments;
mod neighbourhood;
mod principal;
mod random;
mod report;
mod ridge_path;
mod settings;
mod smooth;
mod spectrum;
pub(crate) mod table;
mod trial;
mod variant;
mod verdict;
mod wave;

pub use demonstration::{Demonstration, DemonstrationReport};
pub use linear::{LinearDemonstration, LinearPoint, RidgeBias};
pub use measurement::{Measurement, ProbeKind};
pub use neighbourhood::Neighbourhoods;
pub use report::{FeatureShape, IsotropyReport, VariantReport};
pub use settings::Isotropy;
pub use smooth::{SmoothDemonstration, SmoothMeasurement, SmoothPoint};
pub use variant::{Alignment, Shape};
pub use verdict::{Holds, Statement, Verdict};
