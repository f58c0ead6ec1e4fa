//! One Parquet file: its columns, row groups and class names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::Type;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use bytes::Bytes;

use super::super::mapped_file::map;
use super::super::unpack_limit::UnpackLimit;
use super::column::Chunk;
use super::invalid;
use super::page_cache::PageCache;
use crate::Result;

/// The columns that a user names.
pub(super) struct ColumnNames<'a> {
    pub(super) images: Option<&'a str>,
    pub(super) labels: Option<&'a str>,
}

/// A mapped file with its footer.
#[derive(Debug)]
pub(super) struct Shard {
    path: PathBuf,
    file: Bytes,
    cache: Arc<PageCache>,
    limit: UnpackLimit,
    metadata: ParquetMetaData,
    images: usize,
    labels: Option<usize>,
}

const IMAGE_COLUMNS: [&str; 2] = ["image", "img"];
const LABEL_COLUMNS: [&str; 3] = ["label", "fine_label", "labels"];
/// Repeated values take next to no place in a file: a file may promise that many rows, or one per 16 bytes.
const BELIEVED_ROWS: usize = 1_000_000;

impl Shard {
    pub(super) fn open(
        path: &Path,
        names: &ColumnNames<'_>,
        cache: Arc<PageCache>,
        limit: UnpackLimit,
    ) -> Result<Self> {
        let file = map(path)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
        let metadata = metadata.map_err(|error| invalid(path, error.to_string()))?;
        let rows = metadata.row_groups().iter().map(rows_of).fold(0, usize::saturating_add);
        if rows > BELIEVED_ROWS.max(file.len() / 16) {
            return Err(invalid(path, format!("it promises {rows} rows in {} bytes", file.len())));
        }
        let mut shard = Self { path: path.into(), file, cache, limit, metadata, images: 0, labels: None };
        let find = |names: &[&str]| names.iter().find_map(|name| shard.column(name));
        let absent = |what: &str, names: &[&str], option: &str| {
            let columns = shard.columns().map(|(path, _)| path).collect::<Vec<_>>().join(", ");
            let names = names.join("` or `");
            invalid(path, format!("no {what} in `{names}`, name another with `{option}`: {columns}"))
        };
        let image_names = names.images.as_ref().map_or(&IMAGE_COLUMNS[..], std::slice::from_ref);
        let images = find(image_names)
            .ok_or_else(|| absent("column of images", image_names, "data.options.images"))?;
        let labels = match names.labels {
            Some(name) => Some(
                find(&[name]).ok_or_else(|| absent("column of labels", &[name], "data.options.labels"))?,
            ),
            None => find(&LABEL_COLUMNS),
        };
        shard.check_column(images, &[Type::BYTE_ARRAY])?;
        if let Some(labels) = labels {
            shard.check_column(labels, &[Type::INT32, Type::INT64])?;
        }
        (shard.images, shard.labels) = (images, labels);
        Ok(shard)
    }

    pub(super) fn row_groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// Where the images of a row group are, and its labels; the first of them is row `first_row` of the file.
    pub(super) fn row_group(&self, index: usize, first_row: usize) -> Result<(Chunk, Vec<Option<u32>>)> {
        let damaged = |problem: String| invalid(&self.path, problem);
        let group = self.metadata.row_group(index);
        let rows = rows_of(group);
        let chunk = |column: usize| {
            let metadata =
                group.columns().get(column).ok_or_else(|| damaged("a column is missing".into()))?;
            Chunk::new(&self.file, metadata, rows, (self.cache.clone(), self.limit)).map_err(damaged)
        };
        let labels = match self.labels {
            Some(column) => chunk(column)?.labels(first_row).map_err(damaged)?,
            None => vec![None; rows],
        };
        Ok((chunk(self.images)?, labels))
    }

    /// Refuses a file whose columns differ from another's.
    pub(super) fn check_schema(&self, other: &Self) -> Result<()> {
        if self.columns().eq(other.columns()) {
            return Ok(());
        }
        Err(invalid(&self.path, format!("its columns differ from those of {}", other.path.display())))
    }

    /// The column that images are read from.
    pub(super) fn image_column(&self) -> String {
        self.metadata.file_metadata().schema_descr().column(self.images).path().string()
    }

    /// The names that the hub's metadata gives the classes of the label column.
    pub(super) fn class_names(&self) -> Vec<String> {
        let Some(labels) = self.labels else { return Vec::new() };
        let metadata = self.metadata.file_metadata();
        let label = metadata.schema_descr().column(labels).path().string();
        let entries = metadata.key_value_metadata().into_iter().flatten();
        let hub = entries.filter(|entry| entry.key == "huggingface").find_map(|entry| entry.value.as_deref());
        let hub: serde_json::Value = hub.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let names = &hub["info"]["features"][label]["names"];
        let names = names.as_array().into_iter().flatten().map(|name| name.as_str().map(String::from));
        names.collect::<Option<_>>().unwrap_or_default()
    }

    /// Path and type of every leaf.
    fn columns(&self) -> impl Iterator<Item = (String, Type)> {
        let columns = self.metadata.file_metadata().schema_descr().columns().iter();
        columns.map(|column| (column.path().string(), column.physical_type()))
    }

    /// A column by its name; of an image, the bytes.
    fn column(&self, name: &str) -> Option<usize> {
        let bytes = format!("{name}.bytes");
        let position = |name: &str| self.columns().position(|(path, _)| path == name);
        position(&bytes).or_else(|| position(name))
    }

    fn check_column(&self, column: usize, types: &[Type]) -> Result<()> {
        let column = self.metadata.file_metadata().schema_descr().column(column);
        let (path, got) = (column.path().string(), column.physical_type());
        if column.max_rep_level() > 0 {
            return Err(invalid(&self.path, format!("column `{path}` holds lists")));
        }
        if !types.contains(&got) {
            return Err(invalid(&self.path, format!("column `{path}` is {got}, expected {types:?}")));
        }
        Ok(())
    }
}

/// A negative number, which no file should have, becomes one that nobody believes.
fn rows_of(group: &RowGroupMetaData) -> usize {
    usize::try_from(group.num_rows()).unwrap_or(usize::MAX)
}
