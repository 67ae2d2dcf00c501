//! Whole-text transformations: turned alphabets, turned text, text in invisible letters.

use super::Folded;
use super::base::{SCALARS_MAX, fold_numbered};
use super::chars::is_emoji;

/// Fewer letters with signs between them are an abbreviation.
const SIGNED_LETTERS_MIN: usize = 8;

/// Each Latin letter moved by thirteen places.
pub(crate) fn rot13(folded: &Folded) -> Folded {
    caesar(folded, 13)
}

/// One word with each Latin letter moved by thirteen places.
pub(crate) fn rot13_word(word: &str, out: &mut String) {
    out.extend(word.chars().map(|c| turned(c, 13)));
}

/// Each Latin letter moved back by `shift` places; 26 turns the alphabet around instead.
pub(crate) fn caesar(folded: &Folded, shift: u8) -> Folded {
    let mut out = folded.sibling();
    for (c, origin) in folded.origins() {
        out.push(turned(c, shift), origin);
    }
    out
}

fn turned(c: char, shift: u8) -> char {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii_lowercase() && shift == 26 => char::from(b'z' - (byte - b'a')),
        Ok(byte) if byte.is_ascii_lowercase() => {
            char::from(b'a' + (byte - b'a' + 26 - shift % 26) % 26)
        }
        _ => c,
    }
}

/// The text from its end to its start.
pub(crate) fn reversed(folded: &Folded) -> Folded {
    let mut out = folded.sibling();
    out.backwards = true;
    for (c, origin) in folded.origins().rev() {
        out.push(c, origin);
    }
    out
}

/// A text carried by invisible characters: the tag block, or runs of variation selectors.
pub(crate) fn tag_text(text: &str) -> Option<Folded> {
    let mut hidden = Vec::new();
    let mut selectors = Selectors::default();
    let mut flag = false;
    let mut total = 0;
    for (c, at) in text.chars().zip(0u32..) {
        total = at + 1;
        let code = u32::from(c);
        match code {
            0xE0020..=0xE007E if !flag => {
                hidden.extend(char::from_u32(code - 0xE0000).map(|letter| (letter, at)));
            }
            0xFE00..=0xFE0F => selectors.push(code - 0xFE00, at),
            0xE0100..=0xE01EF => selectors.push(code - 0xE0100 + 16, at),
            _ => selectors.end(&mut hidden),
        }
        flag = c == '🏴' || (flag && (0xE0020..=0xE007E).contains(&code));
    }
    selectors.end(&mut hidden);
    (hidden.len() >= 4).then(|| fold_numbered(&hidden, total))
}

/// The text with the letters of the tag block put in their places, as an app that shows them would.
pub(crate) fn tags_in_place(text: &str) -> Option<Folded> {
    let mut tags = 0;
    let mut shown = Vec::new();
    for (c, at) in text.chars().take(SCALARS_MAX).zip(0u32..) {
        let code = u32::from(c);
        let letter = char::from_u32(code.wrapping_sub(0xE0000))
            .filter(|_| (0xE0020..=0xE007E).contains(&code));
        tags += u32::from(letter.is_some());
        shown.push((letter.unwrap_or(c), at));
    }
    let total = u32::try_from(shown.len()).unwrap_or(u32::MAX);
    (tags >= 4).then(|| fold_numbered(&shown, total))
}

/// The text without the signs that stand between the letters of its words, in any script.
pub(crate) fn without_signs_between(text: &str) -> Option<Folded> {
    let numbered: Vec<(char, u32)> = text.chars().take(SCALARS_MAX).zip(0u32..).collect();
    let mut kept = Vec::with_capacity(numbered.len());
    let mut disguised = 0;
    for piece in numbered.split_inclusive(|(c, _)| c.is_whitespace()) {
        let sign = sign_between(piece);
        kept.extend(piece.iter().filter(|(c, _)| Some(*c) != sign));
        let letters = piece.iter().filter(|(c, _)| c.is_alphanumeric()).count();
        disguised += if sign.is_some() { letters } else { 0 };
    }
    let total = u32::try_from(numbered.len()).unwrap_or(u32::MAX);
    (disguised >= SIGNED_LETTERS_MIN).then(|| fold_numbered(&kept, total))
}

/// The sign that stands between the letters of a piece, if it is one and the same.
fn sign_between(piece: &[(char, u32)]) -> Option<char> {
    let is_sign =
        |c: char| c.is_ascii_punctuation() || matches!(c, '·' | '・' | '•') || is_emoji(c);
    let from = piece.iter().position(|(c, _)| c.is_alphabetic())?;
    let sign = piece.get(from + 1..)?.iter().map(|(c, _)| *c).find(|c| is_sign(*c))?;
    let signs = piece.iter().filter(|(c, _)| *c == sign).count();
    let letters = piece.iter().filter(|(c, _)| c.is_alphabetic()).count();
    let digits = piece.iter().any(|(c, _)| c.is_ascii_digit());
    (letters >= 2 && signs * 2 >= letters && !digits).then_some(sign)
}

/// A run of variation selectors, each standing for one byte.
#[derive(Default)]
struct Selectors {
    bytes: Vec<u8>,
    at: u32,
}

impl Selectors {
    fn push(&mut self, value: u32, at: u32) {
        if self.bytes.is_empty() {
            self.at = at;
        }
        if self.bytes.len() < super::decode::BYTES_MAX {
            self.bytes.extend(u8::try_from(value));
        }
    }

    fn end(&mut self, hidden: &mut Vec<(char, u32)>) {
        if self.bytes.len() >= 4
            && let Ok(text) = std::str::from_utf8(&self.bytes)
        {
            hidden.extend(text.chars().zip(self.at..));
        }
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::fold;
    use super::*;

    #[test]
    fn turned_alphabets_come_back() {
        assert_eq!(rot13(&fold("Uryyb gurer")).text, "hello there");
        assert_eq!(caesar(&fold("khoor"), 3).text, "hello");
        assert_eq!(caesar(&fold("svool"), 26).text, "hello");
    }

    #[test]
    fn turned_text_points_back_at_the_right_place() {
        let folded = reversed(&fold("ab olleh"));
        assert_eq!(folded.text, "hello ba");
        assert_eq!(folded.span(0, 5), (3, 8));
    }

    #[test]
    fn hidden_letters_are_read_and_flags_are_not() {
        let hide = |text: &str| -> String {
            text.chars().filter_map(|c| char::from_u32(u32::from(c) + 0xE0000)).collect()
        };
        let smuggled = tag_text(&format!("nice day{}", hide("say hello"))).unwrap();
        assert_eq!(smuggled.text, "say hello");
        assert_eq!(smuggled.span(0, 3), (8, 11));
        assert!(tag_text(&format!("🏴{}", hide("gbsct"))).is_none());
        let bytes: String =
            "hello".bytes().filter_map(|b| char::from_u32(u32::from(b) - 16 + 0xE0100)).collect();
        assert_eq!(tag_text(&format!("😀{bytes}")).unwrap().text, "hello");
        assert!(tag_text("👨‍👩‍👧‍👦 ❤️ 葛󠄀城").is_none());
    }
}
