//! Requests that ask to be answered once: whoever is first is answered, others get the same bytes.

use crate::admission::idempotency::{Claim, Entry, Kept, Person, Repeat, begin};
use crate::error::ApiError;
use crate::state::Gateway;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use conclave_engine::KeyRecord;
use http::{HeaderName, HeaderValue, StatusCode};

/// Whether a request was sent before.
pub(crate) enum Sent {
    /// It was, and was answered so.
    Before(Response),
    /// It is answered now; others may wait for it where there is a claim.
    First(Option<Claim>),
}

/// Answers from what was kept, or says that this one is the first.
pub(crate) async fn sent(
    gateway: &Gateway,
    key: &KeyRecord,
    repeat: Option<&Repeat>,
    person: Person<'_>,
) -> Result<Sent, ApiError> {
    let Some(repeat) = repeat else { return Ok(Sent::First(None)) };
    Ok(match begin(gateway, key, repeat, person).await? {
        Entry::Again(kept) => Sent::Before(again(kept)?),
        Entry::First(claim) => Sent::First(Some(claim)),
    })
}

/// The response, kept for whoever repeats the request.
pub(crate) async fn keep(
    mut response: Response,
    frames: &[Bytes],
    claim: Option<Claim>,
) -> Response {
    let Some(claim) = claim else { return response };
    let told = response.headers().iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let told = told.collect();
    if !claim.answer(response.status().as_u16(), told, frames).await {
        let unkept = HeaderValue::from_static("not-kept");
        response.headers_mut().insert("x-conclave-idempotency", unkept);
    }
    response
}

/// Nothing was decided: whoever asks again is the first.
pub(crate) async fn give_back(claim: Option<Claim>) {
    if let Some(claim) = claim {
        claim.give_back().await;
    }
}

/// What was answered before, in the same bytes.
fn again(kept: Kept) -> Result<Response, ApiError> {
    let body = kept.body.ok_or_else(ApiError::idempotency_gone)?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(kept.status).unwrap_or_default();
    for (name, value) in kept.headers {
        let name = HeaderName::try_from(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    Ok(response)
}
