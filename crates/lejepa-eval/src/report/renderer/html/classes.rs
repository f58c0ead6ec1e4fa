//! What happens within classes: their accuracies, and what is taken for what.

use std::fmt::Write;

use lejepa_page::chart::{Bar, BarChart, Group, HeatMap};
use lejepa_page::html::{Align, Table, Text, figure, words};
use lejepa_page::number::{count, counted, percent};

use crate::report::{DatasetReport, ProbeResult, Report, number};

/// Classes that a bar chart shows; of more, half of it from each end.
const BARS: usize = 40;

/// Classes up to which a confusion matrix is drawn.
const MATRIX: usize = 30;

/// Lines of the table of confusions.
const CONFUSIONS: usize = 20;

/// The folded parts about classes, none before the first result.
pub(super) fn sections(report: &Report, dataset: &DatasetReport) -> String {
    let Some(best) = best(dataset) else { return String::new() };
    let place = format!("{}, {}, {}", best.candidate, best.probe, number::shots(best.shots));
    let series = report.candidates.iter().position(|candidate| candidate.name == best.candidate).unwrap_or(0);
    let mut html = String::new();
    if best.class_accuracies.iter().any(Option::is_some) {
        let _ = write!(
            html,
            "<details>\n<summary>Accuracy by class</summary>\n\
             <figure>\n<figcaption>{}</figcaption>\n{}</figure>\n\
             {}</details>\n",
            Text(&place),
            bars(dataset, best, series).to_svg(),
            table(dataset)
        );
    }
    if !best.confusion.is_empty() {
        let _ = write!(html, "<details>\n<summary>Confusions</summary>\n");
        if dataset.classes.len() <= MATRIX {
            let label = format!("Confusion matrix of {} for {place}", dataset.name);
            let map = HeatMap { label, classes: &dataset.classes, counts: &best.confusion };
            let _ = write!(
                html,
                "<figure class=\"scroll\" tabindex=\"0\">\n\
                 <figcaption>{}: % of the test images of a class</figcaption>\n\
                 {}</figure>\n",
                Text(&place),
                map.to_svg()
            );
        }
        html.push_str(&confusions(dataset, best, &place));
        html.push_str("</details>\n");
    }
    html
}

/// The most accurate result with the most shots.
fn best(dataset: &DatasetReport) -> Option<&ProbeResult> {
    dataset.results.iter().max_by(|one, other| {
        one.shots.cmp(&other.shots).then_with(|| one.accuracy.total_cmp(&other.accuracy))
    })
}

fn bars(dataset: &DatasetReport, result: &ProbeResult, series: usize) -> BarChart {
    let mut classes: Vec<(usize, f64)> =
        result.class_accuracies.iter().enumerate().filter_map(|(class, it)| Some((class, (*it)?))).collect();
    classes.sort_by(|one, other| other.1.total_cmp(&one.1));
    let group = |&(class, value): &(usize, f64)| {
        let bar = Bar { name: result.candidate.clone(), series, value, range: None };
        Group { name: class_name(dataset, class), bars: vec![bar] }
    };
    let label = format!("Accuracy by class on {}", dataset.name);
    let groups = if classes.len() <= BARS {
        classes.iter().map(group).collect()
    } else {
        let (best, rest) = classes.split_at(BARS / 2);
        let (between, worst) = rest.split_at(rest.len() - BARS / 2);
        let gap =
            Group { name: format!("… {} between …", counted(between.len(), "class")), bars: Vec::new() };
        best.iter().map(group).chain([gap]).chain(worst.iter().map(group)).collect()
    };
    BarChart { label, groups }
}

/// Every class against every result.
fn table(dataset: &DatasetReport) -> String {
    let mut columns = vec![("class".to_owned(), Align::Left)];
    for result in &dataset.results {
        let title = format!(
            "<span class=\"head\">{}</span><br><small>{}, {}</small>",
            Text(&result.candidate),
            Text(&result.probe),
            result.shots
        );
        columns.push((title, Align::Right));
    }
    let caption = "Accuracy within classes in %, over all draws; below the candidate: probe and shots.";
    let mut table = Table::with_headers(&format!("Accuracy by class on {}", dataset.name), caption, &columns);
    let classes = dataset.results.iter().map(|result| result.class_accuracies.len()).max().unwrap_or(0);
    for class in 0..classes {
        let accuracy = |result: &ProbeResult| {
            let accuracy = result.class_accuracies.get(class).copied().flatten();
            figure(accuracy.map_or_else(|| "–".into(), percent))
        };
        let name = words(&class_name(dataset, class));
        table.row(&[name].into_iter().chain(dataset.results.iter().map(accuracy)).collect::<Vec<_>>());
    }
    table.finish()
}

/// The most frequent mistakes.
fn confusions(dataset: &DatasetReport, result: &ProbeResult, place: &str) -> String {
    let mut mistakes: Vec<[usize; 3]> =
        result.confusion.iter().copied().filter(|[class, predicted, _]| class != predicted).collect();
    mistakes.sort_by_key(|&[.., images]| std::cmp::Reverse(images));
    let columns = [
        ("class", Align::Left),
        ("taken for", Align::Left),
        ("test images", Align::Right),
        ("% of the class", Align::Right),
    ];
    let caption = format!(
        "The most frequent of {}; {}, summed over {}. All are in <code>confusion.csv</code>.",
        counted(mistakes.len(), "confusion"),
        Text(place),
        counted(result.draws.len(), "draw")
    );
    let mut table = Table::new(&format!("Confusions on {}", dataset.name), &caption, &columns);
    for &[class, predicted, images] in mistakes.iter().take(CONFUSIONS) {
        let all: usize = result.confusion.iter().filter(|row| row[0] == class).map(|row| row[2]).sum();
        table.row(&[
            words(&class_name(dataset, class)),
            words(&class_name(dataset, predicted)),
            figure(count(images)),
            figure(percent(images as f64 / all.max(1) as f64)),
        ]);
    }
    table.finish()
}

/// A label without a name is its number.
fn class_name(dataset: &DatasetReport, class: usize) -> String {
    dataset.classes.get(class).cloned().unwrap_or_else(|| class.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn of_many_classes_the_best_and_the_worst_are_drawn() {
        let report = samples::probes();
        let chart = bars(&report.datasets[0], best(&report.datasets[0]).unwrap(), 0);
        assert_eq!(chart.groups.len(), BARS + 1);
        assert_eq!(chart.groups[BARS / 2].name, "… 62 classes between …");
        let values: Vec<f64> =
            chart.groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value).collect();
        assert!(values.is_sorted_by(|one, other| one >= other));
    }

    #[test]
    fn a_matrix_is_drawn_of_few_classes_only() {
        let [few, many] =
            [samples::quick(), samples::probes()].map(|report| sections(&report, &report.datasets[0]));
        assert!(few.contains("class=\"heat\"") && !many.contains("class=\"heat\""));
        assert!(many.contains("taken for"));
    }
}
