//! Labelled sets: images with their classes, and which of them a probe learns from.

mod draw;
mod image_list;
mod known_dataset;
pub(crate) mod labelled_set;
pub(crate) mod overlap;
mod shots;

pub(crate) use draw::{Draw, Drawing};
pub use image_list::{ImageInfo, ImageList};
pub use known_dataset::KnownDataset;
pub use labelled_set::LabelledSet;
pub use shots::Shots;
