//! Theory beside simulation.

use lejepa_page::chart::{Point, Series, Style};
use lejepa_page::number::significant;

use super::{OverConditions, side_by_side};
use crate::isotropy::table::theory;
use crate::isotropy::{
    DemonstrationReport, LinearPoint, ProbeKind, RidgeBias, SmoothMeasurement, SmoothPoint,
};

/// Standard errors of a bar above and below a mean.
const ERRORS: f64 = 2.;

pub(super) fn figures_of(report: &DemonstrationReport) -> Vec<String> {
    let mut charts = vec![least_squares(&report.linear)];
    charts.extend(ridge(&report.linear));
    for probe in ProbeKind::ALL {
        charts.extend(smooth(&report.smooth, probe));
    }
    charts
}

pub(crate) fn simulation_figures(report: &DemonstrationReport) -> String {
    side_by_side(
        &figures_of(report),
        "Markers: simulated, bars of two standard errors where they are known. Dashed: theory, with the radius \
         or bandwidth that has the same colour. No theory is known for a number of neighbours, nor for the \
         variance of radius k-NN and kernel.",
    )
}

fn point(x: f64, y: f64) -> Point {
    Point { x, y, range: None }
}

/// A measured line over a dashed one.
fn pair(index: usize, name: String, measured: Vec<Point>, theory: Vec<Point>) -> Vec<Series> {
    let mut series = Vec::new();
    if theory.len() > 1 {
        let name = format!("{name}, theory");
        series.push(Series { name, style: Style::Theory(index), points: theory });
    }
    series.push(Series { name, style: Style::Marked(index), points: measured });
    series
}

fn least_squares(points: &[LinearPoint]) -> String {
    let conditions: Vec<f64> = points.iter().map(|point| point.condition).collect();
    let coefficients = points.iter().map(|it| {
        let (y, half) = (it.coefficient_variance, ERRORS * it.standard_error);
        Point { x: it.condition, y, range: Some([y - half, y + half]) }
    });
    let of =
        |value: fn(&LinearPoint) -> f64| points.iter().map(|it| point(it.condition, value(it))).collect();
    let mut series =
        pair(0, "coefficients".into(), coefficients.collect(), of(|it| it.expected_coefficient_variance));
    series.extend(pair(
        1,
        "predictions".into(),
        of(|it| it.prediction_variance),
        of(|it| it.expected_prediction_variance),
    ));
    let caption = "OLS (lemma 2)".into();
    OverConditions { caption, quantity: "variance", conditions: &conditions, series }.figure()
}

fn ridge(points: &[LinearPoint]) -> [String; 2] {
    let conditions: Vec<f64> = points.iter().map(|point| point.condition).collect();
    let lambdas: Vec<f64> =
        points.first().map_or(Vec::new(), |point| point.ridge.iter().map(|bias| bias.lambda).collect());
    let chart = |caption: &str, measured: fn(&RidgeBias) -> f64, theory: fn(&RidgeBias) -> f64| {
        let series = lambdas.iter().enumerate().flat_map(|(index, lambda)| {
            let of = |value: fn(&RidgeBias) -> f64| {
                let found =
                    points.iter().filter_map(|it| Some(point(it.condition, value(it.ridge.get(index)?))));
                found.collect()
            };
            pair(index, format!("lambda {}", significant(*lambda)), of(measured), of(theory))
        });
        let (caption, series) = (caption.into(), series.collect());
        OverConditions { caption, quantity: "squared bias", conditions: &conditions, series }.figure()
    };
    [
        chart("Ridge, narrowest direction (lemma 1)", |it| it.worst, |it| it.fixed_design_worst),
        chart("Ridge, mean over directions (lemma 1)", |it| it.average, |it| it.fixed_design_average),
    ]
}

/// Bias and variance of one probe at all its settings.
fn smooth(points: &[SmoothPoint], probe: ProbeKind) -> Vec<String> {
    let conditions: Vec<f64> = points.iter().map(|point| point.condition).collect();
    let mut settings: Vec<f64> = Vec::new();
    for measurement in points.first().map_or(&[][..], |point| &point.measurements) {
        if measurement.measured.probe == probe {
            settings.push(measurement.measured.setting);
        }
    }
    let (title, unit) = match probe {
        ProbeKind::Ridge => ("Ridge", "lambda"),
        ProbeKind::Knn => ("k-NN", "k ="),
        ProbeKind::Radius => ("Radius k-NN (theorem 1)", "radius"),
        ProbeKind::Kernel => ("Kernel (theorem 1)", "width"),
    };
    let of = |setting: f64, value: &dyn Fn(&SmoothMeasurement) -> Option<f64>| -> Vec<Point> {
        let found = |it: &SmoothPoint| {
            let mut same = it.measurements.iter();
            let found = same.find(|it| it.measured.probe == probe && it.measured.setting == setting)?;
            Some(point(it.condition, value(found)?))
        };
        points.iter().filter_map(found).collect()
    };
    let chart = |quantity,
                 measured: &dyn Fn(&SmoothMeasurement) -> Option<f64>,
                 expected: &dyn Fn(&SmoothMeasurement) -> Option<f64>| {
        let series = settings.iter().enumerate().flat_map(|(index, &setting)| {
            let name = format!("{unit} {}", significant(setting));
            pair(index, name, of(setting, measured), of(setting, expected))
        });
        let caption = format!("{title}: {quantity}");
        OverConditions { caption, quantity, conditions: &conditions, series: series.collect() }.figure()
    };
    if settings.is_empty() {
        return Vec::new();
    }
    vec![
        chart("squared bias", &|it| Some(it.measured.corrected_squared_bias), &theory),
        chart("variance", &|it| Some(it.measured.variance), &|_| None),
    ]
}
