//! A block of ConvNeXt V2: `y = x + factor[image] fc2(grn(gelu(fc1(norm(conv_dw(x))))))`.

use candle_core::{Result, Tensor};

use super::cpu::Spatial;
use super::{Images, composed};
use crate::operation::apply_joint;
use crate::{Windows, is_fused};

/// The block of ConvNeXt V2 without its rows.
pub struct SpatialBranch<'a> {
    /// Weight and bias of the depthwise convolution, the norm, fc1, the response norm and fc2.
    pub parameters: [&'a Tensor; 10],
    /// The windows of the depthwise convolution.
    pub windows: Windows,
    /// Added to the variance.
    pub epsilon: f32,
    /// The factor of every image's branch.
    pub factors: Vec<f32>,
}

/// The rows behind a block.
///
/// # Shapes
/// - `rows` and result: `(images * places, dim)`
pub fn spatial_branch(rows: &Tensor, branch: SpatialBranch<'_>) -> Result<Tensor> {
    if !is_fused(rows) {
        return composed::spatial_branch(rows, &branch);
    }
    let SpatialBranch { parameters, windows, epsilon, factors } = branch;
    let images = Images { tokens: windows.input.places(), factors };
    apply_joint(rows, &parameters, rows.dim(1)?, Spatial { windows, epsilon, images })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::assert_fused_agrees;
    use crate::{MapSize, Window};

    const EPSILON: f32 = 1e-6;

    fn branch(tensors: &[Tensor], windows: Windows, factors: &[f32]) -> Tensor {
        let [rows, parameters @ ..] = tensors else { panic!("no rows") };
        let parameters = std::array::from_fn(|index| &parameters[index]);
        let branch = SpatialBranch { parameters, windows, epsilon: EPSILON, factors: factors.to_vec() };
        spatial_branch(rows, branch).unwrap()
    }

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        // The third has several images in a task, the last several tasks in a sum.
        for (kernel, height, width, dim, hidden, factors) in [
            (7, 3, 5, 6, 10, &[1., 1.][..]),
            (3, 4, 4, 16, 33, &[1., 0., 1.25]),
            (7, 2, 2, 8, 12, &[1.5; 40]),
            (5, 12, 11, 5, 20, &[1.; 9]),
        ] {
            let window = Window { kernel, stride: 1, padding: kernel / 2 };
            let images = factors.len();
            let windows = Windows::new(window, images, MapSize { height, width }).unwrap();
            let shapes: [&[usize]; 11] = [
                &[images * height * width, dim],
                &[dim, kernel * kernel],
                &[dim],
                &[dim],
                &[dim],
                &[hidden, dim],
                &[hidden],
                &[hidden],
                &[hidden],
                &[dim, hidden],
                &[dim],
            ];
            assert_fused_agrees(&shapes, |tensors| branch(tensors, windows, factors));
        }
    }
}
