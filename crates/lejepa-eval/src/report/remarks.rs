//! What a reader should know of a set and of single numbers, each said once.

use crate::report::number::shots;
use crate::report::{DatasetReport, Report};
use crate::sets::Shots;

/// A note of some results.
struct Remark<'a> {
    note: &'a str,
    probe: &'a str,
    shots: Shots,
    candidates: Vec<&'a str>,
}

/// The notes of a set and of its results. What is said of all candidates names none.
pub(crate) fn remarks(report: &Report, dataset: &DatasetReport) -> Vec<String> {
    let mut remarks: Vec<Remark<'_>> = Vec::new();
    for result in &dataset.results {
        for note in &result.notes {
            let same = |it: &&mut Remark<'_>| {
                it.note == note && it.probe == result.probe && it.shots == result.shots
            };
            match remarks.iter_mut().find(same) {
                Some(remark) => remark.candidates.push(&result.candidate),
                None => remarks.push(Remark {
                    note,
                    probe: &result.probe,
                    shots: result.shots,
                    candidates: vec![&result.candidate],
                }),
            }
        }
    }
    let sentence = |Remark { note, probe, shots: number, candidates }: Remark<'_>| {
        let names = if candidates.len() < report.candidates.len() {
            format!(", {}", candidates.join(", "))
        } else {
            String::new()
        };
        format!("{probe}, {}{names}: {note}", shots(number))
    };
    dataset.notes.iter().cloned().chain(remarks.into_iter().map(sentence)).collect()
}

/// Which images of a set candidates were trained on, for a place where there are several sets.
pub(crate) fn seen(dataset: &DatasetReport) -> impl Iterator<Item = String> {
    dataset.seen.iter().map(|sentence| format!("{}: {sentence}", dataset.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn what_holds_for_all_candidates_is_said_once() {
        let mut report = samples::galaxies();
        report.datasets[0].results[0].notes.push("odd".into());
        assert_eq!(
            remarks(&report, &report.datasets[0]),
            [
                "logistic, 1 sample per class, ours, ViT-S/8: odd",
                "logistic, 1000 samples per class: 4 classes have fewer images and give all they have",
            ]
        );
    }
}
