//! Request bodies: whole, bounded, or an error.
//!
//! **Invariant:** never holds more than the limit; what is beyond it is read and thrown away for a
//! while, so that a client that is still sending gets to read the answer instead of a broken pipe.

use crate::error::ApiError;
use crate::limits::GatewayLimits;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::time::timeout;

/// How much of an oversized body is thrown away before the connection is cut.
const DISCARD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long that may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a body up to the limit.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: &GatewayLimits,
) -> Result<Bytes, ApiError> {
    let mut body = body;
    let declared = declared_length(headers);
    if declared.is_some_and(|length| length > limits.body_bytes_max) {
        discard(&mut body, headers).await;
        return Err(ApiError::too_large(limits.body_bytes_max));
    }
    match timeout(limits.body_timeout, collect(&mut body, limits.body_bytes_max)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => {
            discard(&mut body, headers).await;
            Err(ApiError::too_large(limits.body_bytes_max))
        }
        Ok(Err(_)) => Err(ApiError::malformed("The request body could not be read.")),
        Err(_elapsed) => Err(ApiError::too_slow()),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// `None` when the limit is crossed.
async fn collect(body: &mut Body, limit: usize) -> Result<Option<Bytes>, axum::Error> {
    let Some(first) = next_data(body).await? else {
        return Ok(Some(Bytes::new()));
    };
    if first.len() > limit {
        return Ok(None);
    }
    let Some(second) = next_data(body).await? else {
        return Ok(Some(first));
    };
    let mut whole = BytesMut::from(first);
    let mut piece = Some(second);
    while let Some(data) = piece {
        if whole.len() + data.len() > limit {
            return Ok(None);
        }
        whole.extend_from_slice(&data);
        piece = next_data(body).await?;
    }
    Ok(Some(whole.freeze()))
}

async fn next_data(body: &mut Body) -> Result<Option<Bytes>, axum::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

async fn discard(body: &mut Body, headers: &HeaderMap) {
    // A client that asked first (`Expect: 100-continue`) has sent nothing yet and need not.
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let drained = async {
        let mut thrown_away = 0;
        while let Ok(Some(data)) = next_data(body).await {
            thrown_away += data.len();
            if thrown_away > DISCARD_BYTES_MAX {
                break;
            }
        }
    };
    let _ = timeout(DISCARD_TIMEOUT, drained).await;
}
