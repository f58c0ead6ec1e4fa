use super::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats/parquet");

fn fixture(name: &str) -> PathBuf {
    Path::new(FIXTURES).join(name)
}

fn open(name: &str, split: Split) -> Result<Parquet> {
    Parquet::open(&fixture(name), split, &ReadOptions::default())
}

/// What `make_archives.py` wrote as image `number`.
fn assert_is_image(data: &dyn Dataset, index: usize, number: usize) {
    let image = data.image(index).unwrap();
    assert_eq!((image.height(), image.width(), image.channels()), (2, 3, 1));
    let expected: Vec<u8> = (0..6).map(|place| (40 * number + place) as u8).collect();
    assert_eq!(image.pixels(), expected, "image {number}");
}

/// The error of opening a changed fixture, or of its first image that cannot be read.
fn error_of(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Option<Error> {
    let mut bytes = std::fs::read(fixture(name)).unwrap();
    change(&mut bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.parquet");
    std::fs::write(&path, bytes).unwrap();
    match Parquet::open(&path, Split::Train, &ReadOptions::default()) {
        Ok(data) => (0..data.len()).find_map(|index| data.stored(index).err()),
        Err(error) => Some(error),
    }
}

#[test]
fn shards_of_the_hub_make_one_set_with_class_names() {
    for path in [fixture("hub"), fixture("hub/data")] {
        let data = crate::open(&path, Split::Train).unwrap();
        assert_eq!((data.len(), data.class_names()), (8, &["cat", "dog", "fox"].map(String::from)[..]));
        let labels: Vec<_> = (0..8).map(|index| data.label(index).unwrap()).collect();
        assert_eq!(labels, [0, 1, 2, 0, 1, 2, 0, 1]);
        for index in [7, 0, 4, 5, 1, 7] {
            assert_is_image(data.as_ref(), index, index);
        }
        assert!(data.name(6).ends_with("train-00001-of-00002.parquet image.bytes row 1"), "{}", data.name(6));
        assert!(data.notes().is_empty());
    }
    let test = open("hub", Split::Test).unwrap();
    assert_is_image(&test, 1, 9);
    assert_eq!((test.len(), test.label(0), test.label(1)), (2, None, Some(1)));
    assert_eq!(test.notes(), ["1 of 2 images have no label"]);
    assert!(matches!(open("hub", Split::Validation), Err(Error::NoSplit { .. })));
}

#[test]
fn every_form_of_a_column_gives_the_same_images() {
    for name in ["plain", "zstd", "version2", "indexed", "checksums", "full", "names"] {
        let data = open(&format!("{name}.parquet"), Split::Train).unwrap();
        assert_eq!((data.len(), data.class_names().len()), (8, 8), "{name}");
        for index in [5, 0, 7, 4, 1, 2, 3, 6, 5] {
            assert_is_image(&data, index, index);
            assert_eq!(data.label(index), Some(index), "{name}");
        }
    }
}

#[test]
fn images_larger_than_a_block_are_read() {
    for name in ["large.parquet", "large-plain.parquet"] {
        let data = open(name, Split::Train).unwrap();
        for index in [1, 0, 1] {
            let image = data.image(index).unwrap();
            assert_eq!((image.height(), image.width(), image.channels()), (150, 200, 3));
            for (row, pixels) in image.pixels().chunks(600).enumerate() {
                assert!(pixels.iter().all(|&pixel| usize::from(pixel) == 10 * (index + 1) + row / 10));
            }
        }
    }
}

#[test]
fn columns_are_chosen_by_name() {
    let images = Some("picture".to_string());
    let options = ReadOptions { images: images.clone(), labels: Some("class".into()), ..Default::default() };
    let data = Parquet::open(&fixture("flat.parquet"), Split::Train, &options).unwrap();
    assert_is_image(&data, 3, 3);
    assert_eq!(data.label(3), Some(3));
    let unlabelled = ReadOptions { images, ..Default::default() };
    let data = Parquet::open(&fixture("flat.parquet"), Split::Train, &unlabelled).unwrap();
    assert_eq!((data.label(3), data.class_names().len()), (None, 0));

    let message = open("flat.parquet", Split::Train).unwrap_err().to_string();
    assert!(message.contains("`image` or `img`") && message.contains("picture, class"), "{message}");
    for (images, labels, problem) in
        [("class", "class", "INT64"), ("picture", "picture", "BYTE_ARRAY"), ("picture", "kind", "`kind`")]
    {
        let options =
            ReadOptions { images: Some(images.into()), labels: Some(labels.into()), ..Default::default() };
        let error = Parquet::open(&fixture("flat.parquet"), Split::Train, &options).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
    let source = crate::SourceConfig {
        path: fixture("flat.parquet"),
        options: ReadOptions { fold: Some(2), ..Default::default() },
        format: None,
    };
    let message = crate::open_source(&source, Split::Train).err().unwrap().to_string();
    assert!(
        message.contains("`data.options.fold` must be absent for the format parquet, got: 2"),
        "{message}"
    );
}

#[test]
fn a_null_image_is_an_error_of_its_sample_alone() {
    let data = open("nulls.parquet", Split::Train).unwrap();
    assert_eq!((data.len(), data.label(1), data.label(2)), (3, None, Some(2)));
    assert_is_image(&data, 2, 2);
    assert!(data.stored(1).unwrap_err().to_string().contains("the image is null"));
    assert!(data.image(1).unwrap_err().to_string().contains("row 1"));
}

#[test]
fn other_codecs_are_refused_by_name() {
    let message = open("gzip.parquet", Split::Train).unwrap_err().to_string();
    assert!(message.contains("GZIP") && message.contains("gzip.parquet"), "{message}");
}

#[test]
fn shards_with_other_columns_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, shard) in [("plain.parquet", "a.parquet"), ("names.parquet", "b.parquet")] {
        std::fs::copy(fixture(name), folder.path().join(shard)).unwrap();
    }
    let error = Parquet::open(folder.path(), Split::Train, &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("columns differ"), "{error}");
}

#[test]
fn labels_must_fit_the_class_names() {
    let error = error_of("hub/data/train-00000-of-00002.parquet", |bytes| {
        let fox = bytes.windows(7).position(|window| window == b", \"fox\"").unwrap();
        bytes[fox..fox + 7].fill(b' ');
    });
    assert!(error.unwrap().to_string().contains("is not one of 2 classes"));
}

#[test]
fn a_page_does_not_become_more_than_the_limit() {
    let options = ReadOptions { unpack_limit: Some(0), ..Default::default() };
    for name in ["zstd.parquet", "full.parquet"] {
        let message = Parquet::open(&fixture(name), Split::Train, &options).unwrap_err().to_string();
        assert!(message.contains("a page asks for 0 MB of memory, more than the limit of 0 MB"), "{message}");
    }
}

#[test]
fn labels_that_cannot_be_classes_are_named_with_file_and_row() {
    let message = open("absurd.parquet", Split::Train).unwrap_err().to_string();
    assert!(message.contains("row 1: expected labels from 0 to 1000000, got 5000000000"), "{message}");
    assert!(message.ends_with("absurd.parquet"), "{message}");
}

/// Of a file without checksums, other pixels may come out; of one with them, nothing may.
#[test]
fn one_wrong_byte_of_a_page_with_a_checksum_is_an_error() {
    let pixels = std::fs::read(fixture("checksums.parquet")).unwrap();
    // The last pixels of the first image are before the first end of a PNG file.
    let end = pixels.windows(4).position(|kind| kind == b"IEND").unwrap();
    let message = error_of("checksums.parquet", |bytes| bytes[end - 8] ^= 1).unwrap().to_string();
    assert!(message.contains("a page: it is damaged: its checksum is"), "{message}");
}

#[test]
fn damaged_files_are_errors() {
    for length in [0, 10, 2000] {
        let message = error_of("plain.parquet", |bytes| bytes.truncate(length)).unwrap().to_string();
        assert!(message.contains("not a valid Parquet file"), "{message}");
    }
    let message = error_of("plain.parquet", |bytes| *bytes.last_mut().unwrap() = 0).unwrap().to_string();
    assert!(message.contains("not a valid Parquet file"), "{message}");
    // The first page header starts at 4: type, length unpacked (two bytes at 7) and stored (at 10).
    let message = error_of("plain.parquet", |bytes| bytes[11] = 0x7f).unwrap().to_string();
    assert!(message.contains("a page is longer than its column"), "{message}");
    for name in ["full.parquet", "zstd.parquet"] {
        let message = error_of(name, |bytes| bytes[8] = 0x7f).unwrap().to_string();
        assert!(message.contains("a page"), "{message}");
    }
}

/// Any byte may be wrong: some files are refused, some have other pixels, none brings the program down.
#[test]
fn no_wrong_byte_brings_the_program_down() {
    for name in ["full.parquet", "version2.parquet"] {
        let length = std::fs::metadata(fixture(name)).unwrap().len() as usize;
        for at in (0..length).step_by(5) {
            error_of(name, |bytes| bytes[at] ^= 0xff);
        }
    }
}
