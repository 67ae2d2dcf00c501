//! SQLite: how its files are opened, checked and brought up to date.
//!
//! **Invariant:** a pragma that matters for durability is read back; a database that does not keep
//! it is not used.
//!
//! **Invariant:** schemas only move forward, each step in a transaction of its own; a schema of a
//! later program is refused and left alone.

mod claim;
mod columns;
mod forgotten;
mod judgement;
mod log;
mod schema;
mod snapshot;
mod sqlite_log;
mod stored;
mod tiles;
mod usage;
mod words;

pub(crate) use columns::{DecisionColumns, DeliveryColumns};
pub(crate) use forgotten::claims;
pub(crate) use judgement::Judgement;
pub(crate) use log::{Hole, LogState, kept_until, rederive, states};
pub(crate) use schema::{FORGETS_SINCE, KEYS, LEDGER, OPS, TILES_SINCE, USAGE_SINCE};
pub(crate) use snapshot::{SqliteSnapshots, published};
pub(crate) use sqlite_log::SqliteLog;
pub(crate) use stored::SqliteStored;
pub(crate) use tiles::SqlTiles;
pub(crate) use usage::{UsageColumns, is_derived as usage_is_derived};
pub(crate) use words::SqliteWords;

use crate::durable::private;
use crate::error::{StoreError, malformed_id};
use conclave_failpoint as failpoint;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, Transaction, TransactionBehavior};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The id in a column; `named` says which row it is where the id cannot be read.
pub(crate) fn id_in<const BYTES: usize>(
    row: &Row<'_>,
    at: usize,
    named: impl Display,
) -> rusqlite::Result<[u8; BYTES]> {
    let id = row.get_ref(at)?.as_blob()?;
    id.try_into().map_err(|_| {
        let why = malformed_id(named, id, BYTES);
        rusqlite::Error::FromSqlConversionFailure(at, rusqlite::types::Type::Blob, why.into())
    })
}

/// How long a connection waits for another one's write.
const BUSY: Duration = Duration::from_secs(5);

/// Opens a database for writing; creates it or brings it up to date.
///
/// # Errors
/// When it cannot be opened, is of a later version or does not keep a setting.
pub(crate) fn open_writer(path: &Path, migrations: &[&str]) -> Result<Connection, StoreError> {
    // Made here first, because SQLite would let others read it.
    let made = private().write(true).create(true).truncate(false).open(path);
    made.map_err(StoreError::file("write to", path))?;
    reopen_writer(path, migrations)
}

/// Opens a database for writing that is there already. One that somebody removed while it was in use is
/// not begun anew: what stood in it would be missing in silence.
///
/// # Errors
/// When it is not there, cannot be opened, is of a later version or does not keep a setting.
pub(crate) fn reopen_writer(path: &Path, migrations: &[&str]) -> Result<Connection, StoreError> {
    let database = StoreError::database(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(&database)?;
    configure(&conn).map_err(&database)?;
    check_settings(&conn, path)?;
    migrate(&mut conn, path, migrations)?;
    Ok(conn)
}

/// Opens a database that is there for reading only.
///
/// # Errors
/// When it cannot be opened.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY)?;
    conn.pragma_update(None, "query_only", true)?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

/// Opens a database to look at it, also where nothing can be written beside it: on a disk that is mounted
/// to be read only, or in a directory of somebody else. Then nobody writes to it either, if its write-ahead
/// log is empty; one that is not cannot be read without its index.
///
/// # Errors
/// When it cannot be opened.
pub(crate) fn open_to_check(path: &Path) -> rusqlite::Result<Connection> {
    let conn = open_reader(path)?;
    let Err(refused) = user_version(&conn) else { return Ok(conn) };
    let is_closed = match refused.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => path.is_file() && !has_wal(path),
        _ => false,
    };
    if !is_closed {
        return Err(refused);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(immutable(path), flags)
}

/// Whether something stands in the write-ahead log of a database.
fn has_wal(path: &Path) -> bool {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-wal");
    std::fs::metadata(beside).is_ok_and(|found| found.len() > 0)
}

/// The address of a file that does not change.
fn immutable(path: &Path) -> String {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            other => address.push_str(&format!("%{other:02x}")),
        }
    }
    address + "?immutable=1"
}

/// Reads every page; a sentence says what is wrong first.
///
/// # Errors
/// When it cannot be read now.
pub(crate) fn quick_check(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let said: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((said != "ok")
        .then(|| said.trim_start_matches("*** in database main ***").trim().to_owned()))
}

/// Moves everything out of the write-ahead log and empties it, so that nothing deleted stays there.
///
/// # Errors
/// When it cannot be done now because somebody reads; it is done with a later one then.
pub(crate) fn truncate_wal(conn: &Connection) -> rusqlite::Result<()> {
    let busy: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy != 0 {
        tracing::warn!("a write-ahead log could not be emptied because somebody was reading");
    }
    Ok(())
}

fn configure(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(BUSY)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // What is deleted is overwritten with zeros: a deleted row must not stay readable in the file.
    conn.pragma_update(None, "secure_delete", true)?;
    conn.pragma_update(None, "cache_size", -1_000)?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(())
}

fn check_settings(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let text = |name: &str| {
        let value = conn.pragma_query_value(None, name, |row| {
            use rusqlite::types::ValueRef;
            Ok(match row.get_ref(0)? {
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            })
        });
        value.map_err(StoreError::database(path))
    };
    let wanted = [
        ("journal_mode", "wal"),
        ("synchronous", "2"),
        ("wal_autocheckpoint", "4000"),
        ("busy_timeout", "5000"),
        ("foreign_keys", "1"),
        ("secure_delete", "1"),
    ];
    for (name, wanted) in wanted {
        let found = text(name)?;
        if found != wanted {
            let message = format!("it keeps {name} at `{found}` instead of `{wanted}`");
            return Err(StoreError::Database { path: path.to_owned(), message });
        }
    }
    Ok(())
}

/// Applies the migrations that are missing.
fn migrate(conn: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let database = StoreError::database(path);
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    for (version, migration) in (1..).zip(migrations) {
        let tx =
            conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&database)?;
        let found = user_version(&tx).map_err(&database)?;
        if found > known {
            return Err(StoreError::Newer { path: path.to_owned(), found, known });
        }
        if found < version {
            apply(tx, version, migration).map_err(&database)?;
        }
    }
    Ok(())
}

/// The version of a database's schema.
pub(crate) fn user_version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn apply(tx: Transaction<'_>, version: i64, migration: &str) -> rusqlite::Result<()> {
    tx.execute_batch(migration)?;
    tx.pragma_update(None, "user_version", version)?;
    failpoint::reach("schema.step");
    tx.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_private_durable_and_up_to_date() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        for _ in 0..2 {
            let conn = open_writer(&path, LEDGER).unwrap();
            assert_eq!(user_version(&conn).unwrap(), LEDGER.len() as i64);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        open_writer(&dir.path().join("b.db"), OPS).unwrap();
    }

    #[test]
    fn migrations_are_applied_once_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let steps = ["CREATE TABLE t(a) ; INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"];
        open_writer(&path, &steps[..1]).unwrap();
        let conn = open_writer(&path, &steps).unwrap();
        let rows: i64 = conn.query_row("SELECT sum(a * 10 + 1) FROM t", [], |r| r.get(0)).unwrap();
        assert_eq!(rows, 32);
    }

    #[test]
    fn a_later_schema_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        open_writer(&path, &["CREATE TABLE t(a)", "CREATE TABLE u(a)"]).unwrap();
        let sentence = open_writer(&path, &["CREATE TABLE t(a)"]).unwrap_err().to_string();
        assert!(sentence.contains("has schema 2, this program knows 1"), "{sentence}");
    }

    #[test]
    fn something_that_is_no_database_gives_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        std::fs::write(&path, vec![7_u8; 8_192]).unwrap();
        let sentence = open_writer(&path, LEDGER).unwrap_err().to_string();
        assert!(sentence.contains("cannot be used"), "{sentence}");
    }

    #[test]
    fn a_reader_cannot_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let _writer = open_writer(&path, LEDGER).unwrap();
        let reader = open_reader(&path).unwrap();
        assert!(reader.execute("DELETE FROM log_head", []).is_err());
        assert!(open_reader(&dir.path().join("none.db")).is_err());
    }
}
