//! A linear model over hashed features, with small whole numbers for weights.
//!
//! **Invariant:** a file that is not exactly what it says it is, is refused; reading never panics.

use crate::ClassifyError;

const MAGIC: &[u8; 8] = b"CNCLT1\x00\x01";

/// Weights of so many outputs for each of a power of two of buckets.
#[derive(Clone, Debug)]
pub struct Linear<'a> {
    outputs: Vec<String>,
    bits: u32,
    scales: Vec<f32>,
    biases: Vec<f32>,
    /// Bucket by bucket, one weight for each output.
    weights: &'a [u8],
}

impl<'a> Linear<'a> {
    /// Reads a model; the weights stay where they are.
    ///
    /// # Errors
    /// When the bytes are not a whole model.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ClassifyError> {
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(ClassifyError::NotAModel)?;
        let bits = u32::from(take(&mut rest, 1)?[0]);
        let count = usize::from(take(&mut rest, 1)?[0]);
        let mut outputs = Vec::with_capacity(count);
        for _ in 0..count {
            let length = usize::from(take(&mut rest, 1)?[0]);
            let name = std::str::from_utf8(take(&mut rest, length)?)
                .map_err(|_| ClassifyError::NotAModel)?;
            outputs.push(name.to_owned());
        }
        let scales = floats(&mut rest, count)?;
        let biases = floats(&mut rest, count)?;
        let whole = bits <= 24 && rest.len() == count << bits;
        if !whole {
            return Err(ClassifyError::WrongSize);
        }
        Ok(Self { outputs, bits, scales, biases, weights: rest })
    }

    /// The names of the outputs, in order.
    #[must_use]
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// The logit of each output for these features.
    #[must_use]
    pub fn logits(&self, features: &[u32]) -> Vec<f32> {
        // The built-in models have so many outputs; what is known beforehand need not be counted again.
        let sums = match self.outputs.len() {
            4 => self.sums::<4>(features),
            6 => self.sums::<6>(features),
            9 => self.sums::<9>(features),
            count => self.sums_of(features, count),
        };
        let share = share(features.len());
        sums.iter().enumerate().map(|(at, &sum)| self.logit(at, sum, share)).collect()
    }

    /// The logit of one output alone.
    pub(crate) fn logit_of(&self, features: &[u32], output: usize) -> f32 {
        let count = self.outputs.len();
        let weight = |feature: &u32| {
            let at = bucket(*feature, self.bits) * count + output;
            i32::from(self.weights[at].cast_signed())
        };
        self.logit(output, features.iter().map(weight).sum(), share(features.len()))
    }

    fn logit(&self, output: usize, sum: i32, share: f32) -> f32 {
        self.biases[output] + as_f32(sum) * self.scales[output] * share
    }

    fn sums<const COUNT: usize>(&self, features: &[u32]) -> Vec<i32> {
        let (rows, _) = self.weights.as_chunks::<COUNT>();
        let mut sums = [0_i32; COUNT];
        for &feature in features {
            let row = &rows[bucket(feature, self.bits)];
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += i32::from(weight.cast_signed());
            }
        }
        sums.to_vec()
    }

    fn sums_of(&self, features: &[u32], count: usize) -> Vec<i32> {
        let mut sums = vec![0_i32; count];
        for &feature in features {
            let bucket = bucket(feature, self.bits);
            let row = &self.weights[bucket * count..(bucket + 1) * count];
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += i32::from(weight.cast_signed());
            }
        }
        sums
    }
}

/// In which bucket a feature falls.
#[must_use]
pub const fn bucket(feature: u32, bits: u32) -> usize {
    (feature >> (32 - bits)) as usize
}

/// What one of so many features counts: long texts do not shout.
#[must_use]
pub fn share(features: usize) -> f32 {
    1.0 / as_f32(i32::try_from(features.max(1)).unwrap_or(i32::MAX)).sqrt()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sums of some thousand small weights are exact enough"
)]
const fn as_f32(whole: i32) -> f32 {
    whole as f32
}

/// Writes a model in the form that [`Linear::parse`] reads.
#[must_use]
pub fn pack(outputs: &[&str], bits: u32, biases: &[f32], weights: &[f32]) -> Vec<u8> {
    let count = outputs.len();
    let mut bytes = MAGIC.to_vec();
    bytes.push(u8::try_from(bits).unwrap_or(u8::MAX));
    bytes.push(u8::try_from(count).unwrap_or(u8::MAX));
    for name in outputs {
        bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(name.as_bytes());
    }
    let largest = |output: usize| {
        let column = weights.iter().skip(output).step_by(count);
        column.fold(1e-6f32, |largest, weight| largest.max(weight.abs()))
    };
    let scales: Vec<f32> = (0..count).map(|output| largest(output) / 127.0).collect();
    for value in scales.iter().chain(biases) {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes.extend(weights.iter().enumerate().map(|(at, weight)| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most 127 by the choice of the scale"
        )]
        let small = (weight / scales[at % count]).round() as i8;
        small.cast_unsigned()
    }));
    bytes
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], ClassifyError> {
    let (taken, after) = rest.split_at_checked(count).ok_or(ClassifyError::WrongSize)?;
    *rest = after;
    Ok(taken)
}

fn floats(rest: &mut &[u8], count: usize) -> Result<Vec<f32>, ClassifyError> {
    let (chunks, _) = take(rest, count * 4)?.as_chunks::<4>();
    Ok(chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_read() {
        let weights: Vec<f32> = (0..16u8).map(|n| f32::from(n) - 8.0).collect();
        let bytes = pack(&["a", "b"], 3, &[0.5, -0.5], &weights);
        let model = Linear::parse(&bytes).unwrap();
        assert_eq!(model.outputs(), ["a", "b"]);
        // The top three bits choose the bucket.
        let logits = model.logits(&[0x2000_0000]);
        assert!((logits[0] - (0.5 - 6.0)).abs() < 0.1, "{logits:?}");
        assert!((logits[1] - (-0.5 - 5.0)).abs() < 0.1, "{logits:?}");
        assert_eq!(model.logits(&[]), [0.5, -0.5]);
    }

    #[test]
    fn every_way_to_add_up_comes_to_the_same() {
        let features: Vec<u32> = (0..500_u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
        for count in [1, 4, 6, 9] {
            let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
            let weights: Vec<f32> =
                (0..count << 6).map(|n: u16| f32::from(n.wrapping_mul(37) % 255) - 127.0).collect();
            let names = &names[..usize::from(count)];
            let bytes = pack(names, 6, &vec![0.25; names.len()], &weights);
            let model = Linear::parse(&bytes).unwrap();
            let logits = model.logits(&features);
            let share = share(features.len());
            let sums = model.sums_of(&features, names.len());
            for (at, sum) in sums.into_iter().enumerate() {
                assert_eq!(logits[at].to_bits(), model.logit(at, sum, share).to_bits());
                assert_eq!(logits[at].to_bits(), model.logit_of(&features, at).to_bits());
            }
        }
    }

    #[test]
    fn a_broken_file_is_refused() {
        let bytes = pack(&["a"], 3, &[0.0], &[1.0; 8]);
        for end in 0..bytes.len() {
            assert!(Linear::parse(&bytes[..end]).is_err(), "{end}");
        }
        assert!(Linear::parse(&[&bytes[..], &[0]].concat()).is_err());
        assert!(Linear::parse(b"something else").is_err());
    }
}
