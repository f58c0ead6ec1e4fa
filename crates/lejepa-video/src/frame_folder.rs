//! Frames that are image files of a folder.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lejepa_data::{Image, is_image_file};

use super::Frame;
use crate::{Error, Result};

/// 24 frames per second, those of DAVIS.
pub(super) const DURATION: Duration = Duration::from_nanos(1_000_000_000 / 24);
/// Larger files are refused before they are read: more than the largest frame takes in 16 bits.
const BYTE_LIMIT: u64 = 1 << 28;

/// Reads image files one after the other.
pub(super) struct FrameFolder(std::vec::IntoIter<PathBuf>);

impl FrameFolder {
    /// The images of a folder.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let paths = images(folder)?;
        if paths.is_empty() {
            return Err(lejepa_data::Error::NoImages { path: folder.into() }.into());
        }
        let mut names = HashSet::new();
        match paths.iter().find(|path| !names.insert(stem(path))) {
            Some(twice) => Err(Error::TwoFrames { name: stem(twice), path: folder.into() }),
            None => Ok(Self(paths.into_iter())),
        }
    }

    /// A clip of a single image.
    pub(super) fn one(path: &Path) -> Self {
        Self(vec![path.to_path_buf()].into_iter())
    }
}

impl Iterator for FrameFolder {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|path| read(&path))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

fn read(path: &Path) -> Result<Frame> {
    let failed = |source| lejepa_data::Error::Io { action: "read", path: path.into(), source };
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > BYTE_LIMIT {
        return Err(Error::LargeFile { limit: BYTE_LIMIT, length, path: path.into() });
    }
    let bytes = lejepa_data::regular_file::read(path).map_err(failed)?;
    let image = Image::decode_within(&bytes, Frame::PIXEL_LIMIT)
        .map_err(|error| lejepa_data::Error::sample(path.display().to_string(), error))?;
    Ok(Frame { name: stem(path), image, duration: DURATION })
}

/// Image files directly in a folder, in the order of their names; hidden ones are left out.
pub(super) fn images(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| lejepa_data::Error::Io { action: "read", path: folder.into(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !is_hidden(&path) && is_image_file(&path) {
            paths.push(path);
        }
    }
    paths.sort_by(|left, right| natural_order(&stem(left), &stem(right)).then_with(|| left.cmp(right)));
    Ok(paths)
}

pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// The name that a frame and its mask share.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Numbers inside names count as numbers: `frame9` before `frame10`.
fn natural_order(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        let (left_number, right_number) = (leading_number(left), leading_number(right));
        let order = match (left_number.is_empty(), right_number.is_empty()) {
            (false, false) => {
                let (a, b) = (left_number.trim_start_matches('0'), right_number.trim_start_matches('0'));
                let order = a.len().cmp(&b.len()).then_with(|| a.cmp(b));
                (left, right) = (&left[left_number.len()..], &right[right_number.len()..]);
                order
            }
            _ => {
                let (mut rest_left, mut rest_right) = (left.chars(), right.chars());
                let order = match (rest_left.next(), rest_right.next()) {
                    (None, None) => return Ordering::Equal,
                    (a, b) => a.cmp(&b),
                };
                (left, right) = (rest_left.as_str(), rest_right.as_str());
                order
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn leading_number(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, side: usize) {
        Image::from_pixels(side, side + 1, 3, vec![80; side * (side + 1) * 3])
            .unwrap()
            .write_png(&folder.join(name))
            .unwrap();
    }

    #[test]
    fn frames_come_in_the_order_of_the_numbers_in_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["frame10.png", "frame9.png", "frame0100.png", "a.png", ".hidden.png", "notes.txt"] {
            write(folder.path(), name, 2);
        }
        let frames = FrameFolder::open(folder.path()).unwrap();
        assert_eq!(frames.size_hint(), (4, Some(4)));
        let names: Vec<String> = frames.map(|frame| frame.unwrap().name).collect();
        assert_eq!(names, ["a", "frame9", "frame10", "frame0100"]);
    }

    #[test]
    fn frames_may_change_their_size_and_a_broken_one_is_an_error_between_others() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "0.png", 5);
        std::fs::write(folder.path().join("1.jpg"), b"\xff\xd8 no image").unwrap();
        write(folder.path(), "2.png", 1);
        let frames: Vec<Result<Frame>> = FrameFolder::open(folder.path()).unwrap().collect();
        let heights: Vec<Option<usize>> =
            frames.iter().map(|frame| frame.as_ref().ok().map(|frame| frame.image.height())).collect();
        assert_eq!(heights, [Some(5), None, Some(1)]);
    }

    #[test]
    fn frames_of_the_same_name_and_empty_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(FrameFolder::open(folder.path()).is_err());
        write(folder.path(), "0.png", 2);
        std::fs::copy(folder.path().join("0.png"), folder.path().join("0.bmp")).unwrap();
        assert!(matches!(FrameFolder::open(folder.path()), Err(Error::TwoFrames { .. })));
    }
}
