//! A column within a row group: pages one after another, perhaps after a dictionary.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ::parquet::basic::Compression;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::schema::types::ColumnDescPtr;
use bytes::Bytes;

use super::super::array_labels::believed;
use super::super::checksum;
use super::super::unpack_limit::UnpackLimit;
use super::content::Content;
use super::page::{Place, Problem, find_values, look_up, present_rows};
use super::page_cache::PageCache;
use super::page_header::{Levels, PageHeader, PageKind};

/// A column's part in one row group. What is known about its pages grows as they are asked for.
#[derive(Debug)]
pub(super) struct Chunk {
    bytes: Bytes,
    codec: Compression,
    column: ColumnDescPtr,
    rows: usize,
    cache: Arc<PageCache>,
    limit: UnpackLimit,
    pages: OnceLock<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    dictionary: Option<Page>,
    data: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    header: PageHeader,
    body: Bytes,
    rows: Range<usize>,
    values: OnceLock<Values>,
}

/// Where the value of each row is; none for a null.
#[derive(Debug)]
struct Values {
    content: Arc<Content>,
    places: Vec<Option<Place>>,
}

/// The format's numbers for ways to write values.
const PLAIN: usize = 0;
const PLAIN_DICTIONARY: usize = 2;
const HYBRID: usize = 3;
const DICTIONARY: usize = 8;

impl Chunk {
    pub(super) fn new(
        file: &Bytes,
        metadata: &ColumnChunkMetaData,
        rows: usize,
        (cache, limit): (Arc<PageCache>, UnpackLimit),
    ) -> Result<Self, Problem> {
        let (codec, column) = (metadata.compression(), metadata.column_descr_ptr());
        match codec {
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_) => {}
            _ => return Err(format!("compressed with {codec}, expected SNAPPY, ZSTD or nothing")),
        }
        let start = metadata.dictionary_page_offset().unwrap_or(metadata.data_page_offset());
        let place = usize::try_from(start).ok().and_then(|start| {
            let end = start.checked_add(usize::try_from(metadata.compressed_size()).ok()?)?;
            (end <= file.len()).then_some(start..end)
        });
        let place = place.ok_or_else(|| format!("column {} lies outside the file", column.path()))?;
        Ok(Self { bytes: file.slice(place), codec, column, rows, cache, limit, pages: OnceLock::new() })
    }

    /// The value of a row; none for a null.
    pub(super) fn value(&self, row: usize) -> Result<Option<Bytes>, Problem> {
        let pages = &self.pages()?.data;
        let page = pages.get(pages.partition_point(|page| page.rows.end <= row));
        let page = page.ok_or_else(|| format!("no page has row {row}"))?;
        let values = self.values(page)?;
        match values.places.get(row - page.rows.start) {
            Some(Some(place)) => values.content.read(place.range()).map(Some),
            _ => Ok(None),
        }
    }

    /// All rows as class numbers.
    pub(super) fn labels(&self, first_row: usize) -> Result<Vec<Option<u32>>, Problem> {
        let mut labels = Vec::new();
        for page in &self.pages()?.data {
            let Values { content, places } = self.values(page)?;
            let bytes = content.read(0..content.len())?;
            for place in places {
                let value = place.map(|place| bytes.get(place.range()).ok_or("a page ends too early"));
                let row = first_row + labels.len();
                let label = value.transpose()?.map_or(Ok(None), label);
                labels.push(label.map_err(|problem| format!("row {row}: {problem}"))?);
            }
        }
        Ok(labels)
    }

    fn pages(&self) -> Result<&Pages, Problem> {
        if let Some(pages) = self.pages.get() {
            return Ok(pages);
        }
        let pages = self.find_pages()?;
        Ok(self.pages.get_or_init(|| pages))
    }

    /// Walks the headers of the pages. Some files have an index of them too, but a walk serves all files.
    fn find_pages(&self) -> Result<Pages, Problem> {
        let mut pages = Pages::default();
        let (mut rest, mut rows) = (self.bytes.clone(), 0usize);
        while !rest.is_empty() {
            let header = PageHeader::parse(&rest).ok_or("a page header is damaged")?;
            let _ = rest.split_to(header.length);
            if header.stored > rest.len() {
                return Err("a page is longer than its column".into());
            }
            let body = rest.split_to(header.stored);
            let next = rows.checked_add(header.values).ok_or("too many rows")?;
            let is_dictionary = header.kind == PageKind::Dictionary;
            let page = Page { rows: rows..next, header, body, values: OnceLock::new() };
            if is_dictionary {
                pages.dictionary = Some(page);
            } else {
                pages.data.push(page);
                rows = next;
            }
        }
        if rows != self.rows {
            return Err(format!("{rows} values for {} rows", self.rows));
        }
        Ok(pages)
    }

    fn values<'a>(&self, page: &'a Page) -> Result<&'a Values, Problem> {
        if let Some(values) = page.values.get() {
            return Ok(values);
        }
        let values = self.find_values(page)?;
        Ok(page.values.get_or_init(|| values))
    }

    fn find_values(&self, page: &Page) -> Result<Values, Problem> {
        if let Some(expected) = page.header.checksum {
            checksum::check(&page.body, expected).map_err(|problem| format!("a page: {problem}"))?;
        }
        let kind = self.column.physical_type();
        if page.header.kind == PageKind::Dictionary {
            let content = self.content(page.body.clone(), page.header.unpacked)?;
            let places = find_values(&content, 0, page.header.values, kind)?;
            return Ok(Values { content: Arc::new(content), places: places.into_iter().map(Some).collect() });
        }
        let highest = self.column.max_def_level();
        let (levels, content, first) = self.split_levels(page, highest > 0)?;
        let rows = page.rows.len();
        let present = match levels {
            Some(levels) => present_rows(&levels, highest, rows)?,
            None => vec![true; rows],
        };
        let count = present.iter().filter(|&&is_present| is_present).count();
        let (content, places) = match page.header.encoding {
            PLAIN => {
                let places = find_values(&content, first, count, kind)?;
                (Arc::new(content), places)
            }
            PLAIN_DICTIONARY | DICTIONARY => {
                let dictionary = self.pages()?.dictionary.as_ref().ok_or("a dictionary is not there")?;
                let dictionary = self.values(dictionary)?;
                let references = content.read(first..content.len())?;
                (dictionary.content.clone(), look_up(&references, count, &dictionary.places)?)
            }
            other => return Err(format!("values in encoding {other}, expected plain or dictionary")),
        };
        let mut places = places.into_iter();
        let places = present.into_iter().map(|is_present| is_present.then(|| places.next()).flatten());
        Ok(Values { content, places: places.collect() })
    }

    /// The levels, if the column may have nulls, and where the values are.
    fn split_levels(
        &self,
        page: &Page,
        has_levels: bool,
    ) -> Result<(Option<Bytes>, Content, usize), Problem> {
        let PageHeader { unpacked, levels, .. } = page.header;
        match levels {
            Levels::Within { .. } if !has_levels => Ok((None, self.content(page.body.clone(), unpacked)?, 0)),
            Levels::Within { encoding: HYBRID } => {
                let content = self.content(page.body.clone(), unpacked)?;
                let length =
                    content.read(0..4)?.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
                let first = 4 + length;
                Ok((Some(content.read(4..first)?), content, first))
            }
            Levels::Within { encoding } => Err(format!("levels in encoding {encoding}, expected {HYBRID}")),
            Levels::Before { nesting, nulls, are_values_compressed } => {
                let first =
                    nesting.checked_add(nulls).filter(|&first| first <= page.body.len().min(unpacked));
                let first = first.ok_or("a page ends too early")?;
                let values = page.body.slice(first..);
                let content = match are_values_compressed {
                    true => self.content(values, unpacked - first)?,
                    false => Content::Mapped(values),
                };
                Ok((has_levels.then(|| page.body.slice(nesting..first)), content, 0))
            }
        }
    }

    fn content(&self, packed: Bytes, unpacked: usize) -> Result<Content, Problem> {
        self.limit.check("a page", unpacked as u64)?;
        Content::new(packed, self.codec, unpacked, &self.cache)
    }
}

/// A class number; -1 is the hub's way to say that there is none.
fn label(value: &[u8]) -> Result<Option<u32>, Problem> {
    let label = match (<[u8; 4]>::try_from(value), <[u8; 8]>::try_from(value)) {
        (Ok(bytes), _) => i64::from(i32::from_le_bytes(bytes)),
        (_, Ok(bytes)) => i64::from_le_bytes(bytes),
        _ => return Err(format!("a label of {} bytes", value.len())),
    };
    match label {
        -1 => Ok(None),
        _ => believed(label.into()).map(|label| Some(label as u32)),
    }
}
