//! `GET /v1/models`.

use crate::admission::auth::{Need, admit};
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use serde_json::{Value, json};

/// Every model this gateway offers.
pub(crate) async fn list(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    respond(admit(&gateway, &headers, Need::Converse).map(|_| {
        let data: Vec<_> =
            offered(&gateway).iter().map(|(name, provider)| model(name, provider)).collect();
        Json(json!({"object": "list", "data": data})).into_response()
    }))
}

/// One model.
pub(crate) async fn one(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    respond(admit(&gateway, &headers, Need::Converse).and_then(|_| {
        offered(&gateway)
            .iter()
            .find(|(offered, _)| *offered == name)
            .map(|(name, provider)| Json(model(name, provider)).into_response())
            .ok_or_else(|| ApiError::unknown_model("This model does not exist here."))
    }))
}

fn offered(gateway: &Gateway) -> Vec<(String, std::sync::Arc<str>)> {
    gateway.engine().models.names()
}

fn model(name: &str, provider: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": provider})
}
