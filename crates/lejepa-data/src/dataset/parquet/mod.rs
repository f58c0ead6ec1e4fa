//! Parquet files as the Hugging Face hub keeps images: encoded files in `image.bytes`, classes in `label`.
//!
//! Files are mapped. Opening reads the footers and the labels. pyarrow writes a thousand images or more into
//! one page, so the first image of a page has its places found, and every image is unpacked from there alone.

mod column;
mod content;
mod page;
mod page_cache;
mod page_header;
mod shard;
mod snappy;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use column::Chunk;
use page_cache::PageCache;
use shard::{ColumnNames, Shard};

use super::labels::Labels;
use super::{Dataset, ReadOptions, Split, shards};
use crate::{Error, Result, Stored, encoded_file};

/// Encoded images in the pages of Parquet files.
#[derive(Debug)]
pub(super) struct Parquet {
    files: Vec<PathBuf>,
    row_groups: Vec<RowGroup>,
    /// Name of the images' column.
    column: String,
    labels: Labels,
    notes: Vec<String>,
}

/// The images of one row group.
#[derive(Debug)]
struct RowGroup {
    /// Index of its first image in the dataset.
    first: usize,
    /// Index of its first image in the file.
    first_in_file: usize,
    /// Which of the files.
    file: usize,
    images: Chunk,
}

const ENDING: &str = ".parquet";
/// A folder with more of them holds classes, which are not searched.
const MOST_FOLDERS: usize = 8;

impl Parquet {
    /// Whether a path is a Parquet file, or a folder that holds some, be it in `data/` or in its only
    /// folder of them.
    pub(super) fn is_at(path: &Path) -> bool {
        shards::are_at(&resolve(path), ENDING)
    }

    /// Reads the footers and labels of a split's files.
    pub(super) fn open(path: &Path, split: Split, options: &ReadOptions) -> Result<Self> {
        let files = shards::of_split(&resolve(path), ENDING, split)?;
        let missing = shards::missing(&resolve(path), &files);
        let names = ColumnNames { images: options.images.as_deref(), labels: options.labels.as_deref() };
        let cache = Arc::new(PageCache::default());
        let (mut row_groups, mut values) = (Vec::new(), Vec::new());
        let mut first_shard: Option<Shard> = None;
        for (number, file) in files.iter().enumerate() {
            let shard = Shard::open(file, &names, cache.clone(), options.unpack_limit())?;
            let first_in_set = values.len();
            for index in 0..shard.row_groups() {
                let first = values.len();
                let (images, labels) = shard.row_group(index, first - first_in_set)?;
                values.extend(labels);
                row_groups.push(RowGroup {
                    first,
                    first_in_file: first - first_in_set,
                    file: number,
                    images,
                });
            }
            match &first_shard {
                Some(first) => shard.check_schema(first)?,
                None => first_shard = Some(shard),
            }
        }
        if values.is_empty() {
            return Err(Error::NoImages { path: path.into() });
        }
        let column = first_shard.as_ref().map(Shard::image_column).unwrap_or_default();
        let class_names = first_shard.map(|shard| shard.class_names()).unwrap_or_default();
        let labels = Labels::new(values, class_names, |index| name(&files, &row_groups, &column, index))?;
        let notes = labels.note().into_iter().chain(missing).collect();
        Ok(Self { files, row_groups, column, labels, notes })
    }
}

impl Dataset for Parquet {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let RowGroup { first, file, images, .. } = &self.row_groups[row_group_of(&self.row_groups, index)];
        match images.value(index - first) {
            Ok(Some(image)) => encoded_file::copied(&image).map(Stored::File),
            Ok(None) => Err(invalid(&self.files[*file], "the image is null")),
            Err(problem) => Err(invalid(&self.files[*file], problem)),
        }
    }

    fn name(&self, index: usize) -> String {
        name(&self.files, &self.row_groups, &self.column, index)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.labels.get(index)
    }

    fn class_names(&self) -> &[String] {
        self.labels.class_names()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Repositories of the hub keep their files in `data/` or in a folder named after the set.
fn resolve(path: &Path) -> PathBuf {
    if shards::are_at(path, ENDING) {
        return path.into();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders: Vec<PathBuf> = entries.filter(|entry| entry.is_dir()).take(MOST_FOLDERS + 1).collect();
    if folders.len() > MOST_FOLDERS {
        return path.into();
    }
    let with_files: Vec<PathBuf> =
        folders.into_iter().filter(|folder| shards::are_at(folder, ENDING)).collect();
    let data = path.join("data");
    match &with_files[..] {
        [only] => only.clone(),
        several if several.contains(&data) => data,
        _ => path.into(),
    }
}

fn row_group_of(row_groups: &[RowGroup], index: usize) -> usize {
    row_groups.partition_point(|group| group.first <= index) - 1
}

fn name(files: &[PathBuf], row_groups: &[RowGroup], column: &str, index: usize) -> String {
    let group = &row_groups[row_group_of(row_groups, index)];
    let row = group.first_in_file + index - group.first;
    format!("{} {column} row {row}", files[group.file].display())
}

fn invalid(path: &Path, problem: impl Into<String>) -> Error {
    Error::Invalid { format: "Parquet", path: path.into(), problem: problem.into() }
}

#[cfg(test)]
mod tests;
