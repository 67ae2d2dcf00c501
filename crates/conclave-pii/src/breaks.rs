//! Owns where a text may be cut: after lines and sentences, where no finding and no token goes on.
//!
//! **Invariant:** whether a cut is safe is decided by the text before it and by a few signs after
//! it, never by what comes later. The finder keeps every value between two cuts, so that what it
//! finds before a cut is the same for every continuation of the text.
//! **Invariant:** a sentence that ends in an ordinary word can be cut as soon as the blank after it is
//! there. Prose without the end of a sentence or line is cut between two words soon after
//! [`UNCUT_BYTES_MAX`].
//! **Invariant:** every byte is looked at a fixed number of times.

use crate::text::fold_sign;

/// How much prose may go on without a cut, in bytes; then the next blank between two words in small
/// letters is one, because no number, address or token has one.
pub const UNCUT_BYTES_MAX: usize = 2_048;
/// Words of one or two letters that are no initial and no abbreviation before a full stop.
const SHORT_WORDS: &[&str] = &[
    "ah", "am", "an", "as", "at", "be", "by", "do", "go", "he", "hi", "if", "in", "is", "it", "me",
    "my", "of", "oh", "ok", "on", "or", "so", "to", "up", "us", "we",
];
/// Longer words that end in a full stop inside an address, a name or a number.
const ABBREVIATIONS: &[&str] = &[
    "apt", "ave", "avda", "bldg", "blvd", "box", "bul", "cad", "capt", "col", "cres", "ctra",
    "dept", "ext", "gen", "gov", "hon", "hwy", "jln", "krt", "lic", "messrs", "mlle", "mme", "mrs",
    "nám", "pkwy", "proc", "prof", "pte", "rev", "sen", "sgt", "sok", "sra", "srta", "ste", "str",
    "tce", "tel", "trl", "univ",
];
const KEY_BEGIN: &str = "-----BEGIN";
const KEY_END: &str = "-----END";
/// The longest last line of a private key, in bytes.
const KEY_END_BYTES_MAX: usize = 64;
/// The longest private key, in bytes.
const KEY_BYTES_MAX: usize = 16_384;

/// The last place, at most `limit`, at which a text that is still being written may be cut: everything
/// before it is final, whatever comes after. When the text has ended, all of it may leave.
///
/// ```
/// use conclave_pii::last_safe_cut;
/// let text = "I see. Write to jane@example.com. ";
/// assert_eq!(last_safe_cut(&text[..25], text.len()), 6);
/// assert_eq!(last_safe_cut(text, text.len()), 33);
/// ```
#[must_use]
pub fn last_safe_cut(text: &str, limit: usize) -> usize {
    let cuts = safe_cuts(text, false);
    let upto = cuts.partition_point(|cut| *cut <= limit);
    upto.checked_sub(1).map_or(0, |last| cuts[last])
}

/// Every cut of a text, in order. The end of a whole text is none.
pub(crate) fn safe_cuts(text: &str, is_whole: bool) -> Vec<usize> {
    let mut scanner = CutScanner { text, is_whole, cuts: Vec::new(), at: 0, keyless_until: 0 };
    while scanner.step() {}
    scanner.cuts
}

struct CutScanner<'t> {
    text: &'t str,
    /// Nothing comes after the text.
    is_whole: bool,
    cuts: Vec<usize>,
    at: usize,
    /// Before this byte no private key begins that ends.
    keyless_until: usize,
}

/// What became of a private key that begins somewhere.
enum KeyEnd {
    Ended(usize),
    /// A sign that no key holds, or more than any key has.
    Broken(usize),
    Open,
}

impl CutScanner<'_> {
    /// Goes past the next sign. Says whether there is one, and enough after it to decide.
    fn step(&mut self) -> bool {
        let Some(byte) = self.text.as_bytes().get(self.at) else { return false };
        match byte {
            b'\n' | b'.' | b'!' | b'?' | 0xe2 | 0xe3 | 0xef => match cut_at(self.text, self.at) {
                Cut::After(end) => {
                    self.cuts.push(end);
                    self.at = end;
                }
                Cut::Unknown if !self.is_whole => return false,
                Cut::Nowhere | Cut::Unknown => self.at = next_sign(self.text, self.at),
            },
            b' ' => {
                let uncut = self.at - self.cuts.last().copied().unwrap_or(0);
                if uncut > UNCUT_BYTES_MAX && is_between_words(self.text, self.at) {
                    self.cuts.push(self.at);
                }
                self.at += 1;
            }
            b'-' => return self.pass_dash(),
            _ => self.at += 1,
        }
        true
    }

    /// Goes past a dash, and past the private key that may begin with it.
    fn pass_dash(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let may_begin = self.at >= self.keyless_until;
        if may_begin && !self.is_whole && KEY_BEGIN.as_bytes().starts_with(rest) {
            return false;
        }
        if !may_begin || !rest.starts_with(KEY_BEGIN.as_bytes()) {
            self.at += 1;
            return true;
        }
        match key_end(self.text, self.at + KEY_BEGIN.len()) {
            KeyEnd::Ended(end) => self.at = end,
            KeyEnd::Broken(end) => {
                self.keyless_until = end;
                self.at += 1;
            }
            // The finder takes a key that does not end for one up to the end of the text.
            KeyEnd::Open => return false,
        }
        true
    }
}

fn next_sign(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(1, char::len_utf8)
}

fn key_end(text: &str, from: usize) -> KeyEnd {
    let rest = &text[from..text.floor_char_boundary(from + KEY_BYTES_MAX)];
    let odd = rest.find(|sign: char| !is_in_key(sign)).unwrap_or(rest.len());
    let body = &rest[..odd];
    for (at, _) in body.match_indices(KEY_END) {
        let name = &body[at + KEY_END.len()..body.floor_char_boundary(at + KEY_END_BYTES_MAX)];
        let Some(length) = name.find("-----") else { continue };
        if name[..length].contains("PRIVATE KEY") {
            return KeyEnd::Ended(from + at + KEY_END.len() + length + 5);
        }
    }
    if from + odd < text.len() { KeyEnd::Broken(from + odd) } else { KeyEnd::Open }
}

fn is_in_key(sign: char) -> bool {
    sign.is_ascii_alphanumeric()
        || sign.is_whitespace()
        || matches!(sign, '+' | '/' | '=' | ':' | ',' | '-' | '\\')
}

/// Whether a text may be cut after a sign.
enum Cut {
    After(usize),
    Nowhere,
    /// The signs that decide have not come yet.
    Unknown,
}

fn cut_at(text: &str, at: usize) -> Cut {
    let Some(sign) = text[at..].chars().next() else { return Cut::Unknown };
    let after = at + sign.len_utf8();
    match fold_sign(sign) {
        '\n' => cut_after_line(text, after),
        '.' if is_abbreviated(&text[..at]) => Cut::Nowhere,
        // A Japanese sentence needs no blank after it.
        '。' | '!' | '?' if !sign.is_ascii() => cut_after_closers(text, after, true),
        '.' | '!' | '?' | '\u{2026}' => cut_after_closers(text, after, false),
        _ => Cut::Nowhere,
    }
}

/// After the sign that ends a sentence and the brackets and quotes that close with it: before a
/// blank, or before anything where the sign alone ends it.
fn cut_after_closers(text: &str, after: usize, ends_alone: bool) -> Cut {
    let mut end = after;
    for next in text[after..].chars() {
        if next.is_whitespace() || (ends_alone && end == after && !is_closer(next)) {
            return Cut::After(end);
        }
        if !is_closer(next) {
            return Cut::Nowhere;
        }
        end += next.len_utf8();
    }
    Cut::Unknown
}

/// Whether words in small letters stand on both sides of a blank.
fn is_between_words(text: &str, blank: usize) -> bool {
    let before = text[..blank].chars().next_back();
    let after = text[blank + 1..].chars().next();
    before.is_some_and(char::is_lowercase) && after.is_some_and(char::is_lowercase)
}

fn is_closer(sign: char) -> bool {
    matches!(sign, '"' | '\'' | ')' | ']' | '*' | '”' | '’' | '」' | '』' | '）' | '】')
}

/// After a line, unless an address goes on: a number or a comma, then a postal code and a town.
fn cut_after_line(text: &str, after: usize) -> Cut {
    let line = text[..after - 1].trim_end_matches([' ', '\r']);
    let may_go_on = line.ends_with([',', '，']) || is_numbered(line);
    if !may_go_on {
        return Cut::After(after);
    }
    let mut ahead = text[after..].chars().map(fold_sign).peekable();
    ahead.next_if_eq(&' ');
    for _ in 0..2 {
        ahead.next_if(char::is_ascii_uppercase);
    }
    ahead.next_if_eq(&'-');
    let mut digits = 0;
    while digits < 5 && ahead.next_if(char::is_ascii_digit).is_some() {
        digits += 1;
    }
    if ahead.peek().is_none() {
        return Cut::Unknown;
    }
    if digits < 4 || ahead.next() != Some(' ') {
        return Cut::After(after);
    }
    match ahead.next() {
        None => Cut::Unknown,
        Some(town) if town.is_uppercase() => Cut::Nowhere,
        Some(_) => Cut::After(after),
    }
}

/// Whether a line ends in a house number: `3` or `3a`.
fn is_numbered(line: &str) -> bool {
    let line = line.strip_suffix(|sign: char| sign.is_ascii_lowercase()).unwrap_or(line);
    line.chars().next_back().is_some_and(|sign| fold_sign(sign).is_ascii_digit())
}

/// Whether a word of at most two letters, in small letters, is an ordinary one.
pub(crate) fn is_short_word(word: &str) -> bool {
    SHORT_WORDS.contains(&word)
}

/// Whether the word before a full stop is an initial, a title or a part of an address.
pub(crate) fn is_abbreviated(before: &str) -> bool {
    let letters = before.chars().rev().take(7).take_while(|sign| sign.is_alphabetic());
    let word: Vec<char> = letters.collect();
    let word: String = word.into_iter().rev().flat_map(char::to_lowercase).collect();
    match word.len() {
        0 => false,
        1..=2 => !is_short_word(&word),
        _ => word.ends_with("str") || ABBREVIATIONS.contains(&word.as_str()),
    }
}
