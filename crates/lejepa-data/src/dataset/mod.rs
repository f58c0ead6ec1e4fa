//! Images behind one interface, recognised from the path or named in a recipe.

mod aircraft;
#[cfg(test)]
mod array_fixtures;
mod array_labels;
mod cached;
mod cars;
mod checksum;
mod cifar;
mod cifar_sheets;
mod classes;
mod cut_files;
mod dtd;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod flowers102;
mod folder;
mod food101;
mod format;
mod galaxy10;
mod hdf5;
#[cfg(feature = "hdf5")]
mod hdf5_examination;
#[cfg(feature = "hdf5")]
mod hdf5_file;
mod held_out;
mod idx;
mod image_array;
mod image_files;
mod joined;
mod labels;
mod layout_root;
mod listing;
mod mapped_file;
mod mat;
mod matrix;
mod noted;
mod npy;
mod npy_array;
mod npy_header;
mod npz;
mod numbered;
mod parquet;
mod pets;
mod pickle;
mod shards;
mod source;
mod split;
mod split_file;
mod stl10;
mod stored;
mod subset;
mod training_data;
mod unpack_limit;
mod webdataset;

pub use cached::{CachePlace, Cached};
pub use fingerprint::{FileFacts, Fingerprinter, Hashing};
use folder::ImageFolder;
pub use format::Format;
use hdf5::Hdf5;
#[cfg(feature = "hdf5")]
pub use hdf5_examination::{Hdf5Examiner, examine_hdf5};
pub use held_out::held_out;
use idx::Idx;
use image_array::ImageArray;
use image_files::{ImageFile, ImageFiles};
use joined::Joined;
pub use matrix::{Matrix, MatrixValues, read_matrix};
pub use source::{ReadOptions, SourceConfig, is_image_file, open, open_files, open_source, open_splits};
pub use split::Split;
pub use stored::Stored;
pub use training_data::{DataConfig, MixtureConfig, TrainingData};

use std::path::PathBuf;

use crate::{Error, Image, Result};

/// One split of a set of images, labelled or not.
pub trait Dataset: Send + Sync {
    /// Number of images.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads an image without decoding it. Errors of this method need not name the sample.
    fn stored(&self, index: usize) -> Result<Stored>;

    /// What a person calls an image: a file's path, or a file and the place in it.
    fn name(&self, index: usize) -> String;

    /// The class of an image: an index into [`Dataset::class_names`].
    fn label(&self, index: usize) -> Option<usize>;

    /// Names of the classes; empty for unlabelled data.
    fn class_names(&self) -> &[String];

    /// Every file that images are read from, whether this split has all of its images or some. A name of an
    /// image begins with the path of its file.
    fn files(&self) -> Vec<PathBuf>;

    /// A short hash of the content: images, their order and labels, and the names of the classes. The same
    /// for the same bytes in another place. All files are read, unless the fingerprinter remembers them.
    fn fingerprint(&self, fingerprinter: &mut Fingerprinter<'_>) -> Result<String> {
        fingerprinter.of(self)
    }

    /// What a user should know about the data, such as listed images that are not there.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// Reads and decodes an image; the error names it.
    fn image(&self, index: usize) -> Result<Image> {
        self.stored(index).and_then(Stored::decode).map_err(|error| Error::sample(self.name(index), error))
    }
}
