//! Cutting a text into the pieces of a SentencePiece unigram model: the likeliest way to put it together from
//! the pieces of a vocabulary.
//!
//! **Invariant:** any text gives pieces, in time that grows with its length times the longest piece; nothing is
//! built at start, the vocabulary is searched where it lies.

use crate::ClassifyError;
use crate::weights::Reader;
use std::ops::Range;

/// What stands for a blank inside a piece.
const BLANK: &str = "\u{2581}";
/// What no piece stands for.
const UNKNOWN: u32 = 0;
/// By how much a character without a piece is less likely than the least likely piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// The vocabulary and the way to write texts that it was made with.
pub(super) struct Pieces {
    spelling: Spelling,
    vocabulary: Vocabulary,
    unknown_score: f32,
}

impl Pieces {
    pub(super) fn read(reader: &mut Reader<'static>) -> Result<Self, ClassifyError> {
        let spelling = Spelling::parse(reader.block()?)?;
        let vocabulary = Vocabulary::read(reader)?;
        let least = vocabulary.scores.iter().map(|score| f32::from_le_bytes(*score));
        let unknown_score = least.fold(f32::INFINITY, f32::min) - UNKNOWN_PENALTY;
        Ok(Self { spelling, vocabulary, unknown_score })
    }

    /// The numbers of the pieces of a text.
    pub(super) fn cut(&self, text: &str) -> Vec<u32> {
        let text = self.spelling.normalise(text);
        let ways = self.likeliest_ways(&text);
        let mut pieces = Vec::new();
        let mut end = text.len();
        while let Some(way) = ways.get(end).filter(|_| end > 0) {
            // What is unknown and stands together counts once.
            if way.piece != UNKNOWN || pieces.last() != Some(&UNKNOWN) {
                pieces.push(way.piece);
            }
            end = way.start;
        }
        if pieces.is_empty() {
            pieces.push(UNKNOWN);
        }
        pieces.reverse();
        pieces
    }

    /// For every place of the text, the last piece of the likeliest way to get there.
    fn likeliest_ways(&self, text: &str) -> Vec<Way> {
        let mut ways = vec![Way::default(); text.len() + 1];
        if let Some(first) = ways.first_mut() {
            first.score = 0.0;
        }
        for (start, character) in text.char_indices() {
            let so_far = ways[start].score;
            let mut has_single = false;
            self.vocabulary.each_beginning(&text.as_bytes()[start..], |length, number, score| {
                has_single |= length == character.len_utf8();
                ways[start + length].offer(so_far + score, start, number);
            });
            if !has_single {
                let end = start + character.len_utf8();
                ways[end].offer(so_far + self.unknown_score, start, UNKNOWN);
            }
        }
        ways
    }
}

/// The last step of the likeliest way to a place.
#[derive(Clone, Copy)]
struct Way {
    score: f32,
    start: usize,
    piece: u32,
}

impl Default for Way {
    fn default() -> Self {
        Self { score: f32::NEG_INFINITY, start: 0, piece: UNKNOWN }
    }
}

impl Way {
    fn offer(&mut self, score: f32, start: usize, piece: u32) {
        if score > self.score {
            *self = Self { score, start, piece };
        }
    }
}

/// All pieces in the order of their bytes, so that those with a common beginning lie together.
struct Vocabulary {
    /// Where each piece begins in `bytes`, and where the last one ends.
    starts: &'static [[u8; 4]],
    numbers: &'static [[u8; 4]],
    scores: &'static [[u8; 4]],
    bytes: &'static [u8],
}

impl Vocabulary {
    fn read(reader: &mut Reader<'static>) -> Result<Self, ClassifyError> {
        let count = reader.number()?;
        let starts = reader.words(count.checked_add(1).ok_or(ClassifyError::WrongSize)?)?;
        let numbers = reader.words(count)?;
        let scores = reader.words(count)?;
        let bytes = reader.block()?;
        let ascending = starts.is_sorted_by_key(|start| u32::from_le_bytes(*start));
        let ends = starts.last().map(|end| as_index(*end)) == Some(bytes.len());
        if ascending && ends {
            Ok(Self { starts, numbers, scores, bytes })
        } else {
            Err(ClassifyError::WrongSize)
        }
    }

    fn piece(&self, at: usize) -> &'static [u8] {
        let start = self.starts.get(at).map_or(0, |start| as_index(*start));
        let end = self.starts.get(at + 1).map_or(start, |end| as_index(*end));
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Tells of every piece that the text begins with, from the shortest to the longest: its length, its number
    /// and its score.
    fn each_beginning(&self, text: &[u8], mut tell: impl FnMut(usize, u32, f32)) {
        let mut alike = 0..self.numbers.len();
        for (depth, byte) in text.iter().enumerate() {
            alike = self.narrowed(alike, depth, *byte);
            if alike.is_empty() {
                return;
            }
            // The piece that ends here comes before all that go on.
            if self.piece(alike.start).len() == depth + 1
                && let (Some(number), Some(score)) =
                    (self.numbers.get(alike.start), self.scores.get(alike.start))
            {
                tell(depth + 1, u32::from_le_bytes(*number), f32::from_le_bytes(*score));
            }
        }
    }

    /// The part of a run of pieces alike up to `depth` that goes on with this byte.
    fn narrowed(&self, alike: Range<usize>, depth: usize, byte: u8) -> Range<usize> {
        let first = |wanted: Option<u8>| {
            let (mut low, mut high) = (alike.start, alike.end);
            while low < high {
                let middle = low.midpoint(high);
                if self.piece(middle).get(depth).copied() < wanted {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let start = first(Some(byte));
        let end = byte.checked_add(1).map_or(alike.end, |next| first(Some(next)));
        start..end
    }
}

fn as_index(bytes: [u8; 4]) -> usize {
    usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX)
}

/// How the model wants a text spelt: a double-array trie from sequences of bytes to what replaces them.
struct Spelling {
    units: Vec<u32>,
    replacements: &'static [u8],
}

impl Spelling {
    fn parse(block: &'static [u8]) -> Result<Self, ClassifyError> {
        let mut rest = block;
        let size = rest.split_off(..4).ok_or(ClassifyError::WrongSize)?;
        let size = usize::try_from(u32::from_le_bytes(
            size.try_into().map_err(|_| ClassifyError::WrongSize)?,
        ))
        .map_err(|_| ClassifyError::WrongSize)?;
        let (trie, replacements) = rest.split_at_checked(size).ok_or(ClassifyError::WrongSize)?;
        let (units, _) = trie.as_chunks::<4>();
        Ok(Self {
            units: units.iter().map(|unit| u32::from_le_bytes(*unit)).collect(),
            replacements,
        })
    }

    /// The text as the model wants it: replaced, with one mark for any run of blanks and one before it.
    fn normalise(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + BLANK.len());
        let mut after_blank = true;
        let mut rest = text;
        while !rest.is_empty() {
            let (replacement, length) = self.replacement(rest);
            rest = rest.get(length..).unwrap_or_default();
            for character in replacement.chars() {
                if character != ' ' {
                    if after_blank {
                        out.push_str(BLANK);
                    }
                    out.push(character);
                }
                after_blank = character == ' ';
            }
        }
        out
    }

    /// What the longest known beginning of a text is replaced by, and its length; a character that is not known
    /// stays as it is.
    fn replacement<'a>(&self, text: &'a str) -> (&'a str, usize)
    where
        'static: 'a,
    {
        let mut longest = None;
        let mut node = self.units.first().map_or(0, |root| offset(*root));
        for (depth, byte) in text.bytes().enumerate() {
            node ^= usize::from(byte);
            let Some(&unit) = self.units.get(node) else {
                break;
            };
            if unit & 0x8000_00ff != u32::from(byte) {
                break;
            }
            node ^= offset(unit);
            if unit & 0x100 != 0 {
                let value = self.units.get(node).map_or(0, |leaf| leaf & 0x7fff_ffff);
                longest = Some((value, depth + 1));
            }
        }
        let known = longest.and_then(|(value, length)| Some((self.text_at(value)?, length)));
        known.unwrap_or_else(|| {
            let length = text.chars().next().map_or(1, char::len_utf8);
            (text.get(..length).unwrap_or_default(), length)
        })
    }

    /// A replacement ends at the first zero.
    fn text_at(&self, start: u32) -> Option<&'static str> {
        let rest = self.replacements.get(usize::try_from(start).ok()?..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

const fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 0x200) >> 6)) as usize
}
