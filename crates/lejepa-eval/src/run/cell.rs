//! One cell of a table: what one probe says of one kind of features with one number of shots.

use lejepa_probe::{Chosen, Confusion, Probe};
use serde::{Deserialize, Serialize};

use crate::report::{Comparison, DrawResult, PairedTest, ProbeResult};
use crate::run::statistics::{TwoWay, deviation, mcnemar, mean, paired_t};
use crate::sets::Shots;

/// All draws, as they are kept beside the report: an evaluation that goes on finds them there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) draws: Vec<CellDraw>,
}

/// A draw with what was predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellDraw {
    pub(crate) result: DrawResult,
    /// The class of every test image that could be read.
    pub(crate) predictions: Vec<usize>,
    /// Queries of the radius probe without neighbours.
    pub(crate) alone: usize,
}

/// What a cell is of.
pub(crate) struct Heading<'a> {
    pub(crate) candidate: &'a str,
    /// Of its column: the probe, and what it looks at if that is not the embedding.
    pub(crate) title: &'a str,
    pub(crate) probe: &'a Probe,
    pub(crate) shots: Shots,
    /// The kind of features in the protocol string.
    pub(crate) feature: &'a str,
    /// Pixels of an image's short side before the crop, if not what the encoder says itself.
    pub(crate) resize: Option<usize>,
    /// What of the data is learnt and asked, in the protocol string; empty as usual.
    pub(crate) splits: &'a str,
    /// Training images of every class.
    pub(crate) sizes: &'a [usize],
    /// The class of every test image.
    pub(crate) labels: &'a [usize],
}

/// The highest scores among which a label counts.
pub(crate) const TOP: usize = 5;

impl Cell {
    fn accuracies(&self) -> Vec<f64> {
        self.draws.iter().map(|draw| draw.result.accuracy).collect()
    }

    /// Of every draw whether it gets each test image right, as 1 or 0.
    fn right(&self, labels: &[usize]) -> Vec<Vec<f64>> {
        let right = |(predicted, label): (&usize, &usize)| f64::from(u8::from(predicted == label));
        self.draws.iter().map(|draw| draw.predictions.iter().zip(labels).map(right).collect()).collect()
    }

    /// The cell as the report has it.
    pub(crate) fn result(&self, heading: &Heading<'_>) -> ProbeResult {
        let classes = heading.sizes.len();
        let accuracies = self.accuracies();
        let mut confusion = Confusion::default();
        self.draws.iter().for_each(|draw| confusion.add(&draw.predictions, heading.labels));
        let class_accuracies = confusion.class_accuracies(classes);
        let top5: Vec<f64> = self.draws.iter().map(|draw| draw.result.top5).collect();
        ProbeResult {
            candidate: heading.candidate.into(),
            probe: heading.title.into(),
            shots: heading.shots,
            protocol: self.protocol(heading),
            accuracy: mean(&accuracies),
            deviation: deviation(&accuracies),
            interval: TwoWay::new(&self.right(heading.labels)).interval(),
            class_mean: mean(&class_accuracies.iter().copied().flatten().collect::<Vec<_>>()),
            top5: (classes > TOP).then(|| mean(&top5)),
            class_accuracies,
            confusion: confusion.counts(),
            draws: self.draws.iter().map(|draw| draw.result.clone()).collect(),
            notes: self.notes(heading),
        }
    }

    /// `logistic:scaled:folds5:cls:C0.1,1:10-shot:3draws`: what was chosen follows the probe's own string.
    fn protocol(&self, heading: &Heading<'_>) -> String {
        let first = self.draws.first().and_then(|draw| draw.result.choice.as_ref());
        let mut protocol = heading.probe.protocol(heading.feature, first);
        if let Some(side) = heading.resize {
            protocol.push_str(&format!(":resize{side}"));
        }
        let mut chosen: Vec<String> = Vec::new();
        for choice in self.draws.iter().filter_map(|draw| draw.result.choice) {
            let value = rounded(choice.value);
            if !chosen.contains(&value) {
                chosen.push(value);
            }
        }
        if !chosen.is_empty() {
            protocol.push_str(&format!(":{}{}", heading.probe.setting(), chosen.join(",")));
        }
        if let Shots::Each(count) = heading.shots {
            protocol.push_str(&format!(":{count}-shot:{}draws", self.draws.len()));
        }
        if !heading.splits.is_empty() {
            protocol.push_str(&format!(":{}", heading.splits));
        }
        protocol
    }

    fn notes(&self, heading: &Heading<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        let classes = heading.sizes.len();
        if let Shots::Each(count) = heading.shots {
            let scarce = heading.sizes.iter().filter(|&&size| size < count).count();
            if heading.sizes.iter().all(|&size| size <= count) {
                notes.push(format!("no class has more than {count} training images: this is all of them"));
            } else if scarce > 0 {
                notes.push(format!(
                    "{scarce} of {classes} classes have fewer than {count} training images and give all they have"
                ));
            }
        }
        let undecided =
            |draw: &&CellDraw| draw.result.choice.is_some_and(|choice| choice.by == Chosen::Middle);
        if self.draws.iter().filter(undecided).count() > 0 {
            let setting = heading.probe.setting();
            notes.push(format!("nothing could be held out to choose {setting}: the middle one was taken"));
        }
        let alone: usize = self.draws.iter().map(|draw| draw.alone).sum();
        if alone > 0 {
            let asked = heading.labels.len() * self.draws.len();
            notes.push(format!(
                "{alone} of {asked} queries had no neighbour within the radius and took the nearest"
            ));
        }
        notes
    }

    /// How this cell differs from that of another candidate on the same draws and test images. Student's t
    /// over both if there are several draws, else McNemar's test.
    pub(crate) fn compare(&self, own: &Heading<'_>, other: (&Self, &str)) -> Comparison {
        let differences: Vec<f64> = self
            .accuracies()
            .iter()
            .zip(other.0.accuracies())
            .map(|(first, second)| first - second)
            .collect();
        let pairs = self.right(own.labels).into_iter().zip(other.0.right(own.labels));
        let pairs = pairs.map(|(first, second)| first.iter().zip(second).map(|(a, b)| a - b).collect());
        let pairs: Vec<Vec<f64>> = pairs.collect();
        let several = (pairs.len() > 1).then(|| TwoWay::new(&pairs).p()).flatten();
        let (p, test) = match several {
            // Of few draws the variance among them is known badly: what they say by themselves is the least.
            Some(p) => (p.max(paired_t(&differences).unwrap_or(0.)), PairedTest::TwoWayT),
            None => (self.mcnemar(other.0, own.labels), PairedTest::McNemar),
        };
        Comparison {
            probe: own.title.into(),
            shots: own.shots,
            first: own.candidate.into(),
            second: other.1.into(),
            difference: mean(&differences),
            p,
            test,
        }
    }

    fn mcnemar(&self, other: &Self, labels: &[usize]) -> f64 {
        let (mut only_first, mut only_second) = (0, 0);
        if let (Some(first), Some(second)) = (self.draws.first(), other.draws.first()) {
            let both = first.predictions.iter().zip(&second.predictions).zip(labels);
            for ((first, second), label) in both {
                only_first += usize::from(first == label && second != label);
                only_second += usize::from(second == label && first != label);
            }
        }
        mcnemar(only_first, only_second)
    }
}

/// Three significant digits: `0.316`, `1e-6`, `178000`.
fn rounded(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    if (1e-4..1e7).contains(&rounded.abs()) { rounded.to_string() } else { format!("{rounded:e}") }
}

#[cfg(test)]
mod tests {
    use lejepa_probe::{Choice, Chosen};

    use super::*;
    use lejepa_probe::Knn;

    const LABELS: [usize; 4] = [0, 0, 1, 2];

    fn draw(number: usize, predictions: [usize; 4]) -> CellDraw {
        let right = predictions.iter().zip(LABELS).filter(|(predicted, label)| **predicted == *label).count();
        let result = DrawResult {
            draw: number,
            train: 3,
            accuracy: right as f64 / 4.,
            top5: 1.,
            choice: Some(Choice { value: 10f64.powf(-0.5), held_out: 0, by: Chosen::Middle }),
            seconds: 0.,
        };
        CellDraw { result, predictions: predictions.to_vec(), alone: 1 }
    }

    fn heading<'a>(probe: &'a Probe, shots: Shots) -> Heading<'a> {
        let sizes = &[5, 5, 1];
        let (candidate, title, splits) = ("encoder", "k-NN", "train+val");
        let feature = "cls";
        Heading { candidate, title, probe, shots, feature, resize: None, splits, sizes, labels: &LABELS }
    }

    #[test]
    fn draws_are_summed_up() {
        let probe = Probe::Knn(Knn { k: 20, temperature: 0.07 });
        let cell = Cell { draws: vec![draw(0, [0, 0, 1, 2]), draw(1, [0, 1, 1, 1])] };
        let result = cell.result(&heading(&probe, Shots::Each(2)));
        assert_eq!((result.accuracy, result.class_mean, result.top5), (0.75, 0.75, None));
        assert_eq!(result.class_accuracies, [Some(0.75), Some(1.), Some(0.5)]);
        assert_eq!(result.confusion, [[0, 0, 3], [0, 1, 1], [1, 1, 2], [2, 1, 1], [2, 2, 1]]);
        assert_eq!(result.protocol, "knn:k20:T0.07:cls:l2:k0.316:2-shot:2draws:train+val");
        let notes = result.notes.join("; ");
        assert!(notes.contains("1 of 3 classes have fewer than 2 training images"), "{notes}");
        assert!(notes.contains("held out") && notes.contains("2 of 8 queries"), "{notes}");
    }

    #[test]
    fn candidates_are_compared_on_the_same_draws() {
        let probe = Probe::Knn(Knn { k: 20, temperature: 0.07 });
        let better = Cell { draws: vec![draw(0, LABELS), draw(1, [0, 0, 1, 1]), draw(2, LABELS)] };
        let worse = Cell { draws: vec![draw(0, [1; 4]), draw(1, [1; 4]), draw(2, [2; 4])] };
        let heading = heading(&probe, Shots::Each(2));
        let comparison = better.compare(&heading, (&worse, "other"));
        assert_eq!(comparison.test, PairedTest::TwoWayT);
        // Four images say little, whatever the draws agree on.
        assert!(comparison.p > 0.02 && comparison.p < 0.1 && comparison.difference > 0.6, "{comparison:?}");
        let single = Cell { draws: vec![draw(0, LABELS)] };
        let same = single.compare(&heading, (&single, "other"));
        assert_eq!((same.test, same.p, same.difference), (PairedTest::McNemar, 1., 0.));
    }

    /// What draws get wrong differs from image to image, so that nothing seems to be left for the draws.
    #[test]
    fn two_draws_say_no_more_than_two_differences_can() {
        const IMAGES: usize = 60;
        let labels = [0; IMAGES];
        let wrong = |number: usize, images: std::ops::Range<usize>| {
            let predictions: Vec<usize> =
                (0..IMAGES).map(|image| usize::from(images.contains(&image))).collect();
            let result = DrawResult {
                accuracy: 1. - images.len() as f64 / IMAGES as f64,
                ..draw(number, LABELS).result
            };
            CellDraw { result, predictions, alone: 0 }
        };
        let better = Cell { draws: vec![wrong(0, 0..0), wrong(1, 0..0)] };
        let worse = Cell { draws: vec![wrong(0, 0..18), wrong(1, 18..40)] };
        let probe = Probe::Knn(Knn { k: 20, temperature: 0.07 });
        let heading = Heading { labels: &labels, ..heading(&probe, Shots::Each(2)) };
        let by_images = TwoWay::new(&[[1., 0., 0.], [0., 1., 0.]].map(|shares| {
            [18, 22, 20].iter().zip(shares).flat_map(|(&count, share)| vec![share; count]).collect()
        }));
        assert!(by_images.p().unwrap() < 1e-9);
        let comparison = better.compare(&heading, (&worse, "other"));
        let by_draws = paired_t(&[18. / 60., 22. / 60.]).unwrap();
        assert!(by_draws > 0.06 && (comparison.p - by_draws).abs() < 1e-9, "{comparison:?} {by_draws}");
    }

    #[test]
    fn chosen_values_are_short() {
        assert_eq!([1e-6, 10f64.powf(-0.5), 10., 177_827.94].map(rounded), ["1e-6", "0.316", "10", "178000"]);
    }
}
