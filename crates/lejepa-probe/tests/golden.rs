//! The probes against scikit-learn and NumPy (`tests/golden/README.md`).

#![allow(clippy::unwrap_used, clippy::panic)]

use lejepa_probe::{
    Estimator, Features, Fitted, KernelSolution, Knn, Logistic, LogisticProblem, RadiusSolution, Ridge,
    RidgeSolution, Solution, Targets, accuracy, dinov2_path, predicted, unwatched,
};
use ndarray::Array2;
use safetensors::{Dtype, SafeTensors};

/// f64 on both sides.
const RIDGE_TOLERANCE: f64 = 1e-8;
/// Shares of the votes; similarities are f32 on both sides.
const VOTE_TOLERANCE: f64 = 1e-6;
/// Counts, divided.
const RADIUS_TOLERANCE: f64 = 1e-12;
/// The file's squared distances, about 80, are sums in f32: its scores for a bandwidth of 1 err by 1.2e-6.
const KERNEL_TOLERANCE: f64 = 2e-6;
/// The same formula in f64 on both sides; products lose more than differences.
const EXACT_KERNEL_TOLERANCE: f64 = 1e-10;
/// Both minima are as near as their gradients say.
const PROBABILITY_TOLERANCE: f64 = 1e-4;

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
    Features::labelled(matrix(golden, split).mapv(|value| value as f32), labels.collect(), CLASSES).unwrap()
}

fn sets(bytes: &[u8]) -> (SafeTensors<'_>, Features, Features) {
    let golden = SafeTensors::deserialize(bytes).unwrap();
    let (train, test) = (features(&golden, "train"), features(&golden, "test"));
    (golden, train, test)
}

fn labels(features: &Features) -> &[usize] {
    match features.targets() {
        Targets::Classes { labels, .. } => labels,
        Targets::Values(_) => panic!("values"),
    }
}

fn worst(left: &Array2<f64>, right: &Array2<f64>) -> f64 {
    assert_eq!(left.dim(), right.dim());
    (left - right).mapv(f64::abs).into_iter().fold(0., f64::max)
}

#[test]
fn ridge_scores_agree_with_scikit_learn() {
    let bytes = golden();
    let (golden, train, test) = sets(&bytes);
    for (name, lambda) in [("ridge_0.01.scores", 1e-2), ("ridge_10.0.scores", 10.)] {
        let scores = RidgeSolution::fit(&train, lambda).unwrap().scores(test.values()).unwrap();
        let worst = worst(&scores, &matrix(&golden, name));
        assert!(worst < RIDGE_TOLERANCE, "{name}: {worst:e}");
    }
}

#[test]
fn knn_votes_agree_with_numpy() {
    let bytes = golden();
    let (golden, train, test) = sets(&bytes);
    for k in [1, 10, 20] {
        let shares = Knn { k, temperature: 0.07 }.scores(&train, test.values()).unwrap();
        let mut expected = matrix(&golden, &format!("knn_{k}_T0.07.votes"));
        expected.outer_iter_mut().for_each(|mut votes| votes /= votes.sum());
        let worst = worst(&shares, &expected);
        assert!(worst < VOTE_TOLERANCE, "k = {k}: {worst:e}");
    }
}

#[test]
fn radius_scores_agree_with_numpy() {
    let bytes = golden();
    let (golden, train, test) = sets(&bytes);
    for (name, radius) in [("radius_6.0.scores", 6.), ("radius_8.0.scores", 8.)] {
        let found = RadiusSolution::new(&train, radius).scores_and_alone(test.values()).unwrap();
        let expected = matrix(&golden, name);
        let alone = expected.column(0).iter().filter(|score| score.is_nan()).count();
        assert_eq!(found.alone, alone, "{name}");
        for (score, expected) in found.scores.iter().zip(&expected).filter(|(_, expected)| !expected.is_nan())
        {
            assert!((score - expected).abs() < RADIUS_TOLERANCE, "{name}: {score} {expected}");
        }
    }
}

#[test]
fn kernel_scores_agree_with_numpy() {
    let bytes = golden();
    let (golden, train, test) = sets(&bytes);
    for (name, bandwidth) in [("nadaraya_watson_h_1.0.scores", 1.), ("nadaraya_watson_h_2.0.scores", 2.)] {
        let scores = KernelSolution::new(&train, bandwidth).scores(test.values()).unwrap();
        let difference = worst(&scores, &matrix(&golden, name));
        assert!(difference < KERNEL_TOLERANCE, "{name}: {difference:e}");
        let difference = worst(&scores, &by_the_formula(&train, &test, bandwidth));
        assert!(difference < EXACT_KERNEL_TOLERANCE, "{name}: {difference:e}");
    }
}

fn by_the_formula(train: &Features, test: &Features, bandwidth: f64) -> Array2<f64> {
    let mut scores = Array2::zeros((test.len(), CLASSES));
    for (mut scores, query) in scores.outer_iter_mut().zip(test.values().outer_iter()) {
        for (row, label) in train.values().outer_iter().zip(labels(train)) {
            let square: f64 =
                query.iter().zip(row).map(|(q, x)| (f64::from(*q) - f64::from(*x)).powi(2)).sum();
            scores[*label] += (-square / (2. * bandwidth * bandwidth)).exp();
        }
        let total = scores.sum();
        scores /= total;
    }
    scores
}

#[test]
fn probabilities_agree_with_scikit_learn_along_a_path() {
    let bytes = golden();
    let (golden, train, test) = sets(&bytes);
    let mut problem = LogisticProblem::new(&train).unwrap();
    for (name, c) in [("0.001", 1e-3), ("0.1", 1e-1), ("1.0", 1.), ("10.0", 10.)] {
        let probabilities = problem.fit(c, 1000).unwrap().scores(test.values()).unwrap();
        let worst = worst(&probabilities, &matrix(&golden, &format!("logistic_C_{name}.proba")));
        assert!(worst < PROBABILITY_TOLERANCE, "C = {name}: {worst:e}");
    }
}

#[test]
fn settings_are_chosen_on_training_features_alone() {
    let bytes = golden();
    let (_, train, test) = sets(&bytes);
    let correct = |scores| accuracy(&predicted(&scores), labels(&test));
    let ridge = Ridge { lambdas: Some(vec![1e-3, 1., 1e3, 1e9]), holdout: 0.2 };
    let Fitted { solution, choice } = unwatched(|watch| ridge.fit(&train, 0, watch)).unwrap();
    let choice = choice.unwrap();
    assert!(choice.value < 1e9 && choice.held_out == train.len(), "{choice:?}");
    assert!(correct(solution.scores(test.values()).unwrap()) > 0.75);
    let logistic = Logistic { c: Some(dinov2_path()), holdout: 0.1, steps: 1000 };
    let Fitted { solution, choice } = unwatched(|watch| logistic.fit(&train, 0, watch)).unwrap();
    let choice = choice.unwrap();
    assert!((1e-5..1e2).contains(&choice.value), "{choice:?}");
    assert!(correct(solution.scores(test.values()).unwrap()) > 0.75);
}
