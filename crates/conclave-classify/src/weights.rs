//! Reading files of weights.
//!
//! **Invariant:** sizes are checked before anything is made of them; reading never panics.

use crate::ClassifyError;

/// Takes a file apart from its beginning to its end.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A file that begins with this mark.
    pub(crate) fn new(bytes: &'a [u8], mark: &[u8; 8]) -> Result<Self, ClassifyError> {
        Ok(Self { rest: bytes.strip_prefix(mark).ok_or(ClassifyError::NotAModel)? })
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], ClassifyError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ClassifyError::WrongSize)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> Result<usize, ClassifyError> {
        let (chunks, _) = self.take(4)?.as_chunks::<4>();
        let number = chunks.first().map(|chunk| u32::from_le_bytes(*chunk));
        number.and_then(|number| usize::try_from(number).ok()).ok_or(ClassifyError::WrongSize)
    }

    /// So many groups of four bytes, left where they are.
    pub(crate) fn words(&mut self, count: usize) -> Result<&'a [[u8; 4]], ClassifyError> {
        let bytes = self.take(count.checked_mul(4).ok_or(ClassifyError::WrongSize)?)?;
        Ok(bytes.as_chunks::<4>().0)
    }

    /// A block of bytes with its length before it.
    pub(crate) fn block(&mut self) -> Result<&'a [u8], ClassifyError> {
        let length = self.number()?;
        self.take(length)
    }

    pub(crate) fn floats(&mut self, count: usize) -> Result<Vec<f32>, ClassifyError> {
        Ok(self.words(count)?.iter().map(|word| f32::from_le_bytes(*word)).collect())
    }

    fn shape(&mut self, rows: usize, columns: usize) -> Result<(), ClassifyError> {
        let fits = self.number()? == rows && self.number()? == columns;
        if fits { Ok(()) } else { Err(ClassifyError::WrongSize) }
    }

    /// A vector of this length.
    pub(crate) fn vector(&mut self, length: usize) -> Result<Vec<f32>, ClassifyError> {
        self.shape(1, length)?;
        self.floats(length)
    }

    /// A matrix in full precision, row by row.
    pub(crate) fn matrix(
        &mut self,
        rows: usize,
        columns: usize,
    ) -> Result<Vec<f32>, ClassifyError> {
        self.shape(rows, columns)?;
        self.floats(rows.checked_mul(columns).ok_or(ClassifyError::WrongSize)?)
    }

    /// A matrix of small whole numbers, left where it is.
    pub(crate) fn small(
        &mut self,
        rows: usize,
        columns: usize,
    ) -> Result<Small<'a>, ClassifyError> {
        self.shape(rows, columns)?;
        let scales = self.floats(rows)?;
        let size = rows.checked_mul(columns).ok_or(ClassifyError::WrongSize)?;
        Ok(Small { columns, scales, values: self.take(size)? })
    }

    /// A matrix of this width with as many rows as it says.
    pub(crate) fn any_rows(&mut self, columns: usize) -> Result<Small<'a>, ClassifyError> {
        let mut ahead = Self { rest: self.rest };
        let rows = ahead.number()?;
        self.small(rows, columns)
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<(), ClassifyError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ClassifyError::WrongSize) }
    }
}

/// A matrix of small whole numbers with one scale for each row.
pub(crate) struct Small<'a> {
    pub(crate) columns: usize,
    pub(crate) scales: Vec<f32>,
    pub(crate) values: &'a [u8],
}

impl Small<'_> {
    pub(crate) const fn rows(&self) -> usize {
        self.scales.len()
    }

    /// One row; beyond the last, nothing.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let scale = self.scales.get(row).copied().unwrap_or(0.0);
        let values =
            self.values.get(row * self.columns..(row + 1) * self.columns).unwrap_or_default();
        values.iter().map(move |value| f32::from(value.cast_signed()) * scale)
    }
}
