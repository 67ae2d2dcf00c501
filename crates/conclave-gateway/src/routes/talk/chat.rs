//! `POST /v1/chat/completions`: OpenAI's chat interface.

use super::turns::converse;
use crate::admission::entrance::enter_to_talk;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::chat::reply::{Chat, Form};
use crate::wire::chat::request::ChatRequest;
use axum::extract::{Request, State};
use axum::response::Response;

/// Answers one chat request.
pub(crate) async fn complete(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(handle(&gateway, request).await)
}

async fn handle(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter_to_talk(gateway, request).await?;
    let read = ChatRequest::parse(entered.document.take());
    let ChatRequest { inquiry, include_usage } = entered.understood(gateway, read)?;
    let omit_own_fields = gateway.manners().omit_own_fields;
    let form = Form { structured: inquiry.structured, omit_own_fields };
    let dialect = Box::new(Chat::new(form, include_usage));
    converse(gateway, &entered, inquiry, dialect).await
}
