//! `POST /v1/moderations`: what is to be read in texts, under OpenAI's names.

use super::turns::decide_turn;
use crate::admission::entrance::{AdmittedRequest, admit_talk};
use crate::admission::rates;
use crate::delivery::tracked_body::TrackedBody;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::chat::read_part;
use crate::wire::moderation::{moderation_result, own_scores};
use crate::wire::{Inquiry, json_object, own_fields, take_metadata, text_field, unjudged_kinds};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use conclave_core::{Content, Message, Role, SessionId};
use conclave_engine::{Reply, Turn};
use futures_util::future::try_join_all;
use http::{HeaderValue, header};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Texts in one request.
const TEXTS_MAX: usize = 32;
/// What decisions of this endpoint call their model: nothing was generated.
const MODEL: &str = "moderation";

pub(crate) async fn create_moderation(
    State(gateway): State<Gateway>,
    request: Request,
) -> Response {
    respond(answer_moderation(&gateway, request).await)
}

async fn answer_moderation(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut request = admit_talk(gateway, request).await?;
    let document = request.document.take();
    let read = read_moderation(gateway, &request, document);
    let ModerationRequest { model, turns } = request.or_count(gateway, read)?;
    rates::count_turns(gateway, &request.key, &turns)?;
    let readings = turns.into_iter().map(|turn| {
        let engine = gateway.engine();
        decide_turn(gateway, Box::pin(async move { engine.moderate(turn).await }))
    });
    let replies = try_join_all(readings).await?;
    let model = model.as_deref().unwrap_or("omni-moderation-latest");
    let page = moderation_page(&replies, model, gateway.settings().omit_own_fields);
    let deliveries = replies.into_iter().map(|reply| reply.delivery).collect();
    let body = TrackedBody::new([Bytes::from(page.to_string())], deliveries);
    let mut response = Response::new(Body::new(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

struct ModerationRequest {
    /// The name the client gave the model.
    model: Option<String>,
    /// One for each text.
    turns: Vec<Turn>,
}

fn read_moderation(
    gateway: &Gateway,
    request: &AdmittedRequest,
    document: Value,
) -> Result<ModerationRequest, ApiError> {
    let mut body = json_object(document)?;
    let model = text_field(&body, "model")?;
    let metadata = take_metadata(&mut body)?;
    let texts = read_texts(body.get("input"))?.into_iter();
    let turns = texts.map(|text| text_turn(gateway, request, text, metadata.as_ref()));
    Ok(ModerationRequest { model, turns: turns.collect::<Result<_, _>>()? })
}

fn moderation_page(replies: &[Reply], model: &str, omit_own_fields: bool) -> Value {
    let results: Vec<_> = replies
        .iter()
        .map(|reply| {
            let mut result = moderation_result(&reply.decision);
            if !omit_own_fields {
                let mut own = own_fields(reply);
                // A text was read; no reply stood before the panel.
                own["verified"] = Value::Null;
                own["scores"] = own_scores(&reply.decision);
                own["unjudged"] = json!(unjudged_kinds(&reply.decision.conversation));
                result["conclave"] = own;
            }
            result
        })
        .collect();
    let id = replies.first().map(|reply| format!("modr-{}", reply.decision.id.0.simple()));
    json!({"id": id, "model": model, "results": results})
}

/// Each text is a turn of its own. Nobody in particular said it, so it moves no one's course.
fn text_turn(
    gateway: &Gateway,
    request: &AdmittedRequest,
    content: Content,
    metadata: Option<&Map<String, Value>>,
) -> Result<Turn, ApiError> {
    let digest = hex::encode(&Sha256::digest(content.as_text().as_bytes())[..16]);
    let session = SessionId::new(format!("moderation-{digest}"))
        .map_err(|error| ApiError::invalid("input", error.to_string()))?;
    let inquiry = Inquiry {
        model: MODEL.to_owned(),
        conversation: [Message { role: Role::User, content }].into(),
        choices: 1,
        metadata: metadata.cloned(),
        session: Some(session),
        ..Inquiry::default()
    };
    request.make_turn(gateway, inquiry)
}

/// A string, several, or one list of parts.
fn read_texts(input: Option<&Value>) -> Result<Vec<Content>, ApiError> {
    let wrong = || ApiError::invalid("input", "must be a string, or an array of strings or parts");
    let items = match input {
        Some(Value::String(text)) => return Ok(vec![Content::Text(text.clone())]),
        Some(Value::Array(items)) if !items.is_empty() => items,
        _ => return Err(wrong()),
    };
    if items.len() > TEXTS_MAX {
        return Err(ApiError::invalid("input", format!("must hold at most {TEXTS_MAX} items")));
    }
    if items.iter().all(Value::is_string) {
        let texts = items.iter().filter_map(Value::as_str);
        return Ok(texts.map(|text| Content::Text(text.to_owned())).collect());
    }
    let parts = items.iter().map(|item| {
        let at_fault = |message: &str| ApiError::invalid("input", message.to_owned());
        read_part(item).map_err(at_fault)
    });
    Ok(vec![Content::Parts(parts.collect::<Result<_, ApiError>>()?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_each_and_parts_together() {
        let read = |input: Value| read_texts(Some(&input)).map(|texts| texts.len()).ok();
        assert_eq!(read(json!("one")), Some(1));
        assert_eq!(read(json!(["one", "two"])), Some(2));
        assert_eq!(
            read(json!([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}])),
            Some(1)
        );
        for wrong in [json!([]), json!(7), json!(["a", 7]), json!([{"type": "text"}])] {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
        assert_eq!(read(json!(vec!["x"; 33])), None);
    }
}
