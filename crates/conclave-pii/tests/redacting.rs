//! Redaction of texts on their way to a model: tokens stay, identifiers stay, brackets hide nothing.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

use conclave_pii::{Class, Classes, Finder, Redactor, Tokens};
use proptest::prelude::*;
use std::sync::OnceLock;

fn finder() -> &'static Finder {
    static FINDER: OnceLock<Finder> = OnceLock::new();
    FINDER.get_or_init(|| Finder::builtin().unwrap())
}

fn redacted(text: &str) -> Option<String> {
    Redactor::new(finder()).redact_text(text, &mut Tokens::new())
}

#[test]
fn tokens_that_stand_there_stay_and_once_is_enough() {
    let mut tokens = Tokens::new();
    let redactor = Redactor::new(finder());
    let once = redactor.redact_text("Ask [EMAIL_7] or jane@example.com.", &mut tokens).unwrap();
    assert_eq!(once, "Ask [EMAIL_7] or [EMAIL_1].");
    assert_eq!(tokens.value("[EMAIL_1]"), Some("jane@example.com"));
    assert_eq!(redactor.redact_text(&once, &mut tokens), None);
}

#[test]
fn brackets_hide_nothing_that_identifies_somebody() {
    for (text, secret) in [
        ("See https://example.org/[jane]/mail?to=jane@example.com now.", "jane@example.com"),
        ("Ask [jane@example.com] today.", "jane@example.com"),
        ("It is [PHONE_5551234567] or [mara@example.org].", "mara@example.org"),
        ("The address [2001:db8:85a3::8a2e:370:7334] called.", "8a2e:370:7334"),
    ] {
        let other = redacted(text).unwrap_or_default();
        assert!(!other.is_empty() && !other.contains(secret), "{text} -> {other}");
    }
}

#[test]
fn a_token_inside_a_value_stays_and_the_rest_is_hidden() {
    let text = "See https://example.org/u/42?to=[EMAIL_1]&from=jane-doe now.";
    let other = redacted(text).unwrap();
    assert!(other.contains("[EMAIL_1]"), "{other}");
    assert!(!other.contains("u/42") && !other.contains("jane-doe"), "{other}");
}

#[test]
fn a_token_that_a_text_brought_along_is_given_to_no_value() {
    let mut tokens = Tokens::new();
    tokens.reserve("What is 【email 1】?");
    let redactor = Redactor::new(finder());
    let other = redactor.redact_text("Write to a@example.com.", &mut tokens).unwrap();
    assert_eq!(other, "Write to [EMAIL_2].");
    let stored: Tokens = serde_json::from_str(&serde_json::to_string(&tokens).unwrap()).unwrap();
    assert_eq!(stored, tokens);
    assert_eq!(tokens.restore("[EMAIL_1] [EMAIL_2]"), "[EMAIL_1] a@example.com");
}

#[test]
fn a_place_an_organisation_or_a_date_alone_is_left() {
    for text in [
        "We moved to Berlin on 3 March 1980.",
        "Contoso Ltd. is a company in Paris.",
        "Born on 3 March 1980, ZIP: 90210",
        "東京に2025年3月4日に行きます。",
    ] {
        assert_eq!(redacted(text), None, "{text}");
    }
}

#[test]
fn only_the_classes_that_are_wanted_are_replaced() {
    let redactor = Redactor::new(finder()).with_classes(Classes::all().without(Class::Url));
    let text = "See https://example.org/a or write to a@example.com.";
    let other = redactor.redact_text(text, &mut Tokens::new()).unwrap();
    assert_eq!(other, "See https://example.org/a or write to [EMAIL_1].");
}

#[test]
fn what_is_spared_stays_and_the_rest_is_replaced() {
    let text = "Call 1 (800) 273-8255 or write to a@example.com.";
    let is_line = |value: &str| value.contains("273-8255");
    let redactor = Redactor::new(finder());
    let other = redactor.redact_unless(text, &mut Tokens::new(), &is_line).unwrap();
    assert_eq!(other, "Call 1 (800) 273-8255 or write to [EMAIL_1].");
}

#[test]
fn a_flood_is_hidden_to_its_end() {
    let text = "a@example.com ".repeat(20_000);
    assert!(!redacted(&text).unwrap().contains("example"));
}

#[test]
fn json_is_read_with_the_names_of_its_members_and_inside_strings_and_keeps_its_form() {
    let text = concat!(
        r#"{ "phone": "5550143", "card": 4111111111111111, "name": "Quarterly report","#,
        r#" "arguments": "{\"z\": 1.50, \"note\": \"b\\u0040example.com\"}" }"#
    );
    let mut tokens = Tokens::new();
    let other = Redactor::new(finder()).redact_document(text, &mut tokens).unwrap();
    let expected = concat!(
        r#"{ "phone": "[PHONE_1]", "card": "[PAYMENT_CARD_1]", "name": "Quarterly report","#,
        r#" "arguments": "{\"z\": 1.50, \"note\": \"[EMAIL_1]\"}" }"#
    );
    assert_eq!(other, expected);
    assert!(tokens.restore(&other).contains("b@example.com"));
}

proptest! {
    #[test]
    fn what_was_redacted_once_stays_as_it_is(
        words in prop::collection::vec(prop::sample::select(&[
            "jane@example.com", "[EMAIL_1]", "090-1234-5678", "Anna Lindqvist", "hello", "and", "[email 2]",
            "4111 1111 1111 1111", "https://example.org/a?b=c", "。", ".", "\n", "my name is", "(", "]", "[",
        ][..]), 0..20),
    ) {
        let text = words.join(" ");
        let redactor = Redactor::new(finder());
        let mut tokens = Tokens::new();
        let once = redactor.redact_text(&text, &mut tokens).unwrap_or(text);
        prop_assert_eq!(redactor.redact_text(&once, &mut tokens), None, "{}", once);
    }
}
