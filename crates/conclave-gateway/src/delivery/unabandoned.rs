//! Work that is finished whether or not its client stays.

use std::pin::Pin;
use std::task::{Context, Poll};

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs in the request's own task; if that is dropped half-way, because the client went away, the rest
/// is finished in a task of its own: what was bought and judged is recorded.
pub(crate) struct Unabandoned<T: Send + 'static>(Option<Work<T>>);

impl<T: Send + 'static> Unabandoned<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for Unabandoned<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = self.0.as_mut() else { return Poll::Pending };
        let result = work.as_mut().poll(context);
        if result.is_ready() {
            self.0 = None;
        }
        result
    }
}

impl<T: Send + 'static> Drop for Unabandoned<T> {
    fn drop(&mut self) {
        if let Some(rest) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn what_is_dropped_half_way_is_finished_all_the_same() {
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let mut work = Box::pin(Unabandoned::new(async move {
            let _ = gone.await;
            let _ = tell.send(42);
        }));
        assert!(futures_util::poll!(work.as_mut()).is_pending());
        drop(work);
        let _ = go.send(());
        assert_eq!(told.await, Ok(42));
    }
}
