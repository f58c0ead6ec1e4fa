//! The arrays of a MATLAB file: numbers, text, cells and structs.

use super::Parsed;
use super::element::{ByteOrder, Element, Elements, MATRIX, UINT8, UINT16, UTF8, UTF16};

/// Cells may hold cells without end; label files have structs of texts and no more.
const DEPTH_LIMIT: usize = 8;

/// Most bytes of all field names of a struct; each becomes a string of its own.
const FIELD_NAME_LIMIT: usize = 1 << 16;

const COMPLEX: u64 = 0x0800;
const CELL: u64 = 1;
const STRUCT: u64 = 2;
const CHAR: u64 = 4;
const DOUBLE: u64 = 6;
const UINT64: u64 = 15;
/// Objects of newer versions; their header is another one.
const OPAQUE: u64 = 17;

/// An array of any shape, its values in the order of the file (the first axis runs fastest).
#[derive(Debug, Clone, PartialEq)]
pub(in crate::dataset) enum Array {
    /// Numbers of any class.
    Numbers(Vec<f64>),
    /// One row of characters.
    Text(String),
    /// Arrays of any kind.
    Cells(Vec<Array>),
    /// The values of each struct, one after the other.
    Structs { fields: Vec<String>, values: Vec<Array> },
}

impl Array {
    /// Numbers, or cells with one number each, which must be whole and not negative.
    pub(in crate::dataset) fn whole_numbers(self) -> Parsed<Vec<usize>> {
        match self {
            Self::Numbers(numbers) => numbers.into_iter().map(whole).collect(),
            Self::Cells(cells) => cells
                .into_iter()
                .map(|cell| match cell {
                    Self::Numbers(numbers) if numbers.len() == 1 => whole(numbers[0]),
                    _ => Err("expected one number in each cell".into()),
                })
                .collect(),
            Self::Text(_) | Self::Structs { .. } => Err("expected numbers".into()),
        }
    }

    /// The texts of cells.
    pub(in crate::dataset) fn texts(self) -> Parsed<Vec<String>> {
        let problem = || "expected cells of text".to_string();
        let Self::Cells(cells) = self else { return Err(problem()) };
        let text = |cell| if let Self::Text(text) = cell { Ok(text) } else { Err(problem()) };
        cells.into_iter().map(text).collect()
    }

    /// One field of all structs, as cells.
    pub(in crate::dataset) fn field(&self, name: &str) -> Parsed<Self> {
        let Self::Structs { fields, values } = self else { return Err("expected structs".into()) };
        let position = fields.iter().position(|field| field == name);
        let position = position.ok_or_else(|| format!("no field `{name}`"))?;
        Ok(Self::Cells(values.iter().skip(position).step_by(fields.len()).cloned().collect()))
    }
}

fn whole(number: f64) -> Parsed<usize> {
    // Above this, a double no longer holds every whole number.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && (0.0..=LARGEST).contains(&number) {
        Ok(number as usize)
    } else {
        Err(format!("expected whole numbers, got {number}"))
    }
}

/// What stands before the content of an array.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub(super) name: &'a [u8],
    flags: u64,
    rows: usize,
    /// Number of values, whatever the shape.
    count: usize,
    content: Elements<'a>,
}

impl<'a> Header<'a> {
    /// None for kinds of variables that have no such header.
    pub(super) fn parse(data: &'a [u8], order: ByteOrder) -> Parsed<Option<Self>> {
        let mut content = Elements::new(data, order);
        let flags = content.required()?.data;
        let flags = order.bits(flags.get(..4).ok_or("array flags are too short")?);
        if flags & 0xff == OPAQUE {
            return Ok(None);
        }
        let shape = Array::Numbers(content.required()?.numbers(order)?).whole_numbers()?;
        let rows = shape.first().copied().ok_or("an array without axes")?;
        let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let count = count.ok_or("the sizes of an array overflow")?;
        let name = content.required()?.data;
        Ok(Some(Self { name, flags, rows, count, content }))
    }

    /// Reads the content.
    pub(super) fn array(self) -> Parsed<Array> {
        self.array_at(0)
    }

    fn array_at(mut self, depth: usize) -> Parsed<Array> {
        if self.flags & COMPLEX != 0 {
            return Err("complex numbers are not read".into());
        }
        match self.flags & 0xff {
            CELL => Ok(Array::Cells(self.arrays(self.count, depth)?)),
            STRUCT => self.structs(depth),
            CHAR => self.text(),
            DOUBLE..=UINT64 => {
                let numbers = self.content.required()?.numbers(self.content.order())?;
                if numbers.len() != self.count {
                    return Err(format!("expected {} numbers, got {}", self.count, numbers.len()));
                }
                Ok(Array::Numbers(numbers))
            }
            other => Err(format!("arrays of class {other} are not read")),
        }
    }

    /// The arrays in cells or structs; memory grows with those that are there.
    fn arrays(&mut self, count: usize, depth: usize) -> Parsed<Vec<Array>> {
        if depth == DEPTH_LIMIT {
            return Err(format!("cells nest more than {DEPTH_LIMIT} deep"));
        }
        let mut arrays = Vec::new();
        while arrays.len() < count {
            let Element { kind, data } = self.content.required()?;
            arrays.push(match kind {
                MATRIX if data.is_empty() => Array::Numbers(Vec::new()),
                MATRIX => Self::parse(data, self.content.order())?
                    .ok_or("objects are not read")?
                    .array_at(depth + 1)?,
                other => return Err(format!("expected an array, got data of kind {other}")),
            });
        }
        Ok(arrays)
    }

    fn structs(mut self, depth: usize) -> Parsed<Array> {
        let order = self.content.order();
        let length = self.content.required()?.numbers(order)?;
        let length = length.first().map_or(Ok(0), |&length| whole(length))?;
        let names = self.content.required()?.data;
        if length == 0 || !names.len().is_multiple_of(length) || names.len() > FIELD_NAME_LIMIT {
            return Err(format!("{} bytes are not field names of {length} bytes", names.len()));
        }
        let fields: Vec<String> = names
            .chunks_exact(length)
            .map(|name| name.split(|&byte| byte == 0).next().unwrap_or_default())
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        let count = self.count.checked_mul(fields.len()).ok_or("too many structs")?;
        let values = self.arrays(count, depth)?;
        Ok(Array::Structs { fields, values })
    }

    fn text(mut self) -> Parsed<Array> {
        let Element { kind, data } = self.content.required()?;
        let order = self.content.order();
        if self.count > 0 && self.rows != 1 {
            return Err(format!("text of {} rows", self.rows));
        }
        let text = match kind {
            UTF8 => String::from_utf8(data.to_vec()).map_err(|_| "text is not UTF-8")?,
            UINT8 => data.iter().map(|&byte| char::from(byte)).collect(),
            UINT16 | UTF16 => {
                let units: Vec<u16> = data.chunks_exact(2).map(|unit| order.bits(unit) as u16).collect();
                String::from_utf16(&units).map_err(|_| "text is not UTF-16")?
            }
            other => return Err(format!("expected text, got data of kind {other}")),
        };
        Ok(Array::Text(text))
    }
}
