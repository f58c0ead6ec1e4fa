//! Probes as linfa's estimators, and linfa's classifiers as probes.

#![allow(clippy::unwrap_used)]

use lejepa_probe::{
    Error, Estimator, Features, Kernel, Knn, Linear, LinfaBayes, Logistic, Params, Probe, Question, Radius,
    Ridge, Size, Solution, Targets, predicted, unwatched,
};
use linfa::prelude::*;
use linfa::traits::{Fit, Predict};
use ndarray::Array2;
use ndarray_linfa::{Array1, Array2 as LinfaArray, ArrayView1, ArrayView2, Axis};

const CLASSES: usize = 3;
const DIM: usize = 5;

fn value(sample: usize, column: usize) -> f32 {
    let centre = if sample % CLASSES == column { 1.5 } else { 0. };
    centre + ((sample * (column + 3)) as f32 * 0.71).sin()
}

fn features(samples: usize) -> Features {
    let values = Array2::from_shape_fn((samples, DIM), |(sample, column)| value(sample, column));
    Features::labelled(values, (0..samples).map(|sample| sample % CLASSES).collect(), CLASSES).unwrap()
}

fn dataset(samples: usize) -> Dataset<f32, usize, ndarray_linfa::Ix1> {
    let records = LinfaArray::from_shape_fn((samples, DIM), |(sample, column)| value(sample, column));
    Dataset::new(records, (0..samples).map(|sample| sample % CLASSES).collect::<Array1<usize>>())
}

/// Each probe by linfa's traits, beside its own interface.
fn compare<P: Estimator>(params: Params<P>) {
    let (train, test) = (dataset(90), dataset(40));
    let view = train.view();
    let valid = params.clone().check().unwrap();
    let model = valid.fit(&view).unwrap();
    let expected = unwatched(|watch| valid.settings().fit(&features(90), 0, watch).map(|it| it.choice));
    assert_eq!(model.choice(), expected.unwrap().as_ref(), "{}", P::NAME);
    let features = features(90);
    let solution = unwatched(|watch| valid.settings().fit(&features, 0, watch)).unwrap().solution;
    let queries = self::features(40);
    let expected = predicted(&solution.scores(&queries).unwrap());
    assert_eq!(model.predict(&test).to_vec(), expected, "{}", P::NAME);
    // Queries may lie in memory in any order.
    let columns = test.records().t().as_standard_layout().into_owned();
    let again: Array1<usize> = model.predict(&columns.t());
    assert_eq!(again.to_vec(), expected, "{}", P::NAME);
    let unchecked: Array1<usize> = params.fit(&view).unwrap().predict(&test);
    assert!(unchecked.confusion_matrix(&test).unwrap().accuracy() > 0.6, "{}", P::NAME);
}

#[test]
fn fits_and_predictions_are_those_of_the_probes() {
    compare(Knn::params(5).temperature(0.1));
    compare(Radius::params(vec![0.5, 0.7, 0.9]).holdout(0.2));
    compare(Kernel::params(vec![0.1, 0.2, 0.5]).holdout(0.2));
    compare(Ridge::params().holdout(0.2));
    compare(Logistic::params().c(vec![0.01, 0.1, 1.]).steps(100).holdout(0.2));
    compare(Linear::params(vec![1e-3, 1e-2]).epochs(5).batch(16).warmup(1).weight_decay(0.).holdout(0.2));
}

#[test]
fn linfa_validates_probes_across_folds() {
    let mut dataset = dataset(90);
    let params = [1e-2, 1e6].map(|lambda| Ridge::params().lambdas(vec![lambda]));
    let accuracy = |predicted: &Array1<usize>, labels: &ArrayView1<'_, usize>| {
        let right = predicted.iter().zip(labels).filter(|(left, right)| left == right).count();
        Ok(right as f32 / labels.len() as f32)
    };
    let found = dataset.cross_validate_single::<_, Error, _, _, _>(5, &params, accuracy).unwrap();
    assert!(found[0] > 0.6 && found.iter().all(|share| (0. ..=1.).contains(share)), "{found}");
}

/// Of f64: products with one column add up in another order than those with two.
const ROUNDING: f64 = 1e-12;

#[test]
fn one_value_or_several_are_predicted() {
    let records = dataset(50).records().clone();
    let several = LinfaArray::from_shape_fn((50, 2), |(sample, output)| {
        let of = |column| f64::from(value(sample, column));
        [of(0) - 2. * of(3), of(1) + 3.][output]
    });
    let one = several.column(0).to_owned();
    let several = Dataset::new(records.clone(), several);
    let ridge = Ridge::params().lambdas(vec![1e-6]);
    let found = ridge.fit(&several.view()).unwrap().predict(&several);
    assert!(found.r2(&several).unwrap().iter().all(|explained| *explained > 0.999));
    let dataset = Dataset::new(records, one);
    let alone = ridge.fit(&dataset.view()).unwrap().predict(&dataset);
    assert!((&alone - &found.column(0)).iter().all(|difference| difference.abs() < ROUNDING));
    assert!(matches!(Logistic::params().fit(&dataset.view()), Err(Error::ClassesOnly { .. })));
}

#[test]
fn what_means_nothing_is_refused() {
    let dataset = dataset(30);
    let zero = Knn::params(0);
    assert!(matches!(zero.check_ref(), Err(Error::NotPositive { setting: "k", .. })));
    assert!(zero.fit(&dataset.view()).is_err() && zero.check().is_err());
    let narrow =
        DatasetBase::new(dataset.records().slice_axis(Axis(1), (0..3).into()), dataset.targets().view());
    assert!(matches!(Knn::params(5).fit(&narrow), Err(Error::Layout)));
    let weighted = self::dataset(30).with_weights(Array1::ones(30));
    assert!(matches!(Knn::params(5).fit(&weighted.view()), Err(Error::Weights)));
    let mut broken = dataset.records().clone();
    broken[(7, 2)] = f32::NAN;
    let broken = DatasetBase::new(broken.view(), dataset.targets().view());
    assert!(matches!(Knn::params(5).fit(&broken), Err(Error::NotFinite { index: 7 })));
    let (none, no_targets) = (LinfaArray::<f32>::zeros((0, 3)), Array1::<usize>::zeros(0));
    let none: DatasetBase<ArrayView2<'_, f32>, _> = DatasetBase::new(none.view(), no_targets.view());
    assert!(matches!(Ridge::params().fit(&none), Err(Error::NoSamples)));
}

/// Of log probabilities in f32 on one side.
const TOLERANCE: f64 = 1e-3;

/// The formula of `linfa_bayes.rs`.
fn log_probability(train: &Features, query: &[f64], class: usize) -> f64 {
    let of_class: Vec<_> = (0..train.len()).filter(|sample| sample % CLASSES == class).collect();
    let count = of_class.len() as f64;
    let share = (count / train.len() as f64).ln();
    let terms = query.iter().enumerate().map(|(column, value)| {
        let column: Vec<f64> =
            of_class.iter().map(|&sample| f64::from(train.values()[(sample, column)])).collect();
        let mean = column.iter().sum::<f64>() / count;
        let variance = column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        ((2. * std::f64::consts::PI * variance).ln() + (value - mean).powi(2) / variance) / 2.
    });
    share - terms.sum::<f64>()
}

#[test]
fn naive_bayes_is_its_formula_for_all_samples_and_for_some() {
    let (all, queries) = (features(60), features(20));
    let bayes = LinfaBayes { smoothing: 1e-9 };
    let first: Vec<usize> = (0..45).collect();
    let fits = [
        (features(60), unwatched(|watch| bayes.fit(&all, 0, watch)).unwrap()),
        (features(45), unwatched(|watch| bayes.fit(all.only(&first).unwrap(), 0, watch)).unwrap()),
    ];
    for (train, fitted) in fits {
        let scores = fitted.solution.scores(&queries).unwrap();
        for ((query, class), score) in scores.indexed_iter() {
            let query = queries.values().row(query).mapv(f64::from).to_vec();
            let expected = log_probability(&train, &query, class);
            assert!((score - expected).abs() < TOLERANCE * expected.abs(), "{score} {expected}");
        }
    }
}

#[test]
fn naive_bayes_takes_the_first_class_where_all_features_are_the_same() {
    let train = Features::labelled(Array2::ones((6, 3)), vec![2, 2, 2, 2, 1, 1], 3).unwrap();
    let fitted = unwatched(|watch| LinfaBayes { smoothing: 1e-9 }.fit(&train, 0, watch)).unwrap();
    let ranking = unwatched(|watch| fitted.solution.ranking(&train, 3, watch)).unwrap();
    assert_eq!(ranking.predicted(), [1; 6]);
}

#[test]
fn a_suite_names_a_classifier_of_linfa() {
    let parse = |text: &str| toml::from_str::<Probe>(text);
    let probe = parse("kind = \"linfa-bayes\"").unwrap();
    assert_eq!(probe.title(), "Gaussian naive Bayes");
    assert_eq!(probe.protocol("cls", None), "linfa-bayes:gaussian:s0.000000001:cls");
    assert_eq!(toml::to_string(&probe).unwrap(), "kind = \"linfa-bayes\"\nsmoothing = 0.000000001\n");
    assert!(
        parse("kind = \"linfa-bayes\"\nsmoothness = 1.0").unwrap_err().to_string().contains("smoothness")
    );
    assert!(parse("kind = \"linfa-bayes\"\nsmoothing = 0.0").unwrap().check().is_err());
    assert!(parse("kind = \"svm\"").unwrap_err().to_string().contains("`linear`, `linfa-bayes`"));

    // The last class has no samples, and its number no column.
    let (train, queries) = (features(60), features(30));
    let sparse: Vec<usize> =
        train.targets().labels().unwrap().iter().map(|label| label * 100_000 + 7).collect();
    let train = Features::labelled(train.values().clone(), sparse, 300_001).unwrap();
    let question = Question { train: (&train).into(), queries: (&queries).into(), count: 5, seed: 0 };
    let answers = unwatched(|watch| Probe::answers(&[&probe], &question, watch)).unwrap();
    let expected: Vec<usize> = (0..30).map(|query| query % CLASSES * 100_000 + 7).collect();
    assert!(answers[0].ranking.top(1, &expected) > 0.6);
    assert_eq!((answers[0].ranking.top(3, &expected), answers[0].choice), (1., None));
    let size = Size { samples: 1000, dim: 100, outputs: 10, queries: 10 };
    assert!(probe.memory(size) > 800_000);
    let values = Features::new(train.values().clone(), Targets::Values(Array2::ones((60, 1)))).unwrap();
    let question = Question { train: (&values).into(), ..question };
    let refused = unwatched(|watch| Probe::answers(&[&probe], &question, watch));
    assert!(matches!(refused, Err(Error::ClassesOnly { .. })));
}

#[test]
fn probes_of_a_kind_that_share_a_pass_answer_as_they_would_alone() {
    let (train, queries) = (features(60), features(30));
    let question = Question { train: (&train).into(), queries: (&queries).into(), count: 2, seed: 0 };
    let knn = |k| Probe::Knn(Knn { k, temperature: 0.07 });
    let (one, nine, ridge) = (knn(1), knn(9), Probe::Ridge(Ridge { lambdas: None, holdout: 0.1 }));
    assert!(one.shares_pass_with(&nine) && !one.shares_pass_with(&ridge) && !ridge.shares_pass_with(&ridge));
    let answers = |probes: &[&Probe]| unwatched(|watch| Probe::answers(probes, &question, watch)).unwrap();
    let alone = [answers(&[&one]), answers(&[&nine])].concat();
    assert_eq!(answers(&[&one, &nine]), alone);
    assert_eq!(answers(&[&one, &ridge]), [answers(&[&one]), answers(&[&ridge])].concat());
}
