//! Bias and variance on given features.

use std::collections::BTreeSet;

use lejepa_probe::{Features, Targets};
use rayon::prelude::*;

use super::judgement::{best, verdicts};
use super::measurement::Measured;
use super::principal::Principal;
use super::trial::Trial;
use super::variant::Variant;
use super::{FeatureShape, Isotropy, IsotropyReport, ProbeKind, VariantReport};
use crate::{Error, Result};

/// Fewer training samples leave nothing to draw.
const LEAST_TRAIN: usize = 4;

impl Isotropy {
    /// Measures probes on all shapes of the features. Deterministic by the seed, whatever the number of
    /// threads.
    pub fn measure(&self, train: &Features, test: &Features) -> Result<IsotropyReport> {
        let invalid = |problem| Error::Suite { name: "isotropy".into(), problem };
        self.check().map_err(invalid)?;
        check_splits(train, test)?;
        let principal = Principal::of(train, self)?;
        let trial = Trial::new(self, &principal, train, test);
        let variants = Variant::all(&principal, self);
        let measured =
            variants.par_iter().map(|variant| trial.measure(variant)).collect::<Result<Vec<_>>>()?;
        let kept: f64 = principal.variances.iter().sum();
        let directions = principal.variances.len();
        let samples = trial.samples;
        let features = FeatureShape {
            dim: train.dim(),
            directions,
            kept_variance: kept / principal.total_variance,
            spectrum: principal
                .variances
                .iter()
                .map(|variance| variance * directions as f64 / kept)
                .collect(),
            train: train.len(),
            samples,
            test_points: trial.test.nrows(),
        };
        Ok(IsotropyReport {
            settings: self.clone(),
            notes: self.notes(&features),
            features,
            verdicts: verdicts(self, &variants, &measured),
            variants: variants
                .iter()
                .zip(measured)
                .map(|(variant, measured)| report(variant, measured))
                .collect(),
        })
    }

    fn notes(&self, features: &FeatureShape) -> Vec<String> {
        let FeatureShape { dim, directions, train, samples, .. } = *features;
        let mut notes = vec![
            "squared bias holds the noise of the targets, which no probe can predict".to_string(),
            format!(
                "draws of {samples} out of {train} samples overlap: their variance is somewhat too small"
            ),
        ];
        if directions < dim {
            let share = 100. * features.kept_variance;
            notes.push(format!(
                "{directions} of {dim} directions, with {share:.1} % of the variance, are kept"
            ));
        }
        if samples < self.samples {
            notes.push(format!("{samples} samples per draw, half of all, instead of {}", self.samples));
        }
        if self.lambdas.contains(&0.) && samples <= directions + 1 {
            notes.push(format!("OLS of {directions} coefficients needs more samples than: {samples}"));
        }
        notes
    }
}

fn report(variant: &Variant, measured: Vec<Measured>) -> VariantReport {
    let all: Vec<&Measured> = measured.iter().collect();
    VariantReport {
        name: variant.shape.title(),
        shape: variant.shape,
        condition: variant.spectrum.condition(),
        inverse_trace: variant.spectrum.fisher_information() / variant.spectrum.0.len().max(1) as f64,
        best: ProbeKind::ALL.into_iter().filter_map(|probe| best(&all, probe)).cloned().collect(),
        measurements: measured.into_iter().map(|measured| measured.measurement).collect(),
    }
}

fn check_splits(train: &Features, test: &Features) -> Result<()> {
    for (split, features, needed) in [("training", train, LEAST_TRAIN), ("test", test, 1)] {
        if features.len() < needed {
            return Err(Error::TooFewSamples { split, needed, got: features.len() });
        }
    }
    if train.dim() != test.dim() {
        return Err(lejepa_probe::Error::Dimensions { expected: train.dim(), got: test.dim() }.into());
    }
    let described = [train, test].map(|features| match features.targets() {
        Targets::Classes { classes, .. } => format!("{classes} classes"),
        Targets::Values(values) => format!("{} values", values.ncols()),
    });
    let [train_targets, test_targets] = described;
    if train_targets != test_targets {
        return Err(Error::UnlikeTargets { train: train_targets, test: test_targets });
    }
    if let Targets::Classes { labels, .. } = train.targets() {
        let got = labels.iter().collect::<BTreeSet<_>>().len();
        if got < 2 {
            return Err(Error::TooFewClasses { got });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lejepa_probe::Scores;
    use ndarray::{Array2, Axis, concatenate};

    use super::*;
    use crate::isotropy::random::{Stream, normal, stream};
    use crate::isotropy::{Alignment, Holds, Neighbourhoods, Statement};

    /// Rounding of means of numbers around 1.
    const ROUNDING: f64 = 1e-9;

    fn small() -> Isotropy {
        Isotropy {
            conditions: vec![100.],
            draws: 8,
            samples: 60,
            test_points: 50,
            lambdas: vec![0., 0.1, 1.],
            neighbourhoods: Neighbourhoods { neighbours: vec![5], radii: vec![0.7], bandwidths: vec![0.3] },
            ..Isotropy::default()
        }
    }

    fn features(samples: usize, dim: usize, seed: u64) -> Array2<f64> {
        normal((samples, dim), &mut stream(seed, Stream::Queries, 0))
    }

    /// Two classes told apart by the sign of the first feature.
    fn labelled(values: &Array2<f64>) -> Features {
        let labels = values.column(0).iter().map(|value| usize::from(*value > 0.)).collect();
        Features::labelled(values.mapv(|value| value as f32), labels, 2).unwrap()
    }

    fn problem(settings: &Isotropy, train: &Features, test: &Features) -> String {
        settings.measure(train, test).unwrap_err().to_string()
    }

    #[test]
    fn every_shape_is_measured_with_every_probe_and_errors_are_bias_plus_variance() {
        let (train, test) = (labelled(&features(300, 6, 1)), labelled(&features(80, 6, 2)));
        let report = small().measure(&train, &test).unwrap();
        assert_eq!(report.variants.len(), 5);
        for variant in &report.variants {
            assert_eq!((variant.measurements.len(), variant.best.len()), (6, 4), "{}", variant.name);
            for entry in &variant.measurements {
                let sum = entry.squared_bias + entry.variance;
                assert!((entry.mean_squared_error - sum).abs() < ROUNDING, "{entry:?}");
                assert!(entry.accuracy.unwrap() > 0.5, "{entry:?}");
            }
        }
        assert_eq!(report.verdicts.len(), 4 * 5);
        assert_eq!(report, small().measure(&train, &test).unwrap());
        let json = serde_json::to_string(&report).unwrap();
        let read: IsotropyReport = serde_json::from_str(&json).unwrap();
        assert_eq!((read.settings, read.notes), (report.settings, report.notes));
    }

    #[test]
    fn the_shape_changes_coefficients_of_least_squares_but_not_their_predictions() {
        let (train, test) = (labelled(&features(300, 6, 3)), labelled(&features(80, 6, 4)));
        let report = small().measure(&train, &test).unwrap();
        let ols = |variant: &VariantReport| variant.measurements[0].clone();
        let (isotropic, stretched) = (ols(&report.variants[0]), ols(&report.variants[2]));
        assert!((isotropic.mean_squared_error - stretched.mean_squared_error).abs() < 1e-6);
        let of_variance = report.verdicts.iter().filter(|verdict| verdict.statement == Statement::Lemma2);
        for verdict in of_variance.filter(|verdict| verdict.shape.contains("condition")) {
            assert_eq!(verdict.holds, Holds::Yes, "{}", verdict.sentence);
        }
    }

    /// The task is the widest direction, which becomes the narrowest.
    #[test]
    fn ridge_has_more_bias_where_the_task_lies_along_a_narrow_direction() {
        let wide = |mut values: Array2<f64>| {
            values.column_mut(0).mapv_inplace(|value| value * 3.);
            values
        };
        let (train, test) = (labelled(&wide(features(300, 6, 5))), labelled(&wide(features(80, 6, 6))));
        let settings = Isotropy { alignments: vec![Alignment::Reversed], ..small() };
        let report = settings.measure(&train, &test).unwrap();
        let lemma = |verdict: &&crate::isotropy::Verdict| {
            verdict.statement == Statement::Lemma1 && verdict.shape.contains("reversed")
        };
        let verdict = report.verdicts.iter().find(lemma).unwrap();
        assert_eq!(verdict.holds, Holds::Yes, "{}", verdict.sentence);
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        let good = labelled(&features(40, 3, 7));
        let constant =
            Features::labelled(Array2::from_elem((40, 3), 0.1), (0..40).map(|i| i % 2).collect(), 2);
        assert!(problem(&small(), &constant.unwrap(), &good).contains("do not vary"));
        let one = Features::labelled(good.values().clone(), vec![1; 40], 2).unwrap();
        assert!(problem(&small(), &one, &good).contains("two classes"));
        assert!(problem(&small(), &good, &labelled(&features(40, 4, 7))).contains("dimensions"));
        assert!(problem(&small(), &labelled(&features(3, 3, 7)), &good).contains("training samples"));
        let nothing = Features::labelled(Array2::zeros((0, 3)), vec![], 2).unwrap();
        assert!(problem(&small(), &good, &nothing).contains("test samples"));
        let values = Features::new(good.values().clone(), Targets::Values(Scores::zeros((40, 2)))).unwrap();
        assert!(problem(&small(), &good, &values).contains("2 classes and 2 values"));
        let broken = Isotropy { draws: 0, ..small() };
        assert!(problem(&broken, &good, &good).contains("draws"));
    }

    #[test]
    fn unusual_features_are_measured_all_the_same() {
        let test = features(30, 3, 8);
        // A constant column, one dimension, fewer samples than dimensions, constant values.
        let padded = |values: &Array2<f64>| {
            concatenate(Axis(1), &[values.view(), Array2::from_elem((values.nrows(), 1), 5.).view()]).unwrap()
        };
        let report =
            small().measure(&labelled(&padded(&features(90, 3, 9))), &labelled(&padded(&test))).unwrap();
        assert_eq!((report.features.dim, report.features.directions), (4, 3));

        let report = small().measure(&labelled(&features(90, 1, 9)), &labelled(&features(30, 1, 8))).unwrap();
        assert!(report.verdicts.iter().all(|verdict| verdict.holds == Holds::Undecided));

        let report =
            small().measure(&labelled(&features(20, 40, 9)), &labelled(&features(30, 40, 8))).unwrap();
        assert_eq!((report.features.directions, report.features.samples), (19, 10));
        assert!(report.notes.iter().any(|note| note.contains("OLS")));
        assert!(report.verdicts.iter().all(|verdict| verdict.statement != Statement::Lemma2));

        let constant = |values: Array2<f64>| {
            let targets = Targets::Values(Scores::ones((values.nrows(), 1)));
            Features::new(values.mapv(|value| value as f32), targets).unwrap()
        };
        let report = small().measure(&constant(features(90, 3, 9)), &constant(test)).unwrap();
        assert!(report.variants[0].measurements.iter().all(|entry| entry.mean_squared_error < ROUNDING));
    }
}
