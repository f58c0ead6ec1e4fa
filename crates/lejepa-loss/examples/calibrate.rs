//! Checks what `lejepa_loss::gauge` promises, by simulation: the levels of its quantiles, how often it
//! calls a perfect Gaussian unhealthy, and whether it counts planted weak directions.
//!
//! `RAYON_NUM_THREADS=1 cargo run --release -p lejepa-loss --example calibrate`, about six minutes.

use candle_core::{Device, Tensor};
use faer::linalg::matmul::matmul;
use faer::{Accum, ColRef, Mat, Par};
use lejepa_loss::gauge::{Design, Null, Reference, Spectrum};
use lejepa_loss::{EppsPulley, Statistic};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const T_MAX: f64 = 5.;
const KNOTS: usize = 17;
/// Projected values and directions' entries per design: about five seconds.
const BUDGET: usize = 100_000_000;

fn main() -> Result<()> {
    let mut generator = ChaCha8Rng::seed_from_u64(0);
    for reference in [Reference::Standard, Reference::Shape] {
        levels(reference, &mut generator)?;
    }
    false_alarms(&mut generator)?;
    planted(&mut generator)
}

/// True levels of the quantiles, mean and standard deviation as multiples of the promised ones.
fn levels(reference: Reference, generator: &mut ChaCha8Rng) -> Result<()> {
    eprintln!("\n{reference:?}: true levels of the quantiles in %");
    eprintln!("     N      M      K   draws   mean     sd   95 %    99 %   99.9 %  99.99 %");
    for samples in [16, 64, 256, 1024] {
        for (slices, dim) in [(1, 1), (64, 2), (256, 8), (256, 64), (64, 512), (1024, 64), (1, 64)] {
            let draws = BUDGET / (samples * slices).max(dim * slices).max(samples * dim);
            // The levels of fewer draws would be noise.
            if draws < 3000 {
                continue;
            }
            let null = Null::new(T_MAX, KNOTS, Design { samples, dim, slices, reference })?;
            let means = (0..draws)
                .map(|_draw| {
                    let mut features = gaussian(samples, dim, generator);
                    if reference == Reference::Shape {
                        standardise(&mut features);
                    }
                    mean_statistic(&features, &directions(dim, slices, generator))
                })
                .collect::<Result<Vec<f64>>>()?;
            let count = means.len() as f64;
            let mean = means.iter().sum::<f64>() / count;
            let deviation = (means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
            let level = |level: f64| {
                let quantile = null.quantile(level);
                100. * means.iter().filter(|mean| **mean <= quantile).count() as f64 / count
            };
            eprintln!(
                "{samples:6} {slices:6} {dim:6} {draws:7} {:6.4} {:6.4} {:6.2} {:7.3} {:8.3} {:8.3}",
                mean / null.mean,
                deviation / null.deviation,
                level(0.95),
                level(0.99),
                level(0.999),
                level(0.9999),
            );
        }
    }
    Ok(())
}

/// How often perfect samples have a weak direction.
fn false_alarms(generator: &mut ChaCha8Rng) -> Result<()> {
    eprintln!("\nperfect Gaussian samples with a weak direction, in %");
    eprintln!("     N      K   draws  measurable  standard   shape");
    for (samples, dims) in [
        (16, &[1, 2, 4, 6, 7, 8, 10, 12, 15, 16, 20, 24, 25, 26, 32, 64, 256][..]),
        (24, &[8, 13, 16, 23, 24, 35, 48]),
        (32, &[18, 24, 31, 32, 48, 64]),
        (64, &[32, 44, 64, 88, 128]),
        (128, &[64, 128, 192]),
    ] {
        for &dim in dims {
            let draws = (150_000_000 / (samples * dim * dim.min(samples))).clamp(300, 60_000);
            let (mut alarms, mut measurable) = ([0; 2], 0);
            for _draw in 0..draws {
                let features = tensor(&gaussian(samples, dim, generator))?;
                for (alarms, reference) in alarms.iter_mut().zip([Reference::Standard, Reference::Shape]) {
                    let spectrum = Spectrum::measure(&features, reference)?;
                    *alarms += usize::from(spectrum.weak > 0);
                    measurable = spectrum.measurable;
                }
            }
            let [standard, shape] = alarms.map(|alarms| 100. * alarms as f64 / draws as f64);
            eprintln!("{samples:6} {dim:6} {draws:7} {measurable:11} {standard:9.3} {shape:7.3}");
        }
    }
    Ok(())
}

/// How often planted directions of variance 0.01 are counted exactly.
fn planted(generator: &mut ChaCha8Rng) -> Result<()> {
    eprintln!("\nplanted weak directions that are counted exactly, in %");
    eprintln!("     N      K   planted  measurable  standard   shape");
    for (samples, dim, count) in
        [(64, 16, 1), (64, 16, 3), (128, 32, 3), (256, 32, 10), (256, 64, 20), (256, 160, 3), (1024, 256, 5)]
    {
        let draws = (200_000_000 / (samples * dim * dim)).clamp(20, 1000);
        let (mut exact, mut measurable) = ([0; 2], 0);
        for _draw in 0..draws {
            let mut features = gaussian(samples, dim, generator);
            features.subcols_mut(0, count).col_iter_mut().for_each(|column| {
                column.iter_mut().for_each(|value| *value *= 0.1);
            });
            let features = tensor(&features)?;
            for (exact, reference) in exact.iter_mut().zip([Reference::Standard, Reference::Shape]) {
                let spectrum = Spectrum::measure(&features, reference)?;
                *exact += usize::from(spectrum.weak == count);
                measurable = spectrum.measurable;
            }
        }
        let [standard, shape] = exact.map(|exact| 100. * exact as f64 / draws as f64);
        eprintln!("{samples:6} {dim:6} {count:9} {measurable:11} {standard:9.1} {shape:7.1}");
    }
    Ok(())
}

fn gaussian(rows: usize, columns: usize, generator: &mut ChaCha8Rng) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(generator))
}

/// Centred, and divided by the overall root mean square.
fn standardise(features: &mut Mat<f64>) {
    let (samples, dim) = (features.nrows() as f64, features.ncols() as f64);
    for column in features.col_iter_mut() {
        let mean = column.as_ref().iter().sum::<f64>() / samples;
        column.iter_mut().for_each(|value| *value -= mean);
    }
    let squares: f64 =
        features.col_iter().flat_map(|column| column.iter().copied()).map(|value: f64| value * value).sum();
    let scale = (squares / (samples * dim)).sqrt();
    features.col_iter_mut().for_each(|column| column.iter_mut().for_each(|value| *value /= scale));
}

fn directions(dim: usize, slices: usize, generator: &mut ChaCha8Rng) -> Mat<f64> {
    let mut directions = gaussian(dim, slices, generator);
    for column in directions.col_iter_mut() {
        let norm = column.as_ref().iter().map(|value| value * value).sum::<f64>().sqrt();
        column.iter_mut().for_each(|value| *value /= norm);
    }
    directions
}

/// The mean Epps-Pulley statistic in f64.
fn mean_statistic(features: &Mat<f64>, directions: &Mat<f64>) -> Result<f64> {
    let statistic = EppsPulley::new(T_MAX, KNOTS)?;
    let mut projected = Mat::<f64>::zeros(features.nrows(), directions.ncols());
    matmul(&mut projected, Accum::Replace, features, directions, 1., Par::Seq);
    let value = |slice: ColRef<'_, f64>| statistic.value(&slice.iter().copied().collect::<Vec<_>>());
    Ok(projected.col_iter().map(value).sum::<f64>() / directions.ncols() as f64)
}

fn tensor(features: &Mat<f64>) -> Result<Tensor> {
    let rows: Vec<f64> =
        features.row_iter().flat_map(|row| row.iter().copied().collect::<Vec<_>>()).collect();
    Ok(Tensor::from_vec(rows, (features.nrows(), features.ncols()), &Device::Cpu)?)
}
