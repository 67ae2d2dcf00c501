//! Makes a short, harmless sentence of what a provider says when it fails.
//!
//! **Invariant:** the result holds no key we know, nothing that looks like a key, no stretch of the
//! conversation, no control or invisible character, and at most [`SNIPPET_CHARS_MAX`] characters.

use aho_corasick::AhoCorasick;
use conclave_core::Message;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::fmt::Write;

/// The longest snippet.
pub(crate) const SNIPPET_CHARS_MAX: usize = 200;

const REDACTED: &str = "[redacted]";

/// How keys of well-known services begin.
const KEY_PREFIXES: [&str; 22] = [
    "sk-",
    "sk_",
    "pk-",
    "pk_",
    "rk_",
    "ck_",
    "gsk_",
    "hf_",
    "r8_",
    "xai-",
    "pplx-",
    "nvapi-",
    "glpat-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "xox",
    "AIza",
    "AKIA",
    "ya29.",
    "eyJ",
];
/// What must follow a prefix for it to be a key.
const KEY_TAIL_MIN: usize = 4;
/// A run of letters and digits this long is no word.
const OPAQUE_CHARS_MIN: usize = 32;
/// How much of an echo of the conversation is enough to be recognised.
const ECHO_BYTES: usize = 12;

/// What must not be repeated.
pub(crate) struct Redactor<'a> {
    pub(crate) secrets: &'a [SecretString],
    pub(crate) conversation: &'a [Message],
}

impl Redactor<'_> {
    /// The snippet of an error body. `is_cut` says that the body went on.
    pub(crate) fn snippet(&self, body: &[u8], is_cut: bool) -> String {
        let text = said(&String::from_utf8_lossy(body), is_cut);
        let text = self.without_secrets(text);
        let text: String = without_keys(&text).chars().take(SNIPPET_CHARS_MAX).collect();
        let text = self.without_echoes(&text);
        visible(&text)
    }

    fn without_secrets(&self, mut text: String) -> String {
        for secret in self.secrets {
            let secret = secret.expose_secret();
            let bare = secret.rsplit(' ').next().unwrap_or(secret);
            if bare.len() >= KEY_TAIL_MIN && text.contains(bare) {
                text = text.replace(bare, REDACTED);
            }
        }
        text
    }

    /// Providers quote what they were sent, and a log is no place for that.
    fn without_echoes(&self, text: &str) -> String {
        let starts = window_starts(text);
        let windows = starts.iter().filter_map(|at| text.get(*at..end_of(text, *at)));
        let Ok(searcher) = AhoCorasick::new(windows) else {
            return REDACTED.to_owned();
        };
        let mut is_echo = vec![false; text.len()];
        for message in self.conversation {
            for found in searcher.find_overlapping_iter(&*message.content.as_text()) {
                let start = starts.get(found.pattern().as_usize()).copied().unwrap_or(0);
                let marked = is_echo.get_mut(start..end_of(text, start));
                marked.unwrap_or_default().fill(true);
            }
        }
        without_marked(text, &is_echo)
    }
}

/// The message inside an error object, or the whole text.
fn said(body: &str, is_cut: bool) -> String {
    let body = body.trim();
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let message = parsed.as_ref().and_then(|value| {
        ["/error/message", "/error", "/message", "/detail"]
            .iter()
            .find_map(|path| value.pointer(path)?.as_str())
    });
    let text = message.unwrap_or(body);
    let end = if is_cut { last_word_start(text) } else { text.len() };
    text.get(..end).unwrap_or_default().to_owned()
}

/// Where the last, possibly cut, word begins: half a key is not recognised as one.
fn last_word_start(text: &str) -> usize {
    text.rfind(|character| !is_key_character(character)).unwrap_or(0)
}

const fn is_key_character(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '_' | '-' | '.' | '~' | '+' | '/' | '=' | '*')
}

/// Replaces every word that is, or follows, what keys look like.
fn without_keys(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut is_after_bearer = false;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|character| !is_key_character(character)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if !word.is_empty() {
            let is_secret = is_after_bearer || is_key(word);
            clean.push_str(if is_secret { REDACTED } else { word });
            is_after_bearer = word.eq_ignore_ascii_case("bearer");
        }
        let gap = after.find(is_key_character).unwrap_or(after.len());
        let (between, next) = after.split_at(gap);
        clean.push_str(between);
        rest = next;
    }
    clean
}

fn is_key(word: &str) -> bool {
    let has_prefix =
        word.split(['=', '/']).any(|part| KEY_PREFIXES.iter().any(|prefix| begins(part, prefix)));
    let is_opaque = word.len() >= OPAQUE_CHARS_MIN
        && word.contains(|character: char| character.is_ascii_digit())
        && word.contains(|character: char| character.is_ascii_alphabetic());
    has_prefix || is_opaque
}

fn begins(word: &str, prefix: &str) -> bool {
    let tail = word.strip_prefix(prefix);
    tail.is_some_and(|tail| tail.len() >= KEY_TAIL_MIN)
}

/// Every place where a stretch that could be an echo begins.
fn window_starts(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).take_while(|at| at + ECHO_BYTES <= text.len()).collect()
}

/// Where the stretch that begins here ends: at the first character that makes it long enough.
fn end_of(text: &str, start: usize) -> usize {
    text.ceil_char_boundary(start + ECHO_BYTES)
}

fn without_marked(text: &str, is_echo: &[bool]) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut is_after_echo = false;
    for (at, character) in text.char_indices() {
        let is_echo = is_echo.get(at).copied().unwrap_or(false);
        match (is_echo, is_after_echo) {
            (true, false) => clean.push('…'),
            (true, true) => {}
            (false, _) => clean.push(character),
        }
        is_after_echo = is_echo;
    }
    clean
}

/// Escapes what a terminal or a reader would not see as it is.
fn visible(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            // Writing to a string cannot fail.
            let _ = write!(clean, "{}", character.escape_unicode());
        } else {
            clean.push(character);
        }
    }
    clean.chars().take(SNIPPET_CHARS_MAX).collect()
}

const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::Role;

    fn snippet(body: &str) -> String {
        snippet_with(body, &[], &[])
    }

    fn snippet_with(body: &str, secrets: &[&str], said: &[&str]) -> String {
        let secrets: Vec<SecretString> = secrets.iter().map(|text| (*text).into()).collect();
        let conversation: Vec<Message> =
            said.iter().map(|text| Message::text(Role::User, *text)).collect();
        let redactor = Redactor { secrets: &secrets, conversation: &conversation };
        redactor.snippet(body.as_bytes(), false)
    }

    #[test]
    fn the_message_of_an_error_is_taken_out() {
        for body in [
            r#"{"error":{"message":"no such model","type":"x"}}"#,
            r#"{"error":"no such model"}"#,
            r#"{"message":"no such model"}"#,
            r#"{"detail":"no such model"}"#,
            "  no such model\n",
        ] {
            assert_eq!(snippet(body), "no such model", "{body}");
        }
    }

    #[test]
    fn keys_are_removed() {
        for (body, expected) in [
            ("bad key sk-abcdEFGH1234.", "bad key [redacted]"),
            (
                "Incorrect API key: sk-proj-****wxyz, see docs",
                "Incorrect API key: [redacted], see docs",
            ),
            ("header Authorization: Bearer abc", "header Authorization: Bearer [redacted]"),
            ("key=AIzaSyA1234567", "[redacted]"),
            (
                "see https://x.example/?key=sk-abcd1234 there",
                "see https://x.example/?[redacted] there",
            ),
            ("token eyJhbGciOi.J9.x", "token [redacted]"),
            ("id 0123456789abcdef0123456789abcdef", "id [redacted]"),
            (
                "the task-force asked about claude-3-5-sonnet-20241022",
                "the task-force asked about claude-3-5-sonnet-20241022",
            ),
        ] {
            assert!(snippet(body).starts_with(expected), "{body}: {}", snippet(body));
        }
    }

    #[test]
    fn configured_secrets_are_removed_wherever_they_stand() {
        let found = snippet_with("seen:hunter22 xhunter22x", &["hunter22"], &[]);
        assert_eq!(found, "seen:[redacted] x[redacted]x");
        let header = snippet_with("bad token hunter22", &["Token hunter22"], &[]);
        assert_eq!(header, "bad token [redacted]");
    }

    #[test]
    fn half_a_key_at_the_cut_is_dropped() {
        let redactor = Redactor { secrets: &[], conversation: &[] };
        assert_eq!(redactor.snippet(b"some words abcdef", true), "some words");
        assert_eq!(redactor.snippet(b"abcdef", true), "");
    }

    #[test]
    fn the_conversation_is_not_repeated() {
        let said = "I have been feeling very low since Thursday";
        let body = format!("cannot parse input: '{said}' is not valid");
        let found = snippet_with(&body, &[], &["hello", said]);
        assert_eq!(found, "cannot parse input: '…' is not valid");
        let japanese = "最近ずっと気分が落ち込んでいます";
        let found = snippet_with(&format!("入力エラー: {japanese}"), &[], &[japanese]);
        assert_eq!(found, "入力エラー: …");
    }

    #[test]
    fn control_and_invisible_characters_are_shown() {
        assert_eq!(snippet("a\u{1b}[31mred\nline"), "a\\u{1b}[31mred\\u{a}line");
        assert_eq!(snippet("a\u{202e}b\u{200b}c"), "a\\u{202e}b\\u{200b}c");
        assert_eq!(snippet("a\0b"), "a\\u{0}b");
    }

    #[test]
    fn it_is_never_longer_than_promised() {
        for body in ["wort ".repeat(10_000), "\n\u{1}".repeat(5_000), "語".repeat(5_000)] {
            assert!(snippet(&body).chars().count() <= SNIPPET_CHARS_MAX);
        }
        assert_eq!(snippet(""), "");
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        let redactor = Redactor { secrets: &[], conversation: &[] };
        let found = redactor.snippet(&[0xff, 0xfe, b'a', 0x80], false);
        assert!(found.contains('a'));
    }

    proptest::proptest! {
        #[test]
        fn whatever_surrounds_it_a_secret_does_not_get_out(
            before in "\\PC{0,60}", after in "\\PC{0,60}", is_cut in proptest::bool::ANY,
        ) {
            let secrets = [SecretString::from("Tr0ub4dor")];
            let conversation = [Message::text(Role::User, "words that only a person would say")];
            let redactor = Redactor { secrets: &secrets, conversation: &conversation };
            let body = format!("{before}Tr0ub4dor{after} only a person would");
            let found = redactor.snippet(body.as_bytes(), is_cut);
            proptest::prop_assert!(!found.contains("Tr0ub4dor"));
            proptest::prop_assert!(!found.contains("only a person would"));
            proptest::prop_assert!(found.chars().count() <= SNIPPET_CHARS_MAX);
        }
    }
}
