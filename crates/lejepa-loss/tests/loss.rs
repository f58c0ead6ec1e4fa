//! Conventions, reductions and bad input of the loss.

#![allow(clippy::unwrap_used)]

mod draws;

use candle_core::{DType, Device, Tensor, Var};
use draws::normal;
use lejepa_loss::{
    Convention, Directions, EppsPulley, LossConfig, PredictionReduction, Reduction, Sigreg, ViewPooling,
    Weighting,
};

const DIM: usize = 12;
const VIEWS: usize = 3;

fn conventions() -> Vec<Convention> {
    let mut all = vec![];
    for prediction in [PredictionReduction::Mean, PredictionReduction::Sum] {
        for views in [ViewPooling::Each, ViewPooling::Pooled] {
            for weighting in [Weighting::Convex, Weighting::Additive] {
                all.push(Convention { prediction, views, weighting });
            }
        }
    }
    all
}

/// The direction of the gradient: Adam does not feel its length.
fn descent(convention: Convention, lambda: f64, embeddings: &Tensor) -> Vec<f64> {
    let Convention { prediction, views, weighting } = convention;
    let config = LossConfig { lambda, prediction, views, weighting, slices: 64, ..LossConfig::default() };
    assert_eq!(config.convention(), convention);
    let embeddings = Var::from_tensor(embeddings).unwrap();
    let terms = config.build().unwrap().forward(embeddings.as_tensor(), 2, 0).unwrap();
    let gradients = terms.loss.backward().unwrap();
    let gradient: Vec<f64> = gradients.get(&embeddings).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    let length = gradient.iter().map(|value| value * value).sum::<f64>().sqrt();
    gradient.iter().map(|value| value / length).collect()
}

fn largest_difference(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0., f64::max)
}

#[test]
fn a_converted_lambda_takes_the_same_step() {
    // Views that are reordered samples of each other have one empirical distribution: pooling is exact.
    let view = normal((16, DIM), 1);
    let rolled = |by: usize| view.roll(by as i32, 0).unwrap();
    let embeddings = Tensor::stack(&[rolled(0), rolled(1), rolled(5)], 0).unwrap();
    let paper = descent(Convention::default(), 0.05, &embeddings);
    for convention in conventions() {
        let lambda = Convention::default().convert(0.05, convention, DIM, VIEWS).unwrap();
        let error = largest_difference(&descent(convention, lambda, &embeddings), &paper);
        assert!(error < 1e-9, "{convention:?} with {lambda}: {error:e}");
        let back = convention.convert(lambda, Convention::default(), DIM, VIEWS).unwrap();
        assert!((back - 0.05).abs() < 1e-12);
    }
    let unconverted = Convention { weighting: Weighting::Additive, ..Convention::default() };
    assert!(
        largest_difference(
            &descent(unconverted, 0.5, &embeddings),
            &descent(Convention::default(), 0.5, &embeddings)
        ) > 1e-3
    );
}

#[test]
fn a_lambda_that_has_no_counterpart_is_an_error() {
    let additive = Convention { weighting: Weighting::Additive, ..Convention::default() };
    assert!(Convention::default().convert(1., additive, DIM, VIEWS).is_err());
    assert!(Convention::default().convert(1.5, additive, DIM, VIEWS).is_err());
    assert_eq!(Convention::default().convert(0., additive, DIM, VIEWS).unwrap(), 0.);
    assert!(LossConfig { lambda: 1.5, ..LossConfig::default() }.build().is_err());
    assert!(
        LossConfig { lambda: 1.5, weighting: Weighting::Additive, ..LossConfig::default() }.build().is_ok()
    );
    assert!(
        LossConfig { lambda: -1., weighting: Weighting::Additive, ..LossConfig::default() }.build().is_err()
    );
}

#[test]
fn the_largest_slice_alone_gets_the_gradient_of_the_papers_test() {
    let embeddings = Var::from_tensor(&normal((2, 20, 3), 2)).unwrap();
    let directions = Directions::Gaussian.draw(3, 40, 0, &Device::Cpu).unwrap();
    let sigreg = Sigreg::new(EppsPulley::new(5., 17).unwrap(), 40);
    let per_slice: Vec<Vec<f64>> =
        sigreg.per_slice_along(embeddings.as_tensor(), &directions).unwrap().to_vec2().unwrap();
    let worst: Vec<usize> = per_slice
        .iter()
        .map(|view| (0..view.len()).max_by(|&a, &b| view[a].total_cmp(&view[b])).unwrap())
        .collect();
    let expected = (per_slice[0][worst[0]] + per_slice[1][worst[1]]) / 2.;

    let largest = sigreg.clone().with_reduction(Reduction::Max);
    let value = largest.forward_along(embeddings.as_tensor(), &directions).unwrap();
    assert!((value.to_scalar::<f64>().unwrap() - expected).abs() < 1e-12);
    assert_eq!(largest.floor(20), None);
    let gradient = value.backward().unwrap().get(&embeddings).unwrap().clone();
    for (view, &slice) in worst.iter().enumerate() {
        let alone = Var::from_tensor(&embeddings.get(view).unwrap()).unwrap();
        let slice = directions.narrow(1, slice, 1).unwrap();
        let value = (sigreg.forward_along(alone.as_tensor(), &slice).unwrap() / 2.).unwrap();
        let expected = value.backward().unwrap().get(&alone).unwrap().clone();
        let flat = |tensor: Tensor| tensor.flatten_all().unwrap().to_vec1::<f64>().unwrap();
        assert!(largest_difference(&flat(gradient.get(view).unwrap()), &flat(expected)) < 1e-12);
    }
}

#[test]
fn embeddings_that_are_not_finite_are_named() {
    let sigreg = Sigreg::new(EppsPulley::new(5., 17).unwrap(), 10);
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut values: Vec<f64> = normal((3, 20, 4), 2).flatten_all().unwrap().to_vec1().unwrap();
            values[(20 + 7) * 4 + 3] = bad;
            let embeddings = Tensor::from_vec(values, (3, 20, 4), &Device::Cpu).unwrap();
            let error = sigreg.forward(&embeddings.to_dtype(dtype).unwrap(), 0).unwrap_err().to_string();
            assert!(error.contains("of view 1: sample 7 has"), "{error}");
            assert!(error.contains("in dimension 3"), "{error}");
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let sigreg = Sigreg::new(EppsPulley::new(5., 17).unwrap(), 10);
    let directions = Directions::Gaussian.draw(4, 10, 0, &Device::Cpu).unwrap();
    for shape in [&[5, 3][..], &[4], &[0, 4], &[2, 0, 4]] {
        for dtype in [DType::F32, DType::F64] {
            let embeddings = Tensor::zeros(shape, dtype, &Device::Cpu).unwrap();
            let error = sigreg.forward_along(&embeddings, &directions).unwrap_err().to_string();
            assert!(error.contains("(.., samples, 4)"), "{error}");
        }
    }
    assert!(sigreg.forward(&Tensor::zeros((3, 0), DType::F32, &Device::Cpu).unwrap(), 0).is_err());
}

/// Every statistic, as a recipe names it.
const STATISTICS: [&str; 9] = [
    r#"{"name": "epps-pulley", "knots": 33, "t_max": 3.0}"#,
    r#"{"name": "jarque-bera"}"#,
    r#"{"name": "extended-jarque-bera"}"#,
    r#"{"name": "vicreg-limit"}"#,
    r#"{"name": "moments", "up_to": 4}"#,
    r#"{"name": "cramer-von-mises"}"#,
    r#"{"name": "anderson-darling"}"#,
    r#"{"name": "watson"}"#,
    r#"{"name": "shapiro-wilk", "order_statistics": "blom", "covariance": "asymptotic"}"#,
];

#[test]
fn every_statistic_can_be_named_in_a_recipe_and_moves_every_embedding() {
    for text in STATISTICS {
        let statistic: lejepa_loss::StatisticConfig = serde_json::from_str(text).unwrap();
        assert!(text.contains(&format!("\"{}\"", statistic.build().unwrap().name())), "{text}");
        let again = serde_json::to_string(&statistic).unwrap();
        assert_eq!(serde_json::from_str::<lejepa_loss::StatisticConfig>(&again).unwrap(), statistic);

        for dtype in [DType::F32, DType::F64] {
            let config =
                LossConfig { statistic: statistic.clone(), slices: 9, lambda: 1., ..LossConfig::default() };
            let embeddings = Var::from_tensor(&normal((2, 21, 5), 6).to_dtype(dtype).unwrap()).unwrap();
            let terms = config.build().unwrap().forward(embeddings.as_tensor(), 1, 0).unwrap();
            let gradient = terms.loss.backward().unwrap().get(&embeddings).unwrap().clone();
            let gradient: Vec<f64> =
                gradient.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            assert!(gradient.iter().all(|slope| slope.is_finite() && *slope != 0.), "{text}");
        }
        let mut bad = normal((1, 21, 5), 6).flatten_all().unwrap().to_vec1::<f64>().unwrap();
        bad[12] = f64::NAN;
        let bad = Tensor::from_vec(bad, (1, 21, 5), &Device::Cpu).unwrap();
        let loss = LossConfig { statistic, slices: 9, ..LossConfig::default() }.build().unwrap();
        let error = loss.forward(&bad, 1, 0).unwrap_err().to_string();
        assert!(error.contains("sample 2 has NaN in dimension 2"), "{error}");
    }
}

#[test]
fn settings_that_a_statistic_does_not_have_are_refused() {
    for text in [
        r#"{"name": "watson", "knots": 17}"#,
        r#"{"name": "epps-pulley", "up_to": 3}"#,
        r#"{"name": "moments"}"#,
        r#"{"name": "kolmogorov-smirnov"}"#,
    ] {
        assert!(serde_json::from_str::<lejepa_loss::StatisticConfig>(text).is_err(), "{text}");
    }
    let even = r#"{"name": "epps-pulley", "knots": 16}"#;
    assert!(serde_json::from_str::<lejepa_loss::StatisticConfig>(even).unwrap().build().is_err());
}
