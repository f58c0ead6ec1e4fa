//! Values of contiguous tensors on the CPU.

use std::ops::Deref;

use candle_core::{CpuStorage, Layout, Storage, bail};

use super::{Device, Error, Result, Shape, Tensor, WithDType};

/// The values of a contiguous tensor on the CPU, and its shape.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T = f32> {
    pub(crate) values: &'a [T],
    pub(crate) shape: &'a Shape,
}

impl<T> Deref for View<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.values
    }
}

impl<'a, T: WithDType> View<'a, T> {
    /// Refuses other types and values that are not contiguous, in the name of an operation.
    pub(super) fn new(name: &'static str, storage: &'a CpuStorage, layout: &'a Layout) -> Result<Self> {
        let Some((start, end)) = layout.contiguous_offsets() else {
            return Err(Error::RequiresContiguous { op: name });
        };
        let Ok(values) = storage.as_slice::<T>() else {
            let got = candle_core::backend::BackendStorage::dtype(storage);
            bail!("{name} is computed in {}, got: {}", T::DTYPE.as_str(), got.as_str());
        };
        Ok(Self { values: &values[start..end], shape: layout.shape() })
    }
}

/// Lends the values of tensors on the CPU.
pub(crate) fn read<T: WithDType, R, const N: usize>(
    tensors: [&Tensor; N],
    work: impl FnOnce([View<'_, T>; N]) -> R,
) -> Result<R> {
    read_all(tensors, |views| Ok(work(all(views)?)))?
}

/// As many as an operation has inputs.
pub(super) fn all<A, const N: usize>(values: Vec<A>) -> Result<[A; N]> {
    let count = values.len();
    values.try_into().or_else(|_| bail!("an operation of {N} inputs was given: {count}"))
}

/// The same for any number of tensors.
pub(super) fn read_all<'a, T: WithDType, R>(
    tensors: impl IntoIterator<Item = &'a Tensor>,
    work: impl FnOnce(Vec<View<'_, T>>) -> R,
) -> Result<R> {
    const NAME: &str = "a fused operation";
    let held: Vec<_> = tensors.into_iter().map(Tensor::storage_and_layout).collect();
    let views = held.iter().map(|(storage, layout)| match &**storage {
        Storage::Cpu(storage) => View::new(NAME, storage, layout),
        _ => bail!("{NAME} reads values on the CPU"),
    });
    Ok(work(views.collect::<Result<_>>()?))
}

/// A tensor without a graph, of what `work` makes of the values of others.
pub(crate) fn compute<const N: usize>(
    tensors: [&Tensor; N],
    shape: impl Into<Shape>,
    work: impl FnOnce([View<'_>; N]) -> Vec<f32>,
) -> Result<Tensor> {
    Tensor::from_vec(read(tensors, work)?, shape.into(), &Device::Cpu)
}
