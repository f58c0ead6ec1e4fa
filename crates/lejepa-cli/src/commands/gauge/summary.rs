//! A reading in plain text.

use lejepa_loss::gauge::{Reading, Reference, Slice};

use crate::table::table;

/// The verdict first, then the numbers behind it.
pub(super) fn text(name: &str, reading: &Reading) -> String {
    let reference = match reading.reference {
        Reference::Standard => "the standard normal",
        Reference::Shape => "an isotropic Gaussian of any mean and scale",
    };
    format!(
        "{name}: {}\n{}\n\nsamples: {}, dimensions: {}, slices: {}, seed: {}\nagainst {reference}\n\n{}\n\n{}",
        reading.verdict.title(),
        reading.explanation,
        reading.samples,
        reading.dim,
        reading.sigreg.slices,
        reading.sigreg.seed,
        table(&measurements(reading)),
        table(&worst(reading)),
    )
}

fn measurements(reading: &Reading) -> Vec<Vec<String>> {
    let Reading { sigreg, spectrum, .. } = reading;
    let row = |name: &str, values: [String; 3]| [&[name.into()], &values[..]].concat();
    let none = || "-".to_string();
    let worst = reading.worst_slices.first().map(|slice| slice.statistic);
    // As if slices were independent: rather too large.
    let worst_below = sigreg.slice_null.quantile(0.99f64.powf(1. / sigreg.slices as f64));
    let collapse = (sigreg.null.deviation / sigreg.departure_deviation).max(f64::MIN_POSITIVE);
    let departure = |statistic: f64| decimals((statistic - sigreg.floor) / collapse, 4);
    let unit = || match reading.reference {
        Reference::Standard => decimals(1., 3),
        Reference::Shape => "-".into(),
    };
    let deviation = |value: f64| [number(value), unit(), "-".into()];
    vec![
        row("", ["measured".into(), "perfect Gaussian".into(), "99 % of such below".into()]),
        row("SIGReg", [number(sigreg.mean), number(sigreg.floor), number(sigreg.quantiles.q99)]),
        row(
            "SIGReg over its floor",
            [decimals(sigreg.ratio, 2), decimals(1., 2), decimals(sigreg.quantiles.q99 / sigreg.floor, 2)],
        ),
        row("SIGReg of the worst slice", [worst.map_or_else(none, number), none(), number(worst_below)]),
        row(
            "departure, 1 if collapsed",
            [decimals(sigreg.departure, 4), "0".into(), departure(sigreg.quantiles.q99)],
        ),
        row("RankMe", [decimals(spectrum.rankme, 1), decimals(spectrum.rankme_expected, 1), none()]),
        row(
            &format!("weak of {} measurable directions", spectrum.measurable),
            [spectrum.weak.to_string(), "0".into(), none()],
        ),
        row("standard deviation over all", deviation(reading.scale)),
        row("... of a dimension, smallest", deviation(spectrum.deviations.smallest)),
        row("... of a dimension, median", deviation(spectrum.deviations.median)),
        row("... of a dimension, largest", deviation(spectrum.deviations.largest)),
    ]
}

fn worst(reading: &Reading) -> Vec<Vec<String>> {
    let heading = ["worst", "SIGReg", "p-value", "mean", "sd", "skewness", "kurtosis"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    let mut list = |name: &str, slices: &[Slice]| {
        rows.extend(slices.iter().map(|slice| {
            vec![
                format!("{name} {}", slice.index),
                number(slice.statistic),
                slice.p_value.map_or("-".into(), probability),
                // Rounding leaves a little of a mean that was subtracted.
                number(if slice.mean.abs() < 1e-4 * slice.deviation { 0. } else { slice.mean }),
                number(slice.deviation),
                decimals(slice.skewness, 2),
                decimals(slice.kurtosis, 2),
            ]
        }));
    };
    list("slice", &reading.worst_slices);
    list("principal direction", &reading.worst_principal_directions);
    list("dimension", &reading.worst_dimensions);
    rows
}

/// Four digits or so, and never a long row of zeros.
fn number(value: f64) -> String {
    match value.abs() {
        0. => "0".into(),
        size if (1e-3..1e5).contains(&size) => {
            let digits = (3. - size.log10().floor()).clamp(0., 4.) as usize;
            decimals(value, digits)
        }
        _ => format!("{value:.1e}"),
    }
}

/// Without a minus sign before zeros.
fn decimals(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|character| matches!(character, '0' | '.')) => rest.into(),
        _ => text,
    }
}

fn probability(value: f64) -> String {
    if value < 1e-4 { "< 0.0001".into() } else { decimals(value, 4) }
}
