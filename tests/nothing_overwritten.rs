//! Commands write what they were asked for, and nothing over what is somebody's.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;

use fixture::{lejepa, lejepa_succeeds, workspace};

fn exported() -> tempfile::TempDir {
    let folder = workspace();
    lejepa_succeeds(folder.path(), &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(folder.path(), &["export", "run"]);
    folder
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = lejepa(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn vectors_and_what_lies_beside_them_replace_nothing_unless_told() {
    let folder = exported();
    let path = folder.path();
    let embed = ["embed", "data", "--encoder", "encoder.onnx", "--out", "mine.npy"];
    for theirs in ["mine.npy", "mine.csv", "mine.npy.json", "mine.npy.broken.jsonl"] {
        std::fs::write(path.join(theirs), "mine").unwrap();
        let said = refused(path, &embed);
        assert!(said.contains(&format!("replaced only with --overwrite: {theirs}")), "{said}");
        assert_eq!(std::fs::read_to_string(path.join(theirs)).unwrap(), "mine");
        assert!(!path.join("mine.npy.parts").exists());
        std::fs::remove_file(path.join(theirs)).unwrap();
    }
    std::fs::write(path.join("mine.csv"), "mine").unwrap();
    lejepa_succeeds(path, &[&embed[..], &["--overwrite"]].concat());
    assert!(std::fs::read_to_string(path.join("mine.csv")).unwrap().starts_with("row,id"));
    // A table of its own is no part of a file that holds ids itself.
    let parquet = ["embed", "data", "--encoder", "encoder.onnx", "--out", "mine.parquet"];
    lejepa_succeeds(path, &parquet);

    // What else lies in the folder of the parts stays.
    std::fs::create_dir(path.join("other.npy.parts")).unwrap();
    std::fs::write(path.join("other.npy.parts/notes.txt"), "mine").unwrap();
    lejepa_succeeds(path, &["embed", "data", "--encoder", "encoder.onnx", "--out", "other.npy"]);
    assert_eq!(std::fs::read_dir(path.join("other.npy.parts")).unwrap().count(), 1);
}

#[test]
fn vectors_that_were_damaged_or_replaced_are_not_taken_for_done() {
    let folder = exported();
    let path = folder.path();
    for (out, beside) in [("f.npy", Some("f.csv")), ("g.safetensors", None), ("h.parquet", None)] {
        let embed = ["embed", "data", "--encoder", "encoder.onnx", "--out", out];
        lejepa_succeeds(path, &embed);
        let again = lejepa_succeeds(path, &embed);
        assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to do"), "{out}");
        let whole = std::fs::read(path.join(out)).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        for damaged in [&flipped[..], &whole[..500]] {
            std::fs::write(path.join(out), damaged).unwrap();
            for share in [&[][..], &["--shard", "1/2"]] {
                let said = refused(path, &[&embed[..], share].concat());
                assert!(said.contains(&format!("replaced only with --overwrite: {out}")), "{said}");
            }
            assert!(std::fs::read(path.join(out)).unwrap() == damaged);
            lejepa_succeeds(path, &[&embed[..], &["--overwrite"]].concat());
            assert!(std::fs::read(path.join(out)).unwrap() == whole, "{out}");
        }
        if let Some(beside) = beside {
            std::fs::write(path.join(beside), "mine").unwrap();
            let said = refused(path, &embed);
            assert!(said.contains(&format!("replaced only with --overwrite: {beside}")), "{said}");
            lejepa_succeeds(path, &[&embed[..], &["--overwrite"]].concat());
        }
        // Of a version that kept no list of what it has written.
        std::fs::remove_file(path.join(".made-by.jsonl")).unwrap();
        let said = refused(path, &embed);
        assert!(said.contains(&format!("replaced only with --overwrite: {out}")), "{said}");
        lejepa_succeeds(path, &[&embed[..], &["--overwrite"]].concat());
        lejepa_succeeds(path, &embed);
    }
    #[cfg(target_os = "linux")]
    for share in [&[][..], &["--shard", "1/2"]] {
        let key = path.join("i.npy.parts/key.json");
        std::fs::create_dir_all(key.parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&key).status().unwrap();
        assert!(made.success());
        let embed = ["embed", "data", "--encoder", "encoder.onnx", "--out", "i.npy"];
        let said = refused(path, &[&embed[..], share].concat());
        assert!(said.contains("i.npy.parts/key.json") && said.contains("not a regular file"), "{said}");
        std::fs::remove_file(key).unwrap();
    }
}

#[test]
fn an_export_replaces_no_description_that_somebody_has_edited() {
    let folder = exported();
    let path = folder.path();
    let (shared, encoder) = (path.join("preprocessor_config.json"), path.join("encoder.onnx"));
    lejepa_succeeds(path, &["export", "run"]);
    let edited = std::fs::read_to_string(&shared).unwrap().replace("0.5", "0.4");
    std::fs::write(&shared, &edited).unwrap();
    let before = std::fs::read(&encoder).unwrap();
    let said = refused(path, &["export", "run", "--outputs", "embedding"]);
    assert!(said.contains("replaced only with --overwrite: preprocessor_config.json"), "{said}");
    assert_eq!(std::fs::read_to_string(&shared).unwrap(), edited);
    assert!(std::fs::read(&encoder).unwrap() == before, "nothing was touched");
    lejepa_succeeds(path, &["export", "run", "--overwrite"]);
    lejepa_succeeds(path, &["export", "run"]);
    #[cfg(target_os = "linux")]
    {
        std::fs::remove_file(&shared).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&shared).status().unwrap().success());
        let said = String::from_utf8(lejepa_succeeds(path, &["export", "run"]).stderr).unwrap();
        assert!(said.contains("for other tools: encoder.preprocessor_config.json"), "{said}");
    }
}

#[test]
fn files_with_one_stem_do_not_share_a_table() {
    let folder = exported();
    let path = folder.path();
    let embed = |out: &'static str| ["embed", "data", "--encoder", "encoder.onnx", "--out", out];
    lejepa_succeeds(path, &embed("mine.npy"));
    let table = std::fs::read(path.join("mine.csv")).unwrap();
    let said = refused(path, &embed("mine.safetensors"));
    assert!(said.contains("replaced only with --overwrite: mine.csv"), "{said}");
    assert!(!path.join("mine.safetensors").exists());
    assert_eq!(std::fs::read(path.join("mine.csv")).unwrap(), table);

    // While another process is at work on one of them.
    let lock = lejepa_data::Lock::of_file(&path.join("both.csv")).unwrap();
    let said = refused(path, &embed("both.npy"));
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    assert!(said.contains("is at work in: both.csv\nhint: wait for it"), "{said}");
    lejepa_succeeds(path, &embed("both.parquet"));
    drop(lock);
    let hidden = |name: &str| name.starts_with('.');
    let names = std::fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| hidden(name)).collect();
    assert_eq!(left, [".made-by.jsonl"], "the list of what was written, and no lock");
}

#[test]
fn the_same_vectors_once_more_are_nothing_to_do_and_other_ones_are_refused() {
    let folder = exported();
    let path = folder.path();
    for out in ["a.npy", "b.safetensors", "c.parquet"] {
        let embed = ["embed", "data", "--encoder", "encoder.onnx", "--out", out];
        lejepa_succeeds(path, &embed);
        let before = std::fs::metadata(path.join(out)).unwrap().modified().unwrap();
        let again = String::from_utf8(lejepa_succeeds(path, &embed).stderr).unwrap();
        assert!(again.contains("nothing to do: the same vectors were written before"), "{again}");
        assert_eq!(std::fs::metadata(path.join(out)).unwrap().modified().unwrap(), before);
        for other in [&["--normalise"][..], &["--precision", "f16"], &["--output", "cls_last2"]] {
            let said = refused(path, &[&embed[..], other].concat());
            assert!(said.contains(&format!("replaced only with --overwrite: {out}")), "{said}");
            assert!(!path.join(format!("{out}.parts")).exists());
        }
    }
    // Tasks of a cluster that are started once more.
    let embed = ["embed", "data", "--encoder", "encoder.onnx", "--out", "d.npy"];
    for _ in 0..2 {
        for share in [&["--shard", "1/2"][..], &["--shard", "2/2"], &["--merge"]] {
            lejepa_succeeds(path, &[&embed[..], share].concat());
        }
        assert!(path.join("d.npy").exists() && !path.join("d.npy.parts").exists());
    }
}

#[test]
fn images_that_were_repaired_are_embedded_where_none_could_be() {
    let folder = exported();
    let path = folder.path();
    std::fs::create_dir(path.join("photos")).unwrap();
    std::fs::write(path.join("photos/a.png"), "no image").unwrap();
    let embed = ["embed", "photos", "--encoder", "encoder.onnx", "--out", "few.npy"];
    assert!(refused(path, &embed).contains("none of the images can be embedded"));
    assert!(!path.join("few.npy.parts").exists());
    let image = lejepa_data::Image::from_pixels(16, 16, 1, vec![9; 256]).unwrap();
    image.write_png(&path.join("photos/a.png")).unwrap();
    lejepa_succeeds(path, &embed);
}

#[test]
fn an_export_replaces_that_of_the_same_run_and_nothing_else() {
    let folder = exported();
    let path = folder.path();
    lejepa_succeeds(path, &["export", "run"]);
    lejepa_succeeds(path, &["export", "run", "--precision", "f16"]);
    lejepa_succeeds(
        path,
        &["train", "--config", "train.toml", "--out", "other", "--epochs", "1", "--set", "seed=9"],
    );
    let before = std::fs::read(path.join("encoder.onnx")).unwrap();
    let said = refused(path, &["export", "other"]);
    assert!(said.contains("replaced only with --overwrite: encoder.onnx"), "{said}");
    assert_eq!(std::fs::read(path.join("encoder.onnx")).unwrap(), before);
    lejepa_succeeds(path, &["export", "other", "--overwrite"]);
    refused(path, &["export", "run"]);
    for theirs in ["mine.onnx", "mine.safetensors"] {
        std::fs::write(path.join(theirs), "mine").unwrap();
        let said = refused(path, &["export", "run", "--out", theirs]);
        assert!(said.contains(&format!("replaced only with --overwrite: {theirs}")), "{said}");
        assert_eq!(std::fs::read_to_string(path.join(theirs)).unwrap(), "mine");
        lejepa_succeeds(path, &["export", "run", "--out", theirs, "--overwrite"]);
        lejepa_succeeds(path, &["export", "run", "--out", theirs]);
    }
}

#[test]
fn pictures_replace_those_of_the_same_command_and_nothing_else() {
    let folder = exported();
    let path = folder.path();
    lejepa_succeeds(path, &["embed", "data", "--encoder", "encoder.onnx", "--out", "f.npy"]);
    fixture::write_stripes(&path.join("more"), 20, 10);
    let cases: [(&str, &[&str]); 6] = [
        ("f.gauge.svg", &["gauge", "f.npy"]),
        ("curves.svg", &["runs", "run", "--plot", "curves.svg"]),
        ("data-contact-sheet.png", &["data", "inspect", "data"]),
        ("views.png", &["data", "views", "data", "--config", "train.toml"]),
        ("pca/sheet.png", &["pca", "encoder.onnx", "data", "--limit", "2", "--out", "pca"]),
        (
            "attention/1-train-images-idx3-ubyte-image-0.png",
            &["attention", "encoder.onnx", "data", "--limit", "2", "--out", "attention"],
        ),
    ];
    for (picture, command) in cases {
        lejepa_succeeds(path, command);
        lejepa_succeeds(path, command);
        let made = std::fs::read(path.join(picture)).unwrap();
        std::fs::write(path.join(picture), "mine").unwrap();
        let said = refused(path, command);
        let place = picture.split('/').next().unwrap();
        assert!(said.contains(&format!("replaced only with --overwrite: {place}")), "{said}");
        assert_eq!(std::fs::read_to_string(path.join(picture)).unwrap(), "mine");
        lejepa_succeeds(path, &[command, &["--overwrite"]].concat());
        assert_eq!(std::fs::read(path.join(picture)).unwrap(), made, "{picture}");
    }
    // The same command on something else.
    let said = refused(path, &["data", "views", "more", "--config", "train.toml"]);
    assert!(said.contains("replaced only with --overwrite: views.png"), "{said}");
    let said = refused(path, &["pca", "encoder.onnx", "more", "--limit", "2", "--out", "pca"]);
    assert!(said.contains("replaced only with --overwrite: pca/"), "{said}");
    // On another content at the same place.
    lejepa_succeeds(path, &["export", "run", "--outputs", "embedding,patch_tokens"]);
    let said = refused(path, cases[4].1);
    assert!(said.contains("replaced only with --overwrite: pca/"), "{said}");
    lejepa_succeeds(path, &["embed", "more", "--encoder", "encoder.onnx", "--out", "f.npy", "--overwrite"]);
    let said = refused(path, cases[0].1);
    assert!(said.contains("replaced only with --overwrite: f.gauge.svg"), "{said}");
    let photo = |brightness: u8| {
        let image = lejepa_data::Image::from_pixels(28, 28, 1, vec![brightness; 28 * 28]).unwrap();
        image.write_png(&path.join("photo.png")).unwrap();
    };
    let pca = ["pca", "encoder.onnx", "photo.png", "--out", "one"];
    photo(100);
    lejepa_succeeds(path, &pca);
    photo(100);
    lejepa_succeeds(path, &pca);
    photo(101);
    let said = refused(path, &pca);
    assert!(said.contains("replaced only with --overwrite: one/"), "{said}");
}

#[test]
fn folders_of_a_user_among_the_pictures_are_left_alone() {
    let folder = exported();
    let path = folder.path();
    let image = "1-train-images-idx3-ubyte-image-0";
    for (out, mine) in [("new", format!("{image}/mean-mask.png")), ("old", format!("{image}/mean-mask.png"))]
    {
        let attention = ["attention", "encoder.onnx", "data", "--limit", "1", "--out", out];
        if out == "old" {
            lejepa_succeeds(path, &attention);
            lejepa_succeeds(path, &attention);
        }
        let mine = path.join(out).join(mine);
        std::fs::create_dir_all(mine.parent().unwrap()).unwrap();
        std::fs::write(&mine, "mine").unwrap();
        let said = refused(path, &attention);
        assert!(said.contains(&format!("replaced only with --overwrite: {out}/{image}")), "{said}");
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
        lejepa_succeeds(path, &[&attention[..], &["--overwrite"]].concat());
        assert!(std::fs::read(&mine).unwrap() != b"mine");
    }
}

#[test]
fn a_report_is_replaced_by_the_same_evaluation_alone() {
    let folder = exported();
    let path = folder.path();
    let suite = |seed: u8| {
        let text =
            format!("seed = {seed}\nbaselines = []\n[[probe]]\nkind = \"knn\"\nk = 5\ntemperature = 0.07\n");
        std::fs::write(path.join("mine.toml"), text).unwrap();
    };
    suite(0);
    let eval = ["eval", "encoder.onnx", "--suite", "mine.toml", "--data", "data", "--out", "three"];
    lejepa_succeeds(path, &eval);
    let absolute = [path.join("three/"), path.join("data/."), path.join("encoder.onnx")];
    let [out, data, encoder] = absolute.each_ref().map(|path| path.to_str().unwrap());
    lejepa_succeeds(path, &["eval", encoder, "--suite", "./mine.toml", "--data", data, "--out", out]);
    let report = || std::fs::read_to_string(path.join("three/report.md")).unwrap();
    let differs = |more: &[&str], what: &str| {
        let before = report();
        let said = refused(path, &[&eval[..], more].concat());
        let hint = "use another --out, or --overwrite to replace that: three";
        let is_named =
            said.contains("the folder holds a report of ") && said.contains(&format!("{what}: {hint}"));
        assert!(is_named, "{said}");
        assert!(report() == before, "nothing was touched");
    };
    differs(&["--embedding", "cls_last2"], "encoder.onnx (other: output)");
    differs(&["--batch", "3"], "encoder.onnx (other: batch)");
    suite(1);
    differs(&[], "another suite (other: seed)");
    suite(0);
    fixture::write_stripes(&path.join("data"), 160, 58);
    differs(&[], "other images, labels or splits of data");
    fixture::write_stripes(&path.join("data"), 160, 60);
    lejepa_succeeds(path, &eval);
    lejepa_succeeds(path, &["export", "run", "--outputs", "embedding"]);
    differs(&[], "encoder.onnx (other: encoder)");
    lejepa_succeeds(path, &[&eval[..], &["--overwrite"]].concat());

    let mine = path.join("four/draws/data.csv");
    std::fs::create_dir_all(mine.parent().unwrap()).unwrap();
    std::fs::write(&mine, "mine").unwrap();
    let into_four = [&eval[..7], &["four"]].concat();
    let said = refused(path, &into_four);
    assert!(said.contains("replaced only with --overwrite: four/draws/data.csv"), "{said}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    lejepa_succeeds(path, &[&into_four[..], &["--overwrite"]].concat());

    // No folder can be made there, whoever asks: numbers come without a cache, and that is said.
    #[cfg(target_os = "linux")]
    {
        let five = ["--out", "five", "--cache", "/sys/lejepa"];
        lejepa_succeeds(path, &[&eval[..6], &five].concat());
        let report = std::fs::read_to_string(path.join("five/report.md")).unwrap();
        assert!(report.contains("without a cache, which cannot be written: /sys/lejepa"), "{report}");
    }

    std::fs::write(path.join("file"), "mine").unwrap();
    let said = refused(path, &[&eval[..7], &["file"]].concat());
    assert!(
        said.starts_with("error: a file is where a folder is to be made, choose another: file\n"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(path.join("file")).unwrap(), "mine");
}

#[test]
fn another_output_needs_no_description_but_the_one_beside_the_encoder() {
    let folder = exported();
    let path = folder.path();
    let embed = ["embed", "data", "--encoder", "encoder.onnx", "--embedding", "cls_last2", "--out"];
    let said = lejepa_succeeds(path, &[&embed[..], &["two.npy"]].concat());
    let said = String::from_utf8(said.stderr).unwrap();
    let note = "note: images for encoder.onnx are prepared as preprocessor_config.json says";
    assert!(said.contains(note) && said.contains("32 dimensions"), "{said}");
    std::fs::remove_file(path.join("preprocessor_config.json")).unwrap();
    let said = refused(path, &[&embed[..], &["three.npy"]].concat());
    assert!(said.contains("--embedding needs a description of how images are prepared"), "{said}");
}

#[test]
fn a_run_begins_over_nothing_that_no_run_has_written() {
    let folder = workspace();
    let path = folder.path();
    let train = ["train", "--config", "train.toml", "--epochs", "0.2", "--out", "mine"];
    std::fs::create_dir(path.join("mine")).unwrap();
    for (name, content) in
        [("config.toml", fixture::TINY_RECIPE), ("config.toml", "a = 1"), ("metrics.jsonl", "{}")]
    {
        std::fs::write(path.join("mine").join(name), content).unwrap();
        let output = lejepa(path, &train);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("no run has written that file, choose another --out: mine/{name}")),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(path.join("mine").join(name)).unwrap(), content);
        std::fs::remove_file(path.join("mine").join(name)).unwrap();
    }
    // A run that was killed before its first checkpoint begins again.
    lejepa_succeeds(path, &train);
    std::fs::remove_dir_all(path.join("mine/checkpoints")).unwrap();
    std::fs::remove_file(path.join("mine/metrics.jsonl")).unwrap();
    lejepa_succeeds(path, &train);
}

#[test]
fn a_run_folder_has_one_writer_at_a_time() {
    let folder = exported();
    let path = folder.path();
    lejepa_succeeds(path, &["export", "run", "--out", "weights.safetensors"]);
    std::fs::write(path.join("grid.toml"), "recipe = \"train.toml\"\n[grid]\nseed = [1]\n").unwrap();
    let dims = ["encoder.patch_size=4", "encoder.dim=16", "encoder.depth=2", "encoder.heads=2"];
    let sets =
        ["encoder.image_size=16", "encoder.channels=1"].iter().chain(&dims).flat_map(|set| ["--set", set]);
    let import = ["import", "weights.safetensors", "--arch", "vit", "--out", "imported"];
    let import: Vec<&str> = import.into_iter().chain(sets).collect();
    let cases: [(&str, &[&str]); 4] = [
        ("fresh", &["train", "--config", "train.toml", "--out", "fresh"]),
        ("run", &["train", "--config", "train.toml", "--out", "./run/", "--epochs", "1"]),
        ("swept", &["sweep", "grid.toml", "--out", "swept"]),
        ("imported", &import),
    ];
    for (run, command) in cases {
        let lock = lejepa_data::Lock::of_folder(&path.join(run)).unwrap();
        let before = std::fs::read(path.join(run).join("metrics.jsonl")).ok();
        let said = refused(path, command);
        let process = std::process::id();
        assert!(said.starts_with(&format!("error: process {process}")), "{said}");
        assert!(said.contains(" is at work in: ") && said.contains("\nhint: wait for it"), "{said}");
        assert_eq!(std::fs::read(path.join(run).join("metrics.jsonl")).ok(), before);
        // Reading is everybody's.
        if run == "run" {
            lejepa_succeeds(path, &["export", "run"]);
            lejepa_succeeds(path, &["runs", "run"]);
        }
        drop(lock);
    }
    // What a killed process has left is in nobody's way.
    std::fs::write(path.join("run/.lejepa-lock"), "4000000 elsewhere\n").unwrap();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(path, &import);
}

#[test]
fn a_description_of_another_encoder_is_neither_replaced_nor_believed() {
    let folder = exported();
    let path = folder.path();
    let shared = path.join("preprocessor_config.json");
    let theirs = std::fs::read_to_string(&shared).unwrap().replace("16", "24");
    std::fs::write(&shared, theirs.replace("\"encoder_file\": \"encoder.onnx\"", "\"note\": \"clip\""))
        .unwrap();
    let before = std::fs::read(&shared).unwrap();
    let output = lejepa_succeeds(path, &["export", "run", "--out", "second.onnx"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("for other tools: second.preprocessor_config.json"), "{said}");
    assert_eq!(std::fs::read(&shared).unwrap(), before);

    // An encoder of another project beside a description that names its own encoder.
    std::fs::remove_file(&shared).unwrap();
    lejepa_succeeds(path, &["export", "run", "--outputs", "embedding"]);
    assert!(shared.exists());
    let bytes = std::fs::read(path.join("encoder.onnx")).unwrap();
    let foreign = nameless(&bytes);
    std::fs::write(path.join("clip.onnx"), &foreign).unwrap();
    let eval = ["eval", "clip.onnx", "--suite", "knn", "--data", "data", "--out", "report"];
    let output = lejepa(path, &eval);
    assert!(!output.status.success());
    std::fs::copy(&shared, path.join("clip.preprocessor_config.json")).unwrap();
    let said = String::from_utf8(lejepa_succeeds(path, &eval).stderr).unwrap();
    let note = "note: images for clip.onnx are prepared as clip.preprocessor_config.json says";
    assert!(said.contains(note), "{said}");
}

/// The file as one of another project: without its card.
fn nameless(bytes: &[u8]) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let name = b"lejepa.card";
    let start = bytes.windows(name.len()).position(|window| window == name).unwrap();
    changed[start..start + name.len()].copy_from_slice(b"somebody.s.");
    lejepa_onnx::with_checksum(changed)
}

#[test]
#[cfg(unix)]
fn a_cache_that_may_only_be_read_gives_what_is_finished_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = exported();
    let path = folder.path();
    let suite = "baselines = []\n[[probe]]\nkind = \"knn\"\nk = 5\ntemperature = 0.07\n";
    std::fs::write(path.join("mine.toml"), suite).unwrap();
    let eval =
        ["eval", "encoder.onnx", "--suite", "mine.toml", "--data", "data", "--cache", "cache", "--out"];
    lejepa_succeeds(path, &[&eval[..], &["first"]].concat());
    let permit = |folders: u32, files: u32| {
        let mut entries = vec![path.join("cache")];
        while let Some(entry) = entries.pop() {
            std::fs::set_permissions(&entry, PermissionsExt::from_mode(0o700)).unwrap();
            let is_folder = entry.is_dir();
            entries
                .extend(std::fs::read_dir(&entry).into_iter().flatten().map(|below| below.unwrap().path()));
            let mode = if is_folder { folders } else { files };
            std::fs::set_permissions(&entry, PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    permit(0o555, 0o444);
    // Nothing is forbidden to root, who can write it all the same.
    lejepa_succeeds(path, &[&eval[..], &["second"]].concat());
    let report = std::fs::read_to_string(path.join("second/report.md")).unwrap();
    assert!(!report.contains("without a cache"), "{report}");
    permit(0o755, 0o644);
}
