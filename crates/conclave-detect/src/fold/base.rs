//! The plain form of a text: compatibility folding, lower case, no invisible characters.

use super::Folded;
use super::chars::{Invisible, invisible, is_emoji, is_mark, is_unspaced, is_word};
use super::confusable::{latin_lookalike, plain_latin};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_canonical;

/// Texts beyond this many scalar values are read up to here.
pub(crate) const SCALARS_MAX: usize = 16 * 1024 * 1024;

/// Folds a text.
pub(crate) fn fold(text: &str) -> Folded {
    let numbered = text.chars().take(SCALARS_MAX).zip(0u32..);
    Folder::new(text.len()).run(numbered)
}

/// Folds characters that carry their own origins.
pub(crate) fn fold_numbered(chars: &[(char, u32)], total: u32) -> Folded {
    let mut folded = Folder::new(chars.len()).run(chars.iter().copied());
    folded.total = folded.total.max(total);
    folded
}

/// The state of one fold.
struct Folder {
    out: Folded,
    /// Where the word being written starts, in bytes of the output.
    word_at: usize,
    word: WordShape,
    /// The last visible character, for emoji sequences.
    last: char,
    /// How often the last letter was repeated.
    repeats: u32,
    /// How many words of one character stand in a row.
    singles: u32,
    /// An invisible character was just passed over after a Latin letter.
    hidden: bool,
    /// A sign stands right after a character of the word.
    pending: bool,
    /// Latin letters were seen, and words made of look-alikes alone.
    seen: (bool, bool),
}

/// What kinds of characters the current word holds.
#[derive(Clone, Copy, Default)]
struct WordShape {
    latin: bool,
    lookalike: bool,
    digit: bool,
    sign: bool,
    chars: u32,
}

impl Folder {
    fn new(bytes: usize) -> Self {
        Self {
            out: Folded::with_capacity(bytes),
            word_at: 0,
            word: WordShape::default(),
            last: ' ',
            repeats: 0,
            singles: 0,
            hidden: false,
            pending: false,
            seen: (false, false),
        }
    }

    fn run(mut self, chars: impl Iterator<Item = (char, u32)>) -> Folded {
        let mut chars = chars.peekable();
        let mut segment = String::new();
        while let Some((c, origin)) = chars.next() {
            self.out.total = origin.saturating_add(1);
            if c.is_ascii() && !c.is_ascii_control() {
                self.visible(c.to_ascii_lowercase(), origin);
            } else if let Some(kind) = invisible(c) {
                self.skip(kind);
            } else if is_plain_kana_or_han(c) && !chars.peek().is_some_and(|&(n, _)| is_mark(n)) {
                self.visible(c, origin);
            } else {
                segment.clear();
                segment.push(c);
                while let Some((mark, at)) = chars.next_if(|&(next, _)| is_mark(next)) {
                    self.out.total = at.saturating_add(1);
                    if segment.len() < 32 {
                        segment.push(mark);
                    }
                }
                self.segment(&segment, origin);
            }
        }
        self.end_word();
        self.note_singles();
        self.out.traces.repairable |= self.seen.0 && self.seen.1;
        self.out
    }

    /// A character outside the fast paths, with the marks that sit on it.
    fn segment(&mut self, segment: &str, origin: u32) {
        for c in segment.nfkc() {
            for lower in c.to_lowercase() {
                if let Some(kind) = invisible(lower) {
                    self.skip(kind);
                } else if !(0x0300..=0x036F).contains(&u32::from(lower)) {
                    self.visible(plain(lower), origin);
                }
            }
        }
    }

    fn skip(&mut self, kind: Invisible) {
        match kind {
            Invisible::Tag if self.last != '🏴' => self.out.traces.tags += 1,
            Invisible::ZeroWidth | Invisible::Bidi | Invisible::Control => {
                self.hidden = self.last.is_ascii_alphabetic();
            }
            _ => {}
        }
    }

    fn visible(&mut self, c: char, origin: u32) {
        let c = match c {
            '\t' | '\u{0b}' | '\u{0c}' | '\u{a0}' | '-' | '_' | '‐'..='―' | '−' => ' ',
            '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
            '‘' | '’' | '´' | 'ʼ' | '`' => '\'',
            '“' | '”' | '„' => '"',
            _ => c,
        };
        if c == ' ' || c == '\n' || (!c.is_ascii() && c.is_whitespace()) {
            self.space(c == '\n', origin);
        } else if is_word(c) {
            self.letter(c, origin);
        } else {
            self.other(c, origin);
        }
        self.last = c;
        self.hidden = false;
    }

    fn letter(&mut self, c: char, origin: u32) {
        if self.hidden && c.is_ascii_alphabetic() {
            self.out.traces.hidden_in_words += 1;
        }
        self.word.sign |= std::mem::take(&mut self.pending);
        if c == self.last && c.is_ascii_alphabetic() {
            self.repeats += 1;
            self.out.traces.repairable |= self.repeats >= 2;
        } else {
            self.repeats = 0;
        }
        self.word.latin |= c.is_ascii_alphabetic();
        self.word.digit |= c.is_ascii_digit();
        if !c.is_ascii() && latin_lookalike(c).is_some() {
            self.word.lookalike = true;
        }
        self.word.chars += 1;
        self.out.push(c, origin);
    }

    fn other(&mut self, c: char, origin: u32) {
        self.repeats = 0;
        if is_unspaced(c) {
            self.word.sign |= std::mem::take(&mut self.pending);
            self.word.chars += 1;
        } else {
            // A sign right after a letter may be a letter in disguise, or may cut a word in two; a
            // few may also stand for the first letter.
            let after_letter = self.word.chars > 0 && (is_sign(c) || is_emoji(c));
            self.pending |= after_letter || matches!(c, '$' | '@');
        }
        self.end_script_run();
        self.out.push(c, origin);
        self.word_at = self.out.text.len();
    }

    fn space(&mut self, line: bool, origin: u32) {
        self.end_word();
        self.note_singles();
        self.word = WordShape::default();
        self.pending = false;
        self.repeats = 0;
        let blank = if line { '\n' } else { ' ' };
        match self.out.text.as_bytes().last() {
            None | Some(b'\n') => {}
            Some(b' ') if line => {
                let at = self.out.text.len() - 1;
                self.out.truncate(at);
                self.out.push('\n', origin);
            }
            Some(b' ') => {}
            Some(_) => self.out.push(blank, origin),
        }
        self.word_at = self.out.text.len();
    }

    /// Looks-alikes are only replaced within one run of letters that also holds Latin ones.
    fn end_script_run(&mut self) {
        if self.word.latin && self.word.lookalike {
            self.replace_lookalikes();
        }
        self.seen.0 |= self.word.latin;
        self.seen.1 |= self.word.lookalike && !self.word.latin;
        self.word.lookalike = false;
    }

    fn end_word(&mut self) {
        self.end_script_run();
        let mixed = self.word.latin && self.word.digit;
        self.out.traces.repairable |= mixed || (self.word.sign && self.word.chars > 1);
    }

    fn note_singles(&mut self) {
        match self.word.chars {
            1 => self.singles += 1,
            0 => {}
            _ => self.singles = 0,
        }
        self.out.traces.repairable |= self.singles >= 3;
    }

    fn replace_lookalikes(&mut self) {
        let tail = self.out.text.split_off(self.word_at);
        let origins = self.out.starts.split_off(self.word_at);
        for (byte, c) in tail.char_indices() {
            let plain = latin_lookalike(c).unwrap_or(c);
            let origin = origins.get(byte).copied().unwrap_or_default();
            self.out.push(plain, origin);
        }
        self.out.traces.mixed_words += 1;
    }
}

fn is_plain_kana_or_han(c: char) -> bool {
    matches!(u32::from(c), 0x3041..=0x3096 | 0x30A1..=0x30FE | 0x4E00..=0x9FFF)
}

/// Signs that stand for letters, or are put between letters to hide a word.
fn is_sign(c: char) -> bool {
    matches!(
        c,
        '@' | '$'
            | '!'
            | '|'
            | '*'
            | '+'
            | '#'
            | '.'
            | '~'
            | '^'
            | '='
            | '/'
            | '\\'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '<'
            | '>'
            | '€'
            | '£'
            | '%'
            | '&'
            | ':'
            | ';'
            | '·'
            | '•'
            | '"'
    )
}

/// The letter without its diacritics or its fancy dress.
fn plain(c: char) -> char {
    if let Some(plain) = plain_latin(c) {
        return plain;
    }
    if !matches!(u32::from(c), 0x00C0..=0x024F | 0x1E00..=0x1EFF) {
        return c;
    }
    let mut first = None;
    decompose_canonical(c, |part| {
        first.get_or_insert(part);
    });
    first.unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_is_brought_to_one_plain_form() {
        for (given, plain) in [
            ("Hello,   World", "hello, world"),
            ("ＫＩＬＬ", "kill"),
            ("k\u{200b}i\u{00ad}ll", "kill"),
            ("ki\u{0301}ll", "kill"),
            ("кill", "kill"),
            ("Кит и кот", "кит и кот"),
            ("ｶﾞﾝ", "ガン"),
            ("が", "が"),
            ("self-harm_now", "self harm now"),
            ("don’t", "don't"),
            ("a\n\n\nb", "a\nb"),
            ("𝓀𝒾𝓁𝓁 ⓑⓞⓜⓑ 🅺", "kill bomb k"),
            ("café Ångström", "cafe angstrom"),
            ("", ""),
        ] {
            assert_eq!(fold(given).text, plain, "{given:?}");
        }
    }

    #[test]
    fn every_place_maps_back() {
        let text = "Ａ\u{200b}B  ｶﾞ c";
        let folded = fold(text);
        assert_eq!(folded.text, "ab ガ c");
        assert_eq!(folded.span(0, 1), (0, 2));
        assert_eq!(folded.span(1, 2), (2, 3));
        let at = folded.text.find('ガ').unwrap();
        assert_eq!(folded.span(at, at + 3), (5, 7));
        assert_eq!(folded.span(folded.text.len() - 1, folded.text.len()), (8, 9));
    }

    #[test]
    fn what_hides_leaves_a_trace_and_ordinary_writing_does_not() {
        assert_eq!(fold("k\u{200b}ill").traces.hidden_in_words, 1);
        assert_eq!(fold("bоmb").traces.mixed_words, 1);
        assert!(fold("k1ll").traces.repairable);
        assert!(fold("k.i.l.l").traces.repairable);
        assert!(fold("a b c d").traces.repairable);
        for text in
            ["An ordinary sentence, isn't it? Yes.", "Привет, мир", "今日は、いい天気。", "👨‍👩‍👧"]
        {
            assert_eq!(fold(text).traces, super::super::Traces::default(), "{text}");
        }
    }
}
