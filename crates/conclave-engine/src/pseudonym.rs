//! Names that stand in the ledger instead of people.
//!
//! **Invariant:** without the key nobody can tell, or test, whom a pseudonym means.

use crate::memory::Pseudonyms;
use crate::settings::Settings;
use crate::turn::Turn;
use conclave_core::{TenantId, UserId};
use conclave_ledger::tenant_number;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The pseudonym of the person; anonymous turns have none.
#[must_use]
pub fn subject_of(settings: &Settings, turn: &Turn) -> Option<[u8; 16]> {
    Some(subject(settings, &turn.tenant, turn.user.as_ref()?))
}

/// The pseudonym of a person of a tenant.
pub(crate) fn subject(settings: &Settings, tenant: &TenantId, user: &UserId) -> [u8; 16] {
    pseudonym(&settings.pseudonym_key, b"subject", tenant.as_str(), user.as_str())
}

/// The pseudonym of the conversation.
#[must_use]
pub fn session_of(settings: &Settings, turn: &Turn) -> [u8; 16] {
    pseudonym(&settings.pseudonym_key, b"session", turn.tenant.as_str(), turn.session.as_str())
}

/// Everyone in a turn, as the ledger knows them.
pub(crate) fn pseudonyms_of(settings: &Settings, turn: &Turn) -> Pseudonyms {
    Pseudonyms {
        tenant: tenant_number(turn.tenant.as_str()),
        session: session_of(settings, turn),
        subject: subject_of(settings, turn),
    }
}

/// The same conversation is sensed and answered the same way.
pub(crate) fn seed_of(turn: &Turn) -> u64 {
    let mut hash = Sha256::new();
    hash.update(turn.session.as_str());
    hash.update(turn.conversation.len().to_be_bytes());
    let digest = hash.finalize();
    digest.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
}

pub(crate) fn pseudonym(key: &[u8; 32], what: &[u8], tenant: &str, name: &str) -> [u8; 16] {
    // HMAC takes a key of any length, so this cannot fail; an all-zero digest would only merge people.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 16];
    };
    mac.update(what);
    // The length keeps ("ab", "c") and ("a", "bc") apart.
    mac.update(&tenant.len().to_be_bytes());
    mac.update(tenant.as_bytes());
    mac.update(name.as_bytes());
    let digest = mac.finalize().into_bytes();
    let mut short = [0; 16];
    short.copy_from_slice(&digest[..16]);
    short
}
