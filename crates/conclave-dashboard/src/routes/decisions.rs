//! `GET /decisions`: what was decided, newest first.
//!
//! **Invariant:** one question to the archive for each page.

use crate::dashboard::Dashboard;
use crate::figure::{Moment, count};
use crate::label::{Badge, actions, outcome_meaning, outcome_word, outcomes};
use crate::page::{Frame, Here, Trouble, archive_trouble, page};
use crate::rows::Rows;
use crate::visitor::Visitor;
use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use conclave_core::AuditId;
use conclave_engine::{DecisionFilter, DecisionRow};
use http::StatusCode;
use serde::Deserialize;

/// Decisions on one page.
const PAGE: usize = 50;
/// Decisions that are looked through for those of people in crisis: the archive cannot pick them
/// itself.
const SEARCHED: usize = 1_000;

/// What the address asks for.
#[derive(Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    crisis: String,
    #[serde(default)]
    before: String,
}

/// One choice of a filter.
struct Choice {
    name: &'static str,
    word: String,
    chosen: bool,
}

#[derive(Template)]
#[template(path = "decisions.html")]
struct DecisionsPage {
    frame: Frame,
    outcomes: Vec<Choice>,
    actions: Vec<Choice>,
    meanings: Vec<(Badge, &'static str)>,
    crisis: bool,
    filtered: bool,
    later: bool,
    rows: Rows,
    shown: String,
    older: Option<String>,
    searched_to: Option<Moment>,
}

/// The page.
pub(super) async fn show(
    State(dashboard): State<Dashboard>,
    visitor: Visitor,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let shown = async {
        let Query(asked) = asked.map_err(|_| Trouble::BadQuery)?;
        let filter = filter(&asked, visitor.tenant())?;
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let found = dashboard.ports().archive.list(filter).await;
        let found = found.map_err(|error| archive_trouble(&error))?;
        let frame = Frame::of(&dashboard, &visitor, Here::Decisions, "Decisions");
        Ok(page(StatusCode::OK, &sheet(frame, &asked, &found, limit)))
    };
    shown.await.unwrap_or_else(|trouble: Trouble| trouble.page(&dashboard, Some(&visitor)))
}

/// # Errors
/// When a filter does not exist: leaving it out silently would show too much.
fn filter(asked: &Asked, tenant: u64) -> Result<DecisionFilter, Trouble> {
    let word = |given: &str, mut known: Box<dyn Iterator<Item = &'static str>>| match given {
        "" => Ok(None),
        _ if known.any(|name| name == given) => Ok(Some(given.to_owned())),
        _ => Err(Trouble::BadQuery),
    };
    let before = match asked.before.as_str() {
        "" => None,
        id => Some(AuditId::parse(id).ok_or(Trouble::BadQuery)?),
    };
    if !matches!(asked.crisis.as_str(), "" | "1") {
        return Err(Trouble::BadQuery);
    }
    let limit = if asked.wants_crisis() { SEARCHED } else { PAGE };
    Ok(DecisionFilter {
        tenant: Some(tenant),
        outcome: word(&asked.outcome, Box::new(outcomes()))?,
        action: word(&asked.action, Box::new(actions()))?,
        before,
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
        ..DecisionFilter::default()
    })
}

impl Asked {
    fn wants_crisis(&self) -> bool {
        self.crisis == "1"
    }

    /// The address of the page before `last`, with the same filters.
    fn older_than(&self, last: &DecisionRow) -> String {
        let given =
            [("outcome", &self.outcome), ("action", &self.action), ("crisis", &self.crisis)];
        let kept = given.into_iter().filter(|(_, value)| !value.is_empty());
        let mut address = "/decisions?".to_owned();
        for (name, value) in kept {
            address.push_str(&format!("{name}={value}&"));
        }
        address + &format!("before={}", last.id)
    }
}

fn sheet(frame: Frame, asked: &Asked, found: &[DecisionRow], limit: usize) -> DecisionsPage {
    let fits = |row: &&DecisionRow| row.crisis || !asked.wants_crisis();
    let rows: Vec<_> = found.iter().filter(fits).take(PAGE).collect();
    let page_full = rows.len() == PAGE;
    // A full page ends at its last row; a search that ran dry ends where it looked last.
    let last = if page_full { rows.last().copied() } else { found.last() };
    let more = page_full || found.len() == limit;
    let searched_to = last.filter(|_| asked.wants_crisis() && more && !page_full);
    let choices = |names: Vec<&'static str>, chosen: &str| -> Vec<Choice> {
        let choice = |name| Choice { name, word: outcome_word(name), chosen: name == chosen };
        names.into_iter().map(choice).collect()
    };
    DecisionsPage {
        frame,
        outcomes: choices(outcomes().collect(), &asked.outcome),
        actions: choices(actions().collect(), &asked.action),
        meanings: outcomes().map(|name| (Badge::outcome(name), outcome_meaning(name))).collect(),
        crisis: asked.wants_crisis(),
        filtered: asked.wants_crisis() || !asked.outcome.is_empty() || !asked.action.is_empty(),
        later: !asked.before.is_empty(),
        shown: count(rows.len() as u64),
        older: last.filter(|_| more).map(|last| asked.older_than(last)),
        searched_to: searched_to.map(|row| Moment::at(row.timestamp_ms)),
        rows: Rows::new("Decisions, newest first", rows),
    }
}
