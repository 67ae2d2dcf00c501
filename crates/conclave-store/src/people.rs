//! People who may sign in, with the hashes of their passwords.
//!
//! **Invariant:** a password is never stored or logged; only the slow hash of it comes here.

use crate::db::{OPS, open_writer};
use crate::durable::make_dir;
use crate::error::StoreError;
use conclave_core::TenantId;
use conclave_engine::KeyRole;
use rusqlite::{Connection, Row, params};
use std::path::{Path, PathBuf};

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
#[derive(Debug)]
pub struct PeopleBook {
    conn: Connection,
    path: PathBuf,
}

impl PeopleBook {
    /// Opens the book of a data directory.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        make_dir(dir)?;
        let path = dir.join("ops.db");
        Ok(Self { conn: open_writer(&path, OPS)?, path })
    }

    /// Enters a person, or gives a known one a new password and role.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn put(&self, person: &PersonRecord) -> Result<(), StoreError> {
        let sql = "INSERT INTO person (name, tenant, role, password_hash, created_ms)
                   VALUES (?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT (name) DO UPDATE SET tenant = ?2, role = ?3, password_hash = ?4";
        let values = params![
            person.name,
            person.tenant.as_str(),
            person.role.as_str(),
            person.password_hash,
            person.created_ms.cast_signed(),
        ];
        self.conn.execute(sql, values).map_err(StoreError::database(&self.path))?;
        Ok(())
    }

    /// Everyone, by name.
    ///
    /// # Errors
    /// When the database refuses.
    pub fn list(&self) -> Result<Vec<PersonRecord>, StoreError> {
        let read = || {
            let sql = "SELECT name, tenant, role, password_hash, created_ms FROM person ORDER BY 1";
            let mut rows = self.conn.prepare_cached(sql)?;
            let people = rows.query_map([], person_row)?;
            people.filter_map(Result::transpose).collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::database(&self.path))
    }
}

/// A row that makes no sense lets nobody in and stops nobody else.
fn person_row(row: &Row<'_>) -> rusqlite::Result<Option<PersonRecord>> {
    let (tenant, role): (String, String) = (row.get(1)?, row.get(2)?);
    let (Ok(tenant), Some(role)) = (TenantId::new(tenant), KeyRole::parse(&role)) else {
        tracing::warn!("a person with an unknown role or an invalid tenant is ignored");
        return Ok(None);
    };
    let created_ms = row.get::<_, i64>(4)?.cast_unsigned();
    let (name, password_hash) = (row.get(0)?, row.get(3)?);
    Ok(Some(PersonRecord { name, tenant, role, password_hash, created_ms }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_entered_once_and_changed_after() {
        let dir = tempfile::tempdir().unwrap();
        let book = PeopleBook::open(dir.path()).unwrap();
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
        assert_eq!(PeopleBook::open(dir.path()).unwrap().list().unwrap(), [person]);
    }
}
