//! Who is calling, and what their key opens.

use crate::admission::pacing;
use crate::admission::tokens;
use crate::error::ApiError;
use crate::state::Gateway;
use conclave_core::{SessionId, UserId};
use conclave_engine::{KeyRecord, KeyRole};
use http::{HeaderMap, header};

/// The longest key worth looking up.
const KEY_BYTES_MAX: usize = 256;

/// What a route is about; deny by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Talk through the gateway.
    Converse,
    /// List decisions and read what is public of them.
    Audit,
    /// Ask why.
    Explain,
    /// Have it proved that a decision is in the log.
    Prove,
    /// Read the entries of the whole log, without words.
    Entries,
    /// Be given everything that is kept of a person, words too.
    Export,
    /// Erase a person.
    Erase,
    /// Read policies and tenants.
    Policies,
    /// Change policies and tenants.
    Govern,
    /// See what was used and spent.
    Usage,
    /// Keep and read what people agreed to.
    Consents,
    /// Read what is public of protocols.
    ReadProtocols,
    /// Change a protocol, or who speaks for a community; the records know whose it is.
    EditProtocols,
    /// See what waits for people; the records know whose it is.
    ReadReviews,
    /// Claim and decide; the records know whose it is.
    DecideReviews,
    /// Say where events are sent to.
    Webhooks,
    /// See which recipes there are, and what is counted of them.
    Recipes,
    /// Make, see, replace and withdraw keys.
    Keys,
    /// Make tokens for the people at the other end.
    Tokens,
}

/// The one person, and the one conversation of theirs, that a token is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    pub user: UserId,
    pub session: Option<SessionId>,
}

/// Somebody who was let in: a key, or a person with a token that the key made.
pub(crate) struct Admitted {
    pub key: KeyRecord,
    pub own: Option<Own>,
}

/// How much of a decision a caller may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Votes and scores.
    Public,
    /// The words too.
    Words,
}

/// The caller's key, if it opens this and the limits let it. A person's token opens nothing here.
pub(crate) fn admit(
    gateway: &Gateway,
    headers: &HeaderMap,
    need: Need,
) -> Result<KeyRecord, ApiError> {
    let key = permit(gateway, headers, need)?;
    pacing::count(gateway, &key)?;
    Ok(key)
}

/// The caller's key, if it opens this; the request is counted by whoever finds out who speaks.
pub(crate) fn permit(
    gateway: &Gateway,
    headers: &HeaderMap,
    need: Need,
) -> Result<KeyRecord, ApiError> {
    let admitted = identify(gateway, headers).ok_or_else(|| pacing::stranger(gateway))?;
    if admitted.own.is_none() && opens(admitted.key.role, need) {
        return Ok(admitted.key);
    }
    Err(closed())
}

/// The same for what concerns one person: their token opens it too, where it is their own.
pub(crate) fn admit_person(
    gateway: &Gateway,
    headers: &HeaderMap,
    need: Need,
) -> Result<Admitted, ApiError> {
    let admitted = identify(gateway, headers).ok_or_else(|| pacing::stranger(gateway))?;
    let opened = match &admitted.own {
        Some(_) => matches!(need, Need::Explain | Need::Prove),
        None => opens(admitted.key.role, need),
    };
    if !opened {
        return Err(closed());
    }
    pacing::count(gateway, &admitted.key)?;
    Ok(admitted)
}

fn closed() -> ApiError {
    ApiError::forbidden("This key's role does not open this.")
}

/// Who calls, if their key or token is valid at all.
pub(crate) fn identify(gateway: &Gateway, headers: &HeaderMap) -> Option<Admitted> {
    let shown = bearer(headers).or_else(|| headers.get("x-api-key")?.to_str().ok())?;
    if shown.starts_with(tokens::PREFIX) {
        let (token, key) = tokens::read(gateway, shown)?;
        let own = Own { user: token.user, session: token.session };
        return Some(Admitted { key, own: Some(own) });
    }
    if shown.len() > KEY_BYTES_MAX {
        return None;
    }
    let now_ms = gateway.engine().clock.now_ms();
    let key = gateway.keys().find(shown).filter(|record| record.is_valid_at(now_ms))?;
    Some(Admitted { key, own: None })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

pub(crate) const fn opens(role: KeyRole, need: Need) -> bool {
    match role {
        KeyRole::Owner => true,
        KeyRole::App => matches!(
            need,
            Need::Converse
                | Need::Explain
                | Need::Prove
                | Need::Recipes
                | Need::Consents
                | Need::ReadProtocols
                | Need::ReadReviews
                | Need::Tokens
        ),
        KeyRole::Admin => matches!(
            need,
            Need::Audit
                | Need::Prove
                | Need::Recipes
                | Need::Erase
                | Need::Policies
                | Need::Govern
                | Need::Usage
                | Need::Consents
                | Need::ReadProtocols
                | Need::ReadReviews
                | Need::Webhooks
        ),
        KeyRole::Auditor => matches!(
            need,
            Need::Audit
                | Need::Prove
                | Need::Recipes
                | Need::Entries
                | Need::Policies
                | Need::Usage
                | Need::ReadProtocols
                | Need::ReadReviews
        ),
        KeyRole::Reviewer => {
            matches!(need, Need::ReadProtocols | Need::ReadReviews | Need::DecideReviews)
        }
        KeyRole::Elder => matches!(
            need,
            Need::ReadProtocols | Need::EditProtocols | Need::ReadReviews | Need::DecideReviews
        ),
    }
}

/// Words are for the owner alone until reviews grant them to a reviewer.
pub(crate) const fn sight(role: KeyRole) -> Sight {
    match role {
        KeyRole::Owner => Sight::Words,
        _ => Sight::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_open_only_their_own_doors() {
        use KeyRole::{Admin, App, Auditor, Elder, Owner, Reviewer};
        let doors = [
            Need::Converse,
            Need::Audit,
            Need::Explain,
            Need::Prove,
            Need::Entries,
            Need::Export,
            Need::Erase,
            Need::Policies,
            Need::Govern,
            Need::Usage,
        ];
        for (role, open) in [
            (Owner, [true; 10]),
            (App, [true, false, true, true, false, false, false, false, false, false]),
            (Admin, [false, true, false, true, false, false, true, true, true, true]),
            (Auditor, [false, true, false, true, true, false, false, true, false, true]),
            (Reviewer, [false; 10]),
            (Elder, [false; 10]),
        ] {
            assert_eq!(doors.map(|door| opens(role, door)), open, "{role:?}");
        }
    }

    #[test]
    fn roles_open_only_their_own_doors_to_people() {
        use KeyRole::{Admin, App, Auditor, Elder, Owner, Reviewer};
        let doors = [
            Need::Consents,
            Need::ReadProtocols,
            Need::EditProtocols,
            Need::ReadReviews,
            Need::DecideReviews,
            Need::Webhooks,
        ];
        for (role, open) in [
            (Owner, [true; 6]),
            (App, [true, true, false, true, false, false]),
            (Admin, [true, true, false, true, false, true]),
            (Auditor, [false, true, false, true, false, false]),
            (Reviewer, [false, true, false, true, true, false]),
            (Elder, [false, true, true, true, true, false]),
        ] {
            assert_eq!(doors.map(|door| opens(role, door)), open, "{role:?}");
        }
    }
}
