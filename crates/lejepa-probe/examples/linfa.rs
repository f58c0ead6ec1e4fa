//! Probes and a classifier of linfa side by side, validated across folds by linfa itself.

#![allow(clippy::print_stdout)]

use lejepa_probe::{Error, Knn, Logistic, Ridge};
use linfa::prelude::*;
use linfa_bayes::GaussianNb;
use ndarray_linfa::{Array1, Array2, ArrayView1};

const SAMPLES: usize = 600;
const DIM: usize = 32;
const CLASSES: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dataset = dataset();

    // linfa splits the dataset; parameters are chosen by its own validation.
    let params: Vec<_> = [1e-2, 1., 1e4].map(|lambda| Ridge::params().lambdas(vec![lambda])).into();
    let mut folds = dataset.clone();
    let accuracies = folds.cross_validate_single::<_, Error, _, _, _>(5, &params, accuracy)?;
    println!("ridge, by lambda: {accuracies}");

    // A probe chooses for itself, on held-out training features.
    let view = dataset.view();
    let (train, test) = view.split_with_ratio(2. / 3.);
    let logistic = Logistic::params().fit(&train)?;
    println!("logistic, C chosen: {:?}", logistic.choice().map(|choice| choice.value));
    let report = |name: &str, predicted: Array1<usize>| -> Result<(), linfa::Error> {
        println!("{name}: {:.3}", predicted.confusion_matrix(&test)?.accuracy());
        Ok(())
    };
    report("logistic", logistic.predict(&test))?;
    report("k-NN", Knn::params(20).fit(&train)?.predict(&test))?;
    report("naive Bayes", GaussianNb::params().fit(&train)?.predict(&test))?;
    Ok(())
}

/// Overlapping classes.
fn dataset() -> Dataset<f32, usize, ndarray_linfa::Ix1> {
    let noise = |seed: usize| {
        let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) >> 40) as f32 / (1 << 23) as f32 - 1.
    };
    let records = Array2::from_shape_fn((SAMPLES, DIM), |(sample, column)| {
        0.4 * noise(1_000_000 + sample % CLASSES * DIM + column) + noise(sample * DIM + column)
    });
    Dataset::new(records, Array1::from_iter((0..SAMPLES).map(|sample| sample % CLASSES)))
}

fn accuracy(predicted: &Array1<usize>, labels: &ArrayView1<'_, usize>) -> Result<f32, linfa::Error> {
    Ok(predicted.confusion_matrix(labels)?.accuracy())
}
