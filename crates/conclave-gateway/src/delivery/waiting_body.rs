//! A stream of events that begins before its reply is decided, because its client has waited long enough.
//!
//! **Invariant:** until the work is done nothing is sent but comments: no word of a reply leaves here that
//! did not leave with the work.

use crate::delivery::windowed_body::{KEEP_ALIVE_COMMENT, keep_alive_interval};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::Interval;

/// Work that ends with the response whose body is sent.
pub(crate) type PendingResponse = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Comments, and then the body of the answer.
pub(crate) struct WaitingBody {
    state: WaitingState,
    quiet: Interval,
}

enum WaitingState {
    Waiting(PendingResponse),
    Answering(Body),
}

impl WaitingBody {
    pub(crate) fn new(work: PendingResponse) -> Self {
        let mut quiet = keep_alive_interval();
        // Whoever comes here has heard nothing for long enough.
        quiet.reset_immediately();
        Self { state: WaitingState::Waiting(work), quiet }
    }
}

impl HttpBody for WaitingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            match &mut self.state {
                WaitingState::Answering(body) => return Pin::new(body).poll_frame(context),
                WaitingState::Waiting(work) => match work.as_mut().poll(context) {
                    Poll::Ready(answer) => self.state = WaitingState::Answering(answer.into_body()),
                    Poll::Pending => {
                        ready!(self.quiet.poll_tick(context));
                        return Poll::Ready(Some(Ok(Frame::data(KEEP_ALIVE_COMMENT))));
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    #[tokio::test(start_paused = true)]
    async fn comments_are_all_that_leaves_before_the_answer() {
        let began = Instant::now();
        let body = WaitingBody::new(Box::pin(async {
            sleep(Duration::from_secs(25)).await;
            Response::new(Body::from("data: 1\n\n"))
        }));
        let sent = body.collect().await.unwrap().to_bytes();
        let comments = [&KEEP_ALIVE_COMMENT[..], &KEEP_ALIVE_COMMENT, &KEEP_ALIVE_COMMENT].concat();
        assert_eq!(sent, [&comments[..], b"data: 1\n\n"].concat());
        assert_eq!(began.elapsed(), Duration::from_secs(25));
    }
}
