//! Images of one or several datasets, one after the other, with what is known of each.

use std::path::PathBuf;
use std::sync::OnceLock;

use lejepa_data::{
    Dataset, FileFacts, Fingerprinter, Image, ImageHash, SourceConfig, Split, is_image_file, open_files,
    open_splits,
};

use crate::Result;

/// A split of a dataset, or files that were named one by one.
struct Section {
    /// Index of its first image.
    first: usize,
    split: Option<Split>,
    dataset: Box<dyn Dataset>,
    /// Of the dataset's content, once somebody has asked.
    fingerprint: OnceLock<String>,
    /// Of its files, from before that.
    facts: OnceLock<FileFacts>,
}

/// Images with names, and labels where there are some.
#[derive(Default)]
pub struct ImageList {
    sections: Vec<Section>,
    images: usize,
    /// Numbers in the sections of those images that are meant, if not all are.
    selected: Option<Vec<usize>>,
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
        let mut files: Vec<&SourceConfig> = Vec::new();
        for source in sources {
            if source.format.is_none() && is_image_file(&source.path) {
                files.push(source);
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

    /// A split of a dataset.
    pub fn of(split: Split, dataset: Box<dyn Dataset>) -> Self {
        let mut list = Self::default();
        list.add(Some(split), dataset);
        list
    }

    /// Splits of a dataset, one after the other.
    pub(crate) fn of_all(splits: Vec<(Split, Box<dyn Dataset>)>) -> Self {
        let mut list = Self::default();
        splits.into_iter().for_each(|(split, dataset)| list.add(Some(split), dataset));
        list
    }

    /// Some of the images, in the order given. Numbers that no image has are left out.
    pub fn select(mut self, images: &[usize]) -> Self {
        let known = images.iter().filter(|&&image| image < self.len());
        self.selected = Some(known.map(|&image| self.place(image)).collect());
        self
    }

    fn add_files(&mut self, files: &mut Vec<&SourceConfig>) -> Result<()> {
        // Neighbours with the same options belong together.
        for files in std::mem::take(files).chunk_by(|one, other| one.options == other.options) {
            let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
            self.add(None, open_files(&paths, &files[0].options)?);
        }
        Ok(())
    }

    fn add(&mut self, split: Option<Split>, dataset: Box<dyn Dataset>) {
        let first = self.images;
        self.images += dataset.len();
        let (fingerprint, facts) = (OnceLock::new(), OnceLock::new());
        self.sections.push(Section { first, split, dataset, fingerprint, facts });
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.selected.as_ref().map_or(self.images, Vec::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a user should know about the data.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().flat_map(|section| section.dataset.notes()).map(String::as_str)
    }

    /// Reads what the images are read from, as far as the fingerprinter does not remember it. Whoever asks
    /// for the fingerprint of a list that was not identified waits for that without hearing of it.
    pub fn identify(&self, fingerprinter: &mut Fingerprinter<'_>) -> Result<()> {
        for Section { dataset, fingerprint, facts, .. } in &self.sections {
            if fingerprint.get().is_none() {
                facts.get_or_init(|| FileFacts::of(&dataset.files()));
                let found = dataset.fingerprint(fingerprinter)?;
                fingerprint.get_or_init(|| found);
            }
        }
        Ok(())
    }

    /// An error if a file was touched since it was identified: then what is read is not what was hashed.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let is_same = |section: &Section| {
            section.facts.get().is_none_or(|facts| *facts == FileFacts::of(&section.dataset.files()))
        };
        if self.sections.iter().all(is_same) { Ok(()) } else { Err(lejepa_data::Error::Changed.into()) }
    }

    /// A short hash of the content: of all images, their order, labels and classes, and of which are meant.
    pub fn fingerprint(&self) -> Result<String> {
        self.identify(&mut Fingerprinter::default())?;
        let sections = self.sections.iter().filter_map(|section| section.fingerprint.get());
        let selected: Vec<u8> =
            self.selected.iter().flatten().flat_map(|image| (*image as u64).to_le_bytes()).collect();
        let parts = sections.map(|section| section.as_bytes()).chain([&selected[..]]);
        Ok(Fingerprinter::combined(parts))
    }

    /// The fingerprint of the only dataset, whichever of its images are meant; of several, theirs combined.
    pub(crate) fn data_fingerprint(&self) -> Result<String> {
        self.identify(&mut Fingerprinter::default())?;
        let sections: Vec<&String> =
            self.sections.iter().filter_map(|section| section.fingerprint.get()).collect();
        match sections[..] {
            [only] => Ok(only.clone()),
            _ => Ok(Fingerprinter::combined(sections)),
        }
    }

    /// Reads and decodes an image; the error names it.
    pub fn image(&self, index: usize) -> lejepa_data::Result<Image> {
        let (section, index) = self.find(index);
        section.dataset.image(index)
    }

    /// Tells an image from others, wherever it is stored; nothing if it cannot be read.
    pub fn hash(&self, index: usize) -> Option<ImageHash> {
        let (section, index) = self.find(index);
        section.dataset.stored(index).ok().map(|stored| stored.hash())
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

    /// An image's number in the sections.
    fn place(&self, index: usize) -> usize {
        self.selected.as_ref().map_or(index, |selected| selected[index])
    }

    fn find(&self, index: usize) -> (&Section, usize) {
        let index = self.place(index);
        let section = self.sections.partition_point(|section| section.first <= index).saturating_sub(1);
        let section = &self.sections[section];
        (section, index - section.first)
    }
}
