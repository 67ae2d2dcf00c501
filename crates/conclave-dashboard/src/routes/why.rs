//! `/why/{token}`: why a person was answered as they were, and where they can disagree. No sign-in, no script.
//!
//! **Invariant:** a link that was not made here, or has ended, shows nothing and does not tell whether there is
//! such a decision.
//! **Invariant:** the address carries the right to read, so that no page it leads to is told the address.

use crate::assets::{LINKS, Links};
use crate::dashboard::Dashboard;
use crate::page::page;
use crate::text::Ink;
use crate::why_texts::{
    FiledPart, NowPart, Part, RulingPart, appeal_form, dated, filed_part, no_appeal, parts,
    refusal_of, ruling_part,
};
use askama::Template;
use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest, Path, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use conclave_engine::{StoredDecision, WHY_PATH};
use conclave_govern::AppealConcern;
use conclave_ledger::tenant_number;
use conclave_people::{
    AppealStanding, Appeals, CorrectedReply, NewAppeal, PeopleError, WhyLink, WhyLinkError, explain,
};
use conclave_voice::{AppealRefusal, Language, WhyProblem, WhyProblemTitle, WhyText};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use std::sync::Arc;

/// The largest appeal: its words, each character in four bytes and each of them spelled with three.
const APPEAL_BYTES_MAX: usize = 64 * 1_024;
/// So much of a larger one is read and let go, so that whoever sends it can read the answer.
const DISCARDED_BYTES_MAX: usize = 16 << 20;

/// What stands around the page; it says nothing of the house.
struct WhyFrame {
    lang: &'static str,
    title: &'static str,
    skip: &'static str,
    foot: Vec<String>,
    links: &'static Links,
}

impl WhyFrame {
    fn new(title: &'static str, language: Language) -> Self {
        let skip = WhyText::Skip.in_language(language);
        Self { lang: language.as_str(), title, skip, foot: Vec::new(), links: &LINKS }
    }
}

#[derive(Template)]
#[template(path = "why.html")]
struct WhyPage {
    frame: WhyFrame,
    lead: &'static str,
    trouble: Option<&'static str>,
    has_trouble: bool,
    ruling: Option<RulingPart>,
    filed: Option<FiledPart>,
    parts: Vec<Part>,
    now: Option<NowPart>,
}

#[derive(Template)]
#[template(path = "why_problem.html")]
struct ProblemPage {
    frame: WhyFrame,
    why: &'static str,
}

/// What the form sends.
#[derive(Default, Deserialize)]
pub(super) struct SentAppeal {
    #[serde(default)]
    concern: String,
    #[serde(default)]
    words: String,
}

/// What a link leads to.
struct Opened {
    link: WhyLink,
    stored: StoredDecision,
    appeals: Arc<Appeals>,
}

/// What was typed and not taken in.
#[derive(Default)]
struct Refused {
    why: Option<AppealRefusal>,
    concern: Option<AppealConcern>,
    words: String,
}

/// The page.
pub(super) async fn show(
    State(dashboard): State<Dashboard>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Response {
    let shown = async {
        let opened = open(&dashboard, &token).await?;
        write_page(&token, &opened, StatusCode::OK, Refused::default()).await
    };
    private(shown.await.unwrap_or_else(|problem| problem_page(problem, &headers)))
}

/// Takes an appeal in, and shows the page again.
pub(super) async fn file(
    State(dashboard): State<Dashboard>,
    Path(token): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let filed = async {
        // Read whole before anything is said: who is still sending cannot read an answer.
        let sent = read_form(request).await;
        let opened = open(&dashboard, &token).await?;
        take_appeal(&token, &opened, sent?).await
    };
    private(filed.await.unwrap_or_else(|problem| problem_page(problem, &headers)))
}

/// The form that a request carries. Of one that is too large nothing is kept; what is no form says nothing.
async fn read_form(request: Request) -> Result<SentAppeal, WhyProblem> {
    let (parts, body) = request.into_parts();
    let mut pieces = body.into_data_stream();
    let (mut kept, mut size) = (Vec::new(), 0_usize);
    while let Some(Ok(piece)) = pieces.next().await {
        size = size.saturating_add(piece.len());
        if size <= APPEAL_BYTES_MAX {
            kept.extend_from_slice(&piece);
        } else if size > DISCARDED_BYTES_MAX {
            break;
        }
    }
    if size > APPEAL_BYTES_MAX {
        return Err(WhyProblem::TooLarge);
    }
    // A request of its own: the limits of other forms do not hold for it.
    let mut request = Request::new(Body::from(kept));
    *request.method_mut() = parts.method;
    *request.headers_mut() = parts.headers;
    let form = Form::<SentAppeal>::from_request(request, &()).await;
    Ok(form.map(|Form(sent)| sent).unwrap_or_default())
}

async fn take_appeal(
    token: &str,
    opened: &Opened,
    sent: SentAppeal,
) -> Result<Response, WhyProblem> {
    let concern = AppealConcern::parse(&sent.concern);
    let refused = |why| Refused { why: Some(why), concern, words: sent.words.clone() };
    let Some(chosen) = concern else {
        let no_concern = refused(AppealRefusal::NoConcern);
        return write_page(token, opened, StatusCode::BAD_REQUEST, no_concern).await;
    };
    if sent.words.trim().is_empty() {
        let no_words = refused(AppealRefusal::NoWords);
        return write_page(token, opened, StatusCode::BAD_REQUEST, no_words).await;
    }
    let new = NewAppeal { concern: chosen, words: sent.words.clone(), filed_by: None };
    let Err(error) = opened.appeals.file(&opened.link.tenant, &opened.stored, new).await else {
        // A page that is loaded again files nothing again.
        return Ok(Redirect::to(&format!("{WHY_PATH}{token}")).into_response());
    };
    let why = refusal_of(&error).ok_or_else(|| trouble(&error))?;
    let status = match why {
        AppealRefusal::TooMany => StatusCode::TOO_MANY_REQUESTS,
        AppealRefusal::Filed | AppealRefusal::Impossible => StatusCode::CONFLICT,
        _ => StatusCode::BAD_REQUEST,
    };
    write_page(token, opened, status, refused(why)).await
}

async fn open(dashboard: &Dashboard, token: &str) -> Result<Opened, WhyProblem> {
    let appeals = dashboard.appeals().ok_or(WhyProblem::Unknown)?;
    let link = appeals.people.read_why_token(token).map_err(|error| match error {
        WhyLinkError::Unknown => WhyProblem::Unknown,
        WhyLinkError::Expired => WhyProblem::Expired,
    })?;
    let tenant = tenant_number(link.tenant.as_str());
    let entries = dashboard.ports().archive.find(tenant, link.audit).await.map_err(|error| {
        tracing::error!(%error, "the archive does not answer a person");
        WhyProblem::Unavailable
    })?;
    let stored = StoredDecision::from_entries(entries).map_err(|error| {
        tracing::error!(audit_id = %link.audit, %error, "a stored decision cannot be read");
        WhyProblem::Unavailable
    })?;
    let stored = stored.ok_or(WhyProblem::Unknown)?;
    if stored.is_erased() {
        return Err(WhyProblem::Erased);
    }
    Ok(Opened { link, stored, appeals })
}

fn trouble(error: &PeopleError) -> WhyProblem {
    tracing::error!(%error, "a person cannot be shown why");
    WhyProblem::Unavailable
}

async fn write_page(
    token: &str,
    opened: &Opened,
    status: StatusCode,
    refused: Refused,
) -> Result<Response, WhyProblem> {
    let Opened { link, stored, appeals } = opened;
    let failed = |error: PeopleError| trouble(&error);
    let standing = appeals.people.review_standing(&link.tenant, stored).await.map_err(failed)?;
    let appeal = appeals.standing(&link.tenant, stored).await.map_err(failed)?;
    let told = explain(stored, standing, &appeal);
    let language = told.language;
    let text = |one: WhyText| one.in_language(language);
    let ink = &mut Ink::new();
    let (mut ruling, mut filed) = (None, None);
    if let AppealStanding::Filed(record) = &appeal {
        let corrected = match &record.appeal.ruling {
            None => CorrectedReply::Absent,
            Some(_) => {
                appeals.show_corrected(&link.tenant, stored, record).await.map_err(failed)?
            }
        };
        ruling = ruling_part(record, &corrected, language, ink);
        filed = Some(filed_part(record, language, ink));
    }
    let trouble = refused.why.map(|why| why.in_language(language));
    let now = match &appeal {
        AppealStanding::Open => {
            let action = format!("{WHY_PATH}{token}");
            let form = appeal_form(action, refused.concern, refused.words, language);
            Some((WhyText::AppealLead, Some(form)))
        }
        AppealStanding::Closed(why) => no_appeal(*why).map(|why| (why, None)),
        AppealStanding::Filed(_) => None,
    };
    let now = now.map(|(lead, form)| NowPart {
        heading: text(WhyText::NowHeading),
        lead: text(lead),
        form,
    });
    let ends = dated(WhyText::LinkEnds, link.expires_ms, language);
    let shown = WhyPage {
        frame: WhyFrame {
            foot: vec![text(WhyText::OnRecord).to_owned(), ends],
            ..WhyFrame::new(text(WhyText::Title), language)
        },
        lead: text(WhyText::Lead),
        has_trouble: trouble.is_some(),
        trouble,
        ruling,
        filed,
        parts: parts(&told, ink),
        now,
    };
    Ok(page(status, &shown))
}

/// A page that only says why there is nothing, in the language that the browser asks for.
fn problem_page(problem: WhyProblem, headers: &HeaderMap) -> Response {
    let language = asked_language(headers);
    let (status, title) = match problem {
        WhyProblem::Unknown => (StatusCode::NOT_FOUND, WhyProblemTitle::NoLink),
        WhyProblem::Expired | WhyProblem::Erased => (StatusCode::GONE, WhyProblemTitle::NoLink),
        WhyProblem::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, WhyProblemTitle::Later),
        WhyProblem::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, WhyProblemTitle::Shorter),
    };
    let frame = WhyFrame::new(title.in_language(language), language);
    page(status, &ProblemPage { frame, why: problem.in_language(language) })
}

/// Of the languages a browser asks for, the first that we speak.
fn asked_language(headers: &HeaderMap) -> Language {
    let asked = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let tags = asked.unwrap_or_default().split(',');
    let tags = tags.map(|tag| tag.split(';').next().unwrap_or_default().trim());
    let spoken =
        tags.filter(|tag| ["en", "ja"].contains(&tag.split('-').next().unwrap_or_default()));
    spoken.map(Language::of_tag).next().unwrap_or_default()
}

/// The page belongs to whoever has the link, and no search engine.
fn private(mut response: Response) -> Response {
    let value = HeaderValue::from_static("noindex, nofollow");
    response.headers_mut().insert("x-robots-tag", value);
    response
}
