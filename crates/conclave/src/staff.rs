//! Who works in the house: accounts that may sign in, and reviewers who can be given something to do.
//!
//! **Invariant:** accounts are read again while the house runs, so that one that was entered can sign in
//! and one that was removed is signed out within seconds.

use conclave_core::TenantId;
use conclave_dashboard::{Account, AccountBook};
use conclave_engine::{Clock, GovernError, KeyRecord, KeyRole};
use conclave_people::{Staff, StaffMember};
use conclave_store::{PersonRecord, Store};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Keys and accounts of a store.
pub struct Employed {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
}

impl Employed {
    /// Over the books of a store.
    #[must_use]
    pub fn new(store: Arc<Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// The valid keys and the accounts of a tenant that have one of these roles.
    async fn members(
        &self,
        tenant: &TenantId,
        roles: &'static [KeyRole],
    ) -> Result<Vec<StaffMember>, GovernError> {
        let store = self.store.clone();
        let tenant = tenant.clone();
        let now_ms = self.clock.now_ms();
        let listed = tokio::task::spawn_blocking(move || {
            let keys = store.key_book().list()?.into_iter().map(|key| key.record);
            let keys = keys.filter(|key| roles.contains(&key.role));
            let valid = keys.filter(|key| key.tenant == tenant && key.is_valid_at(now_ms));
            let member = |key: KeyRecord| StaffMember {
                holder: key.id.as_str().to_owned(),
                person: key.person,
            };
            let mut known: Vec<_> = valid.map(member).collect();
            let people = store.people()?.into_iter();
            let people = people.filter(|one| roles.contains(&one.role) && one.tenant == tenant);
            known.extend(people.map(|one| StaffMember {
                holder: format!("person:{}", one.name),
                person: Some(one.name),
            }));
            Ok::<_, conclave_store::StoreError>(known)
        });
        let listed = listed.await.map_err(|error| GovernError(error.to_string()))?;
        listed.map_err(|error| GovernError(error.to_string()))
    }
}

impl Staff for Employed {
    fn reviewers<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<String>, GovernError>> {
        async move {
            let members = self.members(tenant, &[KeyRole::Reviewer]).await?;
            Ok(members.into_iter().map(|member| member.holder).collect())
        }
        .boxed()
    }

    fn deciders<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<StaffMember>, GovernError>> {
        self.members(tenant, &[KeyRole::Reviewer, KeyRole::Owner]).boxed()
    }

    fn has_reviewers<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<bool, GovernError>> {
        async move { Ok(!self.deciders(tenant).await?.is_empty()) }.boxed()
    }
}

/// The accounts as the dashboard knows them.
fn accounts(people: Vec<PersonRecord>) -> impl Iterator<Item = (Account, String)> {
    people.into_iter().map(|person| {
        let PersonRecord { name, tenant, role, password_hash, .. } = person;
        (Account { name, tenant, role }, password_hash)
    })
}

/// The accounts of a store.
///
/// # Errors
/// When they cannot be read.
pub fn book(store: &Store) -> anyhow::Result<Arc<AccountBook>> {
    Ok(Arc::new(AccountBook::new(accounts(store.people()?))))
}

/// Reads the accounts again; where they cannot be read, those of the last contact hold.
pub async fn refresh(book: &AccountBook, store: &Arc<Store>) {
    let store = Arc::clone(store);
    let read = tokio::task::spawn_blocking(move || store.people_book().list()).await;
    match read {
        Ok(Ok(people)) => book.replace(accounts(people)),
        Ok(Err(error)) => tracing::debug!(%error, "accounts are those of the last contact"),
        Err(error) => tracing::debug!(%error, "accounts are those of the last contact"),
    }
}
