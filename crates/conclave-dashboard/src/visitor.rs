//! Somebody who is signed in.
//!
//! **Invariant:** a page about decisions takes a [`Visitor`], and there is no other way to get one
//! than a session: a route cannot forget to ask.

use crate::account::Account;
use crate::cookie::Cookie;
use crate::dashboard::Dashboard;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Redirect, Response};
use conclave_ledger::tenant_number;
use http::Method;
use http::request::Parts;
use std::sync::Arc;

/// Somebody who is signed in.
pub(crate) struct Visitor {
    pub(crate) account: Arc<Account>,
    /// The value of their cookie; their forms' tokens belong to it.
    pub(crate) session: String,
}

impl Visitor {
    /// The number of their tenant in the ledger.
    pub(crate) fn tenant(&self) -> u64 {
        tenant_number(self.account.tenant.as_str())
    }
}

impl FromRequestParts<Dashboard> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Dashboard,
    ) -> Result<Self, Self::Rejection> {
        let Guest(visitor) = Guest::from_request_parts(parts, dashboard).await?;
        if visitor.account.may_look() {
            return Ok(visitor);
        }
        // Whoever only decides reviews has nothing to look for elsewhere.
        Err(Redirect::to("/reviews").into_response())
    }
}

/// Somebody who is signed in, also if only to decide reviews.
pub(crate) struct Guest(pub(crate) Visitor);

impl FromRequestParts<Dashboard> for Guest {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Dashboard,
    ) -> Result<Self, Self::Rejection> {
        let session = Cookie::Session.read(&parts.headers, dashboard.https());
        let entered = session.and_then(|id| {
            let account = dashboard.sessions().enter(id, dashboard.now_ms())?;
            if !dashboard.ports().sign_in.is_current(&account) {
                dashboard.sessions().close(id);
                return None;
            }
            Some(Self(Visitor { account, session: id.to_owned() }))
        });
        entered.ok_or_else(|| to_sign_in(parts))
    }
}

/// The way to the sign-in page and back.
fn to_sign_in(parts: &Parts) -> Response {
    let wanted = parts.uri.path_and_query().map_or("/", |uri| uri.as_str());
    if parts.method != Method::GET || wanted == "/" || way_back(wanted) == "/" {
        return Redirect::to("/login").into_response();
    }
    let escaped = wanted.replace('%', "%25").replace('&', "%26").replace('?', "%3F");
    Redirect::to(&format!("/login?next={escaped}")).into_response()
}

/// Where to go after signing in: one of our own pages, or the overview.
pub(crate) fn way_back(wanted: &str) -> &str {
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"/?=&_-".contains(&c);
    let ours = wanted == "/decisions"
        || wanted.starts_with("/decisions/")
        || wanted.starts_with("/decisions?")
        || wanted == "/reviews"
        || wanted.starts_with("/reviews/");
    if ours && wanted.len() <= 300 && wanted.bytes().all(plain) { wanted } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_never_leads_outside() {
        for (wanted, back) in [
            ("/decisions", "/decisions"),
            ("/decisions?outcome=blocked&crisis=1", "/decisions?outcome=blocked&crisis=1"),
            ("/decisions/0190-ab", "/decisions/0190-ab"),
            ("/reviews/rev_0190ab", "/reviews/rev_0190ab"),
            ("/reviewsx", "/"),
            ("/decisionsx", "/"),
            ("//evil.example", "/"),
            ("https://evil.example", "/"),
            ("/decisions/../../evil", "/"),
            ("/decisions/\\evil", "/"),
            ("/decisions?x=\r\nset-cookie", "/"),
            ("/logout", "/"),
            ("", "/"),
        ] {
            assert_eq!(way_back(wanted), back, "{wanted}");
        }
    }
}
