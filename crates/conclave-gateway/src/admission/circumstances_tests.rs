//! What is stated of a person, and what only looks as if it were.

use super::*;
use crate::error::Envelope;
use http::HeaderName;
use serde_json::json;

fn metadata(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn context(
    headers: &HeaderMap,
    metadata: &Map<String, Value>,
    modes_allowed: &[Mode],
) -> Result<TurnContext, ApiError> {
    StatedCircumstances { headers, metadata: Some(metadata) }.read(modes_allowed)
}

#[test]
fn headers_win_over_metadata_and_both_are_checked() {
    let mut headers = HeaderMap::new();
    headers.insert("x-conclave-country", "jp".parse().unwrap());
    let stated = metadata(&json!({
        "conclave_country": "AU", "conclave_mode": "child_safe", "conclave_minor": true, "conclave_vulnerable": true,
        "conclave_affiliations": "Sea People, River People", "other": "kept",
    }));
    let context = context(&headers, &stated, &Mode::ALL).unwrap();
    assert_eq!(context.country.as_deref(), Some("JP"));
    assert_eq!(context.mode, Mode::ChildSafe);
    assert!(context.minor && context.vulnerable);
    assert_eq!(context.affiliations, ["Sea People", "River People"]);
}

#[test]
fn nonsense_is_refused_and_disallowed_modes_too() {
    for bad in [
        json!({"conclave_mode": "lenient"}),
        json!({"conclave_country": "Japan"}),
        json!({"conclave_minor": "perhaps"}),
        json!({"conclave_persona": 3}),
    ] {
        assert!(context(&HeaderMap::new(), &metadata(&bad), &Mode::ALL).is_err(), "{bad}");
    }
    let debug = metadata(&json!({"conclave_mode": "debug"}));
    assert!(context(&HeaderMap::new(), &debug, &[Mode::Normal]).is_err());
}

fn refusal_of(error: &ApiError) -> (String, String) {
    let error = error.body(Envelope::OpenAi)["error"].clone();
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (text("param"), text("message"))
}

#[test]
fn a_misspelt_header_is_an_error_that_names_the_right_one() {
    for (written, meant) in [
        ("x-conclave-mod", "x-conclave-mode"),
        ("x-conclave-minors", "x-conclave-minor"),
        ("x-conclave-sensitivty", "x-conclave-sensitivity"),
        ("x-conclave-session", "x-conclave-session-id"),
        ("x-conclave-langauge", "x-conclave-language"),
    ] {
        let name: HeaderName = written.parse().unwrap();
        let headers = HeaderMap::from_iter([(name, "x".parse().unwrap())]);
        let error = context(&headers, &Map::new(), &Mode::ALL).unwrap_err();
        let (param, message) = refusal_of(&error);
        assert_eq!(param, written);
        assert!(message.ends_with(&format!("`{meant}`?")), "{message}");
    }
}

#[test]
fn misspelt_metadata_is_an_error_too_and_that_of_others_is_not() {
    for (written, meant) in [
        ("conclave_mods", "conclave_mode"),
        ("conclave_Minor", "conclave_minor"),
        ("Conclave-Country", "conclave_country"),
        ("conclave_", "conclave_mode"),
    ] {
        let stated = metadata(&json!({written: "x"}));
        let error = context(&HeaderMap::new(), &stated, &Mode::ALL).unwrap_err();
        let (param, message) = refusal_of(&error);
        assert_eq!(param, format!("metadata.{written}"));
        assert!(message.ends_with(&format!("`{meant}`?")), "{message}");
    }
    let others = metadata(&json!({"order": "7", "conclavist": "yes", "mode": "x"}));
    assert!(context(&HeaderMap::new(), &others, &Mode::ALL).is_ok());
}

#[test]
fn every_name_that_is_read_is_known() {
    let headers = STATED.map(|name| format!("{HEADER_PREFIX}{}", name.replace('_', "-")));
    let headers = headers.iter().map(String::as_str).chain([SESSION_HEADER]);
    let headers =
        headers.map(|name| (name.parse::<HeaderName>().unwrap(), "x".parse().unwrap())).collect();
    let stated = StatedCircumstances { headers: &headers, metadata: None };
    assert!(stated.check_names().is_ok());
}

#[test]
fn letters_apart_are_counted() {
    for (one, other, expected) in
        [("", "", 0), ("mod", "mode", 1), ("mode", "mod", 1), ("minro", "minor", 2), ("x", "", 1)]
    {
        assert_eq!(letters_apart(one, other), expected, "{one} {other}");
    }
}
