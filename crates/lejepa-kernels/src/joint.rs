//! An operation on rows with more parameters than an operation of Candle has inputs.
//!
//! The parameters are tied into a chain of scalars, whose end is the operation's second input: so Candle
//! knows that the result depends on them and when their gradients are complete. The scalars carry nothing;
//! the gradients wait in a place that the whole chain shares.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp2, Error, Layout, Result, Shape, Storage, Tensor};

use super::contiguous::values;

/// An operation with a backward pass of its own.
pub(super) trait Joint: Send + Sync + 'static {
    /// What the forward pass leaves to the backward pass.
    type Kept: Send;

    fn name(&self) -> &'static str;

    fn forward(&self, rows: &[f32], parameters: &[&[f32]]) -> (Vec<f32>, Self::Kept);

    /// The gradients of the rows, if they are wanted, and of every parameter.
    fn backward(&self, inputs: &Inputs<'_>, kept: Self::Kept) -> (Option<Vec<f32>>, Vec<Vec<f32>>);
}

/// What a backward pass starts from.
pub(super) struct Inputs<'a> {
    pub(super) rows: &'a [f32],
    pub(super) parameters: &'a [&'a [f32]],
    /// Of the result.
    pub(super) gradient: &'a [f32],
    /// The pixels at the very beginning need no gradient.
    pub(super) of_rows_is_wanted: bool,
}

/// # Shapes
/// - `rows`: `(rows, dim)`
/// - result: `(.., columns)`
pub(super) fn apply<J: Joint>(
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
        tie = tie.apply_op2(parameter, Tie { index, waiting: waiting.clone() })?;
    }
    let parameters =
        parameters.iter().map(|parameter| parameter.detach().contiguous()).collect::<Result<_>>()?;
    let kept = Mutex::new(None);
    rows.contiguous()?.apply_op2(&tie, Recorded { joint, parameters, columns, is_tracked, kept, waiting })
}

/// Gradients of parameters until their turn comes.
type Waiting = Arc<Mutex<Vec<Option<Tensor>>>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Tie {
    index: usize,
    waiting: Waiting,
}

impl CustomOp2 for Tie {
    fn name(&self) -> &'static str {
        "tie"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(vec![0.]), Shape::from(1)))
    }

    fn bwd(
        &self,
        before: &Tensor,
        parameter: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let of_before = before.track_op().then(|| gradient.clone());
        if !parameter.track_op() {
            return Ok((of_before, None));
        }
        // Taken: there is a sum of gradients from now on, and it is a copy.
        let found = lock(&self.waiting).get_mut(self.index).and_then(Option::take);
        let of_parameter = found.map(|found| found.reshape(parameter.shape()));
        Ok((of_before, of_parameter.transpose()?))
    }
}

struct Recorded<J: Joint> {
    joint: J,
    parameters: Vec<Tensor>,
    columns: usize,
    is_tracked: bool,
    kept: Mutex<Option<J::Kept>>,
    waiting: Waiting,
}

/// The storage of every tensor, locked while it is read.
fn hold(tensors: &[Tensor]) -> Vec<(impl Deref<Target = Storage>, &Layout)> {
    tensors.iter().map(Tensor::storage_and_layout).collect()
}

fn all_values<'a, S: Deref<Target = Storage>>(held: &'a [(S, &Layout)]) -> Result<Vec<&'a [f32]>> {
    let mut all = Vec::with_capacity(held.len());
    for (storage, layout) in held {
        match &**storage {
            Storage::Cpu(storage) => all.push(values(storage, layout)?),
            _ => return Err(Error::Msg("a fused operation runs on the CPU".into())),
        }
    }
    Ok(all)
}

impl<J: Joint> CustomOp2 for Recorded<J> {
    fn name(&self) -> &'static str {
        self.joint.name()
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let held = hold(&self.parameters);
        let (ys, kept) = self.joint.forward(values(storage, layout)?, &all_values(&held)?);
        if self.is_tracked {
            *lock(&self.kept) = Some(kept);
        }
        let shape = Shape::from((ys.len() / self.columns.max(1), self.columns));
        Ok((CpuStorage::F32(ys), shape))
    }

    fn bwd(
        &self,
        rows: &Tensor,
        tie: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let of_rows_is_wanted = rows.track_op();
        let rows = [rows.detach(), gradient.detach().contiguous()?];
        let held_rows = hold(&rows);
        let held = hold(&self.parameters);
        let (values, parameters) = (all_values(&held_rows)?, all_values(&held)?);
        // Taken, so that its memory is free while the rest of the graph goes back; made again for those
        // who go back a second time.
        let kept = lock(&self.kept).take();
        let kept = kept.unwrap_or_else(|| self.joint.forward(values[0], &parameters).1);
        let inputs =
            Inputs { rows: values[0], parameters: &parameters, gradient: values[1], of_rows_is_wanted };
        let (of_rows, of_parameters) = self.joint.backward(&inputs, kept);
        let device = rows[0].device();
        *lock(&self.waiting) = of_parameters
            .into_iter()
            .map(|values| {
                let length = values.len();
                Tensor::from_vec(values, length, device).map(Some)
            })
            .collect::<Result<_>>()?;
        let of_rows = of_rows.map(|values| Tensor::from_vec(values, rows[0].shape(), device)).transpose()?;
        let of_tie = tie.track_op().then(|| Tensor::zeros(1, rows[0].dtype(), device)).transpose()?;
        Ok((of_rows, of_tie))
    }
}
