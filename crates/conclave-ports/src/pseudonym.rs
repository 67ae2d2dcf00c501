//! Names that stand in the ledger instead of people.
//!
//! **Invariant:** without the key nobody can tell, or test, whom a pseudonym means.

use crate::subjects::{ErasureReceipt, Pseudonyms, Subjects, SubjectsError};
use conclave_core::{SessionId, TenantId, UserId};
use conclave_ledger::tenant_number;
use futures_util::future::{BoxFuture, FutureExt, ready};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Names people by a keyed hash of their id: nothing is stored, and nothing can be forgotten. For tools
/// and tests; a data directory has random names.
pub struct KeyedSubjects(pub [u8; 32]);

impl KeyedSubjects {
    fn subject(&self, tenant: &TenantId, user: &UserId) -> [u8; 16] {
        pseudonym(&self.0, b"subject", tenant.as_str(), user.as_str())
    }
}

impl Subjects for KeyedSubjects {
    fn name(
        &self,
        tenant: &TenantId,
        user: Option<&UserId>,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Pseudonyms, SubjectsError>> {
        let named = Pseudonyms {
            tenant: tenant_number(tenant.as_str()),
            session: pseudonym(&self.0, b"session", tenant.as_str(), session.as_str()),
            subject: user.map(|user| self.subject(tenant, user)),
        };
        ready(Ok(named)).boxed()
    }

    fn find(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Option<[u8; 16]>, SubjectsError>> {
        ready(Ok(Some(self.subject(tenant, user)))).boxed()
    }

    fn nobody(&self, tenant: &TenantId) -> BoxFuture<'_, Result<[u8; 16], SubjectsError>> {
        ready(Ok(pseudonym(&self.0, b"nobody", tenant.as_str(), ""))).boxed()
    }

    fn is_current(&self, _: [u8; 16]) -> bool {
        true
    }

    fn erase(
        &self,
        _: &TenantId,
        _: &UserId,
    ) -> BoxFuture<'_, Result<Option<ErasureReceipt>, SubjectsError>> {
        let why = "names that are only computed cannot be given up";
        ready(Err(SubjectsError(why.to_owned()))).boxed()
    }
}

/// A keyed hash that names somebody; without the key nobody can tell, or test, whom.
#[must_use]
pub fn pseudonym(key: &[u8; 32], what: &[u8], tenant: &str, name: &str) -> [u8; 16] {
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
