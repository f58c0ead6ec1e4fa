//! Gradients of the convolutional layers and encoders against central differences in f64, on maps
//! whose sides are odd and differ.

#![allow(clippy::unwrap_used)]

mod central_differences;

use candle_core::{DType, Device, Tensor, Var};
use central_differences::random;
use lejepa_model::layers::{Convolution, ConvolutionShape, DepthwiseConvolution, FeatureMap, ResponseNorm};
use lejepa_model::{
    ConvNext, ConvNextShape, ImageSize, Initialisation, Parameters, Pass, ResNet, ResNetBlock, ResNetShape,
};

/// Small enough to cross no kink of a ReLU, of which an encoder has many.
const SLOPE_STEP: f64 = 1e-8;
const SLOPE_TOLERANCE: f64 = 1e-6;
const SIZE: ImageSize = ImageSize { height: 5, width: 7 };

/// A loss that no symmetry makes easy.
fn loss_of(output: &Tensor) -> Tensor {
    (output * random(output.dims(), 77)).unwrap().sin().unwrap().sum_all().unwrap()
}

fn check_gradients(parameters: &Parameters, output: impl Fn() -> Tensor) {
    central_differences::check_gradients(parameters, || loss_of(&output()));
}

/// The same for a whole encoder, along one random direction of all parameters: each evaluation is slow.
fn check_slope(parameters: &Parameters, output: impl Fn() -> Tensor) {
    let loss = || loss_of(&output());
    let gradients = loss().backward().unwrap();
    let directions: Vec<(&Var, Tensor, Tensor)> = (100..)
        .zip(parameters.trainable().values())
        .map(|(seed, variable)| (variable, variable.copy().unwrap(), random(variable.dims(), seed)))
        .collect();
    let slope: f64 = directions
        .iter()
        .map(|(variable, _start, direction)| {
            let product = (gradients.get(variable).unwrap() * direction).unwrap();
            product.sum_all().unwrap().to_scalar::<f64>().unwrap()
        })
        .sum();
    let [above, below] = [SLOPE_STEP, -SLOPE_STEP].map(|shift| -> f64 {
        for (variable, start, direction) in &directions {
            variable.set(&(start + (direction * shift).unwrap()).unwrap()).unwrap();
        }
        loss().to_scalar().unwrap()
    });
    let numeric = (above - below) / (2. * SLOPE_STEP);
    assert!((slope - numeric).abs() < SLOPE_TOLERANCE * numeric.abs(), "{slope} against {numeric}");
}

/// A map of two images whose rows are themselves a parameter.
fn variable_map(parameters: &mut Parameters, channels: usize) -> FeatureMap {
    let shape = (2 * SIZE.height * SIZE.width, channels);
    let rows = parameters.root().parameter("rows", shape, Initialisation::Normal(1.)).unwrap();
    FeatureMap { rows, images: 2, size: SIZE }
}

#[test]
fn convolutions_have_the_right_gradient() {
    let plain = ConvolutionShape::three_by_three(4, 6);
    for shape in [
        plain,
        ConvolutionShape { stride: 2, ..plain },
        ConvolutionShape { stride: 2, groups: 2, ..plain },
        ConvolutionShape { stride: 2, kernel: 7, padding: 3, ..plain },
        ConvolutionShape { stride: 2, ..ConvolutionShape::pointwise(4, 6) },
        ConvolutionShape::pointwise(4, 6),
        ConvolutionShape::patches(4, 6, 2),
    ] {
        let mut parameters = Parameters::new(1, DType::F64, &Device::Cpu);
        let map = variable_map(&mut parameters, 4);
        let convolution = Convolution::with_bias(shape, parameters.root()).unwrap();
        check_gradients(&parameters, || convolution.forward(&map).unwrap().rows);
    }
}

/// The values of a convolution are checked too: Candle's own, which has no gradient for some of them.
#[test]
fn convolutions_have_candles_values() {
    for (stride, groups, dtype) in [(1, 1, DType::F64), (2, 1, DType::F64), (2, 2, DType::F32)] {
        let shape = ConvolutionShape { stride, groups, ..ConvolutionShape::three_by_three(4, 6) };
        let mut parameters = Parameters::new(1, dtype, &Device::Cpu);
        let convolution = Convolution::without_bias(shape, parameters.root()).unwrap();
        let pixels = random(&[2, 4, SIZE.height, SIZE.width], 3).to_dtype(dtype).unwrap();
        let map = convolution.forward(&FeatureMap::from_pixels(&pixels).unwrap()).unwrap();
        let expected = pixels.conv2d(&parameters.trainable()["weight"], 1, stride, 1, groups).unwrap();
        let difference = (map.channels_first().unwrap() - expected).unwrap().to_dtype(DType::F64).unwrap();
        let worst: f64 =
            difference.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap();
        assert!(worst < 1e-6, "{worst:e}");
    }
}

#[test]
fn a_depthwise_convolution_has_the_right_gradient() {
    let mut parameters = Parameters::new(1, DType::F64, &Device::Cpu);
    let map = variable_map(&mut parameters, 3);
    let convolution = DepthwiseConvolution::new(3, 7, parameters.root()).unwrap();
    check_gradients(&parameters, || convolution.forward(&map).unwrap().rows);
}

#[test]
fn the_response_norm_has_the_right_gradient() {
    let mut parameters = Parameters::new(1, DType::F64, &Device::Cpu);
    let map = variable_map(&mut parameters, 3);
    let norm = ResponseNorm::new(3, parameters.root()).unwrap();
    parameters.trainable()["weight"].set(&random(&[3], 5)).unwrap();
    check_gradients(&parameters, || norm.forward(&map.rows, map.images).unwrap());
}

#[test]
fn residual_networks_with_dropped_paths_have_the_right_gradient() {
    let basic = ResNetShape {
        image_size: ImageSize { height: 33, width: 41 },
        channels: 1,
        block: ResNetBlock::Basic,
        depths: [1, 1, 1, 1],
        widths: [4, 4, 8, 8],
        groups: 1,
        group_width: 64,
        drop_path: 0.4,
    };
    let grouped = ResNetShape { block: ResNetBlock::Bottleneck, groups: 2, group_width: 32, ..basic.clone() };
    for shape in [basic, grouped] {
        let mut parameters = Parameters::new(1, DType::F64, &Device::Cpu);
        let resnet = ResNet::new(&shape, parameters.root()).unwrap();
        let pixels = random(&[3, 1, 33, 41], 2);
        check_slope(&parameters, || resnet.forward(&pixels, &Pass::train(0)).unwrap());
    }
}

#[test]
fn a_convnext_with_dropped_paths_has_the_right_gradient() {
    let shape = ConvNextShape {
        image_size: ImageSize { height: 33, width: 70 },
        channels: 1,
        depths: [1; 4],
        widths: [4, 4, 6, 6],
        conv_mlp: true,
        drop_path: 0.4,
    };
    let mut parameters = Parameters::new(1, DType::F64, &Device::Cpu);
    let convnext = ConvNext::new(&shape, parameters.root()).unwrap();
    let pixels = random(&[3, 1, 33, 70], 2);
    check_slope(&parameters, || convnext.forward(&pixels, &Pass::train(0)).unwrap());
}
