//! Which charts a report has: curves over shots where there are several, bars elsewhere.

use std::fmt::Write;

use lejepa_page::chart::{
    Axis, Bar, BarChart, EndLabels, Group, LineChart, Point, Scale, Series, Style, swatch,
};
use lejepa_page::html::Text;
use lejepa_page::number::count;

use crate::report::score_table::{Origin, PaperRow, ScoreTable, all_shots, probes};
use crate::report::{DatasetReport, Report};
use crate::sets::Shots;

/// All charts with one legend.
pub(super) fn results(report: &Report, tables: &[ScoreTable<'_>]) -> String {
    let mut figures = Vec::new();
    let mut references = false;
    let curves: Vec<&str> =
        probes(report).into_iter().filter(|probe| all_shots(report, Some(probe)).len() > 1).collect();
    for probe in &curves {
        for dataset in &report.datasets {
            let chart = few_shot(report, dataset, probe);
            references |= chart.series.iter().any(|series| series.style == Style::Reference);
            if chart.series.iter().any(|series| series.style != Style::Reference) {
                let caption = format!("{}, {probe}", dataset.name);
                figures.push(figure(&caption, &chart.to_svg()));
            }
        }
    }
    for table in tables.iter().filter(|table| !table.results().any(|it| curves.contains(&it.probe.as_str())))
    {
        figures.push(figure(&table.title, &bars(report, table).to_svg()));
    }
    if figures.is_empty() {
        return String::new();
    }
    let mut html = legend(report);
    if references {
        html.push_str("<li><span class=\"dashed\"></span>the paper, frozen encoders</li>\n");
    }
    let _ = write!(html, "</ul>\n<div class=\"figures\">\n{}</div>\n", figures.concat());
    html.push_str("<p class=\"note\">Accuracy in %; error bars are 95 % intervals.</p>\n");
    html
}

fn figure(caption: &str, svg: &str) -> String {
    format!("<figure>\n<figcaption>{}</figcaption>\n{svg}</figure>\n", Text(caption))
}

/// Names beside the colours and markers of all charts: a list that is still open.
fn legend(report: &Report) -> String {
    let mut html = String::from("<ul class=\"legend\">\n");
    for (index, candidate) in report.candidates.iter().enumerate() {
        let _ = writeln!(html, "<li>{}{}</li>", swatch(index), Text(&candidate.name));
    }
    html
}

fn few_shot(report: &Report, dataset: &DatasetReport, probe: &str) -> LineChart {
    let shots = all_shots(report, Some(probe));
    let per_class = dataset.train as f64 / dataset.classes.len().max(1) as f64;
    let all = place_of_all(&shots, per_class);
    let place = |shots: Shots| match shots {
        Shots::Each(number) => number as f64,
        Shots::All => all,
    };
    let of_probe = || dataset.results.iter().filter(|result| result.probe == probe);
    let mut series = references(dataset, |other| shots.contains(&other).then(|| place(other)));
    for (index, candidate) in report.candidates.iter().enumerate() {
        let points = of_probe().filter(|result| result.candidate == candidate.name).map(|result| Point {
            x: place(result.shots),
            y: 100. * result.accuracy,
            range: Some([100. * result.interval.low, 100. * result.interval.high]),
        });
        let points = in_order(points);
        if !points.is_empty() {
            series.push(Series { name: candidate.name.clone(), style: Style::Marked(index), points });
        }
    }
    let title = match shots.last() {
        Some(Shots::All) => {
            format!("samples per class (all: {} on average)", count(per_class.round() as usize))
        }
        _ => "samples per class".into(),
    };
    LineChart {
        label: format!("Accuracy over samples per class on {} with {probe}", dataset.name),
        x: Axis {
            title,
            scale: Scale::Log,
            ticks: shots.iter().map(|&shots| (place(shots), shots.to_string())).collect(),
        },
        y: Axis::linear("accuracy in %"),
        series,
        end_labels: if report.datasets.len() > 1 { EndLabels::None } else { EndLabels::WhereTheyFit },
    }
}

/// The paper's frozen encoders with at least two numbers that have a place: a single one is no line.
fn references(dataset: &DatasetReport, place: impl Fn(Shots) -> Option<f64>) -> Vec<Series> {
    let published = PaperRow::of(dataset);
    let mut encoders: Vec<PaperRow<'_>> = Vec::new();
    for &(row, _) in published.iter().filter(|(row, _)| row.is_frozen()) {
        if !encoders.contains(&row) {
            encoders.push(row);
        }
    }
    let series = encoders.into_iter().map(|row| {
        let own = published.iter().filter(|(other, _)| *other == row);
        let points =
            own.filter_map(|(_, it)| Some(Point { x: place(it.shots)?, y: 100. * it.accuracy, range: None }));
        let name = format!("{}, {}", row.method, row.encoder());
        Series { name, style: Style::Reference, points: in_order(points) }
    });
    series.filter(|series| series.points.len() > 1).collect()
}

/// Where the whole training split stands among samples per class: at its mean number of them, but never so
/// near to the largest number that the two would be taken for one.
fn place_of_all(shots: &[Shots], per_class: f64) -> f64 {
    let numbers = shots.iter().filter_map(|shots| match shots {
        Shots::Each(number) => Some(*number as f64),
        Shots::All => None,
    });
    let (low, high) = numbers.fold((f64::INFINITY, 1f64), |(low, high), it| (low.min(it), high.max(it)));
    let span = (high / low.min(high)).log10();
    per_class.max(high * 10f64.powf((0.15 * span).max(0.3)))
}

fn in_order(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut points: Vec<Point> = points.collect();
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    points
}

fn bars(report: &Report, table: &ScoreTable<'_>) -> BarChart {
    let group = |(index, name): (usize, &str)| {
        let bars = table.rows.iter().filter_map(|row| {
            let (Origin::Candidate(candidate), Some(result)) = (row.origin, row.cells.get(index)?.result())
            else {
                return None;
            };
            let series = report.candidates.iter().position(|it| it.name == candidate.name)?;
            let range = Some([result.interval.low, result.interval.high]);
            Some(Bar { name: candidate.name.clone(), series, value: result.accuracy, range })
        });
        Group { name: name.into(), bars: bars.collect() }
    };
    let columns = table.columns.iter().map(|column| column.title.as_str());
    let groups = columns.enumerate().map(group).filter(|group| !group.bars.is_empty()).collect();
    BarChart { label: format!("Accuracy: {}", table.title), groups }
}
