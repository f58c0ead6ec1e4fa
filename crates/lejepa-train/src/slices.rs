//! The values of f32 tensors on the CPU as slices, for work in one pass over them.

use std::cell::RefCell;
use std::ops::Range;

use candle_core::{CpuStorage, DType, InplaceOp1, Layout, Storage, Tensor};

/// Values per task, in chunks that do not depend on the number of threads.
pub(crate) const CHUNK: usize = 1 << 15;

/// Whether the values of all can be lent.
pub(crate) fn can_lend<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> bool {
    tensors.into_iter().all(|tensor| {
        tensor.device().is_cpu() && tensor.dtype() == DType::F32 && tensor.layout().is_contiguous()
    })
}

/// Lends the values of a tensor for reading.
pub(crate) fn read<T>(tensor: &Tensor, work: impl FnOnce(&[f32]) -> T) -> candle_core::Result<T> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => Ok(work(&storage.as_slice::<f32>()?[range(layout)?])),
        _ => candle_core::bail!("values on a device cannot be lent"),
    }
}

/// Lends the values of a tensor for change.
pub(crate) fn change(
    tensor: &Tensor,
    work: impl FnMut(&mut [f32]) -> candle_core::Result<()>,
) -> candle_core::Result<()> {
    tensor.inplace_op1(&Change(RefCell::new(work)))
}

struct Change<F>(RefCell<F>);

impl<F: FnMut(&mut [f32]) -> candle_core::Result<()>> InplaceOp1 for Change<F> {
    fn name(&self) -> &'static str {
        "change"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        let CpuStorage::F32(values) = storage else { candle_core::bail!("only f32 can be lent") };
        let values = &mut values[range(layout)?];
        (self.0.borrow_mut())(values)
    }
}

fn range(layout: &Layout) -> candle_core::Result<Range<usize>> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(start..end),
        None => candle_core::bail!("only contiguous values can be lent"),
    }
}
