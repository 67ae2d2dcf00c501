//! Health, metrics and the description of the interface.

use crate::state::Gateway;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

/// The description of the interface.
pub const OPENAPI: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json"));

/// The process runs.
pub(crate) async fn show_live() -> &'static str {
    "ok\n"
}

/// It can take requests: decisions can be recorded. A slow archive does not stop it.
pub(crate) async fn show_ready(State(gateway): State<Gateway>) -> Response {
    if gateway.server().is_draining() {
        let sentence = "not ready: it is stopping\n";
        return (StatusCode::SERVICE_UNAVAILABLE, sentence).into_response();
    }
    match gateway.engine().ledger.health() {
        Ok(()) => "ready\n".into_response(),
        Err(trouble) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {trouble}\n")).into_response()
        }
    }
}

/// How each part is doing.
pub(crate) async fn show_health(State(gateway): State<Gateway>) -> Response {
    let engine = gateway.engine();
    let spool = engine.ledger.health();
    let archive = engine.archive.health().await;
    let checkpoints = gateway.proofs().health();
    let mut alerts = engine.ledger.state().alerts;
    let status = match (&spool, &archive, &checkpoints) {
        (Ok(()), Ok(()), Ok(())) if alerts.is_empty() => "ok",
        (Ok(()), ..) => "degraded",
        (Err(_), ..) => "down",
    };
    // Whoever comes near a limit should know; the house is well all the same.
    alerts.extend(engine.steward.iter().flat_map(|steward| steward.state.alerts()));
    let code = if spool.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let part = |trouble: Option<String>| match trouble {
        None => json!({"status": "ok"}),
        Some(trouble) => json!({"status": "down", "message": trouble}),
    };
    let body = json!({
        "status": status,
        "version": engine.settings.build,
        "parts": {
            "spool": part(spool.err().map(|error| error.to_string())),
            "archive": part(archive.err().map(|error| error.to_string())),
            "checkpoints": part(checkpoints.err()),
        },
        "alerts": alerts,
    });
    (code, Json(body)).into_response()
}

pub(crate) async fn show_metrics(State(gateway): State<Gateway>) -> Response {
    let engine = gateway.engine();
    let gauges = gateway.server_gauges(&engine.settings.build);
    let mut page = gateway.metrics().render(engine.ledger.dropped(), &engine.ledger.state());
    gateway.server().counters().render(&mut page, &gauges);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], page).into_response()
}

pub(crate) async fn show_openapi() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], OPENAPI).into_response()
}
