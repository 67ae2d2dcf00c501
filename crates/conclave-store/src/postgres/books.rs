//! Keys, people and notes in PostgreSQL, and the copy of them that a replica can start from.
//!
//! **Invariant:** a request is admitted from memory. What is in memory came from the database, or, if
//! that cannot be reached, from the copy that was written when it last could.

use super::link::{Conn, Connector, LinkError, Param, id_in};
use super::session::Session;
use super::url::DatabaseUrl;
use super::{schema, shared};
use crate::error::StoreError;
use crate::keys::{
    BookTables, KeyRow, KeySource, KeyUse, Listed, Note, NoteTable, Pepper, SqliteBooks,
    Succession, Waiting,
};
use crate::people::{PersonRecord, person};
use conclave_engine::KeyRecord;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How long a change by a person may take.
const CHANGE_PATIENCE: Duration = Duration::from_secs(10);
/// How long looking after keys may take, while a request may be waiting for it.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);
/// A replica that has been gone for so long has no notes any more: another takes them.
const CLAIM_MINUTES: i32 = 10;

const KEY_COLUMNS: &str =
    "digest, id, tenant, role, label, created_ms, expires_ms, revoked_ms, last_used_ms, person";

/// The books' tables.
pub(crate) struct PgBooks(Session);

impl PgBooks {
    /// Connects, brings the tables up to date and checks that the pepper is the right one.
    ///
    /// # Errors
    /// When the server cannot be reached, or the pepper is another's.
    pub(crate) fn open(url: &DatabaseUrl, pepper: &Pepper) -> Result<Self, StoreError> {
        let connector = Connector::new(url)?;
        let mut conn =
            connector.connect(CHANGE_PATIENCE).map_err(|error| connector.named(&error))?;
        schema::prepare(&mut conn, CHANGE_PATIENCE)?;
        shared::agree_on_pepper(&conn, pepper)?;
        Ok(Self::later(connector))
    }

    /// Connects when it is first used.
    pub(crate) const fn later(connector: Connector) -> Self {
        Self(Session::new(connector, CHANGE_PATIENCE))
    }
}

fn read_keys(conn: &Conn) -> Result<Listed, LinkError> {
    let sql = format!("SELECT {KEY_COLUMNS} FROM api_key ORDER BY created_ms, id");
    let rows = conn.query(&sql, &[])?;
    let keys = rows.iter().map(|row| Ok(key_row(row)?.and_then(KeyRow::into_key)));
    keys.filter_map(Result::transpose).collect()
}

/// A digest of another length is of another program.
fn key_row(row: &Row) -> Result<Option<KeyRow>, tokio_postgres::Error> {
    let Ok(digest) = row.try_get::<_, &[u8]>(0)?.try_into() else { return Ok(None) };
    Ok(Some(KeyRow {
        digest,
        id: row.try_get(1)?,
        tenant: row.try_get(2)?,
        role: row.try_get(3)?,
        label: row.try_get(4)?,
        times: [row.try_get(5)?, row.try_get(6)?, row.try_get(7)?, row.try_get(8)?],
        person: row.try_get(9)?,
    }))
}

fn read_people(conn: &Conn) -> Result<Vec<PersonRecord>, LinkError> {
    let sql = "SELECT name, tenant, role, password_hash, created_ms FROM person ORDER BY name";
    let rows = conn.query(sql, &[])?;
    let people = rows.iter().map(|row| {
        let (name, tenant) = (row.try_get(0)?, row.try_get(1)?);
        let role: &str = row.try_get(2)?;
        Ok(person(name, tenant, role, row.try_get(3)?, row.try_get(4)?))
    });
    people.filter_map(Result::transpose).collect()
}

fn is_empty(conn: &Conn, table: &str) -> Result<bool, LinkError> {
    // The lock keeps another process from finding it empty at the same time.
    conn.run(&format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"))?;
    Ok(conn.row(&format!("SELECT 1 FROM {table} LIMIT 1"), &[])?.is_none())
}

/// Enters a key within a transaction.
pub(super) fn insert_key(conn: &Conn, key: &KeyUse, digest: &[u8; 32]) -> Result<(), LinkError> {
    let record = &key.record;
    let time = |time: Option<u64>| time.map(u64::cast_signed);
    let (created_ms, used_ms) = (record.created_ms.cast_signed(), time(key.last_used_ms));
    let (expires_ms, revoked_ms) = (time(record.expires_ms), time(record.revoked_ms));
    let places = "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10";
    let sql = format!("INSERT INTO api_key ({KEY_COLUMNS}) VALUES ({places})");
    let values: [Param<'_>; 10] = [
        (&digest.as_slice(), Type::BYTEA),
        (&record.id.as_str(), Type::TEXT),
        (&record.tenant.as_str(), Type::TEXT),
        (&record.role.as_str(), Type::TEXT),
        (&record.label, Type::TEXT),
        (&created_ms, Type::INT8),
        (&expires_ms, Type::INT8),
        (&revoked_ms, Type::INT8),
        (&used_ms, Type::INT8),
        (&record.person, Type::TEXT),
    ];
    conn.execute(&sql, &values).map(|_| ())
}

/// Enters or changes a person within a transaction.
pub(super) fn insert_person(conn: &Conn, person: &PersonRecord) -> Result<(), LinkError> {
    let sql = "INSERT INTO person (name, tenant, role, password_hash, created_ms)
               VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (name) DO UPDATE SET tenant = excluded.tenant, role = excluded.role,
               password_hash = excluded.password_hash";
    let created_ms = person.created_ms.cast_signed();
    let values: [Param<'_>; 5] = [
        (&person.name, Type::TEXT),
        (&person.tenant.as_str(), Type::TEXT),
        (&person.role.as_str(), Type::TEXT),
        (&person.password_hash, Type::TEXT),
        (&created_ms, Type::INT8),
    ];
    conn.execute(sql, &values).map(|_| ())
}

/// Leaves the note that becomes an entry.
pub(super) fn leave_note(conn: &Conn, note: &Note) -> Result<(), LinkError> {
    let sql = "INSERT INTO outbox_entry (id, kind, tenant, public, created_ms)
               VALUES ($1, $2, $3, $4, $5)";
    let (tenant, created_ms) = (note.tenant.cast_signed(), note.created_ms.cast_signed());
    let values: [Param<'_>; 5] = [
        (&note.id.as_slice(), Type::BYTEA),
        (&note.kind.as_str(), Type::TEXT),
        (&tenant, Type::INT8),
        (&note.public, Type::BYTEA),
        (&created_ms, Type::INT8),
    ];
    conn.execute(sql, &values).map(|_| ())
}

impl BookTables for PgBooks {
    fn enter_key(
        &mut self,
        record: &KeyRecord,
        digest: &[u8; 32],
        note: &Note,
        only_first: bool,
    ) -> Result<bool, StoreError> {
        let key = KeyUse { record: record.clone(), last_used_ms: None };
        self.0.with(|conn| {
            conn.change(|conn| {
                if only_first && !is_empty(conn, "api_key")? {
                    return Ok(false);
                }
                insert_key(conn, &key, digest)?;
                leave_note(conn, note).map(|()| true)
            })
        })
    }

    fn keys(&mut self) -> Result<Listed, StoreError> {
        self.0.with(read_keys)
    }

    fn revoke_key(
        &mut self,
        id: &str,
        now_ms: u64,
        note: &dyn Fn(&KeyRecord) -> Note,
    ) -> Result<Option<KeyRecord>, StoreError> {
        self.0.with(|conn| {
            conn.change(|conn| {
                let sql = format!("SELECT {KEY_COLUMNS} FROM api_key WHERE id = $1 FOR UPDATE");
                let found = conn.row(&sql, &[(&id, Type::TEXT)])?;
                let found = found.as_ref().map(key_row).transpose()?.flatten();
                let found = found.and_then(KeyRow::into_key);
                let Some((_, KeyUse { mut record, .. })) = found else { return Ok(None) };
                if record.revoked_ms.is_none() {
                    record.revoked_ms = Some(now_ms);
                    let sql = "UPDATE api_key SET revoked_ms = $2 WHERE id = $1";
                    let now = now_ms.cast_signed();
                    conn.execute(sql, &[(&id, Type::TEXT), (&now, Type::INT8)])?;
                    leave_note(conn, &note(&record))?;
                }
                Ok(Some(record))
            })
        })
    }

    fn succeed_key(&mut self, succession: &Succession<'_>) -> Result<bool, StoreError> {
        let key = KeyUse { record: succession.record.clone(), last_used_ms: None };
        let (ends, now) = (succession.ends_ms.cast_signed(), succession.now_ms.cast_signed());
        self.0.with(|conn| {
            conn.change(|conn| {
                let sql = "UPDATE api_key SET expires_ms = $2 WHERE id = $1 AND revoked_ms IS NULL
                           AND (expires_ms IS NULL OR expires_ms > $3)";
                let values: [Param<'_>; 3] =
                    [(&succession.old, Type::TEXT), (&ends, Type::INT8), (&now, Type::INT8)];
                if conn.execute(sql, &values)? == 0 {
                    return Ok(false);
                }
                insert_key(conn, &key, succession.digest)?;
                succession.notes.iter().try_for_each(|note| leave_note(conn, note)).map(|()| true)
            })
        })
    }

    fn put_person(&mut self, person: &PersonRecord, only_first: bool) -> Result<bool, StoreError> {
        self.0.with(|conn| {
            conn.change(|conn| {
                if only_first && !is_empty(conn, "person")? {
                    return Ok(false);
                }
                insert_person(conn, person).map(|()| true)
            })
        })
    }

    fn enter_person(&mut self, person: &PersonRecord, note: &Note) -> Result<(), StoreError> {
        self.0.with(|conn| {
            conn.change(|conn| {
                insert_person(conn, person)?;
                leave_note(conn, note)
            })
        })
    }

    fn remove_person(&mut self, name: &str, note: &Note) -> Result<bool, StoreError> {
        self.0.with(|conn| {
            conn.change(|conn| {
                let sql = "DELETE FROM person WHERE name = $1";
                let removed = conn.execute(sql, &[(&name, Type::TEXT)])? == 1;
                if removed {
                    leave_note(conn, note)?;
                }
                Ok(removed)
            })
        })
    }

    fn people(&mut self) -> Result<Vec<PersonRecord>, StoreError> {
        self.0.with(read_people)
    }
}

/// The keys of a serving replica: from the database, with a copy beside the spool.
pub(crate) struct PgKeys {
    session: Session,
    version: Option<i64>,
    copy: SqliteBooks,
}

impl PgKeys {
    /// Reads from the database later; `copy` is brought up to date whenever that succeeds.
    pub(crate) const fn new(connector: Connector, copy: SqliteBooks) -> Self {
        Self { session: Session::new(connector, LOOK_PATIENCE), version: None, copy }
    }
}

impl KeySource for PgKeys {
    fn news(&mut self) -> Result<Option<Listed>, StoreError> {
        let known = self.version;
        let found = self.session.with(|conn| {
            let row = conn.row("SELECT version FROM book_version", &[])?;
            let version = row.map(|row| row.try_get::<_, i64>(0)).transpose()?;
            if version.is_some() && version == known {
                return Ok(None);
            }
            Ok(Some((version, read_keys(conn)?, read_people(conn)?)))
        })?;
        let Some((version, keys, people)) = found else { return Ok(None) };
        self.copy.replace(&keys, &people)?;
        self.version = version;
        Ok(Some(keys))
    }

    fn write_uses(&mut self, uses: &[([u8; 32], u64)]) -> Result<(), StoreError> {
        let digests: Vec<&[u8]> = uses.iter().map(|(digest, _)| &digest[..]).collect();
        let times: Vec<i64> = uses.iter().map(|(_, used_ms)| used_ms.cast_signed()).collect();
        let sql = "UPDATE api_key k SET last_used_ms = greatest(k.last_used_ms, u.ms)
                   FROM unnest($1::bytea[], $2::bigint[]) AS u (digest, ms)
                   WHERE k.digest = u.digest";
        let values: [Param<'_>; 2] = [(&digests, Type::BYTEA_ARRAY), (&times, Type::INT8_ARRAY)];
        self.session.with(|conn| conn.execute(sql, &values)).map(|_| ())
    }
}

/// Notes of all processes; each is claimed by one replica, which turns it into an entry.
pub(crate) struct PgNotes {
    session: Session,
    replica: [u8; 8],
}

impl PgNotes {
    /// Reads from the database later.
    pub(crate) const fn new(connector: Connector, replica: [u8; 8]) -> Self {
        Self { session: Session::new(connector, CHANGE_PATIENCE), replica }
    }
}

impl NoteTable for PgNotes {
    fn waiting(&mut self, at_most: u32) -> Result<Vec<Waiting>, StoreError> {
        let sql = "UPDATE outbox_entry SET claimed_by = $1 WHERE n IN (
                       SELECT o.n FROM outbox_entry o
                       WHERE o.claimed_by IS NULL OR o.claimed_by = $1 OR NOT EXISTS (
                           SELECT 1 FROM replica_lease l WHERE l.replica = o.claimed_by
                           AND l.until > clock_timestamp() - make_interval(mins => $3))
                       ORDER BY o.n LIMIT $2 FOR UPDATE SKIP LOCKED)
                   RETURNING n, id, kind, tenant, public";
        let (replica, at_most) = (self.replica, i64::from(at_most));
        let values: [Param<'_>; 3] = [
            (&replica.as_slice(), Type::BYTEA),
            (&at_most, Type::INT8),
            (&CLAIM_MINUTES, Type::INT4),
        ];
        let mut notes: Vec<Waiting> = self.session.with(|conn| {
            let rows = conn.query(sql, &values)?;
            let notes = rows.iter().map(|row| {
                let n: i64 = row.try_get(0)?;
                Ok(Waiting {
                    n,
                    id: id_in(row, 1, format_args!("outbox_entry {n}"))?,
                    kind: row.try_get(2)?,
                    tenant: row.try_get(3)?,
                    public: row.try_get(4)?,
                })
            });
            notes.collect::<Result<_, LinkError>>()
        })?;
        notes.sort_by_key(|note| note.n);
        Ok(notes)
    }

    fn remove(&mut self, n: i64) -> Result<(), StoreError> {
        let sql = "DELETE FROM outbox_entry WHERE n = $1";
        self.session.with(|conn| conn.execute(sql, &[(&n, Type::INT8)])).map(|_| ())
    }

    fn last(&mut self) -> Result<i64, StoreError> {
        self.session.with(|conn| {
            let row = conn.row("SELECT coalesce(max(n), 0) FROM outbox_entry", &[])?;
            Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
        })
    }
}

/// Whether the log has the entry of a note.
pub(crate) fn has_change(session: &mut Session, id: [u8; 16]) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM log_change WHERE id = $1";
    session.with(|conn| Ok(conn.row(sql, &[(&id.as_slice(), Type::BYTEA)])?.is_some()))
}
