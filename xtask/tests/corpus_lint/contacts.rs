//! Mail addresses and telephone numbers, which must belong to nobody.

use super::row::Row;
use super::telephone::{self, Reading};

/// The domains that nobody can own; what stands under them belongs to nobody either.
const RESERVED_DOMAINS: [&str; 3] = ["example.com", "example.org", "example.net"];

/// Mail addresses that somebody may own.
pub fn addresses(rows: &[Row]) -> Vec<String> {
    each_row(rows, |_, text| {
        mail_addresses(text).into_iter().filter(|mail| !is_reserved(mail)).collect()
    })
}

/// Telephone numbers that somebody may answer. In the themes of personal data and of actions, where numbers of
/// documents and accounts belong, only what is written like a telephone number counts.
pub fn telephones(rows: &[Row]) -> Vec<String> {
    each_row(rows, |row, text| {
        let reading = if ["pii", "actions"].contains(&row.file.theme.as_str()) {
            Reading::Dialled
        } else {
            Reading::AnyLong
        };
        telephone::unreserved(text, reading)
    })
}

fn each_row(rows: &[Row], find: impl Fn(&Row, &str) -> Vec<String>) -> Vec<String> {
    let in_row = |row: &Row| -> Vec<_> {
        let found = row.said().flat_map(|text| find(row, &folded(text)));
        found.map(|found| format!("{}: `{found}` is not reserved", row.name())).collect()
    };
    rows.iter().flat_map(in_row).collect()
}

/// The text with full-width forms, digits of other scripts, dashes and blanks as ASCII has them.
fn folded(text: &str) -> String {
    text.chars().map(fold).collect()
}

fn fold(c: char) -> char {
    let digit = |zero: char| char::from_digit(u32::from(c) - u32::from(zero), 10);
    let folded = match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        '\u{660}'..='\u{669}' => digit('\u{660}'),
        '\u{6f0}'..='\u{6f9}' => digit('\u{6f0}'),
        '\u{966}'..='\u{96f}' => digit('\u{966}'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{30fc}' | '\u{ff70}' => Some('-'),
        _ if c.is_whitespace() && c != '\n' => Some(' '),
        _ => None,
    };
    folded.unwrap_or(c)
}

fn mail_addresses(text: &str) -> Vec<String> {
    let at_signs = text.match_indices('@').map(|(at, _)| text.split_at(at));
    at_signs.filter_map(|(before, after)| mail_address(before, &after[1..])).collect()
}

/// The address around an at sign; none where no name stands before it or no domain after it.
fn mail_address(before: &str, after: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._%+-".contains(c);
    let name = &before[before.trim_end_matches(is_part).len()..];
    let rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || ".-".contains(c));
    let domain = after[..after.len() - rest.len()].trim_matches(['.', '-']);
    (!name.is_empty() && domain.contains('.')).then(|| format!("{name}@{domain}"))
}

fn is_reserved(mail: &str) -> bool {
    let domain = mail.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    RESERVED_DOMAINS.iter().any(|reserved| {
        let above = domain.strip_suffix(reserved);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus_lint::row::made;

    #[test]
    fn addresses_that_somebody_may_own_are_found() {
        for (text, expected) in [
            ("write to a.b+c@example.com, or x@mail.Example.ORG.", None),
            ("メールはa@example.netです", None),
            ("@someone said root@localhost and 5 @ 3.50", None),
            ("me@notexample.com", Some("me@notexample.com")),
            ("me@example.com.evil.test!", Some("me@example.com.evil.test")),
            ("連絡は ｋｅｎ＠ｍａｉｌ．ｊｐ まで", Some("ken@mail.jp")),
        ] {
            let found = addresses(&[made("dev/a.en.jsonl", "1", text)]);
            let expected =
                expected.map(|mail| format!("dev/a.en.jsonl 1: `{mail}` is not reserved"));
            assert_eq!(found, Vec::from_iter(expected), "{text}");
        }
    }

    #[test]
    fn responses_are_searched_too() {
        let row =
            Row { response: Some("me@mail.jp".to_owned()), ..made("dev/a.en.jsonl", "1", "?") };
        assert_eq!(addresses(&[row]).len(), 1);
    }

    #[test]
    fn numbers_in_any_script_are_found() {
        for text in
            ["０９０－１２３４－５６７８", "090ー1234ー5678", "٠٩٠١٢٣٤٥٦٧٨", "०९० १२३४ ५६७८"]
        {
            let found = telephones(&[made("dev/pii.ja.jsonl", "1", text)]);
            assert_eq!(found.len(), 1, "{text}");
        }
    }

    #[test]
    fn numbers_of_documents_are_at_home_in_one_theme_only() {
        let document = "tax file number 123 456 782";
        assert!(telephones(&[made("dev/pii.en.jsonl", "1", document)]).is_empty());
        let found = telephones(&[made("dev/crisis.en.jsonl", "1", document)]);
        assert_eq!(found, ["dev/crisis.en.jsonl 1: `123 456 782` is not reserved"]);
    }
}
