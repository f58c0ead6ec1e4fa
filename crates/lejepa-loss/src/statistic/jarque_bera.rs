//! The Jarque-Bera statistic and its extension to all four moments (paper, section 4.2.1).
//!
//! ```text
//! JB  = N / 6 (skew^2 + ((kurt - 3) / 2)^2)
//! EJB = N mean^2 / s^2 + (N - 1) (s^2 - 1)^2 / 2 + JB
//! ```
//!
//! with the population's skewness and kurtosis and the unbiased variance `s^2`. JB is blind to mean
//! and variance, EJB is not.
//!
//! Equal samples have no shape: their skewness and kurtosis count as 0, so that JB is `3 N / 8`, with
//! gradient 0. EJB is infinite there.

use super::Statistic;
use super::centred::Centred;

/// The Jarque-Bera statistic: skewness and kurtosis against those of any normal distribution.
#[derive(Debug, Clone, Copy, Default)]
pub struct JarqueBera;

/// The extended Jarque-Bera statistic: also mean and variance, against those of the standard normal.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExtendedJarqueBera;

/// The standardised samples and their third and fourth moment.
struct Standardised {
    samples: Vec<f64>,
    deviation: f64,
    skewness: f64,
    kurtosis: f64,
}

impl Standardised {
    fn new(centred: &Centred) -> Self {
        let count = centred.deviations.len() as f64;
        let deviation = (centred.squares / count).sqrt();
        let samples: Vec<f64> = match deviation {
            0. => vec![0.; centred.deviations.len()],
            _ => centred.deviations.iter().map(|sample| sample / deviation).collect(),
        };
        let moment = |power| samples.iter().map(|sample| sample.powi(power)).sum::<f64>() / count;
        let (skewness, kurtosis) = (moment(3), moment(4));
        Self { samples, deviation, skewness, kurtosis }
    }

    fn jarque_bera(&self) -> f64 {
        let (skewness, excess) = (self.skewness, self.kurtosis - 3.);
        self.samples.len() as f64 / 6. * (skewness * skewness + 0.25 * excess * excess)
    }

    fn gradient(&self, gradient: &mut [f64]) {
        if self.deviation == 0. {
            return gradient.fill(0.);
        }
        // Each moment's derivative: its own, less what goes into the mean and into the deviation.
        let (skewness, kurtosis) = (self.skewness, self.kurtosis);
        for (gradient, sample) in gradient.iter_mut().zip(&self.samples) {
            let square = sample * sample;
            let by_skewness = skewness * (square - 1. - skewness * sample);
            let by_kurtosis = (kurtosis - 3.) * (square * sample - skewness - kurtosis * sample);
            *gradient = (by_skewness + by_kurtosis / 3.) / self.deviation;
        }
    }
}

impl Statistic for JarqueBera {
    fn name(&self) -> &'static str {
        "jarque-bera"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        Standardised::new(&Centred::new(samples)).jarque_bera()
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        Standardised::new(&Centred::new(samples)).gradient(gradient);
    }

    /// From the exact moments of skewness and kurtosis in normal samples.
    fn floor(&self, samples: usize) -> Option<f64> {
        let n = samples as f64;
        let skewness = 6. * (n - 2.) / ((n + 1.) * (n + 3.));
        let excess = -6. / (n + 1.);
        let variance = 24. * n * (n - 2.) * (n - 3.) / ((n + 1.).powi(2) * (n + 3.) * (n + 5.));
        (samples >= self.least_samples()).then(|| n / 6. * (skewness + (variance + excess * excess) / 4.))
    }

    fn least_samples(&self) -> usize {
        2
    }
}

impl Statistic for ExtendedJarqueBera {
    fn name(&self) -> &'static str {
        "extended-jarque-bera"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        let centred = Centred::new(samples);
        let (n, mean, variance) = (samples.len() as f64, centred.mean, centred.variance());
        if variance == 0. {
            return f64::INFINITY;
        }
        let first_two = n * mean * mean / variance + 0.5 * (n - 1.) * (variance - 1.).powi(2);
        first_two + Standardised::new(&centred).jarque_bera()
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        let centred = Centred::new(samples);
        Standardised::new(&centred).gradient(gradient);
        let (n, mean, variance) = (samples.len() as f64, centred.mean, centred.variance());
        let by_mean = 2. * mean / variance;
        let by_variance = 2. * (variance - 1.) - 2. * n / (n - 1.) * (mean / variance).powi(2);
        for (gradient, deviation) in gradient.iter_mut().zip(&centred.deviations) {
            *gradient += by_mean + by_variance * deviation;
        }
    }

    /// Known above 3 samples: `N mean^2 / s^2` is the square of Student's t.
    fn floor(&self, samples: usize) -> Option<f64> {
        let n = samples as f64;
        let shape = JarqueBera.floor(samples)?;
        (samples > 3).then(|| shape + (n - 1.) / (n - 3.) + 1.)
    }

    fn least_samples(&self) -> usize {
        2
    }
}
