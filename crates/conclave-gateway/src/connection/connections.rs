//! Places for connections: when all are taken, whoever has been idle longest makes room.
//!
//! **Invariant:** there are never more connections than places, and none is closed while it is being
//! answered: somebody who opens thousands and says nothing only pushes out their own.
//!
//! **Invariant:** no address has more than its share of them, however busy it keeps them.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
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
    most_each: usize,
    turn: AtomicU64,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    holders: HashMap<u64, Arc<Holder>>,
    /// How many each address has.
    each: HashMap<IpAddr, usize>,
}

impl Taken {
    /// Whoever has been idle longest, everywhere or at one address, leaves.
    fn make_room(&mut self, at: Option<IpAddr>) -> Option<()> {
        let asked = self.holders.iter().filter(|(_, holder)| at.is_none_or(|at| at == holder.at));
        let idle = asked.filter_map(|(id, holder)| {
            let since = holder.idle_since.load(Ordering::Acquire);
            (since > 0).then_some((since, *id))
        });
        let (_, longest) = idle.min()?;
        let left = self.remove(longest)?;
        left.is_replaced.store(true, Ordering::Release);
        left.leave.notify_one();
        Some(())
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Holder>> {
        let left = self.holders.remove(&id)?;
        if let Entry::Occupied(mut count) = self.each.entry(left.at) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(left)
    }
}

struct Holder {
    at: IpAddr,
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
    pub(crate) fn new(most: usize, most_each: usize) -> Self {
        let shared = Shared { most, most_each, turn: AtomicU64::new(1), taken: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// A place, if there is one or somebody idle makes room.
    pub(crate) fn take(&self, from: IpAddr) -> Option<Place> {
        let (id, at) = (self.next_turn(), whose(from));
        let mut taken = self.lock();
        if taken.each.get(&at).is_some_and(|count| *count >= self.shared.most_each) {
            taken.make_room(Some(at))?;
        } else if taken.holders.len() >= self.shared.most {
            taken.make_room(None)?;
        }
        let holder = Arc::new(Holder {
            at,
            idle_since: AtomicU64::new(id),
            is_replaced: AtomicBool::new(false),
            leave: Notify::new(),
        });
        *taken.each.entry(at).or_default() += 1;
        taken.holders.insert(id, Arc::clone(&holder));
        drop(taken);
        Some(Place { id, holder, places: self.clone() })
    }

    fn next_turn(&self) -> u64 {
        self.shared.turn.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose address it is: a house with IPv6 has all that begin with the same 64 bits.
fn whose(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
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
        self.places.lock().remove(self.id);
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
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn whoever_is_idle_longest_makes_room_and_nobody_who_is_answered() {
        let places = Places::new(3, 3);
        let take = || places.take(HERE);
        let (first, second, third) = (take().unwrap(), take().unwrap(), take().unwrap());
        let busy = first.work();
        let fourth = take().unwrap();
        assert!(second.wanted().now_or_never().is_some(), "the oldest that says nothing");
        assert!(first.wanted().now_or_never().is_none() && third.wanted().now_or_never().is_none());
        let (also, too) = (third.work(), fourth.work());
        assert!(take().is_none(), "all are being answered");
        drop(busy);
        assert!(take().is_some());
        assert!(first.wanted().now_or_never().is_some());
        drop((also, too, second));
        assert!(places.lock().holders.len() <= 3);
    }

    #[test]
    fn a_place_is_given_back() {
        let places = Places::new(1, 1);
        for _ in 0..10 {
            let place = places.take(HERE).unwrap();
            let _busy = place.work();
            assert!(places.take(HERE).is_none());
        }
        assert!(places.lock().each.is_empty(), "addresses are forgotten with their last place");
    }

    #[test]
    fn one_address_cannot_take_every_place_however_busy_it_is() {
        let places = Places::new(4, 2);
        let near: IpAddr = "2001:db8::1".parse().unwrap();
        let next_door: IpAddr = "2001:db8::2".parse().unwrap();
        let (first, second) = (places.take(near).unwrap(), places.take(next_door).unwrap());
        let _busy = (first.work(), second.work());
        assert!(places.take(near).is_none());
        let other = places.take(HERE).unwrap();
        assert!(places.take(HERE).is_some() && other.wanted().now_or_never().is_none());
    }
}
