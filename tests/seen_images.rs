//! An encoder knows which images it was trained on, and an evaluation says so.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;

use fixture::{lejepa, lejepa_succeeds, workspace, write_stripes};
use lejepa_data::Image;

const TEST: &str = "was trained on all test images of this set: its scores are not those of unseen images";
const TRAINING: &str = "was trained, without labels, on all training images of this set";

fn train(folder: &Path, out: &str, arguments: &[&str]) -> String {
    let train = ["train", "--config", "train.toml", "--epochs", "0.5", "--out", out];
    let output = lejepa_succeeds(folder, &[&train[..], arguments].concat());
    lejepa_succeeds(folder, &["export", out, "--out", &format!("{out}.onnx")]);
    String::from_utf8(output.stderr).unwrap()
}

/// What is said about an encoder and a set: in the terminal, and the same in the files.
fn remarks(folder: &Path, encoder: &str, data: &str) -> String {
    let _ = std::fs::remove_dir_all(folder.join("report"));
    let eval = ["eval", &format!("{encoder}.onnx"), "--suite", "knn", "--data", data, "--out", "report"];
    let table = String::from_utf8(lejepa_succeeds(folder, &eval).stdout).unwrap();
    let said: Vec<&str> = table.lines().filter(|line| line.contains(" was trained")).collect();
    for file in ["report.md", "report.html"] {
        let text = std::fs::read_to_string(folder.join("report").join(file)).unwrap();
        let missing = said.iter().find(|line| !text.contains(line.trim_start_matches("- ")));
        assert_eq!(missing, None, "{file}: {text}");
    }
    said.join("\n")
}

#[test]
fn test_images_that_were_trained_on_are_remarked() {
    let folder = workspace();
    let path = folder.path();
    // Those of the fixture are the same in both splits.
    let images = path.join("data/t10k-images-idx3-ubyte");
    let mut bytes = std::fs::read(&images).unwrap();
    bytes[16..].iter_mut().for_each(|pixel| *pixel = 255 - *pixel);
    std::fs::write(images, bytes).unwrap();
    train(path, "honest", &[]);
    let eval = ["eval", "honest.onnx", "--suite", "knn", "--data", "data", "--out", "shared"];
    let quiet = String::from_utf8(lejepa_succeeds(path, &eval).stderr).unwrap();
    assert!(!quiet.contains("the splits share images"), "{quiet}");
    assert_eq!(remarks(path, "honest", "data"), format!("- data: encoder {TRAINING}"));
    train(path, "cheat", &["--set", "data.splits=['train', 'test']"]);
    assert_eq!(remarks(path, "cheat", "data"), format!("- data: encoder {TEST}\n- data: encoder {TRAINING}"));

    // Weights remember what they were trained on before, also under another name.
    write_stripes(&path.join("other"), 0, 0);
    let images: Vec<u8> =
        (0..40 * 16 * 16).map(|place: u32| (place.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let header = |shape: &[u32]| {
        let sizes = shape.iter().flat_map(|size| size.to_be_bytes());
        [0, 0, 8, shape.len() as u8].into_iter().chain(sizes).collect::<Vec<u8>>()
    };
    std::fs::write(path.join("other/train-images-idx3-ubyte"), [header(&[40, 16, 16]), images].concat())
        .unwrap();
    std::fs::write(path.join("other/train-labels-idx1-ubyte"), [header(&[40]), vec![0; 40]].concat())
        .unwrap();
    train(path, "further", &["--data", "other", "--init", "cheat"]);
    std::fs::rename(path.join("data"), path.join("renamed")).unwrap();
    assert!(remarks(path, "further", "renamed").contains(TEST));
    train(path, "elsewhere", &["--data", "other"]);
    assert_eq!(remarks(path, "elsewhere", "renamed"), "");
    let inspected = lejepa_succeeds(path, &["inspect", "further.onnx"]).stdout;
    let inspected = String::from_utf8(inspected).unwrap();
    assert!(inspected.contains("260 images, which `lejepa eval` knows again"), "{inspected}");
}

/// Class folders without a test split.
fn write_folders(folder: &Path) {
    for index in 0..60u32 {
        let class = if index % 2 == 0 { "across" } else { "down" };
        let pixel = |place: u32| {
            let along = if index % 2 == 0 { place / 16 } else { place % 16 };
            (if (along + index) % 6 < 3 { 180 } else { 30 }) + (place * (index + 11) * 13 % 50) as u8
        };
        let image = Image::from_pixels(16, 16, 1, (0..256).map(pixel).collect()).unwrap();
        image.write_png(&folder.join(class).join(format!("{index:03}.png"))).unwrap();
    }
}

#[test]
fn a_fifth_can_be_held_out_and_is_what_an_evaluation_asks_about() {
    let folder = workspace();
    let path = folder.path();
    write_folders(&path.join("folders"));
    train(path, "all", &["--data", "folders"]);
    assert!(remarks(path, "all", "folders").contains(TEST));
    let said = train(path, "held-out", &["--data", "folders", "--hold-out"]);
    assert!(
        said.contains("48 images, ")
            && said.contains("note: held out of training, a fifth of every class: 12 images"),
        "{said}"
    );
    assert_eq!(remarks(path, "held-out", "folders"), format!("- folders: encoder {TRAINING}"));

    // The same images in other folders: some of the test images were trained on, whatever they are called.
    for (place, entry) in std::fs::read_dir(path.join("folders/down")).unwrap().enumerate() {
        let split = if place % 2 == 0 { "train" } else { "test" };
        for (class, file) in
            [("a", entry.as_ref().unwrap().path()), ("b", path.join("folders/across/000.png"))]
        {
            let to = path.join("moved").join(split).join(class);
            std::fs::create_dir_all(&to).unwrap();
            std::fs::copy(file, to.join(format!("{place}.png"))).unwrap();
        }
    }
    let eval = ["eval", "held-out.onnx", "--suite", "knn", "--data", "moved", "--out", "shared"];
    let said = String::from_utf8(lejepa_succeeds(path, &eval).stderr).unwrap();
    let noted = "have the very features of a training image: the splits share images";
    let lines = said.lines().filter(|line| line.starts_with("note: moved: ") && line.ends_with(noted));
    assert_eq!(lines.count(), 1, "{said}");
    let said = remarks(path, "held-out", "moved");
    assert!(
        said.contains("was trained on ") && said.contains(" of the 30 test images of this set"),
        "{said}"
    );

    // A test split without labels is none that can be asked about: the fifth is held back all the same.
    let labelled = path.join("unlabelled-test");
    write_folders(&labelled.join("train"));
    std::fs::create_dir(labelled.join("test")).unwrap();
    std::fs::copy(path.join("folders/down/001.png"), labelled.join("test/1.png")).unwrap();
    let said = train(path, "fifth", &["--data", "unlabelled-test", "--hold-out"]);
    assert!(said.contains("note: held out of training, a fifth of every class: 12 images"), "{said}");
    let eval = ["eval", "fifth.onnx", "--suite", "knn", "--data", "unlabelled-test", "--out", "fifth-report"];
    let said = String::from_utf8(lejepa_succeeds(path, &eval).stderr).unwrap();
    assert!(said.contains("images without labels: a fifth of every class, always the same"), "{said}");

    // A set with a test split holds nothing more back, and images without labels cannot be divided.
    let said = train(path, "split", &["--hold-out"]);
    let note =
        "note: nothing was held out of training: there is a test split, which evaluations ask about instead";
    assert!(said.contains("160 images, ") && said.contains(note), "{said}");
    let both = ["train", "--config", "train.toml", "--hold-out", "--set", "data.splits=[\"train\",\"test\"]"];
    let refused = lejepa(path, &[&both[..], &["--out", "no"]].concat());
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("`data.hold_out` must be absent where") && !path.join("no").exists(), "{stderr}");
    std::fs::create_dir(path.join("flat")).unwrap();
    std::fs::copy(path.join("folders/down/001.png"), path.join("flat/1.png")).unwrap();
    let refused =
        lejepa(path, &["train", "--config", "train.toml", "--data", "flat", "--hold-out", "--out", "no"]);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(
        stderr.starts_with("error: `data.hold_out` must be absent for images without labels, got: "),
        "{stderr}"
    );
}
