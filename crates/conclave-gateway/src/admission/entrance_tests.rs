//! Which roles open what, and how it is found out who speaks.

use super::*;
use crate::error::Envelope;

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
        assert_eq!(doors.map(|door| role_opens(role, door)), open, "{role:?}");
    }
}

#[test]
fn roles_open_only_their_own_doors_to_people() {
    use KeyRole::{Admin, App, Auditor, Elder, Owner, Reviewer};
    let doors = [
        Need::Consents,
        Need::ReadProtocols,
        Need::EditProtocols,
        Need::ListReviews,
        Need::ReadReviews,
        Need::DecideReviews,
        Need::Webhooks,
    ];
    for (role, open) in [
        (Owner, [true; 7]),
        (App, [true, true, false, false, true, false, false]),
        (Admin, [true, true, false, true, true, false, true]),
        (Auditor, [false, true, false, true, true, false, false]),
        (Reviewer, [false, true, false, true, true, true, false]),
        (Elder, [false, true, true, true, true, true, false]),
    ] {
        assert_eq!(doors.map(|door| role_opens(role, door)), open, "{role:?}");
    }
}

#[test]
fn a_conversation_is_named_by_its_header_or_by_who_began_it_and_how() {
    let tenant = TenantId::new("acme").unwrap();
    let said = |text: &str| [Message::text(Role::User, text.to_owned())];
    let session = |headers: &HeaderMap, user: Option<&str>, text: &str| {
        let user = user.map(|name| UserId::new(name).unwrap());
        session_of(headers, &tenant, user.as_ref(), &said(text)).map(|id| id.as_str().to_owned())
    };
    let none = HeaderMap::new();
    let first = session(&none, Some("ana"), "Hello").unwrap();
    assert_eq!(first, session(&none, Some("ana"), "Hello").unwrap());
    for (user, text) in [(Some("ben"), "Hello"), (None, "Hello"), (Some("ana"), "Good day")] {
        assert_ne!(first, session(&none, user, text).unwrap(), "{user:?} {text}");
    }
    let named = HeaderMap::from_iter([(SESSION_HEADER.parse().unwrap(), "s1".parse().unwrap())]);
    assert_eq!(session(&named, Some("ana"), "Hello").unwrap(), "s1");
    let binary = http::HeaderValue::from_bytes(b"\xff").unwrap();
    let binary = HeaderMap::from_iter([(SESSION_HEADER.parse().unwrap(), binary)]);
    let error = session(&binary, None, "Hello").unwrap_err().body(Envelope::OpenAi);
    assert_eq!(error["error"]["param"], SESSION_HEADER);
}

#[test]
fn a_key_is_shown_as_a_bearer_and_in_no_other_way() {
    for (value, expected) in [
        ("Bearer ck_1", Some("ck_1")),
        ("bearer   ck_1 ", Some("ck_1")),
        ("Basic ck_1", None),
        ("ck_1", None),
    ] {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
        assert_eq!(bearer_text(&headers), expected, "{value}");
    }
    assert_eq!(bearer_text(&HeaderMap::new()), None);
}
