//! The gradients of all parameters by name: summed over parts of a batch, measured, clipped.

use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use candle_core::{DType, Tensor, Var};
use rayon::prelude::*;

use crate::{Result, slices};

/// Gradients by the parameter's name.
#[derive(Debug, Default)]
pub struct Gradients {
    by_name: BTreeMap<String, Tensor>,
}

impl Gradients {
    /// Adds what a backward pass found for the parameters.
    pub fn add<'a>(
        &mut self,
        parameters: impl IntoIterator<Item = (String, &'a Var)>,
        store: &GradStore,
    ) -> Result<()> {
        for (name, parameter) in parameters {
            let Some(gradient) = store.get(parameter) else { continue };
            // Detached, or the graph of the step would stay alive.
            let mut sum = gradient.detach();
            if let Some(before) = self.by_name.get(&name) {
                sum = (before + sum)?;
            }
            self.by_name.insert(name, sum);
        }
        Ok(())
    }

    /// The gradient of a parameter, if it has one.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.by_name.get(name)
    }

    /// The Euclidean norm over all parameters; not finite if any entry is not.
    pub fn norm(&self) -> Result<f64> {
        let squares = self.squares()?;
        if squares.is_finite() {
            return Ok(squares.sqrt());
        }
        // Numbers above 1.8e19 are finite and their squares are not.
        let mut squares = 0.;
        for gradient in self.by_name.values() {
            squares += gradient.to_dtype(DType::F64)?.sqr()?.sum_all()?.to_scalar::<f64>()?;
        }
        Ok(squares.sqrt())
    }

    /// The sum of squares, in the gradients' own precision.
    fn squares(&self) -> Result<f64> {
        let mut squares = 0.;
        for gradient in self.by_name.values() {
            squares += if slices::can_lend([gradient]) {
                slices::read(gradient, sum_of_squares)?
            } else {
                gradient.sqr()?.sum_all()?.to_dtype(DType::F64)?.to_scalar::<f64>()?
            };
        }
        Ok(squares)
    }

    /// Shrinks all gradients so that their norm, given as it is, does not exceed `largest`.
    pub fn clip(&mut self, norm: f64, largest: f64) -> Result<()> {
        if norm > largest {
            for gradient in self.by_name.values_mut() {
                *gradient = (&*gradient * (largest / norm))?;
            }
        }
        Ok(())
    }

    /// The first parameter, by name, whose gradient is not finite.
    pub fn first_not_finite(&self) -> Result<Option<&str>> {
        for (name, gradient) in &self.by_name {
            if !crate::divergence::is_finite(gradient)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

/// On all cores, in parts that do not depend on their number.
fn sum_of_squares(values: &[f32]) -> f64 {
    const LANES: usize = 16;
    let of_chunk = |values: &[f32]| {
        let (rows, rest) = values.as_chunks::<LANES>();
        let mut sums = [0f32; LANES];
        for row in rows {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value * value);
        }
        sums.iter()
            .chain(&rest.iter().map(|value| value * value).collect::<Vec<_>>())
            .map(|&sum| f64::from(sum))
            .sum()
    };
    let partial_sums: Vec<f64> = values.par_chunks(slices::CHUNK).map(of_chunk).collect();
    partial_sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    fn gradients_of(times: usize) -> Gradients {
        let variable = Var::from_tensor(&Tensor::new(&[3f32, 4.], &Device::Cpu).unwrap()).unwrap();
        let mut gradients = Gradients::default();
        for _ in 0..times {
            // The gradient of half the square is the value itself.
            let store = (variable.sqr().unwrap() * 0.5).unwrap().sum_all().unwrap().backward().unwrap();
            gradients.add([("p".to_string(), &variable)], &store).unwrap();
        }
        gradients
    }

    #[test]
    fn parts_add_up() {
        assert_eq!(gradients_of(1).norm().unwrap(), 5.);
        assert_eq!(gradients_of(3).norm().unwrap(), 15.);
    }

    #[test]
    fn clipping_keeps_the_direction_and_never_enlarges() {
        let mut gradients = gradients_of(1);
        gradients.clip(5., 1.).unwrap();
        let values: Vec<f32> = gradients.get("p").unwrap().to_vec1().unwrap();
        assert!((values[0] - 0.6).abs() < 1e-6 && (values[1] - 0.8).abs() < 1e-6, "{values:?}");
        gradients.clip(1., 10.).unwrap();
        assert!((gradients.norm().unwrap() - 1.).abs() < 1e-6);
    }

    #[test]
    fn large_gradients_have_a_norm_and_can_be_clipped() {
        let mut gradients = gradients_of(1);
        gradients.by_name.insert("q".into(), Tensor::new(&[3e25f32, 4e25], &Device::Cpu).unwrap());
        let norm = gradients.norm().unwrap();
        assert!((norm / 5e25 - 1.).abs() < 1e-6, "{norm}");
        gradients.clip(norm, 1.).unwrap();
        assert!((gradients.norm().unwrap() - 1.).abs() < 1e-6);
    }

    #[test]
    fn what_is_not_finite_is_named() {
        let mut gradients = gradients_of(1);
        assert_eq!(gradients.first_not_finite().unwrap(), None);
        gradients.by_name.insert("q".into(), Tensor::new(&[1f32, f32::NAN], &Device::Cpu).unwrap());
        assert_eq!(gradients.first_not_finite().unwrap(), Some("q"));
        assert!(gradients.norm().unwrap().is_nan());
    }
}
