//! Features of a set in several shapes.

use lejepa_page::number::{count, counted, percent, significant};

use super::{Detail, PlainTable, condition, optional, verdicts};
use crate::isotropy::{FeatureShape, Isotropy, IsotropyReport, Measurement, ProbeKind, VariantReport};
use crate::report::CandidateIsotropy;

/// What was measured on, and what a reader should know.
pub(crate) fn about_features(of: &CandidateIsotropy) -> (String, &[String]) {
    let CandidateIsotropy { candidate: _, found } = of;
    let IsotropyReport { settings, features, variants: _, verdicts: _, notes } = found;
    // What is not said here are columns of the tables, or was at most what the features gave.
    let Isotropy {
        seed,
        conditions: _,
        alignments: _,
        directions: _,
        floor: _,
        draws,
        samples: _,
        test_points: _,
        lambdas: _,
        neighbourhoods: _,
    } = settings;
    let FeatureShape { dim, directions, kept_variance, spectrum, train, samples, test_points } = features;
    let ends = match (spectrum.first(), spectrum.last()) {
        (Some(most), Some(least)) => {
            format!(", variances {} to {} times their mean", significant(*most), significant(*least))
        }
        _ => String::new(),
    };
    let sentence = format!(
        "{directions} of {dim} directions with {} % of the variance{ends}; {} of {} out of {}, {}; seed {seed}.",
        percent(*kept_variance),
        counted(*draws, "draw"),
        count(*samples),
        counted(*train, "training sample"),
        counted(*test_points, "test point"),
    );
    (sentence, notes)
}

/// All tables of one candidate.
pub(crate) fn feature_tables(of: &CandidateIsotropy) -> Vec<PlainTable> {
    let CandidateIsotropy { candidate, found } = of;
    let IsotropyReport { settings: _, features: _, variants, verdicts, notes: _ } = found;
    let mut tables = vec![at_reference(candidate, variants), best(candidate, variants)];
    tables.push(measurements(candidate, variants));
    tables.retain(|table| !table.rows.is_empty());
    tables.extend(verdicts::table(&format!("{candidate}: what the paper says"), verdicts));
    tables
}

/// Of every probe the setting that serves whitened features best: all shapes are compared at it.
pub(crate) fn reference_settings(variants: &[VariantReport]) -> Vec<(ProbeKind, f64)> {
    let whitened = variants.first().map_or(&[][..], |whitened| &whitened.best);
    whitened.iter().map(|best| (best.probe, best.setting)).collect()
}

fn at_reference(candidate: &str, variants: &[VariantReport]) -> PlainTable {
    let settings = reference_settings(variants);
    let titles = settings.iter().flat_map(|(probe, setting)| {
        let title = probe.title(*setting);
        [format!("{title}: squared bias"), "variance".into()]
    });
    let header = ["features", "condition", "inverse trace"].map(str::to_owned).into_iter().chain(titles);
    let row = |variant: &VariantReport| {
        let VariantReport { name, shape: _, condition: number, inverse_trace, measurements, best: _ } =
            variant;
        let mut row = vec![name.clone(), condition(*number), significant(*inverse_trace)];
        for (probe, setting) in &settings {
            let mut same = measurements.iter().filter(|it| it.probe == *probe && it.setting == *setting);
            let found = same.next();
            row.push(optional(found.map(|it| it.corrected_squared_bias)));
            row.push(optional(found.map(|it| it.variance)));
        }
        row
    };
    PlainTable {
        title: format!("{candidate}: bias and variance by shape"),
        caption: "At the setting of every probe that serves whitened features best. Inverse trace: 1 if \
                  isotropic; lemma 2 and theorem 1 expect the numbers to grow with it."
            .into(),
        detail: Detail::Main,
        names: 1,
        header: header.collect(),
        rows: variants.iter().map(row).collect(),
    }
}

/// The least squared error of every probe on every shape.
fn best(candidate: &str, variants: &[VariantReport]) -> PlainTable {
    let kinds: Vec<ProbeKind> =
        variants.first().map_or(Vec::new(), |first| first.best.iter().map(|it| it.probe).collect());
    let name = |probe: ProbeKind| match probe {
        ProbeKind::Ridge => "ridge or OLS",
        ProbeKind::Knn => "k-NN",
        ProbeKind::Radius => "radius k-NN",
        ProbeKind::Kernel => "kernel",
    };
    let titles = kinds.iter().map(|kind| name(*kind).to_owned());
    let row = |variant: &VariantReport| {
        let cells = kinds.iter().map(|kind| {
            let found = variant.best.iter().find(|it| it.probe == *kind);
            found.map_or_else(String::new, |it| match it.accuracy {
                Some(accuracy) => format!("{} at {}", percent(accuracy), significant(it.setting)),
                None => format!("{} at {}", significant(it.mean_squared_error), significant(it.setting)),
            })
        });
        [variant.name.clone()].into_iter().chain(cells).collect()
    };
    PlainTable {
        title: format!("{candidate}: what every shape allows"),
        caption:
            "Accuracy in % (squared error for values) at the setting with the least squared error on the \
                  test points: a description of the shape, not a score, as nothing was held out to choose it."
                .into(),
        detail: Detail::More,
        names: 1,
        header: ["features".to_owned()].into_iter().chain(titles).collect(),
        rows: variants.iter().map(row).collect(),
    }
}

fn measurements(candidate: &str, variants: &[VariantReport]) -> PlainTable {
    let mut rows = Vec::new();
    for VariantReport { name, shape: _, condition: _, inverse_trace: _, measurements, best: _ } in variants {
        for measurement in measurements {
            let Measurement {
                probe,
                setting,
                squared_bias,
                corrected_squared_bias,
                variance,
                mean_squared_error,
                accuracy,
                alone,
                coefficient_variance,
            } = measurement;
            rows.push(vec![
                name.clone(),
                probe.title(*setting),
                significant(*squared_bias),
                significant(*corrected_squared_bias),
                significant(*variance),
                significant(*mean_squared_error),
                accuracy.map(percent).unwrap_or_default(),
                optional(*alone),
                optional(*coefficient_variance),
            ]);
        }
    }
    let titles = [
        "features",
        "probe",
        "squared bias",
        "corrected",
        "variance",
        "squared error",
        "accuracy in %",
        "share alone",
        "variance of coefficients",
    ];
    PlainTable {
        title: format!("{candidate}: all measurements"),
        caption: "Corrected: without what a finite number of draws adds.".into(),
        detail: Detail::All,
        names: 2,
        header: titles.map(str::to_owned).to_vec(),
        rows,
    }
}
