//! Reports with plausible numbers, one per shape that suites give.

use lejepa_data::Image;
use lejepa_picture::Jpeg;
use lejepa_probe::{Choice, Chosen, Features};
use lejepa_video::{ClipReport, ClipRow, ObjectScore, Score, SegmentationReport, Still};
use ndarray::Array2;

use crate::isotropy::{Demonstration, Isotropy, LinearDemonstration, Neighbourhoods, SmoothDemonstration};
use crate::pictures::{
    AttentionJpegs, CandidatePictures, EmbeddingMap, MapMethod, PatchPictures, SetPictures, ShownImage,
    Sprite,
};
use crate::report::{
    CandidateInfo, CandidateIsotropy, Comparison, DatasetReport, DrawResult, Interval, MissingDataset,
    PairedTest, ProbeResult, Published, Report, Source,
};
use crate::sets::Shots;

/// One set, two probes, all samples, three candidates.
pub(crate) fn quick() -> Report {
    let mut report = report("quick", "A first impression in about a minute: two probes on one labelled set.");
    report.datasets = vec![dataset(
        &report,
        &Set {
            name: "imagenette",
            classes: 10,
            shots: &[Shots::All],
            probes: &["k-NN (k = 20)", "ridge"],
            level: 0.72,
        },
    )];
    let pictures = pictures(&report);
    report.datasets[0].pictures = Some(pictures);
    report.videos = vec![video("attention:mass0.6", 2), video("propagation:top5", 9)];
    report
}

/// Clips with two stills each, the first without true masks.
fn video(protocol: &str, clips: usize) -> SegmentationReport {
    let jpeg = Jpeg::of(&Image::from_pixels(4, 4, 1, vec![50; 16]).unwrap(), 60).unwrap();
    let object = |object: u8| ObjectScore {
        object,
        score: Score { jaccard: 0.3 + 0.1 * f64::from(object), contour: 0.25 },
        head: (object == 1).then_some(3),
    };
    let clip = |number: usize| ClipReport {
        name: format!("clip <{number}>"),
        frames: 40,
        frames_with_truth: if number > 0 { 40 } else { 0 },
        left_out: 1,
        left_out_such_as: vec!["cannot use image: 00007.jpg".into()],
        remarks: vec!["objects that appear after the first mask and are not judged: 3".into()],
        rows: if number > 0 {
            ClipRow::new("encoder", vec![object(1), object(2)]).into_iter().collect()
        } else {
            Vec::new()
        },
        stills: ["00000", "00032"].map(|frame| still(frame, &jpeg, number > 0)).to_vec(),
    };
    let mut report = SegmentationReport {
        command: "lejepa eval encoder.onnx --suite quick --data sets --video clips".into(),
        protocol: protocol.into(),
        encoder: "encoder.onnx".into(),
        size: (224, 224),
        notes: vec!["clips of the list 2017/val that are not there: <libby>".into()],
        clips: (0..clips).map(clip).collect(),
        rows: Vec::new(),
    };
    report.summarise();
    report
}

fn still(frame: &str, jpeg: &Jpeg, has_truth: bool) -> Still {
    Still { frame: frame.into(), found: jpeg.clone(), truth: has_truth.then(|| jpeg.clone()) }
}

/// Forty points on two maps of every candidate, and two images as the first two candidates see them.
fn pictures(report: &Report) -> SetPictures {
    let grey = |value: u8| Image::from_pixels(4, 4, 1, vec![value; 16]).unwrap();
    let jpeg = |value: u8| Jpeg::of(&grey(value), 60).unwrap();
    let shown = |point: usize| ShownImage { id: format!("images/{point}.jpg"), label: point / 4 };
    let map = |method| EmbeddingMap {
        method,
        places: (0..40).map(|point| [wobble(point) as f32, wobble(point * 7) as f32]).collect(),
    };
    let patches = |candidate: usize| PatchPictures {
        image: jpeg(200),
        components: jpeg(90),
        attention: (candidate == 0).then(|| AttentionJpegs { heat: jpeg(30), mask: jpeg(60) }),
    };
    let candidate = |(number, candidate): (usize, &CandidateInfo)| CandidatePictures {
        candidate: candidate.name.clone(),
        maps: vec![map(MapMethod::Pca { variance: 0.4 }), map(MapMethod::Tsne { perplexity: 13. })],
        patches: if number < 2 { vec![patches(number); 2] } else { Vec::new() },
    };
    SetPictures {
        points: (0..40).map(shown).collect(),
        thumbnails: Sprite::of(&vec![Sprite::thumbnail(&grey(100)).unwrap(); 40]).unwrap(),
        images: vec![shown(3), shown(9)],
        candidates: report.candidates.iter().enumerate().map(candidate).collect(),
    }
}

/// Eight sets by 1, 10 and all samples with one probe; the last is not finished, two more are missing.
pub(crate) fn few_shot() -> Report {
    let mut report = report(
        "fewshot",
        "Frozen encoders on eight small sets with 1, 10 and all samples per class, as in the paper.",
    );
    let sets = [
        ("dtd", 47, 0.6),
        ("aircraft", 100, 0.35),
        ("cifar10", 10, 0.9),
        ("cifar100", 100, 0.7),
        ("flowers102", 102, 0.8),
        ("pets", 37, 0.75),
    ];
    let shots = [Shots::Each(1), Shots::Each(10), Shots::All];
    for (name, classes, level) in sets {
        let mut set = dataset(&report, &Set { name, classes, shots: &shots, probes: &["logistic"], level });
        let encoders = [
            ("LeJEPA", "vit_large", "imagenet1k", 0.),
            ("LeJEPA", "convnextv2_huge", "imagenet1k", 0.02),
            ("I-JEPA", "vit_huge", "imagenet1k", -0.03),
            ("I-JEPA + STOP", "vit_huge", "imagenet1k", -0.01),
            ("I-JEPA", "vit_huge", "imagenet22k", 0.03),
        ];
        for (method, arch, pretraining, ahead) in encoders {
            set.published.extend(shots.map(|shots| {
                published(
                    ["transfer", method, arch, pretraining, "frozen"],
                    shots,
                    accuracy(level, shots) + ahead,
                )
            }));
        }
        report.datasets.push(set);
    }
    if let Some(last) = report.datasets.last_mut() {
        last.results.truncate(7);
        last.comparisons.truncate(2);
    }
    let missing = |name: &str, folders: [&str; 2], source: &str| MissingDataset {
        name: name.into(),
        folders: folders.map(str::to_owned).to_vec(),
        source: source.into(),
    };
    report.missing = vec![
        missing("cars", ["stanford_cars", "cars"], "https://ai.stanford.edu/~jkrause/cars/car_dataset.html"),
        missing(
            "food101",
            ["food-101", "food101"],
            "https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
        ),
    ];
    report
}

/// One set by seven numbers of samples.
pub(crate) fn galaxies() -> Report {
    let mut report =
        report("galaxy10", "Galaxy10 with 1 to 1000 and all samples per class, as the paper's figure.");
    let shots = [1, 2, 5, 10, 100, 1000].map(Shots::Each).into_iter().chain([Shots::All]).collect::<Vec<_>>();
    let mut set = dataset(
        &report,
        &Set { name: "galaxy10", classes: 10, shots: &shots, probes: &["logistic"], level: 0.75 },
    );
    let names = [
        "Disturbed",
        "Merging",
        "Round Smooth",
        "In-between Round Smooth",
        "Cigar Shaped Smooth",
        "Barred Spiral",
        "Unbarred Tight Spiral",
        "Unbarred Loose Spiral",
        "Edge-on without Bulge",
        "Edge-on with Bulge",
    ];
    set.classes = names.map(str::to_owned).to_vec();
    for result in &mut set.results {
        if result.shots == Shots::Each(1000) {
            result.notes.push("4 classes have fewer images and give all they have".into());
        }
    }
    for (protocol, ahead) in [("finetuned", 0.05), ("frozen", 0.)] {
        for (method, arch, pretraining, better) in [
            ("LeJEPA", "convnextv2_nano", "galaxy10", 0.01),
            ("LeJEPA", "levit_128", "galaxy10", -0.06),
            ("LeJEPA", "resnet18", "galaxy10", 0.),
            ("LeJEPA", "resnet34", "galaxy10", 0.02),
            ("DINOv2", "vit_small", "", -0.08),
            ("DINOv3", "vit_small_patch16", "", -0.04),
        ] {
            set.published.extend(shots.iter().map(|&shots| {
                published(
                    ["galaxy10", method, arch, pretraining, protocol],
                    shots,
                    accuracy(0.75, shots) + ahead + better,
                )
            }));
        }
    }
    set.published.push(published(
        ["in_domain", "LeJEPA", "resnet18", "galaxy10", "frozen"],
        Shots::All,
        0.7532,
    ));
    report.datasets = vec![set];
    report
}

/// One set with six probes.
pub(crate) fn probes() -> Report {
    let mut report = report("probes", "All probes on one labelled set.");
    let probes = ["k-NN (k = 20)", "radius k-NN", "kernel", "ridge", "logistic", "linear (AdamW)"];
    report.datasets = vec![dataset(
        &report,
        &Set { name: "flowers102", classes: 102, shots: &[Shots::All], probes: &probes, level: 0.8 },
    )];
    report.datasets[0].published = vec![
        published(["in_domain", "LeJEPA", "convnextv2_nano", "flowers102", "frozen"], Shots::All, 0.6434),
        published(
            ["in_domain", "IJEPA-inet22k", "vit_huge_patch14", "imagenet1k", "frozen"],
            Shots::All,
            0.8576,
        ),
    ];
    report
}

/// Names that are markup elsewhere, long ones, one class and no test images.
pub(crate) fn hostile() -> Report {
    let script = "<script>alert(\"1\" & '2')</script>";
    let mut report = report(script, "</title><img src=x onerror=alert(1)> *a* | b");
    report.command = format!("lejepa eval \"{script}\" --suite '`x`' ```");
    report.version = script.into();
    report.candidates[0].name =
        "an encoder whose name has eighty characters, so that a table must break it some".into();
    report.candidates[1].name = script.into();
    report.candidates[1].description = script.into();
    let probes = [script, "=1+2|3"];
    report.datasets = vec![dataset(
        &report,
        &Set { name: script, classes: 1, shots: &[Shots::All], probes: &probes, level: 0.5 },
    )];
    let set = &mut report.datasets[0];
    set.classes = vec![script.into()];
    set.path = script.into();
    set.notes = vec![script.into()];
    (set.test, set.test_available) = (0, 0);
    for result in &mut set.results {
        (result.class_accuracies, result.confusion, result.top5) = (vec![None], Vec::new(), None);
        result.notes = vec![script.into()];
        result.protocol = format!("{script}{}", result.protocol);
    }
    set.published = vec![published([script; 5], Shots::All, 0.5)];
    report.missing =
        vec![MissingDataset { name: script.into(), folders: vec![script.into()], source: script.into() }];
    report
}

/// More candidates than colours, and as many classes as a matrix shows.
pub(crate) fn crowded() -> Report {
    let mut report = report("crowded", "Nine candidates on a set of thirty classes.");
    let encoder = report.candidates[0].clone();
    let name = |index| format!("encoder {index} of nine, with a long name");
    report.candidates = (0..9).map(|index| CandidateInfo { name: name(index), ..encoder.clone() }).collect();
    let shots = [Shots::Each(1), Shots::Each(5), Shots::All];
    let set = Set { name: "thirty", classes: 30, shots: &shots, probes: &["logistic", "ridge"], level: 0.8 };
    report.datasets = vec![dataset(&report, &set)];
    report
}

/// Simulated features, and one candidate's features of a set, each at two condition numbers.
pub(crate) fn isotropy() -> Report {
    let mut report = report("isotropy", "Bias and variance of probes on isotropic and anisotropic features.");
    let neighbourhoods =
        Neighbourhoods { neighbours: vec![1, 5], radii: vec![0.3, 0.9], bandwidths: vec![0.2, 0.4] };
    let demonstration = Demonstration {
        conditions: vec![9.],
        linear: LinearDemonstration { dim: 2, samples: 12, draws: 20, ..Default::default() },
        smooth: SmoothDemonstration {
            samples: 40,
            draws: 3,
            queries: 6,
            tasks: 2,
            waves: 2,
            neighbourhoods: neighbourhoods.clone(),
            ..Default::default()
        },
        ..Default::default()
    };
    report.demonstration = Some(demonstration.run().unwrap());
    let features = |count: usize| {
        let value = |(row, column): (usize, usize)| (wobble(7 * row + column) * (1. + column as f64)) as f32;
        let values = Array2::from_shape_fn((count, 3), value);
        Features::labelled(values, (0..count).map(|row| row % 2).collect(), 2).unwrap()
    };
    let settings =
        Isotropy { conditions: vec![9.], draws: 3, samples: 12, neighbourhoods, ..Default::default() };
    let found = settings.measure(&features(40), &features(10)).unwrap();
    let set = Set { name: "galaxies", classes: 2, shots: &[], probes: &[], level: 0. };
    let mut set = dataset(&report, &set);
    set.isotropy = vec![CandidateIsotropy { candidate: report.candidates[0].name.clone(), found }];
    report.datasets = vec![set];
    report
}

/// Nothing at all.
pub(crate) fn empty() -> Report {
    Report { candidates: Vec::new(), ..report("quick", "") }
}

/// All of them by name.
pub(crate) fn all() -> [(&'static str, Report); 8] {
    [
        ("quick", quick()),
        ("fewshot", few_shot()),
        ("galaxy10", galaxies()),
        ("probes", probes()),
        ("crowded", crowded()),
        ("isotropy", isotropy()),
        ("hostile", hostile()),
        ("empty", empty()),
    ]
}

fn report(suite: &str, about: &str) -> Report {
    let candidate =
        |name: &str, description: &str, feature: &str, dim, fingerprint: Option<&str>| CandidateInfo {
            name: name.into(),
            description: description.into(),
            feature: feature.into(),
            dim,
            fingerprint: fingerprint.map(str::to_owned),
        };
    Report {
        format: Report::FORMAT,
        version: "0.1.0".into(),
        suite: suite.into(),
        about: about.into(),
        complete: false,
        command: format!(
            "lejepa eval runs/vit-small/encoder.onnx baselines/dinov2.onnx --suite {suite} --data-root data"
        ),
        seed: 0,
        candidates: vec![
            candidate(
                "ours, ViT-S/8",
                "runs/imagenette-vit-small/encoder.onnx",
                "cls",
                384,
                Some("9f86d081884c7d65"),
            ),
            candidate("DINOv2 ViT-S/14", "baselines/dinov2_small.onnx", "cls", 384, Some("60303ae22b998861")),
            candidate("raw pixels", "images of 32 x 32 pixels", "pixels", 3072, None),
        ],
        datasets: Vec::new(),
        missing: Vec::new(),
        videos: Vec::new(),
        demonstration: None,
    }
}

struct Set<'a> {
    name: &'a str,
    classes: usize,
    shots: &'a [Shots],
    probes: &'a [&'a str],
    level: f64,
}

/// Training images per class of the samples.
const PER_CLASS: usize = 142;

/// Test images per class of the samples.
const TEST: usize = 50;

fn dataset(report: &Report, set: &Set<'_>) -> DatasetReport {
    let mut results = Vec::new();
    let mut comparisons = Vec::new();
    for (probe_index, &probe) in set.probes.iter().enumerate() {
        for &shots in set.shots {
            for (index, candidate) in report.candidates.iter().enumerate() {
                let candidate_level = [1., 1.06, 0.5][index % 3] * (1. - 0.01 * index as f64);
                let level = set.level * candidate_level * (1. - 0.03 * (probe_index as f64 - 2.).abs());
                results.push(result(
                    set,
                    (probe, &candidate.name, &candidate.feature),
                    shots,
                    level.min(0.97),
                ));
            }
            for (first, second) in [(0, 1), (0, 2)] {
                let [first, second] = [first, second].map(|index| &results[results.len() - 3 + index]);
                comparisons.push(Comparison {
                    probe: probe.into(),
                    shots,
                    first: first.candidate.clone(),
                    second: second.candidate.clone(),
                    difference: first.accuracy - second.accuracy,
                    p: 0.05 * wobble(comparisons.len()).abs()
                        / (1. + 50. * (first.accuracy - second.accuracy).powi(2)),
                    test: if shots == Shots::All { PairedTest::McNemar } else { PairedTest::TwoWayT },
                });
            }
        }
    }
    DatasetReport {
        name: set.name.into(),
        path: format!("data/{}", set.name),
        fingerprints: ["b5bb9d8014a0f9b1".into(), "7d865e959b2466918".into()],
        train: PER_CLASS * set.classes,
        train_available: PER_CLASS * set.classes,
        test: TEST * set.classes,
        test_available: TEST * set.classes,
        splits: ["training split", "test split"].map(str::to_owned),
        per_class: false,
        classes: (0..set.classes)
            .map(|class| {
                format!("{} {class}", ["common", "rather rare", "spotted", "great northern"][class % 4])
            })
            .collect(),
        notes: Vec::new(),
        seen: Vec::new(),
        results,
        comparisons,
        published: Vec::new(),
        isotropy: Vec::new(),
        pictures: None,
    }
}

fn result(
    set: &Set<'_>,
    (probe, candidate, feature): (&str, &str, &str),
    shots: Shots,
    level: f64,
) -> ProbeResult {
    let mean = accuracy(level, shots);
    let draws = if shots == Shots::All { 1 } else { 3 };
    let train = match shots {
        Shots::Each(shots) => shots.min(PER_CLASS) * set.classes,
        Shots::All => PER_CLASS * set.classes,
    };
    let key = train + candidate.len() + probe.len();
    let draw = |draw: usize| DrawResult {
        draw,
        train,
        accuracy: mean + 0.02 * wobble(key + draw) * (1. - mean) * f64::from(draws - 1),
        top5: 1. - 0.4 * (1. - mean),
        choice: (!probe.starts_with("k-NN")).then(|| Choice {
            value: 10f64.powi((key + draw) as i32 % 3 - 2),
            held_out: train / 10,
            by: Chosen::Holdout,
        }),
        seconds: 0.8 + draw as f64,
    };
    let draws: Vec<DrawResult> = (0..draws as usize).map(draw).collect();
    let accuracy = draws.iter().map(|draw| draw.accuracy).sum::<f64>() / draws.len() as f64;
    let deviation = (draws.len() > 1).then_some(0.012 + 0.004 * wobble(key));
    let half = deviation.map_or(0.011, |deviation| 2.5 * deviation);
    let class_accuracies: Vec<Option<f64>> =
        (0..set.classes).map(|class| Some((accuracy + 0.15 * wobble(class + key)).clamp(0., 1.))).collect();
    let mut confusion = Vec::new();
    for (class, accuracy) in class_accuracies.iter().enumerate() {
        let images = TEST * draws.len();
        let right = (accuracy.unwrap_or(0.) * images as f64).round() as usize;
        let near = (images - right) * 2 / 3;
        let [other, far] = [(class + 1) % set.classes, (class + 4) % set.classes];
        confusion.extend(
            [[class, class, right], [class, other, near], [class, far, images - right - near]]
                .into_iter()
                .filter(|row| row[2] > 0),
        );
    }
    ProbeResult {
        candidate: candidate.into(),
        probe: probe.into(),
        shots,
        protocol: format!("{}:{feature}:l2:holdout0.1:shots-{shots}", probe.to_lowercase().replace(' ', "")),
        accuracy,
        deviation,
        interval: Interval {
            low: (accuracy - half).max(0.),
            high: (accuracy + half).min(1.),
            over: if draws.len() > 1 { Source::DrawsAndTestImages } else { Source::TestImages },
        },
        class_mean: accuracy - 0.01,
        top5: (set.classes > 5).then_some(1. - 0.4 * (1. - accuracy)),
        class_accuracies,
        confusion,
        draws,
        notes: Vec::new(),
    }
}

/// Rises with the logarithm of shots.
fn accuracy(level: f64, shots: Shots) -> f64 {
    let share = match shots {
        Shots::Each(shots) => 0.35 + 0.2 * (shots as f64).log10(),
        Shots::All => 1.,
    };
    level * share
}

/// Between -1 and 1, without a pattern that the eye sees.
fn wobble(key: usize) -> f64 {
    (key as f64 * 12.9898).sin()
}

fn published(names: [&str; 5], shots: Shots, accuracy: f64) -> Published {
    let [table, method, arch, pretraining, protocol] = names.map(str::to_owned);
    Published { table, method, arch, pretraining, protocol, shots, accuracy }
}
