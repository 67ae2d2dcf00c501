//! `POST /v1/completions`: OpenAI's older interface.

use super::turns::converse;
use crate::admission::entrance::admit_talk;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::completion::{CompletionDialect, CompletionRequest, parse_completion};
use axum::extract::{Request, State};
use axum::response::Response;

pub(crate) async fn complete_prompt(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer_prompt(&gateway, request).await)
}

async fn answer_prompt(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut request = admit_talk(gateway, request).await?;
    let read = parse_completion(request.document.take());
    let CompletionRequest { inquiry, include_usage } = request.or_count(gateway, read)?;
    let talk = request.begin_talk(gateway, inquiry)?;
    let omit_own_fields = gateway.settings().omit_own_fields;
    let dialect = Box::new(CompletionDialect::new(omit_own_fields, include_usage));
    converse(gateway, &request, talk, dialect).await
}
