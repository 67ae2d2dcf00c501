//! `/v1/subjects/{id}`: what is kept of a person, and its erasure.

use crate::admission::auth::{Need, admit};
use crate::error::ApiError;
use crate::routes::house::decisions::unavailable;
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{AuditId, TenantId, UserId};
use conclave_engine::{ArchiveError, Engine, SubjectsError};
use conclave_people::{ExportPage, export_page, note_subject_export};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use std::collections::VecDeque;
use std::sync::Arc;

/// Everything that is kept of a person of the key's tenant, one decision a line.
pub(crate) async fn export(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit(&gateway, &headers, Need::Export)?;
        let (engine, user) = (gateway.engine(), user(&id)?);
        let found = engine.subjects.find_all(&key.tenant, &user).await.map_err(failed)?;
        let mut subjects = VecDeque::from(found);
        let subject = *subjects.front().ok_or_else(nobody)?;
        // The first page is read before the answer begins, so that trouble still has a status.
        let page = export_page(&*engine.archive, &key.tenant, subject, None).await;
        let page = page.map_err(unavailable)?;
        let (ledger, stamp) = (&*engine.ledger, engine.settings.stamp());
        let pseudonym_key = &engine.settings.pseudonym_key;
        let reader = key.id.as_str();
        for subject in &subjects {
            note_subject_export(ledger, &stamp, pseudonym_key, &key.tenant, reader, *subject);
        }
        if page.before.is_none() {
            subjects.pop_front();
        }
        let lines = lines(Walk { engine, tenant: key.tenant, subjects }, page);
        let kind = HeaderValue::from_static("application/x-ndjson");
        let mut response = Body::from_stream(lines).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        Ok(response)
    };
    respond(found.await)
}

/// Erases a person of the key's tenant.
pub(crate) async fn erase(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let erased = async {
        let key = admit(&gateway, &headers, Need::Erase)?;
        let user = user(&id)?;
        let erased = gateway.engine().erase_subject(&key.tenant, &user).await;
        let receipt = erased.map_err(failed)?.ok_or_else(nobody)?;
        Ok(Json(receipt.to_json()).into_response())
    };
    respond(erased.await)
}

fn user(id: &str) -> Result<UserId, ApiError> {
    UserId::new(id).map_err(|error| ApiError::invalid("id", error.to_string()))
}

fn nobody() -> ApiError {
    ApiError::not_found(
        "Nobody is known by this id: nothing was ever recorded, or it was erased already.",
    )
}

fn failed(error: SubjectsError) -> ApiError {
    let why = error.0;
    tracing::error!(%why, "somebody could not be looked up or erased");
    ApiError::archive_unavailable()
}

struct Walk {
    engine: Arc<Engine>,
    tenant: TenantId,
    /// Whose decisions are left, the first's from where the last page ended.
    subjects: VecDeque<[u8; 16]>,
}

/// One chunk a page; a failure on the way ends the connection, so that nobody takes a part for all.
fn lines(
    walk: Walk,
    first: ExportPage,
) -> impl futures_util::Stream<Item = Result<String, ArchiveError>> {
    let begin = (walk, Next::Page(first));
    stream::unfold(begin, |(mut walk, next)| async move {
        let page = match next {
            Next::Page(page) => page,
            Next::Before(before) => {
                let subject = *walk.subjects.front()?;
                let Walk { engine, tenant, .. } = &walk;
                match export_page(&*engine.archive, tenant, subject, before).await {
                    Ok(page) => {
                        if page.before.is_none() {
                            walk.subjects.pop_front();
                        }
                        page
                    }
                    Err(error) => {
                        walk.subjects.clear();
                        return Some((Err(error), (walk, Next::Before(None))));
                    }
                }
            }
        };
        let text: String = page.decisions.iter().map(|decision| format!("{decision}\n")).collect();
        Some((Ok(text), (walk, Next::Before(page.before))))
    })
}

/// What comes next of an export.
enum Next {
    /// A page that was read already.
    Page(ExportPage),
    /// What is older than a decision, or everything of the next name.
    Before(Option<AuditId>),
}
