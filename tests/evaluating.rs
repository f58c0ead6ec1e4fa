//! `lejepa eval` as a user types it: several encoders, several sets, a suite of one's own.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::BTreeSet;
use std::path::Path;

use fixture::{lejepa, lejepa_succeeds, repository, workspace, write_stripes};
use lejepa_data::{CARD_KEY, CHECKSUM_KEY};
use lejepa_eval::Report;
use lejepa_eval::sets::Shots;

const SUITE: &str = r#"
about = "Stripes."
datasets = ["stripes", "pets", "flowers102"]
shots = [2, "all"]
draws = 3
baselines = ["untrained"]
paper = ["transfer"]
[[probe]]
kind = "knn"
k = 5
temperature = 0.07
[[probe]]
kind = "logistic"
c = [0.1, 1.0]
holdout = 0.2
[[probe]]
kind = "linear"
learning_rates = [1e-2]
holdout = 0.2
epochs = 3
batch = 8
warmup = 1
[pictures]
points = 15
images = 3
"#;

fn report(folder: &Path) -> Report {
    serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    // What is remembered of the data's files is there once those are some seconds old.
    names.filter(|name| name != "hashes").collect()
}

/// Makes of our file one of another project.
fn remove_card(encoder: &Path) {
    let mut bytes = std::fs::read(encoder).unwrap();
    for key in [CARD_KEY, CHECKSUM_KEY] {
        let entry = bytes.windows(key.len()).position(|name| name == key.as_bytes()).unwrap();
        bytes[entry] = b'x';
    }
    std::fs::write(encoder, bytes).unwrap();
}

#[test]
fn an_encoder_that_fails_on_some_images_is_not_scored_on_the_others_alone() {
    let folder = workspace();
    let path = folder.path();
    for file in ["train-images-idx3-ubyte", "t10k-images-idx3-ubyte"] {
        let file = path.join("data").join(file);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[16..16 + 20 * 256].fill(0);
        std::fs::write(file, bytes).unwrap();
    }
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "0.2"]);
    lejepa_succeeds(path, &["export", "run", "--out", "encoder.onnx"]);
    // Black images alone do not overflow.
    lejepa_succeeds(path, &["export", "run", "--outputs", "embedding", "--out", "theirs/model.onnx"]);
    remove_card(&path.join("theirs/model.onnx"));
    let config = path.join("theirs/preprocessor_config.json");
    let mut steep: serde_json::Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    (steep["image_mean"], steep["image_std"]) = ([0.].into(), [1e-40].into());
    std::fs::write(config, steep.to_string()).unwrap();
    let eval = |encoders: &[&str], out: &str| {
        lejepa(path, &[&["eval"], encoders, &["--suite", "knn", "--data", "data", "--out", out][..]].concat())
    };
    for (order, encoders) in
        [["encoder.onnx", "theirs/model.onnx"], ["theirs/model.onnx", "encoder.onnx"]].into_iter().enumerate()
    {
        let output = eval(&encoders, &order.to_string());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("have finite features of different training images"), "{stderr}");
        assert!(stderr.contains("140 training images were left out, such as "), "{stderr}");
    }
}

#[test]
fn several_encoders_are_compared_on_the_sets_that_are_there() {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(path, &["export", "run", "--out", "small/encoder.onnx"]);
    // The same once more as a file of another project: it has no card, but the hub's description beside it.
    lejepa_succeeds(path, &["export", "run", "--outputs", "embedding", "--out", "theirs/model.onnx"]);
    remove_card(&path.join("theirs/model.onnx"));

    write_stripes(&path.join("sets/stripes"), 40, 20);
    std::fs::write(path.join("mine.toml"), SUITE).unwrap();
    let eval = [
        "eval",
        "small/encoder.onnx",
        "theirs/model.onnx",
        "--suite",
        "mine.toml",
        "--data-root",
        "sets",
        "--out",
        "out",
    ];
    let output = lejepa_succeeds(path, &eval);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("pets is missing, looked for oxford-iiit-pet, pets: https://"), "{stderr}");
    assert!(stderr.contains("no untrained baseline"), "{stderr}");

    let found = report(&path.join("out"));
    let pictures = found.datasets[0].pictures.as_ref().unwrap();
    let patches: Vec<usize> = pictures.candidates.iter().map(|candidate| candidate.patches.len()).collect();
    // An encoder of another project and the untrained one have embeddings alone.
    assert_eq!(patches, [3, 0, 0]);
    assert!(pictures.candidates[0].patches.iter().all(|patches| patches.attention.is_some()));
    assert!(pictures.candidates.iter().all(|candidate| candidate.maps.len() == 2));
    let candidates: Vec<&str> = found.candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    assert_eq!(candidates, ["encoder", "encoder, untrained", "model"]);
    assert_eq!(found.missing.iter().map(|set| set.name.as_str()).collect::<Vec<_>>(), ["pets", "flowers102"]);
    let set = &found.datasets[0];
    // The linear probe looks at the embedding of all, and at two class tokens of those that have them beside.
    assert_eq!(set.results.len(), (4 + 4 + 3) * 2);
    // Two files of the same weights score the same, draw by draw.
    for (ours, theirs) in set.results[..6].iter().zip(&set.results[16..22]) {
        assert_eq!(
            (ours.accuracy, &ours.confusion, ours.shots),
            (theirs.accuracy, &theirs.confusion, theirs.shots)
        );
    }
    let linear = |result: usize| set.results[result].protocol.split(':').any(|part| part == "cls_last2");
    assert!(linear(6) && linear(7) && !linear(4), "two class tokens after the embedding");
    assert_eq!(
        (set.results[6].shots, set.results[6].probe.as_str()),
        (Shots::Each(2), "linear (lr = 0.01, cls_last2)")
    );
    let compared = |probe: &str| -> Vec<&str> {
        let pairs = set.comparisons.iter().filter(|pair| pair.probe == probe && pair.shots == Shots::All);
        pairs.flat_map(|pair| [pair.first.as_str(), pair.second.as_str()]).collect()
    };
    assert_eq!(
        compared("linear (lr = 0.01, cls_last2)"),
        ["encoder", "encoder, untrained"],
        "like with like"
    );
    assert_eq!(compared("linear (lr = 0.01)").len(), 2 * 3);
    assert!(set.notes.iter().any(|note| note.ends_with("none of model")), "{:?}", set.notes);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("| encoder, untrained"), "{table}");

    // The same command again finds all it needs; another suite finds the features.
    let cached = names(&path.join("cache/lejepa/features"));
    lejepa_succeeds(path, &eval);
    assert_eq!(report(&path.join("out")), found, "down to the seconds that a fit took");
    let knn = ["eval", "small/encoder.onnx", "--suite", "knn", "--data", "sets/stripes"];
    lejepa_succeeds(path, &knn);
    assert_eq!(names(&path.join("cache/lejepa/features")), cached);
}

#[test]
fn a_published_set_has_the_numbers_of_the_paper_beside_it_if_it_is_that_set() {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(path, &["export", "run"]);
    let pets = repository().join("tests/formats/pets");
    let eval =
        ["eval", "encoder.onnx", "--suite", "fewshot", "--data", pets.to_str().unwrap(), "--out", "out"];
    let output = lejepa(path, &eval);
    // The fixture has three images of two breeds: it is not the set that the paper's numbers are of.
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(report(&path.join("out")).datasets[0].published.is_empty());
}

#[test]
fn sets_side_by_side_are_not_taken_for_classes() {
    let folder = workspace();
    let path = folder.path();
    let encoder = repository().join("models/fashion-mnist-vit/encoder.onnx");
    let sets = repository().join("tests/formats");
    let eval = |suite| {
        let eval = ["eval", encoder.to_str().unwrap(), "--suite", suite, "--data", sets.to_str().unwrap()];
        let output = lejepa(path, &eval);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    for suite in ["knn", "fewshot"] {
        let stderr = eval(suite);
        assert!(stderr.starts_with("error: a folder of sets (") && stderr.contains("pets"), "{stderr}");
        assert!(stderr.contains("--data-root"), "{stderr}");
    }
}

/// CIFAR-10's layout: an image of each class has its colour, or is noise.
fn write_cifar(folder: &Path, noise: bool) {
    std::fs::create_dir_all(folder).unwrap();
    for (file, images) in [("data_batch_1.bin", 200), ("test_batch.bin", 100)] {
        let mut state = images as u64;
        let mut random = || {
            // Marsaglia's xorshift: one without low bits that come back with every image.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let record = |image: usize| {
            let class = (image % 10) as u8;
            let colour = [class * 25, 255 - class * 25, (class % 3) * 100];
            let planes: Vec<u8> = colour
                .iter()
                .flat_map(|&value| vec![value; 1024])
                .map(|value| if noise { random() } else { value })
                .collect();
            [vec![class], planes].concat()
        };
        let bytes: Vec<u8> = (0..images).flat_map(record).collect();
        // Nothing about the file but its content tells what has happened.
        let path = folder.join(file);
        let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
        std::fs::write(&path, bytes).unwrap();
        if let Ok(modified) = modified {
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        }
    }
}

#[test]
fn other_pixels_under_the_same_names_are_scored_anew() {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(path, &["export", "run", "--outputs", "embedding"]);
    let suite = "baselines = []\n[[probe]]\nkind = \"knn\"\nk = 5\ntemperature = 0.07\n";
    std::fs::write(path.join("mine.toml"), suite).unwrap();
    let mut accuracies = Vec::new();
    for (noise, out) in [(false, "clean"), (true, "noise"), (false, "again")] {
        write_cifar(&path.join("colours"), noise);
        let eval = ["eval", "encoder.onnx", "--suite", "mine.toml", "--data", "colours", "--out", out];
        lejepa_succeeds(path, &eval);
        accuracies.push(report(&path.join(out)).datasets[0].results[0].accuracy);
    }
    let [clean, noise, again] = accuracies[..] else { panic!("{accuracies:?}") };
    assert!(clean > 0.9 && noise < 0.4 && again == clean, "{accuracies:?}");
}

#[test]
fn the_isotropy_argument_needs_no_encoder() {
    let folder = workspace();
    let path = folder.path();
    let suite = "[demonstration]\nconditions = [30.0]\nlinear = { draws = 40 }\nsmooth = { draws = 4 }";
    std::fs::write(path.join("demo.toml"), suite).unwrap();
    let output = lejepa_succeeds(path, &["eval", "--suite", "demo.toml"]);
    let out = path.join("eval-demo");
    let found = report(&out).demonstration.unwrap();
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    for shown in [String::from_utf8(output.stdout).unwrap(), read("report.md"), read("report.html")] {
        assert!(shown.contains("variance of OLS (lemma 2)") && !shown.contains("No result yet"), "{shown}");
    }
    assert_eq!(found.linear.iter().map(|point| point.condition).collect::<Vec<_>>(), [1., 30.]);
    assert!(!found.verdicts.is_empty());
}
