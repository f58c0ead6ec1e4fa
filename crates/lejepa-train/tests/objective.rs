//! The loss of a batch and its gradients: in parts, with a predictor, with averaged centres.

#![allow(clippy::unwrap_used)]

use candle_core::{DType, Device, Tensor};
use lejepa_data::{Batch, ViewBatch, ViewSize};
use lejepa_loss::LejepaLoss;
use lejepa_train::{
    Average, AveragingConfig, Gradients, Model, Objective, Override, Purpose, TrainConfig, audit,
    audit_gradients,
};

/// Sums in another order, in f32, through all layers and back.
const TOLERANCE: f64 = 1e-4;

fn config(overrides: &[&str]) -> TrainConfig {
    let tiny = [
        "encoder.arch=vit",
        "encoder.image_size=16",
        "encoder.channels=1",
        "encoder.patch_size=4",
        "encoder.dim=16",
        "encoder.depth=2",
        "encoder.heads=2",
        "encoder.drop_path=0",
        "projector.hidden=[24]",
        "projector.dim=8",
        "loss.slices=16",
    ];
    let overrides: Vec<Override> =
        tiny.iter().chain(overrides).map(|typed| Override::parse(typed).unwrap()).collect();
    TrainConfig::load(None, &overrides).unwrap()
}

fn views(views: usize, samples: usize, side: usize) -> ViewBatch {
    let count = views * samples * side * side;
    let pixels = (0..count).map(|index| ((index * 7919 + 13) % 1009) as f32 / 500. - 1.).collect();
    ViewBatch { views, samples, channels: 1, size: ViewSize { height: side, width: side }, pixels }
}

fn batch() -> Batch {
    Batch { step: 5, global: views(2, 7, 16), local: views(3, 7, 8), broken: Vec::new() }
}

fn objective<'a>(model: &'a Model, loss: &'a LejepaLoss) -> Objective<'a> {
    Objective { model, average: None, loss, seed: 1, masking: 0., micro_batch: None, purpose: Purpose::Step }
}

fn scalar(tensor: &Tensor) -> f64 {
    tensor.to_dtype(DType::F64).unwrap().to_scalar().unwrap()
}

fn assert_same_step(left: &Gradients, right: &Gradients, model: &Model) {
    for (name, _) in model.trainable() {
        let (left, right) = (left.get(&name).unwrap(), right.get(&name).unwrap());
        let largest = scalar(&right.abs().unwrap().max_all().unwrap());
        let difference = scalar(&(left - right).unwrap().abs().unwrap().max_all().unwrap());
        // A bias before batch normalisation has no gradient but rounding.
        assert!(difference <= TOLERANCE * largest.max(1e-2), "{name}: {difference:e} of {largest:e}");
    }
}

#[test]
fn a_batch_in_parts_takes_the_step_of_the_whole_batch() {
    for overrides in [&["encoder.drop_path=0.3", "train.masking=0.3"][..], &["predictor.hidden=[12]"]] {
        let config = config(overrides);
        let model = Model::new(&config, &Device::Cpu).unwrap();
        let loss = config.loss.build().unwrap();
        let whole = Objective { masking: config.train.masking, ..objective(&model, &loss) };
        let (terms, gradients) = whole.gradients(&batch()).unwrap();
        for part in [1, 3, 7, 100] {
            let parts = Objective { micro_batch: Some(part), ..whole };
            let (terms_of_parts, gradients_of_parts) = parts.gradients(&batch()).unwrap();
            let difference = scalar(&terms.loss) - scalar(&terms_of_parts.loss);
            assert!(difference.abs() < TOLERANCE, "parts of {part}: {difference:e}");
            assert_same_step(&gradients_of_parts, &gradients, &model);
        }
    }
}

#[test]
fn what_is_dropped_depends_on_the_step_alone() {
    let config = config(&["encoder.drop_path=0.5", "train.masking=0.3"]);
    let model = Model::new(&config, &Device::Cpu).unwrap();
    let loss = config.loss.build().unwrap();
    let objective = Objective { masking: 0.3, ..objective(&model, &loss) };
    let features = |step| scalar(&objective.gradients(&Batch { step, ..batch() }).unwrap().0.prediction);
    assert_eq!(features(3), features(3));
    assert_ne!(features(3), features(4));
}

#[test]
fn a_predictor_learns_with_the_rest() {
    let config = config(&["predictor.hidden=[12, 12]"]);
    let model = Model::new(&config, &Device::Cpu).unwrap();
    let loss = config.loss.build().unwrap();
    let (terms, gradients) = objective(&model, &loss).gradients(&batch()).unwrap();
    audit_gradients(model.trainable().map(|(name, _)| name), &gradients).unwrap();
    assert!(model.trainable().any(|(name, _)| name.starts_with("predictor.layers.1")));

    let without = self::config(&[]);
    let model = Model::new(&without, &Device::Cpu).unwrap();
    let (plain, _) = objective(&model, &loss).gradients(&batch()).unwrap();
    assert_ne!(scalar(&terms.prediction), scalar(&plain.prediction), "the predictor is in use");
    assert_eq!(scalar(&terms.sigreg), scalar(&plain.sigreg), "SIGReg sees the embeddings themselves");
}

#[test]
fn averaged_centres_start_with_the_model_and_stay_behind() {
    let config = config(&[]);
    let model = Model::new(&config, &Device::Cpu).unwrap();
    let loss = config.loss.build().unwrap();
    let averaging = AveragingConfig::Ema { decay: 0.9 };
    let average = Average::new(averaging, &config, &model, &Device::Cpu).unwrap();
    let plain = objective(&model, &loss);
    let averaged = Objective { average: Some(&average), ..plain };

    let batch = batch();
    let (plain_terms, _) = plain.gradients(&batch).unwrap();
    let (terms, gradients) = averaged.gradients(&batch).unwrap();
    let difference = scalar(&terms.loss) - scalar(&plain_terms.loss);
    assert!(difference.abs() < TOLERANCE, "{difference:e}");
    audit_gradients(model.trainable().map(|(name, _)| name), &gradients).unwrap();

    // Of global views alone, whose mean the centres are: what is ahead is ahead of all alike.
    let batch = Batch { local: views(0, 7, 8), ..batch };
    let (terms, _) = averaged.gradients(&batch).unwrap();
    let (_, weight) = model.trainable().find(|(name, _)| name == "projector.output.bias").unwrap();
    weight.set(&(weight.as_tensor() + 1.).unwrap()).unwrap();
    average.update(&model, 1, 10).unwrap();
    let (moved, _) = averaged.gradients(&batch).unwrap();
    let apart = scalar(&moved.prediction) - scalar(&terms.prediction);
    assert!((apart - 0.81).abs() < 1e-3, "the bias is 0.9 ahead of its average: {apart}");
}

#[test]
fn blocks_that_are_passed_over_are_audited_all_the_same() {
    let config = config(&["encoder.drop_path=0.999"]);
    let model = Model::new(&config, &Device::Cpu).unwrap();
    let loss = config.loss.build().unwrap();
    let objective = objective(&model, &loss);
    let (_, of_step) = objective.gradients(&batch()).unwrap();
    let names = || model.trainable().map(|(name, _)| name);
    let message = audit_gradients(names(), &of_step).unwrap_err().to_string();
    assert!(
        message.contains("encoder.blocks.1"),
        "a step of this batch leaves the last block out: {message}"
    );
    let statistics =
        || model.projector_parameters().buffers()["layers.0.norm.running_mean"].to_vec1::<f32>().unwrap();
    let before = statistics();
    audit(&objective, &batch()).unwrap();
    assert_eq!(statistics(), before, "nothing moves");
}
