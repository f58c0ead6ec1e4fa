//! `lejepa export`, `inspect`, `verify` and `embed` as a user types them.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::ops::ControlFlow;
use std::path::Path;

use fixture::{lejepa, lejepa_succeeds, workspace, write_stripes};
use lejepa_data::{Dataset, SourceConfig, Split, Stored, read_matrix};
use lejepa_embed::{Encoder, FileInfo, Output};
use lejepa_eval::features::{Extraction, Share};
use lejepa_eval::sets::ImageList;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// A folder with data, a run and `encoder.onnx`.
fn exported(arguments: &[&str]) -> tempfile::TempDir {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(path, &[&["export", "run"], arguments].concat());
    folder
}

fn stdout(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(lejepa_succeeds(folder, arguments).stdout).unwrap()
}

fn features(path: &Path, tensor: Option<&str>) -> (usize, usize, Vec<f32>) {
    let matrix = read_matrix(path, tensor).unwrap();
    let lejepa_data::MatrixValues::Single(values) = matrix.values else { unreachable!("features are f32") };
    (matrix.rows, matrix.columns, values)
}

#[test]
fn an_exported_file_says_what_it_is_and_passes_its_test() {
    let folder = exported(&["--size", "16", "--size", "24x32", "--licence", "CC-BY-4.0"]);
    let path = folder.path();
    let card = stdout(path, &["inspect", "encoder.onnx"]);
    for line in [
        "architecture   vit",
        "embedding      16 dimensions, cls",
        "precision      f32",
        "image sizes    16x16, 24x32",
        "preprocessing  short side to 16 (bicubic), centre 16x16, grey",
        "licence        CC-BY-4.0",
        "self-test      inside, tolerates 1e-4; `lejepa verify` runs it",
        "output         embedding (batch, 16)",
        "output         patch_tokens (batch, rows, columns, 16)",
    ] {
        assert!(card.lines().any(|found| found == line), "{line:?} in\n{card}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&stdout(path, &["inspect", "encoder.onnx", "--json"])).unwrap();
    assert_eq!(json["config"]["train"]["epochs"], 1.);
    assert!(stdout(path, &["verify", "encoder.onnx"]).starts_with("passed: "));
    let eval = ["eval", "encoder.onnx", "--suite", "knn", "--data", "data", "--size", "24x32"];
    assert!(stdout(path, &eval).contains("same encoder, untrained"));

    let config = std::fs::read_to_string(path.join("preprocessor_config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["size"]["shortest_edge"], 16);
}

#[test]
fn an_encoder_that_differs_by_more_than_it_may_fails_its_test() {
    let folder = exported(&[]);
    let path = folder.path().join("encoder.onnx");
    let mut bytes = std::fs::read(&path).unwrap();
    let (known, impossible) = (b"\"tolerance\":0.0001", b"\"tolerance\":-0.001");
    let start = bytes.windows(known.len()).position(|window| window == known).unwrap();
    bytes[start..start + known.len()].copy_from_slice(impossible);
    std::fs::write(&path, lejepa_onnx::with_checksum(bytes.clone())).unwrap();
    let output = lejepa(folder.path(), &["verify", "encoder.onnx"]);
    assert_eq!(output.status.code(), Some(1));
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("failed: "), "{said}");

    std::fs::write(&path, bytes).unwrap();
    let output = lejepa(folder.path(), &["verify", "encoder.onnx"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("error: the file is damaged"), "{said}");
}

#[test]
fn less_precision_prints_what_it_costs_and_passes_its_test() {
    for precision in ["f16", "int8"] {
        let folder = workspace();
        let path = folder.path();
        lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
        let output = lejepa_succeeds(path, &["export", "run", "--precision", precision]);
        let said = String::from_utf8(output.stderr).unwrap();
        let line = said.lines().find(|line| line.starts_with(&format!("{precision}: "))).unwrap();
        for part in ["MB, cosine to f32 ", "on 17 training images, ", " images/s"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(stdout(path, &["verify", "encoder.onnx"]).starts_with("passed: "));
        assert!(stdout(path, &["inspect", "encoder.onnx"]).contains(&format!("precision      {precision}")));
    }
}

/// As models of more than 2 GB are written, with another threshold.
#[test]
fn weights_that_are_too_many_for_one_file_are_beside_it() {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    for precision in ["f32", "f16", "int8"] {
        lejepa_succeeds(path, &["export", "run", "--precision", precision, "--out", "whole/encoder.onnx"]);
        let onnx = format!("{precision}/a.onnx");
        let options = ["export", "run", "--precision", precision, "--most-inside", "1000", "--out", &onnx];
        let output = lejepa_succeeds(path, &options);
        let said = String::from_utf8(output.stderr).unwrap();
        let line = said.lines().find(|line| line.starts_with("its weights")).unwrap();
        let weights = path.join(line.rsplit_once(": ").unwrap().1);
        assert!(std::fs::metadata(path.join(&onnx)).unwrap().len() < 200_000);
        assert!(
            std::fs::read_dir(path.join(precision))
                .unwrap()
                .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with(".lejepa") })
        );
        assert!(stdout(path, &["verify", &onnx]).starts_with("passed: "));
        // The same to the last bit.
        let embedded = |encoder: &str, out: &str| {
            let out = format!("{precision}-{out}.npy");
            lejepa_succeeds(path, &["embed", "data", "--encoder", encoder, "--out", &out]);
            std::fs::read(path.join(out)).unwrap()
        };
        assert!(embedded("whole/encoder.onnx", "whole") == embedded(&onnx, "split"));
        // A changed byte, and weights that are gone.
        let mut bytes = std::fs::read(&weights).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&weights, &bytes).unwrap();
        let said = lejepa(path, &["verify", &onnx]);
        assert!(String::from_utf8_lossy(&said.stderr).contains("its file of weights is damaged"));
        std::fs::remove_file(&weights).unwrap();
        let said = lejepa(path, &["verify", &onnx]);
        assert!(String::from_utf8_lossy(&said.stderr).contains("a file of weights is missing"));
    }
}

#[test]
fn outputs_are_those_that_were_asked_for() {
    let folder = exported(&["--outputs", "projection,patch_tokens"]);
    let info = FileInfo::read(folder.path().join("encoder.onnx")).unwrap();
    let names: Vec<&str> = info.outputs.iter().map(|output| output.name.as_str()).collect();
    assert_eq!(names, ["embedding", "projection", "patch_tokens"]);
    let weights = lejepa(folder.path(), &["export", "run", "--out", "w.safetensors", "--size", "16"]);
    assert_eq!(weights.status.code(), Some(1));
    let said = String::from_utf8_lossy(&weights.stderr).into_owned();
    assert_eq!(said.trim_end(), "error: --size is for .onnx files, not for: w.safetensors");
    let size = lejepa(folder.path(), &["export", "run", "--size", "18"]);
    assert_eq!(size.status.code(), Some(2));
    let said = String::from_utf8_lossy(&size.stderr).into_owned();
    assert_eq!(said.trim_end(), "error: `--size` must be a multiple of the patch size 4, got: 18x18");
}

#[test]
fn vectors_of_a_dataset_are_written_in_every_format_with_ids_and_labels() {
    let folder = exported(&[]);
    let path = folder.path();
    let embed = |out: &str| stdout(path, &["embed", "data", "--encoder", "encoder.onnx", "--out", out]);
    assert_eq!(embed("features.npy"), "features.npy\n");
    let (rows, dim, values) = features(&path.join("features.npy"), None);
    assert_eq!((rows, dim), (220, 16));
    let table = std::fs::read_to_string(path.join("features.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "row,id,split,label,class");
    assert_eq!(lines.len(), 221);
    assert!(lines[2].starts_with("1,data/train-images-idx3-ubyte"), "{}", lines[2]);
    assert!(lines[2].contains(",training,1,"), "{}", lines[2]);
    assert!(lines[220].contains(",test,1,"), "{}", lines[220]);
    assert!(!path.join("features.npy.parts").exists());

    embed("others.safetensors");
    assert_eq!(features(&path.join("others.safetensors"), Some("features")), (220, 16, values.clone()));

    embed("features.parquet");
    let file = std::fs::File::open(path.join("features.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let mut found = Vec::new();
    for (index, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        let columns: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        assert_eq!(columns[2], &Field::Long(index as i64 % 2));
        let Field::ListInternal(list) = columns[4] else { unreachable!("{:?}", columns[4]) };
        found.extend(list.elements().iter().map(|value| match value {
            Field::Float(value) => *value,
            other => unreachable!("{other:?}"),
        }));
    }
    assert_eq!(found, values);
}

#[test]
fn image_files_are_embedded_and_broken_ones_left_out_by_name() {
    let folder = exported(&[]);
    let path = folder.path();
    let image = |grey: u8| {
        lejepa_data::Image::from_pixels(20, 30, 1, (0..600).map(|v| (v / 9) as u8 ^ grey).collect())
    };
    image(9).unwrap().write_png(&path.join("a.png")).unwrap();
    image(77).unwrap().write_png(&path.join("c.png")).unwrap();
    std::fs::write(path.join("b.png"), b"no image").unwrap();
    let arguments = ["embed", "a.png", "b.png", "c.png", "--encoder", "encoder.onnx", "--out", "few.npy"];
    let output = lejepa_succeeds(path, &arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("note: 1 images cannot be embedded and were left out, see few.npy.broken.jsonl"),
        "{said}"
    );
    assert!(std::fs::read_to_string(path.join("few.npy.broken.jsonl")).unwrap().contains("b.png"));
    let table = std::fs::read_to_string(path.join("few.csv")).unwrap();
    assert_eq!(table, "row,id,split,label,class\n0,a.png,,,\n1,c.png,,,\n");
    let expected = Encoder::open(path.join("encoder.onnx")).unwrap();
    let expected = expected.embed_paths(&[path.join("a.png"), path.join("c.png")]).unwrap();
    let (_, _, values) = features(&path.join("few.npy"), None);
    let difference =
        expected.iter().zip(&values).map(|(left, right)| (left - right).abs()).fold(0., f32::max);
    assert!(difference < 1e-5, "{difference:e}");

    let none = lejepa(path, &["embed", "b.png", "--encoder", "encoder.onnx", "--out", "none.npy"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&none.stderr).contains("none of the images can be embedded, such as b.png")
    );
    assert!(!path.join("none.npy").exists());
}

#[test]
fn other_projects_encoders_are_described_by_the_hubs_file() {
    let folder = exported(&[]);
    let path = folder.path();
    let embed = |out: &str, more: &[&str]| {
        let arguments = ["embed", "data", "--encoder", "encoder.onnx", "--out", out];
        lejepa_succeeds(path, &[&arguments, more].concat());
        features(&path.join(out), None)
    };
    let own = embed("own.npy", &[]);
    let described = ["--preprocess", "preprocessor_config.json", "--embedding", "embedding"];
    assert_eq!(embed("foreign.npy", &described), own);
}

#[test]
fn mistakes_are_named() {
    let folder = exported(&[]);
    let path = folder.path();
    let fails = |arguments: &[&str], code: i32, message: &str| {
        let output = lejepa(path, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().next().unwrap()), (Some(code), message));
    };
    let embed = |out: &'static str| ["embed", "data", "--encoder", "encoder.onnx", "--out", out];
    fails(
        &embed("features.txt"),
        2,
        "error: features are written as .npy, .safetensors or .parquet, got: features.txt",
    );
    let size = [&embed("x.npy")[..], &["--size", "32"]].concat();
    fails(&size, 2, "error: exported for images of 16x16, not for 32x32: encoder.onnx");
    let output = [&embed("x.npy")[..], &["--output", "projection"]].concat();
    let available = "embedding, cls_last2, patch_tokens, cls_attention";
    fails(&output, 2, &format!("error: no output projection, only {available}: encoder.onnx"));
    fails(
        &["inspect", "train.toml"],
        1,
        "error: not a readable ONNX file (cut off, damaged, or of another kind): train.toml",
    );
    fails(&["verify", "nowhere.onnx"], 2, "error: no such file: nowhere.onnx");
}

/// Images whose file is touched while they are read.
struct Restless(Box<dyn Dataset>);

impl Dataset for Restless {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn stored(&self, index: usize) -> lejepa_data::Result<Stored> {
        if index == 5 {
            let file = std::fs::File::options().append(true).open(&self.0.files()[0]).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }
        self.0.stored(index)
    }

    fn name(&self, index: usize) -> String {
        self.0.name(index)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.0.label(index)
    }

    fn class_names(&self) -> &[String] {
        self.0.class_names()
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        self.0.files()
    }
}

#[test]
fn features_of_images_that_change_while_they_are_read_are_not_kept() {
    let folder = exported(&[]);
    let path = folder.path();
    write_stripes(&path.join("more"), 20, 10);
    let data = lejepa_data::open(&path.join("more"), Split::Train).unwrap();
    let images = ImageList::of(Split::Train, Box::new(Restless(data)));
    let encoder = Encoder::open(path.join("encoder.onnx")).unwrap();
    let extraction = Extraction { encoder: &encoder, output: Output::Embedding, images: &images };
    let parts = path.join("parts");
    let error = extraction.run(&parts, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(error.contains("the images changed while they were read"), "{error}");
    let kept = std::fs::read_dir(&parts).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(kept.filter(|path| path.extension().is_some_and(|end| end == "part")).count(), 0);
}

#[test]
fn an_interrupted_extraction_goes_on_where_it_stopped() {
    let folder = exported(&[]);
    let path = folder.path();
    write_stripes(&path.join("more"), 600, 10);
    let source = SourceConfig { path: path.join("more"), ..Default::default() };
    let images = ImageList::open(&[source]).unwrap();
    let open = || Encoder::open(path.join("encoder.onnx")).unwrap();
    let (first, second, whole) = (open(), open(), open());
    let parts = path.join("parts");
    let of = |encoder| Extraction { encoder, output: Output::Embedding, images: &images };
    let stop_early = |done| if done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    assert!(of(&first).run(&parts, &mut { stop_early }).unwrap().is_none());
    // What a power cut leaves of the next part, and what another key has left.
    let name = of(&first).name().unwrap();
    let next = first.statistics().images;
    std::fs::write(parts.join(format!("{name}-{next:010}-0000000610.part")), b"half a part").unwrap();
    let mut other = std::fs::read_dir(&parts).unwrap().map(|entry| entry.unwrap().path());
    let own = other.find(|path| path.extension().is_some_and(|end| end == "part")).unwrap();
    std::fs::copy(own, parts.join(format!("{}-{next:010}-0000000610.part", "0".repeat(24)))).unwrap();
    let resumed = of(&second).run(&parts, &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
    assert_eq!(first.statistics().images + second.statistics().images, 610);
    let uninterrupted =
        of(&whole).run(&path.join("others"), &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
    let rows = |extracted: &lejepa_eval::features::Extracted| {
        let mut all = Vec::new();
        let collect = |_: &[usize], rows: &[f32]| {
            all.extend_from_slice(rows);
            Ok(())
        };
        extracted.for_each_part(collect).unwrap();
        all
    };
    assert_eq!(rows(&resumed), rows(&uninterrupted));

    let normalised = Encoder::builder().normalised().open(path.join("encoder.onnx")).unwrap();
    let message = of(&normalised).begin(&parts, Share::Alone).unwrap_err().to_string();
    assert!(message.contains("holds parts of another extraction (other: --normalise)"), "{message}");
}
