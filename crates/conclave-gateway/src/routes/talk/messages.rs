//! `POST /v1/messages` and `/v1/messages/count_tokens`: Anthropic's interface.

use super::turns::converse;
use crate::admission::entrance::{Need, admit_request, admit_talk};
use crate::error::{ApiError, Envelope};
use crate::state::Gateway;
use crate::wire::messages::reply::MessagesDialect;
use crate::wire::messages::request::{count_tokens, parse_messages, read_betas};
use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub(crate) async fn create_message(State(gateway): State<Gateway>, request: Request) -> Response {
    respond_as_anthropic(answer_message(&gateway, request).await)
}

async fn answer_message(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut request = admit_talk(gateway, request).await?;
    let document = request.document.take();
    let read = read_betas(&request.headers).and_then(|betas| parse_messages(document, &betas));
    let inquiry = request.or_count(gateway, read)?;
    let talk = request.begin_talk(gateway, inquiry)?;
    let dialect = Box::new(MessagesDialect::new(gateway.settings().omit_own_fields));
    converse(gateway, &request, talk, dialect).await
}

/// How much a request is to read, estimated; no model is asked.
pub(crate) async fn estimate_tokens(State(gateway): State<Gateway>, request: Request) -> Response {
    let counted = async {
        let request = admit_request(&gateway, request, Need::Converse, None).await?;
        let tokens = count_tokens(request.document)?;
        Ok(Json(json!({"input_tokens": tokens})).into_response())
    };
    respond_as_anthropic(counted.await)
}

fn respond_as_anthropic(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(|error| error.into_response_as(Envelope::Anthropic))
}
