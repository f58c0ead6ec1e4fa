//! The same features in several shapes, all with mean variance 1 along the kept directions.

use faer::Mat;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::principal::Principal;
use super::random::{Stream, normal, stream};
use super::settings::Isotropy;
use super::spectrum::Spectrum;

/// Which directions an imposed spectrum stretches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alignment {
    /// Random orthogonal directions: no task is favoured.
    Random,
    /// The principal directions: what varies most in the features as they are does so still.
    Principal,
    /// The principal directions in reverse: what varies most becomes the narrowest. If the task depends on it,
    /// this is the unfavourable case of lemma 1.
    Reversed,
}

/// A shape of the features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Shape {
    /// As they are, up to a common factor.
    AsTheyAre,
    /// All variances equal.
    Whitened,
    /// Whitened, then stretched.
    Anisotropic {
        /// Largest over smallest variance.
        condition: f64,
        /// Along which directions.
        alignment: Alignment,
    },
}

/// The map from whitened coordinates to a shape.
pub(crate) struct Variant {
    pub(crate) shape: Shape,
    /// Variances in the order of the coordinates they stretch.
    pub(crate) spectrum: Spectrum,
    rotation: Option<Array2<f64>>,
}

impl Shape {
    /// A row's title.
    pub fn title(&self) -> String {
        match self {
            Self::AsTheyAre => "as they are".into(),
            Self::Whitened => "whitened".into(),
            Self::Anisotropic { condition, alignment } => {
                let alignment = match alignment {
                    Alignment::Random => "random",
                    Alignment::Principal => "principal",
                    Alignment::Reversed => "reversed",
                };
                format!("{alignment}, condition {condition}")
            }
        }
    }
}

impl Variant {
    /// Whitened, as they are, then every alignment at every condition.
    pub(crate) fn all(principal: &Principal, settings: &Isotropy) -> Vec<Self> {
        let dim = principal.variances.len();
        let plain = |shape, spectrum| Self { shape, spectrum, rotation: None };
        let mut variants = vec![
            plain(Shape::Whitened, Spectrum::geometric(dim, 1.)),
            plain(Shape::AsTheyAre, Spectrum::scaled(&principal.variances)),
        ];
        for &alignment in &settings.alignments {
            for &condition in &settings.conditions {
                let mut spectrum = Spectrum::geometric(dim, condition);
                if alignment == Alignment::Reversed {
                    spectrum.0.reverse();
                }
                let rotation = (alignment == Alignment::Random).then(|| rotation(dim, settings.seed));
                variants.push(Self {
                    shape: Shape::Anisotropic { condition, alignment },
                    spectrum,
                    rotation,
                });
            }
        }
        variants
    }

    /// Coordinates of this shape, `(samples, directions)` like those whitened ones.
    pub(crate) fn apply(&self, whitened: &Array2<f64>) -> Array2<f32> {
        let mut shaped = match &self.rotation {
            Some(rotation) => whitened.dot(rotation),
            None => whitened.clone(),
        };
        for (mut column, variance) in shaped.columns_mut().into_iter().zip(&self.spectrum.0) {
            column *= variance.sqrt();
        }
        shaped.mapv(|value| value as f32)
    }
}

/// A random orthogonal matrix.
fn rotation(dim: usize, seed: u64) -> Array2<f64> {
    let draws = normal((dim, dim), &mut stream(seed, Stream::Rotation, 0));
    let orthogonal = Mat::from_fn(dim, dim, |row, column| draws[(row, column)]).qr().compute_thin_Q();
    Array2::from_shape_fn((dim, dim), |(row, column)| orthogonal[(row, column)])
}

#[cfg(test)]
mod tests {
    use lejepa_probe::Features;
    use ndarray::Axis;

    use super::*;

    /// Features are f32.
    const SINGLE_PRECISION: f64 = 1e-4;

    #[test]
    fn all_shapes_have_the_same_total_variance_and_the_conditions_asked_for() {
        let mut generator = stream(6, Stream::Queries, 0);
        let values = normal((300, 6), &mut generator).dot(&normal((6, 6), &mut generator));
        let train = Features::labelled(values.mapv(|value| value as f32), vec![0; 300], 1).unwrap();
        let settings = Isotropy {
            conditions: vec![4., 50.],
            alignments: vec![Alignment::Random, Alignment::Principal, Alignment::Reversed],
            floor: 0.,
            ..Isotropy::default()
        };
        let principal = Principal::of(&train, &settings).unwrap();
        let whitened = principal.whitened(train.values());
        let variants = Variant::all(&principal, &settings);
        assert_eq!(variants.len(), 8);
        for variant in variants {
            let variances = variant.apply(&whitened).mapv(f64::from).var_axis(Axis(0), 0.);
            assert!((variances.sum() - 6.).abs() < SINGLE_PRECISION, "{:?}", variant.shape);
            for (found, expected) in variances.iter().zip(&variant.spectrum.0) {
                assert!((found - expected).abs() < SINGLE_PRECISION, "{:?}", variant.shape);
            }
            if let Shape::Anisotropic { condition, .. } = variant.shape {
                assert!((variant.spectrum.condition() / condition - 1.).abs() < SINGLE_PRECISION);
            }
        }
    }
}
