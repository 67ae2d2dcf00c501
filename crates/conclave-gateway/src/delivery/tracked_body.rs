//! A response body that tells the ledger what became of it.

use bytes::Bytes;
use conclave_engine::Delivery;
use conclave_failpoint as failpoint;
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Frames to be sent, and the promises to note how many of them were: one for each decision in it.
pub(crate) struct TrackedBody {
    frames: VecDeque<Bytes>,
    deliveries: Vec<Delivery>,
}

impl TrackedBody {
    pub(crate) fn new(frames: impl IntoIterator<Item = Bytes>, deliveries: Vec<Delivery>) -> Self {
        Self { frames: frames.into_iter().collect(), deliveries }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        failpoint::reach("reply.begun");
        if self.deliveries.iter().any(Delivery::has_begun) {
            failpoint::reach("reply.half_sent");
        }
        let Some(bytes) = self.frames.pop_front() else {
            return Poll::Ready(None);
        };
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let is_last = self.frames.is_empty();
        for delivery in &mut self.deliveries {
            delivery.sent(length);
            // The connection may stop asking once it has the declared length, so the last frame
            // counts.
            if is_last {
                delivery.complete();
            }
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let left: usize = self.frames.iter().map(Bytes::len).sum();
        SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn the_length_is_known_beforehand_and_the_end_with_the_last_frame() {
        let frames = [Bytes::from_static(b"one"), Bytes::from_static(b"three")];
        let mut body = TrackedBody::new(frames, Vec::new());
        assert_eq!(body.size_hint().exact(), Some(8));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one");
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(5), false));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "three");
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
    }
}
