//! Which clips of a set are segmented: those of a list, such as the validation split of DAVIS.

use std::collections::BTreeSet;
use std::path::Path;

use super::Clip;
use super::clip::Found;
use crate::{Error, Result};

/// Clips, and what they are of their set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClipSet {
    /// The clips.
    pub clips: Vec<Clip>,
    /// What they are called in a protocol string, such as `2017/val`; nothing where there is one clip and no set.
    pub list: Option<String>,
    /// What a user should know, such as clips of the list that are not there.
    pub notes: Vec<String>,
}

/// Which clips of a set are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ClipChoice {
    /// The validation split if the set is DAVIS and has its list, else all.
    #[default]
    Usual,
    /// All that are there.
    All,
    /// These.
    Named {
        /// Their names.
        names: Vec<String>,
        /// What the list is called.
        title: String,
    },
}

/// The validation splits of DAVIS 2017, of 2016 in the same package, and of the package of 2016 itself.
const VALIDATION: [&str; 3] = ["ImageSets/2017/val.txt", "ImageSets/2016/val.txt", "ImageSets/480p/val.txt"];
/// Names that stand in a title; more are told apart by a hash.
const NAMED: usize = 3;
/// Larger files are no lists.
const BYTE_LIMIT: u64 = 1 << 24;

impl ClipChoice {
    /// `all`, a file with a name in every line, or names with commas between them.
    pub fn parse(typed: &str) -> Result<Self> {
        if typed == "all" {
            return Ok(Self::All);
        }
        let path = Path::new(typed);
        if path.is_file() {
            return Self::list(path);
        }
        if typed.contains('/') {
            return Err(lejepa_data::Error::NotFound { path: path.into() }.into());
        }
        let names: Vec<String> =
            typed.split(',').map(str::trim).filter(|name| !name.is_empty()).map(String::from).collect();
        let title = match names.len() {
            0 => return Err(Error::EmptyClipList { path: path.into() }),
            1..=NAMED => names.join("+"),
            more => format!("{more}-{}", &blake3::hash(names.join(",").as_bytes()).to_hex()[..8]),
        };
        Ok(Self::Named { names, title })
    }

    /// A name in every line; or, as in the package of DAVIS 2016, the paths of a frame and its mask.
    fn list(path: &Path) -> Result<Self> {
        let failed = |source| lejepa_data::Error::Io { action: "read", path: path.into(), source };
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > BYTE_LIMIT {
            return Err(Error::LargeFile { limit: BYTE_LIMIT, length, path: path.into() });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let mut names: Vec<String> = Vec::new();
        // Editors of Windows begin a file with a mark.
        for word in
            text.trim_start_matches('\u{feff}').lines().filter_map(|line| line.split_whitespace().next())
        {
            let name = match Path::new(word).parent().and_then(Path::file_name) {
                Some(folder) => folder.to_string_lossy().into_owned(),
                None => word.into(),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return Err(Error::EmptyClipList { path: path.into() });
        }
        Ok(Self::Named { names, title: title(path) })
    }
}

impl ClipSet {
    /// The clips at a path, as [`Clip`] finds them, and of a set those that are wanted.
    pub fn find(path: &Path, masks: Option<&Path>, choice: &ClipChoice) -> Result<Self> {
        let Found { clips, is_set, mut notes } = Clip::find(path, masks)?;
        if !is_set {
            return match choice {
                ClipChoice::Usual => Ok(Self { clips, list: None, notes }),
                _ => Err(Error::NotASet { path: path.into() }),
            };
        }
        let usual = VALIDATION.iter().map(|list| path.join(list)).find(|list| list.is_file());
        let (choice, is_chosen) = match (choice, usual) {
            (ClipChoice::Usual, Some(list)) => (ClipChoice::list(&list)?, false),
            (choice, _) => (choice.clone(), true),
        };
        let ClipChoice::Named { names, title } = choice else {
            notes.extend(without_masks(&clips));
            return Ok(Self { clips, list: Some("all".into()), notes });
        };
        let there: BTreeSet<&str> = clips.iter().map(|clip| clip.name.as_str()).collect();
        let missing: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| !there.contains(name)).collect();
        if missing.len() == names.len() || (is_chosen && !missing.is_empty()) {
            return Err(Error::MissingClips { names: missing.join(", "), path: path.into() });
        }
        let others = there.len() + missing.len() - names.len();
        let found = names.len() - missing.len();
        let mut list = title.clone();
        if !missing.is_empty() {
            list = format!("{title}({found}of{})", names.len());
            notes.push(format!("clips of the list {title} that are not there: {}", missing.join(", ")));
        }
        if !is_chosen && others > 0 {
            notes.push(format!(
                "clips of the list {title}: {found}; {others} others are left out, unless with --clips all"
            ));
        }
        let clips: Vec<Clip> = clips.into_iter().filter(|clip| names.contains(&clip.name)).collect();
        notes.extend(without_masks(&clips));
        Ok(Self { clips, list: Some(list), notes })
    }
}

/// Some clips are judged and some are not.
fn without_masks(clips: &[Clip]) -> Option<String> {
    let without: Vec<&str> =
        clips.iter().filter(|clip| clip.masks.is_none()).map(|clip| clip.name.as_str()).collect();
    let note = || format!("clips without true masks, which are not judged: {}", without.join(", "));
    (!without.is_empty() && without.len() < clips.len()).then(note)
}

/// Such as `2017/val` or, elsewhere than in DAVIS, the name of the file.
fn title(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder =
        path.parent().filter(|folder| folder.parent().is_some_and(|above| above.ends_with("ImageSets")));
    match folder.and_then(Path::file_name) {
        Some(folder) => format!("{}/{stem}", folder.to_string_lossy()),
        None => stem.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn davis(names: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for name in names {
            for folder in ["JPEGImages", "Annotations"] {
                let path = root.path().join(folder).join("480p").join(name).join("00000.png");
                lejepa_data::Image::from_pixels(1, 1, 1, vec![1]).unwrap().write_png(&path).unwrap();
            }
        }
        root
    }

    fn write(root: &Path, list: &str, text: &str) {
        let path = root.join(list);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn names(set: &ClipSet) -> Vec<&str> {
        set.clips.iter().map(|clip| clip.name.as_str()).collect()
    }

    fn find(root: &Path, choice: &str) -> Result<ClipSet> {
        let choice = if choice.is_empty() { ClipChoice::Usual } else { ClipChoice::parse(choice)? };
        ClipSet::find(root, None, &choice)
    }

    #[test]
    fn the_validation_split_of_davis_is_what_is_usual() {
        let root = davis(&["bear", "cows", "dog", "goat"]);
        let all = find(root.path(), "").unwrap();
        assert_eq!((names(&all), all.list.as_deref()), (vec!["bear", "cows", "dog", "goat"], Some("all")));

        let of_2016 = "/JPEGImages/480p/cows/00000.jpg /Annotations/480p/cows/00000.png\n\
                       /JPEGImages/480p/cows/00001.jpg /Annotations/480p/cows/00001.png\n";
        write(root.path(), "ImageSets/480p/val.txt", of_2016);
        let found = find(root.path(), "").unwrap();
        assert_eq!((names(&found), found.list.as_deref()), (vec!["cows"], Some("480p/val")));
        write(root.path(), "ImageSets/2016/val.txt", "goat\n");
        assert_eq!(names(&find(root.path(), "").unwrap()), ["goat"]);
        write(root.path(), "ImageSets/2017/val.txt", "goat\r\n dog \n\nlibby\n");
        let found = find(root.path(), "").unwrap();
        assert_eq!((names(&found), found.list.as_deref()), (vec!["dog", "goat"], Some("2017/val(2of3)")));
        let notes = [
            "clips of the list 2017/val that are not there: libby",
            "clips of the list 2017/val: 2; 2 others are left out, unless with --clips all",
        ];
        assert_eq!(found.notes, notes);
        assert_eq!(find(root.path(), "all").unwrap(), all);
    }

    #[test]
    fn clips_are_chosen_by_name_or_by_a_file() {
        let root = davis(&["bear", "cows", "dog", "goat", "hike"]);
        let chosen = find(root.path(), "goat, bear").unwrap();
        assert_eq!((names(&chosen), chosen.list.as_deref()), (vec!["bear", "goat"], Some("goat+bear")));
        let many = find(root.path(), "goat,bear,dog,cows").unwrap().list.unwrap();
        assert!(many.starts_with("4-") && many.len() == 10, "{many}");
        write(root.path(), "mine.txt", "hike\n");
        let listed = find(root.path(), root.path().join("mine.txt").to_str().unwrap()).unwrap();
        assert_eq!((names(&listed), listed.list.as_deref()), (vec!["hike"], Some("mine")));

        let message = |choice: &str| find(root.path(), choice).unwrap_err().to_string();
        assert!(
            message("goat,yak,zebu").starts_with("no such clips (yak, zebu) in: "),
            "{}",
            message("goat,yak")
        );
        assert!(message(",").starts_with("no names of clips in: "));
        assert!(message("no/list.txt").starts_with("no such file or folder: no/list.txt"));
        let alone = root.path().join("JPEGImages/480p/dog");
        assert!(find(&alone, "dog").unwrap_err().to_string().starts_with("one clip, not a set of clips: "));
        assert_eq!(find(&alone, "").unwrap().list, None);
    }

    #[test]
    fn clips_that_are_not_judged_are_named() {
        let root = davis(&["bear", "dog"]);
        std::fs::remove_dir_all(root.path().join("Annotations/480p/dog")).unwrap();
        let found = find(root.path(), "").unwrap();
        assert_eq!(found.notes, ["clips without true masks, which are not judged: dog"]);
    }
}
