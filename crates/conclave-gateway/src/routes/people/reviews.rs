//! `/v1/reviews`: what waits for a person, and what persons decide.
//!
//! **Invariant:** the words that are held are shown to whoever has claimed them, and to nobody else; each
//! showing is an entry of the log.

use super::desk::{DeskRequest, PeopleDesk, open_desk, open_desk_to_read, people_error};
use crate::admission::entrance::Need;
use crate::error::ApiError;
use crate::routes::query::{read_number, read_query};
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use conclave_core::AuditId;
use conclave_engine::KeyRole;
use conclave_govern::{
    AppealAnswer, AppealOutcome, Decider, ReviewKind, ReviewStatus, Ruling, Said,
};
use conclave_people::{
    AppealView, ReviewFilter, ReviewRecord, ReviewResult, VisibleReview, held_words,
};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// Reviews on one page unless asked otherwise, and at most.
const PAGE: u32 = 50;
const PAGE_MAX: u32 = 200;
/// As far as pages go.
const OFFSET_MAX: u32 = 100_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseRequest {
    token: u64,
}

/// A ruling as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulingRequest {
    token: u64,
    ruling: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    notes: String,
    #[serde(default)]
    conditions: Vec<String>,
    #[serde(default)]
    pii_missed: Option<bool>,
    /// What the person who appealed is told.
    #[serde(default)]
    words: Option<String>,
}

impl RulingRequest {
    fn into_ruling(mut self) -> Result<Said, ApiError> {
        let outcome = match self.ruling.as_str() {
            "uphold" => Some(AppealOutcome::Upheld),
            "uphold_in_part" => Some(AppealOutcome::UpheldInPart),
            "deny" => Some(AppealOutcome::Denied),
            _ => None,
        };
        let words = self.words.take();
        let Some(outcome) = outcome else {
            if words.is_some() {
                let only = "belongs to uphold, uphold_in_part and deny alone";
                return Err(ApiError::invalid("words", only));
            }
            return self.into_plain_ruling();
        };
        let ruling = match (outcome, self.text.take()) {
            (AppealOutcome::Denied, Some(_)) => {
                return Err(ApiError::invalid("text", "goes out only where an appeal is upheld"));
            }
            (AppealOutcome::Denied, None) => Ruling::Reject,
            (_, Some(text)) => Ruling::EditAndApprove { text },
            (_, None) => Ruling::Approve,
        };
        let answer = words.map(|words| AppealAnswer { outcome, words });
        let Self { notes, conditions, pii_missed, .. } = self;
        Ok(Said { ruling, notes, conditions, pii_missed, answer })
    }

    fn into_plain_ruling(mut self) -> Result<Said, ApiError> {
        let ruling = match (self.ruling.as_str(), self.text.take()) {
            ("approve", None) => Ruling::Approve,
            ("reject", None) => Ruling::Reject,
            ("needs_consultation", None) => Ruling::NeedsConsultation,
            ("edit_and_approve", Some(text)) => Ruling::EditAndApprove { text },
            ("edit_and_approve", None) => {
                return Err(ApiError::invalid("text", "must be what goes out instead"));
            }
            ("approve" | "reject" | "needs_consultation", Some(_)) => {
                return Err(ApiError::invalid("text", "belongs to `edit_and_approve` alone"));
            }
            _ => {
                let known = "must be approve, reject, needs_consultation or edit_and_approve; of an \
                             appeal uphold, uphold_in_part, deny or needs_consultation";
                return Err(ApiError::invalid("ruling", known));
            }
        };
        let Self { notes, conditions, pii_missed, .. } = self;
        Ok(Said { ruling, notes, conditions, pii_missed, answer: None })
    }
}

/// The reviews a caller may know of, most urgent first; the open ones unless asked otherwise.
pub(crate) async fn list_reviews(
    State(gateway): State<Gateway>,
    RawQuery(asked): RawQuery,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let desk = open_desk(&gateway, &headers, Need::ListReviews)?;
        let mut filter = ReviewFilter { limit: PAGE, ..ReviewFilter::default() };
        let known = ["status", "community", "limit", "offset"];
        for field in read_query(asked.as_deref(), &known)? {
            match field.name {
                "status" => {
                    let status = ReviewStatus::parse(&field.value);
                    let unknown = || ApiError::invalid("status", "is not known");
                    filter.status = Some(status.ok_or_else(unknown)?);
                }
                "community" => filter.community = Some(field.value),
                "limit" => filter.limit = read_number(&field, PAGE_MAX)?.max(1),
                _ => filter.offset = read_number(&field, OFFSET_MAX)?,
            }
        }
        let held = desk.people.reviews(&desk.caller, &filter).await.map_err(people_error)?;
        let decider = desk.people.decider(&desk.caller).await.map_err(people_error)?;
        let data: Vec<_> = held.iter().map(|one| review_view(&desk, one, &decider)).collect();
        Ok(Json(json!({"object": "list", "data": data})).into_response())
    };
    respond(found.await)
}

/// One review, with what is held where the caller has claimed it.
pub(crate) async fn show_review(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let desk = open_desk(&gateway, &headers, Need::ReadReviews)?;
        let found = desk.people.review(&desk.caller, &id).await;
        let VisibleReview { record, decider } = found.map_err(people_error)?;
        Ok(Json(view_with_words(&desk, &record, &decider).await?).into_response())
    };
    respond(found.await)
}

/// Claims a review for a quarter of an hour.
pub(crate) async fn claim_review(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let claimed = async {
        let desk = open_desk(&gateway, &headers, Need::DecideReviews)?;
        let held = desk.people.claim_review(&desk.caller, &id).await.map_err(people_error)?;
        let decider = desk.people.decider(&desk.caller).await.map_err(people_error)?;
        Ok(Json(view_with_words(&desk, &held, &decider).await?).into_response())
    };
    respond(claimed.await)
}

/// Gives a review back.
pub(crate) async fn release_review(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let released = async {
        let DeskRequest { desk, sent } =
            open_desk_to_read::<ReleaseRequest>(&gateway, request, Need::DecideReviews).await?;
        let held = desk.people.unclaim_review(&desk.caller, &id, sent.token).await;
        let decider = desk.people.decider(&desk.caller).await.map_err(people_error)?;
        Ok(Json(review_view(&desk, &held.map_err(people_error)?, &decider)).into_response())
    };
    respond(released.await)
}

pub(crate) async fn decide_review(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let decided = async {
        let DeskRequest { desk, sent } =
            open_desk_to_read::<RulingRequest>(&gateway, request, Need::DecideReviews).await?;
        let token = sent.token;
        let said = sent.into_ruling()?;
        let held = desk.people.decide_review(&desk.caller, &id, token, &said).await;
        let decider = desk.people.decider(&desk.caller).await.map_err(people_error)?;
        Ok(Json(review_view(&desk, &held.map_err(people_error)?, &decider)).into_response())
    };
    respond(decided.await)
}

/// What became of what was held, for its author: 202 until it is decided.
pub(crate) async fn show_result(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let desk = open_desk(&gateway, &headers, Need::ReadReviews)?;
        let found = desk.people.review(&desk.caller, &id).await.map_err(people_error)?;
        let review = found.record.review;
        let author = review.author.as_deref() == Some(desk.caller.holder.as_str());
        if !author && desk.caller.role != KeyRole::Owner {
            let only = "Only the author fetches the result of a review.";
            return Err(ApiError::forbidden(only));
        }
        let audit = review.audit_id.as_deref().and_then(AuditId::parse);
        let nothing = || ApiError::not_found("This review holds no decision.");
        let audit = audit.ok_or_else(nothing)?;
        let caller = &desk.caller;
        let fetched = if review.kind == ReviewKind::Appeal {
            desk.hand_out.fetch_appealed(&caller.tenant, audit, &caller.holder).await
        } else {
            desk.hand_out.fetch_reply(&caller.tenant, audit, &caller.holder).await
        };
        result_or_gap(&id, fetched.map_err(people_error)?)
    };
    respond(found.await)
}

/// What was fetched, or that somebody's consent does not cover it any more.
pub(super) fn result_or_gap(id: &str, result: ReviewResult) -> Result<Response, ApiError> {
    match result {
        ReviewResult::WithoutConsent { gap, .. } => Err(ApiError::consent_gap(gap)),
        result => Ok(result_response(id, result)),
    }
}

fn result_response(id: &str, result: ReviewResult) -> Response {
    let (status, mut body) = match result {
        ReviewResult::NoReview | ReviewResult::WithoutConsent { .. } => {
            (StatusCode::NOT_FOUND, json!({"status": "unknown"}))
        }
        ReviewResult::Waiting { status, .. } => (StatusCode::ACCEPTED, json!({"status": status})),
        ReviewResult::Approved { text, edited, conditions, .. } => (
            StatusCode::OK,
            json!({"status": "approved", "text": text, "edited": edited, "conditions": conditions}),
        ),
        ReviewResult::Rejected { notes, .. } => {
            (StatusCode::OK, json!({"status": "rejected", "text": null, "notes": notes}))
        }
    };
    body["object"] = "review.result".into();
    body["review_id"] = id.into();
    (status, Json(body)).into_response()
}

async fn view_with_words(
    desk: &PeopleDesk,
    record: &ReviewRecord,
    decider: &Decider,
) -> Result<Value, ApiError> {
    let mut shown = review_view(desk, record, decider);
    let audit = record.review.audit_id.as_deref().and_then(AuditId::parse);
    let is_claimant = is_claimant(desk, record, decider);
    let Some(audit) = audit.filter(|_| is_claimant) else { return Ok(shown) };
    let archive = &*desk.engine.archive;
    let words = held_words(archive, &desk.caller.tenant, audit).await.map_err(people_error)?;
    desk.engine.note_transcript_read(&desk.caller.tenant, &desk.caller.holder, audit);
    let appeal = desk.people.appeal_in_review(&desk.caller.tenant, &record.id).await;
    let appeal = appeal.map_err(people_error)?;
    shown["appeal"] = appeal.map_or(Value::Null, |one| json!(AppealView::for_person(&one)));
    let now_ms = desk.engine.clock.now_ms();
    shown["words"] = words.map_or(Value::Null, |words| {
        let reply = words.reply.as_ref();
        let reply = reply.and_then(|text| text.open_for_claimant(&record.review, decider, now_ms));
        json!({
            "request": words.request,
            "reply": reply,
            "edited": record.review.edited,
            "votes": words.votes,
            "crisis": words.crisis,
        })
    });
    Ok(shown)
}

fn is_claimant(desk: &PeopleDesk, record: &ReviewRecord, decider: &Decider) -> bool {
    record.review.is_claimed_by(decider, desk.engine.clock.now_ms())
}

/// Everything but words; the token for whoever has the claim, the rulings for those who oversee or
/// decide.
fn review_view(desk: &PeopleDesk, record: &ReviewRecord, decider: &Decider) -> Value {
    let review = &record.review;
    let claimant = is_claimant(desk, record, decider);
    let insider = desk.caller.role != KeyRole::App;
    let claim = review.claim.as_ref().map(|claim| {
        json!({
            "by": insider.then_some(&claim.by),
            "until_ms": claim.until_ms,
            "token": claimant.then_some(claim.token),
        })
    });
    json!({
        "object": "review",
        "id": record.id,
        "kind": review.kind,
        "content_type": review.content_type,
        "community": review.community,
        "others": review.others,
        "issues": review.issues,
        "priority": review.priority,
        "status": review.status,
        "council": review.council,
        "four_eyes": review.four_eyes,
        "approvals": review.approvals.len(),
        "approvals_needed": review.approvals_needed(),
        "audit_id": review.audit_id,
        "author": review.author,
        "assigned_to": insider.then_some(&review.assigned_to),
        "created_ms": review.created_ms,
        "due_ms": review.due_ms,
        "decided_ms": review.decided_ms,
        "claim": claim,
        "conditions": review.conditions,
        "rulings": insider.then_some(&review.rulings),
        "result_url": format!("/v1/reviews/{}/result", record.id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Envelope;

    fn ruling(body: Value) -> Result<Ruling, ApiError> {
        let mut body = body;
        body["token"] = json!(1);
        serde_json::from_value::<RulingRequest>(body).unwrap().into_ruling().map(|said| said.ruling)
    }

    #[test]
    fn words_of_ones_own_belong_to_one_ruling_alone() {
        assert_eq!(ruling(json!({"ruling": "approve"})).unwrap(), Ruling::Approve);
        assert_eq!(ruling(json!({"ruling": "reject"})).unwrap(), Ruling::Reject);
        let consulted = ruling(json!({"ruling": "needs_consultation"})).unwrap();
        assert_eq!(consulted, Ruling::NeedsConsultation);
        let edited = ruling(json!({"ruling": "edit_and_approve", "text": "so"})).unwrap();
        assert_eq!(edited, Ruling::EditAndApprove { text: "so".into() });
        for (body, param) in [
            (json!({"ruling": "approve", "text": "so"}), "text"),
            (json!({"ruling": "reject", "text": "so"}), "text"),
            (json!({"ruling": "edit_and_approve"}), "text"),
            (json!({"ruling": "perhaps"}), "ruling"),
        ] {
            let error = ruling(body.clone()).unwrap_err().body(Envelope::OpenAi);
            assert_eq!(error["error"]["param"], param, "{body}");
        }
    }

    #[tokio::test]
    async fn each_state_of_what_was_held_has_its_status() {
        let review_id = String::new;
        for (released, status, word) in [
            (ReviewResult::NoReview, 404, "unknown"),
            (
                ReviewResult::Waiting { review_id: review_id(), status: ReviewStatus::Pending },
                202,
                "pending",
            ),
            (
                ReviewResult::Approved {
                    review_id: review_id(),
                    text: None,
                    edited: false,
                    conditions: Vec::new(),
                },
                200,
                "approved",
            ),
            (
                ReviewResult::Rejected { review_id: review_id(), notes: "no".into() },
                200,
                "rejected",
            ),
        ] {
            let response = result_response("r1", released);
            assert_eq!(response.status().as_u16(), status, "{word}");
            let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((&body["status"], &body["review_id"]), (&json!(word), &json!("r1")));
        }
    }
}
