//! Where data lies and how it is read: what a recipe says about one dataset.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cut_files::CutFiles;
use super::listing::is_image;
use super::unpack_limit::UnpackLimit;
use super::{Format, ImageFile, ImageFiles, Split, numbered};
use crate::{Dataset, Error, Result};

/// One dataset of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceConfig {
    /// A folder or file, seen from the working directory.
    pub path: PathBuf,
    /// How it is stored; recognised from the path if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// What only some formats need.
    #[serde(skip_serializing_if = "ReadOptions::is_empty")]
    pub options: ReadOptions,
}

/// What only some formats need; an option that a format does not know is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadOptions {
    /// Which of DTD's ten official splits, 1 to 10; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<usize>,
    /// Name of the images inside an HDF5, npz or Parquet file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<String>,
    /// Name of the labels inside an HDF5, npz or Parquet file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// Whether JPEG files that are cut off or damaged are taken, with grey for what is missing; for every format.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub accept_truncated: bool,
    /// Megabytes that packed data may ask for: an array of npz, an IDX file, a page of Parquet, a chunk of HDF5;
    /// 8192 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpack_limit: Option<u64>,
}

impl SourceConfig {
    /// How the data is stored: as the recipe says, or as recognised from the path.
    pub fn recognise(&self) -> Result<Format> {
        let path = &self.path;
        if !path.exists() {
            return Err(Error::NotFound { path: path.into() });
        }
        let recognised = || Format::recognise_with(path, &self.options);
        self.format.or_else(recognised).ok_or_else(|| Error::UnknownFormat { path: path.into() })
    }
}

impl ReadOptions {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn unpack_limit(&self) -> UnpackLimit {
        UnpackLimit::new(self.unpack_limit)
    }

    /// What holds for every format.
    fn applied(&self, dataset: Box<dyn Dataset>) -> Box<dyn Dataset> {
        if self.accept_truncated { Box::new(CutFiles::accepted(dataset)) } else { dataset }
    }

    /// Refuses what a format does not know.
    pub(super) fn refuse_unknown(&self, known: &[&str], format: &str) -> Result<()> {
        let given = [
            ("data.options.fold", self.fold.map(|fold| fold.to_string())),
            ("data.options.images", self.images.clone()),
            ("data.options.labels", self.labels.clone()),
        ];
        for (field, value) in given {
            if let Some(got) = value.filter(|_| !known.contains(&field)) {
                return Err(Error::Setting {
                    field,
                    expected: format!("absent for the format {format}"),
                    got,
                });
            }
        }
        Ok(())
    }
}

/// Opens a split of whatever lies at a path.
pub fn open(path: &Path, split: Split) -> Result<Box<dyn Dataset>> {
    open_source(&SourceConfig { path: path.into(), ..Default::default() }, split)
}

/// Opens a split of a dataset as a recipe describes it.
pub fn open_source(source: &SourceConfig, split: Split) -> Result<Box<dyn Dataset>> {
    let format = source.recognise()?;
    let open = |split| format.open(&source.path, split, &source.options);
    let dataset = open(split)?;
    let dataset =
        if format.numbers_classes() { numbered::without_gaps(dataset, split, open) } else { dataset };
    Ok(source.options.applied(dataset))
}

/// What a function makes of every split that is there, one after the other.
pub fn open_splits<T>(
    source: &SourceConfig,
    mut look: impl FnMut(Split, Box<dyn Dataset>) -> T,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    let mut absent = None;
    for split in Split::ALL {
        match open_source(source, split) {
            Ok(dataset) => found.push(look(split, dataset)),
            Err(error @ (Error::NoSplit { .. } | Error::NoSplitFile { .. })) => {
                absent = absent.or(Some(error))
            }
            Err(error) => return Err(error),
        }
    }
    match absent {
        Some(absent) if found.is_empty() => Err(absent),
        _ => Ok(found),
    }
}

/// Image files that are named one by one, without labels.
pub fn open_files(paths: &[PathBuf], options: &ReadOptions) -> Result<Box<dyn Dataset>> {
    if let Some(absent) = paths.iter().find(|path| !path.is_file()) {
        return Err(Error::NotFound { path: absent.clone() });
    }
    let files = paths.iter().map(|path| ImageFile { path: path.clone(), label: None }).collect();
    let files = ImageFiles::new(Path::new(""), Split::Unlabelled, files, Vec::new())?;
    Ok(options.applied(Box::new(files)))
}

/// Whether a file's name says that it is an image.
pub fn is_image_file(path: &Path) -> bool {
    path.is_file() && is_image(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::fixture;

    #[test]
    fn an_option_that_a_format_does_not_know_is_refused() {
        let fold = ReadOptions { fold: Some(1), ..Default::default() };
        let images = ReadOptions { images: Some("x".into()), ..Default::default() };
        let labels = ReadOptions { labels: Some("y".into()), ..Default::default() };
        for (format, options, field) in [
            ("pets", &fold, "data.options.fold"),
            ("dtd", &images, "data.options.images"),
            ("cars", &labels, "data.options.labels"),
        ] {
            let path = fixture::path(format);
            let source = SourceConfig { path, options: options.clone(), ..Default::default() };
            let message = open_source(&source, Split::Train).err().unwrap().to_string();
            assert!(
                message.starts_with(&format!("`{field}` must be absent for the format {format}")),
                "{message}"
            );
        }
        let dtd = SourceConfig { path: fixture::path("dtd"), options: fold, ..Default::default() };
        assert!(open_source(&dtd, Split::Train).is_ok());
    }
}
