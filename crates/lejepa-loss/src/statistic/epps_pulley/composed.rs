//! The statistic and its analytic gradient in tensor operations, for every device.
//!
//! The graph keeps the projections, their gradient and the statistic: no tensor per knot. It is what
//! runs where [`fused`](super::fused) does not.

use candle_core::{D, DType, Result, Tensor};

use super::EppsPulley;

/// The statistic of every slice.
///
/// The value is computed outside of the graph, its gradient `g` with it. What enters the graph is
/// `value + sum g (x - constant x)`: the same number, with `g` as its derivative by `x`.
///
/// # Shapes
/// - `projected`: `(.., slices, samples)`
/// - result: `(.., slices)`
pub(super) fn per_slice(statistic: &EppsPulley, projected: &Tensor) -> Result<Tensor> {
    let constant = projected.detach();
    let (value, gradient) = value_and_gradient(statistic, &constant)?;
    let carrier = (projected.sub(&constant)? * gradient)?.sum(D::Minus1)?;
    value + carrier
}

fn value_and_gradient(statistic: &EppsPulley, projected: &Tensor) -> Result<(Tensor, Tensor)> {
    let samples = projected.dim(D::Minus1)? as f64;
    let mut value = None;
    let mut gradient = None;
    let mut powers = Powers::new(statistic, projected)?;
    for knot in &statistic.knots {
        let (cosine, sine) = powers.next(knot.t)?;
        let real = (cosine.mean_keepdim(D::Minus1)? - knot.target)?;
        let imaginary = sine.mean_keepdim(D::Minus1)?;
        let term = ((real.sqr()? + imaginary.sqr()?)? * (samples * knot.weight))?;
        let slope = (cosine.broadcast_mul(&imaginary)? - sine.broadcast_mul(&real)?)?;
        let slope = (slope * (2. * knot.weight * knot.t))?;
        value = Some(plus(value, term)?);
        gradient = Some(plus(gradient, slope)?);
    }
    match value.zip(gradient) {
        Some((value, gradient)) => Ok((value.squeeze(D::Minus1)?, gradient)),
        None => candle_core::bail!("a quadrature rule without knots"),
    }
}

fn plus(sum: Option<Tensor>, term: Tensor) -> Result<Tensor> {
    match sum {
        Some(sum) => sum + term,
        None => Ok(term),
    }
}

/// `cos(t x)` and `sin(t x)` from knot to knot.
struct Powers<'a> {
    projected: &'a Tensor,
    step: (Tensor, Tensor),
    current: Option<(Tensor, Tensor)>,
    /// Knots since sine and cosine were last computed rather than added up.
    age: usize,
}

impl<'a> Powers<'a> {
    fn new(statistic: &EppsPulley, projected: &'a Tensor) -> Result<Self> {
        let step = statistic.knots.first().map_or(0., |knot| knot.t);
        Ok(Self { projected, step: unit(projected, step)?, current: None, age: 0 })
    }

    /// The next knot, which is at `t`.
    fn next(&mut self, t: f64) -> Result<(Tensor, Tensor)> {
        let next = match &self.current {
            None => self.step.clone(),
            Some(_) if self.age == super::KNOTS_PER_BLOCK => unit(self.projected, t)?,
            Some((cosine, sine)) => {
                let (step_cosine, step_sine) = &self.step;
                (
                    ((cosine * step_cosine)? - (sine * step_sine)?)?,
                    ((sine * step_cosine)? + (cosine * step_sine)?)?,
                )
            }
        };
        self.age = if self.age == super::KNOTS_PER_BLOCK { 1 } else { self.age + 1 };
        self.current = Some(next.clone());
        Ok(next)
    }
}

/// Cosine and sine of `t x`. Whole turns are taken off in f64, so that large samples keep their digits.
fn unit(projected: &Tensor, t: f64) -> Result<(Tensor, Tensor)> {
    let turns = (projected.to_dtype(DType::F64)? * (t / std::f64::consts::TAU))?;
    let angle = ((&turns - turns.round()?)? * std::f64::consts::TAU)?.to_dtype(projected.dtype())?;
    Ok((angle.cos()?, angle.sin()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candle_core::{Device, Var};

    use super::*;
    use crate::statistic::sliced;

    /// What runs on other devices, against what runs on the CPU in f64.
    fn check(dtype: DType, scale: f64, knots: usize, tolerance: f64) {
        let directions = crate::Directions::Gaussian.draw(33, 6, 2, &Device::Cpu).unwrap(); // (33, 6)
        let projected = (directions.t().unwrap().to_dtype(DType::F64).unwrap() * scale).unwrap();
        let projected = projected.reshape((2, 3, 33)).unwrap().to_dtype(dtype).unwrap();
        let statistic = EppsPulley::new(5., knots).unwrap();
        let upstream = Tensor::new(&[[1f64, -2., 0.5], [0.1, 3., -1.]], &Device::Cpu).unwrap();
        let run = |projected: &Tensor, per_slice: &dyn Fn(&Tensor) -> Tensor| {
            let projected = Var::from_tensor(projected).unwrap();
            let value = per_slice(projected.as_tensor()).to_dtype(DType::F64).unwrap();
            let score = (&value * &upstream).unwrap().sum_all().unwrap();
            let gradient = score.backward().unwrap().get(&projected).unwrap().to_dtype(DType::F64).unwrap();
            (value, gradient)
        };
        let exact = projected.to_dtype(DType::F64).unwrap();
        let (value, gradient) = run(&projected, &|projected| per_slice(&statistic, projected).unwrap());
        let shared = Arc::new(statistic.clone());
        let (expected, expected_gradient) =
            run(&exact, &|projected| sliced::per_slice(shared.clone(), projected).unwrap());
        for (left, right) in [(value, expected), (gradient, expected_gradient)] {
            let largest = |tensor: Tensor| -> f64 {
                tensor.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
            };
            let error = largest((left - &right).unwrap()) / largest(right);
            assert!(error < tolerance, "{dtype:?}, scale {scale}, {knots} knots: {error:e}");
        }
    }

    #[test]
    fn tensor_operations_agree_with_the_kernel_of_the_cpu() {
        for scale in [0.1, 5., 1e4] {
            for knots in [3, 17, 81] {
                check(DType::F64, scale, knots, 1e-9);
                check(DType::F32, scale, knots, 1e-5);
            }
        }
    }
}
