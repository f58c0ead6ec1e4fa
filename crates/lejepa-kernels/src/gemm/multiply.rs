//! A product tile by tile.

use pulp::{Arch, Simd, WithSimd};

use super::kernel::{self, Columns, Left, Rows, VECTORS, ending, full};
use super::{Matrix, MatrixMut, Panels};

/// What a product is added to.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// Nothing: the result's old values do not matter.
    Zero,
    /// What the result holds.
    Result,
    /// The same values in every row.
    Row(&'a [f32]),
}

/// The right factor of a product, `(depth, columns)`.
#[derive(Debug, Clone, Copy)]
pub enum Right<'a> {
    /// As it lies in memory.
    Matrix(Matrix<'a>),
    /// Put in order beforehand.
    Panels(&'a Panels),
}

impl<'a> From<Matrix<'a>> for Right<'a> {
    fn from(matrix: Matrix<'a>) -> Self {
        Self::Matrix(matrix)
    }
}

impl<'a> From<&'a Panels> for Right<'a> {
    fn from(panels: &'a Panels) -> Self {
        Self::Panels(panels)
    }
}

impl Right<'_> {
    /// `(depth, columns)`.
    fn shape(&self) -> (usize, usize) {
        match self {
            Self::Matrix(matrix) => (matrix.rows, matrix.columns),
            Self::Panels(panels) => (panels.depth, panels.columns),
        }
    }
}

/// `result = start + left right`.
///
/// # Shapes
/// - `left`: `(rows, depth)`; `right`: `(depth, columns)`; `result`: `(rows, columns)`
pub fn multiply<'a>(left: Matrix<'_>, right: impl Into<Right<'a>>, result: MatrixMut<'_>, start: Start<'_>) {
    let right = right.into();
    assert_eq!((left.rows, left.columns), (result.rows, right.shape().0), "shapes of a product");
    assert_eq!(right.shape().1, result.columns, "shapes of a product");
    Arch::new().dispatch(Gemm::<false> { left, right, result, start, depth: left.columns });
}

/// `result = start + left^T right`.
///
/// # Shapes
/// - `left`: `(depth, rows)`; `right`: `(depth, columns)`; `result`: `(rows, columns)`
pub fn multiply_transposed<'a>(
    left: Matrix<'_>,
    right: impl Into<Right<'a>>,
    result: MatrixMut<'_>,
    start: Start<'_>,
) {
    let right = right.into();
    assert_eq!((left.columns, left.rows), (result.rows, right.shape().0), "shapes of a product");
    assert_eq!(right.shape().1, result.columns, "shapes of a product");
    Arch::new().dispatch(Gemm::<true> { left, right, result, start, depth: left.rows });
}

struct Gemm<'a, const TRANSPOSED: bool> {
    left: Matrix<'a>,
    right: Right<'a>,
    result: MatrixMut<'a>,
    start: Start<'a>,
    depth: usize,
}

/// Rows of a tile at most: with two vectors each, and those of the right factor, they fit the registers.
const fn height<S: Simd>() -> usize {
    if S::REGISTER_COUNT >= 32 { 14 } else { 6 }
}

impl<const TRANSPOSED: bool> WithSimd for Gemm<'_, TRANSPOSED> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (rows, columns) = (self.result.rows, self.result.columns);
        // Tiles of about the same height: a low last one would leave registers idle.
        let tiles = rows.div_ceil(height::<S>());
        for column in (0..columns).step_by(VECTORS * S::F32_LANES) {
            let mut row = 0;
            for tile in 0..tiles {
                let count = (rows - row).div_ceil(tiles - tile);
                self.rows(simd, row, count, column);
                row += count;
            }
        }
    }
}

impl<const TRANSPOSED: bool> Gemm<'_, TRANSPOSED> {
    #[inline(always)]
    fn rows<S: Simd>(&mut self, simd: S, row: usize, count: usize, column: usize) {
        macro_rules! heights {
            ($($height:literal)*) => {
                match count {
                    $($height if $height <= height::<S>() => self.tile::<S, $height>(simd, row, column),)*
                    _ => {}
                }
            };
        }
        heights!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
    }

    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize>(&mut self, simd: S, row: usize, column: usize) {
        let Matrix { values, stride, .. } = self.left;
        if TRANSPOSED {
            let left = Columns { values: &values[row.min(values.len())..], stride };
            self.sum::<S, _, ROWS>(simd, left, row, column);
        } else {
            let left = std::array::from_fn(|index| {
                &values[((row + index) * stride).min(values.len())..][..self.depth]
            });
            self.sum::<S, _, ROWS>(simd, Rows(left), row, column);
        }
    }

    #[inline(always)]
    fn sum<S: Simd, L: Left<ROWS>, const ROWS: usize>(
        &mut self,
        simd: S,
        left: L,
        row: usize,
        column: usize,
    ) {
        let (lanes, width) = (S::F32_LANES, VECTORS * S::F32_LANES);
        let columns = (self.result.columns - column).min(width);
        let first = row * self.result.stride + column;
        let stride = self.result.stride;
        let mut tile = [[simd.splat_f32s(0.); VECTORS]; ROWS];
        match self.start {
            Start::Zero => {}
            Start::Row(values) => tile = [load(simd, &values[column..][..columns]); ROWS],
            Start::Result => {
                for (index, tile) in tile.iter_mut().enumerate() {
                    *tile = load(simd, &self.result.values[first + index * stride..][..columns]);
                }
            }
        }
        let (right, is_full) = match self.right {
            Right::Matrix(Matrix { values, stride, .. }) => {
                let values = &values[column.min(values.len())..];
                (kernel::Right { values, stride, columns }, columns == width)
            }
            Right::Panels(panels) => {
                let values = &panels.values[column * panels.depth..];
                (kernel::Right { values, stride: panels.width, columns: width }, true)
            }
        };
        if is_full {
            full::<S, L, ROWS>(simd, left, right, self.depth, &mut tile);
        } else if columns > lanes {
            ending::<S, L, ROWS, 2>(simd, left, right, self.depth, &mut tile);
        } else {
            ending::<S, L, ROWS, 1>(simd, left, right, self.depth, &mut tile);
        }
        for (index, tile) in tile.into_iter().enumerate() {
            store(simd, &mut self.result.values[first + index * stride..][..columns], tile);
        }
    }
}

#[inline(always)]
fn load<S: Simd>(simd: S, values: &[f32]) -> [S::f32s; VECTORS] {
    if let &[left, right] = S::as_simd_f32s(values).0 {
        return [left, right];
    }
    let (left, right) = values.split_at(values.len().min(S::F32_LANES));
    [simd.partial_load_f32s(left), simd.partial_load_f32s(right)]
}

#[inline(always)]
fn store<S: Simd>(simd: S, values: &mut [f32], tile: [S::f32s; VECTORS]) {
    if let [left, right] = S::as_mut_simd_f32s(values).0 {
        (*left, *right) = (tile[0], tile[1]);
        return;
    }
    let (left, right) = values.split_at_mut(values.len().min(S::F32_LANES));
    simd.partial_store_f32s(left, tile[0]);
    simd.partial_store_f32s(right, tile[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of at most 70 products of numbers below one.
    const TOLERANCE: f64 = 1e-5;

    fn values(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.).collect()
    }

    /// A matrix that lies in a wider one.
    fn wide(storage: &[f32], columns: usize, gap: usize) -> Matrix<'_> {
        Matrix::new(storage, columns + 2 * gap).columns(gap, columns)
    }

    fn transposed(matrix: Matrix<'_>) -> Vec<f32> {
        (0..matrix.columns)
            .flat_map(|column| (0..matrix.rows).map(move |row| matrix.values[row * matrix.stride + column]))
            .collect()
    }

    fn expected(left: Matrix<'_>, right: Matrix<'_>, start: impl Fn(usize, usize) -> f32) -> Vec<f64> {
        let value = |matrix: Matrix<'_>, row: usize, column: usize| {
            f64::from(matrix.values[row * matrix.stride + column])
        };
        (0..left.rows * right.columns)
            .map(|index| (index / right.columns, index % right.columns))
            .map(|(row, column)| {
                let products = (0..left.columns).map(|k| value(left, row, k) * value(right, k, column));
                f64::from(start(row, column)) + products.sum::<f64>()
            })
            .collect()
    }

    fn assert_close(result: &[f32], expected: &[f64], what: &str) {
        for (result, expected) in result.iter().zip(expected) {
            assert!((f64::from(*result) - expected).abs() < TOLERANCE, "{what}: {result} {expected}");
        }
    }

    #[test]
    fn products_of_all_sizes_agree_with_sums_in_f64() {
        for rows in [1, 2, 5, 6, 7, 13, 14, 15, 29, 41] {
            for columns in [1, 3, 15, 16, 17, 31, 32, 33, 48, 70] {
                for depth in [0, 1, 2, 9, 64, 70] {
                    let gap = (rows + columns + depth) % 3;
                    let left_storage = values(rows * (depth + 2 * gap), 1);
                    let right_storage = values(depth * (columns + 2 * gap), 2);
                    let (left, right) = (wide(&left_storage, depth, gap), wide(&right_storage, columns, gap));
                    let left = Matrix { rows, ..left };
                    let right = Matrix { rows: depth, ..right };
                    let what = format!("{rows}x{depth}x{columns}");
                    let (left_columns, right_rows) = (transposed(left), transposed(right));
                    let left_columns =
                        Matrix { values: &left_columns, rows: depth, columns: rows, stride: rows };
                    let right_rows =
                        Matrix { values: &right_rows, rows: columns, columns: depth, stride: depth };
                    let panels = [Panels::new(right), Panels::of_transpose(right_rows)];
                    let rights = [Right::Matrix(right), Right::Panels(&panels[0]), Right::Panels(&panels[1])];
                    let (first, bias) = (values(rows * columns, 3), values(columns, 4));
                    for right_factor in rights {
                        let mut result = first.clone();
                        multiply(left, right_factor, MatrixMut::new(&mut result, columns), Start::Result);
                        let sum = expected(left, right, |row, column| first[row * columns + column]);
                        assert_close(&result, &sum, &what);
                        multiply(left, right_factor, MatrixMut::new(&mut result, columns), Start::Row(&bias));
                        assert_close(&result, &expected(left, right, |_, column| bias[column]), &what);
                        let result_view = MatrixMut::new(&mut result, columns);
                        multiply_transposed(left_columns, right_factor, result_view, Start::Zero);
                        assert_close(&result, &expected(left, right, |_, _| 0.), &what);
                    }
                }
            }
        }
    }

    #[test]
    fn what_lies_between_the_rows_of_a_result_is_left_alone() {
        let (left, right) = (values(20 * 8, 1), values(8 * 18, 2));
        let mut result = vec![7.; 20 * 24];
        let inner = MatrixMut::new(&mut result, 24).columns(3, 18).rows(1, 18);
        multiply(Matrix::new(&left, 8).rows(0, 18), Matrix::new(&right, 18), inner, Start::Zero);
        for (index, value) in result.iter().enumerate() {
            let (row, column) = (index / 24, index % 24);
            let inside = (1..19).contains(&row) && (3..21).contains(&column);
            assert!(inside || *value == 7., "({row}, {column}): {value}");
        }
    }
}
