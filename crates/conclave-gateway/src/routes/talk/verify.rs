//! `POST /v1/verify`: judges a reply made elsewhere.

use super::repeated::{Sent, give_back, sent};
use super::turns::{detached, kept_json_response};
use crate::admission::entrance::enter_to_talk;
use crate::admission::idempotency::Person;
use crate::admission::identity;
use crate::admission::pacing;
use crate::delivery::unabandoned::Unabandoned;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::fields;
use crate::wire::own_fields::{fraction, own_fields};
use axum::extract::{Request, State};
use axum::response::Response;
use conclave_core::{Candidate, Message};
use conclave_engine::{KeyRecord, Question, Reply, Turn};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Judges one reply and records the decision.
pub(crate) async fn verify(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(handle(&gateway, request).await)
}

async fn handle(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut entered = enter_to_talk(gateway, request).await?;
    let read = fields::object(entered.document.take())
        .and_then(|line| question(gateway, &entered.headers, &entered.key, &line));
    let (turn, reply) = entered.understood(gateway, read)?;
    pacing::count_turn(gateway, &entered.key, &turn)?;
    let repeat = entered.repeat.as_ref();
    let claim = match sent(gateway, &entered.key, repeat, Person::of(&turn)).await? {
        Sent::Before(response) => return Ok(response),
        Sent::First(claim) => claim,
    };
    let gateway = gateway.clone();
    // Others may wait for this answer, whether or not this client does.
    let work = async move {
        let engine = gateway.engine();
        match detached(&gateway, async move { engine.verify(turn, reply).await }).await {
            Ok(decided) => {
                let body = answer(&decided);
                Ok(kept_json_response((decided, claim), StatusCode::OK, &body, |_| ()).await)
            }
            Err(error) => {
                give_back(claim).await;
                Err(error)
            }
        }
    };
    Unabandoned::new(work).await
}

fn question(
    gateway: &Gateway,
    headers: &HeaderMap,
    key: &KeyRecord,
    line: &Map<String, Value>,
) -> Result<(Turn, Candidate), ApiError> {
    let asked =
        Question::from_line(line).map_err(|error| ApiError::invalid(error.path, error.message))?;
    let reply = asked
        .reply
        .ok_or_else(|| ApiError::invalid("response", "must be the reply to judge, as a string"))?;
    let conversation: Arc<[Message]> = asked.turns.into();
    let user = identity::user(line)?;
    let session = session(headers, key, user.as_ref(), &conversation, line)?;
    let mut stated = line.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(mode) = line.get("mode").filter(|mode| !mode.is_null()) {
        stated.insert("conclave_mode".into(), mode.clone());
    }
    let modes = &gateway.engine().settings.modes_allowed;
    let context = identity::context(headers, Some(&stated), modes)?;
    let turn = Turn {
        tenant: key.tenant.clone(),
        key: Some(key.id.clone()),
        user,
        session,
        model: "external".into(),
        choices: 1,
        conversation,
        body: Arc::new(Map::new()),
        context,
        kept: None,
    };
    Ok((turn, reply))
}

fn session(
    headers: &HeaderMap,
    key: &KeyRecord,
    user: Option<&conclave_core::UserId>,
    conversation: &[Message],
    line: &Map<String, Value>,
) -> Result<conclave_core::SessionId, ApiError> {
    match line.get("session") {
        None | Some(Value::Null) => identity::session(headers, &key.tenant, user, conversation),
        Some(Value::String(name)) => conclave_core::SessionId::new(name.as_str())
            .map_err(|error| ApiError::invalid("session", error.to_string())),
        Some(_) => Err(ApiError::invalid("session", "must be a string")),
    }
}

fn answer(reply: &Reply) -> Value {
    let decision = &*reply.decision;
    let run = decision
        .choices
        .first()
        .and_then(|choice| choice.attempts.iter().rev().find_map(|attempt| attempt.panels.last()));
    let votes: Vec<_> = run.iter().flat_map(|run| &run.ballots).map(vote).collect();
    json!({
        // What belongs to a community waits for its elders, however safe it is.
        "approved": decision.outcome.is_verified()
            && run.is_some_and(|run| run.consensus.delivers()),
        "action": decision.action.as_str(),
        "safety_score": run.map(|run| fraction(run.consensus.safety_score_e4())),
        "assurance": run.map(|run| fraction(run.consensus.assurance_e4())),
        "scrutiny": decision.scrutiny.as_str(),
        "quorum": decision.bars.quorum,
        "vetoes": run.map(|run| run.consensus.vetoes.clone()).unwrap_or_default(),
        "shortfalls": run.map(|run| run.consensus.shortfalls.clone()).unwrap_or_default(),
        "verifying_agents": votes,
        "harm": decision.input.harm,
        "crisis": decision.input.crisis,
        "injection": decision.input.injection,
        "audit_id": decision.id.to_string(),
        "conclave": own_fields(reply),
    })
}

fn vote(ballot: &conclave_core::Ballot) -> Value {
    use conclave_core::Cast;
    let (vote, confidence) = match ballot.cast {
        Cast::Voted { vote, confidence } => (vote.as_str(), Some(confidence)),
        Cast::Abstained(_) => ("abstained", None),
        Cast::Excused(_) => ("excused", None),
        Cast::NotApplicable => ("not_applicable", None),
    };
    json!({
        "agent": &*ballot.seat.verifier,
        "vote": vote,
        "confidence": confidence,
        "reasoning": ballot.reasoning,
        "reasons": ballot.reasons,
        "flagged_patterns": ballot.flagged_patterns,
        "weight": ballot.seat.weight,
        "monitor": ballot.seat.monitor,
        "latency_ms": ballot.latency_ms,
    })
}
