//! Redaction of whole texts: what identifies is replaced, tokens that stand there already stay.

use crate::finder::Finder;
use crate::kind::{Found, is_identifying};
use crate::tokens::{Tokens, redact};

/// The longest token, in letters, and the longest number in one.
const TOKEN_LETTERS_MAX: usize = 48;
const TOKEN_DIGITS_MAX: usize = 4;

/// Replaces what identifies people.
pub struct Redactor<'a> {
    finder: &'a Finder,
}

impl<'a> Redactor<'a> {
    /// With this finder.
    #[must_use]
    pub const fn new(finder: &'a Finder) -> Self {
        Self { finder }
    }

    /// A text with tokens in place of what identifies somebody; `None` where nothing does.
    #[must_use]
    pub fn redact_text(&self, text: &str, tokens: &mut Tokens) -> Option<String> {
        self.redact_unless(text, tokens, &|found, _| !is_identifying(found))
    }

    /// The same, but for what `keeps` lets stay.
    #[must_use]
    pub fn redact_unless(
        &self,
        text: &str,
        tokens: &mut Tokens,
        keeps: &dyn Fn(&Found, &str) -> bool,
    ) -> Option<String> {
        let letters: Vec<char> = text.chars().collect();
        let known = token_places(&letters);
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        let mut is_changed = false;
        for place in self.finder.find(text) {
            let whole: String = letters.get(place.start..place.end)?.iter().collect();
            if keeps(&place, &whole) {
                continue;
            }
            out.extend(letters.get(at..place.start)?);
            at = place.end;
            for (from, to, is_token) in parts(&known, place.start, place.end) {
                let value: String = letters.get(from..to)?.iter().collect();
                if is_token || !value.contains(char::is_alphanumeric) {
                    out.push_str(&value);
                    continue;
                }
                let whole = Found { start: 0, end: to - from, ..place };
                out.push_str(&redact(&value, &[whole], tokens));
                is_changed = true;
            }
        }
        out.extend(letters.get(at..)?);
        is_changed.then_some(out)
    }
}

/// Where tokens stand: a name in capitals and a short number, which identify nobody.
fn token_places(letters: &[char]) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for (from, _) in letters.iter().enumerate().filter(|(_, letter)| **letter == '[') {
        let reach = letters.len().min(from + TOKEN_LETTERS_MAX);
        let end = letters[from..reach].iter().position(|letter| *letter == ']');
        let Some(end) = end.map(|end| from + end + 1) else { continue };
        let inner: String = letters[from + 1..end - 1].iter().collect();
        let Some((label, number)) = inner.rsplit_once('_') else { continue };
        let is_label = label.bytes().all(|sign| sign.is_ascii_uppercase() || sign == b'_');
        let is_number = number.bytes().all(|sign| sign.is_ascii_digit());
        let is_short = (1..=TOKEN_DIGITS_MAX).contains(&number.len());
        if !label.is_empty() && is_label && is_number && is_short {
            places.push((from, end));
        }
    }
    places
}

/// A place, cut where tokens stand in it; says of each part whether it is of a token.
fn parts(tokens: &[(usize, usize)], from: usize, to: usize) -> Vec<(usize, usize, bool)> {
    let mut parts = Vec::new();
    let mut at = from;
    for (start, end) in tokens.iter().filter(|(start, end)| *start < to && *end > from) {
        let (start, end) = ((*start).max(at), (*end).min(to));
        parts.extend((at < start).then_some((at, start, false)));
        parts.push((start, end, true));
        at = end;
    }
    parts.extend((at < to).then_some((at, to, false)));
    parts
}

/// Says up to where a text that is still being written may leave without cutting a finding or a token.
#[derive(Clone, Copy, Debug, Default)]
pub struct SafeCut;

impl SafeCut {
    /// Everything before this byte is final whatever comes after.
    #[must_use]
    pub fn end(self, text: &str) -> usize {
        let is_open = |sign: char| sign.is_alphanumeric() || "@._-+()[]/ ".contains(sign);
        let tail = text.char_indices().rev().take_while(|(_, sign)| is_open(*sign));
        let tail: Vec<_> = tail.collect();
        let first = tail.iter().rev().find(|(_, sign)| sign.is_numeric() || "@[".contains(*sign));
        first.map_or(text.len(), |(at, _)| {
            text[..*at].rfind(char::is_whitespace).map_or(0, |space| space + 1)
        })
    }
}
