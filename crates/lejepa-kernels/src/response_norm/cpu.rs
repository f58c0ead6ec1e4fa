//! Global response normalisation on the CPU: an image is read again while it is in the cache.

use rayon::prelude::*;

use super::EPSILON;
use crate::filled::filled;
use crate::wide::wide;

/// The responses of the channels of one image.
struct Responses {
    /// `g`.
    response: Vec<f32>,
    /// Mean response and epsilon.
    denominator: f32,
}

impl Responses {
    #[inline(always)]
    fn new(map: &[f32], channels: usize) -> Self {
        let mut response = vec![0f32; channels];
        for row in map.chunks_exact(channels) {
            response.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * x);
        }
        response.iter_mut().for_each(|sum| *sum = sum.sqrt());
        let denominator = response.iter().sum::<f32>() / channels as f32 + EPSILON as f32;
        Self { response, denominator }
    }

    /// `1 + weight n`.
    fn factors(&self, weight: &[f32]) -> Vec<f32> {
        self.response.iter().zip(weight).map(|(g, weight)| 1. + weight * g / self.denominator).collect()
    }
}

pub(super) fn forward(maps: &[f32], weight: &[f32], bias: &[f32], images: usize) -> Vec<f32> {
    let image = (maps.len() / images.max(1)).max(1);
    filled(maps.len(), image, |index, ys| {
        let map = &maps[index * image..][..image];
        wide(
            #[inline(always)]
            || {
                let factor = Responses::new(map, weight.len()).factors(weight);
                for (ys, xs) in ys.chunks_exact_mut(bias.len()).zip(map.chunks_exact(bias.len())) {
                    for (((y, x), factor), bias) in ys.iter_mut().zip(xs).zip(&factor).zip(bias) {
                        *y = x * factor + bias;
                    }
                }
            },
        );
    })
}

/// The gradient of all rows, and those of weight and bias from every image: `(images, 2, channels)`.
pub(super) fn gradients(
    maps: &[f32],
    weight: &[f32],
    gradients: &[f32],
    images: usize,
) -> (Vec<f32>, Vec<f32>) {
    let channels = weight.len();
    let image = (maps.len() / images.max(1)).max(1);
    let (mut of_rows, mut of_affine) = (vec![0.; maps.len()], vec![0.; images * 2 * channels]);
    let results = of_rows.par_chunks_mut(image).zip(of_affine.par_chunks_mut(2 * channels));
    results.zip(maps.par_chunks(image).zip(gradients.par_chunks(image))).for_each(
        |((of_rows, of_affine), (map, gradients))| {
            wide(
                #[inline(always)]
                || gradients_of_image([map, gradients, weight], of_rows, of_affine),
            );
        },
    );
    (of_rows, of_affine)
}

/// `d x = G factor + x pull`, per channel of one image.
struct Slope {
    factor: Vec<f32>,
    pull: Vec<f32>,
}

impl Slope {
    /// Adds to the gradients of weight and bias.
    #[inline(always)]
    fn new([map, gradients, weight]: [&[f32]; 3], [of_weight, of_bias]: [&mut [f32]; 2]) -> Self {
        let channels = weight.len();
        let mut products = vec![0f32; channels]; // s
        for (xs, gradients) in map.chunks_exact(channels).zip(gradients.chunks_exact(channels)) {
            let sums = products.iter_mut().zip(of_bias.iter_mut());
            for (((product, of_bias), x), gradient) in sums.zip(xs).zip(gradients) {
                *product += x * gradient;
                *of_bias += gradient;
            }
        }
        let responses = Responses::new(map, channels);
        let factor = responses.factors(weight);
        let Responses { response, denominator } = responses;
        for ((of_weight, product), g) in of_weight.iter_mut().zip(&products).zip(&response) {
            *of_weight += product * g / denominator;
        }
        let weighted = weight.iter().zip(&products).map(|(weight, product)| weight * product);
        let shared: f32 = weighted.clone().zip(&response).map(|(weighted, g)| weighted * g).sum();
        let shared = shared / (channels as f32 * denominator * denominator);
        let pull = weighted
            .zip(&response)
            .map(|(weighted, &g)| if g > 0. { (weighted / denominator - shared) / g } else { 0. })
            .collect();
        Self { factor, pull }
    }
}

#[inline(always)]
fn gradients_of_image([map, gradients, weight]: [&[f32]; 3], of_rows: &mut [f32], of_affine: &mut [f32]) {
    let channels = weight.len();
    let (of_weight, of_bias) = of_affine.split_at_mut(channels);
    let Slope { factor, pull } = Slope::new([map, gradients, weight], [of_weight, of_bias]);
    let rows = map.chunks_exact(channels).zip(gradients.chunks_exact(channels));
    for (of_rows, (xs, gradients)) in of_rows.chunks_exact_mut(channels).zip(rows) {
        let columns = factor.iter().zip(&pull);
        for (((result, x), gradient), (factor, pull)) in
            of_rows.iter_mut().zip(xs).zip(gradients).zip(columns)
        {
            *result = gradient * factor + x * pull;
        }
    }
}

/// The forward pass of one image, in place.
pub(crate) fn respond(map: &mut [f32], weight: &[f32], bias: &[f32]) {
    wide(
        #[inline(always)]
        || {
            let factor = Responses::new(map, weight.len()).factors(weight);
            for xs in map.chunks_exact_mut(weight.len()) {
                xs.iter_mut().zip(&factor).zip(bias).for_each(|((x, factor), bias)| *x = *x * factor + bias);
            }
        },
    );
}

/// The same, with the gradient of what comes out, which becomes that of what came in; those of weight and bias are added.
pub(crate) fn respond_gradient(
    [weight, bias]: [&[f32]; 2],
    map: &mut [f32],
    gradients: &mut [f32],
    [of_weight, of_bias]: [&mut [f32]; 2],
) {
    wide(
        #[inline(always)]
        || {
            let Slope { factor, pull } =
                Slope::new([map, gradients, weight], [&mut *of_weight, &mut *of_bias]);
            let rows = map.chunks_exact_mut(weight.len()).zip(gradients.chunks_exact_mut(weight.len()));
            for (xs, gradients) in rows {
                let columns = factor.iter().zip(&pull).zip(bias);
                for ((x, gradient), ((factor, pull), bias)) in
                    xs.iter_mut().zip(gradients.iter_mut()).zip(columns)
                {
                    *gradient = *gradient * factor + *x * pull;
                    *x = *x * factor + bias;
                }
            }
        },
    );
}
