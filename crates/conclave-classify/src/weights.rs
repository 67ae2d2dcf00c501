//! Reading weights: small whole numbers with one scale for each row.
//!
//! **Invariant:** sizes are checked before anything is made of them.

use crate::ClassifyError;
use ndarray::{Array1, Array2};

const MAGIC: &[u8; 8] = b"CNCLT2\x00\x01";

/// Takes a file apart from its beginning to its end.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, ClassifyError> {
        Ok(Self { rest: bytes.strip_prefix(MAGIC).ok_or(ClassifyError::NotAModel)? })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ClassifyError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ClassifyError::WrongSize)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<usize, ClassifyError> {
        let (chunks, _) = self.take(4)?.as_chunks::<4>();
        let number = chunks.first().map(|chunk| u32::from_le_bytes(*chunk));
        number.and_then(|number| usize::try_from(number).ok()).ok_or(ClassifyError::WrongSize)
    }

    /// A block of bytes with its length before it.
    pub(super) fn block(&mut self) -> Result<&'a [u8], ClassifyError> {
        let length = self.number()?;
        self.take(length)
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, ClassifyError> {
        let (chunks, _) =
            self.take(count.checked_mul(4).ok_or(ClassifyError::WrongSize)?)?.as_chunks::<4>();
        Ok(chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect())
    }

    fn shape(&mut self, rows: usize, columns: usize) -> Result<(), ClassifyError> {
        let fits = self.number()? == rows && self.number()? == columns;
        if fits { Ok(()) } else { Err(ClassifyError::WrongSize) }
    }

    /// A vector of this length.
    pub(super) fn vector(&mut self, length: usize) -> Result<Array1<f32>, ClassifyError> {
        self.shape(1, length)?;
        Ok(Array1::from_vec(self.floats(length)?))
    }

    /// A matrix kept small.
    pub(super) fn small(&mut self, rows: usize, columns: usize) -> Result<Small, ClassifyError> {
        self.shape(rows, columns)?;
        let scales = self.floats(rows)?;
        let size = rows.checked_mul(columns).ok_or(ClassifyError::WrongSize)?;
        Ok(Small { columns, scales, values: self.take(size)?.to_vec() })
    }

    /// A matrix of this width with as many rows as it says.
    pub(super) fn any_rows(&mut self, columns: usize) -> Result<Small, ClassifyError> {
        let mut ahead = Self { rest: self.rest };
        let rows = ahead.number()?;
        self.small(rows, columns)
    }

    /// A matrix made ready to multiply with.
    pub(super) fn matrix(
        &mut self,
        rows: usize,
        columns: usize,
    ) -> Result<Array2<f32>, ClassifyError> {
        let small = self.small(rows, columns)?;
        let mut values = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            values.extend(small.row(row));
        }
        Array2::from_shape_vec((rows, columns), values).map_err(|_| ClassifyError::WrongSize)
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), ClassifyError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ClassifyError::WrongSize) }
    }
}

/// A matrix of small whole numbers, of which only some rows are used at a time.
pub(super) struct Small {
    columns: usize,
    scales: Vec<f32>,
    values: Vec<u8>,
}

impl Small {
    pub(super) const fn rows(&self) -> usize {
        self.scales.len()
    }

    /// One row; beyond the last, nothing.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let scale = self.scales.get(row).copied().unwrap_or(0.0);
        let values =
            self.values.get(row * self.columns..(row + 1) * self.columns).unwrap_or_default();
        values.iter().map(move |value| f32::from(value.cast_signed()) * scale)
    }
}
