//! What every answer tells the browser it may not do.
//!
//! **Invariant:** no page loads, sends to or is framed by another host, and no string becomes
//! script.

use axum::response::Response;
use http::{HeaderName, HeaderValue, header};

/// The content security policy of every answer.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self'; connect-src 'self'; frame-ancestors 'none'; form-action 'self'; \
    base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Adds the headers; what a handler said about caching stands.
pub(crate) async fn guard(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
