//! `GET /decisions/{id}`: everything that was judged of one turn.
//!
//! **Invariant:** one question to the archive.
//!
//! **Invariant:** what waits for people is not on the page before they have let it out.
//!
//! **Invariant:** for a role that may not read words, they are taken out of what the archive gave
//! before anything is made of it.

use crate::dashboard::Dashboard;
use crate::decision::{Sheet, Sight};
use crate::page::{Frame, Here, Trouble, archive_trouble, page};
use crate::visitor::Visitor;
use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use conclave_core::AuditId;
use conclave_engine::{StoredDecision, StoredEntry};
use conclave_people::{AppealStanding, NoAppeal, standing_without_review};
use http::StatusCode;

#[derive(Template)]
#[template(path = "decision.html")]
struct DecisionPage {
    frame: Frame,
    sheet: Sheet,
}

/// The page.
pub(super) async fn show(
    State(dashboard): State<Dashboard>,
    visitor: Visitor,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    // An address that is not even text names no decision.
    let id = id.map(|Path(id)| id).unwrap_or_default();
    match sheet(&dashboard, &visitor, &id).await {
        Ok(sheet) => {
            let frame = Frame::of(&dashboard, &visitor, Here::Decision, "Decision");
            page(StatusCode::OK, &DecisionPage { frame, sheet })
        }
        Err(trouble) => trouble.page(&dashboard, Some(&visitor)),
    }
}

async fn sheet(dashboard: &Dashboard, visitor: &Visitor, id: &str) -> Result<Sheet, Trouble> {
    let id = AuditId::parse(id).ok_or(Trouble::NoDecision)?;
    let found = dashboard.ports().archive.find(visitor.tenant(), id).await;
    let mut entries = found.map_err(|error| archive_trouble(&error))?;
    let sight = sight(visitor, &entries);
    if sight == Sight::Public {
        entries.iter_mut().for_each(forget_words);
    }
    let stored = StoredDecision::from_entries(entries).map_err(|error| {
        tracing::error!(%id, %error, "a stored decision cannot be read");
        Trouble::Unreadable
    })?;
    let stored = stored.ok_or(Trouble::NoDecision)?;
    let standing = match &dashboard.ports().people {
        Some(people) => people.review_standing(&visitor.account.tenant, &stored).await,
        None => Ok(standing_without_review(&stored)),
    };
    let standing = standing.map_err(|error| {
        tracing::error!(%id, %error, "it is not known who may read a decision");
        Trouble::Archive
    })?;
    let appeal = match &dashboard.ports().people {
        Some(people) => people.appeal_of(&visitor.account.tenant, id).await,
        None => Ok(None),
    };
    let appeal = appeal.map_err(|error| {
        tracing::error!(%id, %error, "it is not known whether a decision was appealed");
        Trouble::Archive
    })?;
    // Whether one could be filed is the person's to know; here only one that was is told.
    let unfiled = AppealStanding::Closed(NoAppeal::NothingToReview);
    let appeal = appeal.map_or(unfiled, |record| AppealStanding::Filed(Box::new(record)));
    let sheet = Sheet::of(&stored, sight, standing, &appeal).ok_or_else(|| {
        tracing::error!(%id, "a stored decision has another form than this version knows");
        Trouble::Unreadable
    })?;
    if sight == Sight::Words {
        (dashboard.ports().on_transcript_read)(&visitor.account, id);
    }
    Ok(sheet)
}

fn sight(visitor: &Visitor, entries: &[StoredEntry]) -> Sight {
    let has_words = |entry: &StoredEntry| entry.body.as_ref().is_some_and(|body| !body.is_empty());
    if !visitor.account.may_read_words() {
        Sight::Public
    } else if entries.iter().any(has_words) {
        Sight::Words
    } else {
        Sight::Erased
    }
}

fn forget_words(entry: &mut StoredEntry) {
    entry.body = None;
}
