//! A small transformer encoder with linear heads: the second, slower tier.
//!
//! **Invariant:** one text costs at most [`Transformer::most_tokens`] tokens, however long it is.

mod activation;
mod encoder;
mod wordpiece;

use crate::ClassifyError;
use crate::norm::head_and_tail;
use crate::weights::Reader;
use encoder::Encoder;
use wordpiece::WordPieces;

const MARK: &[u8; 8] = b"CNCLT2\x00\x01";

/// The encoder with its vocabulary, ready to read.
pub struct Transformer {
    pieces: WordPieces,
    encoder: Encoder,
    outputs: Vec<String>,
    said_tokens: usize,
    judged_tokens: usize,
}

impl std::fmt::Debug for Transformer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transformer").field("outputs", &self.outputs).finish_non_exhaustive()
    }
}

/// What the file says of itself.
#[derive(serde::Deserialize)]
struct Description {
    layers: usize,
    width: usize,
    attention_heads: usize,
    inner: usize,
    targets: Vec<String>,
    said_tokens: usize,
    judged_tokens: usize,
}

impl Transformer {
    /// Reads the weights.
    ///
    /// # Errors
    /// When the bytes are not a whole model.
    pub fn parse(bytes: &'static [u8]) -> Result<Self, ClassifyError> {
        let mut reader = Reader::new(bytes, MARK)?;
        let description: Description = serde_json::from_slice(reader.block()?)
            .map_err(|error| ClassifyError::Description(error.to_string()))?;
        let vocabulary =
            std::str::from_utf8(reader.block()?).map_err(|_| ClassifyError::NotAModel)?;
        let pieces = WordPieces::new(vocabulary)?;
        let encoder = Encoder::read(&mut reader, &description)?;
        reader.end()?;
        Ok(Self {
            pieces,
            encoder,
            outputs: description.targets,
            said_tokens: description.said_tokens,
            judged_tokens: description.judged_tokens,
        })
    }

    /// The names of the outputs, in order.
    #[must_use]
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// The most tokens that are read of one text with what was said before it.
    #[must_use]
    pub const fn most_tokens(&self) -> usize {
        self.said_tokens + self.judged_tokens + 3
    }

    /// The logit of each output for a text, or for a reply to what was said.
    ///
    /// # Errors
    /// When it computed something that is no number.
    pub fn logits(&self, said: &str, judged: &str) -> Result<Vec<f32>, ClassifyError> {
        self.logits_of(said, self.pieces.tokens(judged))
    }

    /// The same, unless less than this share of the text is in the vocabulary: what is not was not
    /// understood.
    ///
    /// # Errors
    /// When it computed something that is no number.
    pub fn logits_if_known(
        &self,
        said: &str,
        judged: &str,
        share: f32,
    ) -> Result<Option<Vec<f32>>, ClassifyError> {
        let judged = self.pieces.tokens(judged);
        let is_known = self.pieces.known_share(&judged) >= share;
        is_known.then(|| self.logits_of(said, judged)).transpose()
    }

    fn logits_of(&self, said: &str, judged: Vec<u32>) -> Result<Vec<f32>, ClassifyError> {
        let judged = head_and_tail(judged, self.judged_tokens);
        let mut tokens = vec![self.pieces.start()];
        let mut first_segment = usize::MAX;
        if !said.is_empty() {
            tokens.extend(head_and_tail(self.pieces.tokens(said), self.said_tokens));
            tokens.push(self.pieces.end());
            first_segment = tokens.len();
        }
        tokens.extend(judged);
        tokens.push(self.pieces.end());
        let logits = self.encoder.logits(&tokens, first_segment)?;
        let is_finite = logits.iter().all(|logit| logit.is_finite());
        if is_finite { Ok(logits) } else { Err(ClassifyError::NotANumber) }
    }
}
