//! `POST /v1/embeddings`: passed to the provider and back. Nothing of it is judged, and it says so.

use super::entrance::enter;
use super::respond;
use crate::auth::Need;
use crate::error::ApiError;
use crate::state::Gateway;
use crate::wire::fields;
use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::GenerationFailure;
use conclave_engine::{Embedded, Embedding, Model, OfferedModel};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::sync::Arc;

/// Texts in one request, as OpenAI bounds them.
const TEXTS_MAX: usize = 2_048;

/// Turns texts into vectors.
pub(super) async fn create(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer(&gateway, request).await)
}

async fn answer(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter(gateway, request, Need::Converse).await?;
    let mut body = fields::object(entered.document.take())?;
    let name = fields::model(&body)?;
    check_input(body.get("input"))?;
    fields::take_metadata(&mut body)?;
    let engine = gateway.engine();
    let offered = engine.models.find(&name);
    let offered: OfferedModel = offered.ok_or_else(|| unknown(&name))?;
    let permit = gateway.turns().clone().try_acquire_owned().map_err(|_| ApiError::overloaded())?;
    let model: &dyn Model = &*offered.model;
    let answered = model.embed(Arc::new(body), engine.settings.turn_deadline).await;
    drop(permit);
    let embedded = answered.ok_or_else(|| unknown(&name))?.map_err(|error| {
        tracing::warn!(model = %name, %error, "the model gave no vectors");
        match error.failure {
            GenerationFailure::Timeout => ApiError::upstream_timeout(),
            _ => ApiError::upstream(),
        }
    })?;
    let mut page = page(&name, &embedded);
    if !gateway.manners().omit_own_fields {
        page["conclave"] = json!({"verified": false, "unjudged": ["embeddings"]});
    }
    let mut response = Json(page).into_response();
    response.headers_mut().insert(
        HeaderName::from_static("x-conclave-outcome"),
        HeaderValue::from_static("unjudged"),
    );
    Ok(response)
}

fn unknown(name: &str) -> ApiError {
    let name = &name[..name.floor_char_boundary(128)];
    ApiError::unknown_model(format!("The model `{name}` turns no texts into vectors here."))
}

fn check_input(input: Option<&Value>) -> Result<(), ApiError> {
    match input {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(items)) if (1..=TEXTS_MAX).contains(&items.len()) => Ok(()),
        Some(Value::Array(_)) => {
            Err(ApiError::invalid("input", format!("must hold 1 to {TEXTS_MAX} items")))
        }
        _ => Err(ApiError::invalid("input", "must be a string or an array")),
    }
}

fn page(model: &str, embedded: &Embedded) -> Value {
    let data: Vec<_> = embedded
        .vectors
        .iter()
        .enumerate()
        .map(|(index, vector)| {
            let vector = match vector {
                Embedding::Numbers(numbers) => json!(numbers),
                Embedding::Packed(text) => json!(text),
            };
            json!({"object": "embedding", "index": index, "embedding": vector})
        })
        .collect();
    let tokens = embedded.input_tokens;
    json!({
        "object": "list",
        "data": data,
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })
}
