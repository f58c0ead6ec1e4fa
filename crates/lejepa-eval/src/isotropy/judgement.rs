//! Which measurements speak for or against the statements.

use super::measurement::Measured;
use super::variant::Variant;
use super::verdict::Comparison;
use super::{Isotropy, Measurement, ProbeKind, Shape, Statement, Verdict};

/// One per statement and probe, for the features as they are and the largest condition of every alignment.
/// The first variant is the isotropic one, and its best setting is that of all.
pub(crate) fn verdicts(
    settings: &Isotropy,
    variants: &[Variant],
    measured: &[Vec<Measured>],
) -> Vec<Verdict> {
    let largest = settings.conditions.iter().copied().fold(0., f64::max);
    let extreme = |shape: &Shape| match shape {
        Shape::AsTheyAre => true,
        Shape::Whitened => false,
        Shape::Anisotropic { condition, .. } => *condition == largest,
    };
    let Some(isotropic) = measured.first() else { return Vec::new() };
    // Lemma 1 is about penalties above 0.
    let penalised: Vec<&Measured> = isotropic.iter().filter(|entry| entry.measurement.setting > 0.).collect();
    let references: Vec<&Measurement> =
        ProbeKind::ALL.into_iter().filter_map(|probe| best(&penalised, probe)).collect();
    let mut verdicts = Vec::new();
    for (variant, measured) in variants.iter().zip(measured).filter(|(variant, _)| extreme(&variant.shape)) {
        for (left, right) in isotropic.iter().zip(measured) {
            let Measurement { probe, setting, .. } = left.measurement;
            let (statement, isotropic, anisotropic) = if setting == 0. {
                (Statement::Lemma2, &left.coefficient_spread, &right.coefficient_spread)
            } else if references.contains(&&left.measurement) {
                (Statement::of_bias(probe), &left.squared_bias, &right.squared_bias)
            } else {
                continue;
            };
            let shape = variant.shape.title();
            verdicts.push(Comparison { statement, probe, setting, shape, isotropic, anisotropic }.verdict());
        }
    }
    verdicts
}

/// The measurement of a probe with the least squared error.
pub(crate) fn best<'a>(measured: &[&'a Measured], probe: ProbeKind) -> Option<&'a Measurement> {
    let own = measured.iter().map(|entry| &entry.measurement).filter(|entry| entry.probe == probe);
    own.min_by(|left, right| left.mean_squared_error.total_cmp(&right.mean_squared_error))
}
