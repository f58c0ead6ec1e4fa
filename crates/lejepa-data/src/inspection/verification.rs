//! Whether every image of a dataset can be used, and a hash of all that it holds.

use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use crate::decode::left_out::LeftOut;
use crate::{BrokenImage, Dataset, Format, Progress, Result, SourceConfig, Split, Stored, open_splits};

/// What came of decoding every image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Where the data lies.
    pub path: PathBuf,
    /// How it is stored.
    pub format: Format,
    /// The splits that are there.
    pub splits: Vec<SplitVerification>,
}

/// What came of decoding every image of a split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitVerification {
    /// Which split.
    pub split: Split,
    /// Number of images.
    pub images: usize,
    /// A hash of the class names and of all images, as they are stored, with their labels, in order.
    /// Where the data lies and what its files are called plays no part.
    pub content: String,
    /// Readable images with transparency, which is left out.
    pub transparent: usize,
    /// Readable images with several pictures (JPEG files such as MPO), of which the first is used.
    pub several_pictures: usize,
    /// Readable images that are cut off, if such are accepted: what is missing is grey.
    pub cut: usize,
    /// Images that cannot be read.
    pub unreadable: Vec<BrokenImage>,
}

impl Verification {
    /// Decodes every image of every split.
    pub fn of(source: &SourceConfig, progress: &(dyn Fn(Progress) + Sync)) -> Result<Self> {
        let format = source.recognise()?;
        let splits = open_splits(source, |split, dataset| SplitVerification::of(&*dataset, split, progress))?;
        Ok(Self { path: source.path.clone(), format, splits })
    }

    /// Whether every image can be read.
    pub fn is_clean(&self) -> bool {
        self.splits.iter().all(|split| split.unreadable.is_empty())
    }
}

impl SplitVerification {
    fn of(dataset: &dyn Dataset, split: Split, progress: &(dyn Fn(Progress) + Sync)) -> Self {
        progress(Progress::Split(split, dataset.len()));
        let images: Vec<_> = (0..dataset.len())
            .into_par_iter()
            .map(|index| {
                let stored = dataset.stored(index);
                let hash = hash(stored.as_ref().ok(), dataset.label(index));
                let left_out = stored.as_ref().map(Stored::left_out).unwrap_or_default();
                let problem = stored.and_then(Stored::decode).err();
                progress(Progress::Image);
                let left_out = if problem.is_none() { left_out } else { LeftOut::default() };
                (hash, left_out, problem.map(|error| BrokenImage::new(dataset.name(index), &error)))
            })
            .collect();
        let mut content = blake3::Hasher::new();
        for name in dataset.class_names() {
            content.update(&length(name.as_bytes())).update(name.as_bytes());
        }
        images.iter().for_each(|(hash, ..)| _ = content.update(hash.as_bytes()));
        Self {
            split,
            images: dataset.len(),
            content: content.finalize().to_hex()[..16].into(),
            transparent: images.iter().filter(|(_, left, _)| left.transparency).count(),
            several_pictures: images.iter().filter(|(_, left, _)| left.pictures).count(),
            cut: images.iter().filter(|(_, left, _)| left.end).count(),
            unreadable: images.into_iter().filter_map(|(.., unreadable)| unreadable).collect(),
        }
    }
}

fn hash(stored: Option<&Stored>, label: Option<usize>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&label.map_or(u64::MAX, |label| label as u64).to_le_bytes());
    match stored {
        Some(stored) => hasher.update(&stored.content()),
        None => hasher.update(b"unreadable"),
    };
    hasher.finalize()
}

fn length(bytes: &[u8]) -> [u8; 8] {
    (bytes.len() as u64).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn write_images(root: &Path, greys: &[u8]) {
        for (index, &grey) in greys.iter().enumerate() {
            let folder = root.join(format!("class{}", index % 2));
            std::fs::create_dir_all(&folder).unwrap();
            let image = ::image::GrayImage::from_pixel(4, 3, ::image::Luma([grey]));
            image.save(folder.join(format!("{index}.bmp"))).unwrap();
        }
    }

    fn verify(path: &Path) -> SplitVerification {
        let source = SourceConfig { path: path.into(), ..Default::default() };
        Verification::of(&source, &|_| ()).unwrap().splits.remove(0)
    }

    #[test]
    fn the_content_changes_with_pixels_labels_and_order_but_not_with_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let contents = [[1, 2, 3, 4], [1, 2, 3, 5], [3, 2, 1, 4], [2, 1, 4, 3]].map(|greys| {
            let path = folder.path().join(format!("{greys:?}"));
            write_images(&path, &greys);
            verify(&path).content
        });
        for (index, content) in contents.iter().enumerate() {
            assert_eq!(content.len(), 16);
            assert!(!contents[..index].contains(content));
        }
        let copy = folder.path().join("copy");
        write_images(&copy, &[1, 2, 3, 4]);
        assert_eq!(verify(&copy).content, contents[0]);

        std::fs::rename(copy.join("class0"), copy.join("class2")).unwrap();
        assert_ne!(verify(&copy).content, contents[0], "a class has another name");
    }

    #[test]
    fn every_unreadable_image_is_named() {
        let folder = tempfile::tempdir().unwrap();
        write_images(folder.path(), &[7; 60]);
        for index in (0..60).step_by(2) {
            std::fs::write(folder.path().join(format!("class0/{index}.bmp")), "no image").unwrap();
        }
        let split = verify(folder.path());
        assert_eq!((split.images, split.unreadable.len()), (60, 30));
        assert!(split.unreadable[0].name.ends_with("class0/0.bmp"));
    }
}
