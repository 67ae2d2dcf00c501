//! Moves the log of a data directory from SQLite to PostgreSQL, and derives tables again.
//!
//! **Invariant:** all or nothing: the whole move is one transaction, and it is committed only when the
//! tree over what was copied has the root it had before. Leaves are copied byte for byte, so every proof
//! and every checkpoint stays valid.

use super::accounts::insert_accounts;
use super::batch::{Batch, Derivation};
use super::books::{insert_key, insert_person, leave_note};
use super::link::{Conn, Connector, LinkError, Param};
use super::log::{read_head, write_derived, write_entries, write_head};
use super::records::insert_record;
use super::snapshot::PgSnapshot;
use super::url::DatabaseUrl;
use super::vault::insert as insert_subject;
use super::{schema, shared};
use crate::accounts::SqliteAccounts;
use crate::backing::refuse_bound;
use crate::db::{LogState, SqliteLog, SqliteSnapshots, kept_until};
use crate::error::StoreError;
use crate::forget::Retention;
use crate::keys::{BookTables, NoteTable, Pepper, SqliteBooks, SqliteNotes};
use crate::lock::DirLock;
use crate::publish::{KeyFile, Published};
use crate::records::SqliteRecords;
use crate::replica::Identity;
use crate::snapshot::{Snapshot, Snapshots};
use crate::vault::{KeyTables, SqliteKeys};
use conclave_engine::Entropy;
use conclave_failpoint as failpoint;
use conclave_ledger::Leaf;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::types::Type;

/// How long one statement of a move may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// A bundle ends when it has grown to this.
const BUNDLE_ENTRIES: usize = 2_000;
const BUNDLE_BYTES: usize = 8 << 20;

/// What a move came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Entries of the log.
    pub entries: u64,
    /// Its root, which is what it was.
    pub root: [u8; 32],
    /// Whether an earlier move had got that far already.
    pub was_there: bool,
}

/// Copies the log, its bodies, checkpoints, keys, people and records, and binds the directory to the database.
/// The gateway must not run; what waits in its spool goes to the new database at its next start.
///
/// # Errors
/// When either side cannot be used, or the database holds another log; nothing is changed then.
pub fn move_to_postgres(
    dir: &Path,
    url: &DatabaseUrl,
    entropy: &dyn Entropy,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Moved, StoreError> {
    let _lock = DirLock::take(dir)?;
    refuse_bound(dir)?;
    let database = dir.join("ledger.db");
    if !database.is_file() {
        return Err(StoreError::Key(format!("there is no ledger in {}", dir.display())));
    }
    let log = SqliteLog::open(&database, Arc::default(), entropy)?;
    let identity = Identity::load(dir, log.state.taken.keys().next_back().copied(), entropy)?;
    let pepper = Pepper::load(dir, entropy)?;
    let connector = Connector::new(url)?;
    let named = |error: LinkError| connector.named(&error);
    let mut conn = connector.connect(PATIENCE).map_err(named)?;
    schema::prepare(&mut conn, PATIENCE)?;
    let (entries, root) = (log.state.range.size(), log.state.range.root());
    conn.begin().map_err(named)?;
    let there = read_head(&conn, "FOR UPDATE").map_err(named)?;
    let there = there.map_err(|what| StoreError::damaged(&connector.shown(), what))?;
    let was_there = there.range.size() > 0 && there.range == log.state.range;
    if was_there {
        conn.run("ROLLBACK").map_err(named)?;
    } else if there.range.size() > 0 {
        let message = format!("it holds another ledger, of {} entries", there.range.size());
        return Err(StoreError::Database { path: connector.shown(), message });
    } else {
        copy_log(&conn, &database, &log.state, progress)?;
        copy_retention(&conn, &database)?;
        copy_books(&conn, dir)?;
        copy_vault(&conn, dir)?;
        shared::begins_log(&conn, identity.replica).map_err(named)?;
        failpoint::reach("move.copied");
        conn.commit().map_err(named)?;
        failpoint::reach("move.committed");
    }
    shared::agree_on_pepper(&conn, &pepper)?;
    shared::agree_on_key(&conn, dir, || KeyFile::load(dir))?;
    shared::bind(&conn, dir, entropy)?;
    Ok(Moved { entries, root, was_there })
}

fn copy_log(
    conn: &Conn,
    database: &Path,
    state: &LogState,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), StoreError> {
    let named = |error: LinkError| conn.connector().named(&error);
    let size = state.range.size();
    let mut batch = Batch::new(LogState::default());
    SqliteSnapshots::new(database).with(&mut |log| {
        log.rows(size, &mut |row| {
            batch.push(row.leaf, row.body.unwrap_or_default());
            if let Ok(leaf) = Leaf::decode(row.leaf) {
                batch.derived.add(row.seq.cast_signed(), &leaf);
            }
            if batch.len() >= BUNDLE_ENTRIES || batch.leaves.len() >= BUNDLE_BYTES {
                flush(conn, &mut batch).map_err(named)?;
                progress(row.seq + 1, size);
            }
            Ok(())
        })?;
        log.checkpoints(&mut |published| keep_checkpoint(conn, &published).map_err(named))
    })?;
    flush(conn, &mut batch).map_err(named)?;
    if batch.state.range != state.range {
        let message = "its leaves do not lead to the root of its head; run `conclave ledger \
                       verify`. Nothing was moved";
        return Err(StoreError::damaged(database, message));
    }
    let moved = LogState { ts_ms: state.ts_ms, taken: state.taken.clone(), ..batch.state };
    write_head(conn, &moved).map_err(named)?;
    progress(size, size);
    Ok(())
}

/// Copies until when words are to be kept, which follows from rules that stand in no leaf.
fn copy_retention(conn: &Conn, database: &Path) -> Result<(), StoreError> {
    let mut after = -1;
    loop {
        let page = kept_until(database, after).map_err(StoreError::database(database))?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = *last;
        let (seqs, until): (Vec<i64>, Vec<i64>) = page.into_iter().unzip();
        let sql = "UPDATE response_audit_log a SET data_retention_until = k.until
                   FROM unnest($1::bigint[], $2::bigint[]) AS k (seq, until) WHERE a.seq = k.seq";
        let values: [Param<'_>; 2] = [(&seqs, Type::INT8_ARRAY), (&until, Type::INT8_ARRAY)];
        conn.execute(sql, &values).map_err(|error| conn.connector().named(&error))?;
    }
}

/// Writes what was gathered and begins the next bundle.
fn flush(conn: &Conn, batch: &mut Batch) -> Result<(), LinkError> {
    if batch.len() > 0 {
        write_entries(conn, batch)?;
        write_derived(conn, &batch.derived, &Retention::default())?;
        *batch = Batch::new(std::mem::take(&mut batch.state));
    }
    Ok(())
}

fn keep_checkpoint(conn: &Conn, published: &Published) -> Result<(), LinkError> {
    let (size, at_ms) = (published.size.cast_signed(), published.at_ms.cast_signed());
    let values: [Param<'_>; 3] =
        [(&size, Type::INT8), (&published.note, Type::TEXT), (&at_ms, Type::INT8)];
    conn.execute("INSERT INTO log_checkpoint VALUES ($1, $2, $3)", &values).map(|_| ())
}

fn copy_books(conn: &Conn, dir: &Path) -> Result<(), StoreError> {
    let named = |error: LinkError| conn.connector().named(&error);
    let mut books = SqliteBooks::open(dir)?;
    for (digest, key) in books.keys()? {
        insert_key(conn, &key, &digest).map_err(named)?;
    }
    for person in books.people()? {
        insert_person(conn, &person).map_err(named)?;
    }
    for note in SqliteNotes::open(dir)?.waiting(u32::MAX)? {
        leave_note(conn, &note.into_note()).map_err(named)?;
    }
    insert_accounts(conn, &SqliteAccounts::open(dir)?.whole()?).map_err(named)?;
    SqliteRecords::open(dir)?.each(&mut |record| insert_record(conn, record).map_err(named))
}

/// Copies the keys of people, wrapped as they are: the root key stays what it was.
fn copy_vault(conn: &Conn, dir: &Path) -> Result<(), StoreError> {
    let named = |error: LinkError| conn.connector().named(&error);
    let mut keys = SqliteKeys::open(dir)?;
    let Some(lookup) = keys.lookup()? else { return Ok(()) };
    let (legacy, (erased, rotated)) = (keys.is_legacy()?, keys.since_rotation()?);
    let (erased, rotated) = (erased.map(u64::cast_signed), rotated.cast_signed());
    let values: [Param<'_>; 4] = [
        (&lookup, Type::BYTEA),
        (&rotated, Type::INT8),
        (&erased, Type::INT8),
        (&legacy, Type::BOOL),
    ];
    conn.execute("INSERT INTO vault VALUES (1, $1, $2, $3, $4)", &values).map_err(named)?;
    for (tenant, epoch, wrapped) in keys.tenants()? {
        let tenant = tenant.cast_signed();
        let values: [Param<'_>; 3] =
            [(&tenant, Type::INT8), (&epoch, Type::INT8), (&wrapped, Type::BYTEA)];
        conn.execute("INSERT INTO tenant_key VALUES ($1, $2, $3)", &values).map_err(named)?;
    }
    copy_erasures(conn, &mut keys)?;
    let mut after = Vec::new();
    loop {
        let page = keys.page(&after)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.key.id.to_vec();
        page.iter().try_for_each(|new| insert_subject(conn, new)).map_err(named)?;
    }
}

fn copy_erasures(conn: &Conn, keys: &mut SqliteKeys) -> Result<(), StoreError> {
    let unfinished = keys.intents(true)?;
    for intent in keys.intents(false)? {
        let (tenant, when) = (intent.tenant.cast_signed(), intent.requested_ms.cast_signed());
        // Nobody asks to the millisecond when one was finished, only whether.
        let erased = (!unfinished.contains(&intent)).then_some(when);
        let sql = "INSERT INTO erasure (subject, tenant, request, requested_ms, erased_ms)
                   VALUES ($1, $2, $3, $4, $5)";
        let values: [Param<'_>; 5] = [
            (&intent.subject.as_slice(), Type::BYTEA),
            (&tenant, Type::INT8),
            (&intent.request.as_slice(), Type::BYTEA),
            (&when, Type::INT8),
            (&erased, Type::INT8),
        ];
        conn.execute(sql, &values).map_err(|error| conn.connector().named(&error))?;
    }
    Ok(())
}

/// Derives the query tables again from the log, in one transaction; says from how many entries.
///
/// # Errors
/// When the database refuses; nothing is changed then.
pub fn rebuild_database(url: &DatabaseUrl) -> Result<u64, StoreError> {
    let connector = Connector::new(url)?;
    let named = |error: LinkError| connector.named(&error);
    let mut conn = connector.connect(PATIENCE).map_err(named)?;
    schema::prepare(&mut conn, PATIENCE)?;
    conn.begin().map_err(named)?;
    let head = read_head(&conn, "FOR UPDATE").map_err(named)?;
    let head = head.map_err(|what| StoreError::damaged(&connector.shown(), what))?;
    // Until when words were to be kept follows from rules that stand in no leaf.
    let keep = "CREATE TEMP TABLE kept_until ON COMMIT DROP AS \
                SELECT seq, data_retention_until AS until FROM response_audit_log \
                WHERE data_retention_until IS NOT NULL";
    conn.run(keep).map_err(named)?;
    let clear = "DELETE FROM response_audit_log; DELETE FROM log_change; DELETE FROM log_rotation; \
                 DELETE FROM log_forgotten; DELETE FROM ai_usage_events";
    conn.run(clear).map_err(named)?;
    let (size, mut derived) = (head.range.size(), Derivation::default());
    PgSnapshot(&conn).leaves(0, size, &mut |seq, leaf| {
        if let Ok(leaf) = Leaf::decode(leaf) {
            derived.add(seq.cast_signed(), &leaf);
        }
        if derived.len() >= BUNDLE_ENTRIES {
            write_derived(&conn, &std::mem::take(&mut derived), &Retention::default())
                .map_err(named)?;
        }
        Ok(())
    })?;
    write_derived(&conn, &derived, &Retention::default()).map_err(named)?;
    let back = "UPDATE response_audit_log a SET data_retention_until = k.until \
                FROM kept_until k WHERE a.seq = k.seq";
    conn.run(back).map_err(named)?;
    failpoint::reach("rebuild.derived");
    conn.commit().map_err(named)?;
    Ok(size)
}
