//! Simulated features: what was measured beside what theory says.

use lejepa_page::number::{count, significant};

use super::{Detail, PlainTable, condition, optional, verdicts};
use crate::isotropy::{
    Demonstration, DemonstrationReport, LinearDemonstration, LinearPoint, Measurement, RidgeBias,
    SmoothDemonstration, SmoothMeasurement, SmoothPoint,
};

/// What was simulated, in two sentences.
pub(crate) fn about_simulation(report: &DemonstrationReport) -> String {
    let DemonstrationReport { settings, linear: _, smooth: _, verdicts: _ } = report;
    // What is not said here are columns of the tables.
    let Demonstration { seed, conditions: _, linear, smooth } = settings;
    let LinearDemonstration { dim, samples, draws, noise, lambdas: _ } = linear;
    let for_lines = format!(
        "OLS and ridge: linear functions of {dim} Gaussian features, {} draws of {samples} samples, noise {}.",
        count(*draws),
        significant(*noise)
    );
    let SmoothDemonstration { dim, samples, draws, queries, tasks, waves, length, noise, neighbourhoods: _ } =
        smooth;
    format!(
        "{for_lines} The others: {tasks} random functions of {waves} waves and length {} over {dim} Gaussian \
         features, {} draws of {samples} samples, {queries} points, noise {}. Total variance is the same at \
         every condition number, largest over smallest variance. Seed {seed}.",
        significant(*length),
        count(*draws),
        significant(*noise)
    )
}

/// All tables of a simulation.
pub(crate) fn simulation_tables(report: &DemonstrationReport) -> Vec<PlainTable> {
    let DemonstrationReport { settings: _, linear, smooth, verdicts } = report;
    let mut tables = vec![least_squares(linear), ridge(linear)];
    tables.extend(by_condition(smooth));
    tables.push(measurements(smooth));
    tables.retain(|table| !table.rows.is_empty());
    tables.extend(verdicts::table("What the paper says, on simulated features", verdicts));
    tables
}

fn least_squares(points: &[LinearPoint]) -> PlainTable {
    let row = |point: &LinearPoint| {
        let LinearPoint {
            condition: number,
            coefficient_variance,
            standard_error,
            expected_coefficient_variance,
            prediction_variance,
            expected_prediction_variance,
            // A table of its own.
            ridge: _,
        } = point;
        vec![
            condition(*number),
            format!("{} ± {}", significant(*coefficient_variance), significant(*standard_error)),
            significant(*expected_coefficient_variance),
            significant(*prediction_variance),
            significant(*expected_prediction_variance),
        ]
    };
    let titles = ["condition", "coefficients", "theory", "predictions", "theory"];
    PlainTable {
        title: "Simulated: variance of OLS (lemma 2)".into(),
        caption:
            "Of its coefficients, mean ± standard error, and of its predictions, beside what theory says."
                .into(),
        detail: Detail::Main,
        names: 0,
        header: titles.map(str::to_owned).to_vec(),
        rows: points.iter().map(row).collect(),
    }
}

fn ridge(points: &[LinearPoint]) -> PlainTable {
    let row = |(number, bias): (f64, &RidgeBias)| {
        let RidgeBias { lambda, worst, average, fixed_design_worst, fixed_design_average } = bias;
        vec![
            significant(*lambda),
            condition(number),
            significant(*worst),
            significant(*fixed_design_worst),
            significant(*average),
            significant(*fixed_design_average),
        ]
    };
    let mut rows: Vec<(f64, &RidgeBias)> =
        points.iter().flat_map(|point| point.ridge.iter().map(move |bias| (point.condition, bias))).collect();
    rows.sort_by(|one, other| one.1.lambda.total_cmp(&other.1.lambda));
    let titles = ["lambda", "condition", "narrowest direction", "theory", "all directions", "theory"];
    PlainTable {
        title: "Simulated: squared bias of ridge (lemma 1)".into(),
        caption:
            "For a task along the narrowest direction, and the mean over all directions; theory takes the \
                  covariance of the samples for that of the law."
                .into(),
        detail: Detail::Main,
        names: 0,
        header: titles.map(str::to_owned).to_vec(),
        rows: rows.into_iter().map(row).collect(),
    }
}

/// What theory says of a squared bias: with endless samples where that is known, else to first order.
pub(crate) fn theory(measurement: &SmoothMeasurement) -> Option<f64> {
    let SmoothMeasurement { measured: _, leading_order, limit } = measurement;
    limit.or(*leading_order)
}

/// Probes against condition numbers, once for bias and once for variance.
fn by_condition(points: &[SmoothPoint]) -> Vec<PlainTable> {
    let bias = |measurement: &SmoothMeasurement| {
        let measured = significant(measurement.measured.corrected_squared_bias);
        theory(measurement)
            .map_or_else(|| measured.clone(), |theory| format!("{measured} ({})", significant(theory)))
    };
    let variance = |measurement: &SmoothMeasurement| significant(measurement.measured.variance);
    let table = |title: &str, caption: &str, cell: &dyn Fn(&SmoothMeasurement) -> String| {
        let conditions = points.iter().map(|point| format!("condition {}", condition(point.condition)));
        let count = points.first().map_or(0, |point| point.measurements.len());
        let row = |index: usize| {
            let entries: Vec<&SmoothMeasurement> =
                points.iter().filter_map(|point| point.measurements.get(index)).collect();
            let title = entries.first().map(|entry| entry.measured.probe.title(entry.measured.setting));
            title.into_iter().chain(entries.into_iter().map(cell)).collect()
        };
        PlainTable {
            title: title.into(),
            caption: caption.into(),
            detail: Detail::Main,
            names: 1,
            header: ["probe".to_owned()].into_iter().chain(conditions).collect(),
            rows: (0..count).map(row).collect(),
        }
    };
    vec![
        table(
            "Simulated: squared bias of k-NN, radius k-NN and kernel (theorem 1)",
            "In brackets what theory says: with endless samples for the kernel, to first order in the radius \
             for radius k-NN. Theory is about small radii that hold samples.",
            &bias,
        ),
        table("Simulated: variance of k-NN, radius k-NN and kernel", "", &variance),
    ]
}

fn measurements(points: &[SmoothPoint]) -> PlainTable {
    let mut rows = Vec::new();
    for SmoothPoint { condition: number, fisher_information, measurements } in points {
        for SmoothMeasurement { measured, leading_order, limit } in measurements {
            let Measurement {
                probe,
                setting,
                squared_bias,
                corrected_squared_bias,
                variance,
                mean_squared_error,
                // Functions have no classes, and these probes no coefficients.
                accuracy: _,
                alone,
                coefficient_variance: _,
            } = measured;
            rows.push(vec![
                probe.title(*setting),
                condition(*number),
                significant(*fisher_information),
                significant(*squared_bias),
                significant(*corrected_squared_bias),
                optional(*leading_order),
                optional(*limit),
                significant(*variance),
                significant(*mean_squared_error),
                optional(*alone),
            ]);
        }
    }
    let titles = [
        "probe",
        "condition",
        "Fisher information",
        "squared bias",
        "corrected",
        "first order",
        "endless samples",
        "variance",
        "squared error",
        "share alone",
    ];
    PlainTable {
        title: "Simulated: k-NN, radius k-NN and kernel, all numbers".into(),
        caption: "Corrected: without what a finite number of draws adds. Alone: queries without a neighbour \
                  within the radius, which take their nearest."
            .into(),
        detail: Detail::More,
        names: 1,
        header: titles.map(str::to_owned).to_vec(),
        rows,
    }
}
