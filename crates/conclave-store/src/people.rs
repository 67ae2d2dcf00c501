//! People who may sign in, with the hashes of their passwords.
//!
//! **Invariant:** a password is never stored or logged; only the slow hash of it comes here.

use crate::error::StoreError;
use crate::keys::{BookTables, Note, Pepper, open_tables};
use crate::postgres::DatabaseUrl;
use conclave_core::TenantId;
use conclave_engine::{Entropy, KeyRole};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A person who may sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRecord {
    /// The name they sign in with.
    pub name: String,
    /// Whose decisions they see.
    pub tenant: TenantId,
    /// What they may do.
    pub role: KeyRole,
    /// The slow hash of their password.
    pub password_hash: String,
    /// When they were entered.
    pub created_ms: u64,
}

/// Enters and lists people; any process may, while a server runs.
pub struct PeopleBook {
    tables: Mutex<Box<dyn BookTables>>,
}

impl std::fmt::Debug for PeopleBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeopleBook").finish_non_exhaustive()
    }
}

impl PeopleBook {
    /// Opens the book of a data directory, or of the database it belongs to.
    ///
    /// # Errors
    /// When the database cannot be opened, or has another pepper.
    pub fn open(
        dir: &Path,
        database: Option<&DatabaseUrl>,
        pepper: &Pepper,
    ) -> Result<Self, StoreError> {
        Ok(Self::over(open_tables(dir, database, pepper)?))
    }

    pub(crate) fn over(tables: Box<dyn BookTables>) -> Self {
        Self { tables: Mutex::new(tables) }
    }

    /// Enters a person, or gives a known one a new password and role.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn put(&self, person: &PersonRecord) -> Result<(), StoreError> {
        self.lock().put_person(person, false).map(|_| ())
    }

    /// Enters a person if there is nobody yet; says whether it did.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn put_first(&self, person: &PersonRecord) -> Result<bool, StoreError> {
        self.lock().put_person(person, true)
    }

    /// Enters a person, or gives a known one a new password and role; leaves a note that becomes an
    /// entry of the ledger. Says whether they are new.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn enter(
        &self,
        person: &PersonRecord,
        now_ms: u64,
        entropy: &dyn Entropy,
    ) -> Result<bool, StoreError> {
        let mut tables = self.lock();
        let known = tables.people()?.iter().any(|one| one.name == person.name);
        let what = if known { "person.changed" } else { "person.entered" };
        let note = Note::of_person(what, person, now_ms, entropy);
        tables.enter_person(person, &note)?;
        Ok(!known)
    }

    /// Removes a person and leaves a note that becomes an entry of the ledger; says whether there was
    /// one.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn remove(
        &self,
        name: &str,
        now_ms: u64,
        entropy: &dyn Entropy,
    ) -> Result<bool, StoreError> {
        let mut tables = self.lock();
        let known = tables.people()?.into_iter().find(|one| one.name == name);
        let Some(person) = known else { return Ok(false) };
        let note = Note::of_person("person.removed", &person, now_ms, entropy);
        tables.remove_person(name, &note)
    }

    /// Everyone, by name.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn list(&self) -> Result<Vec<PersonRecord>, StoreError> {
        self.lock().people()
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn BookTables>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A row that makes no sense lets nobody in and stops nobody else.
pub(crate) fn person(
    name: String,
    tenant: String,
    role: &str,
    password_hash: String,
    created_ms: i64,
) -> Option<PersonRecord> {
    let (Ok(tenant), Some(role)) = (TenantId::new(tenant), KeyRole::parse(role)) else {
        tracing::warn!("a person with an unknown role or an invalid tenant is ignored");
        return None;
    };
    Some(PersonRecord { name, tenant, role, password_hash, created_ms: created_ms.cast_unsigned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::NoteTable;

    macro_rules! always {
        ($($name:ident: $byte:literal),*) => {$(
            struct $name;
            impl Entropy for $name {
                fn fill(&self, bytes: &mut [u8]) {
                    bytes.fill($byte);
                }
            }
        )*};
    }
    always!(Sevens: 7, Eights: 8, Nines: 9);

    #[test]
    fn people_are_entered_once_and_changed_after() {
        let dir = tempfile::tempdir().unwrap();
        let open =
            || PeopleBook::over(Box::new(crate::keys::SqliteBooks::open(dir.path()).unwrap()));
        let book = open();
        assert_eq!(book.list().unwrap(), []);
        let mut person = PersonRecord {
            name: "owner".into(),
            tenant: TenantId::new("default").unwrap(),
            role: KeyRole::Owner,
            password_hash: "hash-1".into(),
            created_ms: 7,
        };
        book.put(&person).unwrap();
        person.password_hash = "hash-2".into();
        book.put(&person).unwrap();
        let other = PersonRecord { name: "second".into(), ..person.clone() };
        assert!(!book.put_first(&other).unwrap(), "somebody is there already");
        assert_eq!(open().list().unwrap(), [person]);
        let other = PersonRecord { role: KeyRole::Elder, ..other };
        assert!(book.enter(&other, 8, &Sevens).unwrap(), "they are new");
        assert!(!book.enter(&other, 9, &Eights).unwrap(), "they are known");
        assert!(book.remove("second", 10, &Nines).unwrap());
        assert!(!book.remove("second", 11, &Sevens).unwrap(), "nobody of that name is left");
        let notes = crate::keys::SqliteNotes::open(dir.path()).unwrap().waiting(9).unwrap();
        assert_eq!(notes.len(), 3, "every change becomes an entry");
    }
}
