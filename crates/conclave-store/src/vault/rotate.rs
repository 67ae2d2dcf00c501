//! Wraps every key anew, so that what wrapped them before opens nothing.
//!
//! **Invariant:** all of it happens in one transaction. A key that cannot be unwrapped stops it, and
//! nothing is changed.
//!
//! **Invariant:** nothing here knows a database; how keys are wrapped is the same in all of them.

use super::book::{BY_ROOT, LOOKUP, NAME, subject_purpose, tenant_purpose};
use super::tables::StoredKey;
use super::wrap::{Secret, draw, keyed, unwrap, unwrap_secret, wrap};
use conclave_engine::Entropy;
use conclave_ledger::SealingKey;
use std::sync::Arc;

/// What a root key is wrapped for when it is handed to the replicas that still have the one before.
const ROOT: &[u8] = b"conclave.root.v1";

/// Everything new of a rotation.
pub(crate) struct Rotation<'a> {
    pub(super) root: &'a Secret,
    pub(super) lookup: Secret,
    pub(super) entropy: Arc<dyn Entropy>,
}

/// The keys of a tenant in a rotation.
pub(crate) struct TenantChange {
    old: Option<Secret>,
    fresh: Secret,
    /// The epoch of the new one.
    pub(crate) epoch: i64,
    /// The new one, wrapped by the new root key.
    pub(crate) wrapped: Vec<u8>,
}

/// A person's key in a rotation.
pub(crate) struct PersonChange {
    pub(crate) wrapped: Vec<u8>,
    pub(crate) lookup: Option<[u8; 32]>,
}

impl Rotation<'_> {
    /// The secret of the look-up, wrapped by the new root key.
    pub(crate) fn wrapped_lookup(&self) -> Vec<u8> {
        wrap(self.root, LOOKUP, self.lookup.as_slice(), &*self.entropy)
    }

    /// The new root key for those who have the old one; `None` when it stays the same.
    pub(crate) fn step_from(&self, old: &Secret) -> Option<Vec<u8>> {
        let is_new = **old != **self.root;
        is_new.then(|| wrap(old, ROOT, self.root.as_slice(), &*self.entropy))
    }

    /// A new key for a tenant; `stored` is the one it has, with its epoch.
    ///
    /// # Errors
    /// When that one does not open.
    pub(crate) fn tenant(
        &self,
        old_root: &Secret,
        tenant: u64,
        stored: Option<(i64, &[u8])>,
    ) -> Result<TenantChange, String> {
        let old = match stored {
            Some((epoch, wrapped)) => {
                let opened = unwrap_secret(old_root, &tenant_purpose(tenant, epoch), wrapped);
                Some(opened.ok_or_else(|| unopened("tenant"))?)
            }
            None => None,
        };
        let (epoch, fresh) = (stored.map_or(0, |(epoch, _)| epoch) + 1, draw(&*self.entropy));
        let purpose = tenant_purpose(tenant, epoch);
        let wrapped = wrap(self.root, &purpose, fresh.as_slice(), &*self.entropy);
        Ok(TenantChange { old, fresh, epoch, wrapped })
    }

    /// A person's key under the new key of the tenant.
    ///
    /// # Errors
    /// When it does not open.
    pub(crate) fn person(
        &self,
        old_root: &Secret,
        tenant: &TenantChange,
        key: &StoredKey,
        name: Option<&[u8]>,
    ) -> Result<PersonChange, String> {
        let by = if key.epoch == BY_ROOT { Some(old_root) } else { tenant.old.as_ref() };
        self.rewrap(by, &tenant.fresh, key, name)
    }

    /// A key that waits for its database, under the new root key alone: which key its tenant has by
    /// now is not known here.
    ///
    /// # Errors
    /// When it does not open.
    pub(crate) fn waiting(
        &self,
        old_root: &Secret,
        stored_tenant: Option<(i64, &[u8])>,
        key: &StoredKey,
        name: Option<&[u8]>,
    ) -> Result<PersonChange, String> {
        if key.epoch == BY_ROOT {
            return self.rewrap(Some(old_root), self.root, key, name);
        }
        let tenant = stored_tenant.filter(|(epoch, _)| *epoch == key.epoch);
        let tenant = tenant.and_then(|(epoch, wrapped)| {
            unwrap_secret(old_root, &tenant_purpose(key.tenant, epoch), wrapped)
        });
        self.rewrap(tenant.as_ref(), self.root, key, name)
    }

    fn rewrap(
        &self,
        by: Option<&Secret>,
        fresh: &Secret,
        key: &StoredKey,
        name: Option<&[u8]>,
    ) -> Result<PersonChange, String> {
        let purpose = subject_purpose(key.tenant, &key.id);
        let secret = by.and_then(|by| unwrap_secret(by, &purpose, &key.wrapped));
        let secret = secret.ok_or_else(|| unopened("person"))?;
        let lookup = self.lookup_of(key.tenant, &SealingKey::new(key.id, &secret), name);
        let wrapped = wrap(fresh, &purpose, secret.as_slice(), &*self.entropy);
        Ok(PersonChange { wrapped, lookup })
    }

    fn lookup_of(&self, tenant: u64, key: &SealingKey, name: Option<&[u8]>) -> Option<[u8; 32]> {
        let name = unwrap(&key.derived(NAME), NAME, name?)?;
        Some(keyed(&self.lookup, &[&tenant.to_be_bytes(), &name]))
    }
}

/// Follows a root key through the steps of the rotations since, until it opens the look-up.
pub(super) fn follow(root: Secret, steps: &[Vec<u8>], wrapped_lookup: &[u8]) -> Secret {
    let mut root = root;
    for step in steps {
        if unwrap_secret(&root, LOOKUP, wrapped_lookup).is_some() {
            break;
        }
        root = unwrap_secret(&root, ROOT, step).unwrap_or(root);
    }
    root
}

/// An error rolls the transaction back; this one says why.
fn unopened(whose: &str) -> String {
    format!("the key of a {whose} does not open")
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::Zeroizing;

    struct Sevens;
    impl Entropy for Sevens {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    fn rotation(root: &Secret) -> Rotation<'_> {
        Rotation { root, lookup: Zeroizing::new([9; 32]), entropy: Arc::new(Sevens) }
    }

    #[test]
    fn a_root_key_is_followed_over_several_steps_and_never_backwards() {
        let roots: Vec<Secret> = (1..=4).map(|n| Zeroizing::new([n; 32])).collect();
        let step = |at: usize| rotation(&roots[at + 1]).step_from(&roots[at]).unwrap();
        let steps: Vec<_> = (0..3).map(step).collect();
        let lookup = rotation(&roots[3]).wrapped_lookup();
        for root in &roots {
            assert_eq!(*follow(root.clone(), &steps, &lookup), [4; 32]);
        }
        assert_eq!(*follow(Zeroizing::new([8; 32]), &steps, &lookup), [8; 32], "a stranger");
        let earlier = rotation(&roots[1]).wrapped_lookup();
        assert_ne!(
            *follow(roots[3].clone(), &steps, &earlier),
            [2; 32],
            "today's key goes no way back"
        );
        assert!(rotation(&roots[0]).step_from(&roots[0]).is_none(), "the same key");
    }

    #[test]
    fn a_key_is_wrapped_anew_whatever_wrapped_it() {
        let (old, new): (Secret, Secret) = (Zeroizing::new([1; 32]), Zeroizing::new([2; 32]));
        let (secret, id) = ([5; 32], [6; 16]);
        let key = |by: &Secret, epoch| StoredKey {
            id,
            tenant: 3,
            epoch,
            wrapped: wrap(by, &subject_purpose(3, &id), &secret, &Sevens),
        };
        let next = rotation(&new);
        let kek: Secret = Zeroizing::new([4; 32]);
        let stored = wrap(&old, &tenant_purpose(3, 1), kek.as_slice(), &Sevens);
        let tenant = next.tenant(&old, 3, Some((1, &stored))).unwrap();
        assert_eq!(tenant.epoch, 2);
        for key in [key(&kek, 1), key(&old, BY_ROOT)] {
            let change = next.person(&old, &tenant, &key, None).unwrap();
            let opened = unwrap_secret(&tenant.fresh, &subject_purpose(3, &id), &change.wrapped);
            assert_eq!(opened.as_deref(), Some(&secret));
            let change = next.waiting(&old, Some((1, &stored)), &key, None).unwrap();
            let opened = unwrap_secret(&new, &subject_purpose(3, &id), &change.wrapped);
            assert_eq!(opened.as_deref(), Some(&secret));
        }
        assert!(next.person(&old, &tenant, &key(&new, 1), None).is_err());
        assert!(next.waiting(&old, None, &key(&kek, 1), None).is_err());
        assert!(next.tenant(&new, 3, Some((1, &stored))).is_err());
    }
}
