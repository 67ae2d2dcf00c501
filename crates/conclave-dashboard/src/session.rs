//! Who is signed in, in memory.
//!
//! **Invariant:** the id in the cookie is never stored, only its digest: finding a session takes
//! the same time whatever the first bytes of a guess are.
//!
//! **Invariant:** never more than [`SESSIONS_MAX`] sessions; the one longest unused gives way.

use crate::account::Account;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions that are kept.
const SESSIONS_MAX: usize = 1_000;
/// How long a session lives unused.
const IDLE_MS_MAX: u64 = 12 * 60 * 60 * 1_000;

type Digested = [u8; 32];

struct Session {
    account: Arc<Account>,
    used_ms: u64,
}

impl Session {
    const fn is_over(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms) >= IDLE_MS_MAX
    }
}

/// Every session.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Digested, Session>>);

fn digested(id: &str) -> Digested {
    Sha256::digest(id).into()
}

impl Sessions {
    /// Opens a session under this id.
    pub(crate) fn open(&self, id: &str, account: Account, now_ms: u64) {
        let mut all = self.all();
        all.retain(|_, session| !session.is_over(now_ms));
        if all.len() >= SESSIONS_MAX
            && let Some(oldest) = all.iter().min_by_key(|(_, s)| s.used_ms).map(|(key, _)| *key)
        {
            all.remove(&oldest);
        }
        all.insert(digested(id), Session { account: Arc::new(account), used_ms: now_ms });
    }

    /// Whose session this is; counts as use.
    pub(crate) fn enter(&self, id: &str, now_ms: u64) -> Option<Arc<Account>> {
        let mut all = self.all();
        let session = all.get_mut(&digested(id)).filter(|session| !session.is_over(now_ms))?;
        session.used_ms = session.used_ms.max(now_ms);
        Some(Arc::clone(&session.account))
    }

    /// Whose session this is; does not count as use, so that an open page cannot keep it alive.
    pub(crate) fn peek(&self, id: &str, now_ms: u64) -> Option<Arc<Account>> {
        let all = self.all();
        let session = all.get(&digested(id)).filter(|session| !session.is_over(now_ms))?;
        Some(Arc::clone(&session.account))
    }

    /// Ends a session.
    pub(crate) fn close(&self, id: &str) {
        self.all().remove(&digested(id));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Digested, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::TenantId;
    use conclave_engine::KeyRole;

    fn account(name: &str) -> Account {
        let tenant = TenantId::new("default").unwrap();
        Account { name: name.into(), tenant, role: KeyRole::Owner }
    }

    #[test]
    fn a_session_lasts_while_it_is_used() {
        let sessions = Sessions::default();
        sessions.open("a", account("ana"), 0);
        assert_eq!(sessions.enter("b", 1), None);
        assert_eq!(sessions.enter("a", IDLE_MS_MAX - 1).unwrap().name, "ana");
        assert!(sessions.enter("a", 2 * IDLE_MS_MAX - 2).is_some(), "use prolongs it");
        assert_eq!(sessions.enter("a", 3 * IDLE_MS_MAX - 2), None, "idle for 12 hours");
    }

    #[test]
    fn looking_does_not_prolong() {
        let sessions = Sessions::default();
        sessions.open("a", account("ana"), 0);
        assert!(sessions.peek("a", IDLE_MS_MAX - 1).is_some());
        assert_eq!(sessions.peek("a", IDLE_MS_MAX), None);
        assert_eq!(sessions.enter("a", IDLE_MS_MAX), None);
    }

    #[test]
    fn a_closed_session_is_gone() {
        let sessions = Sessions::default();
        sessions.open("a", account("ana"), 0);
        sessions.close("a");
        assert_eq!(sessions.enter("a", 1), None);
    }

    #[test]
    fn the_longest_unused_gives_way() {
        let sessions = Sessions::default();
        for n in 0..SESSIONS_MAX {
            sessions.open(&n.to_string(), account("ana"), n as u64);
        }
        assert!(sessions.enter("0", 5_000).is_some());
        sessions.open("one more", account("ben"), 5_001);
        assert_eq!(sessions.all().len(), SESSIONS_MAX);
        assert!(sessions.enter("0", 5_002).is_some(), "used a moment ago");
        assert_eq!(sessions.enter("1", 5_002), None, "longest unused");
    }
}
