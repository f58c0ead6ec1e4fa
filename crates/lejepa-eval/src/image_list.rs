//! Images of one or several datasets, one after the other, with what is known of each.

use std::path::PathBuf;

use lejepa_data::{Dataset, Image, SourceConfig, Split, is_image_file, open_files, open_splits};

use crate::Result;

/// A split of a dataset, or files that were named one by one.
struct Section {
    /// Index of its first image.
    first: usize,
    split: Option<Split>,
    dataset: Box<dyn Dataset>,
}

/// Images with names, and labels where there are some.
#[derive(Default)]
pub struct ImageList {
    sections: Vec<Section>,
    images: usize,
}

/// What is known of an image besides its pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageInfo<'a> {
    /// The file, or file and place in it.
    pub id: String,
    /// The split it belongs to.
    pub split: Option<&'static str>,
    /// Its class as a number.
    pub label: Option<usize>,
    /// The name of its class.
    pub class: Option<&'a str>,
}

impl ImageList {
    /// All splits of all sources. Sources that are image files themselves are taken as such.
    pub fn open(sources: &[SourceConfig]) -> Result<Self> {
        let mut list = Self::default();
        let mut files: Vec<PathBuf> = Vec::new();
        for source in sources {
            if source.format.is_none() && is_image_file(&source.path) {
                files.push(source.path.clone());
                continue;
            }
            list.add_files(&mut files)?;
            for (split, dataset) in open_splits(source, |split, dataset| (split, dataset))? {
                list.add(Some(split), dataset);
            }
        }
        list.add_files(&mut files)?;
        Ok(list)
    }

    fn add_files(&mut self, files: &mut Vec<PathBuf>) -> Result<()> {
        if !files.is_empty() {
            self.add(None, open_files(&std::mem::take(files))?);
        }
        Ok(())
    }

    fn add(&mut self, split: Option<Split>, dataset: Box<dyn Dataset>) {
        let first = self.images;
        self.images += dataset.len();
        self.sections.push(Section { first, split, dataset });
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.images
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.images == 0
    }

    /// What a user should know about the data.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().flat_map(|section| section.dataset.notes()).map(String::as_str)
    }

    /// A short hash that changes when the data does.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for section in &self.sections {
            hasher.update(section.dataset.fingerprint().as_bytes());
        }
        hasher.finalize().to_hex()[..16].to_string()
    }

    /// Reads and decodes an image; the error names it.
    pub fn image(&self, index: usize) -> lejepa_data::Result<Image> {
        let (section, index) = self.find(index);
        section.dataset.image(index)
    }

    /// What is known of an image.
    pub fn info(&self, index: usize) -> ImageInfo<'_> {
        let (section, index) = self.find(index);
        let label = section.dataset.label(index);
        let class = label.and_then(|label| section.dataset.class_names().get(label));
        ImageInfo {
            id: section.dataset.name(index),
            split: section.split.map(Split::name),
            label,
            class: class.map(String::as_str),
        }
    }

    fn find(&self, index: usize) -> (&Section, usize) {
        let section = self.sections.partition_point(|section| section.first <= index).saturating_sub(1);
        let section = &self.sections[section];
        (section, index - section.first)
    }
}
