//! What the routes about consent, culture, reviews and webhooks share.

use crate::admission::auth::{Need, admit};
use crate::admission::entrance::enter_or;
use crate::error::ApiError;
use crate::state::{Gateway, Services};
use axum::extract::Request;
use conclave_engine::{Caller, Engine, KeyRecord, Post};
use conclave_govern::ReviewRefusal;
use conclave_people::{GuardedHandOut, People, PeopleError};
use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::sync::Arc;

/// Somebody whose key opens this, and what they came to.
pub(crate) struct Desk {
    pub engine: Arc<Engine>,
    pub people: Arc<People>,
    pub hand_out: Arc<GuardedHandOut>,
    pub post: Arc<dyn Post>,
    pub caller: Caller,
}

/// Lets a caller in.
pub(crate) fn enter(gateway: &Gateway, headers: &HeaderMap, need: Need) -> Result<Desk, ApiError> {
    Ok(desk(gateway, &admit(gateway, headers, need)?))
}

/// Who asks with a key.
pub(crate) fn caller(key: &KeyRecord) -> Caller {
    Caller {
        holder: key.id.as_str().to_owned(),
        tenant: key.tenant.clone(),
        role: key.role,
        person: key.person.clone(),
    }
}

fn desk(gateway: &Gateway, key: &KeyRecord) -> Desk {
    let Services { engine, people, hand_out, post, .. } = gateway.services();
    Desk { engine, people, hand_out, post, caller: caller(key) }
}

/// Lets a caller in and reads what they send.
pub(crate) async fn take<T: DeserializeOwned>(
    gateway: &Gateway,
    request: Request,
    need: Need,
) -> Result<(Desk, T), ApiError> {
    let entered = enter_or(gateway, request, need, json!({})).await?;
    let desk = desk(gateway, &entered.key);
    let sent = serde_json::from_value(entered.document)
        .map_err(|error| ApiError::malformed(format!("The body cannot be used: {error}.")))?;
    Ok((desk, sent))
}

/// The one place where trouble with people becomes an answer.
pub(crate) fn trouble(error: PeopleError) -> ApiError {
    let said = sentence(&error.to_string());
    match error {
        PeopleError::NotFound(what) => ApiError::not_found(what),
        PeopleError::Forbidden(why) => ApiError::forbidden(why),
        PeopleError::Refused(ReviewRefusal::Unfit(unfit)) | PeopleError::Unfit(unfit) => {
            ApiError::invalid(unfit.place, said)
        }
        PeopleError::Refused(
            ReviewRefusal::NotAnElder
            | ReviewRefusal::NotAReviewer
            | ReviewRefusal::OwnWork
            | ReviewRefusal::SamePerson
            | ReviewRefusal::Unnamed,
        ) => ApiError::forbidden(said),
        PeopleError::Refused(_) | PeopleError::Full(_) | PeopleError::Conflict => {
            ApiError::conflict(said)
        }
        PeopleError::Unavailable(why) => {
            tracing::error!(%why, "the records do not answer");
            ApiError::archive_unavailable()
        }
    }
}

/// A whole sentence, with a capital and an end.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// The values of a query whose names are known; anything else is an error, because leaving it out would
/// show too much.
pub(crate) fn query<'a>(
    query: &'a str,
    known: &[&str],
) -> Result<Vec<(&'a str, String)>, ApiError> {
    let mut found = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !known.contains(&name) {
            return Err(ApiError::invalid(name, "is not a filter"));
        }
        let value = decoded(value).ok_or_else(|| ApiError::invalid(name, "is not text"))?;
        found.push((name, value));
    }
    Ok(found)
}

/// Percent-decoding; `None` when it is none, or no UTF-8.
fn decoded(value: &str) -> Option<String> {
    let (bytes, mut out, mut at) = (value.as_bytes(), Vec::with_capacity(value.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = std::str::from_utf8(bytes.get(at + 1..at + 3)?).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
                at += 2;
            }
            b'+' => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).ok()
}

/// A number within bounds.
pub(crate) fn number(name: &str, value: &str, most: u32) -> Result<u32, ApiError> {
    let read = value.parse().ok().filter(|number| *number <= most);
    read.ok_or_else(|| ApiError::invalid(name, format!("must be a number up to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_unknown_names_refused() {
        let found = query("subject=a%20b%C3%A9&x=1+2", &["subject", "x"]).unwrap();
        assert_eq!(found, [("subject", "a bé".to_owned()), ("x", "1 2".to_owned())]);
        for bad in ["other=1", "subject=%", "subject=%zz", "subject=%ff", "subject=%e"] {
            assert!(query(bad, &["subject"]).is_err(), "{bad}");
        }
    }
}
