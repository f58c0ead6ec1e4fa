//! An operation on rows with more parameters than an operation of Candle has inputs.
//!
//! The parameters are tied into a chain of scalars, whose end is the operation's second input: so Candle
//! knows that the result depends on them and when their gradients are complete. The scalars carry nothing;
//! the gradients wait in a place that the whole chain shares.

use std::sync::Arc;

use super::view::read_all;
use super::{Backward, Kept, Operation, Result, Shape, Tensor, View, apply};

/// An operation of rows and any number of parameters.
pub(crate) trait Joint: Send + Sync + 'static {
    /// The values that the forward pass leaves to the backward pass.
    type Kept: Send;

    /// The name that errors give.
    fn name(&self) -> &'static str;

    /// The forward pass.
    fn forward(&self, rows: &[f32], parameters: &[&[f32]]) -> (Vec<f32>, Self::Kept);

    /// The gradients of the rows, if they are needed, and of every parameter.
    fn backward(&self, inputs: &JointInputs<'_>, kept: Self::Kept) -> (Option<Vec<f32>>, Vec<Vec<f32>>);
}

/// The values that a backward pass starts from.
pub(crate) struct JointInputs<'a> {
    pub(crate) rows: &'a [f32],
    pub(crate) parameters: &'a [&'a [f32]],
    /// The gradient of the result.
    pub(crate) gradient: &'a [f32],
    /// Whether the rows need a gradient.
    pub(crate) of_rows_is_needed: bool,
}

/// # Shapes
/// - `rows`: `(rows, dim)`
/// - result: `(.., columns)`
pub(crate) fn apply_joint<J: Joint>(
    rows: &Tensor,
    parameters: &[&Tensor],
    columns: usize,
    joint: J,
) -> Result<Tensor> {
    let waiting = Waiting::default();
    let mut tie = Tensor::zeros(1, rows.dtype(), rows.device())?;
    let mut is_tracked = rows.track_op();
    for (index, parameter) in parameters.iter().enumerate() {
        is_tracked |= parameter.track_op();
        tie = apply(Tie { index, waiting: waiting.clone() }, [&tie, parameter])?;
    }
    let parameters =
        parameters.iter().map(|parameter| parameter.detach().contiguous()).collect::<Result<_>>()?;
    let recorded = Recorded { joint, parameters, columns, is_tracked, kept: Kept::default(), waiting };
    apply(recorded, [rows, &tie])
}

/// Gradients of parameters until their turn comes.
type Waiting = Arc<Kept<Vec<Option<Tensor>>>>;

struct Tie {
    index: usize,
    waiting: Waiting,
}

impl Operation<2> for Tie {
    fn name(&self) -> &'static str {
        "tie"
    }

    fn cpu(&self, _: [View<'_>; 2]) -> Result<(Vec<f32>, Shape)> {
        Ok((vec![0.], Shape::from(1)))
    }

    fn backward(&self, backward: Backward<2>) -> Result<[Option<Tensor>; 2]> {
        let Backward { inputs: [_, parameter], is_needed: [_, is_needed], gradient, .. } = backward;
        if !is_needed {
            return Ok([Some(gradient), None]);
        }
        // Taken: there is a sum of gradients from now on, and it is a copy.
        let mut waiting = self.waiting.lock();
        let found = waiting.as_mut().and_then(|waiting| waiting.get_mut(self.index)).and_then(Option::take);
        let of_parameter = found.map(|found| found.reshape(parameter.shape()));
        Ok([Some(gradient), of_parameter.transpose()?])
    }
}

struct Recorded<J: Joint> {
    joint: J,
    parameters: Vec<Tensor>,
    columns: usize,
    is_tracked: bool,
    kept: Kept<J::Kept>,
    waiting: Waiting,
}

impl<J: Joint> Recorded<J> {
    fn with_parameters<R>(&self, work: impl FnOnce(&[&[f32]]) -> R) -> Result<R> {
        read_all(&self.parameters, |views| work(&views.iter().map(|view| view.values).collect::<Vec<_>>()))
    }
}

impl<J: Joint> Operation<2> for Recorded<J> {
    fn name(&self) -> &'static str {
        self.joint.name()
    }

    fn cpu(&self, [rows, _tie]: [View<'_>; 2]) -> Result<(Vec<f32>, Shape)> {
        let (ys, kept) = self.with_parameters(|parameters| self.joint.forward(&rows, parameters))?;
        if self.is_tracked {
            self.kept.keep(kept);
        }
        let shape = Shape::from((ys.len() / self.columns.max(1), self.columns));
        Ok((ys, shape))
    }

    fn backward(&self, backward: Backward<2>) -> Result<[Option<Tensor>; 2]> {
        let Backward { inputs: [rows, tie], is_needed: [of_rows_is_needed, _], gradient, .. } = backward;
        let kept = self.kept.take();
        let (of_rows, of_parameters) = read_all([&rows, &gradient], |views| {
            let (rows, gradient) = (views[0].values, views[1].values);
            self.with_parameters(|parameters| {
                // Made again for those who go back a second time.
                let kept = kept.unwrap_or_else(|| self.joint.forward(rows, parameters).1);
                let inputs = JointInputs { rows, parameters, gradient, of_rows_is_needed };
                self.joint.backward(&inputs, kept)
            })
        })??;
        let device = rows.device();
        let of_parameters = of_parameters.into_iter().map(|values| {
            let length = values.len();
            Tensor::from_vec(values, length, device).map(Some)
        });
        self.waiting.keep(of_parameters.collect::<Result<_>>()?);
        let of_rows = of_rows.map(|values| Tensor::from_vec(values, rows.shape(), device)).transpose()?;
        Ok([of_rows, Some(tie.zeros_like()?)])
    }
}
