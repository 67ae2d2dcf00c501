//! `POST /v1/completions`: OpenAI's older interface.

use super::turns::converse;
use crate::admission::entrance::enter_to_talk;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::completion::{self, Completion, CompletionRequest};
use axum::extract::{Request, State};
use axum::response::Response;

/// Answers one request.
pub(crate) async fn create(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer(&gateway, request).await)
}

async fn answer(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter_to_talk(gateway, request).await?;
    let read = completion::parse(entered.document.take());
    let CompletionRequest { inquiry, include_usage } = entered.understood(gateway, read)?;
    let dialect = Box::new(Completion::new(gateway.manners().omit_own_fields, include_usage));
    converse(gateway, &entered, inquiry, dialect).await
}
