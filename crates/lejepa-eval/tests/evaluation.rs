//! Evaluations of raw pixels: no encoder is needed to see that numbers, draws and resuming are right.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lejepa_data::{Interpolation, Preprocess, ResizeRule, SourceConfig};
use lejepa_eval::{
    Candidate, Error, Evaluation, Event, FeatureSource, LabelledSet, Report, ReportFolder, Result, Shots,
    Suite,
};
use tempfile::TempDir;

const SUITE: &str = "
shots = [1, 3, \"all\"]
draws = 4
[[probe]]
kind = \"knn\"
k = 3
temperature = 0.07
[[probe]]
kind = \"logistic\"
c = [0.1, 1.0, 10.0]
holdout = 0.2
[pictures]
points = 12
images = 2
";

/// A folder with data and reports.
struct Place(TempDir);

impl Place {
    /// Noisy stripes, so many images of each class in each split; a split without name is the folder itself.
    fn new(splits: &[(&str, &[usize])]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        splits.iter().for_each(|(split, counts)| write_images(&place.data().join(split), counts));
        place
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn suite(&self) -> Suite {
        let path = self.0.path().join("suite.toml");
        std::fs::write(&path, SUITE).unwrap();
        Suite::load(path.to_str().unwrap()).unwrap()
    }

    fn open(&self) -> Result<LabelledSet> {
        let source = SourceConfig { path: self.data(), ..Default::default() };
        LabelledSet::open("mine", &source, &self.suite())
    }

    /// Two candidates with the same pixels, stopped after some results if asked to.
    fn evaluate(&self, out: &str, stop_after: usize) -> Result<Report> {
        let preprocess = Preprocess {
            resize: ResizeRule::ShortSide(8),
            interpolation: Interpolation::Bicubic,
            crop_height: 8,
            crop_width: 8,
            channels: 1,
            mean: vec![0.5],
            std: vec![0.25],
        };
        let candidates = ["first", "second"].map(|name| Candidate {
            name: name.into(),
            description: "pixels".into(),
            source: FeatureSource::Pixels(&preprocess),
        });
        let evaluation = Evaluation {
            suite: &self.suite(),
            datasets: &[self.open().unwrap()],
            missing: Vec::new(),
            candidates: &candidates,
            video: None,
            command: "lejepa eval",
            cache: &self.0.path().join("cache"),
            folder: &ReportFolder::new(self.0.path().join(out)),
        };
        let mut scored = 0;
        let mut observe = |event: Event<'_>| {
            scored += usize::from(matches!(event, Event::Scored(_)));
            if scored >= stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        evaluation.run(&mut observe)
    }

    fn report(&self) -> Report {
        self.evaluate("out", usize::MAX).unwrap()
    }
}

fn write_images(folder: &Path, counts: &[usize]) {
    for (class, &count) in counts.iter().enumerate() {
        let folder = folder.join(format!("class{class}"));
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..count {
            let noise = |x: u32, y: u32| (x * 37 + y * 101 + number as u32 * 53 + class as u32 * 11) % 120;
            let image = image::GrayImage::from_fn(8, 8, |x, y| {
                let striped = if class % 2 == 0 { x % 2 } else { y % 2 };
                image::Luma([(60 * striped + noise(x, y) + 10 * class as u32) as u8])
            });
            image.save(folder.join(format!("{number:03}.png"))).unwrap();
        }
    }
}

/// The report without what no two runs have in common.
fn timeless(mut report: Report) -> Report {
    let results = report.datasets.iter_mut().flat_map(|set| &mut set.results);
    results.flat_map(|result| &mut result.draws).for_each(|draw| draw.seconds = 0.);
    report
}

#[test]
fn shots_are_drawn_scored_and_compared() {
    let place = Place::new(&[("train", &[12, 12, 2]), ("test", &[6, 6, 6])]);
    let report = place.report();
    let set = &report.datasets[0];
    assert_eq!((set.train, set.test, set.classes.len()), (26, 18, 3));
    let shape: Vec<_> = set
        .results
        .iter()
        .map(|result| (result.candidate.as_str(), result.shots, result.draws.len()))
        .collect();
    let of = |name| [(name, Shots::Each(1), 4), (name, Shots::Each(3), 4), (name, Shots::All, 1)];
    assert_eq!(shape, [of("first"), of("first"), of("second"), of("second")].concat());
    let three = &set.results[1];
    assert_eq!(three.draws[0].train, 3 + 3 + 2);
    assert!(three.notes.iter().any(|note| note.starts_with("1 of 3 classes have fewer than 3")));
    assert!(three.deviation.is_some() && three.interval.low <= three.accuracy);
    let protocols: Vec<&str> = set.results[3..6].iter().map(|result| result.protocol.as_str()).collect();
    assert_eq!(protocols[0], "logistic:middle:pixels:C1:1-shot:4draws");
    assert!(protocols[1].starts_with("logistic:folds3:pixels:C"), "{protocols:?}");
    assert!(protocols[2].starts_with("logistic:folds5:pixels:C"), "{protocols:?}");
    // Both candidates are the same features: no difference, whatever the test.
    assert_eq!(set.comparisons.len(), 6);
    let same = set.comparisons.iter().all(|pair| pair.difference == 0. && pair.p == 1.);
    assert!(same, "{:?}", set.comparisons);
    let pictures = set.pictures.as_ref().unwrap();
    assert_eq!((pictures.points.len(), pictures.images.len()), (12, 2));
    let maps = |name: &str| {
        let candidate = pictures.candidates.iter().find(|candidate| candidate.candidate == name).unwrap();
        // Pixels have no patches.
        assert!(candidate.patches.is_empty());
        candidate.maps.clone()
    };
    assert!(maps("first").len() == 2 && maps("first").iter().all(|map| map.places.len() == 12));
    assert_eq!(maps("first"), maps("second"));
    let out = place.0.path().join("out");
    let drawn = std::fs::read_to_string(out.join("draws/mine.csv")).unwrap();
    assert_eq!(drawn.lines().count(), 1 + 4 * 3 + 4 * 8);
    assert!(drawn.starts_with("shots,draw,image,class\n1,0,"), "{drawn}");
    for name in ["report.json", "report.md", "report.html", "scores.csv", "classes.csv", "confusion.csv"] {
        assert!(out.join(name).is_file(), "{name}");
    }
}

#[test]
fn a_stopped_evaluation_leaves_a_report_and_goes_on_to_the_same_numbers() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    let whole = place.report();
    assert!(matches!(place.evaluate("stopped", 5), Err(Error::Stopped)));
    let stopped = place.0.path().join("stopped");
    let partial: Report =
        serde_json::from_slice(&std::fs::read(stopped.join("report.json")).unwrap()).unwrap();
    assert_eq!(partial.datasets[0].results.len(), 5);
    let cells = std::fs::read_dir(stopped.join("cells")).unwrap();
    let damaged = cells.map(|cell| cell.unwrap().path()).min().unwrap();
    std::fs::write(damaged, "{").unwrap();
    let resumed = place.evaluate("stopped", usize::MAX).unwrap();
    // The draws that were kept were not fitted again.
    let both = partial.datasets[0].results.iter().zip(&resumed.datasets[0].results);
    assert!(both.filter(|(old, new)| old.draws == new.draws).count() >= 4);
    assert_eq!(timeless(resumed), timeless(whole));
}

#[test]
fn a_set_without_test_split_gives_a_fifth_of_every_class() {
    let report = Place::new(&[("", &[10, 5, 1])]).report();
    let set = &report.datasets[0];
    assert_eq!((set.train, set.test), (8 + 4 + 1, 2 + 1));
    assert!(set.notes[0].contains("no test split"), "{:?}", set.notes);
}

#[test]
fn a_class_that_was_never_seen_is_named() {
    let report = Place::new(&[("train", &[4, 4, 0]), ("test", &[2, 2, 2])]).report();
    let set = &report.datasets[0];
    assert!(set.notes.iter().any(|note| note.ends_with("no probe can find: class2")), "{:?}", set.notes);
    assert!(set.results.iter().all(|result| result.class_accuracies[2] == Some(0.)));
}

#[test]
fn an_unreadable_image_is_left_out_and_named() {
    let place = Place::new(&[("train", &[4, 4]), ("test", &[2, 2])]);
    std::fs::write(place.data().join("train/class0/001.png"), "no picture").unwrap();
    let set = &place.report().datasets[0];
    assert!(set.notes.iter().any(|note| note.contains("1 training images") && note.contains("001.png")));
    assert_eq!(set.results[2].draws[0].train, 7);
}

#[test]
fn data_that_cannot_be_scored_is_refused() {
    let one_class = Place::new(&[("train", &[4]), ("test", &[4])]).open();
    assert!(matches!(one_class, Err(Error::TooFewClasses { got: 1 })));
    let nothing_to_ask = Place::new(&[("", &[1, 1])]).open();
    assert!(matches!(nothing_to_ask, Err(Error::NoTestImages { .. })));
    let flat = Place::new(&[]);
    std::fs::create_dir_all(flat.data()).unwrap();
    image::GrayImage::new(4, 4).save(flat.data().join("a.png")).unwrap();
    assert!(matches!(flat.open(), Err(Error::Unlabelled { index: 0, .. })));
}
