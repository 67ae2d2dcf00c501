//! `GET /receipt`: a page that checks receipts. Anybody may see it; it knows nothing.

use crate::page::{Frame, page};
use askama::Template;
use axum::response::Response;
use http::StatusCode;

#[derive(Template)]
#[template(path = "receipt.html")]
struct ReceiptPage {
    frame: Frame,
}

/// The page.
pub(super) async fn show() -> Response {
    page(StatusCode::OK, &ReceiptPage { frame: Frame::outside("Check a receipt") })
}
