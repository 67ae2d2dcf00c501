//! Every error a client can see, and its one mapping to HTTP.

use axum::response::{IntoResponse, Response};
use conclave_core::GuardCode;
use conclave_engine::{ConsentGap, UpstreamRefusal};
use conclave_voice::guard_sentence;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// The code of whatever is refused for what it says.
const CONTENT_FILTER: &str = "content_filter";

/// An error in the shape the OpenAI SDKs expect.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: &'static str,
    message: String,
    param: Option<String>,
    retry_after_s: Option<u32>,
    /// A provider's own code, said in the place of ours.
    upstream_code: Option<String>,
}

/// Whose shape an error has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Envelope {
    /// `{"error": {message, type, param, code}}`.
    #[default]
    OpenAi,
    /// `{"type": "error", "error": {type, message}}`.
    Anthropic,
}

impl Envelope {
    /// The shape of errors at a path, whether or not anything is there.
    pub(crate) fn at_path(path: &str) -> Self {
        match path.strip_prefix("/v1/messages") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Self::Anthropic,
            _ => Self::OpenAi,
        }
    }
}

/// Marks a response as a refusal that no decision stands for, so that it is recorded as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusalCode(pub &'static str);

impl ApiError {
    fn new(
        status: StatusCode,
        kind: &'static str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self { status, kind, code, message, param: None, retry_after_s: None, upstream_code: None }
    }

    /// 400: the request is wrong at `param`.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::malformed(message);
        Self { param: Some(param.into()), ..error }
    }

    /// 400: the request cannot be read.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", "invalid_request", message)
    }

    /// 401: no key, or none that opens anything.
    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "authentication_error",
            "invalid_api_key",
            "This needs a valid API key: send it as `Authorization: Bearer ck_...`.",
        )
    }

    /// 403: the key is known but not for this.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", "forbidden", message)
    }

    /// What a guard refused: the one table from its codes to HTTP. The message is what the person reads.
    pub(crate) fn refused_by_guard(code: GuardCode, message: impl Into<String>) -> Self {
        match code {
            GuardCode::ConsentRequired | GuardCode::ConsentWithdrawn | GuardCode::Jurisdiction => {
                Self::new(StatusCode::FORBIDDEN, "permission_error", code.as_str(), message)
            }
            GuardCode::JurisdictionUnknown => {
                let code = GuardCode::Jurisdiction.as_str();
                Self::new(StatusCode::FORBIDDEN, "permission_error", code, message)
            }
            GuardCode::ModelNotPermitted | GuardCode::Unpriced => Self::forbidden(message),
            GuardCode::UnknownModel => Self::unknown_model(message),
            GuardCode::TooLong => Self::new(
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                "context_length_exceeded",
                message,
            ),
            GuardCode::InsufficientQuota => Self::insufficient_quota(message, None),
            GuardCode::Unjudged => Self::new(
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                "unjudged_content",
                message,
            )
            .at_field("messages"),
            GuardCode::Cultural
            | GuardCode::Sacred
            | GuardCode::NoElders
            | GuardCode::PersonalData
            | GuardCode::Injection
            | GuardCode::Harmful
            | GuardCode::Doubt
            | GuardCode::History
            | GuardCode::Toxicity
            | GuardCode::ConsentUnverified
            | GuardCode::NoBudgetKept
            | GuardCode::Downgraded
            | GuardCode::GuardFailed => Self::content_filter(message),
        }
    }

    /// 403: a person's consent does not cover what is to be handed out now.
    pub(crate) fn consent_gap(gap: ConsentGap) -> Self {
        let code = match gap {
            ConsentGap::Required => GuardCode::ConsentRequired,
            ConsentGap::Withdrawn => GuardCode::ConsentWithdrawn,
        };
        Self::refused_by_guard(code, guard_sentence(code, "en"))
    }

    /// Whether it refuses what somebody said, rather than what they may do.
    pub(crate) fn is_content_filter(&self) -> bool {
        self.code == CONTENT_FILTER
    }

    pub(crate) const fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }

    /// 404: nothing of that name.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", "not_found", message)
    }

    /// The same error, naming the field it is about.
    pub(crate) fn at_field(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    /// 404: no such model.
    pub(crate) fn unknown_model(message: impl Into<String>) -> Self {
        let error =
            Self::new(StatusCode::NOT_FOUND, "invalid_request_error", "model_not_found", message);
        Self { param: Some("model".into()), ..error }
    }

    /// 405: the path exists, the method does not.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "invalid_request_error",
            "method_not_allowed",
            "This path does not take that method; see /openapi.json.",
        )
    }

    /// 408: the body did not come in time.
    pub(crate) fn too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "invalid_request_error",
            "request_timeout",
            "The request body did not arrive in time.",
        )
    }

    /// 409: somebody else was first, or it is decided already.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "invalid_request_error", "conflict", message)
    }

    /// 409: the first request with this idempotency key is still being answered.
    pub(crate) fn idempotency_in_progress() -> Self {
        let error = Self::new(
            StatusCode::CONFLICT,
            "invalid_request_error",
            "idempotency_in_progress",
            "A request with this Idempotency-Key is still being answered; try again shortly.",
        );
        Self { retry_after_s: Some(1), ..error }.at_field("Idempotency-Key")
    }

    /// 409: there was an answer under this idempotency key, and it is not kept.
    pub(crate) fn idempotency_gone() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "invalid_request_error",
            "idempotency_gone",
            "A request with this Idempotency-Key was answered, and the answer is not kept; use another \
             key to ask anew.",
        )
        .at_field("Idempotency-Key")
    }

    /// 422: the idempotency key belongs to another request.
    pub(crate) fn idempotency_key_reused() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request_error",
            "idempotency_key_reused",
            "This Idempotency-Key was used for another request; a key belongs to one request.",
        )
        .at_field("Idempotency-Key")
    }

    /// 413: the body is too large.
    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            "request_too_large",
            format!("The request body is larger than {limit_bytes} bytes."),
        )
    }

    /// 429: a limit on money forbids it; the sentence names the scope.
    pub(crate) fn insufficient_quota(
        message: impl Into<String>,
        retry_after_s: Option<u32>,
    ) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let error = Self::new(status, "insufficient_quota", "insufficient_quota", message);
        Self { retry_after_s, ..error }
    }

    /// 429: too many requests or tokens within a minute; the sentence names the limit.
    pub(crate) fn rate_limit_exceeded(message: impl Into<String>, retry_after_s: u32) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let error = Self::new(status, "rate_limit_error", "rate_limit_exceeded", message);
        Self { retry_after_s: Some(retry_after_s), ..error }
    }

    /// 503: a limit is in force and cannot be checked.
    pub(crate) fn budget_unavailable() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "budget_unavailable",
            "A budget is in force and cannot be checked right now; try again shortly.",
        );
        Self { retry_after_s: Some(5), ..error }
    }

    /// 503: too much at once.
    pub(crate) fn overloaded() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "overloaded",
            "Too many requests are in flight; try again shortly.",
        );
        Self { retry_after_s: Some(1), ..error }
    }

    /// 503: nothing can be recorded, so nothing may be said.
    pub(crate) fn audit_unavailable() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "audit_unavailable",
            "The decision cannot be recorded, so the reply is withheld; try again shortly.",
        );
        Self { retry_after_s: Some(5), ..error }
    }

    /// 503: a guard could not be asked, and there is nothing that may be said instead.
    pub(crate) fn guard_unavailable() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "guard_unavailable",
            "What must be looked at first cannot be looked at right now; try again shortly.",
        );
        Self { retry_after_s: Some(5), ..error }
    }

    /// 503: the archive does not answer.
    pub(crate) fn archive_unavailable() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "archive_unavailable",
            "The record of decisions cannot be read right now.",
        );
        Self { retry_after_s: Some(5), ..error }
    }

    /// 500: a bug of ours.
    pub(crate) fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "api_error",
            "internal_error",
            "Something went wrong here; it has been logged.",
        )
    }

    /// 400: what was asked for is refused, in the system's own words.
    pub(crate) fn content_filter(message: impl Into<String>) -> Self {
        let error =
            Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", "content_filter", message);
        Self { param: Some("messages".into()), ..error }
    }

    /// 502: the model could not answer.
    pub(crate) fn upstream() -> Self {
        let message = "The model could not answer.";
        Self::new(StatusCode::BAD_GATEWAY, "api_error", "upstream_error", message)
    }

    /// 400, 404, 413 or 429: the model's provider refused the request, and says which of its rules it breaks. The
    /// sentence is ours, because nobody judges a provider's.
    pub(crate) fn refused_upstream(refusal: &UpstreamRefusal) -> Self {
        let code = refusal.code.as_deref();
        let (status, kind, own_code, message) = match refusal.status {
            404 => (
                StatusCode::NOT_FOUND,
                "invalid_request_error",
                "upstream_not_found",
                "The model's provider does not know what was asked for.",
            ),
            413 => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "invalid_request_error",
                "upstream_too_large",
                "The request is larger than the model's provider takes.",
            ),
            429 => (
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limit_error",
                "upstream_rate_limit",
                "The model's provider takes no more requests for now; try again later.",
            ),
            // Clients that shorten a conversation look for these words.
            _ if code == Some("context_length_exceeded") => (
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                "context_length_exceeded",
                "This model's maximum context length is exceeded: the messages are too long.",
            ),
            _ if code == Some(CONTENT_FILTER) => (
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                CONTENT_FILTER,
                "The model's provider refused the request for what it says.",
            ),
            _ => (
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                "upstream_invalid_request",
                "The model's provider refused the request as invalid.",
            ),
        };
        Self {
            param: refusal.param.clone(),
            retry_after_s: refusal.retry_after_s,
            upstream_code: refusal.code.clone(),
            ..Self::new(status, kind, own_code, message)
        }
    }

    /// 504: the model was too slow.
    pub(crate) fn upstream_timeout() -> Self {
        let message = "The model did not answer in time.";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "api_error", "upstream_timeout", message)
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    /// The body, in the shape the interface's SDKs expect.
    pub(crate) fn body(&self, envelope: Envelope) -> Value {
        let code = self.upstream_code.as_deref().unwrap_or(self.code);
        let kind = match envelope {
            Envelope::OpenAi => self.kind,
            Envelope::Anthropic => anthropic_type(self.status),
        };
        // All four fields are always there.
        let mut error = json!({
            "message": self.message, "type": kind, "param": self.param, "code": code,
        });
        if self.is_content_filter() {
            error["innererror"] = policy_violation();
        }
        match envelope {
            Envelope::OpenAi => json!({"error": error}),
            Envelope::Anthropic => json!({"type": "error", "error": error}),
        }
    }

    /// The response, in the shape the interface's SDKs expect.
    pub(crate) fn into_response_as(self, envelope: Envelope) -> Response {
        let mut response = (self.status, axum::Json(self.body(envelope))).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if matches!(self.code, "request_too_large" | "request_timeout") {
            // The rest of the body is still on its way: this connection cannot be used again.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response.extensions_mut().insert(RefusalCode(self.code));
        response
    }
}

/// What clients look for to tell a refusal of the words from an invalid request: Azure's code, OpenAI's type and
/// the words that stand in Anthropic's message.
fn policy_violation() -> Value {
    json!({
        "code": "ResponsibleAIPolicyViolation",
        "type": "content_policy_violation",
        "message": "Blocked by content filtering policy.",
    })
}

/// Words of an error as a whole sentence, with a capital and an end.
pub(crate) fn as_sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let end = if words.ends_with('.') { "" } else { "." };
    first.chain(letters).chain(end.chars()).collect()
}

/// What Anthropic's interface calls an error with this status.
fn anthropic_type(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.into_response_as(Envelope::OpenAi)
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
