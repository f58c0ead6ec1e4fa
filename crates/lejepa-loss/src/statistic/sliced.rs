//! A [`Statistic`] over all slices of a tensor, as an operation with a gradient.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, D, DType, Device, Layout, Shape, Tensor, WithDType};
use rayon::prelude::*;

use super::{Statistic, check_samples};
use crate::{Error, Result};

/// The projections of embeddings, in f32 or better.
///
/// # Shapes
/// - `embeddings`: `(.., samples, dim)`
/// - `directions`: `(dim, slices)`
/// - result: `(.., slices, samples)`
pub(super) fn project(embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
    check_shapes(embeddings, directions)?;
    let embeddings = at_least_f32(embeddings)?;
    let directions = directions.to_dtype(embeddings.dtype())?;
    Ok(directions.t()?.broadcast_matmul(&embeddings.transpose(D::Minus2, D::Minus1)?)?)
}

/// Refuses embeddings that do not fit directions, and either without anything in it.
pub(super) fn check_shapes(embeddings: &Tensor, directions: &Tensor) -> Result<()> {
    match (embeddings.dims(), directions.dims()) {
        ([.., samples, dim], [rows, slices]) if dim == rows && samples.min(dim).min(slices) > &0 => Ok(()),
        (_, [rows, slices]) => Err(Error::Shape {
            expected: format!("(.., samples, {rows}) for {slices} slices, none of them 0"),
            got: embeddings.dims().to_vec(),
        }),
        _ => Err(Error::Shape {
            expected: "(dim, slices) as directions".into(),
            got: directions.dims().to_vec(),
        }),
    }
}

/// The same numbers, as f32 where they are of half precision.
pub(super) fn at_least_f32(tensor: &Tensor) -> candle_core::Result<Tensor> {
    match tensor.dtype() {
        DType::F64 => Ok(tensor.clone()),
        _ => tensor.to_dtype(DType::F32),
    }
}

/// The statistic of every slice. It is computed on the CPU, wherever the tensor is.
pub(super) fn per_slice<S: Statistic + ?Sized + 'static>(
    statistic: Arc<S>,
    projected: &Tensor,
) -> Result<Tensor> {
    check_samples(&*statistic, projected.dim(D::Minus1)?)?;
    let projected = at_least_f32(projected)?;
    let here = projected.to_device(&Device::Cpu)?.contiguous()?;
    Ok(here.apply_op1(PerSlice(statistic))?.to_device(projected.device())?)
}

struct PerSlice<S: ?Sized>(Arc<S>);
struct Gradient<S: ?Sized>(Arc<S>);

impl<S: Statistic + ?Sized> CustomOp1 for PerSlice<S> {
    fn name(&self) -> &'static str {
        "statistic-per-slice"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        let values = match storage {
            CpuStorage::F64(_) => self.values::<f64>(storage, layout)?,
            _ => self.values::<f32>(storage, layout)?,
        };
        let dims = layout.shape().dims();
        Ok((values, Shape::from(&dims[..dims.len() - 1])))
    }

    fn bwd(
        &self,
        projected: &Tensor,
        _result: &Tensor,
        upstream: &Tensor,
    ) -> candle_core::Result<Option<Tensor>> {
        let upstream = upstream.detach().contiguous()?;
        Ok(Some(projected.detach().apply_op2_no_bwd(&upstream, &Gradient(self.0.clone()))?))
    }
}

impl<S: Statistic + ?Sized> PerSlice<S> {
    fn values<T: WithDType>(&self, storage: &CpuStorage, layout: &Layout) -> candle_core::Result<CpuStorage> {
        let (samples, length) = slices::<T>(storage, layout)?;
        let values: Vec<T> = samples
            .par_chunks(length)
            .map_init(|| vec![0.; length], |slice, samples| T::from_f64(self.0.value(exact(samples, slice))))
            .collect();
        Ok(T::to_cpu_storage_owned(values))
    }
}

impl<S: Statistic + ?Sized> CustomOp2 for Gradient<S> {
    fn name(&self) -> &'static str {
        "statistic-per-slice-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        upstream_storage: &CpuStorage,
        upstream_layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        let (upstream, at) = (upstream_storage, upstream_layout);
        let gradient = match storage {
            CpuStorage::F64(_) => self.gradient::<f64>(slices(storage, layout)?, contiguous(upstream, at)?),
            _ => self.gradient::<f32>(slices(storage, layout)?, contiguous(upstream, at)?),
        };
        Ok((gradient, layout.shape().clone()))
    }
}

impl<S: Statistic + ?Sized> Gradient<S> {
    fn gradient<T: WithDType>(&self, (samples, length): (&[T], usize), upstream: &[T]) -> CpuStorage {
        let mut result = vec![T::zero(); samples.len()];
        result.par_chunks_mut(length).zip(samples.par_chunks(length)).zip(upstream).for_each_init(
            || (vec![0.; length], vec![0.; length]),
            |(slice, gradient), ((result, samples), upstream)| {
                self.0.gradient(exact(samples, slice), gradient);
                for (result, gradient) in result.iter_mut().zip(gradient) {
                    *result = T::from_f64(*gradient * upstream.to_f64());
                }
            },
        );
        T::to_cpu_storage_owned(result)
    }
}

/// The samples of all slices, one slice after the other, and how many each has.
fn slices<'a, T: WithDType>(
    storage: &'a CpuStorage,
    layout: &Layout,
) -> candle_core::Result<(&'a [T], usize)> {
    // `par_chunks` refuses 0; without samples there is no chunk either.
    let length = layout.shape().dims().last().copied().unwrap_or(1).max(1);
    Ok((contiguous(storage, layout)?, length))
}

pub(super) fn contiguous<'a, T: WithDType>(
    storage: &'a CpuStorage,
    layout: &Layout,
) -> candle_core::Result<&'a [T]> {
    let (start, end) = layout
        .contiguous_offsets()
        .ok_or(candle_core::Error::RequiresContiguous { op: "statistic-per-slice" })?;
    Ok(&storage.as_slice::<T>()?[start..end])
}

/// The samples in f64, in a buffer of the same length.
fn exact<'a, T: WithDType>(samples: &[T], buffer: &'a mut [f64]) -> &'a [f64] {
    buffer.iter_mut().zip(samples).for_each(|(buffer, sample)| *buffer = sample.to_f64());
    buffer
}
