//! A connection whose client must read what it asked for.
//!
//! **Invariant:** waiting for a client to read ends: one that takes nothing for a while is cut off, so that
//! nobody keeps a place busy by asking for much and reading nothing.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection, and how long it yet waits for its client to read.
pub(crate) struct PatientStream<S> {
    stream: S,
    write_timeout: Duration,
    /// Made when the client is first waited for, and kept: few are.
    alarm: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<S> PatientStream<S> {
    pub(crate) const fn new(stream: S, write_timeout: Duration) -> Self {
        Self { stream, write_timeout, alarm: None, is_waiting: false }
    }

    /// What a write came to; an error if nothing could be written for too long.
    fn waited<T>(
        &mut self,
        written: Poll<Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        let timeout = self.write_timeout;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if !self.is_waiting {
            self.is_waiting = true;
            alarm.as_mut().reset(Instant::now() + timeout);
        }
        ready!(alarm.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.waited(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.waited(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_off_and_a_slow_one_is_not() {
        let timeout = Duration::from_secs(30);
        let (ours, mut theirs) = duplex(1_024);
        let mut stream = PatientStream::new(ours, timeout);
        let reading = tokio::spawn(async move {
            let mut piece = [0; 1_024];
            for _ in 0..20 {
                sleep(Duration::from_secs(20)).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
            theirs
        });
        stream.write_all(&[b' '; 20 * 1_024]).await.unwrap();
        let _theirs = reading.await.unwrap();
        let began = Instant::now();
        let error = stream.write_all(&[b' '; 2_048]).await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed()), (ErrorKind::TimedOut, timeout));
    }
}
