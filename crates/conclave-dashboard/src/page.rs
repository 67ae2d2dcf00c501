//! The frame around every page, and pages that only say what went wrong.

use crate::assets::{LINKS, Links};
use crate::dashboard::Dashboard;
use crate::text::Text;
use crate::visitor::Visitor;
use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use conclave_engine::{ArchiveError, KeyRole};
use http::StatusCode;

/// Which part of the house a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Here {
    /// The overview.
    Overview,
    /// The list of decisions.
    Decisions,
    /// One decision.
    Decision,
    /// The queue.
    Reviews,
    /// One review.
    Review,
    /// None of them.
    Elsewhere,
}

/// What the frame says about the visitor.
pub(crate) struct SignedIn {
    pub(crate) name: Text,
    /// Said where the name does not say it already.
    pub(crate) role: Option<&'static str>,
    pub(crate) token: String,
}

/// What stands around every page.
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) here: Here,
    pub(crate) signed_in: Option<SignedIn>,
    pub(crate) links: &'static Links,
}

impl Frame {
    /// The frame of somebody who is not signed in.
    pub(crate) fn outside(title: &str) -> Self {
        Self { title: title.into(), here: Here::Elsewhere, signed_in: None, links: &LINKS }
    }

    /// The frame of a visitor.
    pub(crate) fn of(dashboard: &Dashboard, visitor: &Visitor, here: Here, title: &str) -> Self {
        let signed_in = SignedIn {
            name: Text::short(&visitor.account.name),
            role: Some(role(visitor.account.role)).filter(|role| *role != visitor.account.name),
            token: dashboard.forms().token(&visitor.session),
        };
        Self { title: title.into(), here, signed_in: Some(signed_in), links: &LINKS }
    }

    /// What `aria-current` says of the link to the overview.
    pub(crate) const fn overview_link(&self) -> Option<&'static str> {
        match self.here {
            Here::Overview => Some("page"),
            _ => None,
        }
    }

    /// What `aria-current` says of the link to the decisions.
    pub(crate) const fn decisions_link(&self) -> Option<&'static str> {
        match self.here {
            Here::Decisions => Some("page"),
            Here::Decision => Some("true"),
            _ => None,
        }
    }

    /// What `aria-current` says of the link to the reviews.
    pub(crate) const fn reviews_link(&self) -> Option<&'static str> {
        match self.here {
            Here::Reviews => Some("page"),
            Here::Review => Some("true"),
            _ => None,
        }
    }
}

const fn role(role: KeyRole) -> &'static str {
    match role {
        KeyRole::Owner => "owner",
        KeyRole::Admin => "admin",
        KeyRole::Auditor => "auditor",
        KeyRole::App => "app",
        KeyRole::Reviewer => "reviewer",
        KeyRole::Elder => "elder",
    }
}

/// A page as an answer.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => (status, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be made");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A page that only says what went wrong.
#[derive(Template)]
#[template(path = "problem.html")]
struct Problem {
    frame: Frame,
    what: &'static str,
    next: &'static str,
}

/// What can go wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// There is no such decision.
    NoDecision,
    /// There is no such review, or none for this visitor.
    NoReview,
    /// The address asks for something there is not.
    BadQuery,
    /// The archive does not answer.
    Archive,
    /// What is stored cannot be read.
    Unreadable,
    /// A form from somewhere else.
    Foreign,
}

impl Trouble {
    const fn parts(self) -> (StatusCode, &'static str, &'static str, &'static str) {
        match self {
            Self::NoDecision => (
                StatusCode::NOT_FOUND,
                "Not found",
                "There is no decision with this id.",
                "It may belong to another tenant, or the address was cut short on the way.",
            ),
            Self::NoReview => (
                StatusCode::NOT_FOUND,
                "Not found",
                "There is no such review, or it is not yours to see.",
                "What belongs to a community is for its elders alone.",
            ),
            Self::BadQuery => (
                StatusCode::BAD_REQUEST,
                "Not a filter",
                "The address asks for a filter that does not exist.",
                "Start again from the list of decisions.",
            ),
            Self::Archive => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The archive does not answer",
                "Decisions are still being recorded, but they cannot be read at the moment.",
                "Try again in a little while; the log of the program says what is wrong.",
            ),
            Self::Unreadable => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Cannot be read",
                "What is stored of this decision cannot be read: it may have been altered.",
                "Run “conclave ledger verify”: it names the first entry that was changed.",
            ),
            Self::Foreign => (
                StatusCode::FORBIDDEN,
                "Not from here",
                "This form was not sent from a page of this dashboard.",
                "Open the page again and send the form from there.",
            ),
        }
    }

    /// The page for a visitor, or for anybody.
    pub(crate) fn page(self, dashboard: &Dashboard, visitor: Option<&Visitor>) -> Response {
        let (status, title, what, next) = self.parts();
        let frame = match visitor {
            Some(visitor) => Frame::of(dashboard, visitor, Here::Elsewhere, title),
            None => Frame::outside(title),
        };
        page(status, &Problem { frame, what, next })
    }
}

/// The archive failed: said once in the log, where it is handled.
pub(crate) fn archive_trouble(error: &ArchiveError) -> Trouble {
    tracing::error!(%error, "the archive does not answer the dashboard");
    Trouble::Archive
}
