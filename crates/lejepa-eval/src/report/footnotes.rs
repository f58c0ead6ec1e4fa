//! Protocols are long and many numbers share one: tables refer to them by number.

use crate::report::{ProbeResult, Report};
use crate::sets::Shots;

/// The protocols of a report, numbered from 1 in the order of measuring.
pub(crate) struct Footnotes<'a>(Vec<Footnote<'a>>);

/// One protocol and what was measured by it.
pub(crate) struct Footnote<'a> {
    pub(crate) protocol: &'a str,
    /// Without repetitions.
    pub(crate) probes: Vec<&'a str>,
    /// Without repetitions, rising.
    pub(crate) shots: Vec<Shots>,
    /// Without repetitions.
    pub(crate) candidates: Vec<&'a str>,
}

impl<'a> Footnotes<'a> {
    pub(crate) fn new(report: &'a Report) -> Self {
        let mut notes: Vec<Footnote<'a>> = Vec::new();
        for result in report.datasets.iter().flat_map(|dataset| &dataset.results) {
            match notes.iter_mut().find(|note| note.protocol == result.protocol) {
                Some(note) => note.add(result),
                None => notes.push(Footnote {
                    protocol: &result.protocol,
                    probes: vec![&result.probe],
                    shots: vec![result.shots],
                    candidates: vec![&result.candidate],
                }),
            }
        }
        Self(notes)
    }

    /// The number of a result's protocol.
    pub(crate) fn number(&self, result: &ProbeResult) -> usize {
        self.0.iter().position(|note| note.protocol == result.protocol).map_or(0, |index| index + 1)
    }

    /// All with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Footnote<'a>)> {
        (1..).zip(&self.0)
    }
}

impl<'a> Footnote<'a> {
    fn add(&mut self, result: &'a ProbeResult) {
        for (names, name) in [(&mut self.probes, &result.probe), (&mut self.candidates, &result.candidate)] {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        if let Err(place) = self.shots.binary_search(&result.shots) {
            self.shots.insert(place, result.shots);
        }
    }

    /// Its shots in a cell: `1, 10, all`.
    pub(crate) fn shots(&self) -> String {
        self.shots.iter().map(Shots::to_string).collect::<Vec<_>>().join(", ")
    }
}
