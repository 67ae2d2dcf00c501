//! Who may look, and the port that knows them.
//!
//! **Invariant:** an unknown name costs as much time as a wrong password.

use crate::password::verify_or_pretend;
use conclave_core::TenantId;
use conclave_engine::KeyRole;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Semaphore;

/// Passwords that are checked at once; each check takes some 19 MiB.
const CHECKS_AT_ONCE: usize = 2;

/// A person who may look at the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name they sign in with.
    pub name: String,
    /// Whose decisions they see.
    pub tenant: TenantId,
    /// What they may see.
    pub role: KeyRole,
}

impl Account {
    /// Whether the dashboard is for this role at all.
    #[must_use]
    pub const fn may_look(&self) -> bool {
        matches!(self.role, KeyRole::Owner | KeyRole::Admin | KeyRole::Auditor)
    }

    /// Whether the queue of reviews is for this role.
    #[must_use]
    pub const fn may_review(&self) -> bool {
        !matches!(self.role, KeyRole::App)
    }

    /// Whether this role may read what people and models said.
    #[must_use]
    pub const fn may_read_words(&self) -> bool {
        matches!(self.role, KeyRole::Owner)
    }
}

/// Knows names and passwords.
pub trait SignIn: Send + Sync {
    /// The account, if the password is right. Must take as long for a name nobody has.
    fn sign_in(&self, name: &str, password: &str) -> BoxFuture<'_, Option<Account>>;
    /// Whether an account is still what it was when it signed in.
    fn is_current(&self, _account: &Account) -> bool {
        true
    }
}

/// Accounts by name, with the hashes of their passwords.
type Accounts = HashMap<String, (Account, Arc<str>)>;

/// Accounts held in memory, with their password hashes: the ready-made [`SignIn`].
pub struct AccountBook {
    accounts: RwLock<Accounts>,
    checks: Arc<Semaphore>,
}

impl AccountBook {
    /// Takes accounts with the hashes that [`crate::hash_password`] made.
    #[must_use]
    pub fn new(accounts: impl IntoIterator<Item = (Account, String)>) -> Self {
        let accounts = RwLock::new(by_name(accounts));
        Self { accounts, checks: Arc::new(Semaphore::new(CHECKS_AT_ONCE)) }
    }

    /// Takes others in their place; whoever is not among them is signed out.
    pub fn replace(&self, accounts: impl IntoIterator<Item = (Account, String)>) {
        let fresh = by_name(accounts);
        *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    fn known(&self, name: &str) -> Option<(Account, Arc<str>)> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

fn by_name(accounts: impl IntoIterator<Item = (Account, String)>) -> Accounts {
    let named =
        accounts.into_iter().map(|(account, hash)| (account.name.clone(), (account, hash.into())));
    named.collect()
}

impl SignIn for AccountBook {
    fn is_current(&self, account: &Account) -> bool {
        self.known(&account.name).is_some_and(|(known, _)| known == *account)
    }

    fn sign_in(&self, name: &str, password: &str) -> BoxFuture<'_, Option<Account>> {
        let (account, hash) = self.known(name).unzip();
        let (checks, password) = (Arc::clone(&self.checks), password.to_owned());
        async move {
            let turn = checks.acquire_owned().await.ok()?;
            let check = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                verify_or_pretend(hash.as_deref(), &password)
            });
            let right = check.await.unwrap_or(false);
            account.filter(|_| right)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::password::hash_password;
    use conclave_engine::Entropy;

    struct Sevens;

    impl Entropy for Sevens {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    fn account(role: KeyRole) -> Account {
        Account { name: "owner".into(), tenant: TenantId::new("default").unwrap(), role }
    }

    #[tokio::test]
    async fn only_the_right_password_of_a_known_name_opens() {
        let hash = hash_password("correct horse", &Sevens);
        let book = AccountBook::new([(account(KeyRole::Owner), hash)]);
        let opened = book.sign_in("owner", "correct horse").await;
        assert_eq!(opened, Some(account(KeyRole::Owner)));
        for (name, password) in
            [("owner", "wrong"), ("owner", ""), ("nobody", "correct horse"), ("", "")]
        {
            assert_eq!(book.sign_in(name, password).await, None, "{name}");
        }
        assert!(book.is_current(&account(KeyRole::Owner)));
        assert!(!book.is_current(&account(KeyRole::Admin)), "another role is another account");
        book.replace([]);
        assert!(!book.is_current(&account(KeyRole::Owner)), "whoever was removed is signed out");
        assert_eq!(book.sign_in("owner", "correct horse").await, None);
    }

    #[test]
    fn roles_see_only_what_is_theirs() {
        use KeyRole::{Admin, App, Auditor, Elder, Owner, Reviewer};
        for (role, looks, reads) in [
            (Owner, true, true),
            (Admin, true, false),
            (Auditor, true, false),
            (App, false, false),
            (Reviewer, false, false),
            (Elder, false, false),
        ] {
            let account = account(role);
            assert_eq!((account.may_look(), account.may_read_words()), (looks, reads), "{role:?}");
        }
    }
}
