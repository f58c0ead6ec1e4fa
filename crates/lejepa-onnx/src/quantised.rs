//! Weights and activations in 8 bits.
//!
//! Weights are symmetric with one scale per output channel and use 7 bits only: processors without
//! instructions for it add two products of bytes in 16 bits, and two times 255 * 63 just fits.

use candle_core::{DType, Tensor};

use crate::Result;
use crate::graph::Graph;

/// The largest magnitude of a quantised weight.
const LARGEST: f32 = 63.;

/// A weight in integers: `W = scales W_q`.
pub(crate) struct QuantisedWeight {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<i8>,
    /// One per output channel: `(outputs)`.
    pub(crate) scales: Tensor,
}

impl QuantisedWeight {
    /// # Shapes
    /// - `weight`: `(outputs, ..)`
    pub(crate) fn new(weight: &Tensor) -> Result<Self> {
        let rows: Vec<Vec<f32>> = weight.to_dtype(DType::F32)?.flatten_from(1)?.to_vec2()?;
        let mut values = Vec::with_capacity(weight.elem_count());
        let mut scales = Vec::with_capacity(rows.len());
        for row in &rows {
            let largest = row.iter().fold(0f32, |largest, value| largest.max(value.abs()));
            let scale = if largest > 0. { largest / LARGEST } else { 1. };
            values.extend(row.iter().map(|value| (value / scale).round() as i8));
            scales.push(scale);
        }
        let scales = Tensor::from_vec(scales, rows.len(), weight.device())?;
        Ok(Self { shape: weight.dims().to_vec(), values, scales })
    }

    /// `(outputs, inputs)` as `(inputs, outputs)`.
    pub(crate) fn transposed(self) -> Self {
        let outputs = self.scales.elem_count();
        let inputs = self.values.len() / outputs.max(1);
        let at = |index: usize| self.values[index % outputs * inputs + index / outputs];
        let values = (0..self.values.len()).map(at).collect();
        Self { shape: vec![inputs, outputs], values, scales: self.scales }
    }
}

/// A value as unsigned bytes with their scale and zero, once for all who multiply it.
pub(crate) fn quantise(graph: &mut Graph<'_>, xs: &str) -> [String; 3] {
    let names = ["quantised", "scale", "zero"].map(|part| format!("{xs}/{part}"));
    if names.iter().all(|name| graph.has(name)) {
        return names;
    }
    graph.node_of_many("DynamicQuantizeLinear", names, &[xs], &[])
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn weights_are_within_half_a_step_and_rows_of_zeros_stay_zero() {
        let rows = [[0.5f32, -1., 0.013], [0., 0., 0.]];
        let weight = QuantisedWeight::new(&Tensor::new(&rows, &Device::Cpu).unwrap()).unwrap();
        let scales: Vec<f32> = weight.scales.to_vec1().unwrap();
        for (index, expected) in rows.iter().flatten().enumerate() {
            let scale = scales[index / 3];
            assert!((f32::from(weight.values[index]) * scale - expected).abs() <= scale / 2.);
        }
        assert_eq!(weight.values[1], -63);
        let transposed = weight.transposed();
        assert_eq!((transposed.shape, transposed.values), (vec![3, 2], vec![32, 0, -63, 0, 1, 0]));
    }
}
