//! Texts cut into comparable pieces: words where a language has spaces, characters where not.
//!
//! **Invariant:** a Latin word or a number inside unspaced text is one piece, as it is elsewhere;
//! otherwise a single `example.org` would pass for a phrase of ten characters.

/// How a language is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    Spaced,
    Unspaced,
}

/// A length in words, and what comes near it in characters of unspaced text.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    pub words: usize,
    pub characters: usize,
}

/// Korean has spaces, but its endings cling to words, so that it compares better by characters.
const UNSPACED: [&str; 7] = ["ja", "zh", "ko", "th", "lo", "km", "my"];

impl Script {
    /// The script of a language by its code.
    pub fn of(language: &str) -> Self {
        if UNSPACED.contains(&language) { Self::Unspaced } else { Self::Spaced }
    }

    /// The length in the pieces of this script.
    pub fn length(self, length: Length) -> usize {
        match self {
            Self::Spaced => length.words,
            Self::Unspaced => length.characters,
        }
    }

    /// The pieces of a text that was made plain.
    pub fn cut(self, plain: &str) -> Vec<&str> {
        let words = plain.split_whitespace();
        match self {
            Self::Spaced => words.collect(),
            Self::Unspaced => words.flat_map(characters).collect(),
        }
    }

    /// Pieces as they are read.
    pub fn joined(self, pieces: &[&str]) -> String {
        pieces.join(if self == Self::Spaced { " " } else { "" })
    }
}

/// The text in lower case, with one space for everything that is not part of a word. What has no
/// words at all, such as a lone emoji, is kept as it is.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_silent(*c)) {
        if is_of_word(c) {
            plain.extend(c.to_lowercase());
        } else if !plain.is_empty() && !plain.ends_with(' ') {
            plain.push(' ');
        }
    }
    plain.truncate(plain.trim_end().len());
    if plain.is_empty() { text.trim().to_owned() } else { plain }
}

/// The words of unspaced text as far as they can be told: each character, and Latin words whole.
fn characters(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let latin = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let length = if latin > 0 { latin } else { rest.chars().next()?.len_utf8() };
        let (piece, after) = rest.split_at(length);
        rest = after;
        Some(piece)
    })
}

/// Apostrophes and joiners stand inside words without parting them.
fn is_silent(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{200c}' | '\u{200d}')
}

/// Letters and digits, and the two signs of Devanagari that Unicode does not count as letters.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{93c}' | '\u{94d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_compared() {
        for (text, expected) in [
            ("  Don't -- STOP!\n(now) ", "dont stop now"),
            ("क्या हुआ?", "क्या हुआ"),
            ("うざい、消えろ。", "うざい 消えろ"),
            (" 😭 ", "😭"),
            ("", ""),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn scripts_are_cut_into_words_or_characters() {
        for (language, text, expected) in [
            ("en", "dont stop now", &["dont", "stop", "now"][..]),
            ("ja", "消 えろusb3本a", &["消", "え", "ろ", "usb3", "本", "a"]),
            ("de", "", &[]),
        ] {
            assert_eq!(Script::of(language).cut(text), expected);
        }
        assert_eq!(Script::Spaced.joined(&["a", "b"]), "a b");
        assert_eq!(Script::Unspaced.joined(&["消", "え"]), "消え");
    }
}
