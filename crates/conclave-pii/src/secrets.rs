//! Owns the shapes of keys, tokens and passwords.
//!
//! **Invariant:** a value after `key=` or `password:` counts only when it looks like one: a
//! placeholder, a plain word in prose or a variable of a program does not.

use crate::kind::Kind;
use crate::patterns::{Gate, Row, Span};

/// Patterns of secrets, for the table of all patterns.
pub(crate) const SECRETS: &[Row] = &[
    (
        Kind::PrivateKey,
        Gate::Open,
        concat!(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s:,\-\\]*?(?:-----EN",
            r"D [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\z)",
        ),
        |_| Some(0.99),
    ),
    (
        Kind::WebToken,
        Gate::Open,
        r"eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*",
        |_| Some(0.98),
    ),
    (
        Kind::ApiKey,
        Gate::Open,
        concat!(
            r"(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|",
            r"xox[abeprs]-[A-Za-z0-9\-]{10,}|AIza[0-9A-Za-z_\-]{35}|sk-(?:ant-|",
            r"proj-)?[A-Za-z0-9_\-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|",
            r"ck_[A-Za-z0-9_\-]{16,}|glpat-[A-Za-z0-9_\-]{20,100}|npm_[A-Za-z0-9]{36}|",
            r"SG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}|hf_[A-Za-z0-9]{30,60}|",
            r"ya29\.[A-Za-z0-9_\-]{20,300}",
        ),
        prefixed,
    ),
    (
        Kind::Password,
        Gate::Open,
        concat!(
            r#"(?i)(?:pass(?:word|wd|phrase|code)?|pwd|パスワード|暗証番号|"#,
            r#"secret word)(?:["']?\s{0,3}(?:[:=]|は)\s{0,3}| is:? )["'「]?(?<v>[^\s"'「」,;<>]{4,128})"#,
        ),
        password,
    ),
    (
        Kind::ApiKey,
        Gate::Open,
        concat!(
            r#"(?i)(?:key|token|secret|bearer|credential|"#,
            r#"auth)["']?\s{0,3}[:= ]\s{0,3}["']?(?<v>[A-Za-z0-9+/_\-.=]{16,})"#,
        ),
        random,
    ),
    (
        Kind::Password,
        Gate::Digit,
        r"(?i)\b(?:pin|cvv|cvc|cvv2|otp)(?: code| number)?(?: is|:|=) ?(?<v>\d{3,8})\b",
        |_| Some(0.7),
    ),
];

fn prefixed(span: Span<'_>) -> Option<f32> {
    let before = span.text.as_str()[..span.start].chars().next_back();
    let free = !before.is_some_and(|sign| sign.is_alphanumeric() || sign == '_' || sign == '-');
    let tail = span.as_str().rsplit(['_', '-']).next().unwrap_or_default();
    let mixed = span.as_str().bytes().any(|byte| byte.is_ascii_digit()) || is_mixed(tail);
    (free && mixed).then_some(0.95)
}

/// A password is not a placeholder, and in prose it holds more than small letters.
fn password(span: Span<'_>) -> Option<f32> {
    let value = span.as_str().trim_end_matches(['.', '!', '?', ')', ']', '}']);
    let placeholder = value.is_empty()
        || value.starts_with(['$', '{', '<', '%', '[', '(', '*', '.'])
        || value.contains(['(', ')'])
        || value.to_ascii_lowercase().contains("passw")
        || value.bytes().all(|byte| byte == b'*' || byte == b'x' || byte == b'.');
    let plain = value.chars().all(|sign| sign.is_lowercase() || !sign.is_ascii());
    let before = &span.text.as_str()[..span.start];
    let stated = before.trim_end_matches(['"', '\'', ' ', '「']).ends_with([':', '=']);
    let japanese = before.trim_end_matches('「').ends_with('は');
    let any_sign = value.bytes().any(|byte| byte.is_ascii_digit())
        || value
            .chars()
            .any(|sign| sign.is_ascii_punctuation() && !matches!(sign, '\'' | '-' | '.' | '_'));
    match (placeholder, stated || japanese) {
        (true, _) => None,
        (false, true) if any_sign => Some(0.9),
        (false, true) => (!plain || before.ends_with(['"', '\'', '='])).then_some(0.6),
        (false, false) => any_sign.then_some(0.75),
    }
}

/// A random value: long, mixed, and with many different signs.
fn random(span: Span<'_>) -> Option<f32> {
    let value = span.as_str().trim_end_matches(['.', '=']);
    (is_mixed(value) && entropy(value) >= 3.3 && !value.contains("..")).then_some(0.8)
}

/// Letters and digits together, or capitals in the middle of small letters throughout.
fn is_mixed(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    digits >= 3 && letters >= 4
}

/// Shannon's entropy in bits for each sign.
fn entropy(value: &str) -> f32 {
    let mut counts = [0_u16; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] = counts[usize::from(byte)].saturating_add(1);
    }
    let length = value.len().max(1) as f32;
    let share = |count: &u16| f32::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(|count| -share(count) * share(count).log2()).sum()
}
