//! Matrices as views of memory: values of a row side by side, rows `stride` apart.

/// A matrix that is read.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    pub(super) values: &'a [f32],
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// A matrix that is written.
#[derive(Debug)]
pub struct MatrixMut<'a> {
    pub(super) values: &'a mut [f32],
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// Values from the first of a matrix to its last.
fn extent(rows: usize, columns: usize, stride: usize) -> usize {
    if rows == 0 || columns == 0 { 0 } else { (rows - 1) * stride + columns }
}

impl<'a> Matrix<'a> {
    /// Rows without gaps.
    pub fn new(values: &'a [f32], columns: usize) -> Self {
        let rows = values.len().checked_div(columns).unwrap_or(0);
        Self { values, stride: columns, rows, columns }
    }

    /// `columns` values of every row from `first` on.
    pub fn columns(self, first: usize, columns: usize) -> Self {
        assert!(first + columns <= self.columns, "columns beyond the end of a matrix");
        let end = extent(self.rows, columns, self.stride);
        Self { values: &self.values[first.min(self.values.len())..][..end], columns, ..self }
    }

    /// `rows` rows from `first` on.
    pub fn rows(self, first: usize, rows: usize) -> Self {
        assert!(first + rows <= self.rows, "rows beyond the end of a matrix");
        let end = extent(rows, self.columns, self.stride);
        let start = if end == 0 { 0 } else { first * self.stride };
        Self { values: &self.values[start..][..end], rows, ..self }
    }

    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.rows
    }
}

impl<'a> MatrixMut<'a> {
    /// Rows without gaps.
    pub fn new(values: &'a mut [f32], columns: usize) -> Self {
        let rows = values.len().checked_div(columns).unwrap_or(0);
        Self { values, stride: columns, rows, columns }
    }

    /// `columns` values of every row from `first` on.
    pub fn columns(self, first: usize, columns: usize) -> Self {
        assert!(first + columns <= self.columns, "columns beyond the end of a matrix");
        let end = extent(self.rows, columns, self.stride);
        let start = first.min(self.values.len());
        Self { values: &mut self.values[start..][..end], columns, ..self }
    }

    /// `rows` rows from `first` on.
    pub fn rows(self, first: usize, rows: usize) -> Self {
        assert!(first + rows <= self.rows, "rows beyond the end of a matrix");
        let end = extent(rows, self.columns, self.stride);
        let start = if end == 0 { 0 } else { first * self.stride };
        Self { values: &mut self.values[start..][..end], rows, ..self }
    }
}
