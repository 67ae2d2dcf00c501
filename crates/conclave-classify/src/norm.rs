//! Layer normalisation and the few loops that both networks share.

use crate::ClassifyError;
use crate::weights::Reader;

/// Brings each state to mean zero and variance one, then to a learned scale and offset.
pub(crate) struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    /// `epsilon` keeps the root of a variance away from zero.
    pub(crate) fn read(
        reader: &mut Reader<'_>,
        width: usize,
        epsilon: f32,
    ) -> Result<Self, ClassifyError> {
        Ok(Self { weight: reader.vector(width)?, bias: reader.vector(width)?, epsilon })
    }

    pub(crate) const fn width(&self) -> usize {
        self.weight.len()
    }

    pub(crate) fn apply(&self, states: &mut [f32]) {
        #[expect(clippy::cast_precision_loss, reason = "the width of a state is small")]
        let width = self.width() as f32;
        for state in states.chunks_exact_mut(self.width()) {
            let mean = state.iter().sum::<f32>() / width;
            let variance = state.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / width;
            let scale = 1.0 / (variance + self.epsilon).sqrt();
            for (value, (weight, bias)) in state.iter_mut().zip(self.weight.iter().zip(&self.bias))
            {
                *value = (*value - mean) * scale * weight + bias;
            }
        }
    }
}

/// Adds the second to the first, number by number.
pub(crate) fn add(values: &mut [f32], more: &[f32]) {
    for (value, more) in values.iter_mut().zip(more) {
        *value += more;
    }
}

/// The start of a text says what it is, the end what it wants: both are kept.
pub(crate) fn head_and_tail(mut pieces: Vec<u32>, most: usize) -> Vec<u32> {
    if pieces.len() > most {
        let head = most * 2 / 3;
        let cut = pieces.len() - (most - head);
        pieces.drain(head..cut);
    }
    pieces
}
