//! Owns the labels of speakers in transcripts: `Mara Lopez: ...`, `[1] Mara: ...`, `田中さん：`.
//!
//! **Invariant:** a label is read from its own line only. Headings, times, web addresses, members
//! of JSON and lines of code are none.

use crate::breaks::is_abbreviated;
use std::ops::Range;

/// The longest label, in bytes.
const LABEL_BYTES_MAX: usize = 96;
/// The longest remark in brackets after a name, in bytes.
const REMARK_BYTES_MAX: usize = 48;

/// What stands before the colon of a line, where it may be somebody who speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// Where the name stands in the text.
    pub(crate) name: Range<usize>,
    /// Where what is said begins.
    pub(crate) speech: Range<usize>,
    /// A number in brackets or a time stands beside it, as only transcripts have.
    pub(crate) is_counted: bool,
    /// A bullet or bold letters: as likely an entry of a list.
    pub(crate) is_decorated: bool,
}

/// The labels of a text, in order; those in blocks of code are left out.
pub(crate) fn labels_outside_code(text: &str) -> Vec<Label> {
    let mut is_code = false;
    let mut labels = labels(text);
    let mut fences = text.match_indices("```").map(|(at, _)| at).peekable();
    labels.retain(|label| {
        while fences.next_if(|at| *at < label.name.start).is_some() {
            is_code = !is_code;
        }
        !is_code
    });
    labels
}

/// The labels of a text, in order.
pub(crate) fn labels(text: &str) -> Vec<Label> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let label = label(line.trim_end(), start);
        start += line.len();
        label
    });
    lines.flatten().collect()
}

/// What is left of a line, and where that is.
struct LineRest<'t> {
    text: &'t str,
    at: usize,
}

impl LineRest<'_> {
    fn skip(&mut self, bytes: usize) {
        self.text = &self.text[bytes..];
        self.at += bytes;
    }

    fn skip_all(&mut self, signs: &[char]) -> bool {
        let length = self.text.len() - self.text.trim_start_matches(signs).len();
        self.skip(length);
        length > 0
    }

    /// Goes past a remark in brackets; gives what stands inside.
    fn skip_brackets(&mut self) -> Option<&str> {
        let close = match self.text.chars().next()? {
            '(' => ')',
            '[' => ']',
            '（' => '）',
            '<' => '>',
            _ => return None,
        };
        let open = self.text.chars().next().map_or(0, char::len_utf8);
        let length = self.text.find(close).filter(|end| *end <= REMARK_BYTES_MAX)?;
        let inside = &self.text[open..length];
        self.at += length + close.len_utf8();
        self.text = &self.text[length + close.len_utf8()..];
        Some(inside)
    }
}

fn label(line: &str, start: usize) -> Option<Label> {
    let mut rest = LineRest { text: line, at: start };
    rest.skip_all(&[' ', '\t', '\u{3000}', '>']);
    let mut is_decorated = rest.skip_all(&['-', '•', '・', '*', ' ', '_']);
    is_decorated |= skip_list_number(&mut rest);
    let mut is_counted = false;
    if rest.text.starts_with(['(', '[', '<', '（']) {
        is_counted = is_count(rest.skip_brackets()?);
        rest.skip_all(&[' ', '\t']);
    }
    is_counted |= skip_time(&mut rest);
    is_decorated |= rest.skip_all(&['*', '_']);
    let length = name_length(rest.text);
    let name = rest.at..rest.at + length;
    rest.skip(length);
    is_decorated |= rest.skip_all(&['*', '_']);
    rest.skip_all(&[' ', '\u{3000}']);
    if let Some(remark) = rest.skip_brackets() {
        is_counted |= is_count(remark);
        rest.skip_all(&[' ', '\u{3000}', '*', '_']);
    }
    is_counted |= skip_time(&mut rest);
    let colon = rest.text.chars().next().filter(|sign| matches!(sign, ':' | '：'))?;
    rest.skip(colon.len_utf8());
    let closed = rest.skip_all(&['*']);
    let next = rest.text.chars().next();
    // `https://`, `std::fs` and `key:value` have no blank after their colon.
    let is_apart = next.is_none_or(|sign| sign.is_whitespace() || sign as u32 >= 0x2010);
    if length == 0 || !(is_apart || closed || colon == '：') {
        return None;
    }
    rest.skip_all(&[' ', '\t', '\u{3000}']);
    let speech = rest.at..rest.at + rest.text.len();
    Some(Label { name, speech, is_counted, is_decorated })
}

/// Goes past the number of an entry in a list, which says nothing about speakers.
fn skip_list_number(rest: &mut LineRest<'_>) -> bool {
    let after = rest.text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let digits = rest.text.len() - after.len();
    let is_number = digits > 0 && (after.starts_with(". ") || after.starts_with(") "));
    if is_number {
        rest.skip(digits + 2);
    }
    is_number
}

/// A number or a time, as stands beside the names of a transcript.
fn is_count(remark: &str) -> bool {
    let signs = |sign: char| sign.is_ascii_digit() || matches!(sign, ':' | '.' | ' ' | '-' | '>');
    remark.contains(|sign: char| sign.is_ascii_digit()) && remark.chars().all(signs)
}

/// Goes past a time such as `00:12:03`.
fn skip_time(rest: &mut LineRest<'_>) -> bool {
    let signs = |sign: char| !(sign.is_ascii_digit() || matches!(sign, ':' | '.' | ','));
    let length = rest.text.find(signs).unwrap_or(rest.text.len());
    let time = rest.text[..length].trim_end_matches(':');
    let is_time = time.contains(':') && time.starts_with(|sign: char| sign.is_ascii_digit());
    if is_time {
        rest.skip(time.len());
        rest.skip_all(&[' ', '\t', '-']);
    }
    is_time
}

/// How many bytes could be a name: letters, and what stands between them in one.
fn name_length(text: &str) -> usize {
    let goes_on = |at: usize, sign: char| match sign {
        '.' => is_abbreviated(&text[..at]),
        ' ' | '\'' | '’' | '-' | '・' | 'ー' | '々' | '\u{3000}' => true,
        '\u{300}'..='\u{36f}' => true,
        _ => sign.is_alphabetic(),
    };
    let end = text.char_indices().find(|(at, sign)| !goes_on(*at, *sign));
    let end = end.map_or(text.len(), |(at, _)| at);
    let name = text[..end].trim_end_matches([' ', '\u{3000}', '-', '.']);
    if end <= LABEL_BYTES_MAX { name.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_from_the_start_of_a_line_to_its_colon() {
        for (line, name) in [
            ("Mara Lopez: we moved in June", Some("Mara Lopez")),
            ("[1] Mara: we moved", Some("Mara")),
            ("Maria-José O'Neill (00:12:03): yes", Some("Maria-José O'Neill")),
            ("[00:12:03] Mara: yes", Some("Mara")),
            ("00:12:03 Mara Lopez: yes", Some("Mara Lopez")),
            ("Mara 00:12:03: yes", Some("Mara")),
            ("**Mara Lopez:** yes", Some("Mara Lopez")),
            ("- **Mara**: yes", Some("Mara")),
            ("> Mara: yes", Some("Mara")),
            ("Dr. Jonas Weber: yes", Some("Dr. Jonas Weber")),
            ("田中さん：はい", Some("田中さん")),
            ("田中 明子:はい", Some("田中 明子")),
            ("ジョン・スミス（四十歳）：はい", Some("ジョン・スミス")),
            ("https://example.org/x", None),
            ("std::fs::read(path)", None),
            ("\"speaker\": \"Mara\"", None),
            ("key:value", None),
            ("I asked Will. Then Mara: hello", None),
            ("10:30 we met", None),
            ("At 10:30 we met", None),
            ("if x { Foo::new() }", None),
            ("", None),
            (": nothing", None),
        ] {
            let found = labels(line).first().map(|label| line[label.name.clone()].to_owned());
            assert_eq!(found.as_deref(), name, "{line}");
        }
    }

    #[test]
    fn lines_of_code_have_no_labels() {
        let text = "Mara: look\n```\nMara: str\n```\nJon: yes";
        let found = labels_outside_code(text);
        let names: Vec<&str> = found.iter().map(|one| &text[one.name.clone()]).collect();
        assert_eq!(names, ["Mara", "Jon"]);
    }

    #[test]
    fn a_number_in_brackets_or_a_time_counts_and_the_number_of_a_list_does_not() {
        for (line, counted) in
            [("[1] Mara: yes", true), ("Mara (00:12): yes", true), ("Mara: yes", false)]
        {
            assert_eq!(labels(line)[0].is_counted, counted, "{line}");
        }
        let entry = &labels("1. Mara: yes")[0];
        assert!(entry.is_decorated && !entry.is_counted);
    }
}
