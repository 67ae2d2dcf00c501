//! `/v1/subjects/{id}`: what is kept of a person, and its erasure.

use crate::admission::entrance::{Need, admit_key};
use crate::error::ApiError;
use crate::routes::house::decisions::archive_error;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{AuditId, TenantId, UserId};
use conclave_engine::{ArchiveError, Engine, SubjectsError};
use conclave_people::{ExportPage, People, note_subject_export};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use std::collections::VecDeque;
use std::sync::Arc;

/// Everything that is kept of a person of the key's tenant, one decision a line.
pub(crate) async fn export_subject(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Export)?;
        let engine = gateway.engine();
        let user = read_user(&id)?;
        let found = engine.subjects.find_all(&key.tenant, &user).await.map_err(subjects_error)?;
        let mut subjects = VecDeque::from(found);
        let subject = *subjects.front().ok_or_else(unknown_subject)?;
        // The first page is read before the answer begins, so that trouble still has a status.
        let people = gateway.services().people;
        let page = people.export_page(&*engine.archive, &key.tenant, subject, None).await;
        let page = page.map_err(archive_error)?;
        let ledger = &*engine.ledger;
        let stamp = engine.settings.stamp();
        let pseudonym_key = &engine.settings.pseudonym_key;
        let reader = key.id.as_str();
        for subject in &subjects {
            note_subject_export(ledger, &stamp, pseudonym_key, &key.tenant, reader, *subject);
        }
        if page.before.is_none() {
            subjects.pop_front();
        }
        let lines = export_lines(ExportWalk { engine, people, tenant: key.tenant, subjects }, page);
        let kind = HeaderValue::from_static("application/x-ndjson");
        let mut response = Body::from_stream(lines).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        Ok(response)
    };
    respond(found.await)
}

/// Erases a person of the key's tenant.
pub(crate) async fn erase_subject(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let erased = async {
        let key = admit_key(&gateway, &headers, Need::Erase)?;
        let user = read_user(&id)?;
        let erased = gateway.engine().erase_subject(&key.tenant, &user).await;
        let receipt = erased.map_err(subjects_error)?.ok_or_else(unknown_subject)?;
        Ok(Json(receipt.to_json()).into_response())
    };
    respond(erased.await)
}

fn read_user(id: &str) -> Result<UserId, ApiError> {
    UserId::new(id).map_err(|error| ApiError::invalid("id", error.to_string()))
}

fn unknown_subject() -> ApiError {
    ApiError::not_found(
        "Nobody is known by this id: nothing was ever recorded, or it was erased already.",
    )
}

fn subjects_error(error: SubjectsError) -> ApiError {
    let why = error.0;
    tracing::error!(%why, "somebody could not be looked up or erased");
    ApiError::archive_unavailable()
}

struct ExportWalk {
    engine: Arc<Engine>,
    people: Arc<People>,
    tenant: TenantId,
    /// Whose decisions are left, the first's from where the last page ended.
    subjects: VecDeque<[u8; 16]>,
}

/// One chunk a page; a failure on the way ends the connection, so that nobody takes a part for all.
fn export_lines(
    walk: ExportWalk,
    first: ExportPage,
) -> impl futures_util::Stream<Item = Result<String, ArchiveError>> {
    let begin = (walk, NextPage::Page(first));
    stream::unfold(begin, |(mut walk, next)| async move {
        let page = match next {
            NextPage::Page(page) => page,
            NextPage::Before(before) => {
                let subject = *walk.subjects.front()?;
                let ExportWalk { engine, people, tenant, .. } = &walk;
                match people.export_page(&*engine.archive, tenant, subject, before).await {
                    Ok(page) => {
                        if page.before.is_none() {
                            walk.subjects.pop_front();
                        }
                        page
                    }
                    Err(error) => {
                        walk.subjects.clear();
                        return Some((Err(error), (walk, NextPage::Before(None))));
                    }
                }
            }
        };
        let text: String = page.decisions.iter().map(|decision| format!("{decision}\n")).collect();
        Some((Ok(text), (walk, NextPage::Before(page.before))))
    })
}

/// What comes next of an export.
enum NextPage {
    /// A page that was read already.
    Page(ExportPage),
    /// What is older than a decision, or everything of the next name.
    Before(Option<AuditId>),
}
