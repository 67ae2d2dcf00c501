//! Laws that hold for every text: places are in order, redaction can be undone, nothing fails.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

use conclave_pii::{
    FOUND_MAX, Finder, Found, Kind, Redactor, Tokens, is_identifying, redact, restore,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::OnceLock;

fn finder() -> &'static Finder {
    static FINDER: OnceLock<Finder> = OnceLock::new();
    FINDER.get_or_init(|| Finder::builtin().unwrap())
}

/// Pieces that meet each other in odd ways: data, tokens, halves of tokens, other scripts.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,12}",
        "\\[[A-Z_]{1,8}_[0-9]{1,2}\\]?",
        Just("[EMAIL_1]".to_owned()),
        Just("[LITERAL_1]".to_owned()),
        Just("【email 1】".to_owned()),
        Just("\\[EMAIL\\_1\\]".to_owned()),
        Just("a@example.com".to_owned()),
        Just("A@EXAMPLE.com ".to_owned()),
        Just(" 090-1234-5678 ".to_owned()),
        Just("０９０－１２３４－５６７８".to_owned()),
        Just(" my name is Anna Berg, ".to_owned()),
        Just("山田さん".to_owned()),
        Just("password: hunter22 ".to_owned()),
        Just("{\"a\":\"".to_owned()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![text().prop_map(Value::String), any::<i64>().prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a-z]{1,6}", inner.clone(), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            inner.prop_map(|value| Value::String(value.to_string())),
        ]
    })
}

/// A value with every string that holds JSON opened, to compare what is meant and not how it is
/// spaced.
fn opened(value: &Value) -> Value {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner) if inner.is_object() || inner.is_array() => json!({"opened": opened(&inner)}),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(opened).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(name, member)| (name.clone(), opened(member))).collect(),
        ),
        // A number that identifies somebody comes back as a string.
        Value::Number(number) => Value::String(number.to_string()),
        other => other.clone(),
    }
}

/// In small letters: an e-mail address that is spelt in two ways comes back in one of them.
fn small(value: &Value) -> String {
    value.to_string().to_lowercase()
}

proptest! {
    #[test]
    fn redaction_can_be_undone_for_any_text(text in text()) {
        let mut tokens = Tokens::new();
        let safe = redact(&text, &finder().find(&text), &mut tokens);
        prop_assert_eq!(restore(&safe, &tokens), text);
    }

    #[test]
    fn redaction_can_be_undone_for_any_places(
        text in text(),
        cuts in prop::collection::vec((0_usize..80, 0_usize..80), 0..6),
    ) {
        let found: Vec<Found> = cuts
            .into_iter()
            .map(|(start, end)| Found { kind: Kind::Email, start, end, confidence: 1.0 })
            .collect();
        let mut tokens = Tokens::new();
        let safe = redact(&text, &found, &mut tokens);
        prop_assert_eq!(restore(&safe, &tokens), text);
    }

    #[test]
    fn tokens_work_after_being_stored(text in text(), more in text()) {
        let mut tokens = Tokens::new();
        let safe = redact(&text, &finder().find(&text), &mut tokens);
        let written = serde_json::to_string(&tokens).unwrap();
        let mut stored: Tokens = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(restore(&safe, &stored), text);
        let again = redact(&more, &finder().find(&more), &mut stored);
        prop_assert_eq!(restore(&again, &stored), more);
    }

    #[test]
    fn places_are_in_order_and_inside_the_text(text in text()) {
        let found = finder().find(&text);
        let length = text.chars().count();
        prop_assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
        prop_assert!(found.iter().all(|place| place.start < place.end && place.end <= length));
        prop_assert!(found.iter().all(|place| (0.0..=1.0).contains(&place.confidence)));
    }

    #[test]
    fn json_comes_back_as_it_was_meant(value in json_value()) {
        let text = value.to_string();
        let mut tokens = Tokens::new();
        tokens.reserve(&text);
        let safe = Redactor::new(finder()).redact_document(&text, &mut tokens);
        let back: Value = serde_json::from_str(&tokens.restore(&safe.unwrap_or(text))).unwrap();
        prop_assert_eq!(small(&opened(&back)), small(&opened(&value)));
    }
}

#[test]
fn one_value_has_one_token_and_case_does_not_matter_in_mail() {
    let text = "Ask Jane@Example.com, jane@example.com or joe@example.com, not jane@example.com.";
    let mut tokens = Tokens::new();
    let safe = redact(text, &finder().find(text), &mut tokens);
    assert_eq!(safe, "Ask [EMAIL_1], [EMAIL_1] or [EMAIL_2], not [EMAIL_1].");
    assert_eq!(restore(&safe, &tokens), text);
    assert_eq!(restore("I wrote to [EMAIL_1].", &tokens), "I wrote to Jane@Example.com.");
    assert_eq!(tokens.value("[EMAIL_2]"), Some("joe@example.com"));
    assert_eq!(tokens.len(), 2);
}

#[test]
fn what_looks_like_a_token_is_not_taken_for_one() {
    let text = "[EMAIL_1] is a@example.com and [PHONE_7] is nothing";
    let mut tokens = Tokens::new();
    let safe = redact(text, &finder().find(text), &mut tokens);
    assert_eq!(safe, "[LITERAL_1] is [EMAIL_1] and [LITERAL_2] is nothing");
    assert_eq!(restore(&safe, &tokens), text);
    assert_eq!(restore("[EMAIL_9]", &tokens), "[EMAIL_9]");
}

#[test]
fn values_do_not_show_in_the_debug_form() {
    let mut tokens = Tokens::new();
    let text = "a@example.com";
    let _safe = redact(text, &finder().find(text), &mut tokens);
    assert!(!format!("{tokens:?}").contains("example"));
}

#[test]
fn a_flood_is_cut_off() {
    let text = "a@example.com ".repeat(20_000);
    let found = finder().find(&text);
    assert_eq!(found.len(), FOUND_MAX);
    assert!(found.iter().all(is_identifying));
    for nasty in
        ["1 ".repeat(50_000), "Anna ".repeat(50_000), "a.".repeat(50_000), ":".repeat(100_000)]
    {
        assert!(finder().find(&nasty).len() <= FOUND_MAX);
    }
}
