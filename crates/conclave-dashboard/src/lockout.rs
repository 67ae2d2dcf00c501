//! Slows down guessing: a name with too many wrong passwords rests for a minute.
//!
//! **Invariant:** names are counted whether anybody has them or not, so a lock tells nothing.
//!
//! **Invariant:** the table has a fixed size and nothing is ever pushed out of it: names fall into
//! slots by a keyed digest, so that no flood of invented names frees a locked one. Two names that
//! share a slot share its rest.

use sha2::{Digest, Sha256};
use std::sync::{Mutex, PoisonError};

/// Wrong passwords before a name rests.
const FAILURES_MAX: u8 = 5;
/// How long it rests, and how long failures are remembered.
const REST_MS: u64 = 60_000;
const SLOTS: usize = 4_096;

#[derive(Clone, Copy, Default)]
struct Slot {
    failures: u8,
    last_ms: u64,
}

/// Counts failed sign-ins.
pub(crate) struct Lockouts {
    salt: [u8; 32],
    slots: Mutex<Box<[Slot]>>,
}

impl Lockouts {
    /// Nobody has failed yet.
    pub(crate) fn new(salt: [u8; 32]) -> Self {
        Self { salt, slots: Mutex::new(vec![Slot::default(); SLOTS].into()) }
    }

    /// Takes one try, counted as failed until [`Lockouts::forgive`]: tries made at the same time
    /// cannot slip past the limit together.
    ///
    /// # Errors
    /// When the name must rest: for how many milliseconds yet.
    pub(crate) fn take_try(&self, name: &str, now_ms: u64) -> Result<(), u64> {
        let at = self.slot_of(name);
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(slot) = slots.get_mut(at) else { return Err(REST_MS) };
        let since_ms = now_ms.saturating_sub(slot.last_ms);
        if since_ms >= REST_MS {
            slot.failures = 0;
        }
        if slot.failures >= FAILURES_MAX {
            return Err(REST_MS - since_ms);
        }
        *slot = Slot { failures: slot.failures + 1, last_ms: now_ms };
        Ok(())
    }

    /// The password was right after all.
    pub(crate) fn forgive(&self, name: &str) {
        let at = self.slot_of(name);
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get_mut(at) {
            *slot = Slot::default();
        }
    }

    fn slot_of(&self, name: &str) -> usize {
        let digest = Sha256::new().chain_update(self.salt).chain_update(name).finalize();
        usize::from(u16::from_be_bytes([digest[0], digest[1]])) % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_rest_for_a_minute() {
        let lockouts = Lockouts::new([1; 32]);
        for n in 0..5 {
            assert_eq!(lockouts.take_try("owner", n), Ok(()), "{n}");
        }
        assert_eq!(lockouts.take_try("owner", 10), Err(REST_MS - 6));
        assert_eq!(lockouts.take_try("somebody else", 10), Ok(()));
        assert_eq!(lockouts.take_try("owner", 4 + REST_MS), Ok(()), "rested");
    }

    #[test]
    fn tries_while_resting_do_not_prolong_it() {
        let lockouts = Lockouts::new([1; 32]);
        (0..5).for_each(|_| lockouts.take_try("owner", 0).unwrap());
        for now_ms in (1_000..REST_MS).step_by(1_000) {
            assert!(lockouts.take_try("owner", now_ms).is_err());
        }
        assert_eq!(lockouts.take_try("owner", REST_MS), Ok(()));
    }

    #[test]
    fn a_right_password_clears_the_count() {
        let lockouts = Lockouts::new([1; 32]);
        (0..4).for_each(|_| lockouts.take_try("owner", 0).unwrap());
        lockouts.forgive("owner");
        (0..5).for_each(|_| lockouts.take_try("owner", 1).unwrap());
        assert!(lockouts.take_try("owner", 2).is_err());
    }

    #[test]
    fn a_flood_of_names_frees_nobody() {
        let lockouts = Lockouts::new([1; 32]);
        (0..5).for_each(|_| lockouts.take_try("owner", 0).unwrap());
        for n in 0..20_000 {
            let _ = lockouts.take_try(&format!("invented {n}"), 1);
        }
        assert!(lockouts.take_try("owner", 2).is_err());
    }
}
