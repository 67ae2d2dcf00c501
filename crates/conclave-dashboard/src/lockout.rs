//! Slows down guessing: whoever gives too many wrong passwords rests for a minute.
//!
//! Tries are counted three times: for a name from one address, for an address, and for a name from
//! everywhere. The last is wide, so that no stranger keeps the owner of a name outside by guessing.
//!
//! **Invariant:** names are counted whether anybody has them or not, so a lock tells nothing.
//!
//! **Invariant:** the tables have a fixed size and nothing is ever pushed out of them: names and addresses
//! fall into slots by a keyed digest, so that no flood of invented ones frees a locked one. Two that share a
//! slot share its rest. One address takes so few tries that it cannot lock the slots of others.

use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// Wrong passwords for one name from one address before they rest.
const FAILURES_MAX: u8 = 5;
/// Wrong passwords from one address, whatever the name.
const FAILURES_EACH_MAX: u8 = 20;
/// Wrong passwords for one name, wherever from.
const FAILURES_OVERALL_MAX: u8 = 100;
/// How long it rests, and how long failures are remembered.
const REST_MS: u64 = 60_000;
const SLOTS: usize = 4_096;

/// What tries are counted by, and how many each allows.
const COUNTS: [u8; 3] = [FAILURES_MAX, FAILURES_EACH_MAX, FAILURES_OVERALL_MAX];

#[derive(Clone, Copy, Default)]
struct Slot {
    failures: u8,
    last_ms: u64,
}

impl Slot {
    /// Failures that are still remembered, or how long it must rest.
    fn standing(self, most: u8, now_ms: u64) -> Result<u8, u64> {
        let since_ms = now_ms.saturating_sub(self.last_ms);
        match self.failures {
            _ if since_ms >= REST_MS => Ok(0),
            failures if failures >= most => Err(REST_MS - since_ms),
            failures => Ok(failures),
        }
    }
}

/// Counts failed sign-ins.
pub(crate) struct Lockouts {
    salt: [u8; 32],
    slots: Mutex<[Box<[Slot]>; 3]>,
}

impl Lockouts {
    /// Nobody has failed yet.
    pub(crate) fn new(salt: [u8; 32]) -> Self {
        let table = || vec![Slot::default(); SLOTS].into();
        Self { salt, slots: Mutex::new([table(), table(), table()]) }
    }

    /// Takes one try, counted as failed until [`Lockouts::forgive`]: tries made at the same time
    /// cannot slip past the limit together. A try that must rest counts nowhere.
    ///
    /// # Errors
    /// When the name or the address must rest: for how many milliseconds yet.
    pub(crate) fn take_try(&self, name: &str, from: IpAddr, now_ms: u64) -> Result<(), u64> {
        let places = self.places(name, from);
        let mut tables = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failures = [0; 3];
        for (at, place) in places.into_iter().enumerate() {
            let slot = tables[at].get(place).copied().unwrap_or_default();
            failures[at] = slot.standing(COUNTS[at], now_ms)?;
        }
        for (at, place) in places.into_iter().enumerate() {
            if let Some(slot) = tables[at].get_mut(place) {
                *slot = Slot { failures: failures[at] + 1, last_ms: now_ms };
            }
        }
        Ok(())
    }

    /// The password was right after all.
    pub(crate) fn forgive(&self, name: &str, from: IpAddr) {
        let places = self.places(name, from);
        let mut tables = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        for (table, place) in tables.iter_mut().zip(places) {
            if let Some(slot) = table.get_mut(place) {
                *slot = Slot::default();
            }
        }
    }

    /// Where a try is counted: for the name from the address, for the address, for the name.
    fn places(&self, name: &str, from: IpAddr) -> [usize; 3] {
        let from = match from.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            // Whoever has one address of a network has all that begin with the same 64 bits.
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64),
        };
        let from = from.octets();
        [
            self.place(&[&from, name.as_bytes()]),
            self.place(&[&from]),
            self.place(&[name.as_bytes()]),
        ]
    }

    fn place(&self, parts: &[&[u8]]) -> usize {
        let digest = Sha256::new().chain_update(self.salt);
        let digest = parts.iter().fold(digest, Digest::chain_update).finalize();
        usize::from(u16::from_be_bytes([digest[0], digest[1]])) % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number))
    }

    #[test]
    fn five_failures_rest_for_a_minute() {
        let lockouts = Lockouts::new([1; 32]);
        for n in 0..5 {
            assert_eq!(lockouts.take_try("owner", HERE, n), Ok(()), "{n}");
        }
        assert_eq!(lockouts.take_try("owner", HERE, 10), Err(REST_MS - 6));
        assert_eq!(lockouts.take_try("somebody else", HERE, 10), Ok(()));
        assert_eq!(lockouts.take_try("owner", HERE, 4 + REST_MS), Ok(()), "rested");
    }

    #[test]
    fn tries_while_resting_do_not_prolong_it() {
        let lockouts = Lockouts::new([1; 32]);
        (0..5).for_each(|_| lockouts.take_try("owner", HERE, 0).unwrap());
        for now_ms in (1_000..REST_MS).step_by(1_000) {
            assert!(lockouts.take_try("owner", HERE, now_ms).is_err());
        }
        assert_eq!(lockouts.take_try("owner", HERE, REST_MS), Ok(()));
    }

    #[test]
    fn a_right_password_clears_the_count() {
        let lockouts = Lockouts::new([1; 32]);
        (0..4).for_each(|_| lockouts.take_try("owner", HERE, 0).unwrap());
        lockouts.forgive("owner", HERE);
        (0..5).for_each(|_| lockouts.take_try("owner", HERE, 1).unwrap());
        assert!(lockouts.take_try("owner", HERE, 2).is_err());
    }

    #[test]
    fn a_flood_of_names_frees_nobody_and_locks_nobody_elsewhere() {
        let lockouts = Lockouts::new([1; 32]);
        (0..5).for_each(|_| lockouts.take_try("owner", HERE, 0).unwrap());
        let taken =
            (0..20_000).filter(|n| lockouts.take_try(&format!("name {n}"), HERE, 1).is_ok());
        assert_eq!(taken.count(), 15, "an address has twenty tries, whatever it calls itself");
        assert!(lockouts.take_try("owner", HERE, 2).is_err());
        assert_eq!(lockouts.take_try("owner", address(1), 2), Ok(()));
    }

    #[test]
    fn guessing_from_elsewhere_keeps_nobody_outside() {
        let lockouts = Lockouts::new([1; 32]);
        for minute in 0..60 {
            for n in 0..20 {
                let _ = lockouts.take_try("owner", address(1), minute * 60_000 + n * 3_000);
            }
            assert_eq!(lockouts.take_try("owner", HERE, minute * 60_000 + 59_000), Ok(()));
            lockouts.forgive("owner", HERE);
        }
    }

    #[test]
    fn guessing_from_everywhere_has_an_end() {
        let lockouts = Lockouts::new([1; 32]);
        let tries = (0..10_000).filter(|n| lockouts.take_try("owner", address(*n), 0).is_ok());
        assert!(tries.count() <= usize::from(FAILURES_OVERALL_MAX));
    }
}
