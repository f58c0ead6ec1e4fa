use std::path::{Path, PathBuf};

use crate::onnx_file::sample::{DIM, PIXELS, Weights, bytes, description, model, tensor, wrapped};
use crate::{Encoder, Error, FileLimits, Image, Result};

/// Values that differ, by a factor.
fn weights(factor: f32) -> Vec<f32> {
    (0..PIXELS * DIM).map(|index| factor * (index as f32 + 1.)).collect()
}

fn embedding(encoder: &Encoder) -> Vec<f32> {
    let image = Image::from_pixels(2, 2, 1, vec![10, 20, 30, 255]).unwrap();
    encoder.embed(&[image]).unwrap().into_iter().collect()
}

fn open(path: &Path, output: &str) -> Result<Encoder> {
    Encoder::builder().foreign(description(output)).open(path)
}

/// A file whose weights are in `weights.data`, the second matrix behind the first one.
fn external(folder: &Path, location: &str, factor: f32) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let end = 4 * PIXELS * DIM;
    let matrices = [0, end].map(|offset| Weights::Outside { location, offset });
    std::fs::write(folder.join("model.onnx"), model(&matrices[0], &matrices[1])).unwrap();
    let data = [bytes(&weights(factor)), bytes(&weights(-factor))].concat();
    std::fs::write(folder.join("weights.data"), data).unwrap();
    folder.join("model.onnx")
}

fn expected(factor: f32) -> Vec<f32> {
    let matrix = weights(factor);
    let file = model(&Weights::Inside(&matrix), &Weights::Inside(&matrix));
    let builder = Encoder::builder().foreign(description("embedding"));
    embedding(&builder.open_bytes("inside.onnx", &file).unwrap())
}

#[test]
fn weights_beside_the_file_are_found_there_and_not_in_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    // A file of the same name, with other weights, where ONNX Runtime would look by itself.
    let name = format!("weights-{}.data", std::process::id());
    let decoy = bytes(&[weights(7.), weights(7.)].concat());
    std::fs::write(&name, decoy).unwrap();
    for location in [name.clone(), format!("./{name}")] {
        let path = external(folder.path(), &location, 2.);
        std::fs::rename(folder.path().join("weights.data"), folder.path().join(&name)).unwrap();
        let found = open(&path, "embedding").map(|encoder| embedding(&encoder));
        let other = open(&path, "other").map(|encoder| embedding(&encoder));
        assert_eq!(found.unwrap(), expected(2.), "{location}");
        assert_eq!(other.unwrap(), expected(-2.), "{location}");
    }
    std::fs::remove_file(&name).unwrap();
}

#[test]
fn other_weights_are_another_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let path = external(folder.path(), "weights.data", 2.);
    let first = open(&path, "embedding").unwrap();
    let same = open(&path, "embedding").unwrap();
    assert_eq!(first.fingerprint(), same.fingerprint());
    let data = folder.path().join("weights.data");
    let mut changed = std::fs::read(&data).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&data, changed).unwrap();
    assert_ne!(first.fingerprint(), open(&path, "embedding").unwrap().fingerprint());
}

#[test]
fn files_that_are_missing_too_short_or_elsewhere_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let message = |path: &Path| open(path, "embedding").unwrap_err().to_string();
    for location in ["../weights.data", "/etc/passwd", "*/_ORT_MEM_ADDR_/*"] {
        let path = external(&inner, location, 1.);
        std::fs::write(folder.path().join("weights.data"), vec![0; 1000]).unwrap();
        let said = message(&path);
        assert!(said.contains(&format!("outside of its folder: {location}")), "{said}");
    }
    let path = external(&inner, "weights.data", 1.);
    std::fs::write(inner.join("weights.data"), vec![0; 95]).unwrap();
    assert!(message(&path).contains("too short, 95 of 96 bytes: "), "{}", message(&path));
    std::fs::remove_file(inner.join("weights.data")).unwrap();
    assert!(message(&path).contains("a file of weights is missing: "), "{}", message(&path));
    assert!(message(&path).ends_with("weights.data"), "{}", message(&path));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path().join("weights.data"), inner.join("weights.data")).unwrap();
        assert!(message(&path).contains("leads out of its folder: "), "{}", message(&path));
    }
}

/// The hub's cache holds links to files that lie together elsewhere.
#[cfg(unix)]
#[test]
fn links_that_lead_to_where_the_file_itself_leads_are_followed() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let blobs = folder.path().join("blobs");
    external(&blobs, "weights.data", 3.);
    let snapshot = folder.path().join("snapshot");
    std::fs::create_dir(&snapshot).unwrap();
    for name in ["model.onnx", "weights.data"] {
        let blob = blobs.join(format!("blob-{name}"));
        std::fs::rename(blobs.join(name), &blob).unwrap();
        symlink(&blob, snapshot.join(name)).unwrap();
    }
    let encoder = open(&snapshot.join("model.onnx"), "embedding").unwrap();
    assert_eq!(embedding(&encoder), expected(3.));
}

#[test]
fn a_file_in_memory_has_no_folder_and_constants_stay_inside() {
    let outside = || Weights::Outside { location: "weights.data", offset: 0 };
    let builder = Encoder::builder().foreign(description("embedding"));
    let opened = builder.open_bytes("memory.onnx", &model(&outside(), &outside()));
    let said = opened.unwrap_err().to_string();
    assert!(said.contains("its weights are in another file, weights.data, and it is in memory"), "{said}");

    let (mut graph, mut constant, mut attribute) = (Vec::new(), Vec::new(), Vec::new());
    crate::onnx_file::append(&mut attribute, 5, &tensor("value", &outside()));
    crate::onnx_file::append(&mut constant, 5, &attribute);
    crate::onnx_file::append(&mut graph, 1, &constant);
    let said = builder.open_bytes("memory.onnx", &wrapped(&graph)).unwrap_err();
    assert!(matches!(said, Error::ExternalData { .. }), "{said}");
}

#[test]
fn a_file_far_longer_than_its_weights_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = external(folder.path(), "weights.data", 2.);
    let weights = std::fs::File::options().write(true).open(folder.path().join("weights.data")).unwrap();
    // Of zeros that take no place.
    weights.set_len(1 << 42).unwrap();
    let said = open(&path, "embedding").unwrap_err().to_string();
    assert!(
        said.contains("a file of weights of 4398046511104 bytes (") && said.contains("it uses 96"),
        "{said}"
    );
    assert!(crate::model::Model::open(&path, &FileLimits::default()).is_err());
    // Where that is allowed, there is a time for it.
    let limits = FileLimits { time: std::time::Duration::ZERO, ..FileLimits::none() };
    weights.set_len(96).unwrap();
    let said = crate::model::Model::open(&path, &limits).unwrap_err();
    assert!(matches!(said, Error::TimeLimit { .. }), "{said}");
}

#[test]
fn weights_that_do_not_fit_into_memory_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.data");
    std::fs::write(&path, b"").unwrap();
    let file = super::ExternalFile {
        location: "weights.data".into(),
        file: std::sync::Mutex::new(std::fs::File::open(&path).unwrap()),
        path,
        hash: blake3::hash(b""),
        length: 1 << 50,
        loaded: std::sync::Mutex::new(std::sync::Weak::<[u8; 0]>::new()),
    };
    let said = file.bytes().unwrap_err().to_string();
    assert!(said.contains("weights need more memory than there is, 1125899906842624 bytes: "), "{said}");
}

#[test]
fn weights_that_change_under_an_open_encoder_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = external(folder.path(), "weights.data", 2.);
    let (file, _) = crate::model::Model::open(&path, &FileLimits::default()).unwrap();
    std::fs::write(folder.path().join("weights.data"), vec![1; 96]).unwrap();
    let (environment, library) = crate::runtime::environment(None).unwrap();
    let settings = crate::model::SessionSettings {
        environment,
        version: crate::runtime::version_of(&library),
        provider: crate::Provider::Cpu,
        threads: 1,
        size: (2, 2),
        precision: lejepa_data::Precision::F32,
    };
    let said = file.session("other", &settings, &crate::time_limit::Cancel::default());
    let said = said.unwrap_err().to_string();
    assert!(said.contains("changed while it was open") && said.contains("weights.data"), "{said}");
}
