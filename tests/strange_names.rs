//! Names and cards of strangers command neither the terminal nor a spreadsheet.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;

use fixture::{lejepa, lejepa_succeeds, workspace};

/// Colours, clears the screen and rings the bell.
const ESCAPES: &str = "\u{1b}[31m\u{1b}[2J\u{9b}1m\u{7}";

fn exported(licence: &str) -> tempfile::TempDir {
    let folder = workspace();
    lejepa_succeeds(folder.path(), &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(folder.path(), &["export", "run", "--licence", licence]);
    folder
}

fn write_image(path: &Path, grey: u8) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let pixels = (0..256).map(|pixel| (pixel as u8).wrapping_mul(grey)).collect();
    lejepa_data::Image::from_pixels(16, 16, 1, pixels).unwrap().write_png(path).unwrap();
}

#[test]
fn cards_and_file_names_are_printed_without_escapes() {
    let folder = exported(ESCAPES);
    let path = folder.path();
    for class in [format!("a{ESCAPES}"), "b".into()] {
        (0..6).for_each(|grey| {
            write_image(&path.join("photos").join(&class).join(format!("{grey}.png")), grey)
        });
        std::fs::write(path.join("photos").join(&class).join(format!("x{ESCAPES}.png")), "no image").unwrap();
    }
    let out = format!("out{ESCAPES}.npy");
    let named = format!("{ESCAPES}.onnx");
    let commands: [&[&str]; 9] = [
        &["inspect", "encoder.onnx"],
        &["inspect", "encoder.onnx", "--json"],
        &["data", "inspect", "photos"],
        &["data", "verify", "photos"],
        &["embed", "photos", "--encoder", "encoder.onnx", "--out", &out],
        &["eval", "encoder.onnx", "--suite", "knn", "--data", "photos"],
        &["pca", "encoder.onnx", "photos", "--out", "pca"],
        &[
            "train",
            "--config",
            "train.toml",
            "--data",
            "photos",
            "--epochs",
            "0.5",
            "--out",
            "strange",
            "--set",
            "data.broken_limit=1",
        ],
        &["verify", &named],
    ];
    for command in commands {
        let output = lejepa(path, command);
        for stream in [&output.stdout, &output.stderr] {
            let text = String::from_utf8(stream.clone()).unwrap();
            let escape = text.find(|it: char| it.is_control() && it != '\n' && it != '\t');
            assert_eq!(escape, None, "{command:?}: {text:?}");
        }
    }
    // A name does not look like a message.
    std::fs::write(path.join("photos/b/y\nerror: all is lost.png"), "no image").unwrap();
    let found = lejepa(path, &["data", "verify", "photos"]);
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(text.lines().all(|line| !line.starts_with("error: ")), "{text}");
    // JSON is what it was.
    let card = lejepa_succeeds(path, &["inspect", "encoder.onnx", "--json"]).stdout;
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&card).unwrap()["licence"], ESCAPES);
}

#[test]
fn no_table_holds_a_formula() {
    let folder = exported("");
    let path = folder.path();
    for class in ["=1+1", "@b"] {
        (0..6).for_each(|grey| {
            write_image(&path.join("+photos").join(class).join(format!("{grey}.png")), grey)
        });
    }
    let suite = "shots = [2]\nbaselines = []\n[[probe]]\nkind = \"knn\"\nk = 2\ntemperature = 0.07\n";
    std::fs::write(path.join("mine.toml"), suite).unwrap();
    lejepa_succeeds(path, &["embed", "+photos", "--encoder", "encoder.onnx", "--out", "f.npy"]);
    lejepa_succeeds(
        path,
        &["eval", "encoder.onnx", "--suite", "mine.toml", "--data", "+photos", "--out", "out"],
    );
    let mut tables = vec![path.join("f.csv")];
    for folder in [path.join("out"), path.join("out/draws")] {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        tables.extend(files.filter(|path| path.extension().is_some_and(|end| end == "csv")));
    }
    assert_eq!(tables.len(), 5, "{tables:?}");
    for table in tables {
        let text = std::fs::read_to_string(&table).unwrap();
        assert!(text.contains(",'=1+1") || text.contains("'+photos"), "{}: {text}", table.display());
        // Numbers may well be negative.
        let cells = text.lines().flat_map(|line| line.split(',')).filter(|cell| cell.parse::<f64>().is_err());
        let formula = cells.into_iter().find(|cell| cell.trim_matches('"').starts_with(['=', '+', '-', '@']));
        assert_eq!(formula, None, "{}", table.display());
    }
}
