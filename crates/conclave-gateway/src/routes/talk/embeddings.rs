//! `POST /v1/embeddings`: passed to the provider and back. What the texts say is not judged, and it says so;
//! that they may be sent, and who pays, is looked at as everywhere, and recorded.

use super::repeated::{Sent, give_back, sent};
use super::turns::{count, error_of, kept_json_response, undecided};
use crate::admission::entrance::{enter_to_talk, turn};
use crate::admission::idempotency::{Claim, Person};
use crate::admission::pacing;
use crate::delivery::unabandoned::Unabandoned;
use crate::error::{ApiError, Envelope};
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::fields;
use crate::wire::inquiry::Inquiry;
use crate::wire::own_fields::own_fields;
use axum::extract::{Request, State};
use axum::response::Response;
use conclave_core::{Message, Role};
use conclave_engine::{DeliverError, Embedded, Embedding, Turn, Vectors};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

/// Texts in one request, as OpenAI bounds them.
const TEXTS_MAX: usize = 2_048;

/// Turns texts into vectors.
pub(crate) async fn create(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer(&gateway, request).await)
}

async fn answer(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter_to_talk(gateway, request).await?;
    let read = fields::object(entered.document.take())
        .and_then(inquiry)
        .and_then(|inquiry| turn(gateway, &entered.headers, &entered.key, inquiry));
    let turn = entered.understood(gateway, read)?;
    let taken = pacing::count_turn(gateway, &entered.key, &turn)?;
    let repeat = entered.repeat.as_ref();
    let claim = match sent(gateway, &entered.key, repeat, Person::of(&turn)).await? {
        Sent::Before(response) => return Ok(response),
        Sent::First(claim) => claim,
    };
    let (gateway, name) = (gateway.clone(), turn.model.clone());
    // Others may wait for this answer, whether or not this client does.
    let work = async move {
        match embedded(&gateway, turn).await {
            Ok(vectors) => {
                pacing::settle(&gateway, &taken, vectors.reply.decision.usage);
                Ok(worded(&gateway, &name, vectors, claim).await)
            }
            Err(error) => {
                give_back(claim).await;
                Err(error)
            }
        }
    };
    Unabandoned::new(work).await
}

fn inquiry(mut body: Map<String, Value>) -> Result<Inquiry, ApiError> {
    let model = fields::model(&body)?;
    let texts = texts(body.get("input"))?;
    let metadata = fields::take_metadata(&mut body)?;
    let user = crate::admission::identity::user(&body)?;
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

/// Runs to its end whether or not the client stays, within the limit of turns in flight.
async fn embedded(gateway: &Gateway, turn: Turn) -> Result<Vectors, ApiError> {
    let (engine, now_ms) = (gateway.engine(), gateway.engine().clock.now_ms());
    let permit = gateway.turns().clone().try_acquire_owned().map_err(|_| ApiError::overloaded())?;
    let work = async move {
        let vectors = engine.embed(turn).await;
        drop(permit);
        vectors
    };
    let vectors = Unabandoned::new(work).await.map_err(|error| match error {
        DeliverError::UnknownModel(name) => unknown(&name),
        other => undecided(other, now_ms),
    })?;
    count(gateway, &vectors.reply);
    Ok(vectors)
}

async fn worded(gateway: &Gateway, name: &str, vectors: Vectors, claim: Option<Claim>) -> Response {
    let Vectors { reply, embedded } = vectors;
    let mut own = own_fields(&reply);
    own["verified"] = json!(false);
    own["unjudged"] = json!(["embeddings"]);
    let error = error_of(&reply, false);
    let (status, mut body) = match (&error, &embedded) {
        (Some(error), _) => (error.status(), error.body(Envelope::OpenAi)),
        (None, Some(embedded)) => (StatusCode::OK, page(name, embedded)),
        // Nobody is answered here in words of our own: there are no vectors of them.
        (None, None) => {
            let error = ApiError::guard_unavailable();
            (error.status(), error.body(Envelope::OpenAi))
        }
    };
    if !gateway.manners().omit_own_fields {
        body["conclave"] = own;
    }
    let unjudged = |headers: &mut HeaderMap| {
        if status == StatusCode::OK {
            let name = HeaderName::from_static("x-conclave-outcome");
            headers.insert(name, HeaderValue::from_static("unjudged"));
        }
    };
    kept_json_response((reply, claim), status, &body, unjudged).await
}

fn unknown(name: &str) -> ApiError {
    let name = &name[..name.floor_char_boundary(128)];
    ApiError::unknown_model(format!("The model `{name}` turns no texts into vectors here."))
}

/// The texts, as far as they are texts: a client may send numbers of a vocabulary instead.
fn texts(input: Option<&Value>) -> Result<Vec<String>, ApiError> {
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
