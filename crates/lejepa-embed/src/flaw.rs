//! What makes a computed vector or map useless.

use std::fmt;

use ndarray::ArrayViewMutD;

/// Why there is no answer for an image although one was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// NaN or infinity among its values.
    NotFinite,
    /// Nothing but zeros, which cannot be scaled to length one.
    Zero,
}

impl fmt::Display for Flaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFinite => "is not finite (NaN or infinity)",
            Self::Zero => "is zero and cannot be scaled to length one",
        })
    }
}

/// Looks for values that are none.
pub(crate) fn finite<'a>(values: impl IntoIterator<Item = &'a f32>) -> Option<Flaw> {
    values.into_iter().any(|value| !value.is_finite()).then_some(Flaw::NotFinite)
}

/// Scales a vector to length one.
pub(crate) fn scale_to_one(row: &mut ArrayViewMutD<'_, f32>) -> Option<Flaw> {
    if let Some(flaw) = finite(&*row) {
        return Some(flaw);
    }
    // In f64: squares of large and of small values of f32 are outside of f32.
    let length = row.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt();
    if length == 0. {
        return Some(Flaw::Zero);
    }
    row.mapv_inplace(|value| (f64::from(value) / length) as f32);
    None
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, array};

    use super::*;

    fn scaled(mut row: Array1<f32>) -> Result<Array1<f32>, Flaw> {
        match scale_to_one(&mut row.view_mut().into_dyn()) {
            Some(flaw) => Err(flaw),
            None => Ok(row),
        }
    }

    #[test]
    fn vectors_of_any_length_are_scaled_to_one() {
        for factor in [1., 1e30, 1e-30, 1e-44] {
            let row = scaled(array![3., 4.] * factor as f32).unwrap();
            assert!((row.dot(&row) - 1.).abs() < 1e-2, "{factor}: {row}");
        }
    }

    #[test]
    fn zero_and_what_is_not_finite_cannot_be_scaled() {
        assert_eq!(scaled(array![0., -0.]), Err(Flaw::Zero));
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(scaled(array![1., value]), Err(Flaw::NotFinite));
        }
    }
}
