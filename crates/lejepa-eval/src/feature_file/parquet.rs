//! Parquet: a row group per part, a row per image, the embedding as a list.

use std::io::Write;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::{Error, Extracted, ImageInfo, ImageList, Result};

const SCHEMA: &str = "message features {
    required binary id (UTF8);
    optional binary split (UTF8);
    optional int64 label;
    optional binary class (UTF8);
    required group embedding (LIST) { repeated group list { required float element; } }
}";

pub(super) fn write(file: &mut (dyn Write + Send), features: &Extracted, images: &ImageList) -> Result<()> {
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(Error::Parquet)?);
    let properties = Arc::new(WriterProperties::default());
    let mut writer = SerializedFileWriter::new(file, schema, properties).map_err(Error::Parquet)?;
    features.for_each_part(|indices, rows| {
        let infos: Vec<ImageInfo<'_>> = indices.iter().map(|&index| images.info(index)).collect();
        let mut group = writer.next_row_group().map_err(Error::Parquet)?;
        write_group(&mut group, &infos, rows, features.dim).map_err(Error::Parquet)?;
        group.close().map_err(Error::Parquet)?;
        Ok(())
    })?;
    writer.close().map_err(Error::Parquet)?;
    Ok(())
}

/// The columns in the order of the schema.
fn write_group<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    infos: &[ImageInfo<'_>],
    rows: &[f32],
    dim: usize,
) -> std::result::Result<(), ParquetError> {
    let ids: Vec<ByteArray> = infos.iter().map(|info| info.id.as_str().into()).collect();
    write_column::<_, ByteArrayType>(group, &ids, None, None)?;
    let splits = infos.iter().map(|info| info.split.map(Into::into)).collect();
    write_optional::<_, ByteArrayType>(group, splits)?;
    let labels = infos.iter().map(|info| info.label.map(|label| label as i64)).collect();
    write_optional::<_, Int64Type>(group, labels)?;
    let classes = infos.iter().map(|info| info.class.map(Into::into)).collect();
    write_optional::<_, ByteArrayType>(group, classes)?;
    // A list of at least one element is defined everywhere; its first element starts a row.
    let repetition: Vec<i16> = (0..rows.len()).map(|value| i16::from(value % dim.max(1) != 0)).collect();
    write_column::<_, FloatType>(group, rows, Some(&vec![1; rows.len()]), Some(&repetition))
}

fn write_optional<W: Write + Send, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<Option<T::T>>,
) -> std::result::Result<(), ParquetError> {
    let defined: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<T::T> = values.into_iter().flatten().collect();
    write_column::<_, T>(group, &present, Some(&defined), None)
}

fn write_column<W: Write + Send, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    definition: Option<&[i16]>,
    repetition: Option<&[i16]>,
) -> std::result::Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has no more columns".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, definition, repetition)?;
    column.close()
}
