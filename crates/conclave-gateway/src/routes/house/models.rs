//! `GET /v1/models`.

use crate::admission::entrance::{Need, admit_key};
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use serde_json::{Value, json};

pub(crate) async fn list_models(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    respond(admit_key(&gateway, &headers, Need::Converse).map(|_| {
        let offered = gateway.engine().models.names();
        let data: Vec<_> = offered.iter().map(|(name, owner)| model_view(name, owner)).collect();
        Json(json!({"object": "list", "data": data})).into_response()
    }))
}

pub(crate) async fn show_model(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    respond(admit_key(&gateway, &headers, Need::Converse).and_then(|_| {
        let offered = gateway.engine().models.names();
        let found = offered.iter().find(|(offered, _)| *offered == name);
        found
            .map(|(name, owner)| Json(model_view(name, owner)).into_response())
            .ok_or_else(|| ApiError::unknown_model("This model does not exist here."))
    }))
}

fn model_view(name: &str, provider: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": provider})
}
