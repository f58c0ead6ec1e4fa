//! Random crops, drawn as torchvision's `RandomResizedCrop` draws them.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::CropBox;

/// Crops' aspect ratios lie between this and its inverse.
const NARROWEST: f64 = 3. / 4.;
const ATTEMPTS: usize = 10;

/// A crop of random place and aspect ratio that covers a random share of the image's area.
pub(super) fn random_crop(
    height: usize,
    width: usize,
    scale: [f64; 2],
    generator: &mut ChaCha8Rng,
) -> CropBox {
    let area = (height * width) as f64;
    let widest = (1. / NARROWEST).ln();
    for _attempt in 0..ATTEMPTS {
        let target = area * generator.random_range(scale[0]..=scale[1]);
        let aspect = generator.random_range(-widest..=widest).exp();
        let crop_width = (target * aspect).sqrt().round() as usize;
        let crop_height = (target / aspect).sqrt().round() as usize;
        if (1..=width).contains(&crop_width) && (1..=height).contains(&crop_height) {
            return CropBox {
                top: generator.random_range(0..=height - crop_height),
                left: generator.random_range(0..=width - crop_width),
                height: crop_height,
                width: crop_width,
            };
        }
    }
    // No such crop fits a very long image: the largest centre crop of an allowed aspect ratio.
    let crop_height = height.min((width as f64 / NARROWEST).round().max(1.) as usize);
    let crop_width = width.min((height as f64 / NARROWEST).round().max(1.) as usize);
    CropBox {
        top: (height - crop_height) / 2,
        left: (width - crop_width) / 2,
        height: crop_height,
        width: crop_width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purpose, generator};

    #[test]
    fn crops_lie_inside_images_of_any_shape() {
        for (height, width) in [(1, 1), (1, 500), (500, 1), (28, 28), (20, 333)] {
            for part in 0..200 {
                let mut generator = generator(0, Purpose::Views, 0, part);
                let crop = random_crop(height, width, [0.05, 1.], &mut generator);
                assert!(crop.height >= 1 && crop.top + crop.height <= height, "{crop:?}");
                assert!(crop.width >= 1 && crop.left + crop.width <= width, "{crop:?}");
            }
        }
    }

    #[test]
    fn crops_cover_the_share_that_was_asked_for() {
        let shares: Vec<f64> = (0..500)
            .map(|part| {
                let mut generator = generator(0, Purpose::Views, 0, part);
                let crop = random_crop(100, 100, [0.2, 0.4], &mut generator);
                (crop.height * crop.width) as f64 / 10_000.
            })
            .collect();
        assert!(shares.iter().all(|share| (0.18..0.42).contains(share)));
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 0.3).abs() < 0.02, "{mean}");
    }
}
