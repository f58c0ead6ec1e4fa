//! What holds for every probe: the unit of features does not matter, nor the number of threads, nor classes
//! without samples; and a probe that is told to end does.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use lejepa_probe::{
    Error, Estimator, Features, Fitted, Kernel, Knn, Linear, Logistic, Radius, Ranking, Result, Ridge,
    Samples, Solution, Watch, predicted, unwatched,
};
use ndarray::Array2;

const CLASSES: usize = 6;
const DIM: usize = 24;

/// Noise that is the same every time, between -1 and 1.
fn noise(seed: usize) -> f32 {
    let mut state = (seed as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state >> 40) as f32 / (1 << 23) as f32 - 1.
}

/// Classes that overlap; the first of so many samples is another one with every `from`.
fn features(samples: usize, from: usize, scale: f32) -> Features {
    let labels: Vec<usize> = (0..samples).map(|sample| sample % CLASSES).collect();
    let values = Array2::from_shape_fn((samples, DIM), |(sample, column)| {
        let centre = noise(1_000_000 + labels[sample] * DIM + column);
        scale * (0.6 * centre + noise((from + sample) * DIM + column) * (1. + column as f32 / 8.) + 0.5)
    });
    Features::labelled(values, labels, CLASSES).unwrap()
}

/// The ranking of every probe, as suites set them.
fn all(
    train: Samples<'_>,
    queries: &Array2<f32>,
    watch: &mut Watch<'_>,
) -> Vec<(&'static str, Result<Ranking>)> {
    let knn = Knn { k: 5, temperature: 0.07 };
    let radius = Radius { radii: vec![0.5, 0.7, 0.9], holdout: 0.1 };
    let kernel = Kernel { bandwidths: vec![0.05, 0.1, 0.2, 0.5], holdout: 0.1 };
    let ridge = Ridge { lambdas: None, holdout: 0.1 };
    let logistic = Logistic { c: None, holdout: 0.1, steps: 1000 };
    let linear = Linear {
        learning_rates: vec![1e-3, 1e-2],
        holdout: 0.1,
        epochs: 10,
        batch: 16,
        warmup: 1,
        weight_decay: 1e-6,
    };
    let mut ask = |name, ask: &mut dyn FnMut(&mut Watch<'_>) -> Result<Ranking>| (name, ask(watch));
    vec![
        ask("k-NN", &mut |watch| Ok(Knn::rankings(&[&knn], train, queries, 3, watch)?.swap_remove(0))),
        ask("radius", &mut |watch| radius.fit(train, 0, watch)?.solution.ranking(queries, 3, watch)),
        ask("kernel", &mut |watch| kernel.fit(train, 0, watch)?.solution.ranking(queries, 3, watch)),
        ask("ridge", &mut |watch| ridge.fit(train, 0, watch)?.solution.ranking(queries, 3, watch)),
        ask("logistic", &mut |watch| logistic.fit(train, 0, watch)?.solution.ranking(queries, 3, watch)),
        ask("linear", &mut |watch| linear.fit(train, 0, watch)?.solution.ranking(queries, 3, watch)),
    ]
}

fn rankings(train: Samples<'_>, queries: &Array2<f32>) -> Vec<(&'static str, Ranking)> {
    let found = unwatched(|watch| all(train, queries, watch));
    found.into_iter().map(|(probe, ranking)| (probe, ranking.unwrap())).collect()
}

#[test]
fn the_unit_of_features_does_not_matter() {
    for samples in [CLASSES, 10 * CLASSES] {
        let [plain, large, small] = [1., 1000., 0.001].map(|scale| {
            let queries = features(400, 5000, scale);
            rankings((&features(samples, 0, scale)).into(), queries.values())
        });
        for other in [large, small] {
            for ((probe, plain), (_, other)) in plain.iter().zip(&other) {
                let same = plain.predicted().iter().zip(other.predicted()).filter(|(a, b)| **a == *b).count();
                // Rounding of f32 decides about a query that lies between two classes.
                assert!(same >= 398, "{samples} samples, {probe}: {same} of 400");
            }
        }
    }
}

#[test]
fn classes_without_samples_cost_nothing_and_change_nothing() {
    let (train, queries) = (features(60, 0, 1.), features(100, 5000, 1.));
    let far: Vec<usize> =
        train.targets().labels().unwrap().iter().map(|label| 50_000 * (label + 1)).collect();
    let sparse = Features::labelled(train.values().clone(), far, 300_001).unwrap();
    let found = rankings((&sparse).into(), queries.values());
    for ((probe, dense), (_, sparse)) in rankings((&train).into(), queries.values()).iter().zip(&found) {
        let dense: Vec<usize> = dense.predicted().iter().map(|label| 50_000 * (label + 1)).collect();
        assert_eq!(dense, sparse.predicted(), "{probe}");
    }
}

#[test]
fn some_samples_are_learnt_as_if_they_were_all() {
    let (all, queries) = (features(300, 0, 1.), features(100, 5000, 1.));
    let images: Vec<usize> = (0..300).filter(|image| image % 7 < 3).collect();
    let rows = all.values().select(ndarray::Axis(0), &images);
    let labels = images.iter().map(|image| image % CLASSES).collect();
    let copied = Features::labelled(rows, labels, CLASSES).unwrap();
    let borrowed = rankings(all.only(&images).unwrap(), queries.values());
    assert_eq!(borrowed, rankings((&copied).into(), queries.values()));
    assert!(matches!(all.only(&[3, 300]), Err(Error::NoImage { image: 300, images: 300 })));
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let (train, queries) = (features(900, 0, 1.), features(300, 5000, 1.));
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| rankings((&train).into(), queries.values()))
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn every_probe_tells_how_far_it_is_and_ends_when_it_is_told_to() {
    let (train, queries) = (features(60, 0, 1.), features(50, 5000, 1.));
    let mut told = Vec::new();
    let mut listen = |share| {
        told.push(share);
        ControlFlow::Continue(())
    };
    let found = all((&train).into(), queries.values(), &mut Watch::new(&mut listen));
    assert!(found.iter().all(|(_, ranking)| ranking.is_ok()));
    assert!(told.iter().all(|share| (0. ..=1.).contains(share)));
    for patience in [0, 1, 5] {
        let mut heard = 0;
        let mut stop = |_| {
            heard += 1;
            if heard > patience { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        for (probe, ranking) in all((&train).into(), queries.values(), &mut Watch::new(&mut stop)) {
            // k-NN of so few queries is one step.
            let done = patience > 0 && probe == "k-NN";
            assert!(done || matches!(ranking, Err(Error::Stopped)), "{probe} after {patience}");
        }
    }
}

#[test]
fn several_k_from_one_pass_are_those_of_passes_of_their_own() {
    let (train, queries) = (features(500, 0, 1.), features(120, 5000, 1.));
    let settings = [1, 7, 20, 5000].map(|k| Knn { k, temperature: 0.07 });
    let settings: Vec<&Knn> = settings.iter().collect();
    let ask = |settings: &[&Knn]| {
        unwatched(|watch| Knn::rankings(settings, &train, queries.values(), 4, watch)).unwrap()
    };
    for (alone, together) in settings.iter().map(|knn| ask(&[*knn])).zip(ask(&settings)) {
        assert_eq!(alone, [together]);
    }
}

/// Ten shots: a value that is chosen must not be much worse than the best of those that could have been.
#[test]
fn what_is_chosen_with_ten_shots_is_nearly_the_best_there_was() {
    let queries = features(1500, 50_000, 1.);
    let labels = queries.targets().labels().unwrap();
    let c: Vec<f64> = (-6..=4).map(|power| 10f64.powi(power)).collect();
    let accuracy = |c: Vec<f64>, draw: usize| {
        let train = features(10 * CLASSES, 1000 * (draw + 1), 1.);
        let logistic = Logistic { c: Some(c), holdout: 0.1, steps: 1000 };
        let Fitted { solution, choice } = unwatched(|watch| logistic.fit(&train, 0, watch)).unwrap();
        let choice = choice.unwrap();
        let ranking = unwatched(|watch| solution.ranking(queries.values(), 1, watch)).unwrap();
        (ranking.top(1, labels), choice.held_out)
    };
    const DRAWS: usize = 5;
    let mean = |c: &[f64]| (0..DRAWS).map(|draw| accuracy(c.to_vec(), draw).0).sum::<f64>() / DRAWS as f64;
    let best = c.iter().map(|c| mean(&[*c])).fold(0., f64::max);
    let chosen = mean(&c);
    assert!(chosen > best - 0.02, "{chosen} {best}");
    assert_eq!(accuracy(c, 0).1, 10 * CLASSES);
}

/// Features may come in any unit.
#[test]
fn logistic_regression_does_not_depend_on_the_unit_of_the_features() {
    let (train, queries) = (features(10 * CLASSES, 1000, 1.), features(300, 50_000, 1.));
    let logistic = Logistic { c: None, holdout: 0.1, steps: 1000 };
    let answers = |unit: f32| {
        let scaled = |features: &Features| features.values().mapv(|value| value * unit);
        let train = Features::new(scaled(&train), train.targets().clone()).unwrap();
        let Fitted { solution, choice } = unwatched(|watch| logistic.fit(&train, 0, watch)).unwrap();
        let choice = choice.unwrap();
        (choice.value, unwatched(|watch| solution.ranking(&scaled(&queries), 1, watch)).unwrap())
    };
    let expected = answers(1.);
    for unit in [1e-12, 1e-10, 1e-6, 1e12] {
        let (value, ranking) = answers(unit);
        assert_eq!(value, expected.0, "{unit}");
        let labels = queries.targets().labels().unwrap();
        let apart = (ranking.top(1, labels) - expected.1.top(1, labels)).abs();
        assert!(apart < 0.01, "{unit}: {apart}");
    }
}

/// At the ends of the range of f32, where squares leave it.
#[test]
fn radius_does_not_depend_on_the_unit_of_the_features() {
    let (train, queries) = (features(20 * CLASSES, 1000, 1.), features(300, 50_000, 1.));
    let radius = Radius { radii: vec![0.3, 0.5, 0.7, 1.], holdout: 0.1 };
    let answers = |unit: f32| {
        let scaled = |features: &Features| features.values().mapv(|value| value * unit);
        let train = Features::new(scaled(&train), train.targets().clone()).unwrap();
        let Fitted { solution, choice } = unwatched(|watch| radius.fit(&train, 0, watch)).unwrap();
        let ranking = unwatched(|watch| solution.ranking(&scaled(&queries), 1, watch)).unwrap();
        (choice.unwrap().value, ranking.predicted())
    };
    let expected = answers(1.);
    // Powers of two: the same features but for their unit, to the last bit.
    for unit in [2f32.powi(-100), 2f32.powi(-75), 2f32.powi(66), 2f32.powi(120)] {
        assert!(answers(unit) == expected, "{unit:e}");
    }
}

#[test]
fn neighbours_are_found_however_far_from_the_origin_the_features_lie() {
    let (train, queries) = (features(50 * CLASSES, 1000, 1.), features(300, 50_000, 1.));
    let exact = |offset: f32| {
        let row = |values: ndarray::ArrayView1<'_, f32>| values.mapv(|value| f64::from(value + offset));
        let unit = |values: ndarray::Array1<f64>| {
            let norm = values.dot(&values).sqrt();
            values / norm
        };
        let bank: Vec<_> = train.values().rows().into_iter().map(|values| unit(row(values))).collect();
        let nearest = |query: ndarray::ArrayView1<'_, f32>| {
            let query = unit(row(query));
            let similarity = |other: &usize| bank[*other].dot(&query);
            (0..bank.len()).max_by(|a, b| similarity(a).total_cmp(&similarity(b))).unwrap()
        };
        let labels = train.targets().labels().unwrap();
        queries.values().rows().into_iter().map(|query| labels[nearest(query)]).collect::<Vec<usize>>()
    };
    for offset in [0., 1e3, 1e4] {
        let moved = |features: &Features| features.values().mapv(|value| value + offset);
        let train = Features::new(moved(&train), train.targets().clone()).unwrap();
        let scores = Knn { k: 1, temperature: 0.07 }.scores(&train, &moved(&queries)).unwrap();
        assert_eq!(predicted(&scores), exact(offset), "{offset}");
    }
}
