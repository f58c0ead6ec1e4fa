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
