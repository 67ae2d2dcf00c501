//! Every route, in one table.

mod decision;
mod decisions;
mod live;
mod overview;
mod receipt;
mod reference;
mod reviews;
mod signing;
mod why;

use crate::assets;
use crate::dashboard::Dashboard;
use crate::headers;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::routing::{get, post};

/// The largest form.
const FORM_BYTES_MAX: usize = 16 * 1_024;
/// The largest ruling: a text that goes out, with what is said about it, spelled likewise.
const RULING_BYTES_MAX: usize = 256 * 1_024;

/// The pages. Without a fallback of its own, so that it can be merged with the API.
pub fn router(dashboard: Dashboard) -> Router {
    Router::new()
        .route("/", get(overview::show))
        .route("/login", get(signing::form).post(signing::sign_in))
        .route("/logout", post(signing::sign_out))
        .route("/decisions", get(decisions::show))
        .route("/decisions/{id}", get(decision::show))
        .route("/reviews", get(reviews::list))
        .route("/reviews/{id}", get(reviews::one))
        .route("/reviews/{id}/claim", post(reviews::claim))
        .route("/reviews/{id}/release", post(reviews::release))
        .route(
            "/reviews/{id}/decide",
            post(reviews::decide).layer(DefaultBodyLimit::max(RULING_BYTES_MAX)),
        )
        .route("/live", get(live::show))
        .route("/receipt", get(receipt::show))
        .route("/docs", get(reference::show))
        .route("/assets/{name}", get(assets::serve))
        .route("/why/{token}", get(why::show).post(why::file))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(map_response(headers::guard))
        .with_state(dashboard)
}
