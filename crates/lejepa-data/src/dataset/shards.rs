//! Sets in several files, whose names tell the split: `train-00000-of-00002.parquet`, `val-0001.tar`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Split;
use crate::{Error, Result};

/// Whether a path is such a file, or a folder with some.
pub(super) fn are_at(path: &Path, ending: &str) -> bool {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().any(|entry| has(&entry.path(), ending)),
        Err(_) => has(path, ending),
    }
}

/// The files of a split in the order of their names. Files that name no split are training data, unless
/// others name one.
pub(super) fn of_split(path: &Path, ending: &str, split: Split) -> Result<Vec<PathBuf>> {
    let files = if path.is_dir() { list(path, ending)? } else { vec![path.to_path_buf()] };
    let of = |wanted| -> Vec<PathBuf> {
        files.iter().filter(|file| split_of(file) == Some(wanted)).cloned().collect()
    };
    let found = match split {
        Split::Train if files.iter().all(|file| split_of(file).is_none()) => files.clone(),
        _ => of(split),
    };
    if found.is_empty() {
        return Err(Error::NoSplit { split: split.name(), path: path.into() });
    }
    Ok(found)
}

/// A note where not all files of a folder are there that their names count, as `train-00000-of-00002` does.
pub(super) fn missing(path: &Path, found: &[PathBuf]) -> Option<String> {
    let mut sets: BTreeMap<(String, usize), BTreeSet<usize>> = BTreeMap::new();
    for (set, number) in found.iter().filter_map(|file| numbered(file)) {
        sets.entry(set).or_default().insert(number);
    }
    let note = |((name, count), numbers): ((String, usize), BTreeSet<usize>)| {
        let here = numbers.len();
        format!("only {here} of the {count} files {name}-*-of-{count:05} are there: the others are left out")
    };
    let incomplete = sets.into_iter().find(|((_, count), numbers)| numbers.len() < *count);
    incomplete.filter(|_| path.is_dir()).map(note)
}

/// What comes before `-00000-of-00002` with the number of files, and the number of this one.
fn numbered(file: &Path) -> Option<((String, usize), usize)> {
    let stem = file.file_name()?.to_str()?.split('.').next()?;
    let (start, count) = stem.rsplit_once("-of-")?;
    let (name, number) = start.rsplit_once('-')?;
    // A name that claims to be one of very many is only a name.
    let count = count.get(..5)?.parse().ok().filter(|count| (1..=99_999).contains(count))?;
    Some(((name.into(), count), number.parse().ok()?))
}

fn list(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::Io { action: "list", path: folder.into(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if has(&path, ending) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn has(path: &Path, ending: &str) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| !name.starts_with('.') && name.to_ascii_lowercase().ends_with(ending))
}

/// The split of the first word that names one: `train` in `imagenet-train-0001.tar` and `train01.tar`.
fn split_of(file: &Path) -> Option<Split> {
    let name = file.file_name()?.to_str()?.to_ascii_lowercase();
    name.split(|character: char| !character.is_ascii_alphanumeric()).find_map(|word| {
        match word.trim_end_matches(|character: char| character.is_ascii_digit()) {
            "train" | "training" => Some(Split::Train),
            "val" | "valid" | "validation" => Some(Split::Validation),
            "test" => Some(Split::Test),
            "unlabelled" | "unlabeled" => Some(Split::Unlabelled),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[&str], split: Split) -> Option<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let found = of_split(folder.path(), ".tar", split).ok()?;
        Some(found.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_string()).collect())
    }

    #[test]
    fn names_tell_the_split() {
        let files = ["train-1.tar", "set-train-0.tar", "val01.tar", "test.TAR", "more.tar", "train.txt"];
        assert_eq!(names(&files, Split::Train).unwrap(), ["set-train-0.tar", "train-1.tar"]);
        assert_eq!(names(&files, Split::Validation).unwrap(), ["val01.tar"]);
        assert_eq!(names(&files, Split::Test).unwrap(), ["test.TAR"]);
        assert_eq!(names(&files, Split::Unlabelled), None);
    }

    #[test]
    fn missing_files_of_a_numbered_set_are_noted() {
        let folder = tempfile::tempdir().unwrap();
        let note = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(|file| folder.path().join(file)).collect();
            missing(folder.path(), &files)
        };
        let whole = ["train-00000-of-00002.tar", "train-00001-of-00002.tar"];
        assert_eq!(note(&whole), None);
        let expected = "only 1 of the 2 files train-*-of-00002 are there: the others are left out";
        assert_eq!(note(&whole[1..]).unwrap(), expected);
        // As some of the hub's are called, and counted from 1.
        assert_eq!(note(&["train-00001-of-00002-0f3.tar", "train-00002-of-00002-1a7.tar"]), None);
        assert_eq!(note(&["piece-of-cake.tar", "train-1.tar"]), None);
        // Whoever names one file wants that one.
        assert_eq!(missing(Path::new(whole[0]), &[PathBuf::from(whole[0])]), None);
    }

    #[test]
    fn nameless_files_are_training_data_and_validation_is_what_it_is_called() {
        assert_eq!(names(&["b.tar", "a.tar"], Split::Train).unwrap(), ["a.tar", "b.tar"]);
        assert_eq!(names(&["a.tar"], Split::Test), None);
        assert_eq!(names(&["train.tar", "validation.tar"], Split::Validation).unwrap(), ["validation.tar"]);
        assert_eq!(names(&["train.tar", "validation.tar"], Split::Test), None);
    }
}
