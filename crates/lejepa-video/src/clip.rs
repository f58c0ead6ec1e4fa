//! The clips at a path: one, or those of a set.

use std::path::{Path, PathBuf};

use lejepa_data::Fingerprinter;

use super::frame_folder::{images, is_hidden, stem};
use crate::Result;

/// Frames, and where their masks are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clip {
    /// What it is called in reports and folders.
    pub name: String,
    /// A folder of frames, or a file.
    pub frames: PathBuf,
    /// A folder with a mask for each frame, under the frame's name.
    pub masks: Option<PathBuf>,
}

/// The folders of DAVIS with frames and masks; below them a resolution, then sequences.
const DAVIS_FRAMES: &str = "JPEGImages";
const DAVIS_MASKS: &str = "Annotations";
const DAVIS_RESOLUTION: &str = "480p";

/// The clips at a path.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) clips: Vec<Clip>,
    /// Whether they are a set, be it of one.
    pub(super) is_set: bool,
    /// What a user should know.
    pub(super) notes: Vec<String>,
}

impl Clip {
    /// The clips at a path:
    /// - a file, or a folder of images: one clip, whose masks are in `masks` or in a folder of its name there
    /// - a folder of such folders: a clip for each, with its masks in the folder of its name in `masks`
    /// - the root of DAVIS: its sequences, with their masks unless others are given
    pub(super) fn find(path: &Path, masks: Option<&Path>) -> Result<Found> {
        if !path.exists() {
            return Err(lejepa_data::Error::NotFound { path: path.into() }.into());
        }
        if let Some(masks) = masks.filter(|masks| !masks.is_dir()) {
            return Err(lejepa_data::Error::NotFound { path: masks.into() }.into());
        }
        let below = path.join(DAVIS_FRAMES);
        if below.is_dir() {
            let resolution = match below.join(DAVIS_RESOLUTION) {
                usual if usual.is_dir() => usual,
                _ => folders(&below)?.into_iter().next().unwrap_or(below),
            };
            let own = path.join(DAVIS_MASKS).join(resolution.file_name().unwrap_or_default());
            let masks = masks.map(Path::to_path_buf).or(Some(own).filter(|own| own.is_dir()));
            let clips = set(&resolution, masks.as_deref())?;
            let note = format!(
                "there are no frames in {DAVIS_RESOLUTION}, these are used: {}",
                resolution.display()
            );
            let is_usual = resolution.ends_with(DAVIS_RESOLUTION);
            return Ok(Found { clips, is_set: true, notes: Vec::from_iter((!is_usual).then_some(note)) });
        }
        if path.is_dir() && images(path)?.is_empty() {
            return Ok(Found { clips: set(path, masks)?, is_set: true, notes: Vec::new() });
        }
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let name = match path.is_dir() {
            true => absolute.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            false => stem(path),
        };
        let masks =
            masks.map(|masks| Some(masks.join(&name)).filter(|own| own.is_dir()).unwrap_or(masks.into()));
        let clips = vec![Self { name, frames: path.into(), masks }];
        Ok(Found { clips, is_set: false, notes: Vec::new() })
    }
}

impl Clip {
    /// Of the content of the clip's frames and masks; what was hashed before is remembered in a folder.
    pub fn fingerprint(&self, memory: &Path) -> Result<String> {
        let mut parts = Vec::new();
        for place in [Some(&self.frames), self.masks.as_ref()].into_iter().flatten() {
            let files = if place.is_dir() { images(place)? } else { vec![place.clone()] };
            parts.push(Fingerprinter::default().remembering(memory).of_files(&files)?);
        }
        Ok(Fingerprinter::combined(parts))
    }
}

fn set(path: &Path, masks: Option<&Path>) -> Result<Vec<Clip>> {
    let mut clips = Vec::new();
    for frames in folders(path)? {
        if images(&frames)?.is_empty() {
            continue;
        }
        let name = frames.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let masks = masks.map(|masks| masks.join(&name)).filter(|masks| masks.is_dir());
        clips.push(Clip { name, frames, masks });
    }
    match clips.is_empty() {
        true => Err(lejepa_data::Error::NoImages { path: path.into() }.into()),
        false => Ok(clips),
    }
}

fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| lejepa_data::Error::Io { action: "read", path: path.into(), source };
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && !is_hidden(&path) {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path) {
        lejepa_data::Image::from_pixels(1, 1, 1, vec![0]).unwrap().write_png(path).unwrap();
    }

    fn found(path: &Path, masks: Option<&Path>) -> Vec<Clip> {
        Clip::find(path, masks).unwrap().clips
    }

    fn names(clips: &[Clip]) -> Vec<(&str, bool)> {
        clips.iter().map(|clip| (clip.name.as_str(), clip.masks.is_some())).collect()
    }

    #[test]
    fn the_root_of_davis_is_a_set_with_masks() {
        let root = tempfile::tempdir().unwrap();
        for file in [
            "JPEGImages/480p/dog/0.png",
            "JPEGImages/480p/bear/0.png",
            "JPEGImages/1080p/bear/0.png",
            "Annotations/480p/dog/0.png",
        ] {
            write(&root.path().join(file));
        }
        let clips = found(root.path(), None);
        assert_eq!(names(&clips), [("bear", false), ("dog", true)]);
        assert!(clips[0].frames.ends_with("480p/bear"));
        let given = found(root.path(), Some(&root.path().join("Annotations")));
        assert_eq!(names(&given), [("bear", false), ("dog", false)]);
    }

    #[test]
    fn a_folder_of_frames_is_one_clip_and_finds_its_masks() {
        let root = tempfile::tempdir().unwrap();
        let (frames, masks) = (root.path().join("dog"), root.path().join("masks"));
        write(&frames.join("0.png"));
        write(&masks.join("0.png"));
        let clips = found(&frames, Some(&masks));
        assert_eq!(clips, [Clip { name: "dog".into(), frames: frames.clone(), masks: Some(masks.clone()) }]);
        write(&masks.join("dog/0.png"));
        assert_eq!(found(&frames, Some(&masks))[0].masks, Some(masks.join("dog")));
        assert_eq!(found(&frames.join("0.png"), None)[0].name, "0");
    }

    #[test]
    fn a_fingerprint_changes_with_frames_and_masks() {
        let root = tempfile::tempdir().unwrap();
        let (frames, masks) = (root.path().join("dog"), root.path().join("masks"));
        write(&frames.join("0.png"));
        write(&masks.join("0.png"));
        let fingerprint = |masks| found(&frames, masks)[0].fingerprint(root.path()).unwrap();
        let first = fingerprint(Some(&masks));
        assert_eq!(fingerprint(Some(&masks)), first);
        assert_ne!(fingerprint(None), first);
        // Other pixels of the same length.
        let mut bytes = std::fs::read(masks.join("0.png")).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(masks.join("0.png"), bytes).unwrap();
        let second = fingerprint(Some(&masks));
        assert_ne!(second, first);
        write(&masks.join("1.png"));
        assert!(![first, second].contains(&fingerprint(Some(&masks))));
    }

    #[test]
    fn missing_and_empty_folders_are_errors() {
        let root = tempfile::tempdir().unwrap();
        assert!(Clip::find(root.path(), None).is_err());
        assert!(Clip::find(&root.path().join("nowhere"), None).is_err());
        write(&root.path().join("0.png"));
        assert!(Clip::find(root.path(), Some(&root.path().join("nowhere"))).is_err());
    }
}
