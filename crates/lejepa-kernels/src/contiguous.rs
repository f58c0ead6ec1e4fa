//! The values of a contiguous f32 tensor on the CPU.

use candle_core::{CpuStorage, Error, Layout, Result};

pub(crate) fn values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let (start, end) =
        layout.contiguous_offsets().ok_or(Error::RequiresContiguous { op: "fused operation" })?;
    Ok(&storage.as_slice::<f32>()?[start..end])
}
