//! Replies: tokens that a model wrote in its own way become values again, JSON stays JSON, and
//! nothing is read twice.

use conclave_pii::{Found, Kind, Tokens, redact};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Tokens for these values, all of one kind and in this order.
fn tokens(kind: Kind, values: &[&str]) -> Tokens {
    let mut tokens = Tokens::new();
    for value in values {
        let whole = Found { kind, start: 0, end: value.chars().count(), confidence: 1.0 };
        let _safe = redact(value, &[whole], &mut tokens);
    }
    tokens
}

fn mail() -> Tokens {
    tokens(Kind::Email, &["jane@example.com"])
}

#[test]
fn a_token_is_restored_however_a_model_wrote_it() {
    for (reply, restored) in [
        ("To [EMAIL_1].", "To jane@example.com."),
        ("To [email_1].", "To jane@example.com."),
        ("To [EMAIL 1] now", "To jane@example.com now"),
        ("宛先は【EMAIL_1】です", "宛先はjane@example.comです"),
        ("**[EMAIL_1]**", "**jane@example.com**"),
        ("[**EMAIL_1**]", "jane@example.com"),
        ("\\[EMAIL\\_1\\]", "jane@example.com"),
        ("[EMAIL_**1**]", "jane@example.com"),
        ("`[EMAIL_1]`", "`jane@example.com`"),
        ("[EMAIL_1](mailto:[EMAIL_1])", "jane@example.com(mailto:jane@example.com)"),
        ("[[EMAIL_1]]", "[jane@example.com]"),
        ("[EMAIL_1][EMAIL_1]", "jane@example.comjane@example.com"),
        ("[EMAIL_9] and [PHONE_1] stay", "[EMAIL_9] and [PHONE_1] stay"),
        ("[email_9] stays as it is", "[email_9] stays as it is"),
        ("EMAIL_1 and [EMAIL_1 are none", "EMAIL_1 and [EMAIL_1 are none"),
        ("[EMAIL_11] is another", "[EMAIL_11] is another"),
        ("", ""),
    ] {
        assert_eq!(mail().restore(reply), restored, "{reply}");
    }
}

#[test]
fn a_value_that_looks_like_a_token_is_not_read_again() {
    let both = tokens(Kind::Password, &["[PASSWORD_2]", "[PASSWORD_1]"]);
    let all: Vec<&str> = both.iter().collect();
    assert_eq!(all, ["[PASSWORD_1]", "[PASSWORD_2]"]);
    assert_eq!(both.restore("[PASSWORD_1] [PASSWORD_2]"), "[PASSWORD_2] [PASSWORD_1]");
}

#[test]
fn values_in_json_are_escaped() {
    let odd = "a\"b\\c\nd";
    let tokens = tokens(Kind::Password, &[odd]);
    for document in [
        json!({"to": "[PASSWORD_1]"}),
        json!(["x", {"deep": {"er": "say [password 1]!"}}]),
        json!({"arguments": json!({"inner": "[PASSWORD_1]"}).to_string()}),
        json!({"a": json!({"b": json!({"c": ["[PASSWORD_1]"]}).to_string()}).to_string()}),
    ] {
        let reply = document.to_string();
        let restored: Value = serde_json::from_str(&tokens.restore(&reply)).unwrap();
        assert_eq!(
            innermost(&restored),
            innermost(&document).replace("[PASSWORD_1]", odd).replace("[password 1]", odd)
        );
    }
}

/// The last string, with all JSON inside strings opened.
fn innermost(value: &Value) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner) if inner.is_object() || inner.is_array() => innermost(&inner),
            _ => text.clone(),
        },
        Value::Array(items) => items.last().map(innermost).unwrap_or_default(),
        Value::Object(members) => members.values().next_back().map(innermost).unwrap_or_default(),
        _ => String::new(),
    }
}

#[test]
fn what_holds_no_token_keeps_its_form_in_json() {
    let reply = "{ \"n\" : 1.50e3,\n \"s\":\"\\u0041\", \"t\": \"[EMAIL_1]\" }";
    assert_eq!(
        mail().restore(reply),
        "{ \"n\" : 1.50e3,\n \"s\":\"\\u0041\", \"t\": \"jane@example.com\" }"
    );
}

#[test]
fn only_what_the_person_wrote_comes_back_where_a_copy_restores() {
    let mut tokens = mail();
    let written = tokens.clone();
    let own = Found { kind: Kind::Email, start: 0, end: 15, confidence: 1.0 };
    let safe = redact("jon@example.org", &[own], &mut tokens);
    assert_eq!(written.restore(&format!("[EMAIL_1], {safe}")), "jane@example.com, [EMAIL_2]");
}

#[test]
fn a_reply_of_brackets_takes_linear_time() {
    let tokens = mail();
    for reply in
        ["[".repeat(200_000), "[EMAIL_1".repeat(50_000), "{\"a\":\"[EMAIL_1]\"}".repeat(9_999)]
    {
        assert!(tokens.restore(&reply).len() >= reply.len());
    }
    let document = format!("[{}\"[EMAIL_1]\"]", "\"[EMAIL_1] x\", ".repeat(20_000));
    assert!(!tokens.restore(&document).contains("EMAIL"));
}

proptest! {
    #[test]
    fn a_reply_without_known_tokens_is_left_alone(reply in any::<String>()) {
        prop_assert_eq!(Tokens::new().restore(&reply), reply.clone());
        prop_assert_eq!(mail().restore(&reply), reply);
    }

    #[test]
    fn json_stays_json_whatever_the_value(value in any::<String>(), key in "[a-z]{1,5}") {
        prop_assume!(!value.is_empty());
        let tokens = tokens(Kind::Password, &[&value]);
        let mut reply = serde_json::Map::new();
        reply.insert(key.clone(), json!("[PASSWORD_1]"));
        let restored = tokens.restore(&Value::Object(reply).to_string());
        let restored: Value = serde_json::from_str(&restored).unwrap();
        prop_assert_eq!(restored[&key].as_str().unwrap(), value);
    }
}
