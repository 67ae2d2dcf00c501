//! Who is next where there is more work than places: a queue without a clock of its own.
//!
//! Of all who wait, the tenant comes next that has least work under way and was served least; within it the key of
//! which the same is true; of one key, what was begun before what is new. Whoever comes anew begins where the
//! least served of those present stands, so that nobody can save up time by staying away.
//!
//! **Invariant:** never more work is under way than there are places, and no place is free while somebody waits.
//! **Invariant:** of somebody who neither works nor waits nothing is kept.

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
    /// Who comes first: whoever has least under way, then whoever was served least.
    const fn rank(&self) -> [u64; 2] {
        [self.at_work as u64, self.served_ns]
    }

    const fn is_idle(&self) -> bool {
        self.at_work == 0 && self.waiting == 0
    }
}

#[derive(Debug, Default)]
struct KeyShare {
    share: Share,
    begun: VecDeque<Ticket>,
    new: VecDeque<Ticket>,
}

#[derive(Debug, Default)]
struct TenantShare {
    share: Share,
    keys: BTreeMap<Option<KeyId>, KeyShare>,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct ShareQueue {
    places: usize,
    at_work: usize,
    tickets: Ticket,
    tenants: BTreeMap<TenantId, TenantShare>,
}

impl ShareQueue {
    pub(crate) const fn new(places: usize) -> Self {
        Self { places, at_work: 0, tickets: 0, tenants: BTreeMap::new() }
    }

    /// Takes a ticket for a piece of work, which waits until [`ShareQueue::call_next`] names it.
    pub(crate) fn join(&mut self, sharer: &Sharer, stage: Stage) -> Ticket {
        self.tickets += 1;
        let least = least_served(self.tenants.values().map(|one| &one.share));
        let tenant = self.tenants.entry(sharer.tenant.clone()).or_insert_with(|| TenantShare {
            share: Share { served_ns: least, ..Share::default() },
            keys: BTreeMap::new(),
        });
        let least = least_served(tenant.keys.values().map(|one| &one.share));
        let key = tenant.keys.entry(sharer.key.clone()).or_insert_with(|| KeyShare {
            share: Share { served_ns: least, ..Share::default() },
            ..KeyShare::default()
        });
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
        let tenant = tenants.min_by_key(|one| one.share.rank())?;
        let keys = tenant.keys.values_mut().filter(|one| one.share.waiting > 0);
        let key = keys.min_by_key(|one| one.share.rank())?;
        let ticket = key.begun.pop_front().or_else(|| key.new.pop_front())?;
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
        if key.share.is_idle() {
            tenant.keys.remove(&sharer.key);
        }
        if tenant.share.is_idle() {
            self.tenants.remove(&sharer.tenant);
        }
    }
}

fn least_served<'a>(present: impl Iterator<Item = &'a Share>) -> u64 {
    present.map(|share| share.served_ns).min().unwrap_or(0)
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
