//! Images behind one interface, recognised from the path or named in a recipe.

mod cifar;
mod folder;
mod format;
mod idx;
mod image_files;
mod labels;
mod mapped_file;
mod parquet;
mod pickle;
mod shards;
mod source;
mod split;
mod webdataset;

pub use cifar::Cifar;
pub use folder::ImageFolder;
pub use format::Format;
pub use idx::Idx;
pub use image_files::{ImageFile, ImageFiles};
pub use parquet::Parquet;
pub use source::{ReadOptions, SourceConfig, open, open_source};
pub use split::Split;
pub use webdataset::WebDataset;

use crate::{Error, Image, Result, Stored};

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

    /// A short hash that changes when the data does. Cheap: large files are represented by their
    /// names and lengths.
    fn fingerprint(&self) -> &str;

    /// What a user should know about the data, such as listed images that are not there.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// Reads and decodes an image; the error names it.
    fn image(&self, index: usize) -> Result<Image> {
        self.stored(index).and_then(Stored::decode).map_err(|error| Error::sample(self.name(index), error))
    }
}
