//! What probes do with little, odd or broken data.

#![allow(clippy::unwrap_used)]

use lejepa_probe::{
    Choice, Chosen, Error, Estimator, Features, Kernel, Knn, Linear, Logistic, Radius, Result, Ridge, Scores,
    Solution, Targets, predicted, unwatched,
};
use ndarray::{Array2, array, s};

/// Three well separated classes of one, two and five samples; the fourth of four has none.
fn uneven() -> Features {
    let labels = vec![0, 1, 1, 2, 2, 2, 2, 2];
    let values = Array2::from_shape_fn((8, 4), |(row, column)| {
        let own = if labels[row] == column { 5. } else { 0. };
        own + ((row * 3 + column) % 4) as f32 / 10.
    });
    Features::labelled(values, labels, 4).unwrap()
}

/// The scores of every probe.
fn all(train: &Features, queries: &Array2<f32>) -> Vec<(&'static str, Result<Scores>)> {
    fn scores<P: Estimator>(settings: &P, train: &Features, queries: &Array2<f32>) -> Result<Scores> {
        unwatched(|watch| settings.fit(train, 0, watch))?.solution.scores(queries)
    }
    let linear = Linear {
        learning_rates: vec![1e-2, 3e-2],
        holdout: 0.1,
        epochs: 60,
        batch: 256,
        warmup: 1,
        weight_decay: 1e-6,
    };
    let logistic = Logistic { c: Some(vec![1e-2, 1., 1e2]), holdout: 0.1, steps: 1000 };
    let ridge = Ridge { lambdas: Some(vec![1e-3, 1e-2]), holdout: 0.1 };
    let radius = Radius { radii: vec![0.2, 0.3], holdout: 0.1 };
    let kernel = Kernel { bandwidths: vec![0.1, 0.2], holdout: 0.1 };
    vec![
        ("k-NN", Knn { k: 1, temperature: 0.07 }.scores(train, queries)),
        ("radius", scores(&radius, train, queries)),
        ("kernel", scores(&kernel, train, queries)),
        ("ridge", scores(&ridge, train, queries)),
        ("logistic", scores(&logistic, train, queries)),
        ("linear", scores(&linear, train, queries)),
    ]
}

#[test]
fn a_class_with_one_sample_is_learnt_and_one_without_is_never_predicted() {
    let train = uneven();
    for (probe, scores) in all(&train, train.values()) {
        let scores = scores.unwrap();
        assert_eq!(scores.dim(), (8, 4), "{probe}");
        let known = scores.slice(s![.., ..3]);
        assert!(known.iter().all(|score| score.is_finite()), "{probe}");
        assert_eq!(predicted(&scores), [0, 1, 1, 2, 2, 2, 2, 2], "{probe}");
    }
}

#[test]
fn one_class_alone_is_always_predicted() {
    let train = Features::labelled(uneven().values().clone(), vec![1; 8], 2).unwrap();
    for (probe, scores) in all(&train, train.values()) {
        assert_eq!(predicted(&scores.unwrap()), [1; 8], "{probe}");
    }
}

#[test]
fn a_single_sample_is_enough() {
    let train = Features::labelled(array![[1., 2.]], vec![1], 3).unwrap();
    for (probe, scores) in all(&train, &array![[3., 5.], [1., 2.]]) {
        assert_eq!(predicted(&scores.unwrap()), [1, 1], "{probe}");
    }
}

#[test]
fn no_samples_are_an_error_and_no_queries_are_none() {
    let none = Features::labelled(Array2::zeros((0, 4)), Vec::new(), 2).unwrap();
    for (probe, scores) in all(&none, &Array2::zeros((3, 4))) {
        assert!(matches!(scores, Err(Error::NoSamples)), "{probe}: {scores:?}");
    }
    for (probe, scores) in all(&uneven(), &Array2::zeros((0, 4))) {
        assert_eq!(scores.unwrap().dim(), (0, 4), "{probe}");
    }
}

#[test]
fn queries_of_another_length_are_refused() {
    for (probe, scores) in all(&uneven(), &Array2::zeros((3, 5))) {
        assert!(matches!(scores, Err(Error::Dimensions { expected: 4, got: 5 })), "{probe}: {scores:?}");
    }
}

#[test]
fn more_neighbours_than_samples_are_all_of_them() {
    let train = uneven();
    let scores = |k| Knn { k, temperature: 0.07 }.scores(&train, train.values()).unwrap();
    assert_eq!(scores(8), scores(5000));
    let none = Knn { k: 0, temperature: 0.07 }.scores(&train, train.values());
    assert!(matches!(none, Err(Error::NotPositive { setting: "k", .. })));
}

#[test]
fn one_sample_per_class_gives_the_middle_value() {
    let train = Features::labelled(array![[0., 1.], [1., 0.]], vec![0, 1], 2).unwrap();
    let ridge = Ridge { lambdas: Some(vec![100., 1e-2, 1.]), holdout: 0.1 };
    let choice = unwatched(|watch| ridge.fit(&train, 0, watch)).unwrap().choice;
    assert_eq!(choice, Some(Choice { value: 1., held_out: 0, by: Chosen::Middle }));
}

#[test]
fn identical_features_give_finite_scores() {
    let train = Features::labelled(Array2::ones((6, 3)), vec![0, 0, 0, 0, 1, 1], 2).unwrap();
    for (probe, scores) in all(&train, train.values()) {
        let scores = scores.unwrap();
        assert!(scores.iter().all(|score| score.is_finite()), "{probe}: {scores}");
    }
}

#[test]
fn values_are_refused_where_classes_are_needed() {
    let train = Features::new(uneven().values().clone(), Targets::Values(Array2::ones((8, 1)))).unwrap();
    for (probe, scores) in all(&train, train.values()) {
        match probe {
            "k-NN" | "logistic" => assert!(matches!(scores, Err(Error::ClassesOnly { .. })), "{probe}"),
            _ => assert_eq!(scores.unwrap().dim(), (8, 1), "{probe}"),
        }
    }
}

#[test]
fn broken_features_and_targets_are_refused() {
    let broken = |values: Array2<f32>, targets| Features::new(values, targets).unwrap_err().to_string();
    let classes = |labels| Targets::Classes { labels, classes: 2 };
    let mut values = Array2::<f32>::zeros((3, 2));
    assert!(broken(values.clone(), classes(vec![0, 1])).contains("3 features but 2 labels"));
    assert!(broken(values.clone(), classes(vec![0, 1, 2])).contains("image 2"));
    assert!(broken(values.clone(), Targets::Values(array![[0.], [f64::NAN], [0.]])).contains("image 1"));
    assert!(broken(Array2::zeros((3, 0)), classes(vec![0, 1, 0])).contains("column"));
    values[(1, 1)] = f32::NAN;
    assert!(broken(values, classes(vec![0, 1, 0])).contains("image 1"));
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let train = uneven();
    let ridge = |lambdas, holdout| {
        let ridge = Ridge { lambdas: Some(lambdas), holdout };
        unwatched(|watch| ridge.fit(&train, 0, watch)).unwrap_err()
    };
    assert!(matches!(ridge(vec![], 0.1), Error::NothingToChoose { setting: "lambdas" }));
    assert!(matches!(ridge(vec![1., -1.], 0.1), Error::NotPositive { .. }));
    assert!(matches!(ridge(vec![1., 2.], 1.), Error::Holdout { .. }));
}
