//! The encoder: embeddings, layers of attention, the mean of the last states, heads.

use super::Description;
use super::activation::{Gelu, softmax};
use crate::ClassifyError;
use crate::norm::{Norm, add};
use crate::product::SmallDense;
use crate::weights::{Reader, Small};
use ndarray::{Array2, ArrayView2, Axis, Slice};

/// Keeps the root of a variance away from zero.
const EPSILON: f32 = 1e-12;

pub(super) struct Encoder {
    words: Small<'static>,
    places: Small<'static>,
    segments: Small<'static>,
    norm: Norm,
    layers: Vec<Layer>,
    heads: SmallDense,
    attention_heads: usize,
    width: usize,
    gelu: Gelu,
}

struct Layer {
    qkv: SmallDense,
    out: SmallDense,
    norm1: Norm,
    up: SmallDense,
    down: SmallDense,
    norm2: Norm,
}

impl Encoder {
    pub(super) fn read(
        reader: &mut Reader<'static>,
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
            norm: Norm::read(reader, width, EPSILON)?,
            layers: (0..layers)
                .map(|_| Layer::read(reader, width, inner))
                .collect::<Result<_, _>>()?,
            heads: SmallDense::read(reader, width, description.targets.len())?,
            attention_heads,
            width,
            gelu: Gelu::new(),
        })
    }

    pub(super) fn logits(
        &self,
        tokens: &[u32],
        first_segment: usize,
    ) -> Result<Vec<f32>, ClassifyError> {
        let mut states = self.embed(tokens, first_segment);
        for layer in &self.layers {
            self.pass(layer, &mut states)?;
        }
        let mut mean = vec![0.0; self.width];
        #[expect(clippy::cast_precision_loss, reason = "some hundred tokens")]
        let share = 1.0 / tokens.len().max(1) as f32;
        for state in states.chunks_exact(self.width) {
            for (mean, value) in mean.iter_mut().zip(state) {
                *mean += value * share;
            }
        }
        self.heads.apply(&mean)
    }

    fn embed(&self, tokens: &[u32], first_segment: usize) -> Vec<f32> {
        let mut states = Vec::with_capacity(tokens.len() * self.width);
        for (at, &token) in tokens.iter().enumerate() {
            let word = usize::try_from(token).unwrap_or(0).min(self.words.rows().saturating_sub(1));
            let segment = usize::from(at >= first_segment);
            let rows =
                self.words.row(word).zip(self.places.row(at)).zip(self.segments.row(segment));
            states.extend(rows.map(|((word, place), segment)| word + place + segment));
        }
        self.norm.apply(&mut states);
        states
    }

    fn pass(&self, layer: &Layer, states: &mut [f32]) -> Result<(), ClassifyError> {
        let attended = self.attend(&layer.qkv.apply(states)?)?;
        add(states, &layer.out.apply(&attended)?);
        layer.norm1.apply(states);
        let mut inner = layer.up.apply(states)?;
        for value in &mut inner {
            *value = self.gelu.of(*value);
        }
        add(states, &layer.down.apply(&inner)?);
        layer.norm2.apply(states);
        Ok(())
    }

    /// Every token looks at every token, once for each head.
    fn attend(&self, qkv: &[f32]) -> Result<Vec<f32>, ClassifyError> {
        let tokens = qkv.len() / (3 * self.width);
        let qkv = ArrayView2::from_shape((tokens, 3 * self.width), qkv)
            .map_err(|_| ClassifyError::WrongSize)?;
        let size = self.width / self.attention_heads;
        let mut out = Array2::zeros((tokens, self.width));
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
        Ok(out.into_raw_vec_and_offset().0)
    }
}

impl Layer {
    fn read(
        reader: &mut Reader<'static>,
        width: usize,
        inner: usize,
    ) -> Result<Self, ClassifyError> {
        Ok(Self {
            qkv: SmallDense::read(reader, width, 3 * width)?,
            out: SmallDense::read(reader, width, width)?,
            norm1: Norm::read(reader, width, EPSILON)?,
            up: SmallDense::read(reader, width, inner)?,
            down: SmallDense::read(reader, inner, width)?,
            norm2: Norm::read(reader, width, EPSILON)?,
        })
    }
}
