//! A column within a row group: pages one after another, perhaps after a dictionary.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ::parquet::basic::Compression;
use ::parquet::column::page::{Page, PageReader};
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::page_index::offset_index::PageLocation;
use ::parquet::file::reader::SerializedPageReader;
use bytes::Bytes;

use super::page::{Problem, Values, decode, decode_dictionary, is_dictionary_encoded};
use super::page_header::{PageHeader, PageKind};

/// A column's part in one row group.
#[derive(Debug)]
pub(super) struct Chunk {
    file: Arc<Bytes>,
    metadata: ColumnChunkMetaData,
    place: Range<usize>,
    rows: usize,
    /// Found when the first of them is asked for.
    pages: OnceLock<Pages>,
}

/// Where the pages of a chunk are.
#[derive(Debug, Default)]
struct Pages {
    dictionary: Option<Range<usize>>,
    data: Vec<DataPage>,
}

#[derive(Debug)]
struct DataPage {
    place: Range<usize>,
    rows: Range<usize>,
}

impl Chunk {
    pub(super) fn new(file: Arc<Bytes>, metadata: ColumnChunkMetaData, rows: usize) -> Result<Self, Problem> {
        match metadata.compression() {
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_) => {}
            codec => return Err(format!("compressed with {codec}, expected SNAPPY, ZSTD or nothing")),
        }
        let start = metadata.dictionary_page_offset().unwrap_or(metadata.data_page_offset());
        let place = usize::try_from(start).ok().and_then(|start| {
            let end = start.checked_add(usize::try_from(metadata.compressed_size()).ok()?)?;
            (end <= file.len()).then_some(start..end)
        });
        let place =
            place.ok_or_else(|| format!("column {} lies outside the file", metadata.column_path()))?;
        Ok(Self { file, metadata, place, rows, pages: OnceLock::new() })
    }

    /// The number of the page that holds a row, and the row's place there.
    pub(super) fn page_of(&self, row: usize) -> Result<(usize, usize), Problem> {
        let pages = &self.pages()?.data;
        let page = pages.partition_point(|page| page.rows.end <= row);
        let first = pages.get(page).ok_or_else(|| format!("no page for row {row}"))?.rows.start;
        Ok((page, row - first))
    }

    /// The rows of a page, and the memory that they take.
    pub(super) fn read(&self, page: usize) -> Result<(Values, usize), Problem> {
        let pages = self.pages()?;
        let DataPage { place, rows } = pages.data.get(page).ok_or("no such page")?;
        let data = self.load(place)?;
        let mut unpacked = data.buffer().len();
        let mut dictionary = Vec::new();
        if is_dictionary_encoded(&data) {
            let place = pages.dictionary.as_ref().ok_or("a page needs a dictionary that is not there")?;
            let page = self.load(place)?;
            unpacked += page.buffer().len();
            dictionary = decode_dictionary(&page, self.metadata.column_type())?;
        }
        let values = decode(&data, rows.len(), self.metadata.column_descr(), &dictionary)?;
        let is_mapped = self.metadata.compression() == Compression::UNCOMPRESSED;
        let bytes = size_of_val(&values[..]) + if is_mapped { 0 } else { unpacked };
        Ok((values, bytes))
    }

    /// All rows as class numbers.
    pub(super) fn read_labels(&self) -> Result<Vec<Option<u32>>, Problem> {
        let mut labels = Vec::new();
        for page in 0..self.pages()?.data.len() {
            for value in self.read(page)?.0 {
                labels.push(value.map_or(Ok(None), |value| label(&value))?);
            }
        }
        Ok(labels)
    }

    /// Reads and decompresses one page.
    fn load(&self, place: &Range<usize>) -> Result<Page, Problem> {
        let too_large = |_| "a page is too large";
        let location = PageLocation {
            offset: i64::try_from(place.start).map_err(too_large)?,
            compressed_page_size: i32::try_from(place.len()).map_err(too_large)?,
            first_row_index: 0,
        };
        let mut reader =
            SerializedPageReader::new(self.file.clone(), &self.metadata, self.rows, Some(vec![location]))
                .map_err(|error| error.to_string())?;
        // Whatever lies before the page is taken for a dictionary.
        if place.start != self.place.start {
            reader.skip_next_page().map_err(|error| error.to_string())?;
        }
        reader.get_next_page().map_err(|error| error.to_string())?.ok_or("a page is not there".into())
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
        let (mut at, mut rows) = (self.place.start, 0usize);
        while at < self.place.end {
            let header =
                PageHeader::parse(&self.file[at..self.place.end]).ok_or("a page header is damaged")?;
            let end = at + header.length;
            let end = end.checked_add(header.stored).filter(|&end| end <= self.place.end);
            let place = at..end.ok_or("a page is longer than its column")?;
            // The decompressor fills what the header promises; Snappy packs at most 64 bytes into 3.
            if self.metadata.compression() == Compression::SNAPPY && header.unpacked / 24 > place.len() {
                return Err(format!("a page of {} bytes promises {}", place.len(), header.unpacked));
            }
            at = place.end;
            match header.kind {
                PageKind::Dictionary => pages.dictionary = Some(place),
                PageKind::Data => {
                    let next = rows.checked_add(header.values).ok_or("too many rows")?;
                    pages.data.push(DataPage { place, rows: rows..next });
                    rows = next;
                }
                PageKind::Index => {}
            }
        }
        if rows != self.rows {
            return Err(format!("{rows} values for {} rows", self.rows));
        }
        Ok(pages)
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
        _ => u32::try_from(label).map(Some).map_err(|_| format!("label {label}")),
    }
}
