//! Parquet: a row per image, the embedding as a list of fixed size, which readers of Arrow see as such.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float16Array, Float32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use lejepa_data::regular_file;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{FeaturePrecision, precision};
use crate::features::Extracted;
use crate::sets::{ImageInfo, ImageList};
use crate::{Error, Result};

/// Values of a row group: 128 MB of f32, which readers take at once.
const GROUP_VALUES: usize = 1 << 25;
/// Of names in the metadata.
const PREFIX: &str = "lejepa.";
/// Rows between two looks at the memory.
const BATCH_ROWS: usize = 1024;

/// What a file says of itself, as JSON.
pub(super) fn description(path: &Path) -> Option<Vec<u8>> {
    let reader = SerializedFileReader::new(regular_file::open(path).ok()?).ok()?;
    let entries = reader.metadata().file_metadata().key_value_metadata()?;
    let own = |entry: &KeyValue| Some((entry.key.strip_prefix(PREFIX)?.to_string(), entry.value.clone()));
    serde_json::to_vec(&entries.iter().filter_map(own).collect::<HashMap<_, _>>()).ok()
}

pub(super) fn write(
    file: &mut (dyn Write + Send),
    features: &Extracted,
    images: &ImageList,
    precision: FeaturePrecision,
    about: &[(&str, String)],
) -> Result<()> {
    let dim = features.dim;
    let element = match precision {
        FeaturePrecision::F32 => DataType::Float32,
        FeaturePrecision::F16 => DataType::Float16,
    };
    let size = i32::try_from(dim).map_err(|_| general("too many dimensions"))?;
    let element = Arc::new(Field::new("element", element, false));
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("split", DataType::Utf8, true),
        Field::new("label", DataType::Int64, true),
        Field::new("class", DataType::Utf8, true),
        Field::new("embedding", DataType::FixedSizeList(element.clone(), size), false),
    ]));
    let about = about.iter().map(|(name, value)| KeyValue::new(format!("{PREFIX}{name}"), value.clone()));
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some((GROUP_VALUES / dim.max(1)).max(1)))
        // Random digits: a dictionary of them would be larger than they are.
        .set_column_dictionary_enabled("embedding.list.element".into(), false)
        .set_key_value_metadata(Some(about.collect()))
        .build();
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(Error::Parquet)?;
    features.for_each_part(|indices, rows| {
        for (indices, rows) in indices.chunks(BATCH_ROWS).zip(rows.chunks(BATCH_ROWS * dim.max(1))) {
            let infos: Vec<ImageInfo<'_>> = indices.iter().map(|&index| images.info(index)).collect();
            let values: ArrayRef = match precision {
                FeaturePrecision::F32 => Arc::new(Float32Array::from(rows.to_vec())),
                FeaturePrecision::F16 => Arc::new(Float16Array::from(precision::halved(rows)?)),
            };
            let embedding = FixedSizeListArray::try_new(element.clone(), size, values, None);
            let columns: Vec<ArrayRef> = vec![
                Arc::new(infos.iter().map(|info| Some(info.id.as_str())).collect::<StringArray>()),
                Arc::new(infos.iter().map(|info| info.split).collect::<StringArray>()),
                Arc::new(
                    infos.iter().map(|info| info.label.map(|label| label as i64)).collect::<Int64Array>(),
                ),
                Arc::new(infos.iter().map(|info| info.class).collect::<StringArray>()),
                Arc::new(embedding.map_err(arrow)?),
            ];
            let batch = RecordBatch::try_new(schema.clone(), columns).map_err(arrow)?;
            writer.write(&batch).map_err(Error::Parquet)?;
        }
        Ok(())
    })?;
    writer.close().map_err(Error::Parquet)?;
    Ok(())
}

fn arrow(error: arrow_schema::ArrowError) -> Error {
    Error::Parquet(error.into())
}

fn general(problem: &str) -> Error {
    Error::Parquet(ParquetError::General(problem.into()))
}
