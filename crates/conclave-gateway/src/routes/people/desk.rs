//! What the routes about consent, culture, reviews and webhooks share.

use crate::admission::entrance::{Need, admit_key, admit_request};
use crate::error::{ApiError, as_sentence};
use crate::state::{Gateway, Services};
use crate::wire::typed_body;
use axum::extract::Request;
use conclave_engine::{Caller, Engine, KeyRecord, Post};
use conclave_govern::ReviewRefusal;
use conclave_people::{GuardedHandOut, People, PeopleError};
use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::sync::Arc;

/// When to try again where too many appeals wait: reviewers decide them, so nobody knows better.
const RETRY_APPEAL_S: u32 = 3_600;

/// A caller whose key opens this, and what they came to.
pub(crate) struct PeopleDesk {
    pub engine: Arc<Engine>,
    pub people: Arc<People>,
    pub hand_out: Arc<GuardedHandOut>,
    pub post: Arc<dyn Post>,
    pub caller: Caller,
}

/// The same, with what they sent.
pub(crate) struct DeskRequest<T> {
    pub desk: PeopleDesk,
    pub sent: T,
}

pub(crate) fn open_desk(
    gateway: &Gateway,
    headers: &HeaderMap,
    need: Need,
) -> Result<PeopleDesk, ApiError> {
    Ok(desk_of(gateway, &admit_key(gateway, headers, need)?))
}

/// Lets a caller in and reads what they send; no body is as good as an empty object.
pub(crate) async fn open_desk_to_read<T: DeserializeOwned>(
    gateway: &Gateway,
    request: Request,
    need: Need,
) -> Result<DeskRequest<T>, ApiError> {
    let request = admit_request(gateway, request, need, Some(json!({}))).await?;
    let desk = desk_of(gateway, &request.key);
    Ok(DeskRequest { desk, sent: typed_body(request.document)? })
}

fn desk_of(gateway: &Gateway, key: &KeyRecord) -> PeopleDesk {
    let Services { engine, people, hand_out, post, .. } = gateway.services();
    PeopleDesk { engine, people, hand_out, post, caller: caller_of(key) }
}

/// Who asks with a key.
pub(crate) fn caller_of(key: &KeyRecord) -> Caller {
    Caller {
        holder: key.id.as_str().to_owned(),
        tenant: key.tenant.clone(),
        role: key.role,
        person: key.person.clone(),
    }
}

/// The one place where trouble with people becomes an answer.
pub(crate) fn people_error(error: PeopleError) -> ApiError {
    let said = as_sentence(&error.to_string());
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
            | ReviewRefusal::Unnamed
            | ReviewRefusal::DecidedBefore
            | ReviewRefusal::UnknownPerson,
        ) => ApiError::forbidden(said),
        PeopleError::NoAppeal(_)
        | PeopleError::Refused(_)
        | PeopleError::Full(_)
        | PeopleError::Conflict => ApiError::conflict(said),
        PeopleError::TooMany(_) => ApiError::rate_limit_exceeded(said, RETRY_APPEAL_S),
        PeopleError::Unavailable(why) => {
            tracing::error!(%why, "the records do not answer");
            ApiError::archive_unavailable()
        }
        PeopleError::Malformed { .. } => {
            tracing::error!(why = said, "a record is not what this program writes");
            ApiError::archive_unavailable()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_govern::Unfit;
    use conclave_people::NoAppeal;

    #[test]
    fn each_trouble_with_people_has_its_status() {
        let cases = [
            (PeopleError::NotFound("There is no such review."), 404),
            (PeopleError::Forbidden("Not this key."), 403),
            (PeopleError::Refused(ReviewRefusal::NotAnElder), 403),
            (PeopleError::Refused(ReviewRefusal::NotAReviewer), 403),
            (PeopleError::Refused(ReviewRefusal::OwnWork), 403),
            (PeopleError::Refused(ReviewRefusal::SamePerson), 403),
            (PeopleError::Refused(ReviewRefusal::Unnamed), 403),
            (PeopleError::Refused(ReviewRefusal::DecidedBefore), 403),
            (PeopleError::Refused(ReviewRefusal::UnknownPerson), 403),
            (PeopleError::NoAppeal(NoAppeal::Filed), 409),
            (PeopleError::TooMany("there are many"), 429),
            (PeopleError::Refused(ReviewRefusal::Claimed), 409),
            (PeopleError::Refused(ReviewRefusal::Stale), 409),
            (PeopleError::Refused(ReviewRefusal::Decided), 409),
            (PeopleError::Refused(ReviewRefusal::Exhausted), 409),
            (PeopleError::Refused(ReviewRefusal::Unfit(Unfit::new("notes", "is long"))), 400),
            (PeopleError::Unfit(Unfit::new("name", "is empty")), 400),
            (PeopleError::Full("there are too many".into()), 409),
            (PeopleError::Conflict, 409),
            (PeopleError::Unavailable("away".into()), 503),
        ];
        for (error, status) in cases {
            let told = error.to_string();
            assert_eq!(people_error(error).status().as_u16(), status, "{told}");
        }
    }
}
