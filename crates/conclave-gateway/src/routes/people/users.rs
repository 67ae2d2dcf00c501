//! `GET /v1/users/{id}/drift`: where a person stands, with the messages it rests on.

use crate::admission::entrance::{Need, admit_key};
use crate::error::ApiError;
use crate::routes::house::decisions::archive_error;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::response::Response;
use conclave_core::UserId;
use http::HeaderMap;
use serde_json::json;

/// Where a person of the key's tenant stands; somebody who never wrote stands nowhere.
pub(crate) async fn show_drift(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Explain)?;
        let user =
            UserId::new(id.as_str()).map_err(|error| ApiError::invalid("id", error.to_string()))?;
        let course = gateway.engine().course_of(&key.tenant, &user).await;
        let course = course.map_err(archive_error)?;
        Ok(Json(json!({
            "object": "drift",
            "user_id": user,
            "state": course.state(),
            "messages": course.messages,
            "updated_ms": course.updated_ms,
            "alerts": course.alerts(),
        }))
        .into_response())
    };
    respond(found.await)
}
