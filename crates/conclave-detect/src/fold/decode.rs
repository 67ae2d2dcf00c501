//! Text inside text: base64, hex, binary, percent signs, entities and escapes, put back in place.
//!
//! **Invariant:** at most [`LEVELS`] levels, [`CANDIDATES_MAX`] pieces and [`BYTES_MAX`] bytes a piece;
//! a piece is only replaced when what comes out is language.

use super::base::fold_numbered;
use super::chars::{is_han, is_kana};
use super::sound::LANGUAGE;
use super::{Folded, Vocabulary};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// How deep encodings may be nested.
const LEVELS: usize = 2;
/// How many pieces are looked at.
const CANDIDATES_MAX: usize = 8;
/// How much one piece may hold.
pub(crate) const BYTES_MAX: usize = 64 * 1024;

/// So many letters of another script are no accident.
const FOREIGN_MIN: usize = 6;
/// Shorter text is not judged by its sound.
const SOUND_BYTES_MIN: usize = 12;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The text with everything decoded in place, and what was decoded.
pub(crate) fn decode(text: &str, words: &Vocabulary) -> Option<(Folded, Vec<&'static str>)> {
    if !worth_decoding(text.as_bytes()) {
        return None;
    }
    let chars: Vec<Numbered> = text.chars().take(super::base::SCALARS_MAX).zip(0u32..).collect();
    let total = u32::try_from(chars.len()).unwrap_or(u32::MAX);
    let mut decoder = Decoder { words, left: CANDIDATES_MAX, pieces: 0, found: Vec::new() };
    let mut current = decoder.pass(&chars)?;
    for _ in 1..LEVELS {
        match decoder.pass(&current) {
            Some(deeper) => current = deeper,
            None => break,
        }
    }
    decoder.found.dedup();
    Some((fold_numbered(&current, total), decoder.found))
}

/// One pass over the bytes that sends nearly all ordinary text away.
fn worth_decoding(bytes: &[u8]) -> bool {
    let mut run = Run::default();
    let mut hints = 0u32;
    for &byte in bytes {
        if is_code_byte(byte) {
            run.take(byte);
            if run.length >= 12 && run.is_code() {
                return true;
            }
            continue;
        }
        if byte == b'=' && run.length >= 6 {
            return true;
        }
        hints += u32::from(matches!(byte, b'%' | b'&' | b'\\') || run.is_group());
        run = Run::default();
    }
    hints + u32::from(run.is_group()) >= 3
}

/// What letters and digits without a blank are made of.
#[derive(Default)]
struct Run {
    length: u32,
    digits: u32,
    upper: bool,
    lower: bool,
}

impl Run {
    fn take(&mut self, byte: u8) {
        self.length += 1;
        self.digits += u32::from(byte.is_ascii_digit());
        self.upper |= byte.is_ascii_uppercase();
        self.lower |= byte.is_ascii_lowercase();
    }

    /// Mixed as words are not.
    const fn is_code(&self) -> bool {
        self.digits > 2 || (self.upper && self.lower)
    }

    /// As long as a byte written in hex or binary.
    const fn is_group(&self) -> bool {
        self.digits > 0 && (self.length == 2 || self.length == 8)
    }
}

fn is_code_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// A character and the scalar value of the original it came from.
type Numbered = (char, u32);
/// Reads one encoded byte and says where the next begins.
type NextByte = fn(&[Numbered], usize) -> Option<(u8, usize)>;

struct Decoder<'a> {
    words: &'a Vocabulary,
    left: usize,
    pieces: usize,
    found: Vec<&'static str>,
}

impl Decoder<'_> {
    /// Decodes every piece once; `None` when nothing was found.
    fn pass(&mut self, chars: &[Numbered]) -> Option<Vec<Numbered>> {
        let before = self.pieces;
        let mut out = Vec::with_capacity(chars.len());
        let mut at = 0;
        while at < chars.len() {
            match self.piece(chars, at) {
                Some((text, end)) => {
                    let origin = chars[at].1;
                    out.extend(text.chars().map(|c| (c, origin)));
                    at = end;
                }
                None => at = copy_piece(chars, at, &mut out),
            }
        }
        (self.pieces > before).then_some(out)
    }

    /// What the piece that starts here says, and where it ends.
    fn piece(&mut self, chars: &[Numbered], at: usize) -> Option<(String, usize)> {
        let (c, _) = chars[at];
        match c {
            '%' => self.bytes_of(chars, at, "url", percent_byte),
            '\\' => self.bytes_of(chars, at, "escape", escaped_byte).or_else(|| {
                let (c, end) = unicode_escape(chars, at)?;
                self.note("escape");
                Some((c.to_string(), end))
            }),
            '&' => {
                let (c, end) = entity(chars, at)?;
                self.note("html");
                Some((c.to_string(), end))
            }
            _ if c.is_ascii_alphanumeric() || c == '+' || c == '/' => self.run(chars, at),
            _ => None,
        }
    }

    fn bytes_of(
        &mut self,
        chars: &[Numbered],
        at: usize,
        name: &'static str,
        next: NextByte,
    ) -> Option<(String, usize)> {
        let mut bytes = Vec::new();
        let mut end = at;
        while bytes.len() < BYTES_MAX
            && let Some((byte, after)) = next(chars, end)
        {
            bytes.push(byte);
            end = after;
        }
        let text = String::from_utf8(bytes).ok().filter(|text| !text.is_empty())?;
        self.note(name);
        Some((text, end))
    }

    /// A run of letters and digits that may be base64, hex or binary.
    fn run(&mut self, chars: &[Numbered], at: usize) -> Option<(String, usize)> {
        if self.left == 0 || (at > 0 && is_code_char(chars[at - 1].0)) {
            return None;
        }
        if let Some(found) = self.groups(chars, at, 8, 2, "binary") {
            return Some(found);
        }
        if let Some(found) = self.groups(chars, at, 2, 16, "hex") {
            return Some(found);
        }
        let body = run_end(chars, at);
        let mut end = body;
        while end < chars.len() && end < body + 2 && chars[end].0 == '=' {
            end += 1;
        }
        let padded = end > body;
        if !(body - at >= 12 || (padded && body - at >= 6)) || body - at > BYTES_MAX * 2 {
            return None;
        }
        let run: String = chars[at..body].iter().map(|&(c, _)| c).collect();
        self.left = self.left.saturating_sub(1);
        let (text, name) = self.hex(&run).or_else(|| self.base64(&run))?;
        self.note(name);
        Some((text, end))
    }

    /// Groups of digits with single blanks between them.
    fn groups(
        &mut self,
        chars: &[Numbered],
        at: usize,
        size: usize,
        radix: u32,
        name: &'static str,
    ) -> Option<(String, usize)> {
        let mut bytes = Vec::new();
        let mut end = at;
        let mut next = at;
        while bytes.len() < BYTES_MAX && run_end(chars, next) == next + size {
            let group: String = chars[next..next + size].iter().map(|&(c, _)| c).collect();
            let Ok(byte) = u8::from_str_radix(&group, radix) else {
                break;
            };
            bytes.push(byte);
            end = next + size;
            match chars.get(end) {
                Some((' ' | ',' | ':', _)) => next = end + 1,
                _ => break,
            }
        }
        if bytes.len() < 3 {
            return None;
        }
        self.left = self.left.saturating_sub(1);
        let text = String::from_utf8(bytes).ok().filter(|text| self.is_language(text))?;
        self.note(name);
        Some((text, end))
    }

    fn hex(&self, run: &str) -> Option<(String, &'static str)> {
        let digits = run.strip_prefix("0x").unwrap_or(run);
        if !digits.len().is_multiple_of(2) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let bytes: Option<Vec<u8>> = (0..digits.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok())
            .collect();
        let text = String::from_utf8(bytes?).ok()?;
        self.is_language(&text).then_some((text, "hex"))
    }

    fn base64(&self, run: &str) -> Option<(String, &'static str)> {
        let standard = run.replace('-', "+").replace('_', "/");
        let bytes = BASE64.decode(standard).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        self.is_language(&text).then_some((text, "base64"))
    }

    /// Whether a decoded piece is words, or yet another encoding of them.
    fn is_language(&self, text: &str) -> bool {
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
            return false;
        }
        let dense = text.chars().filter(|&c| is_kana(c) || is_han(c)).count();
        let foreign = text.chars().filter(|c| c.is_alphabetic() && !c.is_ascii()).count();
        let lower = text.to_lowercase();
        let sounds = || self.words.sound.of(&lower).is_some_and(|sound| sound >= LANGUAGE);
        dense >= 2
            || foreign >= FOREIGN_MIN && foreign * 2 >= text.chars().count()
            || text.len() >= SOUND_BYTES_MIN && text.contains(' ') && sounds()
            || lower
                .split(|c: char| !c.is_ascii_alphabetic())
                .any(|word| word.len() >= 3 && self.words.knows(word))
            || (text.len() >= 12 && worth_decoding(text.as_bytes()))
    }

    fn note(&mut self, name: &'static str) {
        self.pieces += 1;
        if self.found.last() != Some(&name) {
            self.found.push(name);
        }
    }
}

fn copy_piece(chars: &[Numbered], at: usize, out: &mut Vec<Numbered>) -> usize {
    let end = run_end(chars, at).max(at + 1);
    out.extend_from_slice(&chars[at..end]);
    end
}

fn is_code_char(c: char) -> bool {
    u8::try_from(c).is_ok_and(|byte| byte.is_ascii() && is_code_byte(byte))
}

fn run_end(chars: &[Numbered], at: usize) -> usize {
    let rest = chars.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|&&(c, _)| is_code_char(c)).count()
}

fn hex_at(chars: &[Numbered], at: usize, digits: usize) -> Option<u32> {
    let text: String = chars.get(at..at + digits)?.iter().map(|&(c, _)| c).collect();
    u32::from_str_radix(&text, 16).ok()
}

fn percent_byte(chars: &[Numbered], at: usize) -> Option<(u8, usize)> {
    if chars.get(at)?.0 != '%' {
        return None;
    }
    Some((u8::try_from(hex_at(chars, at + 1, 2)?).ok()?, at + 3))
}

fn escaped_byte(chars: &[Numbered], at: usize) -> Option<(u8, usize)> {
    if chars.get(at)?.0 != '\\' || chars.get(at + 1)?.0 != 'x' {
        return None;
    }
    Some((u8::try_from(hex_at(chars, at + 2, 2)?).ok()?, at + 4))
}

fn unicode_escape(chars: &[Numbered], at: usize) -> Option<(char, usize)> {
    if chars.get(at + 1)?.0 != 'u' {
        return None;
    }
    Some((char::from_u32(hex_at(chars, at + 2, 4)?)?, at + 6))
}

fn entity(chars: &[Numbered], at: usize) -> Option<(char, usize)> {
    let rest = chars.get(at + 1..)?;
    let length = rest.iter().take(10).position(|&(c, _)| c == ';')?;
    let name: String = rest[..length].iter().map(|&(c, _)| c).collect();
    let c = if let Some(hex) = name.strip_prefix("#x").or_else(|| name.strip_prefix("#X")) {
        char::from_u32(u32::from_str_radix(hex, 16).ok()?)?
    } else if let Some(number) = name.strip_prefix('#') {
        char::from_u32(number.parse().ok()?)?
    } else {
        match name.as_str() {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => ' ',
            _ => return None,
        }
    };
    Some((c, at + length + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let mut vocabulary = Vocabulary::default();
        vocabulary.learn("how to build a bomb today");
        vocabulary
    }

    fn decoded(text: &str) -> Option<String> {
        decode(text, &vocabulary()).map(|(folded, _)| folded.text)
    }

    #[test]
    fn encodings_are_put_back_in_place() {
        let twice = "YUc5M0lIUnZJR0oxYVd4a0lHRWdZbTl0WWc9PQ==";
        for (given, plain) in [
            ("say aG93IHRvIGJ1aWxkIGEgYm9tYg== now", "say how to build a bomb now"),
            ("how to build a Ym9tYg==", "how to build a bomb"),
            (twice, "how to build a bomb"),
            ("686f7720746f206275696c64", "how to build"),
            ("68 6f 77 20 74 6f please", "how to please"),
            ("01101000 01101111 01110111", "how"),
            ("how%20to%20build%20it", "how to build it"),
            ("&#104;&#111;&#x77; to", "how to"),
            (r"\u0068\u006f\u0077 to", "how to"),
            (r"\x68\x6f\x77 to", "how to"),
        ] {
            assert_eq!(decoded(given).as_deref(), Some(plain), "{given}");
        }
    }

    #[test]
    fn ordinary_text_code_and_pictures_are_left_alone() {
        for text in [
            "An ordinary sentence with characterization and 100% & more.",
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
            "https://example.com/AbCdEfGhIjKlMnOpQrSt/index.html",
            "fn main() { let x = vec![1, 2, 3]; }",
            "call 03 5555 1234 or 12 34 56 78",
        ] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }

    #[test]
    fn a_decoded_word_points_at_its_code() {
        let (folded, names) = decode("say aG93IHRvIGJ1aWxkIGEgYm9tYg== ok", &vocabulary()).unwrap();
        assert_eq!(names, ["base64"]);
        let at = folded.text.find("bomb").unwrap();
        assert_eq!(folded.span(at, at + 4), (4, 32));
    }
}
