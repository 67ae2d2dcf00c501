//! `GET /docs`: the reference of the interface. Anybody may read it; it says nothing about anybody.

use crate::page::{Frame, page};
use crate::reference::{REFERENCE, Reference};
use askama::Template;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferencePage {
    frame: Frame,
    reference: &'static Reference,
}

/// The page.
pub(super) async fn show() -> Response {
    let frame = Frame::outside("Reference");
    let mut response = page(StatusCode::OK, &ReferencePage { frame, reference: &REFERENCE });
    // The same for everybody until the program is replaced.
    let caching = HeaderValue::from_static("public, max-age=300");
    response.headers_mut().insert(header::CACHE_CONTROL, caching);
    response
}
