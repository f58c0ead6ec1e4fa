//! What a dataset holds: its splits, classes, image sizes, and what is wrong with it.

mod contact_sheet;
mod title;
mod verification;

pub use contact_sheet::{ContactSheet, SheetCell, SheetRow};
pub use verification::{SplitVerification, Verification};

use std::path::PathBuf;

use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::Serialize;

use crate::{
    BrokenImage, Dataset, Fingerprinter, Format, Purpose, Result, SourceConfig, Split, Stored, generator,
    open_splits,
};

/// What a dataset holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Where it lies.
    pub path: PathBuf,
    /// How it is stored.
    pub format: Format,
    /// The splits that are there.
    pub splits: Vec<SplitInspection>,
}

/// What one split holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SplitInspection {
    /// Which split.
    pub split: Split,
    /// Number of images.
    pub images: usize,
    /// Images that have no label.
    pub unlabelled: usize,
    /// The data's fingerprint, if every image is read anyway: large data is not read for it alone.
    pub fingerprint: Option<String>,
    /// Every class, also those without an image in this split.
    pub classes: Vec<ClassCount>,
    /// What a user should know.
    pub notes: Vec<String>,
    /// Images that were decoded; what follows is about these.
    pub decoded: usize,
    /// Sizes of the readable ones.
    pub sizes: Option<ImageSizes>,
    /// Readable ones in grey; the others are in colour.
    pub grey: usize,
    /// Readable ones with transparency, which is left out.
    pub transparent: usize,
    /// Readable ones with several pictures (JPEG files such as MPO), of which the first is used.
    pub several_pictures: usize,
    /// Readable ones that are cut off, if such are accepted: what is missing is grey.
    pub cut: usize,
    /// Images that cannot be read.
    pub unreadable: usize,
    /// The first of them, at most [`Inspection::NAMED`].
    pub unreadable_images: Vec<BrokenImage>,
}

/// A class and how many images it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// The class.
    pub name: String,
    /// Its images in this split.
    pub images: usize,
}

/// Sizes of images in the order of their areas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageSizes {
    /// The smallest image.
    pub smallest: ImageSize,
    /// The one in the middle.
    pub median: ImageSize,
    /// The largest image.
    pub largest: ImageSize,
}

/// The size of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImageSize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// How far a pass over a dataset is.
#[derive(Debug, Clone, Copy)]
pub enum Progress {
    /// So many images of a split are going to be decoded.
    Split(Split, usize),
    /// One of them is done.
    Image,
}

impl Inspection {
    /// How many unreadable images are named in a split.
    pub const NAMED: usize = 20;
    /// How many images of a split are decoded unless told otherwise.
    pub const DECODED: usize = 1000;

    /// Looks at every split. At most `decode` images of each are decoded, always the same ones; all if
    /// it is `None`.
    pub fn of(
        source: &SourceConfig,
        decode: Option<usize>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Self> {
        let format = source.recognise()?;
        let splits =
            open_splits(source, |split, dataset| SplitInspection::of(&*dataset, split, decode, progress))?;
        let splits = splits.into_iter().collect::<Result<_>>()?;
        Ok(Self { path: source.path.clone(), format, splits })
    }
}

impl SplitInspection {
    fn of(
        dataset: &dyn Dataset,
        split: Split,
        decode: Option<usize>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Self> {
        let all = (0..dataset.len()).collect();
        let indices = choose(all, decode.unwrap_or(dataset.len()), split as u64);
        progress(Progress::Split(split, indices.len()));
        let decoded: Vec<_> = indices
            .par_iter()
            .map(|&index| {
                let stored = dataset.stored(index);
                let left_out = stored.as_ref().map(Stored::left_out).unwrap_or_default();
                let image = stored.and_then(Stored::decode);
                progress(Progress::Image);
                let size = |height, width| ImageSize { height, width };
                image
                    .map(|image| (size(image.height(), image.width()), image.channels(), left_out))
                    .map_err(|error| BrokenImage::new(dataset.name(index), &error))
            })
            .collect();
        let mut classes: Vec<_> =
            dataset.class_names().iter().map(|name| ClassCount { name: name.clone(), images: 0 }).collect();
        let labels = (0..dataset.len()).filter_map(|index| dataset.label(index));
        let labelled = labels.inspect(|&label| {
            if let Some(class) = classes.get_mut(label) {
                class.images += 1;
            }
        });
        let fingerprint = match decode {
            None => Some(dataset.fingerprint(&mut Fingerprinter::default())?),
            Some(_) => None,
        };
        Ok(Self {
            split,
            images: dataset.len(),
            unlabelled: dataset.len() - labelled.count(),
            fingerprint,
            classes,
            notes: dataset.notes().into(),
            decoded: decoded.len(),
            sizes: ImageSizes::of(decoded.iter().flatten().map(|&(size, ..)| size).collect()),
            grey: decoded.iter().flatten().filter(|&&(_, channels, _)| channels == 1).count(),
            transparent: decoded.iter().flatten().filter(|(.., left)| left.transparency).count(),
            several_pictures: decoded.iter().flatten().filter(|(.., left)| left.pictures).count(),
            cut: decoded.iter().flatten().filter(|(.., left)| left.end).count(),
            unreadable: decoded.iter().filter(|image| image.is_err()).count(),
            unreadable_images: decoded
                .into_iter()
                .filter_map(|image| image.err())
                .take(Inspection::NAMED)
                .collect(),
        })
    }
}

impl ImageSizes {
    fn of(mut sizes: Vec<ImageSize>) -> Option<Self> {
        sizes.sort_by_key(|size| (size.height * size.width, size.height));
        let median = *sizes.get(sizes.len() / 2)?;
        Some(Self { smallest: *sizes.first()?, median, largest: *sizes.last()? })
    }
}

/// At most `count` of the samples, in order; the same ones every time.
pub(crate) fn choose(mut samples: Vec<usize>, count: usize, stream: u64) -> Vec<usize> {
    if samples.len() <= count {
        return samples;
    }
    let (chosen, _) = samples.partial_shuffle(&mut generator(0, Purpose::Inspection, stream, 0), count);
    let mut chosen = chosen.to_vec();
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Two classes of grey and colour images of several sizes, one of them broken.
    fn write_folder(root: &Path) {
        for folder in ["train/cat", "train/dog", "test/dog"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (name, height, width) in [("cat/a", 4, 6), ("cat/b", 10, 8), ("dog/c", 5, 5)] {
            let path = root.join(format!("train/{name}.png"));
            ::image::RgbImage::new(width, height).save(path).unwrap();
        }
        ::image::GrayImage::new(3, 2).save(root.join("train/loose.png")).unwrap();
        std::fs::write(root.join("train/dog/broken.png"), "no image").unwrap();
        ::image::GrayImage::new(3, 2).save(root.join("test/dog/d.png")).unwrap();
        ::image::RgbaImage::new(3, 2).save(root.join("test/dog/e.png")).unwrap();
    }

    fn source(path: &Path) -> SourceConfig {
        SourceConfig { path: path.into(), ..Default::default() }
    }

    #[test]
    fn splits_classes_sizes_and_unreadable_images_are_counted() {
        let root = tempfile::tempdir().unwrap();
        write_folder(root.path());
        let images = AtomicUsize::new(0);
        let inspection = Inspection::of(&source(root.path()), None, &|progress| {
            if matches!(progress, Progress::Image) {
                images.fetch_add(1, Ordering::Relaxed);
            }
        })
        .unwrap();
        assert_eq!((inspection.format, images.into_inner()), (Format::Folder, 7));
        let [train, test] = &inspection.splits[..] else { panic!("{inspection:?}") };
        let count = |name: &str, images| ClassCount { name: name.into(), images };
        assert_eq!((train.split, train.images, train.unlabelled), (Split::Train, 5, 1));
        assert!(train.fingerprint.is_some() && train.fingerprint != test.fingerprint);
        assert_eq!(train.classes, [count("cat", 2), count("dog", 2)]);
        assert_eq!(test.classes, [count("cat", 0), count("dog", 2)]);
        assert_eq!((train.decoded, train.grey, train.unreadable), (5, 1, 1));
        assert_eq!((train.transparent, test.transparent, test.several_pictures), (0, 1, 0));
        assert!(train.unreadable_images[0].name.ends_with("train/dog/broken.png"));
        assert!(train.unreadable_images[0].reason.contains("cannot decode image: "));
        let sizes = train.sizes.clone().unwrap();
        let size = |height, width| ImageSize { height, width };
        assert_eq!([sizes.smallest, sizes.median, sizes.largest], [size(2, 3), size(5, 5), size(10, 8)]);
    }

    #[test]
    fn only_so_many_images_are_decoded_and_always_the_same() {
        let chosen = choose((0..100).collect(), 10, 0);
        assert_eq!(chosen, choose((0..100).collect(), 10, 0));
        assert!(chosen.len() == 10 && chosen.is_sorted() && chosen.iter().max() < Some(&100));
        assert_eq!(choose(vec![4, 7], 10, 0), [4, 7]);

        let root = tempfile::tempdir().unwrap();
        write_folder(root.path());
        let inspection = Inspection::of(&source(root.path()), Some(2), &|_| ()).unwrap();
        assert_eq!((inspection.splits[0].images, inspection.splits[0].decoded), (5, 2));
        assert_eq!(inspection.splits[0].fingerprint, None, "not everything was read");
    }

    #[test]
    fn a_path_without_data_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let message = Inspection::of(&source(root.path()), None, &|_| ()).unwrap_err().to_string();
        assert!(message.contains("no images"), "{message}");
    }
}
