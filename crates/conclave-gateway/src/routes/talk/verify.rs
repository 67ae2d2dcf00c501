//! `POST /v1/verify`: judges a reply made elsewhere.

use super::turns::{DetachedWork, decide_turn, kept_json_response};
use crate::admission::entrance::{AdmittedRequest, admit_talk};
use crate::admission::idempotency::{AnswerOwner, RepeatCheck, check_repeat, give_back_claim};
use crate::admission::rates;
use crate::error::ApiError;
use crate::routes::respond;
use crate::state::Gateway;
use crate::wire::{fraction_of, json_object, own_fields, user_field};
use axum::extract::{Request, State};
use axum::response::Response;
use conclave_core::{Ballot, Candidate, Cast, Message, SessionId, UserId};
use conclave_engine::{Question, Reply, Turn};
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) async fn verify_reply(State(gateway): State<Gateway>, request: Request) -> Response {
    respond(answer_question(&gateway, request).await)
}

async fn answer_question(gateway: &Gateway, request: Request) -> Result<Response, ApiError> {
    let mut request = admit_talk(gateway, request).await?;
    let read = json_object(request.document.take())
        .and_then(|line| read_question(gateway, &request, &line));
    let GivenReply { turn, candidate } = request.or_count(gateway, read)?;
    rates::count_turn(gateway, &request.key, &turn)?;
    let asked = request.idempotency_key.as_ref();
    let claim =
        match check_repeat(gateway, &request.key, asked, AnswerOwner::of_turn(&turn)).await? {
            RepeatCheck::Answered(response) => return Ok(response),
            RepeatCheck::First(claim) => claim,
        };
    let gateway = gateway.clone();
    // Others may wait for this answer, whether or not this client does.
    let work = async move {
        let engine = gateway.engine();
        match decide_turn(&gateway, Box::pin(async move { engine.verify(turn, candidate).await }))
            .await
        {
            Ok(reply) => {
                let body = verdict_page(&reply);
                Ok(kept_json_response(reply, claim, StatusCode::OK, &body, None).await)
            }
            Err(error) => {
                give_back_claim(claim).await;
                Err(error)
            }
        }
    };
    DetachedWork::new(work).await
}

/// A reply made elsewhere, and the turn it answers.
struct GivenReply {
    turn: Turn,
    candidate: Candidate,
}

fn read_question(
    gateway: &Gateway,
    request: &AdmittedRequest,
    line: &Map<String, Value>,
) -> Result<GivenReply, ApiError> {
    let asked =
        Question::from_line(line).map_err(|error| ApiError::invalid(error.path, error.message))?;
    let candidate = asked
        .reply
        .ok_or_else(|| ApiError::invalid("response", "must be the reply to judge, as a string"))?;
    let conversation: Arc<[Message]> = asked.turns.into();
    let user = user_field(line)?;
    let session = read_session(request, user.as_ref(), &conversation, line)?;
    let mut stated = line.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(mode) = line.get("mode").filter(|mode| !mode.is_null()) {
        stated.insert("conclave_mode".into(), mode.clone());
    }
    let context = request.context_of(gateway, Some(&stated))?;
    let turn = Turn {
        tenant: request.key.tenant.clone(),
        key: Some(request.key.id.clone()),
        user,
        session,
        model: "external".into(),
        choices: 1,
        conversation,
        body: Arc::new(Map::new()),
        context,
        kept: None,
    };
    Ok(GivenReply { turn, candidate })
}

fn read_session(
    request: &AdmittedRequest,
    user: Option<&UserId>,
    conversation: &[Message],
    line: &Map<String, Value>,
) -> Result<SessionId, ApiError> {
    match line.get("session") {
        None | Some(Value::Null) => request.session_of(user, conversation),
        Some(Value::String(name)) => SessionId::new(name.as_str())
            .map_err(|error| ApiError::invalid("session", error.to_string())),
        Some(_) => Err(ApiError::invalid("session", "must be a string")),
    }
}

fn verdict_page(reply: &Reply) -> Value {
    let decision = &*reply.decision;
    let run = decision
        .choices
        .first()
        .and_then(|choice| choice.attempts.iter().rev().find_map(|attempt| attempt.panels.last()));
    let votes: Vec<_> = run.iter().flat_map(|run| &run.ballots).map(vote_row).collect();
    json!({
        // What belongs to a community waits for its elders, however safe it is.
        "approved": decision.outcome.is_verified()
            && run.is_some_and(|run| run.consensus.delivers()),
        "action": decision.action.as_str(),
        "safety_score": run.map(|run| fraction_of(run.consensus.safety_score_e4())),
        "assurance": run.map(|run| fraction_of(run.consensus.assurance_e4())),
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

fn vote_row(ballot: &Ballot) -> Value {
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
