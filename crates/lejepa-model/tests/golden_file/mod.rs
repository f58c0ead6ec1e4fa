//! Golden vectors of `tests/golden/` (see the README there), and how far a tensor is from them.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::HashMap;

use candle_core::{Device, Tensor};

/// All tensors of a file.
pub(crate) fn golden(name: &str) -> HashMap<String, Tensor> {
    let path = format!("{}/../../tests/golden/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

/// The tensors below a prefix, without it; PyTorch's counters are no part of a model here.
pub(crate) fn part(golden: &HashMap<String, Tensor>, prefix: &str) -> HashMap<String, Tensor> {
    let of_part = |(name, tensor): (&String, &Tensor)| {
        let name = name.strip_prefix(prefix).filter(|name| !name.ends_with("num_batches_tracked"))?;
        Some((name.to_string(), tensor.clone()))
    };
    golden.iter().filter_map(of_part).collect()
}

/// The largest magnitude.
pub(crate) fn largest(tensor: &Tensor) -> f32 {
    tensor.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}
