//! Features of images: extracted part by part, kept in a cache, written as files.
//!
//! ```text
//! extraction/      images -> rows in a folder, part by part: stopped at any moment, shared by processes
//! cache            the folder in which evaluations keep extractions
//! file/            what `lejepa embed` writes: .npy, .safetensors, .parquet, and the .csv with a line per row
//! source, pixels   where the features of a candidate come from: an encoder, or what it would see
//! ```

mod cache;
pub(crate) mod extraction;
mod file;
mod pixels;
pub(crate) mod source;

pub use cache::{CacheEntry, FeatureCache};
pub use extraction::{Extracted, Extraction, Key, Shard, Share, Workplace};
pub use file::{FeatureFile, FeatureFormat, FeaturePrecision};
pub use pixels::pixels_title;
pub use source::FeatureSource;
