//! Theorem 1 without a model: k-NN, radius k-NN and kernel on smooth functions of Gaussian features.

use lejepa_probe::Targets;
use ndarray::{Array2, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::measurement::{Gathering, Measured};
use super::moments::mean;
use super::neighbourhood::Bank;
use super::random::{Stream, normal, stream};
use super::settings::{all, at_least};
use super::spectrum::Spectrum;
use super::verdict::Comparison;
use super::wave::{WaveSettings, Waves};
use super::{Measurement, Neighbourhoods, ProbeKind, Statement, Verdict};

/// What is simulated. Features have mean variance 1 in every direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmoothDemonstration {
    /// Of the features.
    pub dim: usize,
    /// Training samples of each draw.
    pub samples: usize,
    /// Training sets.
    pub draws: usize,
    /// Points that are predicted, from the same law as the samples.
    pub queries: usize,
    /// Random functions that are predicted.
    pub tasks: usize,
    /// Plane waves that each consists of.
    pub waves: usize,
    /// Over what distance functions vary.
    pub length: f64,
    /// Standard deviation of what is added to training targets.
    pub noise: f64,
    /// Settings of the probes.
    pub neighbourhoods: Neighbourhoods,
}

impl Default for SmoothDemonstration {
    fn default() -> Self {
        Self {
            dim: 2,
            samples: 1000,
            draws: 48,
            queries: 256,
            tasks: 8,
            waves: 16,
            length: 2.,
            noise: 0.1,
            neighbourhoods: Neighbourhoods {
                neighbours: vec![1, 5, 20, 50],
                radii: vec![0.05, 0.1, 0.2, 0.4],
                bandwidths: vec![0.025, 0.05, 0.1, 0.2],
            },
        }
    }
}

/// What was found for one condition number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SmoothPoint {
    /// Largest over smallest variance.
    pub condition: f64,
    /// `J = tr Sigma^-1`.
    pub fisher_information: f64,
    /// Every probe at every setting.
    pub measurements: Vec<SmoothMeasurement>,
}

/// A measurement beside what theory says of its squared bias.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SmoothMeasurement {
    /// What was measured, against the functions without noise.
    pub measured: Measurement,
    /// The first term of the expansion in the radius or bandwidth (paper, lemmas on pointwise bias); none for
    /// k-NN with a number of neighbours.
    pub leading_order: Option<f64>,
    /// With endless samples, exactly; for the kernel alone.
    pub limit: Option<f64>,
}

/// Results of all conditions, the first of which is 1.
pub(crate) struct SmoothResult {
    pub(crate) points: Vec<SmoothPoint>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// What is known of one condition without simulation.
struct Theory {
    /// Of the expansions of all radii and bandwidths.
    leading_term: f64,
    /// Bandwidths with the squared bias at every query.
    kernel_limits: Vec<(f64, Vec<f64>)>,
}

impl SmoothDemonstration {
    pub(crate) fn check(&self) -> Result<(), String> {
        let counts = [
            ("dim", 1, self.dim),
            ("samples", 1, self.samples),
            ("draws", 2, self.draws),
            ("queries", 1, self.queries),
            ("tasks", 1, self.tasks),
            ("waves", 1, self.waves),
        ];
        counts.into_iter().try_for_each(|(name, least, got)| at_least(name, least, got))?;
        all("length", &[self.length], "a finite number above 0", |length| length > 0.)?;
        all("noise", &[self.noise], "a finite number of at least 0", |noise| noise >= 0.)?;
        self.neighbourhoods.check()
    }

    pub(crate) fn run(&self, conditions: &[f64], seed: u64) -> SmoothResult {
        let Self { dim, tasks, waves, length, .. } = *self;
        let waves = Waves::draw(WaveSettings { dim, tasks, waves, length, seed });
        let spectra: Vec<Spectrum> = conditions.iter().map(|&c| Spectrum::geometric(dim, c)).collect();
        let measured: Vec<_> =
            spectra.par_iter().map(|spectrum| self.measure(spectrum, &waves, seed)).collect();
        let theories: Vec<_> = spectra.iter().map(|spectrum| self.theory(spectrum, &waves, seed)).collect();
        let condition = conditions.last().copied().unwrap_or(1.);
        let verdicts = verdicts(condition, &measured, &theories);
        let points = conditions.iter().zip(&spectra).zip(measured.into_iter().zip(theories));
        let points = points.map(|((&condition, spectrum), (measured, theory))| SmoothPoint {
            condition,
            fisher_information: spectrum.fisher_information(),
            measurements: measured
                .into_iter()
                .map(|entry| self.compare(entry.measurement, &theory))
                .collect(),
        });
        SmoothResult { points: points.collect(), verdicts }
    }

    fn measure(&self, spectrum: &Spectrum, waves: &Waves, seed: u64) -> Vec<Measured> {
        let queries = self.queries(spectrum, seed);
        let targets = Targets::Values(waves.values(&queries));
        let mut gathered: Vec<Gathering> = Vec::new();
        for draw in 0..self.draws {
            let mut generator = stream(seed, Stream::SmoothDraw, draw);
            let features = stretched(normal((self.samples, self.dim), &mut generator), spectrum);
            let noise = normal((self.samples, self.tasks), &mut generator) * self.noise;
            let values = waves.values(&features) + noise;
            let bank = Bank { features: features.view(), targets: values.view(), unit: self.unit() };
            let scores = self.neighbourhoods.scores(bank, queries.view());
            if gathered.is_empty() {
                let gathering = |probe, setting| Gathering::new(probe, setting, &targets);
                gathered = scores.iter().map(|scores| gathering(scores.probe, scores.setting)).collect();
            }
            for (gathered, scores) in gathered.iter_mut().zip(scores) {
                gathered.add(&scores.scores, scores.alone, &targets);
            }
        }
        gathered.into_iter().map(|gathered| gathered.finish(&targets)).collect()
    }

    fn theory(&self, spectrum: &Spectrum, waves: &Waves, seed: u64) -> Theory {
        let queries = self.queries(spectrum, seed);
        let limit =
            |&bandwidth: &f64| (bandwidth, waves.kernel_limit(&queries, spectrum, bandwidth * self.unit()));
        Theory {
            leading_term: waves.leading_term(&queries, spectrum),
            kernel_limits: self.neighbourhoods.bandwidths.iter().map(limit).collect(),
        }
    }

    fn compare(&self, measured: Measurement, theory: &Theory) -> SmoothMeasurement {
        let square = (measured.setting * self.unit()).powi(2);
        let (factor, limit) = match measured.probe {
            ProbeKind::Ridge | ProbeKind::Knn => (None, None),
            ProbeKind::Radius => (Some(square / (self.dim as f64 + 2.)), None),
            ProbeKind::Kernel => {
                let mut limits = theory.kernel_limits.iter();
                (Some(square), limits.find(|(bandwidth, _)| *bandwidth == measured.setting))
            }
        };
        SmoothMeasurement {
            leading_order: factor.map(|factor| factor * factor * theory.leading_term),
            limit: limit.map(|(_, biases)| mean(biases)),
            measured,
        }
    }

    /// The same points at every condition, stretched.
    fn queries(&self, spectrum: &Spectrum, seed: u64) -> Array2<f64> {
        stretched(normal((self.queries, self.dim), &mut stream(seed, Stream::Queries, 0)), spectrum)
    }

    /// The root of the mean squared distance between two samples.
    fn unit(&self) -> f64 {
        (2. * self.dim as f64).sqrt()
    }
}

/// The largest condition against 1: every setting, and the kernel's once more with endless samples.
fn verdicts(condition: f64, measured: &[Vec<Measured>], theories: &[Theory]) -> Vec<Verdict> {
    let [isotropic, .., anisotropic] = measured else { return Vec::new() };
    let [isotropic_theory, .., anisotropic_theory] = theories else { return Vec::new() };
    let measured = isotropic.iter().zip(anisotropic).map(|(isotropic, anisotropic)| Comparison {
        statement: Statement::of_bias(isotropic.measurement.probe),
        probe: isotropic.measurement.probe,
        setting: isotropic.measurement.setting,
        shape: format!("condition {condition}"),
        isotropic: &isotropic.squared_bias,
        anisotropic: &anisotropic.squared_bias,
    });
    let limits = isotropic_theory.kernel_limits.iter().zip(&anisotropic_theory.kernel_limits);
    let limits = limits.map(|((setting, isotropic), (_, anisotropic))| Comparison {
        statement: Statement::Theorem1,
        probe: ProbeKind::Kernel,
        setting: *setting,
        shape: format!("condition {condition}, endless samples"),
        isotropic,
        anisotropic,
    });
    measured.chain(limits).map(Comparison::verdict).collect()
}

/// Standard normal points with the variances of the spectrum.
pub(crate) fn stretched(mut points: Array2<f64>, spectrum: &Spectrum) -> Array2<f64> {
    for (mut column, variance) in points.axis_iter_mut(Axis(1)).zip(&spectrum.0) {
        column *= variance.sqrt();
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isotropy::Holds;

    /// What finite samples add to the bias at a bandwidth that reaches many of them.
    const FINITE_SAMPLES: f64 = 0.1;
    /// Rounding of means.
    const ROUNDING: f64 = 1e-12;

    fn small() -> SmoothDemonstration {
        let neighbourhoods =
            Neighbourhoods { neighbours: vec![5], radii: vec![0.15], bandwidths: vec![0.1, 0.2] };
        SmoothDemonstration { draws: 12, queries: 128, neighbourhoods, ..Default::default() }
    }

    #[test]
    fn isotropic_features_have_the_least_bias_within_a_small_radius() {
        let verdicts = small().run(&[1., 30.], 21).verdicts;
        let within = verdicts.iter().filter(|verdict| [0.1, 0.15].contains(&verdict.setting));
        assert_eq!(within.clone().count(), 3);
        for verdict in within {
            assert_eq!(verdict.holds, Holds::Yes, "{}", verdict.sentence);
        }
    }

    #[test]
    fn the_kernel_probe_has_the_bias_that_theory_says() {
        for point in small().run(&[1., 30.], 21).points {
            let kernel = &point.measurements[3];
            let Measurement { setting, corrected_squared_bias, .. } = kernel.measured;
            assert_eq!(setting, 0.2);
            let ratio = corrected_squared_bias / kernel.limit.unwrap();
            assert!((ratio - 1.).abs() < FINITE_SAMPLES, "{kernel:?}");
            let Measurement { squared_bias, variance, mean_squared_error, .. } = kernel.measured;
            assert!((squared_bias + variance - mean_squared_error).abs() < ROUNDING);
        }
    }

    #[test]
    fn one_dimension_has_no_shape() {
        let result = SmoothDemonstration { dim: 1, draws: 2, ..small() }.run(&[1., 30.], 22);
        let [left, right] = &result.points[..] else { unreachable!() };
        assert_eq!(left.measurements, right.measurements);
        assert!(result.verdicts.iter().all(|verdict| verdict.holds == Holds::Undecided));
    }
}
