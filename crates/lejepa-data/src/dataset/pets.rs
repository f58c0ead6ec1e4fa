//! Oxford-IIIT pets: `images/<name>.jpg` and `annotations/{trainval,test}.txt` with lines such as
//! `Abyssinian_100 1 1 1` (name, class from one, species, breed).

use std::path::{Path, PathBuf};

use super::{ImageFile, ImageFiles, Split, classes, layout_root, split_file};
use crate::{Error, Result};

const CLASS_COUNT: usize = 37;

pub(super) fn is_at(path: &Path) -> bool {
    find_root(path).is_some()
}

fn find_root(path: &Path) -> Option<PathBuf> {
    let lists = ["annotations/trainval.txt", "annotations/test.txt"];
    let root = layout_root::find(path, &["oxford-iiit-pet"], &lists)?;
    root.join("images").is_dir().then_some(root)
}

pub(super) fn open(path: &Path, split: Split) -> Result<ImageFiles> {
    let root = find_root(path).unwrap_or_else(|| path.into());
    let (list, other) = match split {
        Split::Train => ("annotations/trainval.txt", "annotations/test.txt"),
        Split::Test => ("annotations/test.txt", "annotations/trainval.txt"),
        Split::Validation | Split::Unlabelled => {
            return Err(Error::NoSplit { split: split.name(), path: root });
        }
    };
    let mut breeds = Breeds { names: [const { None }; CLASS_COUNT] };
    let files = split_file::read(root.join(list), split, |line| breeds.parse(line))?;
    // A class that only one split has must not shift the numbers of the others.
    if root.join(other).is_file() {
        split_file::read(root.join(other), split, |line| breeds.parse(line))?;
    }
    ImageFiles::new(&root, split, files, breeds.into_names())
}

/// The breeds that image names have shown so far.
#[derive(Debug)]
struct Breeds {
    names: [Option<String>; CLASS_COUNT],
}

impl Breeds {
    /// The image of a line; a class always has one breed.
    fn parse(&mut self, line: &str) -> std::result::Result<ImageFile, String> {
        let expected = || format!("expected `Breed_number class species breed`, got `{line}`");
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, class, _species, _breed] = fields[..] else { return Err(expected()) };
        let (breed, _number) = name.rsplit_once('_').ok_or_else(expected)?;
        let label = classes::from_one(class.parse().map_err(|_| expected())?, CLASS_COUNT)?;
        let path = split_file::image_path("images", &format!("{name}.jpg"))?;
        let known = self.names.iter().position(|name| name.as_deref() == Some(breed));
        match (&self.names[label], known) {
            (None, None) => self.names[label] = Some(breed.into()),
            (Some(other), _) if other != breed => {
                return Err(format!("class {class} is `{breed}` here and `{other}` before"));
            }
            (_, Some(other)) if other != label => {
                return Err(format!("`{breed}` is class {class} here and {} before", other + 1));
            }
            _ => {}
        }
        Ok(ImageFile { path, label: Some(label) })
    }

    /// Up to the last class that has images; one without is called by its number.
    fn into_names(self) -> Vec<String> {
        let count = self.names.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let named = self.names.into_iter().take(count).zip(1..);
        named.map(|(name, class)| name.unwrap_or_else(|| class.to_string())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Dataset, Format, fixture};

    #[test]
    fn the_official_splits_are_read_as_torchvision_reads_them() {
        fixture::assert_as_torchvision("pets", "oxford-iiit-pet", &[Split::Train, Split::Test]);
        assert_eq!(Format::recognise(&fixture::path("pets")), Some(Format::Pets));
        fixture::assert_no_split(&fixture::path("pets"), &[Split::Validation, Split::Unlabelled]);
    }

    #[test]
    fn a_class_without_images_keeps_its_number() {
        let root = fixture::copy("pets/oxford-iiit-pet");
        let annotations = root.path().join("annotations");
        std::fs::write(annotations.join("trainval.txt"), "Bengal_7 3 1 2\n").unwrap();
        std::fs::write(annotations.join("test.txt"), "Abyssinian_2 1 1 1\n").unwrap();
        let train = open(root.path(), Split::Train).unwrap();
        assert_eq!((train.label(0), train.class_names().join(" ")), (Some(2), "Abyssinian 2 Bengal".into()));
    }

    #[test]
    fn damaged_lists_are_named_with_the_cause() {
        let root = fixture::copy("pets/oxford-iiit-pet");
        let list = root.path().join("annotations/trainval.txt");
        for (line, problem) in [
            ("Bengal_8 2 1 2", "line 2: class 2 is `Bengal` here and `pug` before"),
            ("pug_8 3 1 2", "line 2: `pug` is class 3 here and 2 before"),
            ("Bengal_8 0 1 2", "line 2: class 0 is not 1 to 37"),
            ("Bengal_8 38 1 2", "line 2: class 38 is not 1 to 37"),
            ("Bengal_8 x 1 2", "line 2: expected `Breed_number class"),
            ("Bengal_8 3", "line 2: expected `Breed_number class"),
            ("../../Bengal_8 3 1 2", "line 2: expected the path of an image inside the set"),
            ("Bengal 3 1 2", "line 2: expected `Breed_number class"),
        ] {
            std::fs::write(&list, format!("pug_1 2 2 1\n{line}\n")).unwrap();
            let message = fixture::message(root.path(), Split::Train);
            assert!(message.contains(problem) && message.contains("trainval.txt"), "{message}");
        }
        std::fs::remove_file(list).unwrap();
        let message = fixture::message(root.path(), Split::Train);
        assert!(
            message.contains("training split") && message.contains("annotations/trainval.txt"),
            "{message}"
        );
    }
}
