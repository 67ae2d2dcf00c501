//! `POST /v1/messages` and `/v1/messages/count_tokens`: Anthropic's interface.

use super::turns::converse;
use crate::admission::auth::Need;
use crate::admission::entrance::{enter, enter_to_talk};
use crate::error::{ApiError, Envelope};
use crate::state::Gateway;
use crate::wire::messages::reply::Messages;
use crate::wire::messages::request;
use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Answers one request.
pub(crate) async fn create(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer(&gateway, request).await)
}

async fn answer(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter_to_talk(gateway, request).await?;
    let read = request::parse(entered.document.take());
    let inquiry = entered.understood(gateway, read)?;
    let dialect = Box::new(Messages::new(gateway.manners().omit_own_fields));
    converse(gateway, &entered, inquiry, dialect).await
}

/// How much a request is to read, estimated; no model is asked.
pub(crate) async fn count_tokens(State(gateway): State<Gateway>, request: Request) -> Response {
    let counted = async {
        let entered = enter(&gateway, request, Need::Converse).await?;
        let tokens = request::count_tokens(entered.document)?;
        Ok(Json(json!({"input_tokens": tokens})).into_response())
    };
    respond(counted.await)
}

fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(|error| error.into_response_as(Envelope::Anthropic))
}
