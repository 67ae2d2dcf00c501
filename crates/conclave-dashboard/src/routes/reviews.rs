//! `/reviews`: what waits for a person; list, claim, decide.
//!
//! **Invariant:** what may be decided, and by whom, is asked of the same rules as over HTTP; this page
//! only shows and sends.
//! **Invariant:** held words are shown to whoever has claimed them, and each showing is noted.

use crate::dashboard::Dashboard;
use crate::figure::Moment;
use crate::label::outcome_word;
use crate::page::{Frame, Here, Trouble, page};
use crate::same_site::is_same_origin;
use crate::text::{Ink, Text};
use crate::visitor::{Guest, Visitor};
use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use conclave_core::AuditId;
use conclave_engine::Caller;
use conclave_govern::{Decider, Review, Ruling, Said};
use conclave_people::{People, PeopleError, ReviewFilter, ReviewRecord, VisibleReview, held_words};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use std::sync::Arc;

/// Reviews on the page; the most urgent ones.
const SHOWN: u32 = 100;

struct Row {
    id: String,
    due: Moment,
    status: Text,
    priority: Text,
    kind: Text,
    community: Text,
    assigned: Text,
}

#[derive(Template)]
#[template(path = "reviews.html")]
struct ReviewsPage {
    frame: Frame,
    rows: Vec<Row>,
}

/// What is held, for whoever has claimed it.
struct Words {
    said: Vec<(Text, Text)>,
    reply: Option<Text>,
}

#[derive(Template)]
#[template(path = "review.html")]
struct ReviewPage {
    frame: Frame,
    id: String,
    token: String,
    due: Moment,
    facts: Vec<(&'static str, Text)>,
    issues: Vec<Text>,
    rulings: Vec<(Moment, Text, Text, Text)>,
    claimable: bool,
    claim: Option<u64>,
    words: Option<Words>,
    trouble: Option<String>,
}

/// What the forms send.
#[derive(Default, Deserialize)]
pub(super) struct Sent {
    #[serde(default)]
    token: String,
    #[serde(default)]
    claim: u64,
    #[serde(default)]
    ruling: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    notes: String,
    #[serde(default)]
    conditions: String,
}

fn caller(visitor: &Visitor) -> Caller {
    Caller {
        holder: format!("person:{}", visitor.account.name),
        tenant: visitor.account.tenant.clone(),
        role: visitor.account.role,
        person: Some(visitor.account.name.clone()),
    }
}

fn people(dashboard: &Dashboard) -> Result<Arc<People>, Trouble> {
    dashboard.ports().people.clone().ok_or(Trouble::NoReview)
}

fn trouble(error: &PeopleError) -> Trouble {
    match error {
        PeopleError::Unavailable(_) | PeopleError::Malformed { .. } => {
            tracing::error!(%error, "the records do not answer the dashboard");
            Trouble::Archive
        }
        _ => Trouble::NoReview,
    }
}

/// The list.
pub(super) async fn list(State(dashboard): State<Dashboard>, Guest(visitor): Guest) -> Response {
    let shown = async {
        let filter = ReviewFilter { limit: SHOWN, ..ReviewFilter::default() };
        let found = people(&dashboard)?.reviews(&caller(&visitor), &filter).await;
        let found = found.map_err(|error| trouble(&error))?;
        let frame = Frame::of(&dashboard, &visitor, Here::Reviews, "Reviews");
        let rows = found.iter().map(row).collect();
        Ok(page(StatusCode::OK, &ReviewsPage { frame, rows }))
    };
    shown.await.unwrap_or_else(|trouble: Trouble| trouble.page(&dashboard, Some(&visitor)))
}

fn row(record: &ReviewRecord) -> Row {
    let review = &record.review;
    Row {
        id: record.id.clone(),
        due: Moment::at(review.due_ms),
        status: Text::short(&outcome_word(review.status.as_str())),
        priority: Text::short(&outcome_word(review.priority.as_str())),
        kind: Text::short(&outcome_word(review.kind.as_str())),
        community: Text::short(review.community.as_deref().unwrap_or("–")),
        assigned: Text::short(review.assigned_to.as_deref().unwrap_or("–")),
    }
}

/// One review.
pub(super) async fn one(
    State(dashboard): State<Dashboard>,
    Guest(visitor): Guest,
    Path(id): Path<String>,
) -> Response {
    show(&dashboard, &visitor, &id, StatusCode::OK, None).await
}

async fn show(
    dashboard: &Dashboard,
    visitor: &Visitor,
    id: &str,
    status: StatusCode,
    said: Option<String>,
) -> Response {
    let made = async {
        let found = people(dashboard)?.review(&caller(visitor), id).await;
        let VisibleReview { record, decider } = found.map_err(|error| trouble(&error))?;
        let sheet = sheet(dashboard, visitor, &record, &decider, said).await?;
        Ok(page(status, &sheet))
    };
    made.await.unwrap_or_else(|trouble: Trouble| trouble.page(dashboard, Some(visitor)))
}

async fn sheet(
    dashboard: &Dashboard,
    visitor: &Visitor,
    record: &ReviewRecord,
    decider: &Decider,
    trouble: Option<String>,
) -> Result<ReviewPage, Trouble> {
    let review = &record.review;
    let now_ms = dashboard.now_ms();
    let claimed = review.is_claimed_by(decider, now_ms);
    let mut fresh = review.clone();
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let approvals = format!("{} of {}", review.approvals.len(), review.approvals_needed());
    let facts = vec![
        ("Status", Text::short(&outcome_word(review.status.as_str()))),
        ("Priority", Text::short(&outcome_word(review.priority.as_str()))),
        ("Kind", Text::short(&outcome_word(review.kind.as_str()))),
        ("Content", Text::short(&review.content_type)),
        ("Community", Text::short(&communities(review))),
        ("Given to", Text::short(review.assigned_to.as_deref().unwrap_or("–"))),
        ("Approvals", Text::short(&approvals)),
        ("Council called", Text::short(yes_no(review.council))),
    ];
    let rulings = review.rulings.iter().map(|given| {
        let word = Text::short(&outcome_word(&given.ruling));
        (Moment::at(given.at_ms), Text::short(&given.by), word, Text::short(&given.notes))
    });
    Ok(ReviewPage {
        frame: Frame::of(dashboard, visitor, Here::Review, "Review"),
        id: record.id.clone(),
        token: dashboard.forms().token(&visitor.session),
        due: Moment::at(review.due_ms),
        facts,
        issues: review.issues.iter().map(|issue| Text::short(&issue.detail)).collect(),
        rulings: rulings.collect(),
        claimable: !claimed && fresh.claim(decider, now_ms).is_ok(),
        claim: review.claim.as_ref().filter(|_| claimed).map(|claim| claim.token),
        words: if claimed { words(dashboard, visitor, record, decider).await? } else { None },
        trouble,
    })
}

fn communities(review: &Review) -> String {
    let all: Vec<_> = review.community.iter().chain(&review.others).map(String::as_str).collect();
    if all.is_empty() { "–".to_owned() } else { all.join(", ") }
}

async fn words(
    dashboard: &Dashboard,
    visitor: &Visitor,
    record: &ReviewRecord,
    decider: &Decider,
) -> Result<Option<Words>, Trouble> {
    let audit = record.review.audit_id.as_deref().and_then(AuditId::parse);
    let Some(audit) = audit else { return Ok(None) };
    let found = held_words(&*dashboard.ports().archive, &visitor.account.tenant, audit).await;
    let Some(found) = found.map_err(|error| trouble(&error))? else { return Ok(None) };
    (dashboard.ports().on_transcript_read)(&visitor.account, audit);
    let mut ink = Ink::new();
    let messages = found.request.as_array().cloned().unwrap_or_default();
    let said = messages.iter().map(|message| {
        let content = match &message["content"] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (ink.short(message["role"].as_str().unwrap_or("?")), ink.text(&content))
    });
    let said = said.collect();
    let held = found.reply.as_ref();
    let held =
        held.and_then(|text| text.open_for_claimant(&record.review, decider, dashboard.now_ms()));
    let reply = record.review.edited.clone().or_else(|| held.map(str::to_owned));
    Ok(Some(Words { said, reply: reply.map(|text| ink.text(&text)) }))
}

/// What a form may do.
#[derive(Clone, Copy)]
enum Act {
    Claim,
    Release,
    Decide,
}

/// Claims a review.
pub(super) async fn claim(
    State(dashboard): State<Dashboard>,
    Guest(visitor): Guest,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Sent>, FormRejection>,
) -> Response {
    act(&dashboard, &visitor, &id, &headers, form, Act::Claim).await
}

/// Gives a review back.
pub(super) async fn release(
    State(dashboard): State<Dashboard>,
    Guest(visitor): Guest,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Sent>, FormRejection>,
) -> Response {
    act(&dashboard, &visitor, &id, &headers, form, Act::Release).await
}

/// Decides a review.
pub(super) async fn decide(
    State(dashboard): State<Dashboard>,
    Guest(visitor): Guest,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<Sent>, FormRejection>,
) -> Response {
    act(&dashboard, &visitor, &id, &headers, form, Act::Decide).await
}

async fn act(
    dashboard: &Dashboard,
    visitor: &Visitor,
    id: &str,
    headers: &HeaderMap,
    form: Result<Form<Sent>, FormRejection>,
    act: Act,
) -> Response {
    let sent = form.map(|Form(sent)| sent).unwrap_or_default();
    if !is_same_origin(headers) || !dashboard.forms().fits(&visitor.session, &sent.token) {
        return Trouble::Foreign.page(dashboard, Some(visitor));
    }
    let people = match people(dashboard) {
        Ok(people) => people,
        Err(trouble) => return trouble.page(dashboard, Some(visitor)),
    };
    let (caller, token) = (caller(visitor), sent.claim);
    let done = match act {
        Act::Claim => people.claim_review(&caller, id).await,
        Act::Release => people.unclaim_review(&caller, id, token).await,
        Act::Decide => match said(&sent) {
            Some(said) => people.decide_review(&caller, id, token, &said).await,
            None => {
                let why = "Choose what you decide.".to_owned();
                return show(dashboard, visitor, id, StatusCode::BAD_REQUEST, Some(why)).await;
            }
        },
    };
    match done {
        Ok(_) => Redirect::to(&format!("/reviews/{id}")).into_response(),
        Err(error @ (PeopleError::Refused(_) | PeopleError::Conflict | PeopleError::Unfit(_))) => {
            let why = Some(format!("{error}."));
            show(dashboard, visitor, id, StatusCode::CONFLICT, why).await
        }
        Err(error) => trouble(&error).page(dashboard, Some(visitor)),
    }
}

/// What was decided; browsers send line ends as two characters.
fn said(sent: &Sent) -> Option<Said> {
    let text = sent.text.replace("\r\n", "\n");
    let ruling = match sent.ruling.as_str() {
        "approve" => Ruling::Approve,
        "reject" => Ruling::Reject,
        "needs_consultation" => Ruling::NeedsConsultation,
        "edit_and_approve" if !text.trim().is_empty() => Ruling::EditAndApprove { text },
        _ => return None,
    };
    let conditions = sent.conditions.lines().map(|line| line.trim().to_owned());
    let conditions = conditions.filter(|line| !line.is_empty()).collect();
    let notes = sent.notes.replace("\r\n", "\n");
    Some(Said { ruling, notes, conditions, pii_missed: None })
}
