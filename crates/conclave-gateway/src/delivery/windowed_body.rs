//! A response body whose parts leave as the engine lets them.
//!
//! **Invariant:** every byte it hands over is either ours or was released by the engine; what was handed
//! over is told to the ledger, also when the client goes away before the decision.

use crate::error::ApiError;
use crate::wire::Dialect;
use bytes::Bytes;
use conclave_engine::{DeliverError, Delivery, Progress, Reply};
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How long a client hears nothing at most.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// What it hears then: a comment, which every reader of events passes over.
pub(crate) const KEEP_ALIVE_COMMENT: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// How many bytes were handed to a connection, known also to whoever finishes the turn.
pub(crate) type SentBytes = Arc<AtomicU64>;

/// What a decision ends a begun stream with: frames in the dialect.
pub(crate) type StreamEnding =
    fn(&mut dyn Dialect, &Result<Reply, DeliverError>) -> Result<Vec<Bytes>, ApiError>;

/// What a stream that began with nothing but comments opens with, once there is something to say.
pub(crate) type StreamOpening = Box<dyn FnOnce(&mut dyn Dialect, &Progress) -> Vec<Bytes> + Send>;

/// When the next comment is due.
pub(crate) fn keep_alive_interval() -> Interval {
    let mut quiet = interval(KEEP_ALIVE);
    quiet.set_missed_tick_behavior(MissedTickBehavior::Delay);
    quiet.reset();
    quiet
}

/// Frames to be sent, those to come, and the promise to note how many of them were.
pub(crate) struct WindowedBody {
    frames: VecDeque<Bytes>,
    progress: UnboundedReceiver<Progress>,
    dialect: Box<dyn Dialect>,
    opening: Option<StreamOpening>,
    ending: StreamEnding,
    sent: SentBytes,
    quiet: Interval,
    delivery: Option<Delivery>,
    is_ended: bool,
}

impl WindowedBody {
    pub(crate) fn new(
        frames: Vec<Bytes>,
        progress: UnboundedReceiver<Progress>,
        dialect: Box<dyn Dialect>,
        ending: StreamEnding,
        sent: SentBytes,
    ) -> Self {
        Self {
            frames: frames.into(),
            progress,
            dialect,
            opening: None,
            ending,
            sent,
            quiet: keep_alive_interval(),
            delivery: None,
            is_ended: false,
        }
    }

    /// The same for a client that has waited long enough: it hears a comment at once, and the opening when
    /// there is something to say.
    #[must_use]
    pub(crate) fn opening_later(mut self, opening: StreamOpening) -> Self {
        self.opening = Some(opening);
        self.frames.push_front(KEEP_ALIVE_COMMENT);
        self
    }

    fn take_progress(&mut self, progress: Option<Progress>) {
        if let (Some(opening), Some(progress)) = (self.opening.take(), &progress) {
            self.frames.extend(opening(&mut *self.dialect, progress));
        }
        match progress {
            Some(Progress::Released(released)) => {
                self.frames.extend(self.dialect.stream_piece(&released.text));
            }
            Some(Progress::Decided(decided)) => {
                self.is_ended = true;
                let ending = (self.ending)(&mut *self.dialect, &decided);
                let frames = ending.unwrap_or_else(|error| self.dialect.break_stream(&error));
                self.frames.extend(frames);
                self.delivery = promised_delivery(*decided, &self.sent);
            }
            None => {
                self.is_ended = true;
                self.frames.extend(self.dialect.break_stream(&ApiError::internal()));
            }
        }
    }

    fn hand_over(&mut self, bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.sent.fetch_add(length, Ordering::Relaxed);
        if let Some(delivery) = &mut self.delivery {
            delivery.sent(length);
            if self.is_ended && self.frames.is_empty() {
                delivery.complete();
            }
        }
        self.quiet.reset();
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

/// The promise of a decided reply, told what left before.
pub(crate) fn promised_delivery(
    decided: Result<Reply, DeliverError>,
    sent: &SentBytes,
) -> Option<Delivery> {
    let mut delivery = decided.ok()?.delivery;
    delivery.sent(sent.load(Ordering::Relaxed));
    Some(delivery)
}

impl Body for WindowedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(bytes) = self.frames.pop_front() {
                return self.hand_over(bytes);
            }
            if self.is_ended {
                return Poll::Ready(None);
            }
            match self.progress.poll_recv(context) {
                Poll::Ready(progress) => self.take_progress(progress),
                Poll::Pending => {
                    ready!(self.quiet.poll_tick(context));
                    return self.hand_over(KEEP_ALIVE_COMMENT);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended && self.frames.is_empty()
    }
}

impl Drop for WindowedBody {
    /// A decision that came while the client was leaving is told what had left.
    fn drop(&mut self) {
        self.progress.close();
        while let Ok(progress) = self.progress.try_recv() {
            if let Progress::Decided(decided) = progress {
                drop(promised_delivery(*decided, &self.sent));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chat::ChatDialect;
    use http_body_util::BodyExt;
    use tokio::sync::mpsc::unbounded_channel;

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_is_kept_alive_and_a_lost_one_ends_with_an_error() {
        let (sender, progress) = unbounded_channel();
        let ending: StreamEnding = |_, _| Ok(Vec::new());
        let frames = vec![Bytes::from_static(b"data: 1\n\n")];
        let sent = SentBytes::default();
        let mut body = WindowedBody::new(
            frames,
            progress,
            Box::<ChatDialect>::default(),
            ending,
            sent.clone(),
        );
        let mut next = async || body.frame().await.map(|frame| frame.unwrap().into_data().unwrap());
        assert_eq!(next().await.unwrap(), "data: 1\n\n");
        // Time stands still until everything waits; then the next tick is what is waited for.
        assert_eq!(next().await.unwrap(), KEEP_ALIVE_COMMENT);
        drop(sender);
        assert!(next().await.unwrap().starts_with(b"data: {\"error\""));
        assert!(next().await.is_none());
        assert!(sent.load(Ordering::Relaxed) > 23);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_begins_late_opens_with_its_first_words() {
        let (sender, progress) = unbounded_channel();
        let ending: StreamEnding = |_, _| Ok(Vec::new());
        let opening: StreamOpening = Box::new(|_, _| vec![Bytes::from_static(b"data: head\n\n")]);
        let chat = Box::<ChatDialect>::default();
        let mut body = WindowedBody::new(Vec::new(), progress, chat, ending, SentBytes::default())
            .opening_later(opening);
        let mut next = async || body.frame().await.map(|frame| frame.unwrap().into_data().unwrap());
        assert_eq!(next().await.unwrap(), KEEP_ALIVE_COMMENT);
        assert_eq!(next().await.unwrap(), KEEP_ALIVE_COMMENT);
        let failed = DeliverError::UnknownModel("x".into());
        sender.send(Progress::Decided(Box::new(Err(failed)))).unwrap();
        assert_eq!(next().await.unwrap(), "data: head\n\n");
        assert!(next().await.is_none());
    }
}
