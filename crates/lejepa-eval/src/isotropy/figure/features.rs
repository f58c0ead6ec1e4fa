//! Features of a set, stretched on purpose.

use lejepa_page::chart::{Axis, EndLabels, LineChart, Point, Scale, Series, Style};

use super::{OverConditions, figure_of, side_by_side};
use crate::isotropy::table::reference_settings;
use crate::isotropy::{Alignment, Measurement, ProbeKind, Shape, VariantReport};
use crate::report::CandidateIsotropy;

pub(crate) fn feature_figures(of: &CandidateIsotropy) -> String {
    let variants = &of.found.variants;
    let mut charts = vec![spectrum(of)];
    for (probe, setting) in reference_settings(variants) {
        let title = probe.title(setting);
        let own = |it: &&Measurement| it.probe == probe && it.setting == setting;
        for (quantity, value) in QUANTITIES {
            let series = series(variants, &|variant| variant.measurements.iter().find(own).map(value));
            charts.push(over_conditions(format!("{title}: {quantity}"), quantity, variants, series));
        }
    }
    let least_squares = |variant: &VariantReport| {
        let own = variant.measurements.iter().find(|it| it.probe == ProbeKind::Ridge && it.setting == 0.);
        own.and_then(|it| it.coefficient_variance)
    };
    let (caption, quantity) = ("OLS: variance of the coefficients".into(), "variance");
    charts.push(over_conditions(caption, quantity, variants, series(variants, &least_squares)));
    side_by_side(
        &charts,
        "Condition number 1: whitened. Random, principal and reversed: the directions along which whitened \
         features are stretched. As they are: the features themselves, up to a common factor.",
    )
}

type Quantity = (&'static str, fn(&Measurement) -> f64);
const QUANTITIES: [Quantity; 2] =
    [("squared bias", |it| it.corrected_squared_bias), ("variance", |it| it.variance)];

fn over_conditions(
    caption: String,
    quantity: &str,
    variants: &[VariantReport],
    series: Vec<Series>,
) -> String {
    let stretched = variants.iter().filter(|it| !matches!(it.shape, Shape::AsTheyAre));
    let mut conditions: Vec<f64> = stretched.map(|it| it.condition).collect();
    conditions.sort_by(f64::total_cmp);
    conditions.dedup_by(|one, other| (*one / *other - 1.).abs() < 1e-6);
    OverConditions { caption, quantity, conditions: &conditions, series }.figure()
}

/// A line per alignment from the whitened features on, and a point for the features as they are.
fn series(variants: &[VariantReport], value: &dyn Fn(&VariantReport) -> Option<f64>) -> Vec<Series> {
    let point = |variant: &VariantReport| {
        Some(Point { x: variant.condition.max(1.), y: value(variant)?, range: None })
    };
    let along = |alignment: Option<Alignment>| {
        let own = |variant: &&VariantReport| match (variant.shape, alignment) {
            (Shape::Whitened, Some(_)) | (Shape::AsTheyAre, None) => true,
            (Shape::Anisotropic { alignment, .. }, Some(own)) => alignment == own,
            _ => false,
        };
        let mut points: Vec<Point> = variants.iter().filter(own).filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        points
    };
    let lines = [
        ("random", Some(Alignment::Random)),
        ("principal", Some(Alignment::Principal)),
        ("reversed", Some(Alignment::Reversed)),
        ("as they are", None),
    ];
    let series = lines.into_iter().enumerate().map(|(index, (name, alignment))| Series {
        name: name.into(),
        style: Style::Marked(index),
        points: along(alignment),
    });
    // A line that was not asked for has the whitened point alone.
    series.filter(|series| series.points.len() > 1 || series.name == "as they are").collect()
}

fn spectrum(of: &CandidateIsotropy) -> String {
    let spectrum = &of.found.features.spectrum;
    let points: Vec<Point> =
        (1..).zip(spectrum).map(|(x, &y): (u32, _)| Point { x: f64::from(x), y, range: None }).collect();
    if points.is_empty() {
        return String::new();
    }
    let chart = LineChart {
        label: format!("Variances of {} along principal directions", of.candidate),
        x: Axis::linear("principal direction"),
        y: Axis { title: "variance over mean variance".into(), scale: Scale::Log, ticks: Vec::new() },
        series: vec![Series { name: of.candidate.clone(), style: Style::Marked(0), points }],
        end_labels: EndLabels::None,
    };
    figure_of("Spectrum of the features as they are", &chart)
}
