//! What is computed above the table: convolutions over neighbouring pieces, their sum, dense layers, heads.

use super::Description;
use crate::ClassifyError;
use crate::norm::{Norm, add};
use crate::product::Dense;
use crate::weights::Reader;

/// How wide a view each convolution has: pieces in all, and how many of them before the place itself.
const VIEWS: [View; 3] =
    [View { pieces: 2, before: 0 }, View { pieces: 3, before: 1 }, View { pieces: 5, before: 2 }];

#[derive(Clone, Copy)]
struct View {
    pieces: usize,
    before: usize,
}

/// A text as the heads look at it.
pub(super) struct Encoded {
    /// What it says as a whole, of length one.
    pub(super) vector: Vec<f32>,
    /// The strongest of each local feature.
    pub(super) peaks: Vec<f32>,
}

pub(super) struct Network {
    width: usize,
    branch: usize,
    epsilon: f32,
    spread: f32,
    projection: Dense,
    projected_norm: Norm,
    convolutions: Vec<Convolution>,
    features_norm: Norm,
    whole: Dense,
    whole_bias: Vec<f32>,
    dense: [Dense; 2],
    skips: [Dense; 2],
    after: [Dense; 2],
    peaks: Dense,
    text_heads: Head,
    reply_heads: Head,
}

/// Two layers over neighbouring places, each added to what went in.
struct Convolution {
    view: View,
    layers: [Dense; 2],
}

/// A hidden layer and the outputs.
struct Head {
    hidden: Dense,
    outputs: Dense,
}

impl Network {
    pub(super) fn read(
        reader: &mut Reader<'_>,
        description: &Description,
    ) -> Result<Self, ClassifyError> {
        let Description { width, branch, peaks, hidden, .. } = *description;
        let joined = VIEWS.len() * branch;
        let features = width + joined;
        let inner = description.inner;
        let projection = Dense::read(reader, width, joined)?;
        let projected_norm = Norm::read(reader, joined, description.epsilon)?;
        let convolution = |view: View| {
            let mut layer = || Dense::read(reader, view.pieces * branch, branch);
            Ok::<_, ClassifyError>(Convolution { view, layers: [layer()?, layer()?] })
        };
        let convolutions = VIEWS.map(convolution).into_iter().collect::<Result<_, _>>()?;
        let features_norm = Norm::read(reader, features, description.epsilon)?;
        let whole = Dense::read_without_bias(reader, features, width)?;
        let whole_bias = reader.vector(width)?;
        let mut plain = |from, to| Dense::read_without_bias(reader, from, to);
        Ok(Self {
            width,
            branch,
            epsilon: description.epsilon,
            spread: description.spread,
            projection,
            projected_norm,
            convolutions,
            features_norm,
            whole,
            whole_bias,
            dense: [plain(width, inner)?, plain(inner, inner)?],
            skips: [plain(width, inner)?, plain(inner, width)?],
            after: [plain(inner, width)?, plain(width, width)?],
            peaks: Dense::read(reader, features, peaks)?,
            text_heads: Head::read(reader, width + peaks, hidden, description.text_heads.len())?,
            reply_heads: Head::read(
                reader,
                4 * width + peaks,
                hidden,
                description.reply_heads.len(),
            )?,
        })
    }

    /// Reads the vectors of the pieces, one after another.
    pub(super) fn encode(&self, pieces: &[f32]) -> Result<Encoded, ClassifyError> {
        let features = self.features(pieces)?;
        let size = self.features_norm.width();
        let mut sum = vec![0.0; size];
        for row in features.chunks_exact(size) {
            add(&mut sum, row);
        }
        let mut peaks = vec![0.0_f32; self.peaks_count()];
        for row in self.peaks.apply(&features)?.chunks_exact(peaks.len()) {
            for (peak, value) in peaks.iter_mut().zip(row) {
                // A comparison with what is not a number would lose it.
                *peak = if value.is_nan() { *value } else { peak.max(*value) };
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "some hundred pieces")]
        let count = (pieces.len() / self.width).max(1) as f32;
        let mut whole = self.whole.apply(&sum)?;
        for (value, bias) in whole.iter_mut().zip(&self.whole_bias) {
            *value = (*value + count * bias) / count.sqrt();
        }
        Ok(Encoded { vector: self.vector(&whole)?, peaks })
    }

    /// For every piece, its own vector and what each convolution makes of its neighbourhood.
    fn features(&self, pieces: &[f32]) -> Result<Vec<f32>, ClassifyError> {
        let mut projected = self.projection.apply(pieces)?;
        self.projected_norm.apply(&mut projected);
        let size = self.features_norm.width();
        let joined = self.projected_norm.width();
        let mut features = vec![0.0; pieces.len() / self.width * size];
        for (row, piece) in features.chunks_exact_mut(size).zip(pieces.chunks_exact(self.width)) {
            row[..self.width].copy_from_slice(piece);
        }
        for (at, convolution) in self.convolutions.iter().enumerate() {
            let start = at * self.branch;
            let own =
                projected.chunks_exact(joined).flat_map(|row| &row[start..start + self.branch]);
            let mut states: Vec<f32> = own.copied().collect();
            for layer in &convolution.layers {
                let around = convolution.view.around(&states, self.branch);
                let mut seen = layer.apply(&around)?;
                rectify(&mut seen);
                add(&mut states, &seen);
            }
            let place = self.width + start;
            for (row, state) in
                features.chunks_exact_mut(size).zip(states.chunks_exact(self.branch))
            {
                row[place..place + self.branch].copy_from_slice(state);
            }
        }
        self.features_norm.apply(&mut features);
        Ok(features)
    }

    fn vector(&self, whole: &[f32]) -> Result<Vec<f32>, ClassifyError> {
        let mut first = self.dense[0].apply(whole)?;
        rectify(&mut first);
        let mut second = self.dense[1].apply(&first)?;
        add(&mut second, &self.skips[0].apply(whole)?);
        rectify(&mut second);
        let mut third = self.after[0].apply(&second)?;
        rectify(&mut third);
        let mut vector = self.after[1].apply(&third)?;
        add(&mut vector, &self.skips[1].apply(&second)?);
        for value in &mut vector {
            *value = value.tanh();
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().max(self.epsilon).sqrt();
        for value in &mut vector {
            *value /= length;
        }
        Ok(vector)
    }

    fn peaks_count(&self) -> usize {
        self.text_heads.hidden_inputs() - self.width
    }

    /// The logits of a text's heads.
    pub(super) fn text_logits(&self, text: &Encoded) -> Result<Vec<f32>, ClassifyError> {
        let vector = text.vector.iter().map(|value| value * self.spread);
        let seen: Vec<f32> = vector.chain(text.peaks.iter().copied()).collect();
        self.text_heads.logits(&seen)
    }

    /// The logits of a reply's heads, which see both texts, how they differ and what they share.
    pub(super) fn reply_logits(
        &self,
        said: &Encoded,
        reply: &Encoded,
    ) -> Result<Vec<f32>, ClassifyError> {
        let said: Vec<f32> = said.vector.iter().map(|value| value * self.spread).collect();
        let answer: Vec<f32> = reply.vector.iter().map(|value| value * self.spread).collect();
        let both = || said.iter().zip(&answer);
        let mut seen = said.clone();
        seen.extend(&answer);
        seen.extend(both().map(|(a, b)| (a - b).abs()));
        seen.extend(both().map(|(a, b)| a * b));
        seen.extend(&reply.peaks);
        self.reply_heads.logits(&seen)
    }
}

impl View {
    /// Each place with its neighbours side by side; beyond the ends there is nothing.
    fn around(self, states: &[f32], width: usize) -> Vec<f32> {
        let count = states.len() / width;
        let mut out = Vec::with_capacity(count * self.pieces * width);
        for place in 0..count {
            for neighbour in 0..self.pieces {
                let at = (place + neighbour).checked_sub(self.before);
                let state = at.and_then(|at| states.get(at * width..(at + 1) * width));
                match state {
                    Some(state) => out.extend_from_slice(state),
                    None => out.resize(out.len() + width, 0.0),
                }
            }
        }
        out
    }
}

impl Head {
    fn read(
        reader: &mut Reader<'_>,
        from: usize,
        hidden: usize,
        to: usize,
    ) -> Result<Self, ClassifyError> {
        let hidden_layer = Dense::read(reader, from, hidden)?;
        Ok(Self { hidden: hidden_layer, outputs: Dense::read(reader, hidden, to)? })
    }

    const fn hidden_inputs(&self) -> usize {
        self.hidden.inputs()
    }

    fn logits(&self, seen: &[f32]) -> Result<Vec<f32>, ClassifyError> {
        let mut hidden = self.hidden.apply(seen)?;
        rectify(&mut hidden);
        self.outputs.apply(&hidden)
    }
}

/// Leaves out what is below zero; what is not a number stays so.
fn rectify(values: &mut [f32]) {
    for value in values {
        if *value < 0.0 {
            *value = 0.0;
        }
    }
}
