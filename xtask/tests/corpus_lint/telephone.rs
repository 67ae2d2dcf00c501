//! Digits that look like a telephone number, and the ranges that regulators keep for fiction.
//!
//! **Invariant:** short codes are left alone: nothing under nine digits is ever a finding.

const DIGITS_MIN: usize = 9;
/// No number in the world is longer.
const DIGITS_MAX: usize = 15;
const GAP_MAX: usize = 3;
const DATE_BLOCKS: usize = 3;

/// What nobody can be called by, as it is dialled at home and from abroad; `#` is any digit.
const RESERVED: [&str; 15] = [
    "###55501##",
    "1###55501##",
    "02079460###",
    "442079460###",
    "4402079460###",
    "01632960###",
    "441632960###",
    "4401632960###",
    "07700900###",
    "447700900###",
    "4407700900###",
    "0#5550####",
    "61#5550####",
    "610#5550####",
    "1900######",
];

/// How suspiciously digits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Only what is grouped or begins like a number that can be dialled.
    Dialled,
    /// That, and any other digits of such a length that are no date, network address or fraction.
    AnyLong,
}

/// Digits without a gap, and the blank or sign before them.
#[derive(Clone, Debug)]
struct Block {
    gap: char,
    digits: String,
}

/// Every number in the text that may be somebody's. Expects digits and dashes in ASCII.
pub fn unreserved(text: &str, reading: Reading) -> Vec<String> {
    runs(text).iter().flat_map(|run| unreserved_in(run, reading)).collect()
}

/// Blocks of digits with nothing but separators between them. A plus sign begins a run and is the
/// gap of its first block.
fn runs(text: &str) -> Vec<Vec<Block>> {
    let mut runs: Vec<Vec<Block>> = Vec::new();
    let mut gap = String::from("\n");
    for c in text.chars() {
        if !c.is_ascii_digit() {
            gap.push(c);
            continue;
        }
        let apart = gap.chars().count() > GAP_MAX || !gap.chars().all(is_separator);
        let block = Block { gap: telling(&gap), digits: c.to_string() };
        match runs.last_mut() {
            Some(run) if gap.is_empty() => extend(run, c),
            Some(run) if !apart => run.push(block),
            _ => runs.push(vec![block]),
        }
        gap.clear();
    }
    runs
}

fn extend(run: &mut [Block], digit: char) {
    if let Some(block) = run.last_mut() {
        block.digits.push(digit);
    }
}

fn is_separator(c: char) -> bool {
    " -./()".contains(c)
}

/// The one sign of a gap that matters for what follows.
fn telling(gap: &str) -> char {
    let last = gap.trim_end_matches(['(', ' ']).chars().last();
    last.or(gap.chars().last()).unwrap_or(' ')
}

/// Takes dates, reserved and dialled numbers out of the run, the longest first, and looks at what
/// is left between them.
fn unreserved_in(run: &[Block], reading: Reading) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < run.len() {
        let (length, is_innocent) = known_thing(&run[at..]);
        if length == 0 {
            rest.push(run[at].clone());
            at += 1;
            continue;
        }
        found.extend(suspicious_rest(&rest, reading));
        found.extend((!is_innocent).then(|| shown(&run[at..at + length])));
        rest.clear();
        at += length;
    }
    found.extend(suspicious_rest(&rest, reading));
    found
}

/// How many blocks a date or a telephone number at the beginning takes, and whether it may stand.
fn known_thing(run: &[Block]) -> (usize, bool) {
    if begins_with_date(run) {
        return (DATE_BLOCKS, true);
    }
    let most = run.len().min(DIGITS_MAX);
    let longest = |is: fn(&[Block]) -> bool| (1..=most).rev().find(|end| is(&run[..*end]));
    let reserved = longest(is_reserved);
    (reserved.or_else(|| longest(is_dialled)).unwrap_or(0), reserved.is_some())
}

fn suspicious_rest(rest: &[Block], reading: Reading) -> Option<String> {
    let suspicious = is_of_length(rest) && !is_dotted(rest);
    (suspicious && reading == Reading::AnyLong).then(|| shown(rest))
}

fn shown(number: &[Block]) -> String {
    number.iter().map(|block| block.digits.as_str()).collect::<Vec<_>>().join(" ")
}

fn digits(number: &[Block]) -> String {
    number.iter().map(|block| block.digits.as_str()).collect()
}

fn lengths(number: &[Block]) -> Vec<usize> {
    number.iter().map(|block| block.digits.len()).collect()
}

fn is_of_length(number: &[Block]) -> bool {
    (DIGITS_MIN..=DIGITS_MAX).contains(&lengths(number).iter().sum())
}

fn is_reserved(number: &[Block]) -> bool {
    let digits = digits(number);
    let fits = |pattern: &str| {
        let mut pairs = pattern.bytes().zip(digits.bytes());
        pattern.len() == digits.len() && pairs.all(|(kept, digit)| kept == b'#' || kept == digit)
    };
    RESERVED.into_iter().any(fits) || (has_zeros(number) && is_dialled(number))
}

/// Japan keeps no range for fiction, but gives nobody a block of zeros.
fn has_zeros(number: &[Block]) -> bool {
    let zeros = |block: &Block| block.digits.bytes().all(|digit| digit == b'0');
    number.iter().any(|block| block.digits.len() >= 3 && zeros(block))
}

fn is_dialled(number: &[Block]) -> bool {
    let abroad = number[0].gap == '+' && is_of_length(number);
    abroad || is_of_trunk(number) || is_north_american(number) || is_national_service(number)
}

/// `090-1234-5678`, `020 7123 4567`, `06 12 34 56 78`: one zero, then ten or eleven digits in all.
fn is_of_trunk(number: &[Block]) -> bool {
    let digits = digits(number);
    let lengths = lengths(number);
    let pairs = lengths.iter().all(|length| *length == 2);
    let ends_long = lengths.last().is_some_and(|length| *length >= 3);
    let one_zero = digits.starts_with('0') && !digits.starts_with("00");
    one_zero && (10..=11).contains(&digits.len()) && (pairs || ends_long)
}

/// `(212) 345-6789`, with or without the one; area and exchange never begin with 0 or 1.
fn is_north_american(number: &[Block]) -> bool {
    let home = match number {
        [one, home @ ..] if one.digits == "1" => home,
        _ => number,
    };
    let begins = |block: &Block| block.digits.as_bytes()[0] >= b'2';
    lengths(home) == [3, 3, 4] && begins(&home[0]) && begins(&home[1])
}

/// `1800 123 456`, as Australia groups its free and premium numbers.
fn is_national_service(number: &[Block]) -> bool {
    lengths(number) == [4, 3, 3] && number[0].digits.starts_with('1')
}

/// `2024-05-02` or `02/05/2024`.
fn begins_with_date(run: &[Block]) -> bool {
    let [first, second, third, ..] = run else { return false };
    let is_year = |block: &Block| {
        let digits = &block.digits;
        digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20"))
    };
    let is_day = |block: &Block| {
        let day = block.digits.parse().unwrap_or(0);
        block.digits.len() <= 2 && (1..=31).contains(&day)
    };
    is_day(second) && ((is_year(first) && is_day(third)) || (is_day(first) && is_year(third)))
}

/// A fraction such as `3.14159265`, or the four bytes of a network address.
fn is_dotted(rest: &[Block]) -> bool {
    let dots = rest.iter().skip(1).all(|block| block.gap == '.');
    let bytes = rest.iter().all(|block| block.digits.parse::<u8>().is_ok());
    dots && (rest.len() == 2 || (rest.len() == 4 && bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_may_be_answered_are_found() {
        for (text, expected) in [
            ("call (212) 345-6789 now", "212 345 6789"),
            ("1-800-234-5678", "1 800 234 5678"),
            ("212.345.6789", "212 345 6789"),
            ("+44 (0)20 7123 4567", "44 0 20 7123 4567"),
            ("on 020 7123 4567.", "020 7123 4567"),
            ("+(81) 90 1234 5678", "81 90 1234 5678"),
            ("番号は090-1234-5678です", "090 1234 5678"),
            ("09012345678", "09012345678"),
            ("06 12 34 56 78", "06 12 34 56 78"),
            ("1800 123 456", "1800 123 456"),
            ("on 2024-05-02 090-1234-5678", "090 1234 5678"),
            ("020 7946 0552 020 7123 4567", "020 7123 4567"),
            ("090-1234-5678 9 till 5", "090 1234 5678"),
        ] {
            assert_eq!(unreserved(text, Reading::Dialled), [expected], "{text}");
            assert_eq!(unreserved(text, Reading::AnyLong).len(), 1, "{text}");
        }
    }

    #[test]
    fn reserved_numbers_and_short_codes_are_left_alone() {
        for text in [
            "(212) 555-0143 or +1 212 555 0143",
            "020 7946 0718, +44 20 7946 0718, +44 (0)20 7946 0718",
            "01632 960123 and 07700 900 456",
            "03-0000-4821, 090-0000-2214, 0120-000-000, +81 90-0000-1234",
            "(02) 5550 1234, +61 2 5550 1234, 1900 555 214",
            "020 7946 0552 020 7946 0553 9 till 5",
            "2024-05-02 212 555 0143, 02/05/2024 100 people",
            "988, 116 123, 0570 0, 741741, 119番",
            "1,000,000,000 people on 2024-05-02 08:14:55 and 02/05/2024 10",
            "from 198.51.100.7 and 3.14159265",
            "first 1234\n5678 then 91011",
            "card 4242 4242 4242 4242",
        ] {
            let found = unreserved(text, Reading::AnyLong);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }

    #[test]
    fn any_other_long_number_counts_only_where_asked() {
        for text in ["123 456 782", "987-65-4321", "999 000 0018", "4155551234", "612 345 678"] {
            assert!(unreserved(text, Reading::Dialled).is_empty(), "{text}");
            assert_eq!(unreserved(text, Reading::AnyLong).len(), 1, "{text}");
        }
    }
}
