//! The text files in which well-known sets list a split, one image per line.

use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Component, Path, PathBuf};

use super::Split;
use crate::{Error, Result, regular_file};

/// A file that a split cannot do without.
pub(super) fn required(path: PathBuf, split: Split) -> Result<PathBuf> {
    if path.is_file() { Ok(path) } else { Err(Error::NoSplitFile { split: split.name(), path }) }
}

/// Parses every line that is not blank; what does not parse is named with its line.
pub(super) fn read<T>(
    path: PathBuf,
    split: Split,
    mut parse: impl FnMut(&str) -> std::result::Result<T, String>,
) -> Result<Vec<T>> {
    let path = required(path, split)?;
    let invalid = |problem| Error::Invalid { format: "list", path: path.clone(), problem };
    let failed = |source| Error::Io { action: "read", path: path.clone(), source };
    let mut entries = Vec::new();
    let file = BufReader::new(regular_file::open(&path).map_err(failed)?);
    for (number, line) in (1..).zip(file.lines()) {
        let line = line.map_err(|source| match source.kind() {
            ErrorKind::InvalidData => invalid(format!("line {number}: not UTF-8")),
            _ => failed(source),
        })?;
        if !line.trim().is_empty() {
            let entry = parse(line.trim()).map_err(|problem| invalid(format!("line {number}: {problem}")))?;
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return Err(invalid("no lines".into()));
    }
    Ok(entries)
}

/// The class of an image that is listed as `class/image`.
pub(super) fn class_of(line: &str) -> std::result::Result<&str, String> {
    match line.split_once('/') {
        Some((class, image)) if !class.is_empty() && !image.is_empty() && !image.contains('/') => Ok(class),
        _ => Err(format!("expected `class/image`, got `{line}`")),
    }
}

/// Where a listed image lies below `folder`; a list cannot name files elsewhere.
pub(super) fn image_path(folder: &str, name: &str) -> std::result::Result<PathBuf, String> {
    let mut parts = Path::new(name).components().peekable();
    if parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_))) {
        Ok(Path::new(folder).join(name))
    } else {
        Err(format!("expected the path of an image inside the set, got `{name}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_numbers(content: &[u8]) -> Result<Vec<usize>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.txt");
        std::fs::write(&path, content).unwrap();
        read(path, Split::Train, |line| line.parse().map_err(|_| format!("expected a number, got `{line}`")))
    }

    #[test]
    fn line_endings_and_blank_lines_do_not_matter() {
        assert_eq!(read_numbers(b"1\r\n2 \n\n3").unwrap(), [1, 2, 3]);
    }

    #[test]
    fn what_does_not_parse_is_named_with_file_and_line() {
        let message = read_numbers(b"1\n\ntwo\n").unwrap_err().to_string();
        assert!(message.contains("line 3: expected a number, got `two`"), "{message}");
        assert!(message.contains("train.txt"), "{message}");
        let message = read_numbers(b"1\n\xff\n").unwrap_err().to_string();
        assert!(message.contains("line 2: not UTF-8"), "{message}");
        let message = read_numbers(b" \n").unwrap_err().to_string();
        assert!(message.contains("no lines"), "{message}");
    }

    #[test]
    fn a_missing_list_is_named_with_its_split() {
        let missing = PathBuf::from("nowhere/val1.txt");
        let message = read(missing, Split::Validation, |_| Ok(())).unwrap_err().to_string();
        assert_eq!(message, "the validation split needs a file that is not there: nowhere/val1.txt");
    }

    #[test]
    fn a_list_cannot_name_files_outside_its_folder() {
        assert_eq!(image_path("images", "a/b.jpg").unwrap(), Path::new("images/a/b.jpg"));
        for outside in ["../b.jpg", "a/../../b.jpg", "/etc/passwd", "./b.jpg", ""] {
            assert!(image_path("images", outside).is_err(), "{outside}");
        }
    }
}
