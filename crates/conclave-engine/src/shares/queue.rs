//! Who is next where there is more work than places: a queue without a clock of its own.
//!
//! Of all who wait, the tenant comes next that has least work under way and was served least; within it the key of
//! which the same is true; of equals, whoever asked first; of one key, what was begun before what is new. Whoever
//! comes anew begins where those stand that are served now, so that nobody can save up time by staying away.
//!
//! **Invariant:** never more work is under way than there are places, and no place is free while somebody waits.
//! **Invariant:** of somebody who neither works nor waits is known what they had, until others have had as much or
//! nobody is left to be compared with.

use conclave_core::{KeyId, TenantId};
use std::collections::{BTreeMap, VecDeque};

/// Who asks for work to be done: a key of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sharer {
    /// Whose application.
    pub tenant: TenantId,
    /// With which key.
    pub key: Option<KeyId>,
}

/// Whether work goes on with something that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The first work of a turn.
    New,
    /// Further work of a turn that was let in.
    Begun,
}

/// The number of a piece of work.
pub(crate) type Ticket = u64;

/// What a tenant, or one of its keys, has had.
#[derive(Debug, Default)]
struct Share {
    served_ns: u64,
    at_work: usize,
    waiting: usize,
}

impl Share {
    const fn is_idle(&self) -> bool {
        self.at_work == 0 && self.waiting == 0
    }

    /// Whether it must be known.
    const fn counts(&self, level_ns: u64) -> bool {
        !self.is_idle() || self.served_ns > level_ns
    }

    /// Whoever comes anew begins where others stand, and not before.
    fn come_in(&mut self, level_ns: u64) {
        if self.is_idle() {
            self.served_ns = self.served_ns.max(level_ns);
        }
    }
}

/// Who comes first, the least of all: whoever has least under way, then whoever was served least, then whoever
/// asked first.
type ShareRank = [u64; 3];

#[derive(Debug, Default)]
struct KeyShare {
    share: Share,
    begun: VecDeque<Ticket>,
    new: VecDeque<Ticket>,
}

impl KeyShare {
    fn first(&self) -> Ticket {
        self.begun.front().into_iter().chain(self.new.front()).min().copied().unwrap_or(Ticket::MAX)
    }

    fn rank(&self) -> ShareRank {
        [self.share.at_work as u64, self.share.served_ns, self.first()]
    }
}

#[derive(Debug, Default)]
struct TenantShare {
    share: Share,
    keys: BTreeMap<Option<KeyId>, KeyShare>,
    /// What the key that was called last had had.
    level_ns: u64,
}

impl TenantShare {
    fn rank(&self) -> ShareRank {
        let first = self.keys.values().map(KeyShare::first).min().unwrap_or(Ticket::MAX);
        [self.share.at_work as u64, self.share.served_ns, first]
    }
}

/// The queue.
#[derive(Debug)]
pub(crate) struct ShareQueue {
    places: usize,
    at_work: usize,
    tickets: Ticket,
    tenants: BTreeMap<TenantId, TenantShare>,
    /// What the tenant that was called last had had.
    level_ns: u64,
}

impl ShareQueue {
    pub(crate) const fn new(places: usize) -> Self {
        Self { places, at_work: 0, tickets: 0, tenants: BTreeMap::new(), level_ns: 0 }
    }

    /// Takes a ticket for a piece of work, which waits until [`ShareQueue::call_next`] names it.
    pub(crate) fn join(&mut self, sharer: &Sharer, stage: Stage) -> Ticket {
        self.tickets += 1;
        let tenant = self.tenants.entry(sharer.tenant.clone()).or_default();
        tenant.share.come_in(self.level_ns);
        let level_ns = tenant.level_ns;
        let key = tenant.keys.entry(sharer.key.clone()).or_default();
        key.share.come_in(level_ns);
        match stage {
            Stage::New => key.new.push_back(self.tickets),
            Stage::Begun => key.begun.push_back(self.tickets),
        }
        key.share.waiting += 1;
        tenant.share.waiting += 1;
        self.tickets
    }

    /// How many pieces of work of a key wait.
    pub(crate) fn waiting_of(&self, sharer: &Sharer) -> usize {
        let tenant = self.tenants.get(&sharer.tenant);
        tenant.and_then(|one| one.keys.get(&sharer.key)).map_or(0, |key| key.share.waiting)
    }

    /// The next piece of work for which there is a place.
    pub(crate) fn call_next(&mut self) -> Option<Ticket> {
        if self.at_work >= self.places {
            return None;
        }
        let tenants = self.tenants.values_mut().filter(|one| one.share.waiting > 0);
        let tenant = tenants.min_by_key(|one| one.rank())?;
        let keys = tenant.keys.values_mut().filter(|one| one.share.waiting > 0);
        let key = keys.min_by_key(|one| one.rank())?;
        let ticket = key.begun.pop_front().or_else(|| key.new.pop_front())?;
        tenant.level_ns = tenant.level_ns.max(key.share.served_ns);
        self.level_ns = self.level_ns.max(tenant.share.served_ns);
        for share in [&mut tenant.share, &mut key.share] {
            share.waiting -= 1;
            share.at_work += 1;
        }
        self.at_work += 1;
        Some(ticket)
    }

    /// A piece of work is done, or nobody waits for it any more; `took_ns` is what it had of a place.
    pub(crate) fn leave(&mut self, sharer: &Sharer, ticket: Ticket, took_ns: u64) {
        let Some(tenant) = self.tenants.get_mut(&sharer.tenant) else { return };
        let Some(key) = tenant.keys.get_mut(&sharer.key) else { return };
        let waited = [&mut key.begun, &mut key.new].into_iter().any(|queue| {
            let place = queue.iter().position(|one| *one == ticket);
            place.is_some_and(|at| queue.remove(at).is_some())
        });
        for share in [&mut tenant.share, &mut key.share] {
            if waited {
                share.waiting -= 1;
            } else {
                share.at_work = share.at_work.saturating_sub(1);
                share.served_ns = share.served_ns.saturating_add(took_ns);
            }
        }
        if !waited {
            self.at_work = self.at_work.saturating_sub(1);
        }
        self.forget();
    }

    /// Forgets those who neither work nor wait and whom others have caught up with.
    fn forget(&mut self) {
        if self.tenants.values().all(|one| one.share.is_idle()) {
            self.tenants.clear();
            self.level_ns = 0;
            return;
        }
        let level_ns = self.level_ns;
        self.tenants.retain(|_, tenant| {
            let level_of_keys_ns = tenant.level_ns;
            tenant.keys.retain(|_, key| key.share.counts(level_of_keys_ns));
            tenant.share.counts(level_ns)
        });
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
