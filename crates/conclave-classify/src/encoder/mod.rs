//! The multilingual encoder with its heads: the second tier, which reads texts in sixteen languages.
//!
//! Its network is that of universal-sentence-encoder-multilingual v3, fine-tuned; `train/encoder.py` writes the
//! file.
//!
//! **Invariant:** one text costs at most [`SentenceEncoder::most_pieces`] pieces, however long it is.
//! **Invariant:** the table of vectors is read where it lies: only the rows of pieces that occur are touched.

mod network;
mod pieces;

use crate::ClassifyError;
use crate::norm::head_and_tail;
use crate::weights::Reader;
use network::{Encoded, Network};
use pieces::Pieces;

const MARK: &[u8; 8] = b"CNCLE1\x00\x01";
/// Of a longer text the start and the end are cut into pieces; more than these bytes would be left out anyway.
const TEXT_BYTES_MAX: usize = 6000;
/// Six bits a number: four numbers take three bytes.
const PACKED: usize = 4;

/// What stands before and after the pieces of a text.
#[derive(Clone, Copy)]
struct Marks {
    start: u32,
    end: u32,
}

/// The encoder, ready to read.
pub struct SentenceEncoder {
    pieces: Pieces,
    table: Table,
    network: Network,
    marks: Marks,
    said_pieces: usize,
    judged_pieces: usize,
    text_heads: Vec<String>,
    reply_heads: Vec<String>,
}

impl std::fmt::Debug for SentenceEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentenceEncoder")
            .field("text_heads", &self.text_heads)
            .field("reply_heads", &self.reply_heads)
            .finish_non_exhaustive()
    }
}

/// What the file says of itself.
#[derive(serde::Deserialize)]
struct Description {
    width: usize,
    branch: usize,
    inner: usize,
    peaks: usize,
    hidden: usize,
    chunks: usize,
    epsilon: f32,
    /// What a vector of length one is multiplied by before the heads see it.
    spread: f32,
    start: u32,
    end: u32,
    said_pieces: usize,
    judged_pieces: usize,
    text_heads: Vec<String>,
    reply_heads: Vec<String>,
}

/// The vectors of the pieces, six bits a number; a piece's scale and offset go by its number modulo the chunks.
struct Table {
    width: usize,
    rows: usize,
    scales: Vec<f32>,
    offsets: Vec<f32>,
    packed: &'static [u8],
}

impl SentenceEncoder {
    /// Reads the weights; the table and the vocabulary stay where they are.
    ///
    /// # Errors
    /// When the bytes are not a whole model.
    pub fn parse(bytes: &'static [u8]) -> Result<Self, ClassifyError> {
        let mut reader = Reader::new(bytes, MARK)?;
        let description: Description = serde_json::from_slice(reader.block()?)
            .map_err(|error| ClassifyError::Description(error.to_string()))?;
        if description.width == 0 || description.branch == 0 || description.chunks == 0 {
            return Err(ClassifyError::Description("a size is zero".into()));
        }
        let pieces = Pieces::read(&mut reader)?;
        let table = Table::read(&mut reader, &description)?;
        let network = Network::read(&mut reader, &description)?;
        reader.end()?;
        Ok(Self {
            pieces,
            table,
            network,
            marks: Marks { start: description.start, end: description.end },
            said_pieces: description.said_pieces,
            judged_pieces: description.judged_pieces,
            text_heads: description.text_heads,
            reply_heads: description.reply_heads,
        })
    }

    /// The names of what it says of a text, in order.
    #[must_use]
    pub fn text_heads(&self) -> &[String] {
        &self.text_heads
    }

    /// The names of what it says of a reply, in order.
    #[must_use]
    pub fn reply_heads(&self) -> &[String] {
        &self.reply_heads
    }

    /// The most pieces that are read of a text.
    #[must_use]
    pub const fn most_pieces(&self) -> usize {
        self.judged_pieces + 2
    }

    /// The numbers of the pieces of a text, all of them.
    #[must_use]
    pub fn cut(&self, text: &str) -> Vec<u32> {
        self.pieces.cut(text)
    }

    /// What a text says, as a vector of length one: texts that mean the same are near each other, in any of its
    /// languages.
    ///
    /// # Errors
    /// When the network computed something that is no number.
    pub fn vector(&self, text: &str) -> Result<Vec<f32>, ClassifyError> {
        Ok(self.encode(text, self.judged_pieces)?.vector)
    }

    /// The logit of each head for a text.
    ///
    /// # Errors
    /// When the network computed something that is no number.
    pub fn text_logits(&self, text: &str) -> Result<Vec<f32>, ClassifyError> {
        finite(self.network.text_logits(&self.encode(text, self.judged_pieces)?)?)
    }

    /// The logit of each head for a reply to what was said.
    ///
    /// # Errors
    /// When the network computed something that is no number.
    pub fn reply_logits(&self, said: &str, reply: &str) -> Result<Vec<f32>, ClassifyError> {
        let said = self.encode(said, self.said_pieces)?;
        let reply = self.encode(reply, self.judged_pieces)?;
        finite(self.network.reply_logits(&said, &reply)?)
    }

    fn encode(&self, text: &str, most: usize) -> Result<Encoded, ClassifyError> {
        let cut = head_and_tail(self.pieces.cut(&shortened(text)), most);
        let marked = std::iter::once(self.marks.start).chain(cut).chain([self.marks.end]);
        let mut vectors = Vec::with_capacity((most + 2) * self.table.width);
        for piece in marked {
            self.table.append(piece, &mut vectors);
        }
        self.network.encode(&vectors)
    }
}

impl Table {
    fn read(
        reader: &mut Reader<'static>,
        description: &Description,
    ) -> Result<Self, ClassifyError> {
        let Description { width, chunks, .. } = *description;
        let rows = reader.number()?;
        let scales = reader.floats(chunks)?;
        let offsets = reader.floats(chunks)?;
        let size = rows.checked_mul(width).filter(|size| size % PACKED == 0);
        let packed = reader.take(size.ok_or(ClassifyError::WrongSize)? / PACKED * 3)?;
        Ok(Self { width, rows, scales, offsets, packed })
    }

    /// Appends the vector of a piece; a number beyond the table stands for what is not known.
    fn append(&self, piece: u32, out: &mut Vec<f32>) {
        let row = usize::try_from(piece).ok().filter(|row| *row < self.rows).unwrap_or(0);
        let chunk = row % self.scales.len();
        let (scale, offset) = (self.scales[chunk], self.offsets[chunk]);
        let bytes = self.width / PACKED * 3;
        let packed = self.packed.get(row * bytes..(row + 1) * bytes).unwrap_or_default();
        let value = |six_bits: u8| f32::from(six_bits & 0x3f) * scale + offset;
        for &[a, b, c] in packed.as_chunks::<3>().0 {
            out.extend([a, a >> 6 | b << 2, b >> 4 | c << 4, c >> 2].map(value));
        }
    }
}

fn finite(logits: Vec<f32>) -> Result<Vec<f32>, ClassifyError> {
    let is_finite = logits.iter().all(|logit| logit.is_finite());
    if is_finite { Ok(logits) } else { Err(ClassifyError::NotANumber) }
}

/// The start and the end of a text of which not all pieces would be read.
fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= TEXT_BYTES_MAX {
        return text.into();
    }
    let head = text.floor_char_boundary(TEXT_BYTES_MAX * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - TEXT_BYTES_MAX / 3);
    format!("{} {}", &text[..head], &text[tail..]).into()
}
