//! `y = f(x W^T + b)` for every row, with `f` the identity or GELU.
//!
//! ```text
//! g = d y f'(x W^T + b)
//! d x = g W,   d W = g^T x,   d b = sum of the rows of g
//! ```

mod composed;
mod cpu;

use candle_core::{Result, Tensor};

use self::cpu::Linear;
use crate::is_fused;
use crate::operation::apply_joint;

/// The activation behind a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinearActivation {
    /// Nothing.
    None,
    /// The exact GELU.
    Gelu,
}

/// A linear layer, and an activation behind it if asked.
///
/// # Shapes
/// - `xs`: `(rows, inputs)`; `weight`: `(outputs, inputs)`; `bias`: `(outputs)`
/// - result: `(rows, outputs)`
pub fn linear(
    xs: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    activation: LinearActivation,
) -> Result<Tensor> {
    if !is_fused(xs) {
        return composed::linear(xs, weight, bias, activation);
    }
    let parameters: Vec<&Tensor> = std::iter::once(weight).chain(bias).collect();
    let (outputs, inputs) = weight.dims2()?;
    apply_joint(xs, &parameters, outputs, Linear { inputs, outputs, activation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::assert_fused_agrees;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 7), (130, 33, 48), (600, 64, 17), (29, 192, 200)] {
            for activation in [LinearActivation::None, LinearActivation::Gelu] {
                assert_fused_agrees(&[&[rows, inputs], &[outputs, inputs], &[outputs]], |tensors| {
                    linear(&tensors[0], &tensors[1], Some(&tensors[2]), activation).unwrap()
                });
            }
            assert_fused_agrees(&[&[rows, inputs], &[outputs, inputs]], |tensors| {
                linear(&tensors[0], &tensors[1], None, LinearActivation::None).unwrap()
            });
        }
    }
}
