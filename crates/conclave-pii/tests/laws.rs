//! Laws that hold for every text: places are in order, redaction can be undone, nothing fails.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

use conclave_pii::{
    FOUND_MAX, Finder, Found, Kind, Tokens, is_identifying, redact, restore, restore_json,
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
        other => other.clone(),
    }
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
        let mut tokens = Tokens::new();
        let mut safe = value.clone();
        finder().redact_json(&mut safe, &mut tokens);
        restore_json(&mut safe, &tokens);
        prop_assert_eq!(opened(&safe), opened(&value));
    }

    #[test]
    fn pointers_lead_to_the_string(value in json_value()) {
        for place in finder().find_in_json(&value) {
            let mut at = value.pointer(&place.pointer).unwrap().clone();
            for pointer in &place.inside {
                let inner: Value = serde_json::from_str(at.as_str().unwrap()).unwrap();
                at = inner.pointer(pointer).unwrap().clone();
            }
            prop_assert!(place.found.end <= at.as_str().unwrap().chars().count());
        }
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
fn json_is_read_with_the_names_of_its_members_and_inside_strings() {
    let value = json!({
        "ssn": "219099998",
        "items": [{"a/b": "nobody", "mail": "a@example.com"}],
        "arguments": "{\"contact\": {\"homePhone\": \"5550123456\"}, \"note\": \"b\\u0040example.com\"}",
    });
    let found = finder().find_in_json(&value);
    let list: Vec<(Kind, &str, usize)> = found
        .iter()
        .map(|place| (place.found.kind, place.pointer.as_str(), place.inside.len()))
        .collect();
    assert_eq!(
        list,
        [
            (Kind::Phone, "/arguments", 1),
            (Kind::Email, "/arguments", 1),
            (Kind::Email, "/items/0/mail", 0),
            (Kind::UsSsn, "/ssn", 0),
        ]
    );
    assert_eq!(found[0].inside, ["/contact/homePhone"]);
    let mut tokens = Tokens::new();
    let mut safe = value.clone();
    finder().redact_json(&mut safe, &mut tokens);
    let written = safe.to_string();
    assert!(!written.contains("example") && !written.contains("5550123456"), "{written}");
    restore_json(&mut safe, &tokens);
    assert_eq!(opened(&safe), opened(&value));
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
