//! `lejepa data inspect` and `lejepa data verify` on folders with a broken image.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;

use fixture::{lejepa, lejepa_succeeds, workspace};

/// `photos/train/{cat,dog}` with six images, one of them broken, and `photos/test/dog` with one.
fn write_photos(folder: &Path) {
    for (index, name) in
        ["train/cat/0", "train/cat/1", "train/dog/2", "train/dog/3", "train/dog/4", "test/dog/5"]
            .iter()
            .enumerate()
    {
        let path = folder.join(format!("photos/{name}.png"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let colour = image::Rgb([40 * index as u8, 100, 200]);
        image::RgbImage::from_pixel(20 + index as u32, 10, colour).save(path).unwrap();
    }
    std::fs::write(folder.join("photos/train/dog/broken.png"), "this is no image").unwrap();
}

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn an_inspection_counts_names_what_is_broken_and_draws_a_sheet() {
    let folder = workspace();
    write_photos(folder.path());
    let output = lejepa_succeeds(folder.path(), &["data", "inspect", "photos"]);
    let text = stdout(&output);
    assert!(text.starts_with("photos: folder\n"), "{text}");
    for words in [
        &["training", "6", "2", "0", "0%", "10x20", "10x22", "10x24"][..],
        &["test", "1", "2", "0", "0%", "10x25", "10x25", "10x25"],
        &["class", "training", "test"],
        &["cat", "2", "0"],
        &["dog", "4", "1"],
    ] {
        let has = |line: &str| {
            let found: Vec<&str> = line.split_whitespace().filter(|word| word.len() != 16).collect();
            found == words
        };
        assert!(text.lines().any(has), "no line {words:?} in:\n{text}");
    }
    assert!(
        text.contains("1 of 6 decoded training images cannot be read:\nphotos/train/dog/broken.png: "),
        "{text}"
    );
    assert!(text.ends_with("contact sheet: photos-contact-sheet.png\n"), "{text}");
    assert!(output.stderr.is_empty());

    // Titles of three letters, then two columns for cats, three for dogs.
    let sheet = image::open(folder.path().join("photos-contact-sheet.png")).unwrap();
    assert_eq!((sheet.width(), sheet.height()), (4 + 3 * 16 + 8 + 3 * 100, 4 + 2 * 100));
}

#[test]
fn an_inspection_is_also_json() {
    let folder = workspace();
    write_photos(folder.path());
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    let output = lejepa_succeeds(folder.path(), &["data", "inspect", "photos", "--json"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before, "a sheet that nobody asked for");
    let inspection: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(inspection["format"], "folder");
    let train = &inspection["splits"][0];
    assert_eq!((&train["split"], &train["images"]), (&"train".into(), &6.into()));
    assert_eq!(train["classes"][1], serde_json::json!({ "name": "dog", "images": 4 }));
    assert_eq!(train["unreadable_images"][0]["name"], "photos/train/dog/broken.png");

    let arguments = ["data", "inspect", "photos", "--json", "--sheet", "out/a.png"];
    assert_eq!(stdout(&lejepa_succeeds(folder.path(), &arguments)), stdout(&output));
    assert!(folder.path().join("out/a.png").is_file());
}

#[test]
fn no_sheet_is_written_into_the_data_unasked() {
    let folder = workspace();
    write_photos(folder.path());
    let train = folder.path().join("photos/train");
    let output = lejepa_succeeds(&train, &["data", "inspect", ".."]);
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("no contact sheet"));
    assert_eq!(std::fs::read_dir(&train).unwrap().count(), 2);
}

#[test]
fn a_verification_fails_exactly_if_an_image_is_broken() {
    let folder = workspace();
    write_photos(folder.path());
    let broken = lejepa(folder.path(), &["data", "verify", "photos"]);
    assert_eq!(broken.status.code(), Some(1));
    let text = stdout(&broken);
    assert!(text.starts_with("photos/train/dog/broken.png: cannot decode image: "), "{text}");
    assert!(broken.stderr.is_empty());
    let content = |text: &str, split: &str, counts: [&str; 2]| {
        let line = text.lines().find(|line| line.starts_with(split)).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1..3], counts, "{text}");
        assert_eq!(words[3].len(), 16);
        words[3].to_string()
    };
    let before = content(&text, "training", ["6", "1"]);
    let test = content(&text, "test", ["1", "0"]);

    std::fs::remove_file(folder.path().join("photos/train/dog/broken.png")).unwrap();
    let text = stdout(&lejepa_succeeds(folder.path(), &["data", "verify", "photos"]));
    assert_ne!(content(&text, "training", ["5", "0"]), before);
    assert_eq!(content(&text, "test", ["1", "0"]), test);

    let json = stdout(&lejepa_succeeds(folder.path(), &["data", "verify", "photos", "--json"]));
    let verification: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(verification["splits"][1]["content"], test);
}

#[test]
fn other_formats_and_wrong_names_are_told_apart() {
    let folder = workspace();
    let text = stdout(&lejepa_succeeds(folder.path(), &["data", "inspect", "data"]));
    assert!(text.starts_with("data: idx\n") && text.contains("100%"), "{text}");

    let output = lejepa(folder.path(), &["data", "inspect", "data", "--format", "idxx"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("possible values"));
    let output = lejepa(folder.path(), &["data", "verify", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: no such file or folder: nowhere\n");
}

/// `tests/damaged/galaxies.h5` was found by `scripts/fuzz-readers.sh --alone`: version 1.10 of the library crashes.
#[test]
fn a_damaged_hdf5_file_is_an_error_and_not_the_end_of_the_program() {
    let folder = workspace();
    let damaged = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/damaged/galaxies.h5");
    for arguments in [&["data", "inspect", damaged][..], &["data", "verify", "--format", "galaxy10", damaged]]
    {
        let output = lejepa(folder.path(), arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(
            message.starts_with("error: not a valid HDF5 file (") && message.contains("galaxies.h5"),
            "{message}"
        );
    }
    // A sound one is read as ever, and remembered once it has not been touched for a while.
    let sound = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats/hdf5/gzip.h5");
    for _again in 0..2 {
        let output = lejepa_succeeds(folder.path(), &["data", "verify", sound]);
        assert!(stdout(&output).contains("training"));
    }
}
