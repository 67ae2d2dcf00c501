//! Deleting what is due.
//!
//! **Invariant:** words are due when their time and the days of their tenant have passed, not a
//! millisecond earlier. Whoever is on hold is left alone, and a clock that jumped makes nothing due.

use super::{Due, Forgetter, LetGo};
use crate::error::StoreError;
use crate::vault::KeyId;
use conclave_core::{TenantId, UserId};
use conclave_failpoint as failpoint;
use conclave_ledger::{Draft, Kind, Purge, tenant_number};
use std::collections::{BTreeSet, HashMap};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

const DAY_MS: u64 = 24 * 3600 * 1000;
/// So long it is waited for the drainer before it is looked again a second later.
const DRAIN_PATIENCE: Duration = Duration::from_millis(500);
/// How many entries one look makes for a tenant; the rest is left for the next one.
const ENTRIES_MAX: u32 = 20;

/// What a tenant wants kept, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantRetention {
    /// Days after which words are deleted; 0 keeps them, absent takes the default.
    pub days: Option<u32>,
    /// Nothing of this tenant is deleted.
    pub hold: bool,
    /// Nothing of these people is deleted.
    pub held_users: Vec<UserId>,
}

/// What everybody wants kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionRules {
    /// Days for tenants that say nothing; 0 keeps everything.
    pub days: u32,
    /// By tenant.
    pub tenants: HashMap<TenantId, TenantRetention>,
}

/// A tenant and its people on hold.
type Held = Option<(TenantId, Vec<UserId>)>;

#[derive(Default)]
struct ByNumber {
    days: u32,
    tenants: HashMap<u64, (TenantId, TenantRetention)>,
}

/// The rules in force.
#[derive(Default)]
pub(crate) struct Retention(RwLock<ByNumber>);

impl Retention {
    pub(crate) fn set(&self, rules: RetentionRules) {
        let numbered = |(name, rule): (TenantId, _)| (tenant_number(name.as_str()), (name, rule));
        let tenants = rules.tenants.into_iter().map(numbered).collect();
        let rules = ByNumber { days: rules.days, tenants };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// What applies to a tenant: how long words are kept, if not for ever, and who is on hold.
    fn of(&self, tenant: u64) -> Option<(u64, Held)> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let own = rules.tenants.get(&tenant);
        let days = own.and_then(|(_, own)| own.days).unwrap_or(rules.days);
        let held = own.map(|(name, own)| (name.clone(), own.held_users.clone()));
        let kept = days == 0 || own.is_some_and(|(_, own)| own.hold);
        (!kept).then(|| (u64::from(days) * DAY_MS, held))
    }

    /// Until when the words of a decision are kept, by the rules of today.
    pub(crate) fn until(&self, tenant: u64, timestamp_ms: u64) -> Option<u64> {
        let (kept_ms, _) = self.of(tenant)?;
        Some(timestamp_ms.saturating_add(kept_ms))
    }
}

impl Forgetter {
    /// Deletes everything that is due now; says how many bodies.
    pub(crate) fn purge_due(&self) -> Result<u64, StoreError> {
        let _one = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.words.alone(&mut || self.purge_all())
    }

    fn purge_all(&self) -> Result<u64, StoreError> {
        let now_ms = self.watch.now_ms().map_err(StoreError::Unsettled)?;
        self.drained()?;
        let tenants = self.words.tenants()?;
        let mut purged = 0;
        for tenant in tenants {
            let Some((kept_ms, held)) = self.retention.of(tenant) else { continue };
            let Some(until_ms) = now_ms.checked_sub(kept_ms) else { continue };
            purged += self.purge_tenant(tenant, until_ms, &self.pseudonyms_of(held)?)?;
        }
        if purged > 0 {
            self.words.scrub()?;
        }
        Ok(purged)
    }

    fn pseudonyms_of(&self, held: Held) -> Result<BTreeSet<KeyId>, StoreError> {
        let Some((tenant, users)) = held else { return Ok(BTreeSet::new()) };
        let mut all = BTreeSet::new();
        for user in users {
            all.extend(self.vault.find_all(&tenant, user.as_str())?);
        }
        Ok(all)
    }

    fn purge_tenant(
        &self,
        tenant: u64,
        until_ms: u64,
        held: &BTreeSet<KeyId>,
    ) -> Result<u64, StoreError> {
        let mut purged = 0;
        for _ in 0..ENTRIES_MAX {
            self.drained()?;
            let due = self.words.due(tenant, until_ms, held)?;
            let Some(Due { from_ms, until_ms, count }) = due else { break };
            let purge = Purge { from_ms, until_ms, count, held: held.clone() };
            let stamped = self.stamps.draft(Kind::RetentionPurge);
            failpoint::reach("purge.chosen");
            self.append(Draft { tenant, public: purge.to_public(), ..stamped })?;
            failpoint::reach("purge.entered");
            purged += count;
        }
        self.drop_idle(tenant, until_ms)?;
        // A day whose last millisecond is due has nothing left that its key could open.
        let days = (until_ms + 1) / DAY_MS;
        if let Some(day) = days.checked_sub(1) {
            let nobody = self.vault.book().tables().nobody_until(tenant, day)?;
            self.delete_keys(&nobody)?;
        }
        Ok(purged)
    }

    fn delete_keys(&self, keys: &[KeyId]) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.vault.bury(keys);
        self.vault.book().tables().drop_keys(keys)?;
        // Somebody may have read one between the two.
        self.vault.bury(keys);
        Ok(())
    }

    /// Lets go of keys that are to be deleted because nothing is left that they open, and says so when
    /// everything that was sealed with them here is in the log.
    pub(crate) fn let_go_of_idle(&self) -> Result<(), StoreError> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, pushed)) = idle.pending {
            if self.ledger.progress.wait_drained(pushed, DRAIN_PATIENCE).is_err() {
                return Ok(());
            }
            self.vault.book().tables().acknowledge_idle(last)?;
            *idle = LetGo { seen: last, pending: None };
        }
        let last = self.vault.let_go_of_idle(idle.seen)?;
        if last > idle.seen {
            idle.pending = Some((last, self.ledger.intake.hurry()));
        }
        Ok(())
    }

    /// Deletes the keys of people of whom nothing is left to open. Whoever is in memory may be
    /// speaking right now: they are let go, and looked at again the next time.
    fn drop_idle(&self, tenant: u64, until_ms: u64) -> Result<(), StoreError> {
        if self.words.is_shared() {
            let now_ms = self.clock.now_ms();
            let deleted = self.words.drop_idle_shared(tenant, until_ms, now_ms)?;
            self.vault.bury(&deleted);
            return Ok(());
        }
        let mut after = None;
        loop {
            let page = self.vault.book().tables().made_until(tenant, until_ms, after)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(*last);
            let mut idle = Vec::new();
            for subject in page {
                let spoke = self.words.has_words(tenant, subject)?;
                if !spoke && !self.vault.let_go(subject) {
                    idle.push(subject);
                }
            }
            self.delete_keys(&idle)?;
        }
    }
}
