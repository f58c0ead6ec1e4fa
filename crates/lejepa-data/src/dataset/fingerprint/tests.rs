use std::fs::{self, File, FileTimes};
use std::io::{Read, Write};
use std::time::Duration;

use flate2::read::GzDecoder;

use super::super::fixture;
use super::*;
use crate::{Format, ReadOptions, SourceConfig, Split, Stored, open_source};

/// A small set of each format: a folder of `tests/formats`, the set in it, and a file with labels where one byte
/// can be another label.
fn example(format: Format) -> (&'static str, &'static str, Option<&'static str>) {
    // Without a wildcard: a new format needs an example here.
    match format {
        Format::Idx => ("idx", "", Some("train-labels-idx1-ubyte")),
        Format::Cifar => ("cifar", "cifar-10-batches-py", None),
        Format::Stl10 => ("stl10", "", None),
        Format::Dtd => ("dtd", "", None),
        Format::Flowers102 => ("flowers102", "", None),
        Format::Food101 => ("food101", "", None),
        Format::Pets => ("pets", "", None),
        Format::Cars => ("cars_single", "", None),
        Format::Aircraft => ("aircraft", "", None),
        Format::Galaxy10 => ("galaxy10", "small.h5", None),
        Format::Hdf5 => ("hdf5", "contiguous.h5", None),
        Format::Npz => ("npz", "keras.npz", None),
        Format::Npy => ("npy", "pair", Some("pair/labels.npy")),
        Format::Parquet => ("parquet", "hub", None),
        Format::WebDataset => ("webdataset", "shards", None),
        Format::Folder => ("images", "", None),
    }
}

/// A copy of an example that a test may change.
fn copy(folder: &str) -> tempfile::TempDir {
    let copy = fixture::copy(folder);
    // STL-10's files are too large to lie about unpacked.
    for packed in fs::read_dir(copy.path().join("stl10_binary")).into_iter().flatten() {
        let packed = packed.unwrap().path();
        if packed.extension().is_some_and(|ending| ending == "gz") {
            let mut bytes = Vec::new();
            GzDecoder::new(&fs::read(&packed).unwrap()[..]).read_to_end(&mut bytes).unwrap();
            fs::write(packed.with_extension(""), bytes).unwrap();
        }
    }
    copy
}

fn open(path: &Path, format: Format) -> Result<Box<dyn Dataset>> {
    let source = SourceConfig { path: path.into(), format: Some(format), ..Default::default() };
    open_source(&source, Split::Train)
}

fn all_stored(data: &dyn Dataset) -> Vec<Option<Stored>> {
    (0..data.len()).map(|index| data.stored(index).ok()).collect()
}

/// Changes a byte without a trace in length and time of modification.
fn flip(path: &Path, place: usize) {
    let times = fs::metadata(path).unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes[place] ^= 1;
    fs::write(path, bytes).unwrap();
    let times = FileTimes::new().set_modified(times.modified().unwrap());
    File::options().write(true).open(path).unwrap().set_times(times).unwrap();
}

/// Flips a byte as near to the middle of a file as there is one that changes an image and nothing else.
fn change_an_image(set: &Path, format: Format, file: &Path) {
    let labels_of = |data: &dyn Dataset| (0..data.len()).map(|index| data.label(index)).collect::<Vec<_>>();
    // Closed at once: HDF5 opens a file that is open already without looking at it.
    let (labels, images) = {
        let before = open(set, format).unwrap();
        (labels_of(&*before), all_stored(&*before))
    };
    if format == Format::Npz {
        return change_an_array(file);
    }
    let length = fs::read(file).unwrap().len();
    let mut places: Vec<usize> = (0..length).collect();
    places.sort_unstable_by_key(|place| place.abs_diff(length / 2));
    for place in places {
        flip(file, place);
        if let Ok(after) = open(set, format)
            && labels_of(&*after) == labels
            && all_stored(&*after) != images
        {
            return;
        }
        flip(file, place);
    }
    panic!("no byte of {} is one of an image", file.display());
}

/// The same inside an archive, whose checksum changes too: without that it is not read.
fn change_an_array(file: &Path) {
    let mut archive = zip::ZipArchive::new(File::open(file).unwrap()).unwrap();
    let mut changed = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).unwrap();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        if member.name().unwrap().starts_with("x_train") {
            *bytes.last_mut().unwrap() ^= 1;
        }
        changed.start_file(member.name().unwrap(), zip::write::SimpleFileOptions::default()).unwrap();
        changed.write_all(&bytes).unwrap();
    }
    fs::write(file, changed.finish().unwrap().get_ref()).unwrap();
}

#[test]
fn a_byte_in_the_middle_of_the_images_changes_the_fingerprint_of_every_format() {
    for format in Format::ALL {
        let (folder, set, _) = example(format);
        let (copy, memo) = (copy(folder), tempfile::tempdir().unwrap());
        let path = copy.path().join(set);
        let fingerprint = || {
            let mut fingerprinter = Fingerprinter::default().remembering(memo.path());
            open(&path, format).unwrap().fingerprint(&mut fingerprinter).unwrap()
        };
        let (before, again) = (fingerprint(), fingerprint());
        assert_eq!(before, again, "{}", format.name());
        let files = open(&path, format).unwrap().files();
        change_an_image(&path, format, &files[files.len() / 2]);
        assert_ne!(before, fingerprint(), "{}", format.name());
    }
}

#[test]
fn the_same_bytes_elsewhere_have_the_same_fingerprint_in_every_format() {
    for format in Format::ALL {
        let (folder, set, _) = example(format);
        let [here, there] = [copy(folder), copy(folder)]
            .map(|copy| fixture::fingerprint(&*open(&copy.path().join(set), format).unwrap()));
        assert_eq!(here, there, "{}", format.name());
        let copy = copy(folder);
        if copy.path().join(set).is_dir() {
            let spelt = copy.path().join(set).join(".");
            assert_eq!(here, fixture::fingerprint(&*open(&spelt, format).unwrap()), "{}", format.name());
        }
    }
}

#[test]
fn splits_and_labels_have_fingerprints_of_their_own() {
    let mut with_labels = 0;
    for format in Format::ALL {
        let (folder, set, labels) = example(format);
        let copy = copy(folder);
        let path = copy.path().join(set);
        let label = |data: &dyn Dataset| (0..data.len()).map(|index| data.label(index)).collect::<Vec<_>>();
        let (before, own) = {
            let data = open(&path, format).unwrap();
            (fixture::fingerprint(&*data), label(&*data))
        };
        let source = SourceConfig { path: path.clone(), format: Some(format), ..Default::default() };
        if let Ok(test) = open_source(&source, Split::Test) {
            assert_ne!(before, fixture::fingerprint(&*test), "{}", format.name());
        }
        let Some(labels) = labels.map(|labels| copy.path().join(labels)) else { continue };
        for place in 0..fs::read(&labels).unwrap().len() {
            flip(&labels, place);
            if let Ok(after) = open(&path, format)
                && label(&*after).len() == own.len()
                && label(&*after) != own
            {
                assert_ne!(before, fixture::fingerprint(&*after), "{}", format.name());
                with_labels += 1;
                break;
            }
            flip(&labels, place);
        }
    }
    assert_eq!(with_labels, 2, "{with_labels} sets with other labels");
}

#[test]
fn which_images_of_a_file_are_read_is_part_of_the_fingerprint() {
    let of = |images: &str| {
        let options = ReadOptions { images: Some(images.into()), ..Default::default() };
        let path = fixture::path("npz/medmnist.npz");
        let source = SourceConfig { path, options, ..Default::default() };
        fixture::fingerprint(&*open_source(&source, Split::Train).unwrap())
    };
    assert_ne!(of("train_images"), of("test_images"));
}

/// A folder of files and what is remembered of it.
fn written(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
    for (path, (_, bytes)) in paths.iter().zip(files) {
        fs::write(path, bytes).unwrap();
    }
    (folder, paths)
}

/// The contents of files, and how many bytes were read for them.
fn read(files: &[PathBuf], memo: &Path) -> (Vec<Option<Content>>, u64) {
    let mut bytes = 0;
    let trust = Trust { untouched: Duration::from_secs(2), everywhere: true };
    let contents = Contents::read(files, (Some(memo), trust), &mut |hashing| {
        bytes = hashing.done;
        ControlFlow::Continue(())
    });
    (contents.unwrap(), bytes)
}

#[test]
fn files_are_read_again_only_if_they_were_touched() {
    let (folder, files) = written(&[("a", b"first"), ("b", b"second")]);
    let memo = folder.path().join("memo/x.hashes");
    let (contents, bytes) = read(&files, &memo);
    assert_eq!((contents[0], bytes), (Some(blake3::hash(b"first")), 11));
    assert_eq!(read(&files, &memo).1, 11, "too young to be trusted");
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(read(&files, &memo).1, 11);
    assert_eq!(read(&files, &memo), (contents.clone(), 0), "remembered");

    // The same length and time of modification.
    flip(&files[1], 3);
    let (changed, bytes) = read(&files, &memo);
    assert_eq!((changed[0], bytes), (contents[0], 6));
    assert_ne!(changed[1], contents[1]);
    // Moved over from elsewhere with its times, as `cp -p` and `rsync -t` do.
    let other = folder.path().join("c");
    fs::write(&other, b"other!").unwrap();
    let modified = fs::metadata(&files[1]).unwrap().modified().unwrap();
    File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    fs::rename(&other, &files[1]).unwrap();
    assert_eq!(read(&files, &memo).0[1], Some(blake3::hash(b"other!")));
}

#[test]
fn files_that_may_be_written_without_a_trace_are_not_remembered() {
    let (folder, files) = written(&[("a", b"first")]);
    let memo = folder.path().join("x.hashes");
    std::thread::sleep(Duration::from_millis(2100));
    let read = || {
        Contents::read(&files, (Some(&memo), Trust::default()), &mut |_| ControlFlow::Continue(())).unwrap()
    };
    assert_eq!(read(), [Some(blake3::hash(b"first"))]);
    assert!(!memo.exists(), "two seconds are enough for a page that was mapped and is not yet written back");
}

#[test]
#[cfg(unix)]
fn a_file_of_another_file_system_is_another_even_with_the_same_inode_and_times() {
    let (_folder, files) = written(&[("a", b"first")]);
    let metadata = fs::metadata(&files[0]).unwrap();
    let on = |identity| content::facts(&metadata, volume::Volume { identity, is_believed: true });
    assert_eq!(on([1, 2, 3, 4]), on([1, 2, 3, 4]));
    for other in [[0, 2, 3, 4], [1, 0, 3, 4], [1, 2, 0, 4], [1, 2, 3, 0]] {
        assert_ne!(on([1, 2, 3, 4]), on(other));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn files_of_a_file_system_that_is_not_believed_are_not_remembered() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let files = [folder.path().join("a")];
    fs::write(&files[0], b"first").unwrap();
    let memo = folder.path().join("x.hashes");
    std::thread::sleep(Duration::from_millis(100));
    let trust = |everywhere| Trust { untouched: Duration::from_millis(1), everywhere };
    let read = |trust| {
        Contents::read(&files, (Some(&memo), trust), &mut |_| ControlFlow::Continue(())).unwrap();
        memo.exists()
    };
    assert!(!read(trust(false)));
    assert!(read(trust(true)));
}

#[test]
fn a_damaged_memo_is_as_good_as_none() {
    let (folder, files) = written(&[("a", b"first"), ("b", b"second")]);
    let memo = folder.path().join("x.hashes");
    std::thread::sleep(Duration::from_millis(2100));
    let contents = read(&files, &memo).0;
    let whole = fs::read(&memo).unwrap();
    for place in [0, 20, 40, 60, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(&memo, damaged).unwrap();
        assert_eq!(read(&files, &memo), (contents.clone(), 11), "byte {place}");
    }
    for length in [0, 16, 48, whole.len() - 1] {
        fs::write(&memo, &whole[..length]).unwrap();
        assert_eq!(read(&files, &memo), (contents.clone(), 11), "{length} bytes");
    }
    fs::write(&memo, &whole).unwrap();
    assert_eq!(read(&files, &memo).1, 0);
}

#[test]
fn a_file_that_cannot_be_read_differs_from_one_that_can() {
    let (_folder, files) = written(&[("a", b"first"), ("b", b"second")]);
    let of = || Contents::read(&files, (None, Trust::default()), &mut |_| ControlFlow::Continue(())).unwrap();
    let whole = of();
    fs::remove_file(&files[1]).unwrap();
    assert_eq!(of(), [whole[0], None]);
}

#[test]
fn the_reading_can_be_stopped() {
    let (_folder, files) = written(&[("a", b"first")]);
    assert!(Contents::read(&files, (None, Trust::default()), &mut |_| ControlFlow::Break(())).is_none());
    let copy = fixture::copy("npy");
    let data = open(&copy.path().join("pair"), Format::Npy).unwrap();
    let mut stop = |_: Hashing| ControlFlow::Break(());
    let error = data.fingerprint(&mut Fingerprinter::default().observed(&mut stop)).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
}

#[test]
fn a_large_file_is_hashed_as_one() {
    let bytes: Vec<u8> = (0..40usize << 20).map(|place| ((place * 7) >> 5) as u8).collect();
    let (_folder, files) = written(&[("a", &bytes)]);
    let contents =
        Contents::read(&files, (None, Trust::default()), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(contents, [Some(blake3::hash(&bytes))]);
}

#[test]
fn the_common_folder_is_as_deep_as_it_can_be() {
    let of = |files: &[&str]| common_folder(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
    assert_eq!(of(&["/a/b/c.png", "/a/b/d/e.png"]), Path::new("/a/b"));
    assert_eq!(of(&["/a/b/c.png"]), Path::new("/a/b"));
    assert_eq!(of(&["c.png", "/a/b"]), Path::new(""));
    assert_eq!(of(&[]), Path::new(""));
}
