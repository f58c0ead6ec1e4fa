//! Gradients against central differences in f64, for what no golden vector covers.

#![allow(clippy::unwrap_used)]

mod central_differences;

use candle_core::{DType, Device, Tensor};
use central_differences::{check_gradients, random};
use lejepa_model::{Parameters, Pass, Pool, Projector, ProjectorConfig, VisionTransformer, VitShape};

#[test]
fn the_projector_in_train_mode_has_the_right_gradient() {
    let mut parameters = Parameters::new(1, DType::F64, &Device::Cpu);
    let config = ProjectorConfig { hidden: vec![7, 5], dim: 3 };
    let projector = Projector::new(6, &config, parameters.root()).unwrap();
    let (features, target) = (random(&[9, 6], 2), random(&[9, 3], 3));
    check_gradients(&parameters, || {
        let projected = projector.forward(&features, &Pass::train(0)).unwrap();
        (projected * &target).unwrap().sin().unwrap().sum_all().unwrap()
    });
}

fn small_vit() -> VitShape {
    VitShape {
        image_size: lejepa_model::ImageSize { height: 12, width: 8 },
        patch_size: 4,
        channels: 1,
        dim: 8,
        depth: 2,
        heads: 2,
        mlp_hidden: 32,
        ..Default::default()
    }
}

fn check_vit(shape: &VitShape, image: [usize; 2], pass: &Pass) {
    let mut parameters = Parameters::new(1, DType::F64, &Device::Cpu);
    let vit = VisionTransformer::new(shape, parameters.root()).unwrap();
    // Untrained class and register tokens are too close to zero for a norm to be smooth there.
    for variable in parameters.trainable().values() {
        let noise = (random(variable.dims(), 4) * 0.3).unwrap();
        variable.set(&(variable.as_tensor() + noise).unwrap()).unwrap();
    }
    let (pixels, target) = (random(&[3, 1, image[0], image[1]], 2), random(&[3, 8], 3));
    check_gradients(&parameters, || {
        (vit.forward(&pixels, pass).unwrap() * &target).unwrap().sum_all().unwrap()
    });
}

#[test]
fn a_vit_on_a_smaller_non_square_image_has_the_right_gradient() {
    check_vit(&small_vit(), [8, 4], &Pass::train(0));
}

#[test]
fn every_option_of_a_vit_has_the_right_gradient() {
    let pass = Pass::train(0).with_masking(0.5);
    let registers = VitShape { registers: 2, layer_scale: Some(0.5), drop_path: 0.5, ..small_vit() };
    let without_positions = VitShape { embed_prefix: false, ..registers };
    check_vit(&without_positions, [8, 12], &pass);
    let average = VitShape { pool: Pool::Average, ..without_positions };
    check_vit(&average, [8, 8], &pass);
    check_vit(&VitShape { class_token: false, registers: 0, ..average }, [8, 4], &pass);
}

#[test]
fn batch_norm_keeps_pytorchs_running_statistics() {
    let mut parameters = Parameters::new(0, DType::F64, &Device::Cpu);
    let norm = lejepa_model::layers::BatchNorm::new(2, parameters.root()).unwrap();
    let xs = Tensor::new(&[[1., 10.], [2., 20.], [6., 60.]], &Device::Cpu).unwrap();
    let normalised = norm.forward(&xs, &Pass::train(0)).unwrap();
    let mean: Vec<f64> = normalised.mean(0).unwrap().to_vec1().unwrap();
    assert!(mean.iter().all(|mean| mean.abs() < 1e-12), "{mean:?}");

    let buffer = |name: &str| -> Vec<f64> {
        parameters.tensors().find(|(other, _)| *other == name).unwrap().1.to_vec1().unwrap()
    };
    // Momentum 0.1; means 3 and 30; unbiased variances 7 and 700.
    let close = |left: Vec<f64>, right: [f64; 2]| left.iter().zip(right).all(|(l, r)| (l - r).abs() < 1e-12);
    assert!(close(buffer("running_mean"), [0.3, 3.]));
    assert!(close(buffer("running_var"), [0.9 + 0.7, 0.9 + 70.]));

    // Evaluation uses them and leaves them alone.
    norm.forward(&xs, &Pass::eval()).unwrap();
    assert!(close(buffer("running_mean"), [0.3, 3.]));
}

#[test]
fn one_sample_is_too_few_for_batch_norm() {
    let mut parameters = Parameters::new(0, DType::F64, &Device::Cpu);
    let norm = lejepa_model::layers::BatchNorm::new(2, parameters.root()).unwrap();
    assert!(norm.forward(&random(&[1, 2], 0), &Pass::train(0)).is_err());
    assert!(norm.forward(&random(&[1, 2], 0), &Pass::eval()).is_ok());
}
