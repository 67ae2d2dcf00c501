//! `POST /v1/chat/completions`: OpenAI's chat interface.

use super::turns::converse;
use crate::admission::entrance::admit_talk;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::chat::{ChatDialect, ChatRequest, ReplyForm};
use axum::extract::{Request, State};
use axum::response::Response;

pub(crate) async fn complete_chat(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer_chat(&gateway, request).await)
}

async fn answer_chat(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut request = admit_talk(gateway, request).await?;
    let read = ChatRequest::parse(request.document.take());
    let ChatRequest { inquiry, include_usage } = request.or_count(gateway, read)?;
    let form = ReplyForm {
        structured: inquiry.structured,
        omit_own_fields: gateway.settings().omit_own_fields,
    };
    let talk = request.begin_talk(gateway, inquiry)?;
    converse(gateway, &request, talk, Box::new(ChatDialect::new(form, include_usage))).await
}
