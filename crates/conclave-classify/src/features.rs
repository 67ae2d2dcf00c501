//! From a folded text to the numbers of its features: hashed n-grams of words and characters.
//!
//! **Invariant:** the same text gives the same features for ever: the trained weights know them only by
//! their numbers. Whatever changes here asks for new weights.
//! **Invariant:** linear in the text, and at most [`FEATURES_MAX`] features.

/// More features than this are not looked at.
pub const FEATURES_MAX: usize = 12_000;
/// The longest word whose inner n-grams are made; longer ones are codes, not words.
const WORD_CHARS_MAX: usize = 40;

/// Whose words they are: the same word weighs differently in a request, a reply and what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// A text by itself.
    Text,
    /// A reply.
    Reply,
    /// What the reply answers.
    Asked,
}

impl Voice {
    const fn seed(self) -> u32 {
        match self {
            Self::Text => 0x9e37_79b9,
            Self::Reply => 0x85eb_ca6b,
            Self::Asked => 0xc2b2_ae35,
        }
    }
}

/// Collects the features of texts, without repetition once [`Features::finish`] has been called.
#[derive(Clone, Debug, Default)]
pub struct Features {
    numbers: Vec<u32>,
}

impl Features {
    /// Reads a folded text.
    pub fn read(&mut self, folded: &str, voice: Voice) {
        self.numbers.reserve((folded.len() * 4).min(FEATURES_MAX));
        let mut reader =
            Reader { out: &mut self.numbers, seed: voice.seed(), last: [0; 2], words: 0 };
        reader.text(folded);
    }

    /// The features, each once, in ascending order.
    #[must_use]
    pub fn finish(mut self) -> Vec<u32> {
        self.numbers.sort_unstable();
        self.numbers.dedup();
        self.numbers
    }

    /// The features, each once, in no order: what is added up needs none, and sorting is the dearer half.
    #[must_use]
    pub(crate) fn unique(mut self) -> Vec<u32> {
        let size = (self.numbers.len() * 2).next_power_of_two().max(16);
        let mut seen = vec![0_u32; size];
        let mut zero = false;
        self.numbers.retain(|&number| {
            if number == 0 {
                // Zero marks a free place, so that it has a mark of its own.
                return !std::mem::replace(&mut zero, true);
            }
            let mut at = number as usize & (size - 1);
            while seen[at] != 0 && seen[at] != number {
                at = (at + 1) & (size - 1);
            }
            std::mem::replace(&mut seen[at], number) == 0
        });
        self.numbers
    }
}

struct Reader<'a> {
    out: &'a mut Vec<u32>,
    seed: u32,
    /// The hashes of the last two words, zero at the beginning.
    last: [u32; 2],
    words: usize,
}

impl Reader<'_> {
    fn text(&mut self, folded: &str) {
        let mut unspaced: Vec<char> = Vec::new();
        for word in folded.split(' ') {
            for piece in pieces(word) {
                match piece {
                    Piece::Word(word) => self.word(word),
                    Piece::Unspaced(run) => {
                        unspaced.clear();
                        unspaced.extend(run.chars());
                        self.run(&unspaced);
                    }
                    Piece::Sign(sign) => self.push(mix(self.seed ^ 0x51, sign as u32)),
                }
            }
        }
        let length = folded.len().max(1).ilog2();
        self.push(mix(self.seed ^ 0x52, length));
    }

    fn push(&mut self, number: u32) {
        if self.out.len() < FEATURES_MAX {
            self.out.push(number);
        }
    }

    fn word(&mut self, word: &str) {
        let whole = hash(self.seed, word.bytes());
        self.push(whole);
        if self.words < 2 {
            self.push(
                mix(self.seed ^ 0x53, whole).wrapping_add(u32::try_from(self.words).unwrap_or(0)),
            );
        }
        let [before_last, last] = self.last;
        if last != 0 {
            self.push(mix(last, whole));
        }
        if before_last != 0 {
            self.push(mix(mix(before_last, last) ^ 0x54, whole));
        }
        self.last = [last, whole];
        self.words += 1;
        self.inner(word);
    }

    /// The n-grams of three to five letters of a word, its edges included.
    fn inner(&mut self, word: &str) {
        let mut letters = ['\0'; WORD_CHARS_MAX + 2];
        let mut count = 1;
        letters[0] = '<';
        for letter in word.chars() {
            if count > WORD_CHARS_MAX {
                return;
            }
            letters[count] = letter;
            count += 1;
        }
        letters[count] = '>';
        let letters = &letters[..=count];
        // The whole word with both edges is the word itself.
        for size in (3..=5).filter(|size| *size < letters.len()) {
            for gram in letters.windows(size) {
                self.push(hash_chars(self.seed ^ 0x55, gram));
            }
        }
    }

    /// The n-grams of one to four characters of a text without blanks.
    fn run(&mut self, run: &[char]) {
        for size in 1..=4 {
            for gram in run.windows(size) {
                self.push(hash_chars(self.seed ^ 0x56, gram));
            }
        }
        self.last = [0; 2];
        self.words += run.len();
    }
}

enum Piece<'a> {
    /// A word of a script that puts blanks between words.
    Word(&'a str),
    /// A run of a script that does not.
    Unspaced(&'a str),
    /// A sign that says something.
    Sign(char),
}

/// Splits what stands between two blanks.
fn pieces(word: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = word;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let kind = kind(first);
            let end = match kind {
                Kind::Sign => first.len_utf8(),
                _ => rest.find(|c| self::kind(c) != kind).unwrap_or(rest.len()),
            };
            let (piece, after) = rest.split_at(end);
            rest = after;
            match kind {
                Kind::Letter => return Some(Piece::Word(piece)),
                Kind::Unspaced => return Some(Piece::Unspaced(piece)),
                Kind::Sign if says_something(first) => return Some(Piece::Sign(first)),
                Kind::Sign => {}
            }
        }
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Unspaced,
    Sign,
}

fn kind(c: char) -> Kind {
    match c {
        '\'' | '0'..='9' | 'a'..='z' => Kind::Letter,
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{0e00}'..='\u{0eff}' => Kind::Unspaced,
        c if c.is_alphanumeric() => Kind::Letter,
        _ => Kind::Sign,
    }
}

fn says_something(c: char) -> bool {
    matches!(c, '?' | '!' | '`' | '{' | '[' | '<' | '#' | '*' | '"' | '。' | '、') || !c.is_ascii()
}

/// Mixes two numbers into one.
const fn mix(a: u32, b: u32) -> u32 {
    let mut h = a ^ b.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    h = h.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h
}

fn hash(seed: u32, bytes: impl Iterator<Item = u8>) -> u32 {
    let spread = bytes.fold(seed, |h, byte| (h ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // A hash is never zero: zero says that there is no word before.
    mix(seed, spread).max(1)
}

fn hash_chars(seed: u32, chars: &[char]) -> u32 {
    let spread = chars.iter().fold(seed, |h, c| (h ^ u32::from(*c)).wrapping_mul(0x0100_0193));
    mix(seed, spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, voice: Voice) -> Vec<u32> {
        let mut features = Features::default();
        features.read(text, voice);
        features.finish()
    }

    #[test]
    fn numbers_stay_what_they_are() {
        // The trained weights know features by these numbers.
        let first = of("kill the process?", Voice::Text);
        assert_eq!(first.len(), 42);
        assert_eq!(first.iter().fold(0u32, |sum, one| sum.wrapping_add(*one)), GOLDEN);
        assert_ne!(first, of("kill the process?", Voice::Reply));
    }

    const GOLDEN: u32 = 888_910_867;

    #[test]
    fn the_same_features_come_with_and_without_order() {
        for text in ["", "a", "kill the process? kill it, kill it!", "もう死にたい、もう"]
        {
            let mut features = Features { numbers: vec![0, 7, 0] };
            features.read(text, Voice::Text);
            let mut unique = features.clone().unique();
            unique.sort_unstable();
            assert_eq!(unique, features.finish(), "{text}");
        }
    }

    #[test]
    fn scripts_without_blanks_are_read_in_characters() {
        let shared = |a: &str, b: &str| {
            let (a, b) = (of(a, Voice::Text), of(b, Voice::Text));
            a.iter().filter(|one| b.contains(one)).count()
        };
        assert!(shared("死にたい", "もう死にたい") >= 8);
        assert!(shared("死にたい", "今日はいい天気") <= 3);
    }

    #[test]
    fn endless_text_is_bounded() {
        assert!(of(&"word ".repeat(100_000), Voice::Text).len() <= FEATURES_MAX);
        assert!(of(&"x".repeat(1_000_000), Voice::Text).len() <= FEATURES_MAX);
    }
}
