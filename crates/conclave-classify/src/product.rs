//! Products of matrices, by kernels for the processor at hand.
//!
//! **Invariant:** a product runs on the thread that asks for it: whoever serves many requests at once decides
//! how many cores they use.

use crate::ClassifyError;
use crate::weights::{Reader, Small};
use rten_gemm::{
    BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix, QuantParams,
};
use rten_tensor::{Matrix, NdTensorView};
use std::sync::Once;

/// The kernels split a product over the threads of rayon's common pool; one thread there means that they do
/// not split it at all. If the program that embeds us has made that pool already, its choice stands.
fn stay_on_this_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
        if let Err(error) = pool {
            tracing::debug!(%error, "products of matrices share the program's own threads");
        }
    });
}

/// A layer in full precision: a matrix and what is added.
pub(crate) struct Dense {
    weights: PackedBMatrix<f32>,
    bias: Vec<f32>,
    from: usize,
    to: usize,
}

impl Dense {
    /// A layer whose bias follows its matrix in the file.
    pub(crate) fn read(
        reader: &mut Reader<'_>,
        from: usize,
        to: usize,
    ) -> Result<Self, ClassifyError> {
        let weights = reader.matrix(from, to)?;
        let bias = reader.vector(to)?;
        Self::new(&weights, bias, from, to)
    }

    /// A layer that adds nothing.
    pub(crate) fn read_without_bias(
        reader: &mut Reader<'_>,
        from: usize,
        to: usize,
    ) -> Result<Self, ClassifyError> {
        let weights = reader.matrix(from, to)?;
        Self::new(&weights, vec![0.0; to], from, to)
    }

    fn new(weights: &[f32], bias: Vec<f32>, from: usize, to: usize) -> Result<Self, ClassifyError> {
        stay_on_this_thread();
        let view = matrix(weights, from, to)?;
        Ok(Self { weights: GemmExecutor::<f32>::new().prepack_b(view), bias, from, to })
    }

    /// How many numbers a row that goes in has.
    pub(crate) const fn inputs(&self) -> usize {
        self.from
    }

    /// What comes out for each row of what goes in.
    pub(crate) fn apply(&self, rows: &[f32]) -> Result<Vec<f32>, ClassifyError> {
        let count = rows.len() / self.from;
        let mut out = vec![0.0; count * self.to];
        let options =
            GemmOptions { bias: Some(BiasVector::Row(&self.bias)), ..GemmOptions::default() };
        GemmExecutor::<f32>::new()
            .gemm(
                &mut out,
                GemmInputA::Unpacked(matrix(rows, count, self.from)?),
                GemmInputB::Packed(&self.weights),
                options,
            )
            .map_err(|_| ClassifyError::WrongSize)?;
        Ok(out)
    }
}

/// A layer of small whole numbers. What goes in is made small as well, each row with a scale of its own.
pub(crate) struct SmallDense {
    weights: PackedBMatrix<i8>,
    scales: Vec<f32>,
    bias: Vec<f32>,
    from: usize,
    to: usize,
    steps: Steps,
}

/// How finely what goes in is told apart: older processors add up products of bytes in sixteen bits, which
/// overflow unless one side stays below half.
#[derive(Clone, Copy)]
struct Steps {
    zero: u8,
    most: f32,
}

impl SmallDense {
    /// A layer whose bias follows its matrix in the file; the matrix stands there by rows of what comes out.
    pub(crate) fn read(
        reader: &mut Reader<'_>,
        from: usize,
        to: usize,
    ) -> Result<Self, ClassifyError> {
        stay_on_this_thread();
        let Small { columns, scales, values } = reader.small(to, from)?;
        let values: Vec<i8> = values.iter().map(|value| value.cast_signed()).collect();
        let by_output = NdTensorView::try_from_data([to, columns], &values[..])
            .map_err(|_| ClassifyError::WrongSize)?;
        let executor = GemmExecutor::<u8, i8, i32>::new();
        let steps = if executor.may_saturate() {
            Steps { zero: 64, most: 63.0 }
        } else {
            Steps { zero: 128, most: 127.0 }
        };
        Ok(Self {
            weights: executor.prepack_b(by_output.transposed()),
            scales,
            bias: reader.vector(to)?,
            from,
            to,
            steps,
        })
    }

    /// What comes out for each row of what goes in.
    pub(crate) fn apply(&self, rows: &[f32]) -> Result<Vec<f32>, ClassifyError> {
        let count = rows.len() / self.from;
        let mut small = Vec::with_capacity(rows.len());
        let mut row_scales = Vec::with_capacity(count);
        for row in rows.chunks_exact(self.from) {
            row_scales.push(self.steps.shrink(row, &mut small));
        }
        let zeros = vec![self.steps.zero; count];
        let mut sums = vec![0_i32; count * self.to];
        let options = GemmOptions {
            a_quant: Some(QuantParams { zero_point: &zeros }),
            ..GemmOptions::default()
        };
        GemmExecutor::<u8, i8, i32>::new()
            .gemm(
                &mut sums,
                GemmInputA::Unpacked(matrix(&small, count, self.from)?),
                GemmInputB::Packed(&self.weights),
                options,
            )
            .map_err(|_| ClassifyError::WrongSize)?;
        let mut out = Vec::with_capacity(sums.len());
        for (sums, row_scale) in sums.chunks_exact(self.to).zip(row_scales) {
            let columns = sums.iter().zip(&self.scales).zip(&self.bias);
            #[expect(clippy::cast_precision_loss, reason = "sums of bytes are far below 2^24")]
            out.extend(columns.map(|((sum, scale), bias)| *sum as f32 * row_scale * scale + bias));
        }
        Ok(out)
    }
}

impl Steps {
    /// Appends the row as bytes and returns what one step is worth. What is not a number makes all of the row
    /// not a number, so that a failure is seen.
    fn shrink(self, row: &[f32], out: &mut Vec<u8>) -> f32 {
        let largest = row.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let is_finite = row.iter().all(|value| value.is_finite());
        let step = largest.max(1e-12) / self.most;
        let middle = f32::from(self.zero) + 0.5;
        let per_step = 1.0 / step;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 255; a cast rounds down, which the half makes up for"
        )]
        out.extend(row.iter().map(|value| (value * per_step + middle) as u8));
        if is_finite { step } else { f32::NAN }
    }
}

fn matrix<T>(values: &[T], rows: usize, columns: usize) -> Result<Matrix<'_, T>, ClassifyError> {
    NdTensorView::try_from_data([rows, columns], values).map_err(|_| ClassifyError::WrongSize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one matrix by rows of what comes out, as bytes with scales, and a bias.
    fn small_layer(to: usize, from: usize) -> Vec<u8> {
        let mut file = b"ABCDEFGH".to_vec();
        let size = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
        file.extend(size(to));
        file.extend(size(from));
        file.extend((0..to).flat_map(|_| 0.01_f32.to_le_bytes()));
        file.extend((0..to * from).map(|at| u8::try_from(at * 7 % 256).unwrap()));
        file.extend(size(1));
        file.extend(size(to));
        file.extend((0..to).flat_map(|_| 0.5_f32.to_le_bytes()));
        file
    }

    #[test]
    fn a_product_of_bytes_is_close_to_the_product_in_full() {
        let file = small_layer(5, 24);
        let layer = SmallDense::read(&mut Reader::new(&file, b"ABCDEFGH").unwrap(), 24, 5).unwrap();
        let rows: Vec<f32> = (0..48_u8).map(|at| (f32::from(at) * 0.37).sin()).collect();
        let out = layer.apply(&rows).unwrap();
        let weight = |to: usize, from: usize| {
            f32::from(u8::try_from((to * 24 + from) * 7 % 256).unwrap().cast_signed()) * 0.01
        };
        for (row, out) in rows.chunks_exact(24).zip(out.chunks_exact(5)) {
            for (to, out) in out.iter().enumerate() {
                let exact: f32 =
                    0.5 + row.iter().enumerate().map(|(at, x)| x * weight(to, at)).sum::<f32>();
                assert!((exact - out).abs() < 0.1, "{exact} {out}");
            }
        }
    }

    #[test]
    fn what_is_not_a_number_is_not_hidden_by_rounding() {
        let file = small_layer(3, 8);
        let layer = SmallDense::read(&mut Reader::new(&file, b"ABCDEFGH").unwrap(), 8, 3).unwrap();
        let mut rows = vec![0.25; 8];
        rows[3] = f32::NAN;
        assert!(layer.apply(&rows).unwrap().iter().all(|value| value.is_nan()));
    }
}
