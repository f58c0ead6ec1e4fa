//! Turns files into pixels, datasets, views and batches.
//!
//! ```text
//! path -> Dataset -> Image -> Views -> Batch        for training
//!                    Image -> Preprocess -> pixels  for everything that reads an exported encoder
//! ```
//!
//! [`open`] recognises what lies at a path. [`BatchSource`] makes training batches as a pure function
//! of seed and step, so that a run can stop and go on at any step. [`Preprocess`] is the one
//! transform of an image at inference; it travels inside the exported encoder ([`EncoderCard`]).
//!
//! ```
//! use lejepa_data::{Image, Preprocess};
//!
//! let image = Image::from_pixels(40, 60, 3, vec![128; 40 * 60 * 3])?;
//! let pixels = Preprocess::new(32, (32, 32), 3).apply(&image)?;
//! assert_eq!(pixels.len(), 3 * 32 * 32);
//! # Ok::<(), lejepa_data::Error>(())
//! ```

mod atomic_file;
#[cfg(feature = "datasets")]
mod batch;
mod claim;
#[cfg(feature = "datasets")]
mod dataset;
mod decode;
mod encoded_file;
mod encoder_card;
mod error;
mod image;
#[cfg(feature = "datasets")]
mod inspection;
mod ledger;
mod lock;
mod memory;
mod own_file;
mod preprocess;
mod preprocessor_config;
mod printable;
mod random;
pub mod regular_file;
mod resize;
mod seen_images;
mod self_test;
#[cfg(feature = "datasets")]
mod views;

pub use atomic_file::{AtomicFile, write_atomically};
#[cfg(feature = "datasets")]
pub use batch::{Batch, BatchConfig, BatchSource, BatchStream, BrokenImage, Part, Sampler, ViewBatch};
pub use claim::{Claim, Job, Overwrite};
#[cfg(feature = "datasets")]
pub use dataset::{
    CachePlace, Cached, DataConfig, Dataset, FileFacts, Fingerprinter, Format, Hashing, Matrix, MatrixValues,
    MixtureConfig, ReadOptions, SourceConfig, Split, Stored, TrainingData, held_out, is_image_file, open,
    open_files, open_source, open_splits, read_matrix,
};
#[cfg(feature = "hdf5")]
pub use dataset::{Hdf5Examiner, examine_hdf5};
pub use decode::{DECODING, DecodeLimits};
pub use encoder_card::{
    CARD_FORMAT, CARD_KEY, CHECKSUM_KEY, EncoderCard, Feature, InputSize, Output, PIXELS_INPUT, Precision,
    SELF_TEST_KEY, WEIGHTS_KEY,
};
pub use error::{Error, Result};
pub use image::{CropBox, Image};
#[cfg(feature = "datasets")]
pub use inspection::{
    ClassCount, ContactSheet, ImageSize, ImageSizes, Inspection, Progress, SheetCell, SheetRow,
    SplitInspection, SplitVerification, Verification,
};
pub use lock::{Hold, Lock};
pub use memory::available_memory;
pub use own_file::open_own_file;
pub use preprocess::{Interpolation, Preprocess, ResizeRule};
pub use printable::{printable, printable_name};
pub use random::{Purpose, generator};
pub use seen_images::{ImageHash, SeenImages, SeenShare};
pub use self_test::SelfTest;
#[cfg(feature = "datasets")]
pub use views::{CropConfig, ViewSize, Views, ViewsConfig, Workbench};

/// The version of the HDF5 library that is linked in, if any.
pub fn hdf5_version() -> Option<String> {
    #[cfg(feature = "hdf5")]
    {
        let (major, minor, release) = hdf5::library_version();
        Some(format!("{major}.{minor}.{release}"))
    }
    #[cfg(not(feature = "hdf5"))]
    None
}
