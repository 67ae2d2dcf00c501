//! What each error looks like to each interface's SDK, and what its headers say.

use super::*;

#[test]
fn whose_shape_an_error_has_is_known_by_its_path() {
    for path in ["/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches/x"] {
        assert_eq!(Envelope::at_path(path), Envelope::Anthropic, "{path}");
    }
    for path in ["/v1/messagesx", "/v1/chat/completions", "/", "/v1"] {
        assert_eq!(Envelope::at_path(path), Envelope::OpenAi, "{path}");
    }
}

const INVALID: &str = "invalid_request_error";
const UNKNOWN_KEY: &str = "authentication_error";
const FORBIDDEN: &str = "permission_error";
const QUOTA: &str = "insufficient_quota";
const LIMIT: &str = "rate_limit_error";
const OURS: &str = "api_error";
const BUSY: &str = "overloaded_error";

/// An error, its status, its type and code in OpenAI's shape, and its type in Anthropic's.
type Row = (fn() -> ApiError, u16, &'static str, &'static str, &'static str);

const ROWS: [Row; 24] = [
    (|| ApiError::malformed("x"), 400, INVALID, "invalid_request", INVALID),
    (|| ApiError::invalid("n", "x"), 400, INVALID, "invalid_request", INVALID),
    (|| ApiError::content_filter("x"), 400, INVALID, "content_filter", INVALID),
    (ApiError::unauthorized, 401, UNKNOWN_KEY, "invalid_api_key", UNKNOWN_KEY),
    (|| ApiError::forbidden("x"), 403, FORBIDDEN, "forbidden", FORBIDDEN),
    (
        || ApiError::refused_by_guard(GuardCode::ConsentRequired, "x"),
        403,
        FORBIDDEN,
        "consent_required",
        FORBIDDEN,
    ),
    (|| ApiError::not_found("x"), 404, INVALID, "not_found", "not_found_error"),
    (|| ApiError::unknown_model("x"), 404, INVALID, "model_not_found", "not_found_error"),
    (ApiError::method_not_allowed, 405, INVALID, "method_not_allowed", INVALID),
    (ApiError::too_slow, 408, INVALID, "request_timeout", INVALID),
    (|| ApiError::conflict("x"), 409, INVALID, "conflict", INVALID),
    (ApiError::idempotency_in_progress, 409, INVALID, "idempotency_in_progress", INVALID),
    (ApiError::idempotency_gone, 409, INVALID, "idempotency_gone", INVALID),
    (|| ApiError::too_large(1), 413, INVALID, "request_too_large", "request_too_large"),
    (ApiError::idempotency_key_reused, 422, INVALID, "idempotency_key_reused", INVALID),
    (|| ApiError::insufficient_quota("x", Some(7)), 429, QUOTA, QUOTA, LIMIT),
    (|| ApiError::rate_limit_exceeded("x", 7), 429, LIMIT, "rate_limit_exceeded", LIMIT),
    (ApiError::internal, 500, OURS, "internal_error", OURS),
    (ApiError::upstream, 502, OURS, "upstream_error", OURS),
    (ApiError::overloaded, 503, OURS, "overloaded", BUSY),
    (ApiError::audit_unavailable, 503, OURS, "audit_unavailable", BUSY),
    (ApiError::guard_unavailable, 503, OURS, "guard_unavailable", BUSY),
    (ApiError::archive_unavailable, 503, OURS, "archive_unavailable", BUSY),
    (ApiError::upstream_timeout, 504, OURS, "upstream_timeout", "timeout_error"),
];

#[test]
fn every_error_has_the_shape_that_each_sdk_reads() {
    for (error, status, kind, code, anthropic_kind) in ROWS {
        let error = error();
        assert_eq!(error.status().as_u16(), status, "{code}");
        let shown = error.body(Envelope::OpenAi);
        let fields: Vec<_> = shown["error"].as_object().unwrap().keys().collect();
        assert_eq!(fields[..4], ["message", "type", "param", "code"], "{code}: all four, always");
        assert_eq!(
            (&shown["error"]["type"], &shown["error"]["code"]),
            (&json!(kind), &json!(code))
        );
        let shown = error.body(Envelope::Anthropic);
        assert_eq!(shown["type"], "error", "{code}");
        assert_eq!(shown["error"]["type"], anthropic_kind, "{code}");
        assert_eq!(shown["error"]["code"], code);
        assert!(shown["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{code}");
    }
}

#[test]
fn an_error_that_is_worth_another_try_says_when() {
    for (error, status, _, code, _) in ROWS {
        let response = error().into_response();
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let is_ours_and_passes = status == 503 || status == 429;
        let expected = is_ours_and_passes || code == "idempotency_in_progress";
        assert_eq!(retry_after.is_some(), expected, "{code}");
    }
    let budget = ApiError::insufficient_quota("x", None).into_response();
    assert_eq!(budget.headers().get(header::RETRY_AFTER), None, "waiting would not help");
    assert_eq!(ApiError::budget_unavailable().into_response().headers()["retry-after"], "5");
}

#[test]
fn a_connection_whose_body_is_still_coming_ends_with_the_refusal() {
    for (error, status, _, code, _) in ROWS {
        let response = error().into_response();
        let closes = response.headers().get(header::CONNECTION).is_some();
        assert_eq!(closes, matches!(status, 408 | 413), "{code}");
        let noted = response.extensions().get::<RefusalCode>().map(|code| code.0);
        assert_eq!(noted, Some(code), "what is refused is recorded under its code");
    }
}

#[test]
fn an_error_is_told_in_a_whole_sentence() {
    for (words, sentence) in [
        ("the disk is full", "The disk is full."),
        ("Done already.", "Done already."),
        ("\u{e9}crit", "\u{c9}crit."),
        ("", "."),
    ] {
        assert_eq!(as_sentence(words), sentence);
    }
}

#[test]
fn a_block_says_what_clients_look_for_to_tell_it_from_an_invalid_request() {
    let error = ApiError::content_filter("I cannot help with that.");
    for envelope in [Envelope::OpenAi, Envelope::Anthropic] {
        let body = error.body(envelope);
        assert_eq!(body["error"]["code"], "content_filter");
        assert_eq!(body["error"]["message"], "I cannot help with that.");
        assert_eq!(body["error"]["innererror"]["code"], "ResponsibleAIPolicyViolation");
        let text = body.to_string();
        for sought in
            ["invalid_request_error", "content_policy_violation", "content filtering policy"]
        {
            assert!(text.contains(sought), "{text}");
        }
    }
    let other = ApiError::malformed("The body is empty.").body(Envelope::OpenAi);
    assert_eq!(other["error"].get("innererror"), None);
}

#[test]
fn what_a_provider_refuses_keeps_its_status_its_code_and_its_wait() {
    for (status, code, expected) in [
        (400, Some("invalid_value"), "invalid_value"),
        (400, None, "upstream_invalid_request"),
        (400, Some("context_length_exceeded"), "context_length_exceeded"),
        (404, Some("model_not_found"), "model_not_found"),
        (404, None, "upstream_not_found"),
        (413, None, "upstream_too_large"),
        (429, None, "upstream_rate_limit"),
    ] {
        let refusal = UpstreamRefusal {
            status,
            code: code.map(str::to_owned),
            param: Some("messages".into()),
            retry_after_s: (status == 429).then_some(17),
        };
        let error = ApiError::refused_upstream(&refusal);
        assert_eq!(error.status().as_u16(), status);
        assert_eq!(error.retry_after_s, (status == 429).then_some(17));
        let error = error.body(Envelope::OpenAi)["error"].clone();
        assert_eq!((&error["code"], &error["param"]), (&json!(expected), &json!("messages")));
    }
}
