//! Every error a client can see, and its one mapping to HTTP.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// An error in the shape the OpenAI SDKs expect.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: &'static str,
    message: String,
    param: Option<String>,
    retry_after_s: Option<u32>,
}

/// Marks a response as a refusal that no decision stands for, so that it is recorded as one.
#[derive(Clone, Copy, Debug)]
pub struct RefusedAs(pub &'static str);

impl ApiError {
    fn new(
        status: StatusCode,
        kind: &'static str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { status, kind, code, message: message.into(), param: None, retry_after_s: None }
    }

    /// 400: the request is wrong at `param`.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::malformed(message);
        Self { param: Some(param.into()), ..error }
    }

    /// 400: the request cannot be read.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", "invalid_request", message)
    }

    /// 401: no key, or none that opens anything.
    pub fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "authentication_error",
            "invalid_api_key",
            "This needs a valid API key: send it as `Authorization: Bearer ck_...`.",
        )
    }

    /// 403: the key is known but not for this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", "forbidden", message)
    }

    /// 404: nothing of that name.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", "not_found", message)
    }

    /// 404: no such model.
    pub fn unknown_model(message: impl Into<String>) -> Self {
        let error =
            Self::new(StatusCode::NOT_FOUND, "invalid_request_error", "model_not_found", message);
        Self { param: Some("model".into()), ..error }
    }

    /// 405: the path exists, the method does not.
    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "invalid_request_error",
            "method_not_allowed",
            "This path does not take that method; see /openapi.json.",
        )
    }

    /// 408: the body did not come in time.
    pub fn too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "invalid_request_error",
            "request_timeout",
            "The request body did not arrive in time.",
        )
    }

    /// 409: somebody else was first, or it is decided already.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "invalid_request_error", "conflict", message)
    }

    /// 413: the body is too large.
    pub fn too_large(limit_bytes: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            "request_too_large",
            format!("The request body is larger than {limit_bytes} bytes."),
        )
    }

    /// 503: too much at once.
    pub fn overloaded() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "overloaded",
            "Too many requests are in flight; try again shortly.",
        );
        Self { retry_after_s: Some(1), ..error }
    }

    /// 503: nothing can be recorded, so nothing may be said.
    pub fn audit_unavailable() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "audit_unavailable",
            "The decision cannot be recorded, so the reply is withheld; try again shortly.",
        );
        Self { retry_after_s: Some(5), ..error }
    }

    /// 503: the archive does not answer.
    pub fn archive_unavailable() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "api_error",
            "archive_unavailable",
            "The record of decisions cannot be read right now.",
        );
        Self { retry_after_s: Some(5), ..error }
    }

    /// 500: a bug of ours.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "api_error",
            "internal_error",
            "Something went wrong here; it has been logged.",
        )
    }

    /// The body in OpenAI's shape.
    #[must_use]
    pub fn body(&self) -> Value {
        error_body(&self.message, self.kind, self.param.as_deref(), self.code)
    }
}

/// An error object in OpenAI's shape: all four fields are always there.
pub(crate) fn error_body(message: &str, kind: &str, param: Option<&str>, code: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::PAYLOAD_TOO_LARGE
            || self.status == StatusCode::REQUEST_TIMEOUT
        {
            // The rest of the body is still on its way: this connection cannot be used again.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response.extensions_mut().insert(RefusedAs(self.code));
        response
    }
}
