//! Plots of bias and variance over condition numbers, theory beside simulation.

mod features;
mod simulation;

pub(crate) use features::feature_figures;
pub(crate) use simulation::simulation_figures;

use lejepa_page::chart::{Axis, EndLabels, LineChart, Scale, Series};
use lejepa_page::html::Text;

use crate::isotropy::table::condition;

/// A chart over condition numbers, both axes in powers of ten.
struct OverConditions<'a> {
    caption: String,
    /// What is measured.
    quantity: &'a str,
    conditions: &'a [f64],
    series: Vec<Series>,
}

impl OverConditions<'_> {
    /// Nothing without a point.
    fn figure(self) -> String {
        if self.series.iter().all(|series| series.points.is_empty()) {
            return String::new();
        }
        let chart = LineChart {
            label: format!("{}: {} over condition number", self.caption, self.quantity),
            x: Axis {
                title: "condition number".into(),
                scale: Scale::Log,
                ticks: self.conditions.iter().map(|&number| (number, condition(number))).collect(),
            },
            y: Axis { title: self.quantity.into(), scale: Scale::Log, ticks: Vec::new() },
            series: self.series,
            end_labels: EndLabels::WhereTheyFit,
        };
        figure_of(&self.caption, &chart)
    }
}

fn figure_of(caption: &str, chart: &LineChart) -> String {
    format!("<figure>\n<figcaption>{}</figcaption>\n{}</figure>\n", Text(caption), chart.to_svg())
}

/// Charts side by side under a sentence that says what lines are.
fn side_by_side(charts: &[String], note: &str) -> String {
    if charts.iter().all(String::is_empty) {
        return String::new();
    }
    format!("<div class=\"figures\">\n{}</div>\n<p class=\"note\">{note}</p>\n", charts.concat())
}
