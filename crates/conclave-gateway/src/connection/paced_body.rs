//! A request body that must come fast enough, whatever page reads it.
//!
//! **Invariant:** waiting for bytes ends: after a while of grace a body that comes slower than the least
//! speed is an error, so that nobody keeps a place busy by saying nothing.

use crate::admission::limits::GatewayLimits;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// How fast a body must come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    grace: Duration,
    bytes_per_second_min: u32,
}

impl Pace {
    pub(crate) fn of(limits: &GatewayLimits) -> Self {
        let bytes_per_second_min = limits.body_bytes_per_second_min.max(1);
        Self { grace: limits.body_grace, bytes_per_second_min }
    }

    /// How long so many bytes may take.
    fn allows(self, bytes: u64) -> Duration {
        let millis = bytes.saturating_mul(1_000) / u64::from(self.bytes_per_second_min);
        self.grace.saturating_add(Duration::from_millis(millis))
    }
}

/// The body came slower than it must.
#[derive(Debug, thiserror::Error)]
#[error("the request body came too slowly")]
pub(crate) struct TooSlow;

impl TooSlow {
    /// Whether this is why a body could not be read.
    pub(crate) fn is_in(error: &(dyn Error + 'static)) -> bool {
        error.is::<Self>() || error.source().is_some_and(Self::is_in)
    }
}

/// A body and the time it has yet.
pub(crate) struct PacedBody<B> {
    body: B,
    pace: Pace,
    began: Option<Instant>,
    received: u64,
    /// Made when the body is first waited for: most are there as soon as their head is.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<B> PacedBody<B> {
    pub(crate) const fn new(body: B, pace: Pace) -> Self {
        Self { body, pace, began: None, received: 0, alarm: None }
    }

    /// Ready when too little came for too long.
    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let began = *self.began.get_or_insert_with(Instant::now);
        let due = began + self.pace.allows(self.received);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        alarm.as_mut().poll(context)
    }
}

impl<B> Body for PacedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream::{self, StreamExt};
    use http_body_util::{BodyExt, StreamBody};
    use std::convert::Infallible;
    use tokio::time::sleep;

    type Piece = Result<Frame<Bytes>, Infallible>;

    /// Sends a piece, waits, and so on.
    fn dripping(
        pieces: usize,
        bytes: usize,
        pause: Duration,
    ) -> PacedBody<impl Body<Data = Bytes, Error = Infallible> + Unpin> {
        let drip = stream::iter(0..pieces).then(move |_| async move {
            sleep(pause).await;
            Piece::Ok(Frame::data(Bytes::from(vec![b' '; bytes])))
        });
        PacedBody::new(StreamBody::new(Box::pin(drip)), Pace::of(&GatewayLimits::default()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_ends_and_one_that_flows_does_not() {
        let second = Duration::from_secs(1);
        let began = Instant::now();
        let silent = dripping(1, 1, 3_600 * second).collect().await;
        assert!(TooSlow::is_in(&*silent.err().unwrap()));
        assert_eq!(began.elapsed(), 5 * second);
        let began = Instant::now();
        assert!(dripping(1_000, 10, second).collect().await.is_err());
        assert!(began.elapsed() < 6 * second, "{:?}", began.elapsed());
        let slow = dripping(30, 1_100, second).collect().await.unwrap();
        assert_eq!(slow.to_bytes().len(), 33_000);
        let late = dripping(1, 10, 4 * second).collect().await.unwrap();
        assert_eq!(late.to_bytes().len(), 10);
    }
}
