//! Features of images: extracted part by part, kept in a cache, written as files.

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
