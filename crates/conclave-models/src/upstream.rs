//! What a provider says of a request that it refuses.
//!
//! **Invariant:** no sentence of a provider's reaches a client: only statuses that speak of the request, and
//! codes and names of fields, which are no place for words.

use conclave_engine::UpstreamRefusal;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// The longest code or name of a field.
const NAME_BYTES_MAX: usize = 64;
/// The longest wait that is handed on.
const WAIT_SECONDS_MAX: u32 = 3_600;
/// What is said of requests that no context holds.
const TOO_LONG: &str = "context_length_exceeded";
/// How providers without a code for it say that a request is longer than a model's context.
const TOO_LONG_SAID: [&str; 6] = [
    "maximum context length",
    "context length of",
    "prompt is too long",
    "exceed context limit",
    "exceeds the available context size",
    "context window",
];

/// An error as OpenAI, Azure and Anthropic write it.
#[derive(Deserialize)]
struct StatedError {
    error: Details,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    code: Value,
    #[serde(default)]
    param: Value,
    #[serde(default)]
    message: Value,
}

/// What a client may know of a refusal; nothing where it does not speak of the request. Keys that a provider
/// refuses are the operator's trouble.
pub(crate) fn read_refusal(
    status: StatusCode,
    body: &[u8],
    wait: Option<Duration>,
) -> Option<UpstreamRefusal> {
    if !matches!(status.as_u16(), 400 | 404 | 413 | 429) {
        return None;
    }
    let stated: Option<StatedError> = serde_json::from_slice(body).ok();
    let name = |value: &Value| value.as_str().filter(|name| is_name(name)).map(str::to_owned);
    let details = stated.as_ref().map(|stated| &stated.error);
    let code = details.and_then(|details| name(&details.code));
    let message = details.and_then(|details| details.message.as_str()).unwrap_or_default();
    let is_too_long = status == StatusCode::BAD_REQUEST
        && TOO_LONG_SAID.iter().any(|said| message.to_ascii_lowercase().contains(said));
    let is_limit = status == StatusCode::TOO_MANY_REQUESTS;
    Some(UpstreamRefusal {
        status: status.as_u16(),
        code: if is_too_long { Some(TOO_LONG.to_owned()) } else { code },
        param: details.and_then(|details| name(&details.param)),
        retry_after_s: wait.filter(|_| is_limit).map(|wait| {
            u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).clamp(1, WAIT_SECONDS_MAX)
        }),
    })
}

/// Neither a sentence nor a key.
fn is_name(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_.[]-".contains(&byte);
    let has_digits = name.bytes().filter(u8::is_ascii_digit).count() > 6;
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_sign) && !has_digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str, wait: Option<u64>) -> Option<UpstreamRefusal> {
        let status = StatusCode::from_u16(status).unwrap();
        read_refusal(status, body.as_bytes(), wait.map(Duration::from_secs))
    }

    fn code(status: u16, body: &str) -> Option<String> {
        read(status, body, None).unwrap().code
    }

    #[test]
    fn statuses_that_speak_of_the_request_are_told() {
        let body = r#"{"error":{"message":"m","type":"t","param":"tools[0].function","code":"invalid_value"}}"#;
        let told = read(400, body, Some(5)).unwrap();
        assert_eq!((told.status, told.retry_after_s), (400, None));
        assert_eq!(told.code.as_deref(), Some("invalid_value"));
        assert_eq!(told.param.as_deref(), Some("tools[0].function"));
        for status in [401, 403, 422, 500, 503, 529] {
            assert_eq!(read(status, body, None), None, "{status}");
        }
        for (wait, expected) in
            [(None, None), (Some(0), Some(1)), (Some(17), Some(17)), (Some(1 << 40), Some(3_600))]
        {
            assert_eq!(read(429, "", wait).unwrap().retry_after_s, expected);
        }
    }

    #[test]
    fn a_request_that_is_too_long_is_called_so_whoever_says_it() {
        for said in [
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":null}}"#,
            r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8"}}"#,
        ] {
            assert_eq!(code(400, said).as_deref(), Some(TOO_LONG), "{said}");
        }
        assert_eq!(code(404, r#"{"error":{"message":"prompt is too long"}}"#), None);
    }

    #[test]
    fn a_code_is_no_place_for_words_or_keys() {
        for said in [
            r#"{"error":{"code":"take the knife"}}"#,
            r#"{"error":{"code":7}}"#,
            r#"{"error":{"code":""}}"#,
            r#"{"error":{"code":"sk-4f9a8b7c6d5e4f3a2b1c"}}"#,
            r#"{"error":"no"}"#,
            "<html>",
            "",
        ] {
            assert_eq!(code(400, said), None, "{said}");
        }
    }
}
