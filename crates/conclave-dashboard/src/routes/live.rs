//! `GET /live`: the figures of the overview as JSON, for its script.
//!
//! **Invariant:** asking does not count as use: a page left open does not keep a session alive.

use crate::board::Board;
use crate::cookie::Cookie;
use crate::dashboard::Dashboard;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use conclave_ledger::tenant_number;
use http::{HeaderMap, StatusCode};

/// The figures.
pub(super) async fn show(State(dashboard): State<Dashboard>, headers: HeaderMap) -> Response {
    let session = Cookie::Session.read(&headers, dashboard.https());
    let account = session.and_then(|id| dashboard.sessions().peek(id, dashboard.now_ms()));
    let Some(account) = account
        .filter(|account| account.may_look() && dashboard.ports().sign_in.is_current(account))
    else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    match Board::read(&dashboard, tenant_number(account.tenant.as_str())).await {
        Ok(board) => Json(board.figures()).into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
