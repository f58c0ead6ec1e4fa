//! Memory of a probe on synthetic features: `memory PROBE SAMPLES QUERIES`.
//!
//! 1024 dimensions and 1000 classes, as ImageNet-1k has with a large encoder. Prints one JSON object; the peak
//! is that of the process, with the features. `benches/probe_memory.sh` runs it for several sizes.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use lejepa_probe::{Estimator, Features, Knn, Linear, Logistic, Ranking, Ridge, Solution, unwatched};
use ndarray::Array2;
use rayon::prelude::*;

type Error = Box<dyn std::error::Error>;

const DIM: usize = 1024;
const CLASSES: usize = 1000;

fn main() -> Result<(), Error> {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let [probe, samples, queries] = &typed[..] else {
        // `cargo bench` without names, and `cargo test --benches`, have nothing to measure.
        return Ok(());
    };
    let (samples, queries) = (samples.parse()?, queries.parse()?);
    let train = Features::labelled(features(samples, 0)?, labels(samples), CLASSES)?;
    let (queries, expected) = (features(queries, samples)?, labels(queries));
    let clock = Instant::now();
    let ranking: Ranking = unwatched(|watch| match probe.as_str() {
        "knn" => {
            let settings = [10, 20, 100, 200].map(|k| Knn { k, temperature: 0.07 });
            let settings: Vec<&Knn> = settings.iter().collect();
            Ok(Knn::rankings(&settings, &train, &queries, 5, watch)?.swap_remove(0))
        }
        "ridge" => {
            let ridge = Ridge { lambdas: Some(vec![1., 100.]), holdout: 0.1 };
            ridge.fit(&train, 0, watch)?.solution.ranking(&queries, 5, watch)
        }
        "logistic" => {
            // Steps enough for all that are remembered.
            let logistic = Logistic { c: Some(vec![0.1]), holdout: 0.1, steps: 45 };
            logistic.fit(&train, 0, watch)?.solution.ranking(&queries, 5, watch)
        }
        _ => {
            let linear = Linear {
                learning_rates: vec![1e-3, 1e-2],
                holdout: 0.1,
                epochs: 1,
                batch: 256,
                warmup: 0,
                weight_decay: 1e-6,
            };
            linear.fit(&train, 0, watch)?.solution.ranking(&queries, 5, watch)
        }
    })?;
    let seconds = clock.elapsed().as_secs_f64();
    let features = (train.values().len() + queries.len()) as f64 * 4. / 1e6;
    let (peak, accuracy) = (peak()? / 1e3, ranking.top(1, &expected));
    println!(
        "{{\"features\": {features:.0}, \"peak\": {peak:.0}, \"seconds\": {seconds:.0}, \"accuracy\": {accuracy:.4}}}"
    );
    Ok(())
}

fn labels(samples: usize) -> Vec<usize> {
    (0..samples).map(|sample| sample % CLASSES).collect()
}

/// A centre for every class, and noise that is the same every time.
fn features(samples: usize, first: usize) -> Result<Array2<f32>, Error> {
    let noise = |seed: u64| {
        let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) >> 40) as f32 / (1 << 23) as f32 - 1.
    };
    let mut values = vec![0.; samples * DIM];
    values.par_chunks_exact_mut(DIM).enumerate().for_each(|(sample, row)| {
        for (column, value) in row.iter_mut().enumerate() {
            let centre = noise((1 << 60) + (sample % CLASSES * DIM + column) as u64);
            *value = 0.1 * centre + noise(((first + sample) * DIM + column) as u64);
        }
    });
    Ok(Array2::from_shape_vec((samples, DIM), values)?)
}

/// `VmHWM` of `/proc/self/status`, in kB.
fn peak() -> Result<f64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM")).ok_or("no such line")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
