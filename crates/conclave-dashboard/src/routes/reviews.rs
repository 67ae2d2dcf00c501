//! `/reviews`: what waits for a person; list, claim, decide.
//!
//! **Invariant:** what may be decided, and by whom, is asked of the same rules as over HTTP; this page
//! only shows and sends.
//! **Invariant:** held words are shown to whoever has claimed them, and each showing is noted.

use crate::dashboard::Dashboard;
use crate::figure::{Moment, title};
use crate::label::outcome_word;
use crate::page::{Frame, Here, Trouble, page};
use crate::same_site::is_same_origin;
use crate::text::{Ink, Text};
use crate::visitor::{Guest, Visitor};
use crate::why_texts::choice_label;
use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use conclave_core::{AuditId, TenantId};
use conclave_engine::Caller;
use conclave_govern::{
    AppealAnswer, AppealOutcome, AppealedReply, Decider, Review, ReviewKind, ReviewRefusal, Ruling,
    Said,
};
use conclave_people::{
    AppealRecord, PanelVote, People, PeopleError, ReviewFilter, ReviewRecord, VisibleReview,
    held_words,
};
use conclave_voice::{AppealSentence, Language};
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
    votes: Vec<VoteRow>,
    crisis: bool,
    appeal: Option<AppealPart>,
}

/// How one check voted.
struct VoteRow {
    verifier: String,
    vote: Text,
    confidence: String,
    reasons: Vec<Text>,
}

/// What the person who appealed says, and in which language they are answered.
struct AppealPart {
    concern: &'static str,
    words: Text,
    language: Language,
    about: &'static str,
}

impl AppealPart {
    /// The sentences of the catalogue, each in the person's language and in English.
    fn sentences(&self) -> Vec<SentenceChoice> {
        let choice = |(at, one): (usize, &AppealSentence)| SentenceChoice {
            name: at,
            own: one.in_language(self.language),
            english: (self.language != Language::English)
                .then(|| one.in_language(Language::English)),
            lang: self.language.as_str(),
        };
        AppealSentence::ALL.iter().enumerate().map(choice).collect()
    }
}

/// A sentence that can be chosen.
struct SentenceChoice {
    name: usize,
    own: &'static str,
    english: Option<&'static str>,
    lang: &'static str,
}

/// What can be ruled, and what was chosen before.
struct RulingChoice {
    name: &'static str,
    label: &'static str,
    is_chosen: bool,
}

const RULINGS: [(&str, &str); 4] = [
    ("approve", "Approve"),
    ("edit_and_approve", "Edit and approve"),
    ("needs_consultation", "Needs consultation"),
    ("reject", "Reject"),
];
const APPEAL_RULINGS: [(&str, &str); 4] = [
    ("uphold", "The person is right"),
    ("uphold_in_part", "The person is right in part"),
    ("deny", "The decision stands"),
    ("needs_consultation", "Ask the council"),
];

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
    /// The page of the decision, for roles that may look there.
    decision: Option<String>,
    /// Why the visitor may not take it up.
    barred: Option<String>,
    choices: Vec<RulingChoice>,
    typed: Sent,
    trouble: Option<String>,
}

impl ReviewPage {
    fn appeal_part(&self) -> Option<&AppealPart> {
        self.words.as_ref()?.appeal.as_ref()
    }
}

/// What the forms send.
#[derive(Clone, Default, Deserialize)]
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
    /// A sentence of the catalogue, by its number.
    #[serde(default)]
    sentence: String,
    /// What the person who appealed is told, besides.
    #[serde(default)]
    words: String,
}

impl Sent {
    fn is_sentence(&self, at: &usize) -> bool {
        self.sentence == at.to_string()
    }
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
    show(&dashboard, &visitor, &id, StatusCode::OK, Refused::default()).await
}

/// What was sent and not taken in.
#[derive(Default)]
struct Refused {
    why: Option<String>,
    typed: Sent,
}

async fn show(
    dashboard: &Dashboard,
    visitor: &Visitor,
    id: &str,
    status: StatusCode,
    refused: Refused,
) -> Response {
    let made = async {
        let found = people(dashboard)?.review(&caller(visitor), id).await;
        let VisibleReview { record, decider } = found.map_err(|error| trouble(&error))?;
        let sheet = sheet(dashboard, visitor, &record, &decider, refused).await?;
        Ok(page(status, &sheet))
    };
    made.await.unwrap_or_else(|trouble: Trouble| trouble.page(dashboard, Some(visitor)))
}

async fn sheet(
    dashboard: &Dashboard,
    visitor: &Visitor,
    record: &ReviewRecord,
    decider: &Decider,
    refused: Refused,
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
    let Refused { why: trouble, typed } = refused;
    let is_appeal = review.kind == ReviewKind::Appeal;
    let known = if is_appeal { APPEAL_RULINGS } else { RULINGS };
    let choice = |(name, label)| RulingChoice { name, label, is_chosen: typed.ruling == name };
    let choices = known.into_iter().map(choice).collect();
    let audit = review.audit_id.as_deref().and_then(AuditId::parse);
    let decision =
        audit.filter(|_| visitor.account.may_look()).map(|id| format!("/decisions/{id}"));
    let taken = fresh.claim(decider, now_ms);
    let barred = match &taken {
        Err(
            error @ (ReviewRefusal::DecidedBefore
            | ReviewRefusal::UnknownPerson
            | ReviewRefusal::OwnWork
            | ReviewRefusal::SamePerson
            | ReviewRefusal::Claimed),
        ) => Some(format!("You cannot take this up: {error}.")),
        _ => None,
    };
    Ok(ReviewPage {
        decision,
        barred,
        choices,
        typed,
        frame: Frame::of(dashboard, visitor, Here::Review, "Review"),
        id: record.id.clone(),
        token: dashboard.forms().token(&visitor.session),
        due: Moment::at(review.due_ms),
        facts,
        issues: review.issues.iter().map(|issue| Text::short(&issue.detail)).collect(),
        rulings: rulings.collect(),
        claimable: !claimed && taken.is_ok(),
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
    let people = people(dashboard)?;
    let appeal = people.appeal_in_review(&visitor.account.tenant, &record.id).await;
    let appeal = appeal.map_err(|error| trouble(&error))?;
    let vote = |one: &PanelVote| VoteRow {
        verifier: title(&one.verifier),
        vote: Text::short(&outcome_word(if one.veto { "veto" } else { one.vote })),
        confidence: one.confidence.map_or_else(|| "–".to_owned(), |sure| format!("{sure} %")),
        reasons: one.reasons.iter().map(|reason| Text::short(reason)).collect(),
    };
    Ok(Some(Words {
        said,
        votes: found.votes.iter().map(vote).collect(),
        crisis: found.crisis,
        appeal: appeal.map(|filed| appeal_part(&filed, &mut ink)),
        reply: reply.map(|text| ink.text(&text)),
    }))
}

fn appeal_part(filed: &AppealRecord, ink: &mut Ink) -> AppealPart {
    let appeal = &filed.appeal;
    AppealPart {
        concern: choice_label(appeal.concern).in_language(Language::English),
        words: ink.text(&appeal.words),
        language: Language::of_tag(&appeal.language),
        about: match appeal.about {
            AppealedReply::Withheld => "The reply was not sent.",
            AppealedReply::Sent => "The reply was sent.",
        },
    }
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
    let refuse = |why: String| Refused { why: Some(why), typed: sent.clone() };
    let done = match act {
        Act::Claim => people.claim_review(&caller, id).await,
        Act::Release => people.unclaim_review(&caller, id, token).await,
        Act::Decide => match read_ruling(&people, &caller.tenant, id, &sent).await {
            Ok(said) => people.decide_review(&caller, id, token, &said).await,
            Err(why) => {
                let refused = refuse(why.to_owned());
                return show(dashboard, visitor, id, StatusCode::BAD_REQUEST, refused).await;
            }
        },
    };
    match done {
        Ok(_) => Redirect::to(&format!("/reviews/{id}")).into_response(),
        Err(error @ (PeopleError::Refused(_) | PeopleError::Conflict | PeopleError::Unfit(_))) => {
            let refused = refuse(format!("{error}."));
            show(dashboard, visitor, id, StatusCode::CONFLICT, refused).await
        }
        Err(error) => trouble(&error).page(dashboard, Some(visitor)),
    }
}

/// What was decided; browsers send line ends as two characters.
async fn read_ruling(
    people: &People,
    tenant: &TenantId,
    id: &str,
    sent: &Sent,
) -> Result<Said, &'static str> {
    let lines = |text: &str| text.replace("\r\n", "\n");
    let text = Some(lines(&sent.text)).filter(|text| !text.trim().is_empty());
    let upheld = |text: Option<String>| match text {
        Some(text) => Ruling::EditAndApprove { text },
        None => Ruling::Approve,
    };
    let mut outcome = None;
    let ruling = match sent.ruling.as_str() {
        "approve" => Ruling::Approve,
        "reject" => Ruling::Reject,
        "needs_consultation" => Ruling::NeedsConsultation,
        "edit_and_approve" => {
            let text = text.ok_or("Write what goes out instead.")?;
            Ruling::EditAndApprove { text }
        }
        "uphold" => {
            outcome = Some(AppealOutcome::Upheld);
            upheld(text)
        }
        "uphold_in_part" => {
            outcome = Some(AppealOutcome::UpheldInPart);
            upheld(text)
        }
        "deny" if text.is_some() => {
            return Err("A corrected reply goes out only where the person is right.");
        }
        "deny" => {
            outcome = Some(AppealOutcome::Denied);
            Ruling::Reject
        }
        _ => return Err("Choose what you decide."),
    };
    let answer = match outcome {
        Some(outcome) => {
            let words = answer_words(people, tenant, id, sent).await;
            words.map(|words| AppealAnswer { outcome, words })
        }
        None => None,
    };
    let conditions = sent.conditions.lines().map(|line| line.trim().to_owned());
    let conditions = conditions.filter(|line| !line.is_empty()).collect();
    Ok(Said { ruling, notes: lines(&sent.notes), conditions, pii_missed: None, answer })
}

/// The chosen sentence in the language of the person, and what was written besides.
async fn answer_words(people: &People, tenant: &TenantId, id: &str, sent: &Sent) -> Option<String> {
    let filed = match people.appeal_in_review(tenant, id).await {
        Ok(filed) => filed?,
        Err(error) => {
            // Without the appeal the ruling is refused, and the form keeps what was typed.
            tracing::error!(%error, "an appeal cannot be read");
            return None;
        }
    };
    let language = Language::of_tag(&filed.appeal.language);
    let chosen = sent.sentence.parse::<usize>().ok().and_then(|at| AppealSentence::ALL.get(at));
    let chosen = chosen.map(|sentence| sentence.in_language(language).to_owned());
    let own = Some(sent.words.replace("\r\n", "\n").trim().to_owned());
    let said: Vec<_> =
        [chosen, own].into_iter().flatten().filter(|words| !words.is_empty()).collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}
