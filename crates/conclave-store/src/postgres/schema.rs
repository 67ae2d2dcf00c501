//! The tables in PostgreSQL, as migrations that only ever grow.
//!
//! **Invariant:** `log_*` is the log; it is appended to and nothing else, which triggers hold up as a
//! second line behind the rights of the role. Everything else is derived from it and could be made
//! again, or is operational: keys, people, notes, leases.
//!
//! **Invariant:** schemas only move forward, each step in a transaction of its own, under one lock:
//! of several programs that start at once, one makes the step and the others find it made.

use super::link::{Conn, LinkError};
use super::usage;
use crate::error::StoreError;
use conclave_failpoint as failpoint;
use conclave_ledger::CompactRange;
use std::time::Duration;
use tokio_postgres::types::Type;

/// The lock under which schemas change: "conclave" as a number.
const MIGRATION_LOCK: i64 = 0x636f_6e63_6c61_7665;
/// How long a step may take, and how long another program's step is waited for.
const STEP_PATIENCE: Duration = Duration::from_secs(300);

/// The tables, step by step.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
];

/// Brings a database up to date; also checks that it keeps what it commits.
///
/// # Errors
/// When it is of a later version, does not sync to disk, or refuses.
pub(super) fn prepare(conn: &mut Conn, patience: Duration) -> Result<(), StoreError> {
    check_settings(conn)?;
    let found = version(conn).map_err(|error| conn.connector().named(&error))?;
    if found == known_version() {
        return Ok(());
    }
    // Only a step may take long; a server that hangs must not hold up a start.
    conn.set_patience(STEP_PATIENCE);
    let prepared = migrate(conn, MIGRATIONS);
    conn.set_patience(patience);
    prepared
}

/// The version of a database's schema; 0 if it has none yet.
pub(super) fn version(conn: &Conn) -> Result<i64, LinkError> {
    // Read from the catalogue's table: a look-up by name may still believe what it knew before
    // another program's step was waited for.
    let there = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables
                 WHERE tablename = 'conclave_schema' AND schemaname = ANY(current_schemas(false)))";
    let there = conn.row(there, &[])?.map(|row| row.try_get::<_, bool>(0)).transpose()?;
    if there != Some(true) {
        return Ok(0);
    }
    let row = conn.row("SELECT version FROM conclave_schema", &[])?;
    Ok(row.map(|row| row.try_get::<_, i32>(0)).transpose()?.map_or(0, i64::from))
}

/// The version this program knows.
pub(super) fn known_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

fn check_settings(conn: &Conn) -> Result<(), StoreError> {
    let connector = conn.connector();
    let asked =
        conn.row("SELECT current_setting('fsync'), current_setting('server_encoding')", &[]);
    let row = asked.map_err(|error| connector.named(&error))?;
    let read = |at: usize| row.as_ref().and_then(|row| row.try_get::<_, String>(at).ok());
    let refused = |message: String| Err(StoreError::Database { path: connector.shown(), message });
    if read(0).as_deref() != Some("on") {
        return refused("it runs with fsync off, so nothing it takes is safe".to_owned());
    }
    match read(1).as_deref() {
        Some("UTF8") => Ok(()),
        other => refused(format!("its encoding is {}, not UTF8", other.unwrap_or("unknown"))),
    }
}

fn migrate(conn: &Conn, migrations: &[&str]) -> Result<(), StoreError> {
    let connector = conn.connector();
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let found = version(conn).map_err(|error| connector.named(&error))?;
    if found > known {
        return Err(StoreError::Newer { path: connector.shown(), found, known });
    }
    for (number, migration) in (1..).zip(migrations).skip(usize::try_from(found).unwrap_or(0)) {
        let made = conn.change(|conn| step(conn, number, migration));
        made.map_err(|error| connector.named(&error))?;
    }
    Ok(())
}

/// One step, unless another program has made it meanwhile.
fn step(conn: &Conn, number: i32, migration: &str) -> Result<(), LinkError> {
    conn.run("SET LOCAL lock_timeout = '240s'")?;
    conn.query("SELECT pg_advisory_xact_lock($1)", &[(&MIGRATION_LOCK, Type::INT8)])?;
    if version(conn)? >= i64::from(number) {
        return Ok(());
    }
    conn.run(migration)?;
    if number == 1 {
        let empty = CompactRange::new();
        let (root, range) = (empty.root(), empty.encode());
        let sql = "INSERT INTO log_head VALUES (1, 0, $1, $2, 0, '')";
        let values = [(&root.as_slice() as _, Type::BYTEA), (&range as _, Type::BYTEA)];
        conn.execute(sql, &values)?;
    }
    // The events that step 2 made room for are derived with step 6, which widens them.
    match number {
        2 => usage::fill(conn, usage::Lacking::Judgements)?,
        6 => usage::fill(conn, usage::Lacking::Events)?,
        _ => {}
    }
    let sql = "INSERT INTO conclave_schema VALUES (1, $1)
               ON CONFLICT (id) DO UPDATE SET version = excluded.version";
    conn.execute(sql, &[(&number, Type::INT4)])?;
    failpoint::reach("schema.step");
    Ok(())
}
