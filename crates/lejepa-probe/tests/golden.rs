//! The probes against scikit-learn and NumPy (`tests/golden/README.md`).

#![allow(clippy::unwrap_used, clippy::panic)]

use lejepa_probe::{Features, Knn, Ridge, RidgeSolution};
use ndarray::Array2;
use safetensors::{Dtype, SafeTensors};

/// f64 on both sides.
const RIDGE_TOLERANCE: f64 = 1e-8;
/// Similarities are f32 on both sides; a vote magnifies their rounding by 1 / 0.07.
const VOTE_TOLERANCE: f64 = 1e-5;

const CLASSES: usize = 5;

fn golden() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/probes.safetensors")).unwrap()
}

fn matrix(golden: &SafeTensors<'_>, name: &str) -> Array2<f64> {
    let tensor = golden.tensor(name).unwrap();
    let bytes = tensor.data();
    let values = match tensor.dtype() {
        Dtype::F32 => {
            bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
        }
        Dtype::F64 => bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
        other => panic!("{name} is {other:?}"),
    };
    Array2::from_shape_vec((tensor.shape()[0], tensor.shape()[1]), values).unwrap()
}

fn features(golden: &SafeTensors<'_>, split: &str) -> Features {
    let labels = golden.tensor(&format!("{split}_labels")).unwrap();
    let labels = labels.data().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as usize);
    Features::new(matrix(golden, split).mapv(|value| value as f32), labels.collect()).unwrap()
}

#[test]
fn ridge_scores_agree_with_scikit_learn() {
    let bytes = golden();
    let golden = SafeTensors::deserialize(&bytes).unwrap();
    let (train, test) = (features(&golden, "train"), features(&golden, "test"));
    for (name, lambda) in [("ridge_0.01.scores", 1e-2), ("ridge_10.0.scores", 10.)] {
        let scores = RidgeSolution::fit(&train, CLASSES, lambda).unwrap().scores(&test.values);
        let worst = (scores - matrix(&golden, name)).mapv(f64::abs).into_iter().fold(0., f64::max);
        assert!(worst < RIDGE_TOLERANCE, "{name}: {worst:e}");
    }
}

#[test]
fn knn_votes_agree_with_numpy() {
    let bytes = golden();
    let golden = SafeTensors::deserialize(&bytes).unwrap();
    let (train, test) = (features(&golden, "train"), features(&golden, "test"));
    for k in [1, 10, 20] {
        let votes = Knn { k, temperature: 0.07 }.votes(&train, &test.values, CLASSES);
        let expected = matrix(&golden, &format!("knn_{k}_T0.07.votes"));
        for (vote, expected) in votes.iter().zip(&expected) {
            assert!((vote - expected).abs() <= VOTE_TOLERANCE * expected.abs(), "k = {k}: {vote} {expected}");
        }
    }
}

#[test]
fn more_neighbours_than_samples_are_all_of_them() {
    let bytes = golden();
    let golden = SafeTensors::deserialize(&bytes).unwrap();
    let (train, test) = (features(&golden, "train"), features(&golden, "test"));
    let votes = |k| Knn { k, temperature: 0.07 }.votes(&train, &test.values, CLASSES);
    let difference = (votes(300) - votes(5000)).mapv(f64::abs).sum();
    assert!(difference == 0.);
}

#[test]
fn the_penalty_is_chosen_on_training_features_alone() {
    let bytes = golden();
    let golden = SafeTensors::deserialize(&bytes).unwrap();
    let (train, test) = (features(&golden, "train"), features(&golden, "test"));
    let ridge = Ridge { lambdas: vec![1e-3, 1., 1e3, 1e9], holdout: 0.2 };
    let (solution, lambda) = ridge.fit(&train, CLASSES, 0).unwrap();
    assert!(lambda < 1e9, "{lambda}");
    let predicted = solution.predict(&test.values);
    let correct = predicted.iter().zip(&test.labels).filter(|(p, l)| p == l).count();
    assert!(correct > 150, "{correct} of 200");
}

#[test]
fn features_that_are_not_finite_are_refused() {
    let mut values = Array2::<f32>::zeros((3, 2));
    values[(1, 1)] = f32::NAN;
    let message = Features::new(values, vec![0, 1, 0]).unwrap_err().to_string();
    assert!(message.contains("image 1"), "{message}");
}
