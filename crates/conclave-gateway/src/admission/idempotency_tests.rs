//! Which requests are the same one, and what is said again of an answer.

use super::*;

fn request(headers: &[(&str, &str)], path: &str) -> Parts {
    let mut request = http::Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[test]
fn the_same_request_has_the_same_digest_and_any_other_another() {
    let base = [("idempotency-key", "k1")];
    let of = |headers: &[(&str, &str)], path: &str, body: &str| {
        IdempotencyKey::read(&request(headers, path), body.as_bytes()).unwrap().unwrap().digest
    };
    let first = of(&base, "/v1/chat/completions", "{}");
    assert_eq!(first, of(&base, "/v1/chat/completions", "{}"));
    let with_other = [("idempotency-key", "k1"), ("accept", "*/*")];
    assert_eq!(first, of(&with_other, "/v1/chat/completions", "{}"));
    assert_ne!(first, of(&base, "/v1/messages", "{}"));
    assert_ne!(first, of(&base, "/v1/chat/completions", "{ }"));
    let child = [("idempotency-key", "k1"), ("x-conclave-mode", "child-safe")];
    assert_ne!(first, of(&child, "/v1/chat/completions", "{}"));
}

#[test]
fn keys_are_checked() {
    assert!(IdempotencyKey::read(&request(&[], "/"), b"").unwrap().is_none());
    let long = "k".repeat(256);
    for bad in ["", "  ", "caf\u{e9}", long.as_str()] {
        let parts = request(&[("idempotency-key", bad)], "/");
        assert!(IdempotencyKey::read(&parts, b"").is_err(), "{bad}");
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    assert!(IdempotencyKey::read(&request(&twice, "/"), b"").is_err());
}

#[tokio::test]
async fn an_answer_is_said_again_in_the_same_bytes_or_is_gone() {
    let mut first = Response::new(Body::empty());
    *first.status_mut() = StatusCode::BAD_REQUEST;
    first.headers_mut().insert("x-conclave-outcome", HeaderValue::from_static("blocked"));
    let frames = [Bytes::from_static(b"{\"a\":"), Bytes::from_static(b"1}")];
    let kept = KeptAnswer::of_response("digest", &first, &frames);
    let gone = KeptAnswer { body: None, ..kept.clone() }.replay().unwrap_err();
    assert_eq!(gone.status(), StatusCode::CONFLICT);
    let again = kept.replay().unwrap();
    assert_eq!(again.status(), first.status());
    assert_eq!(again.headers()["x-conclave-outcome"], "blocked");
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    let body = axum::body::to_bytes(again.into_body(), 100).await.unwrap();
    assert_eq!(&body[..], frames.concat());
}

#[test]
fn what_the_records_hold_of_an_answer_keeps_its_form() {
    let kept = KeptAnswer {
        digest: "d".into(),
        status: 200,
        headers: vec![("content-type".into(), "application/json".into())],
        body: Some("{}".into()),
    };
    let form = serde_json::json!({
        "digest": "d", "status": 200, "body": "{}",
        "headers": [["content-type", "application/json"]],
    });
    assert_eq!(serde_json::json!(kept), form);
    assert_eq!(serde_json::from_value::<KeptAnswer>(form).unwrap(), kept);
}

#[test]
fn the_length_of_a_text_as_json_is_never_guessed_too_short() {
    for text in ["", "plain", "\"\\\"", "\u{1}\n\t", "caf\u{e9}"] {
        let written = serde_json::to_string(text).unwrap().len();
        assert!(escaped_len(text) + 2 >= written, "{text:?}");
    }
}
