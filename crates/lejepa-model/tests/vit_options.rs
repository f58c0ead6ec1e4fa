//! What a vision transformer does in training alone, and in another float type.

#![allow(clippy::unwrap_used)]

use candle_core::{DType, Device, Tensor};
use lejepa_model::layers::DropPath;
use lejepa_model::{Initialisation, Parameters, Pass, Pool, VisionTransformer, VitShape};

fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut parameters = Parameters::new(seed, DType::F32, &Device::Cpu);
    parameters.root().parameter("x", shape, Initialisation::Normal(1.)).unwrap()
}

fn build(shape: &VitShape) -> (VisionTransformer, Parameters) {
    let mut parameters = Parameters::new(1, DType::F32, &Device::Cpu);
    let vit = VisionTransformer::new(shape, parameters.root()).unwrap();
    (vit, parameters)
}

fn shape() -> VitShape {
    VitShape {
        image_size: 16.into(),
        patch_size: 4,
        dim: 8,
        depth: 3,
        heads: 2,
        mlp_hidden: 32,
        registers: 2,
        layer_scale: Some(0.5),
        ..Default::default()
    }
}

fn rows(tensor: &Tensor) -> Vec<Vec<f32>> {
    tensor.to_vec2().unwrap()
}

#[test]
fn f32_parameters_take_pixels_of_another_type() {
    /// f32 against f64; features are of order one.
    const TOLERANCE: f64 = 1e-5;
    for pool in [Pool::Class, Pool::Average] {
        let (vit, parameters) = build(&VitShape { pool, ..shape() });
        let pixels = random(&[2, 3, 8, 16], 2);
        let single = vit.forward(&pixels, &Pass::train(0)).unwrap();
        let double = vit.forward(&pixels.to_dtype(DType::F64).unwrap(), &Pass::train(0)).unwrap();
        assert_eq!(double.dtype(), DType::F64);
        let difference = (single.to_dtype(DType::F64).unwrap() - &double).unwrap().abs().unwrap();
        let worst: f64 = difference.flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap();
        assert!(worst < TOLERANCE, "{worst:e}");

        let gradients = double.sqr().unwrap().sum_all().unwrap().backward().unwrap();
        for (name, variable) in parameters.trainable() {
            assert_eq!(gradients.get(variable).unwrap().dtype(), DType::F32, "{name}");
        }
    }
}

#[test]
fn drop_path_leaves_out_whole_images_and_keeps_the_mean() {
    const IMAGES: usize = 4000;
    let rows = Tensor::ones((IMAGES * 2, 1), DType::F32, &Device::Cpu).unwrap();
    let layer = DropPath::new(0.25, 7);
    let dropped = layer.forward(&rows, IMAGES, &Pass::train(3)).unwrap();
    let values: Vec<f32> = dropped.flatten_all().unwrap().to_vec1().unwrap();
    assert!(values.chunks(2).all(|image| image[0] == image[1] && (image[0] == 0. || image[0] == 1. / 0.75)));
    let left_out = values.iter().filter(|&&value| value == 0.).count() as f64 / values.len() as f64;
    // Four standard deviations of a mean of 4000.
    assert!((left_out - 0.25).abs() < 4. * (0.25f64 * 0.75 / IMAGES as f64).sqrt(), "{left_out}");

    for (layer, pass) in [(layer, Pass::eval()), (DropPath::new(0., 7), Pass::train(3))] {
        let kept: Vec<f32> =
            layer.forward(&rows, IMAGES, &pass).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        assert!(kept.iter().all(|&value| value == 1.));
    }
}

#[test]
fn the_first_block_is_never_passed_over() {
    let (vit, _parameters) = build(&VitShape { depth: 1, drop_path: 0.9, ..shape() });
    let pixels = random(&[4, 3, 16, 16], 2);
    let evaluated = vit.forward(&pixels, &Pass::eval()).unwrap();
    assert_eq!(rows(&vit.forward(&pixels, &Pass::train(0)).unwrap()), rows(&evaluated));
}

#[test]
fn randomness_belongs_to_the_image_and_not_to_the_batch() {
    let (vit, _parameters) = build(&VitShape { drop_path: 0.5, ..shape() });
    let pixels = random(&[4, 3, 16, 16], 2);
    let pass = |seed: u64| Pass::train(seed).with_masking(0.5);
    let whole = rows(&vit.forward(&pixels, &pass(1)).unwrap());
    let second_half = vit.forward(&pixels.narrow(0, 2, 2).unwrap(), &pass(1).starting_at(2)).unwrap();
    for (left, right) in whole[2..].iter().flatten().zip(rows(&second_half).iter().flatten()) {
        assert!((left - right).abs() < 1e-6, "{left} {right}");
    }
    assert_ne!(whole, rows(&vit.forward(&pixels, &pass(2)).unwrap()));
}

#[test]
fn masked_patches_do_not_reach_the_feature() {
    let (vit, _parameters) = build(&shape());
    let pixels = random(&[1, 3, 16, 16], 2);
    // 16 patches, of which one stays: changing the image changes the feature for one patch only.
    let pass = Pass::train(5).with_masking(1.);
    let feature = rows(&vit.forward(&pixels, &pass).unwrap());
    let mut seen = 0;
    for patch in 0..16 {
        let mut values: Vec<f32> = pixels.flatten_all().unwrap().to_vec1().unwrap();
        values[patch / 4 * 64 + patch % 4 * 4] += 1.;
        let changed = Tensor::from_vec(values, pixels.shape(), &Device::Cpu).unwrap();
        seen += usize::from(rows(&vit.forward(&changed, &pass).unwrap()) != feature);
    }
    assert_eq!(seen, 1);
    let unmasked = vit.forward(&pixels, &Pass::train(5)).unwrap();
    assert_eq!(rows(&unmasked), rows(&vit.forward(&pixels, &Pass::eval()).unwrap()));
}
