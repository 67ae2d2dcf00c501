//! The encoder: embeddings, layers of attention, the mean of the last states, heads.

use super::Description;
use super::activation::{Gelu, softmax};
use super::weights::{Reader, Small};
use crate::ClassifyError;
use ndarray::{Array1, Array2, ArrayView2, Axis, Slice};

/// Keeps the root of a variance away from zero.
const EPSILON: f32 = 1e-12;

pub(super) struct Encoder {
    words: Small,
    places: Small,
    segments: Small,
    norm: Norm,
    layers: Vec<Layer>,
    heads: Linear,
    attention_heads: usize,
    width: usize,
    gelu: Gelu,
}

struct Layer {
    qkv: Linear,
    out: Linear,
    norm1: Norm,
    up: Linear,
    down: Linear,
    norm2: Norm,
}

struct Linear {
    /// From rows to columns, so that a product reads it in order.
    weights: Array2<f32>,
    bias: Array1<f32>,
}

struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
}

impl Encoder {
    pub(super) fn read(
        reader: &mut Reader<'_>,
        description: &Description,
    ) -> Result<Self, ClassifyError> {
        let Description { layers, width, attention_heads, inner, .. } = *description;
        if attention_heads == 0 || width % attention_heads != 0 || width == 0 {
            return Err(ClassifyError::Description(
                "the width does not divide by the heads".into(),
            ));
        }
        let places = description.said_tokens + description.judged_tokens + 3;
        let words = reader.any_rows(width)?;
        Ok(Self {
            words,
            places: reader.small(places, width)?,
            segments: reader.small(2, width)?,
            norm: Norm::read(reader, width)?,
            layers: (0..layers)
                .map(|_| Layer::read(reader, width, inner))
                .collect::<Result<_, _>>()?,
            heads: Linear::read(reader, description.targets.len(), width)?,
            attention_heads,
            width,
            gelu: Gelu::new(),
        })
    }

    pub(super) fn logits(&self, tokens: &[u32], first_segment: usize) -> Vec<f32> {
        let mut states = self.embed(tokens, first_segment);
        for layer in &self.layers {
            states = self.layer(layer, states);
        }
        let Some(mean) = states.mean_axis(Axis(0)) else {
            return self.heads.bias.to_vec();
        };
        (self.heads.weights.dot(&mean) + &self.heads.bias).to_vec()
    }

    fn embed(&self, tokens: &[u32], first_segment: usize) -> Array2<f32> {
        let mut states = Array2::zeros((tokens.len(), self.width));
        for (at, (mut state, &token)) in states.rows_mut().into_iter().zip(tokens).enumerate() {
            let word = usize::try_from(token).unwrap_or(0).min(self.words.rows().saturating_sub(1));
            let segment = usize::from(at >= first_segment);
            let rows =
                self.words.row(word).zip(self.places.row(at)).zip(self.segments.row(segment));
            for (value, ((word, place), segment)) in state.iter_mut().zip(rows) {
                *value = word + place + segment;
            }
        }
        self.norm.apply(&mut states);
        states
    }

    fn layer(&self, layer: &Layer, states: Array2<f32>) -> Array2<f32> {
        let qkv = layer.qkv.apply(&states.view());
        let attended = self.attend(&qkv);
        let mut states = states + layer.out.apply(&attended.view());
        layer.norm1.apply(&mut states);
        let mut inner = layer.up.apply(&states.view());
        inner.mapv_inplace(|value| self.gelu.of(value));
        let mut states = states + layer.down.apply(&inner.view());
        layer.norm2.apply(&mut states);
        states
    }

    /// Every token looks at every token, once for each head.
    fn attend(&self, qkv: &Array2<f32>) -> Array2<f32> {
        let size = self.width / self.attention_heads;
        let mut out = Array2::zeros((qkv.nrows(), self.width));
        #[expect(clippy::cast_precision_loss, reason = "the size of a head is small")]
        let scale = 1.0 / (size as f32).sqrt();
        for head in 0..self.attention_heads {
            let part = |which: usize| {
                let start = which * self.width + head * size;
                qkv.slice_axis(Axis(1), Slice::from(start..start + size))
            };
            let mut weights = part(0).dot(&part(1).t());
            weights *= scale;
            weights.rows_mut().into_iter().for_each(softmax);
            let columns = Slice::from(head * size..(head + 1) * size);
            out.slice_axis_mut(Axis(1), columns).assign(&weights.dot(&part(2)));
        }
        out
    }
}

impl Layer {
    fn read(reader: &mut Reader<'_>, width: usize, inner: usize) -> Result<Self, ClassifyError> {
        Ok(Self {
            qkv: Linear::read(reader, 3 * width, width)?,
            out: Linear::read(reader, width, width)?,
            norm1: Norm::read(reader, width)?,
            up: Linear::read(reader, inner, width)?,
            down: Linear::read(reader, width, inner)?,
            norm2: Norm::read(reader, width)?,
        })
    }
}

impl Linear {
    fn read(reader: &mut Reader<'_>, to: usize, from: usize) -> Result<Self, ClassifyError> {
        let weights = reader.matrix(to, from)?;
        Ok(Self { weights, bias: reader.vector(to)? })
    }

    fn apply(&self, states: &ArrayView2<'_, f32>) -> Array2<f32> {
        states.dot(&self.weights.t()) + &self.bias
    }
}

impl Norm {
    fn read(reader: &mut Reader<'_>, width: usize) -> Result<Self, ClassifyError> {
        Ok(Self { weight: reader.vector(width)?, bias: reader.vector(width)? })
    }

    fn apply(&self, states: &mut Array2<f32>) {
        for mut state in states.rows_mut() {
            let mean = state.mean().unwrap_or(0.0);
            state -= mean;
            let variance = state.dot(&state) / as_count(state.len());
            state *= 1.0 / (variance + EPSILON).sqrt();
            state *= &self.weight;
            state += &self.bias;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the width of a state is small")]
fn as_count(length: usize) -> f32 {
    length.max(1) as f32
}
