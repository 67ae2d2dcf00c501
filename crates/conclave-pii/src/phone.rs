//! Owns what a telephone number looks like in the ways people really type it.
//!
//! **Invariant:** bare digits count only where their beginning is reserved for mobile phones or a
//! word near them speaks of a telephone. Dates, versions, amounts and card numbers are refused
//! first.

use crate::kind::Kind;
use crate::patterns::{Gate, Row, Span};
use crate::text::Cue;

/// Patterns of telephone numbers, for the table of all patterns.
pub(crate) const PHONES: &[Row] = &[(
    Kind::Phone,
    Gate::Digit,
    r"(?i)(?:\+ ?|\()?\d(?:[ .\-/()]{0,3}\d){5,16}(?: ?(?:x|ext\.?|extension|内線) ?\d{1,6})?",
    phone,
)];

/// The parts of a proposal.
struct Number<'t> {
    span: Span<'t>,
    /// Without an extension.
    body: &'t str,
    digits: Vec<u8>,
    /// Lengths of the runs of digits.
    groups: Vec<usize>,
    has_extension: bool,
}

impl<'t> Number<'t> {
    fn new(span: Span<'t>) -> Self {
        let whole = span.as_str();
        let cut = whole.find(|sign: char| sign.is_alphabetic()).unwrap_or(whole.len());
        let body = whole[..cut].trim_end();
        let runs = body.split(|sign: char| !sign.is_ascii_digit());
        Self {
            span,
            body,
            digits: body.bytes().filter(u8::is_ascii_digit).collect(),
            groups: runs.map(str::len).filter(|length| *length > 0).collect(),
            has_extension: cut < whole.len(),
        }
    }

    fn starts(&self, prefixes: &[&str]) -> bool {
        prefixes.iter().any(|prefix| self.digits.starts_with(prefix.as_bytes()))
    }

    fn separators(&self) -> impl Iterator<Item = char> {
        self.body.chars().filter(|sign| !sign.is_ascii_digit())
    }

    fn uses_only(&self, sign: char) -> bool {
        self.groups.len() > 1 && self.separators().all(|one| one == sign)
    }
}

fn phone(span: Span<'_>) -> Option<f32> {
    let number = Number::new(span);
    let told = span.near(Cue::Phone);
    if !span.is_free() || is_something_else(&number) {
        return None;
    }
    if number.body.starts_with('+') {
        return matches!(number.digits.len(), 8..=15).then_some(0.95);
    }
    let shape = national(&number);
    match (shape, told || number.has_extension) {
        (Some(confidence), true) => Some((confidence + 0.1).min(0.98)),
        (Some(_), false) if span.text.before(Cue::Order, span.start, 14) => None,
        (Some(confidence), false) => Some(confidence),
        (None, _) if span.text.before(Cue::Order, span.start, 20) => None,
        (None, true) => {
            matches!(number.digits.len(), 7..=14).then_some(0.7).or_else(|| short(&number))
        }
        (None, false) => spaced(&number),
    }
}

/// Groups as numbers of eight or nine digits are spoken, near a word such as `number`.
fn spaced(number: &Number<'_>) -> Option<f32> {
    let spoken = matches!(
        number.groups.as_slice(),
        [2, 2, 2, 2]
            | [2, 3, 2, 2]
            | [3, 2, 3]
            | [3, 3, 3]
            | [2, 3, 3]
            | [3, 3, 2, 2]
            | [3, 2, 2, 2]
            | [2, 3, 4]
            | [3, 4]
    );
    let told = number.span.near(Cue::Number);
    (spoken && told && !number.uses_only('.')).then_some(0.55)
}

/// Six digits in pairs, right after the word that speaks of a telephone.
fn short(number: &Number<'_>) -> Option<f32> {
    let told = number.span.text.before(Cue::Phone, number.span.start, 4);
    (told && number.groups == [2, 2, 2]).then_some(0.55)
}

/// Dates, times, dotted versions, amounts and runs of small numbers.
fn is_something_else(number: &Number<'_>) -> bool {
    let groups = number.groups.as_slice();
    let abroad = number.body.starts_with('+');
    let slashed = number.body.contains('/');
    let date = matches!(groups, [4, 1..=2, 1..=2] | [1..=2, 1..=2, 4])
        && !abroad
        && !number.separators().any(|sign| sign == '(');
    let date_and_time = matches!(groups, [4, 1..=2, 1..=2, ..] | [1..=2, 1..=2, 4, ..])
        && !abroad
        && number.separators().any(|sign| sign != ' ')
        && number.digits[0] != b'0';
    let years = matches!(groups, [4, 4]) && number.starts(&["19", "20"]);
    let dotted = number.uses_only('.')
        && !matches!(groups, [3, 3, 4] | [2, 2, 2, 2, 2] | [4, 3, 3] | [2, 4, 4]);
    let small = groups.iter().all(|length| *length == 1);
    let same = number.digits.windows(2).all(|pair| pair[0] == pair[1]);
    let too_many = groups.len() > 7 || number.starts(&["000"]);
    (date && !told_by_zero(number))
        || date_and_time
        || years
        || dotted
        || small
        || same
        || too_many
        || (slashed && !slashes_are_plain(number))
        || decimals(number)
        || unbalanced(number.body)
}

/// A leading zero with three groups is a trunk prefix when the last group has four digits and the
/// second is no month.
fn told_by_zero(number: &Number<'_>) -> bool {
    matches!(number.groups.as_slice(), [2, 2, 4])
        && number.digits[0] == b'0'
        && number.digits[2] > b'1'
}

fn slashes_are_plain(number: &Number<'_>) -> bool {
    number.body.matches('/').count() == 1 && number.digits[0] == b'0' && number.groups[0] >= 3
}

/// A single dot is a decimal point.
fn decimals(number: &Number<'_>) -> bool {
    number.groups.len() == 2 && number.separators().any(|sign| sign == '.')
}

fn unbalanced(body: &str) -> bool {
    body.matches('(').count() != body.matches(')').count()
}

/// The confidence of a national form without any word near it.
fn national(number: &Number<'_>) -> Option<f32> {
    if number.groups.len() == 1 {
        return bare(number);
    }
    north_american(number).or_else(|| with_trunk_zero(number)).or_else(|| toll_free(number))
}

fn bare(number: &Number<'_>) -> Option<f32> {
    let mobile = match number.digits.len() {
        11 => number.starts(&[
            "070", "080", "090", "050", "071", "072", "073", "074", "075", "077", "078", "079",
        ]),
        10 => number.starts(&["04", "0120", "0800"]),
        _ => false,
    };
    mobile.then_some(0.65)
}

fn north_american(number: &Number<'_>) -> Option<f32> {
    let digits = number.digits.strip_prefix(b"00").unwrap_or(&number.digits);
    let local = match digits.len() {
        11 if digits[0] == b'1' => &digits[1..],
        10 => digits,
        _ => return None,
    };
    let grouped = number.groups.ends_with(&[3, 3, 4]) || number.groups.ends_with(&[3, 7]);
    let country = number.groups.len() == 4 || number.digits.len() > 10;
    let area = local[0] >= b'2';
    let exchange =
        local[3] >= b'2' || country || number.has_extension || number.body.starts_with('(');
    (grouped && area && exchange).then_some(0.85)
}

/// Numbers that begin with the trunk prefix 0: most of Europe, Japan, Australia.
fn with_trunk_zero(number: &Number<'_>) -> Option<f32> {
    let in_brackets = number.body.starts_with("(0");
    if number.digits[0] != b'0' || !(9..=11).contains(&number.digits.len()) {
        return None;
    }
    let tail = number.groups.last().copied().unwrap_or(0);
    let head = number.groups[0];
    let known = match number.groups.as_slice() {
        [1..=4, 1..=4, 4] => true,
        [4, 3, 3] | [5, 3, 3] | [5, 6] | [4, 6..=7] | [3, 7..=8] | [2, 8] => true,
        [2, 2, 2, 2, 2]
        | [3, 3, 2, 2]
        | [4, 2, 2, 2]
        | [3, 2, 2, 2]
        | [5, 2, 2, 2]
        | [4, 3, 2, 2] => true,
        _ => in_brackets,
    };
    (known && tail >= 2 && head <= 5).then_some(if in_brackets { 0.85 } else { 0.8 })
}

fn toll_free(number: &Number<'_>) -> Option<f32> {
    let australian = number.starts(&["1300", "1800"]) && number.groups == [4, 3, 3];
    let thirteen =
        number.groups == [2, 2, 2] && number.starts(&["13"]) && number.span.near(Cue::Phone);
    (australian || thirteen).then_some(0.7)
}
