//! The windows of a feature map as rows, so that a convolution is one matrix product.
//!
//! ```text
//! unfolded[(image, output), (tap_y, tap_x, channel)] = rows[(image, stride * output + tap - padding), channel]
//! ```
//!
//! Zero beyond the edge. The gradient folds the windows back: every place sums what its copies receive.

mod composed;
mod cpu;

use candle_core::{Result, Shape, Tensor};

use self::cpu::Grouped;
use crate::operation::{Backward, Operation, View, apply, compute};
use crate::{Windows, is_fused};

/// The windows of a map as rows.
///
/// # Shapes
/// - `rows`: `(images * input places, groups * channels)`
/// - result: `(groups, images * output places, taps * channels)`
pub fn unfold(rows: &Tensor, windows: &Windows, groups: usize) -> Result<Tensor> {
    if is_fused(rows) {
        let channels = rows.dim(1)? / groups.max(1);
        return apply(Unfold(Grouped { windows: *windows, groups, channels }), [rows]);
    }
    composed::unfold(rows, windows, groups)
}

struct Unfold(Grouped);

impl Operation<1> for Unfold {
    fn name(&self) -> &'static str {
        "unfold"
    }

    fn cpu(&self, [rows]: [View<'_>; 1]) -> Result<(Vec<f32>, Shape)> {
        let Grouped { windows, groups, .. } = self.0;
        let shape = (groups, windows.images * windows.output.places(), self.0.columns());
        Ok((self.0.unfold(&rows), Shape::from(shape)))
    }

    fn backward(&self, backward: Backward<1>) -> Result<[Option<Tensor>; 1]> {
        let Backward { inputs: [rows], gradient, .. } = backward;
        Ok([Some(compute([&gradient], rows.shape(), |[gradient]| self.0.fold(&gradient))?)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapSize;
    use crate::agreement::assert_fused_agrees;
    use crate::window::Window;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        let size = MapSize { height: 5, width: 8 };
        for (kernel, stride, padding, groups) in
            [(3, 1, 1, 1), (3, 2, 1, 2), (1, 2, 0, 1), (7, 2, 3, 1), (2, 2, 0, 3), (4, 4, 0, 1)]
        {
            let windows = Windows::new(Window { kernel, stride, padding }, 3, size).unwrap();
            assert_fused_agrees(&[&[3 * 40, 6]], |tensors| unfold(&tensors[0], &windows, groups).unwrap());
        }
    }
}
