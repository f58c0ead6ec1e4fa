//! Evaluations of raw pixels: no encoder is needed to see that numbers, draws and resuming are right.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lejepa_data::{Claim, Interpolation, Job, Overwrite, Preprocess, ResizeRule, SourceConfig};
use lejepa_eval::sets::Shots;
use lejepa_eval::suite::Probe;
use lejepa_eval::{
    Candidate, Error, Evaluation, Event, FeatureSource, LabelledSet, Report, ReportFolder, Result, Suite,
};
use lejepa_probe::Knn;
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
        if !path.exists() {
            std::fs::write(&path, SUITE).unwrap();
        }
        Suite::load(path.to_str().unwrap()).unwrap()
    }

    /// With lines at the start of the suite.
    fn with(self, lines: &str) -> Self {
        std::fs::write(self.0.path().join("suite.toml"), format!("{lines}\n{SUITE}")).unwrap();
        self
    }

    fn open(&self) -> Result<LabelledSet> {
        let source = SourceConfig { path: self.data(), ..Default::default() };
        LabelledSet::open("mine", &source, &self.suite())
    }

    /// Stopped after some results if asked to.
    fn evaluate(&self, out: &str, stop_after: usize) -> Result<Report> {
        self.evaluate_at(8, out, stop_after)
    }

    /// As an encoder of images with so many rows would see them.
    fn evaluate_at(&self, side: usize, out: &str, stop_after: usize) -> Result<Report> {
        let mut scored = 0;
        self.observe(side, out, &self.suite(), &mut |event| {
            scored += usize::from(matches!(event, Event::Scored(_)));
            if scored >= stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    /// Two candidates with the same pixels.
    fn observe(
        &self,
        side: usize,
        out: &str,
        suite: &Suite,
        observe: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Report> {
        self.evaluate_into(&ReportFolder::new(self.0.path().join(out)), side, suite, observe)
    }

    /// Whatever is in the folder.
    fn overwrite(&self) -> Report {
        let folder = ReportFolder::new(self.0.path().join("out")).overwriting(Overwrite::Always);
        self.evaluate_into(&folder, 8, &self.suite(), &mut |_| ControlFlow::Continue(())).unwrap()
    }

    fn evaluate_into(
        &self,
        folder: &ReportFolder,
        side: usize,
        suite: &Suite,
        observe: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Report> {
        let preprocess = Preprocess {
            resize: ResizeRule::ShortSide(side),
            interpolation: Interpolation::Bicubic,
            crop_height: side,
            crop_width: side,
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
            suite,
            datasets: &[self.open().unwrap()],
            missing: Vec::new(),
            candidates: &candidates,
            video: None,
            command: "lejepa eval",
            cache: &self.0.path().join("cache"),
            folder,
        };
        evaluation.run(observe)
    }

    /// Why an evaluation into `out` does not begin.
    fn refused(&self) -> String {
        match self.evaluate("out", usize::MAX) {
            Err(Error::OtherReport { found, .. }) => found,
            other => unreachable!("{other:?}"),
        }
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
fn neighbours_are_looked_for_once_for_all_k() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    let mut suite = place.suite();
    suite.probe = [1, 3, 9].map(|k| Probe::Knn(Knn { k, temperature: 0.07 })).to_vec();
    let mut passes = 0;
    let report = place.observe(8, "out", &suite, &mut |event| {
        passes += usize::from(matches!(event, Event::Probing { .. }));
        ControlFlow::Continue(())
    });
    // Four draws of one shot, four of three, all; the second candidate has the same features.
    assert_eq!(passes, 4 + 4 + 1);
    let together = report.unwrap();
    suite.probe.truncate(1);
    let alone = place.observe(8, "alone", &suite, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(together.datasets[0].results[0].accuracy, alone.datasets[0].results[0].accuracy);
    assert_eq!(together.datasets[0].results.len(), 2 * 3 * 3);
}

#[test]
fn a_probe_is_stopped_in_the_middle() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    let mut told = 0;
    let stopped = place.observe(8, "out", &place.suite(), &mut |event| {
        told += usize::from(matches!(event, Event::Probed(_)));
        if told < 30 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert_eq!(told, 30, "nothing was fitted any more");
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
fn validation_images_are_learnt_from_where_the_suite_says_so() {
    let splits: &[(&str, &[usize])] = &[("train", &[6, 6]), ("val", &[3, 4]), ("test", &[4, 4])];
    let report = Place::new(splits).with("use_validation = true").report();
    let set = &report.datasets[0];
    assert_eq!((set.train, set.test), (12 + 7, 8));
    assert_eq!(set.splits, ["training and validation split", "test split"]);
    assert!(set.results.iter().all(|result| result.protocol.ends_with(":train+val")), "{:?}", set.results[0]);
    let without = &Place::new(&splits[..1]).with("use_validation = true").report().datasets[0];
    assert!(without.notes.iter().any(|note| note.contains("no validation split")), "{:?}", without.notes);
}

#[test]
fn a_named_split_is_asked_about_and_a_test_split_without_labels_is_not() {
    let splits: &[(&str, &[usize])] = &[("train", &[6, 6]), ("val", &[3, 4]), ("test", &[4, 4])];
    let named = Place::new(splits).with("test_split = \"validation\"").report();
    assert_eq!((named.datasets[0].test, named.datasets[0].splits[1].as_str()), (7, "validation split"));
    assert!(named.datasets[0].results[0].protocol.ends_with(":test=val"));
    // ImageNet's layout: the test images lie in one folder, and nobody says what they show.
    let unlabelled = Place::new(&splits[..2]);
    std::fs::create_dir_all(unlabelled.data().join("test")).unwrap();
    image::GrayImage::new(8, 8).save(unlabelled.data().join("test/1.png")).unwrap();
    let set = &unlabelled.report().datasets[0];
    assert_eq!(
        (set.test, set.splits[1].as_str()),
        (7, "validation split"),
        "as where there is no such folder"
    );
    assert!(
        set.notes.iter().any(|note| note.contains("test have no labels: they are no test")),
        "{:?}",
        set.notes
    );
    assert!(set.results[0].protocol.ends_with(":test=val"));
}

#[test]
fn validation_images_are_never_called_test_images() {
    let splits: &[(&str, &[usize])] = &[("train", &[6, 6]), ("val", &[3, 4])];
    for lines in ["", "test_split = \"validation\""] {
        let report = Place::new(splits).with(lines).report();
        let set = &report.datasets[0];
        assert_eq!((set.test, set.splits[1].as_str()), (7, "validation split"));
        assert!(
            set.results.iter().all(|result| result.protocol.ends_with(":test=val")),
            "{:?}",
            set.results[0]
        );
    }
    let missing = Place::new(splits).with("test_split = \"test\"").open().err().unwrap().to_string();
    assert!(missing.contains("no test split"), "{missing}");
}

#[test]
fn test_images_that_no_training_image_is_like_are_not_scored_as_wrong() {
    // One folder that is no class holds images without labels.
    let unknown = Place::new(&[("train", &[6, 6]), ("elsewhere", &[4])]);
    std::fs::create_dir(unknown.data().join("test")).unwrap();
    let [from, to] = ["elsewhere/class0", "test/unlabelled"].map(|name| unknown.data().join(name));
    std::fs::rename(from, to).unwrap();
    let notes = unknown.open().unwrap().notes().join("; ");
    assert!(
        notes.contains("images without labels: a fifth of every class, always the same, was held back"),
        "{notes}"
    );
    // Two classes that training does not know are classes, of which nothing can be found.
    let strangers = Place::new(&[("train", &[6, 6, 0, 0]), ("test", &[0, 0, 4, 4])]);
    let message = strangers.open().err().unwrap().to_string();
    assert!(message.contains("no class of the test images has a training image"), "{message}");
}

#[test]
fn a_file_that_only_looks_like_galaxy10_gets_no_names_of_classes_and_no_rows_of_the_paper() {
    if lejepa_data::hdf5_version().is_none() {
        return;
    }
    let place = Place::new(&[]).with("paper = [\"galaxy10\"]");
    std::fs::create_dir(place.data()).unwrap();
    let few = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats/galaxy10/lookalike.h5");
    std::fs::copy(few, place.data().join("Galaxy10_DECals.h5")).unwrap();
    let report = place.report();
    let set = &report.datasets[0];
    assert_eq!(set.published, []);
    assert!(set.classes.iter().all(|class| class.parse::<usize>().is_ok()), "{:?}", set.classes);
    assert!(set.notes.iter().any(|note| note.contains("are not those of Galaxy10")), "{:?}", set.notes);
}

#[test]
fn nearest_neighbours_see_a_crop_of_larger_images_if_the_suite_says_so() {
    let place = Place::new(&[("train", &[6, 6]), ("test", &[4, 4])]).with("knn_resize = 1.143");
    let protocols = |side| -> Vec<bool> {
        let report = place.evaluate_at(side, &format!("out{side}"), usize::MAX).unwrap();
        let results = report.datasets[0].results.iter();
        results.map(|result| result.protocol.contains(":resize110")).collect()
    };
    // Three numbers of shots by k-NN, three by logistic regression, of two candidates.
    assert_eq!(protocols(96), [[true; 3], [false; 3], [true; 3], [false; 3]].concat());
    assert_eq!(protocols(8), [false; 12], "small images are seen whole");
}

#[test]
fn images_that_both_splits_have_are_counted() {
    let place = Place::new(&[("train", &[5, 5]), ("test", &[5, 5])]);
    let set = &place.report().datasets[0];
    assert!(set.notes.iter().any(|note| note.starts_with("10 of 10 test images have the very features")));
    let same = set.notes.iter().any(|note| note.starts_with("training and test split are the same images"));
    assert_eq!(same, set.fingerprints[0] == set.fingerprints[1], "{:?}", set.notes);
}

/// Like stripes, but of other pixels; files keep their names and lengths in bytes as far as anyone can tell.
#[test]
fn results_of_other_pixels_are_not_taken_over() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    let before = place.report();
    let folder = place.data().join("test/class1");
    for file in std::fs::read_dir(&folder).unwrap() {
        image::GrayImage::from_pixel(8, 8, image::Luma([128])).save(file.unwrap().path()).unwrap();
    }
    assert_eq!(place.refused(), "a report of other images, labels or splits of mine");
    let again = timeless(place.overwrite());
    assert_eq!(again, timeless(place.evaluate("fresh", usize::MAX).unwrap()));
    assert_ne!(again.datasets[0].results, timeless(before).datasets[0].results);
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    let out = place.0.path().join("out");
    std::fs::create_dir_all(&out).unwrap();
    std::fs::write(out.join("report.md"), "mine").unwrap();
    assert_eq!(place.refused(), "a report.md that is of no evaluation, or of an earlier version");
    assert_eq!(std::fs::read_to_string(out.join("report.md")).unwrap(), "mine");
    std::fs::remove_file(out.join("report.md")).unwrap();
    place.report();
    // Of an evaluation that measured more.
    let earlier = Claim::of_folder(&out, &[], Job::new("eval", []), Overwrite::Never).unwrap();
    earlier.write(&out.join("isotropy.csv"), b"old").unwrap();
    drop(earlier);
    std::fs::write(out.join("draws/notes.txt"), "mine").unwrap();
    place.report();
    assert!(!out.join("isotropy.csv").exists(), "nothing stale");
    assert!(out.join("draws/notes.txt").exists(), "and nothing of others is gone");
    std::fs::remove_file(out.join("identity.json")).unwrap();
    assert_eq!(place.refused(), "a report.json that is of no evaluation, or of an earlier version");
    place.overwrite();
    place.report();
}

#[test]
fn a_suite_with_another_seed_or_probe_is_another_evaluation() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    let before = place.report();
    let place = place.with("seed = 7");
    assert_eq!(place.refused(), "a report of another suite (other: seed)");
    let path = place.0.path().join("out/report.json");
    let kept: Report = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(kept, before, "nothing was touched");
    std::fs::write(place.0.path().join("out/draws/yours.csv"), "yours").unwrap();
    assert_eq!(place.overwrite().seed, 7);
    assert!(place.0.path().join("out/draws/yours.csv").exists());
    place.report();
}

#[test]
fn a_folder_has_one_evaluation_at_a_time_however_it_is_spelt() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    let mut busy = None;
    place
        .observe(8, "out", &place.suite(), &mut |event| {
            if matches!(event, Event::Scored(_)) && busy.is_none() {
                busy = place.evaluate("out/../out/", usize::MAX).err();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    let message = busy.unwrap().to_string();
    assert!(message.starts_with(&format!("process {}", std::process::id())), "{message}");
    assert!(message.contains(" is at work in: "), "{message}");
    let spelt = place.evaluate("out/../out/", usize::MAX).unwrap();
    assert_eq!(spelt, place.report(), "the same folder, down to the seconds that a fit took");
    assert!(!place.0.path().join("out/.lejepa-lock").exists());
}

#[test]
fn a_damaged_cell_is_measured_again_and_one_of_another_name_is_not_believed() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    let before = place.report();
    let cells = place.0.path().join("out/cells");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&cells).unwrap().map(|it| it.unwrap().path()).collect();
    paths.retain(|path| std::fs::read_to_string(path).unwrap().contains("\"accuracy\":"));
    assert!(paths.len() > 2);
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let start = text.find("\"accuracy\":").unwrap() + "\"accuracy\":".len();
        std::fs::write(path, format!("{}0.125{}", &text[..start], &text[start + 3..])).unwrap();
    }
    assert_eq!(timeless(place.report()), timeless(before.clone()));
    for path in &paths[1..] {
        std::fs::copy(&paths[0], path).unwrap();
    }
    assert_eq!(timeless(place.report()), timeless(before));
}

#[test]
fn what_somebody_has_put_into_the_place_of_a_result_stays() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    place.report();
    let out = place.0.path().join("out");
    let refused = |theirs: &std::path::Path| {
        let message = place.evaluate("out", usize::MAX).unwrap_err().to_string();
        let said = format!("there already, and replaced only with --overwrite: {}", theirs.display());
        assert_eq!(message, said);
    };
    for name in ["report.md", "report.html", "report.json", "scores.csv", "draws/mine.csv", "identity.json"] {
        let theirs = out.join(name);
        let made = std::fs::read_to_string(&theirs).unwrap();
        // Still an identity, but another one than was written.
        let edited = if name == "identity.json" { made + "\n" } else { "my notes".into() };
        std::fs::write(&theirs, &edited).unwrap();
        refused(&theirs);
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), edited, "{name}");
        #[cfg(unix)]
        {
            let kept = place.0.path().join("kept");
            std::fs::rename(&theirs, &kept).unwrap();
            std::os::unix::fs::symlink(&kept, &theirs).unwrap();
            refused(&theirs);
            assert!(theirs.is_symlink(), "{name}");
        }
        place.overwrite();
        assert_eq!(place.report(), place.report(), "{name}");
    }
    // A report of a version that kept no list of what it has written: --overwrite is the way, and loses nothing.
    std::fs::remove_file(out.join(".made-by.jsonl")).unwrap();
    refused(&out.join("identity.json"));
    place.overwrite();
    place.report();
    #[cfg(unix)]
    {
        let theirs = place.0.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::remove_dir_all(out.join("cells")).unwrap();
        std::os::unix::fs::symlink(&theirs, out.join("cells")).unwrap();
        let message = place.evaluate("out", usize::MAX).unwrap_err().to_string();
        assert!(message.contains("remove it: ") && message.ends_with("out/cells"), "{message}");
        assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let place = Place::new(&[("train", &[9, 9]), ("test", &[5, 5])]);
    place.report();
    let pipe_at = |path: &std::path::Path| {
        std::fs::remove_file(path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        let message = place.evaluate("out", usize::MAX).unwrap_err().to_string();
        std::fs::remove_file(path).unwrap();
        message
    };
    let out = place.0.path().join("out");
    let cell = std::fs::read_dir(out.join("cells")).unwrap().next().unwrap().unwrap().path();
    let message = pipe_at(&cell);
    assert!(message.ends_with(cell.to_str().unwrap()), "{message}");
    place.report();
    let message = pipe_at(&out.join("identity.json"));
    assert!(message.contains("a identity.json that is of no evaluation"), "{message}");
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
