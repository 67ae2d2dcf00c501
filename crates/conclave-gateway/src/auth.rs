//! Who is calling, and what their key opens.

use crate::error::ApiError;
use crate::state::Gateway;
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
}

/// How much of a decision a caller may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Votes and scores.
    Public,
    /// The words too.
    Words,
}

/// The caller's key, if it opens this.
pub(crate) fn admit(
    gateway: &Gateway,
    headers: &HeaderMap,
    need: Need,
) -> Result<KeyRecord, ApiError> {
    let record = identify(gateway, headers).ok_or_else(ApiError::unauthorized)?;
    if opens(record.role, need) {
        return Ok(record);
    }
    Err(ApiError::forbidden("This key's role does not open this."))
}

/// The caller's key, if it is valid at all.
pub(crate) fn identify(gateway: &Gateway, headers: &HeaderMap) -> Option<KeyRecord> {
    let key = bearer(headers).or_else(|| headers.get("x-api-key")?.to_str().ok())?;
    if key.len() > KEY_BYTES_MAX {
        return None;
    }
    let now_ms = gateway.engine().clock.now_ms();
    gateway.keys().find(key).filter(|record| record.is_valid_at(now_ms))
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
