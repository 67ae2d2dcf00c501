//! Request bodies: they come fast enough, whole, within bounds and as JSON that reads in one way only, or
//! there is an error.
//!
//! **Invariant:** waiting for bytes ends: after a while of grace a body that comes slower than the least
//! speed is an error, so that nobody keeps a place busy by saying nothing.
//! **Invariant:** never holds more than the limit; what is beyond it is read and thrown away for a
//! while, so that a client that is still sending gets to read the answer instead of a broken pipe.
//! **Invariant:** all large bodies together hold no more than their limit either, and nothing is held of
//! what somebody sends who has no key.
//! **Invariant:** a document has at most [`NODES_MAX`] nodes, [`DEPTH_MAX`] levels and no key twice: a second
//! `messages` is how a request slips past a guard that reads the first and a model that reads the last.

use crate::admission::limits::GatewayLimits;
use crate::error::ApiError;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// How much of an oversized body is thrown away before the connection is cut.
const DISCARD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long that may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);
/// What a body may hold before it counts: connections are bounded, and most bodies are no larger.
const SMALL_BYTES: usize = 64 * 1024;
/// What large bodies are counted in.
const UNIT_BYTES: usize = 1024;
/// Levels of nesting in one document.
const DEPTH_MAX: usize = 64;
/// Values in one document.
const NODES_MAX: usize = 100_000;

/// How fast a body must come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyPace {
    grace: Duration,
    bytes_per_second_min: u32,
}

impl BodyPace {
    pub(crate) fn within(limits: &GatewayLimits) -> Self {
        let bytes_per_second_min = limits.body_bytes_per_second_min.max(1);
        Self { grace: limits.body_grace, bytes_per_second_min }
    }

    fn time_allowed(self, bytes: u64) -> Duration {
        let millis = bytes.saturating_mul(1_000) / u64::from(self.bytes_per_second_min);
        self.grace.saturating_add(Duration::from_millis(millis))
    }
}

/// The body came slower than it must.
#[derive(Debug, thiserror::Error)]
#[error("the request body came too slowly")]
struct TooSlow;

impl TooSlow {
    /// Whether this is why a body could not be read.
    fn is_in(error: &(dyn Error + 'static)) -> bool {
        error.is::<Self>() || error.source().is_some_and(Self::is_in)
    }
}

/// A body that ends with an error where it comes too slowly, whatever page reads it.
pub(crate) struct PacedBody<B> {
    body: B,
    pace: BodyPace,
    began: Option<Instant>,
    received: u64,
    /// Made when the body is first waited for: most are there as soon as their head is.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<B> PacedBody<B> {
    pub(crate) const fn new(body: B, pace: BodyPace) -> Self {
        Self { body, pace, began: None, received: 0, alarm: None }
    }

    /// Ready when too little came for too long.
    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let began = *self.began.get_or_insert_with(Instant::now);
        let due = began + self.pace.time_allowed(self.received);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        alarm.as_mut().poll(context)
    }
}

impl<B> HttpBody for PacedBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some(Ok(frame)) = &frame {
                let length = frame.data_ref().map_or(0, Bytes::len);
                self.received += u64::try_from(length).unwrap_or_default();
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(self.poll_overdue(context));
        Poll::Ready(Some(Err(TooSlow.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What all large bodies may hold together.
#[derive(Clone, Debug)]
pub(crate) struct BodyRoom(Arc<Semaphore>);

impl BodyRoom {
    pub(crate) fn new(limits: &GatewayLimits) -> Self {
        // One body always has room.
        let bytes = limits.bodies_bytes_max.max(limits.body_bytes_max);
        Self(Arc::new(Semaphore::new(bytes.div_ceil(UNIT_BYTES).min(Semaphore::MAX_PERMITS))))
    }
}

/// A whole body, and its share of the room for as long as it is worked on.
#[derive(Debug)]
pub(crate) struct RequestBody {
    pub bytes: Bytes,
    pub share: BodyShare,
}

/// A part of the room; given back when dropped.
#[derive(Debug)]
pub(crate) struct BodyShare {
    room: BodyRoom,
    held: Option<OwnedSemaphorePermit>,
}

impl BodyShare {
    /// Makes the share large enough for so many bytes; `false` where there is no room.
    fn grow_to(&mut self, bytes: usize) -> bool {
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
enum BodyFault {
    TooLarge,
    NoRoom,
    Broken(axum::Error),
}

impl From<axum::Error> for BodyFault {
    fn from(error: axum::Error) -> Self {
        Self::Broken(error)
    }
}

/// Reads a body up to the limit.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    mut body: Body,
    limits: &GatewayLimits,
    room: &BodyRoom,
) -> Result<RequestBody, ApiError> {
    let declared = declared_length(headers);
    if declared.is_some_and(|length| length > limits.body_bytes_max) {
        discard_body(&mut body, headers).await;
        return Err(ApiError::too_large(limits.body_bytes_max));
    }
    let collected = collect_body(&mut body, limits.body_bytes_max, room);
    match timeout(limits.body_timeout, collected).await {
        Ok(Ok(whole)) => Ok(whole),
        Ok(Err(BodyFault::TooLarge)) => {
            discard_body(&mut body, headers).await;
            Err(ApiError::too_large(limits.body_bytes_max))
        }
        Ok(Err(BodyFault::NoRoom)) => {
            discard_body(&mut body, headers).await;
            Err(ApiError::overloaded())
        }
        Ok(Err(BodyFault::Broken(error))) if TooSlow::is_in(&error) => Err(ApiError::too_slow()),
        Ok(Err(BodyFault::Broken(_))) => {
            Err(ApiError::malformed("The request body could not be read."))
        }
        Err(_elapsed) => Err(ApiError::too_slow()),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn collect_body(
    body: &mut Body,
    limit: usize,
    room: &BodyRoom,
) -> Result<RequestBody, BodyFault> {
    let mut share = BodyShare { room: room.clone(), held: None };
    let mut fits = |bytes: usize| match bytes {
        _ if bytes > limit => Err(BodyFault::TooLarge),
        _ if share.grow_to(bytes) => Ok(()),
        _ => Err(BodyFault::NoRoom),
    };
    // Most bodies come in one piece, which need not be copied.
    let first = next_data(body).await?.unwrap_or_default();
    fits(first.len())?;
    let Some(second) = next_data(body).await? else {
        return Ok(RequestBody { bytes: first, share });
    };
    let mut whole = BytesMut::from(first);
    let mut piece = Some(second);
    while let Some(data) = piece {
        fits(whole.len() + data.len())?;
        whole.extend_from_slice(&data);
        piece = next_data(body).await?;
    }
    Ok(RequestBody { bytes: whole.freeze(), share })
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
pub(crate) async fn discard_body(body: &mut Body, headers: &HeaderMap) {
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
    // Out of time, the connection is cut with the answer.
    let _ = timeout(DISCARD_TIMEOUT, drained).await;
}

/// Reads one JSON document. The error says what is wrong and where: not JSON, a key that stands twice, too
/// deep or too large.
pub(crate) fn parse_json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let nodes = Cell::new(0);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = StrictValue { depth_left: DEPTH_MAX, nodes: &nodes }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads one value of a document.
#[derive(Clone, Copy)]
struct StrictValue<'a> {
    depth_left: usize,
    nodes: &'a Cell<usize>,
}

impl StrictValue<'_> {
    fn one_level_deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth_left.checked_sub(1) {
            Some(depth_left) => Ok(Self { depth_left, ..self }),
            None => Err(E::custom(format_args!("nested deeper than {DEPTH_MAX} levels"))),
        }
    }

    fn count_node<E: serde::de::Error>(self) -> Result<(), E> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > NODES_MAX {
            return Err(E::custom(format_args!("more than {NODES_MAX} values")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for StrictValue<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count_node()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.one_level_deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.one_level_deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice")));
            }
            let value = entries.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
