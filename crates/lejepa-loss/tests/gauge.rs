//! Verdicts about embeddings of which it is known what is wrong with them.

#![allow(clippy::unwrap_used)]

use candle_core::{DType, Device, Tensor};
use lejepa_loss::gauge::{Gauge, Reading, Reference, Spectrum, Verdict};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

fn gauge(reference: Reference) -> Gauge {
    Gauge { reference, slices: 64, ..Gauge::default() }
}

fn gaussian(samples: usize, dim: usize, seed: u64) -> Tensor {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f64> = (0..samples * dim).map(|_| StandardNormal.sample(&mut generator)).collect();
    Tensor::from_vec(values, (samples, dim), &Device::Cpu).unwrap().to_dtype(DType::F32).unwrap()
}

/// The embeddings with each dimension multiplied by a factor.
fn scaled(embeddings: &Tensor, factor: impl Fn(usize) -> f32) -> Tensor {
    let dim = embeddings.dim(1).unwrap();
    let factors: Vec<f32> = (0..dim).map(factor).collect();
    embeddings.broadcast_mul(&Tensor::from_vec(factors, (1, dim), &Device::Cpu).unwrap()).unwrap()
}

const BOTH: [Reference; 2] = [Reference::Standard, Reference::Shape];

fn read(embeddings: &Tensor, reference: Reference) -> Reading {
    let reading = gauge(reference).measure(embeddings).unwrap();
    // Whatever the input, every number of the reading is one: JSON has no others.
    for value in [reading.sigreg.mean, reading.sigreg.departure, reading.spectrum.rankme, reading.scale] {
        assert!(value.is_finite(), "{reading:?}");
    }
    let worst = reading.worst_slices.iter().chain(&reading.worst_dimensions);
    for slice in worst.chain(&reading.worst_principal_directions) {
        assert!([slice.statistic, slice.skewness, slice.kurtosis].iter().all(|value| value.is_finite()));
    }
    assert_eq!(reading.worst_slice_histogram.counts.iter().sum::<usize>(), reading.samples);
    reading
}

fn verdict(embeddings: &Tensor, reference: Reference) -> Verdict {
    read(embeddings, reference).verdict
}

#[test]
fn a_gaussian_is_healthy_at_any_size() {
    for (samples, dim) in [(16, 1), (16, 10), (16, 16), (16, 100), (64, 8), (33, 32), (200, 30), (20, 200)] {
        for seed in 0..5 {
            let embeddings = gaussian(samples, dim, seed);
            for reference in BOTH {
                let reading = read(&embeddings, reference);
                assert_eq!(reading.verdict, Verdict::Healthy, "{samples} {dim} {seed}: {reading:?}");
                assert!(reading.spectrum.rankme_expected <= (samples - 1).min(dim) as f64 * 1.0001);
                // Eigenvalues scatter; their entropy hardly does.
                let ratio = reading.spectrum.rankme / reading.spectrum.rankme_expected;
                assert!((ratio - 1.).abs() < 0.1, "{samples} {dim}: {ratio}");
            }
        }
    }
}

#[test]
fn scale_and_offset_matter_for_the_standard_reference_only() {
    let embeddings = gaussian(100, 6, 0);
    for factor in [1e-20, 0.5, 100., 1e20] {
        let other = (&embeddings * factor).unwrap();
        assert_eq!(verdict(&other, Reference::Shape), Verdict::Healthy, "{factor}");
        assert_ne!(verdict(&other, Reference::Standard), Verdict::Healthy, "{factor}");
    }
    let reading = read(&(&embeddings * 100.).unwrap(), Reference::Standard);
    assert_eq!(reading.verdict, Verdict::OffTarget);
    assert!(reading.explanation.contains("standard deviation 96."), "{}", reading.explanation);
    let shifted = (&embeddings + 1000.).unwrap();
    assert_eq!(verdict(&shifted, Reference::Shape), Verdict::Healthy);
    assert_eq!(verdict(&shifted, Reference::Standard), Verdict::OffTarget);
}

#[test]
fn constant_embeddings_are_collapsed() {
    for (samples, dim) in [(16, 1), (64, 8), (20, 100)] {
        for value in [0f32, 0.1, -1e20] {
            let embeddings = Tensor::full(value, (samples, dim), &Device::Cpu).unwrap();
            for reference in BOTH {
                let reading = read(&embeddings, reference);
                assert_eq!(reading.verdict, Verdict::Collapsed, "{value}: {reading:?}");
                assert_eq!(reading.explanation, "every sample has the same embedding");
                assert_eq!((reading.spectrum.rankme, reading.spectrum.condition), (0., None));
            }
        }
    }
    let zeros = Tensor::zeros((1000, 8), DType::F32, &Device::Cpu).unwrap();
    let departure = read(&zeros, Reference::Standard).sigreg.departure;
    // Less by the floor, which goes with 1/N.
    assert!((departure - 1.).abs() < 0.005, "{departure}");
}

#[test]
fn dead_dimensions_are_counted_and_named() {
    for factor in [0f32, 0.002, 0.1] {
        let embeddings =
            scaled(&gaussian(256, 32, 1), |index| if [3, 17, 30].contains(&index) { factor } else { 1. });
        for reference in BOTH {
            let reading = read(&embeddings, reference);
            assert_eq!(reading.verdict, Verdict::WeakDirections { count: 3 }, "{factor}: {reading:?}");
            assert_eq!(reading.spectrum.measurable, 32);
            let mut worst: Vec<usize> = reading.worst_dimensions.iter().map(|slice| slice.index).collect();
            worst.sort_unstable();
            assert_eq!(worst, [3, 17, 30]);
            let smallest = reading.spectrum.deviations.smallest;
            assert!(smallest <= f64::from(factor) * 1.1, "{smallest}");
            assert!(reading.worst_dimensions.iter().all(|slice| slice.p_value.unwrap() < 1e-9));
            let mut ranks: Vec<usize> =
                reading.worst_principal_directions.iter().map(|slice| slice.index).collect();
            ranks.sort_unstable();
            assert_eq!(ranks, [29, 30, 31]);
        }
    }
}

#[test]
fn embeddings_in_a_subspace_have_weak_directions_until_next_to_nothing_is_left() {
    let half = scaled(&gaussian(200, 16, 2), |index| if index < 8 { 1. } else { 0.01 });
    for reference in BOTH {
        assert_eq!(verdict(&half, reference), Verdict::WeakDirections { count: 8 });
    }
    // Fewer samples than dimensions: 4 directions of 19 that could be seen.
    let subspace = gaussian(20, 4, 3).matmul(&gaussian(4, 64, 4)).unwrap();
    assert_eq!(verdict(&subspace, Reference::Shape), Verdict::WeakDirections { count: 15 });
    // A line, and 3 directions of 64.
    let line = scaled(&gaussian(100, 8, 2), |index| if index == 3 { 1. } else { 0. });
    let three = scaled(&gaussian(400, 64, 2), |index| if index < 3 { 1. } else { 0. });
    for reference in BOTH {
        assert_eq!(verdict(&line, reference), Verdict::Collapsed);
        assert_eq!(verdict(&three, reference), Verdict::Collapsed);
    }
    let tiny = (gaussian(100, 8, 2) * 0.01).unwrap();
    assert_eq!(verdict(&tiny, Reference::Standard), Verdict::Collapsed);
    // Two embeddings, again and again.
    let two = gaussian(2, 8, 5);
    let repeated = Tensor::cat(&[&two; 20], 0).unwrap();
    assert_eq!(verdict(&repeated, Reference::Shape), Verdict::Collapsed);
}

#[test]
fn heavy_tails_are_off_target() {
    let samples = 400;
    // Every sample is stretched or shrunk, so that all slices have a kurtosis of about 8.
    let lengths: Vec<f32> = (0..samples).map(|row| if row % 5 == 0 { 2.1 } else { 0.4 }).collect();
    let lengths = Tensor::from_vec(lengths, (samples, 1), &Device::Cpu).unwrap();
    let embeddings = gaussian(samples, 8, 6).broadcast_mul(&lengths).unwrap();
    for reference in BOTH {
        let reading = read(&embeddings, reference);
        assert_eq!(reading.verdict, Verdict::OffTarget, "{:?}", reading.sigreg);
        assert!(reading.worst_slices[0].kurtosis > 4., "{:?}", reading.worst_slices);
        assert!(reading.sigreg.p_value < 1e-9 && reading.sigreg.worst_p_value < 1e-6);
    }
}

/// Ten draws of 64 samples scatter by less than half of it.
const DEPARTURE_TOLERANCE: f64 = 0.03;

#[test]
fn the_departure_does_not_depend_on_the_number_of_samples() {
    let departure = |samples, seed| {
        read(&(gaussian(samples, 4, seed) * 0.5).unwrap(), Reference::Standard).sigreg.departure
    };
    let few = (0..10).map(|seed| departure(64, seed)).sum::<f64>() / 10.;
    let many = departure(2048, 10);
    assert!((few - many).abs() < DEPARTURE_TOLERANCE, "{few} against {many}");
}

#[test]
fn precision_and_layout_do_not_matter() {
    let embeddings = gaussian(40, 5, 8);
    let reading = read(&embeddings, Reference::Standard);
    let double = read(&embeddings.to_dtype(DType::F64).unwrap(), Reference::Standard);
    assert!((reading.sigreg.mean - double.sigreg.mean).abs() < 1e-5);
    assert_eq!(reading.verdict, double.verdict);
    let transposed = embeddings.t().unwrap().contiguous().unwrap().t().unwrap();
    assert_eq!(read(&transposed, Reference::Standard), reading);
    let values: Vec<f32> = embeddings.flatten_all().unwrap().to_vec1().unwrap();
    assert_eq!(gauge(Reference::Standard).measure_rows(&values, 5).unwrap(), reading);
}

#[test]
fn what_cannot_be_measured_is_named() {
    let problem = |embeddings: &Tensor| gauge(Reference::Shape).measure(embeddings).unwrap_err().to_string();
    for value in [f32::NAN, f32::INFINITY, 1e35] {
        let mut values = vec![1f32; 20 * 3];
        values[7 * 3 + 2] = value;
        let message = problem(&Tensor::from_vec(values, (20, 3), &Device::Cpu).unwrap());
        assert!(message.starts_with("row 7, column 2 of the embeddings must be"), "{message}");
    }
    assert_eq!(problem(&gaussian(15, 3, 0)), "a reading needs at least 16 samples, got: 15");
    let flat = gaussian(20, 3, 0).flatten_all().unwrap();
    assert_eq!(problem(&flat), "embeddings must be (samples, dim), got shape: [60]");
    let none = gauge(Reference::Shape).measure_rows(&[1f32; 20], 0).unwrap_err().to_string();
    assert_eq!(none, "embeddings must be rows of 0 values, got shape: [20]");
    let ragged = gauge(Reference::Shape).measure_rows(&[1f32; 61], 3).unwrap_err().to_string();
    assert_eq!(ragged, "embeddings must be rows of 3 values, got shape: [61]");
    let no_slices = Gauge { slices: 0, ..gauge(Reference::Shape) }.measure(&gaussian(20, 3, 0));
    assert_eq!(no_slices.unwrap_err().to_string(), "`slices` must be between 1 and 65536, got: 0");
    assert!(Gauge { knots: 16, ..gauge(Reference::Shape) }.measure(&gaussian(20, 3, 0)).is_err());
}

#[test]
fn any_sensible_quadrature_finds_a_gaussian_healthy() {
    let embeddings = gaussian(20, 3, 0);
    for reference in BOTH {
        for knots in [3, 9] {
            for t_max in [0.5, 1., 3., 20.] {
                let reading = Gauge { t_max, knots, ..gauge(reference) }.measure(&embeddings).unwrap();
                assert_eq!(reading.verdict, Verdict::Healthy, "{t_max} {knots}: {reading:?}");
            }
            for t_max in [1e-9, 21., f64::MAX, f64::NAN] {
                assert!(Gauge { t_max, knots, ..gauge(reference) }.measure(&embeddings).is_err());
            }
        }
    }
}

/// The golden value is an f32.
const RANKME_TOLERANCE: f64 = 2e-5;

#[test]
fn rankme_is_that_of_numpy() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/probes.safetensors");
    let golden = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    let spectrum = Spectrum::measure(&golden["train"], Reference::Shape).unwrap();
    let expected = f64::from(golden["rankme"].to_vec1::<f32>().unwrap()[0]);
    assert!((spectrum.rankme - expected).abs() < RANKME_TOLERANCE, "{} {expected}", spectrum.rankme);
}
