//! Ballots that were cast before on exactly the same case.
//!
//! **Invariant:** the key is a digest of everything the verifiers see, with tenant, policy and directives: no
//! verdict crosses a tenant or outlives a policy.
//! **Invariant:** only whole panels are kept: a verifier that failed is asked again, excused or not.
//! **Invariant:** bounded, and holds no words of a conversation: a digest, and the ballots.

use conclave_core::{Ballot, Candidate, Cast, Message, MicroUsd, Scrutiny, TenantId, TurnContext};
use conclave_detect::Reading;
use conclave_verifiers::ToolDescription;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many verdicts a generation holds; two generations are kept. Each takes some two thousand bytes, and who
/// asks the same again mostly does so soon.
const GENERATION_MAX: usize = 1024;

/// Everything a verdict rests on.
#[derive(Serialize)]
pub(crate) struct Grounds<'a> {
    pub tenant: &'a TenantId,
    pub policy: &'a [u8; 32],
    pub policy_version: u64,
    pub directives: &'a [u8; 32],
    pub scrutiny: Scrutiny,
    pub conversation: &'a [Message],
    pub context: &'a TurnContext,
    pub input: &'a Reading,
    #[serde(serialize_with = "without_usage")]
    pub candidate: &'a Candidate,
    pub tools: &'a [ToolDescription],
    /// Whether fewer were asked.
    pub established: bool,
}

/// What a candidate cost is no part of what it says.
fn without_usage<S: serde::Serializer>(one: &&Candidate, to: S) -> Result<S::Ok, S::Error> {
    (&one.text, &one.tool_calls, one.finish).serialize(to)
}

/// A digest of the grounds of a verdict.
pub(crate) type Key = [u8; 32];

impl Grounds<'_> {
    /// Their digest; `None` for grounds that cannot be written, which are then judged afresh.
    pub(crate) fn key(&self) -> Option<Key> {
        let written = serde_json::to_vec(self).ok()?;
        Some(Sha256::digest(written).into())
    }
}

/// The verdicts of a while.
#[derive(Default)]
pub struct Verdicts {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    young: HashMap<Key, Arc<[Ballot]>>,
    old: HashMap<Key, Arc<[Ballot]>>,
}

impl Verdicts {
    /// The ballots that were cast on these grounds, if they are still known; they took no time
    /// and cost nothing now.
    pub(crate) fn known(&self, key: &Key) -> Option<Vec<Ballot>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let ballots = held.young.get(key).or_else(|| held.old.get(key)).cloned();
        drop(held);
        let free = MicroUsd(0);
        let at_once = |ballot: &Ballot| Ballot { latency_ms: 0, cost: free, ..ballot.clone() };
        ballots.map(|ballots| ballots.iter().map(at_once).collect())
    }

    /// Keeps what a whole panel said; one that lacks a ballot is not kept.
    pub(crate) fn keep(&self, key: Key, ballots: &[Ballot]) {
        let is_missing =
            |ballot: &Ballot| matches!(ballot.cast, Cast::Abstained(_) | Cast::Excused(_));
        if ballots.iter().any(is_missing) {
            return;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.young.len() >= GENERATION_MAX {
            held.old = std::mem::take(&mut held.young);
        }
        held.young.insert(key, ballots.into());
    }

    /// Forgets every verdict: words of a remote verifier may tell of somebody who wants to be forgotten.
    pub fn clear(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Held::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{Abstention, Mode, Priority, Role, Seat};

    fn key_of(tenant: &str, policy: u8, policy_version: u64, text: &str) -> Key {
        let grounds = Grounds {
            tenant: &TenantId::new(tenant).unwrap(),
            policy: &[policy; 32],
            policy_version,
            directives: &[0; 32],
            scrutiny: Scrutiny::Normal,
            conversation: &[Message::text(Role::User, "hello")],
            context: &TurnContext::default(),
            input: &Reading::empty(Mode::Normal),
            candidate: &Candidate { text: text.into(), ..Candidate::default() },
            tools: &[],
            established: false,
        };
        grounds.key().unwrap()
    }

    #[test]
    fn tenant_policy_and_words_are_part_of_the_key() {
        let key = key_of("a", 1, 0, "hi");
        assert_eq!(key, key_of("a", 1, 0, "hi"));
        for other in [
            key_of("b", 1, 0, "hi"),
            key_of("a", 2, 0, "hi"),
            key_of("a", 1, 1, "hi"),
            key_of("a", 1, 0, "ho"),
        ] {
            assert_ne!(key, other);
        }
    }

    #[test]
    fn a_panel_with_somebody_missing_is_asked_again() {
        let verdicts = Verdicts::default();
        let seat = Seat::new("crisis", Priority::High);
        let late = Ballot::bare(seat, Cast::Abstained(Abstention::Late));
        verdicts.keep([1; 32], &[late]);
        assert_eq!(verdicts.known(&[1; 32]), None);
    }

    #[test]
    fn it_is_bounded_and_can_forget() {
        let verdicts = Verdicts::default();
        for number in 0..3 * u32::try_from(GENERATION_MAX).unwrap() {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&number.to_be_bytes());
            verdicts.keep(key, &[]);
        }
        let held = verdicts.held.lock().unwrap();
        assert!(held.young.len() + held.old.len() <= 2 * GENERATION_MAX);
        drop(held);
        verdicts.clear();
        assert!(verdicts.held.lock().unwrap().young.is_empty());
    }
}
