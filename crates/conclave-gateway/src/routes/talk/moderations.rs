//! `POST /v1/moderations`: what is to be read in texts, under OpenAI's names.

use super::turns::detached;
use crate::admission::entrance::{Entered, enter_to_talk, turn};
use crate::admission::pacing;
use crate::delivery::tracked_body::TrackedBody;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::chat::request::part;
use crate::wire::inquiry::Inquiry;
use crate::wire::own_fields::{own_fields, unjudged};
use crate::wire::{fields, moderation};
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

/// Reads the texts and records what was read.
pub(crate) async fn create(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer(&gateway, request).await)
}

async fn answer(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter_to_talk(gateway, request).await?;
    let document = entered.document.take();
    let read = asked(gateway, &entered, document);
    let (named, turns) = entered.understood(gateway, read)?;
    pacing::count_turns(gateway, &entered.key, &turns)?;
    let read = turns.into_iter().map(|turn| {
        let engine = gateway.engine();
        detached(gateway, async move { engine.moderate(turn).await })
    });
    let replies = try_join_all(read).await?;
    let name = named.as_deref().unwrap_or("omni-moderation-latest");
    let page = page(&replies, name, gateway.manners().omit_own_fields);
    let deliveries = replies.into_iter().map(|reply| reply.delivery).collect();
    let body = TrackedBody::new([Bytes::from(page.to_string())], deliveries);
    let mut response = Response::new(Body::new(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// The name the client gave the model, and a turn for each text.
fn asked(
    gateway: &Gateway,
    entered: &Entered,
    document: Value,
) -> Result<(Option<String>, Vec<Turn>), ApiError> {
    let mut body = fields::object(document)?;
    let named = fields::text(&body, "model")?;
    let metadata = fields::take_metadata(&mut body)?;
    let texts = texts(body.get("input"))?.into_iter();
    let turns = texts.map(|text| one(gateway, entered, text, metadata.as_ref()));
    Ok((named, turns.collect::<Result<_, _>>()?))
}

fn page(replies: &[Reply], model: &str, omit_own_fields: bool) -> Value {
    let results: Vec<_> = replies
        .iter()
        .map(|reply| {
            let mut result = moderation::result(&reply.decision);
            if !omit_own_fields {
                let mut own = own_fields(reply);
                // A text was read; no reply stood before the panel.
                own["verified"] = Value::Null;
                own["scores"] = moderation::own_scores(&reply.decision);
                own["unjudged"] = json!(unjudged(&reply.decision.conversation));
                result["conclave"] = own;
            }
            result
        })
        .collect();
    let id = replies.first().map(|reply| format!("modr-{}", reply.decision.id.0.simple()));
    json!({"id": id, "model": model, "results": results})
}

/// Each text is a turn of its own. Nobody in particular said it, so it moves no one's course.
fn one(
    gateway: &Gateway,
    entered: &Entered,
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
    turn(gateway, &entered.headers, &entered.key, inquiry)
}

/// A string, several, or one list of parts.
fn texts(input: Option<&Value>) -> Result<Vec<Content>, ApiError> {
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
        part(item).map_err(at_fault)
    });
    Ok(vec![Content::Parts(parts.collect::<Result<_, ApiError>>()?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_each_and_parts_together() {
        let read = |input: Value| texts(Some(&input)).map(|texts| texts.len()).ok();
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
