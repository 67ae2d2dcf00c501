//! Request bodies: whole, bounded, or an error.
//!
//! **Invariant:** never holds more than the limit; what is beyond it is read and thrown away for a
//! while, so that a client that is still sending gets to read the answer instead of a broken pipe.
//!
//! **Invariant:** all large bodies together hold no more than their limit either, and nothing is held of
//! what somebody sends who has no key.

use crate::admission::limits::GatewayLimits;
use crate::connection::paced_body::TooSlow;
use crate::error::ApiError;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How much of an oversized body is thrown away before the connection is cut.
const DISCARD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long that may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);
/// What a body may hold before it counts: connections are bounded, and most bodies are no larger.
const SMALL_BYTES: usize = 64 * 1024;
/// What large bodies are counted in.
const UNIT_BYTES: usize = 1024;

/// What all large bodies may hold together.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new(limits: &GatewayLimits) -> Self {
        // One body always has room.
        let bytes = limits.bodies_bytes_max.max(limits.body_bytes_max);
        Self(Arc::new(Semaphore::new(bytes.div_ceil(UNIT_BYTES).min(Semaphore::MAX_PERMITS))))
    }
}

/// A body, and its share of the room for as long as it is worked on.
#[derive(Debug)]
pub(crate) struct Whole {
    pub bytes: Bytes,
    pub share: Share,
}

/// A part of the room; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    room: Room,
    held: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Whether there is room for a body of so many bytes.
    fn grow(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(SMALL_BYTES).div_ceil(UNIT_BYTES);
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if wanted <= held {
            return true;
        }
        let more = u32::try_from(wanted - held).unwrap_or(u32::MAX);
        let Ok(more) = self.room.0.clone().try_acquire_many_owned(more) else { return false };
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        true
    }
}

/// Why a body is not there.
enum Unread {
    TooLarge,
    NoRoom,
    Broken(axum::Error),
}

impl From<axum::Error> for Unread {
    fn from(error: axum::Error) -> Self {
        Self::Broken(error)
    }
}

/// Reads a body up to the limit.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: &GatewayLimits,
    room: &Room,
) -> Result<Whole, ApiError> {
    let mut body = body;
    let declared = declared_length(headers);
    if declared.is_some_and(|length| length > limits.body_bytes_max) {
        discard(&mut body, headers).await;
        return Err(ApiError::too_large(limits.body_bytes_max));
    }
    let collected = collect(&mut body, limits.body_bytes_max, room);
    match timeout(limits.body_timeout, collected).await {
        Ok(Ok(whole)) => Ok(whole),
        Ok(Err(Unread::TooLarge)) => {
            discard(&mut body, headers).await;
            Err(ApiError::too_large(limits.body_bytes_max))
        }
        Ok(Err(Unread::NoRoom)) => {
            discard(&mut body, headers).await;
            Err(ApiError::overloaded())
        }
        Ok(Err(Unread::Broken(error))) if TooSlow::is_in(&error) => Err(ApiError::too_slow()),
        Ok(Err(Unread::Broken(_))) => {
            Err(ApiError::malformed("The request body could not be read."))
        }
        Err(_elapsed) => Err(ApiError::too_slow()),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn collect(body: &mut Body, limit: usize, room: &Room) -> Result<Whole, Unread> {
    let mut share = Share { room: room.clone(), held: None };
    let mut fits = |bytes: usize| match bytes {
        _ if bytes > limit => Err(Unread::TooLarge),
        _ if share.grow(bytes) => Ok(()),
        _ => Err(Unread::NoRoom),
    };
    let first = next_data(body).await?.unwrap_or_default();
    fits(first.len())?;
    let Some(second) = next_data(body).await? else {
        return Ok(Whole { bytes: first, share });
    };
    let mut whole = BytesMut::from(first);
    let mut piece = Some(second);
    while let Some(data) = piece {
        fits(whole.len() + data.len())?;
        whole.extend_from_slice(&data);
        piece = next_data(body).await?;
    }
    Ok(Whole { bytes: whole.freeze(), share })
}

async fn next_data(body: &mut Body) -> Result<Option<Bytes>, axum::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Reads a body and keeps nothing of it.
pub(crate) async fn discard(body: &mut Body, headers: &HeaderMap) {
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

#[cfg(test)]
mod tests {
    use super::{read as read_body, *};
    use crate::error::Envelope;

    #[tokio::test]
    async fn large_bodies_share_one_room_and_small_ones_need_none() {
        let limits = GatewayLimits {
            body_bytes_max: 1024 * 1024,
            bodies_bytes_max: 1024 * 1024,
            ..GatewayLimits::default()
        };
        let room = Room::new(&limits);
        let read = async |bytes: usize| {
            let body = Body::from(vec![b' '; bytes]);
            let read = read_body(&HeaderMap::new(), body, &limits, &room).await;
            read.map_err(|error| error.body(Envelope::OpenAi)["error"]["code"].clone())
        };
        let first = read(700 * 1024).await.unwrap();
        assert_eq!(first.bytes.len(), 700 * 1024);
        assert_eq!(read(700 * 1024).await.err().unwrap(), "overloaded");
        assert_eq!(read(2 * 1024 * 1024).await.err().unwrap(), "request_too_large");
        assert!(read(SMALL_BYTES).await.is_ok());
        drop(first);
        assert!(read(1024 * 1024).await.is_ok(), "what was held is given back");
    }
}
