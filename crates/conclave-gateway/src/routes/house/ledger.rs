//! `GET /ledger/...`: what anybody can check the log with, in the layout of C2SP tlog-tiles.
//!
//! **Invariant:** hashes are public, entries are not: a bundle has leaves of all tenants and is for auditors of the
//! house. Every other tenant is shown its own entries, each with its proof.

use super::decisions::archive_error;
use super::tenants::HOUSE;
use crate::admission::entrance::{Need, admit_key};
use crate::error::{ApiError, as_sentence};
use crate::routes::query::{read_number, read_query};
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use conclave_ledger::{Receipt, TileId, parse_bundle_path, tenant_number};
use http::{HeaderMap, HeaderValue, header};
use serde_json::json;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// A checkpoint is overtaken within a second.
const SOON_OLD: HeaderValue = HeaderValue::from_static("public, max-age=1");
/// A tile of some width never changes.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Nor does a bundle, but only who asked with a key may keep it.
const FOR_EVER_PRIVATE: HeaderValue =
    HeaderValue::from_static("private, max-age=31536000, immutable");

const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");
/// Entries on one page unless asked otherwise, and at most.
const PAGE: u32 = 50;
const PAGE_MAX: u32 = 200;
/// What a tenant is told that asks for the entries of all.
const ONLY_OWN: &str = "A bundle has entries of all tenants and is for auditors of the house. Those of your own tenant, each with \
    its proof, are at /v1/ledger/entries.";

fn cached_response(kind: HeaderValue, cache: HeaderValue, body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache)], body).into_response()
}

/// The last signed checkpoint.
pub(crate) async fn show_checkpoint(State(gateway): State<Gateway>) -> Response {
    let found = async {
        let note = gateway.proofs().checkpoint().await.map_err(archive_error)?;
        let missing = || ApiError::not_found("There is no checkpoint yet; the first follows soon.");
        Ok(cached_response(TEXT, SOON_OLD, note.ok_or_else(missing)?))
    };
    respond(found.await)
}

/// The keys that sign checkpoints, one a line, the one in force first.
pub(crate) async fn show_vkeys(State(gateway): State<Gateway>) -> Response {
    let found = async {
        let keys = gateway.proofs().vkeys().await.map_err(archive_error)?;
        Ok(cached_response(TEXT, SOON_OLD, keys.join("\n") + "\n"))
    };
    respond(found.await)
}

/// A tile of hashes.
pub(crate) async fn show_tile(
    State(gateway): State<Gateway>,
    Path(path): Path<String>,
) -> Response {
    let found = async {
        let id = TileId::parse(&path)
            .map_err(|error| ApiError::not_found(as_sentence(&error.to_string())))?;
        let tile = gateway.proofs().tile(id).await.map_err(archive_error)?;
        Ok(cached_response(BYTES, FOR_EVER, tile.ok_or_else(beyond_checkpoint)?))
    };
    respond(found.await)
}

/// A bundle of entries.
pub(crate) async fn show_entries(
    State(gateway): State<Gateway>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Entries)?;
        if key.tenant.as_str() != HOUSE {
            return Err(ApiError::forbidden(ONLY_OWN));
        }
        let place = parse_bundle_path(&path);
        let (index, width) =
            place.map_err(|error| ApiError::not_found(as_sentence(&error.to_string())))?;
        let bundle = gateway.proofs().bundle(index, width).await.map_err(archive_error)?;
        Ok(cached_response(BYTES, FOR_EVER_PRIVATE, bundle.ok_or_else(beyond_checkpoint)?))
    };
    respond(found.await)
}

/// Entries of the key's tenant, each with its inclusion proof.
pub(crate) async fn list_own_entries(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Entries)?;
        let (mut from, mut limit) = (0, PAGE);
        for field in read_query(query.as_deref(), &["from", "limit"])? {
            match field.name {
                "from" => {
                    let place = field.value.parse();
                    from = place
                        .map_err(|_| ApiError::invalid("from", "must be a place in the log"))?;
                }
                _ => limit = read_number(&field, PAGE_MAX)?.max(1),
            }
        }
        let tenant = tenant_number(key.tenant.as_str());
        let limit = usize::try_from(limit).unwrap_or(1);
        let page = gateway.proofs().entries(tenant, from, limit).await.map_err(archive_error)?;
        let data = page.receipts.iter().map(Receipt::to_json).collect::<Result<Vec<_>, _>>();
        let data = data.map_err(|error| {
            tracing::error!(%error, "a receipt cannot be written");
            ApiError::archive_unavailable()
        })?;
        let answer = json!({
            "object": "list", "data": data, "next_from": page.next, "size": page.size,
        });
        Ok(([(header::CACHE_CONTROL, NOT_KEPT)], Json(answer)).into_response())
    };
    respond(found.await)
}

/// The proof that the log of one size begins with the log of a smaller one.
pub(crate) async fn prove_consistency(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
) -> Response {
    let found = async {
        let LogSizes { from, to } = read_sizes(query.as_deref().unwrap_or(""))?;
        let found = gateway.proofs().consistency(from, to).await.map_err(archive_error)?;
        let found = found.ok_or_else(beyond_checkpoint)?;
        let proof: Vec<_> = found.proof.iter().map(hex::encode).collect();
        let answer = json!({
            "from": from,
            "to": to,
            "from_root": hex::encode(found.from_root),
            "to_root": hex::encode(found.to_root),
            "proof": proof,
        });
        Ok(([(header::CACHE_CONTROL, FOR_EVER)], Json(answer)).into_response())
    };
    respond(found.await)
}

/// Two sizes of the log, the smaller first.
#[derive(Debug, PartialEq, Eq)]
struct LogSizes {
    from: u64,
    to: u64,
}

fn read_sizes(query: &str) -> Result<LogSizes, ApiError> {
    let mut from = None;
    let mut to = None;
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    for (name, value) in pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
        let place = match name {
            "from" => &mut from,
            "to" => &mut to,
            other => return Err(ApiError::invalid(other, "is not known; there are from and to")),
        };
        let size = value.parse::<u64>();
        *place = Some(size.map_err(|_| ApiError::invalid(name, "must be a number of entries"))?);
    }
    let needed = |name| ApiError::invalid(name, "is needed: a number of entries");
    let from = from.ok_or_else(|| needed("from"))?;
    let to = to.ok_or_else(|| needed("to"))?;
    if from > to {
        return Err(ApiError::invalid("from", "must not be larger than `to`"));
    }
    Ok(LogSizes { from, to })
}

fn beyond_checkpoint() -> ApiError {
    ApiError::not_found("The last checkpoint does not reach that far.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_must_make_sense() {
        assert_eq!(read_sizes("from=3&to=9").unwrap(), LogSizes { from: 3, to: 9 });
        for bad in ["", "from=1", "to=1", "from=2&to=1", "from=-1&to=1", "from=x&to=1", "a=1"] {
            assert!(read_sizes(bad).is_err(), "{bad}");
        }
    }
}
