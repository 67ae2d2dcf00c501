//! `POST /v1/embeddings`: passed to the provider and back. What the texts say is not judged, and it says so;
//! that they may be sent, and who pays, is looked at as everywhere, and recorded.

use super::turns::{
    DetachedWork, count_reply, deliver_error, error_of_reply, kept_json_response, run_to_end,
};
use crate::admission::entrance::admit_talk;
use crate::admission::idempotency::{
    AnswerClaim, AnswerOwner, RepeatCheck, check_repeat, give_back_claim,
};
use crate::admission::rates;
use crate::error::{ApiError, Envelope};
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::{Inquiry, json_object, model_field, own_fields, take_metadata, user_field};
use axum::extract::{Request, State};
use axum::response::Response;
use conclave_core::{Message, Role};
use conclave_engine::{DeliverError, Embedded, Embedding, Turn, Vectors};
use http::StatusCode;
use serde_json::{Map, Value, json};

/// Texts in one request, as OpenAI bounds them.
const TEXTS_MAX: usize = 2_048;

pub(crate) async fn create_embeddings(
    State(gateway): State<Gateway>,
    request: Request,
) -> Response {
    respond(answer_embeddings(&gateway, request).await)
}

async fn answer_embeddings(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut request = admit_talk(gateway, request).await?;
    let read = json_object(request.document.take())
        .and_then(read_inquiry)
        .and_then(|inquiry| request.make_turn(gateway, inquiry));
    let turn = request.or_count(gateway, read)?;
    let reservation = rates::count_turn(gateway, &request.key, &turn)?;
    let asked = request.idempotency_key.as_ref();
    let claim =
        match check_repeat(gateway, &request.key, asked, AnswerOwner::of_turn(&turn)).await? {
            RepeatCheck::Answered(response) => return Ok(response),
            RepeatCheck::First(claim) => claim,
        };
    let gateway = gateway.clone();
    let model = turn.model.clone();
    // Others may wait for this answer, whether or not this client does.
    let work = async move {
        match embed_texts(&gateway, turn).await {
            Ok(vectors) => {
                rates::settle_tokens(&gateway, &reservation, vectors.reply.decision.usage);
                Ok(vectors_response(&gateway, &model, vectors, claim).await)
            }
            Err(error) => {
                give_back_claim(claim).await;
                Err(error)
            }
        }
    };
    DetachedWork::new(work).await
}

fn read_inquiry(mut body: Map<String, Value>) -> Result<Inquiry, ApiError> {
    let model = model_field(&body)?;
    let texts = read_texts(body.get("input"))?;
    let metadata = take_metadata(&mut body)?;
    let user = user_field(&body)?;
    let said = texts.into_iter().map(|text| Message::text(Role::User, text));
    Ok(Inquiry {
        model,
        user,
        session: None,
        choices: 1,
        conversation: said.collect::<Vec<_>>().into(),
        body,
        metadata,
        stream: false,
        structured: false,
        kept: None,
    })
}

async fn embed_texts(gateway: &Gateway, turn: Turn) -> Result<Vectors, ApiError> {
    let engine = gateway.engine();
    let now_ms = engine.clock.now_ms();
    let embedded = run_to_end(gateway, Box::pin(async move { engine.embed(turn).await })).await?;
    let vectors = embedded.map_err(|error| match error {
        DeliverError::UnknownModel(name) => unknown_model(&name),
        other => deliver_error(other, now_ms),
    })?;
    count_reply(gateway, &vectors.reply);
    Ok(vectors)
}

async fn vectors_response(
    gateway: &Gateway,
    model: &str,
    vectors: Vectors,
    claim: Option<AnswerClaim>,
) -> Response {
    let Vectors { reply, embedded } = vectors;
    let mut own = own_fields(&reply);
    own["verified"] = json!(false);
    own["unjudged"] = json!(["embeddings"]);
    // Nobody is answered here in words of our own: there are no vectors of them.
    let page = match error_of_reply(&reply, false) {
        Some(error) => Err(error),
        None => embedded.as_ref().ok_or_else(ApiError::guard_unavailable),
    };
    let status = page.as_ref().map_or_else(ApiError::status, |_| StatusCode::OK);
    let mut body = match page {
        Ok(embedded) => embeddings_page(model, embedded),
        Err(error) => error.body(Envelope::OpenAi),
    };
    if !gateway.settings().omit_own_fields {
        body["conclave"] = own;
    }
    let outcome = (status == StatusCode::OK).then_some("unjudged");
    kept_json_response(reply, claim, status, &body, outcome).await
}

fn unknown_model(name: &str) -> ApiError {
    let name = &name[..name.floor_char_boundary(128)];
    ApiError::unknown_model(format!("The model `{name}` turns no texts into vectors here."))
}

/// The texts, as far as they are texts: a client may send numbers of a vocabulary instead.
fn read_texts(input: Option<&Value>) -> Result<Vec<String>, ApiError> {
    match input {
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(items)) if (1..=TEXTS_MAX).contains(&items.len()) => {
            Ok(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(Value::Array(_)) => {
            Err(ApiError::invalid("input", format!("must hold 1 to {TEXTS_MAX} items")))
        }
        _ => Err(ApiError::invalid("input", "must be a string or an array")),
    }
}

fn embeddings_page(model: &str, embedded: &Embedded) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_within_bounds_and_numbers_are_not_read() {
        let read = |input: Value| read_texts(Some(&input)).map(|texts| texts.len()).ok();
        assert_eq!(read(json!("one")), Some(1));
        assert_eq!(read(json!(["one", "two"])), Some(2));
        assert_eq!(read(json!([[1, 2], [3]])), Some(0), "numbers of a vocabulary are passed on");
        assert_eq!(read(json!(vec!["x"; TEXTS_MAX])), Some(TEXTS_MAX));
        for wrong in [json!([]), json!(7), json!(vec!["x"; TEXTS_MAX + 1])] {
            assert_eq!(read(wrong), None);
        }
        assert!(read_texts(None).is_err());
    }

    #[test]
    fn vectors_are_given_back_in_order_as_they_came() {
        let vectors = vec![Embedding::Numbers(vec![0.5]), Embedding::Packed("AAAA".into())];
        let page = embeddings_page("m", &Embedded { vectors, input_tokens: 3 });
        assert_eq!(page["data"][0]["embedding"], json!([0.5]));
        assert_eq!(
            page["data"][1],
            json!({"object": "embedding", "index": 1, "embedding": "AAAA"})
        );
        assert_eq!(page["usage"], json!({"prompt_tokens": 3, "total_tokens": 3}));
    }

    #[test]
    fn a_long_name_of_a_model_is_not_said_back_at_length() {
        let error = unknown_model(&"\u{e9}".repeat(1_000)).body(Envelope::OpenAi);
        assert!(error["error"]["message"].as_str().unwrap().len() < 200);
    }
}
