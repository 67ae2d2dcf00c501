//! Places for connections: when all are taken, whoever has been idle longest makes room.
//!
//! **Invariant:** there are never more connections than places, and none is closed while it is being
//! answered: somebody who opens thousands and says nothing only pushes out their own.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;

/// All places, and who has them.
#[derive(Clone)]
pub(crate) struct Places {
    shared: Arc<Shared>,
}

struct Shared {
    most: usize,
    turn: AtomicU64,
    taken: Mutex<HashMap<u64, Arc<Holder>>>,
}

struct Holder {
    /// 0 while it is being answered, else when it last fell idle: the number of a turn, which only grows.
    idle_since: AtomicU64,
    /// Somebody else has the place already.
    is_replaced: AtomicBool,
    leave: Notify,
}

/// One place; given back when dropped.
pub(crate) struct Place {
    id: u64,
    holder: Arc<Holder>,
    places: Places,
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        let shared = Shared { most, turn: AtomicU64::new(1), taken: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// A place, if there is one or somebody idle makes room.
    pub(crate) fn take(&self) -> Option<Place> {
        let id = self.next_turn();
        let mut taken = self.lock();
        if taken.len() >= self.shared.most {
            let idle = taken.iter().filter_map(|(id, holder)| {
                let since = holder.idle_since.load(Ordering::Acquire);
                (since > 0).then_some((since, *id))
            });
            let (_, longest) = idle.min()?;
            let left = taken.remove(&longest)?;
            left.is_replaced.store(true, Ordering::Release);
            left.leave.notify_one();
        }
        let holder = Arc::new(Holder {
            idle_since: AtomicU64::new(id),
            is_replaced: AtomicBool::new(false),
            leave: Notify::new(),
        });
        taken.insert(id, Arc::clone(&holder));
        drop(taken);
        Some(Place { id, holder, places: self.clone() })
    }

    fn next_turn(&self) -> u64 {
        self.shared.turn.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Holder>>> {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Resolves when somebody else needs the place, and nothing is being answered: a request that came in the
    /// same moment is answered first.
    pub(crate) async fn wanted(&self) {
        loop {
            self.holder.leave.notified().await;
            if self.holder.idle_since.load(Ordering::Acquire) > 0 {
                return;
            }
        }
    }

    /// Says that the connection is being answered, until what is returned is dropped.
    pub(crate) fn work(&self) -> Busy {
        self.holder.idle_since.store(0, Ordering::Release);
        Busy { holder: Arc::clone(&self.holder), places: self.places.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(&self.id);
    }
}

/// A connection is being answered.
pub(crate) struct Busy {
    holder: Arc<Holder>,
    places: Places,
}

impl Busy {
    /// The response, whose connection is busy until all of it was sent.
    pub(crate) fn until_sent(self, response: Response) -> Response {
        response.map(|body| Body::new(Sending { body, _busy: self }))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.holder.idle_since.store(self.places.next_turn(), Ordering::Release);
        if self.holder.is_replaced.load(Ordering::Acquire) {
            self.holder.leave.notify_one();
        }
    }
}

struct Sending {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
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
    use futures_util::FutureExt;

    #[test]
    fn whoever_is_idle_longest_makes_room_and_nobody_who_is_answered() {
        let places = Places::new(3);
        let (first, second, third) =
            (places.take().unwrap(), places.take().unwrap(), places.take().unwrap());
        let busy = first.work();
        let fourth = places.take().unwrap();
        assert!(second.wanted().now_or_never().is_some(), "the oldest that says nothing");
        assert!(first.wanted().now_or_never().is_none() && third.wanted().now_or_never().is_none());
        let (also, too) = (third.work(), fourth.work());
        assert!(places.take().is_none(), "all are being answered");
        drop(busy);
        assert!(places.take().is_some());
        assert!(first.wanted().now_or_never().is_some());
        drop((also, too, second));
        assert!(places.lock().len() <= 3);
    }

    #[test]
    fn a_place_is_given_back() {
        let places = Places::new(1);
        for _ in 0..10 {
            let place = places.take().unwrap();
            let _busy = place.work();
            assert!(places.take().is_none());
        }
    }
}
