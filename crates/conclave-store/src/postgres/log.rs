//! The log in PostgreSQL: appended to by many replicas, one at a time.
//!
//! **Invariant:** sequencing, tree and head change in one transaction under one lock, the head's row.
//! Who has the lock reads the head again: what was known from the last batch may be old.
//!
//! **Invariant:** an entry whose number is not above its replica's mark is skipped, so that each is in
//! the log exactly once however often it is handed over.

use super::batch::{AuditRow, Batch, Derivation, decode_edge, encode_edge};
use super::lease::Lease;
use super::link::{Conn, Connector, LinkError};
use super::vault::WaitingKeys;
use super::words::forget_words;
use super::{restore, schema, shared, usage};
use crate::backing::make_signing_key;
use crate::db::LogState;
use crate::drain::{Acceptance, DrainError, LogDatabase, LogSource, Supply, Taken};
use crate::error::StoreError;
use crate::forget::Retention;
use crate::keys::Pepper;
use crate::options::StoreOptions;
use crate::publish::KeyFile;
use crate::replica::Identity;
use conclave_engine::Entropy;
use conclave_failpoint as failpoint;
use conclave_ledger::CompactRange;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// How long one statement of a batch may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The leaf at `a.seq`, cut out of its bundle; null if there is none.
pub(super) const LEAF_OF_A: &str = "(SELECT substring(b.leaves
    FROM coalesce(b.ends[(a.seq - b.first)::int], 0) + 1
    FOR b.ends[(a.seq - b.first)::int + 1] - coalesce(b.ends[(a.seq - b.first)::int], 0))
    FROM log_bundle b WHERE b.first <= a.seq ORDER BY b.first DESC LIMIT 1)";

impl From<LinkError> for DrainError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Overtaken(why) => Self::Overtaken(why),
            error => Self::Database(error.to_string()),
        }
    }
}

/// The log as one replica sees it.
pub(crate) struct PgLog {
    conn: Conn,
    lease: Lease,
    size: u64,
    /// The largest numbers of this replica when the log was opened.
    taken: BTreeMap<Identity, u64>,
    waiting: WaitingKeys,
    retention: Arc<Retention>,
}

/// Reads the head and what stands beside it; the inner error is a sentence about damage.
pub(super) fn read_head(conn: &Conn, lock: &str) -> Result<Result<LogState, String>, LinkError> {
    let sql =
        format!("SELECT size, root, compact_range, ts_ms, edge FROM log_head WHERE id = 1 {lock}");
    let Some(row) = conn.row(&sql, &[])? else {
        return Ok(Err("the head of the log is missing".to_owned()));
    };
    let (size, root): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    let (range, ts_ms): (&[u8], i64) = (row.try_get(2)?, row.try_get(3)?);
    let fits = |range: &CompactRange| {
        range.size() == size.cast_unsigned() && range.root().as_slice() == root
    };
    let range = CompactRange::decode(range).filter(fits);
    let ts_ms = ts_ms.cast_unsigned();
    let advice = "its head does not have its root; run `conclave ledger verify` and restore it \
                  from a backup";
    let edge = decode_edge(row.try_get(4)?, size.cast_unsigned());
    let state =
        range.zip(edge).map(|(range, edge)| LogState { range, edge, ts_ms, ..LogState::default() });
    Ok(state.ok_or_else(|| advice.to_owned()))
}

fn load_taken(conn: &Conn, replica: [u8; 8]) -> Result<Vec<(Identity, u64)>, LinkError> {
    let sql = "SELECT epoch, hwm FROM log_replica WHERE replica = $1";
    let rows = conn.query(sql, &[(&replica.as_slice(), Type::BYTEA)])?;
    let taken = rows.iter().map(|row| {
        let (epoch, hwm): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let epoch = u32::try_from(epoch).unwrap_or(u32::MAX);
        Ok((Identity { replica, epoch }, hwm.cast_unsigned()))
    });
    taken.collect()
}

impl PgLog {
    fn append_batch(&mut self, supply: &mut dyn Supply) -> Result<Taken, DrainError> {
        // What was sealed with a key that waits must not be in the database before the key is.
        self.waiting.hand_over(&self.conn)?;
        self.conn.begin()?;
        let state = read_head(&self.conn, "FOR UPDATE")?.map_err(DrainError::Database)?;
        failpoint::reach("drain.locked");
        if state.range.size() < self.size {
            return Err(DrainError::WentBack { from: self.size, to: state.range.size() });
        }
        self.lease.renew(&self.conn)?;
        let mut batch = Batch::new(state);
        let conn = &self.conn;
        batch.state.taken.extend(load_taken(conn, self.lease.replica())?);
        supply.meet(&batch.state, restore::awaited(conn)?)?;
        let read = supply.hand_over(&mut |id, leaf, body| {
            let identity = Identity { replica: id.replica, epoch: id.epoch };
            if !batch.knows(identity) {
                let known = load_taken(conn, id.replica)?;
                batch.state.taken.extend(known);
            }
            batch.take(id, leaf, body);
            Ok(())
        })?;
        for hole in std::mem::take(&mut batch.holes) {
            supply.state_gap(hole)?;
        }
        let size = batch.state.range.size();
        if batch.len() == 0 {
            self.conn.run("ROLLBACK")?;
        } else {
            supply.review(batch.first, &batch.state)?;
            self.waiting.go_along(&self.conn)?;
            write(&self.conn, &batch, &self.retention)?;
            failpoint::reach("drain.before_commit");
            self.conn.commit()?;
            failpoint::reach("drain.committed");
            self.waiting.note_away(false);
        }
        self.size = size;
        self.taken.clone_from(&batch.state.taken);
        Ok(Taken { read, inserted: batch.len() as u64, size })
    }
}

impl LogDatabase for PgLog {
    fn size(&self) -> u64 {
        self.size
    }

    fn append(&mut self, supply: &mut dyn Supply) -> Result<Taken, DrainError> {
        let taken = self.append_batch(supply);
        if matches!(taken, Err(DrainError::Waiting(_))) {
            // Only this leaves a connection that is used again.
            self.conn.run("ROLLBACK")?;
        }
        taken
    }

    fn open_deliveries(
        &mut self,
        after: i64,
        at_most: u32,
    ) -> Result<Vec<(i64, Vec<u8>)>, DrainError> {
        let sql = format!(
            "SELECT a.seq, {LEAF_OF_A} FROM response_audit_log a
             WHERE a.replica = $1 AND a.delivery_status IS NULL AND a.seq > $2
             ORDER BY a.seq LIMIT $3"
        );
        let replica = self.lease.replica();
        let at_most = i64::from(at_most);
        let values = [
            (&replica.as_slice() as _, Type::BYTEA),
            (&after as _, Type::INT8),
            (&at_most as _, Type::INT8),
        ];
        let rows = self.conn.query(&sql, &values)?;
        let open = rows.iter().map(|row| {
            let leaf: Option<Vec<u8>> = row.try_get(1)?;
            Ok((row.try_get(0)?, leaf.unwrap_or_default()))
        });
        open.collect::<Result<_, tokio_postgres::Error>>()
            .map_err(|error| DrainError::from(LinkError::from(error)))
    }

    fn taken(&self, identity: Identity) -> u64 {
        self.taken.get(&identity).copied().unwrap_or(0)
    }

    fn is_alone(&mut self) -> Result<bool, DrainError> {
        Ok(restore::is_alone(&self.conn, self.lease.replica())?)
    }

    fn ask_to_wait(&mut self, size: u64) -> Result<(), DrainError> {
        Ok(restore::ask_to_wait(&self.conn, self.lease.replica(), size)?)
    }

    fn accepted(&mut self, above: u64) -> Result<Option<Acceptance>, DrainError> {
        Ok(restore::accepted(&self.conn, above)?)
    }

    fn awaited(&mut self) -> Result<u64, DrainError> {
        Ok(restore::awaited(&self.conn)?)
    }

    fn accept(&mut self, old_size: u64, above: u64) -> Result<u64, DrainError> {
        Ok(restore::accept(&self.conn, (self.size, old_size), above)?)
    }
}

/// Writes a batch; the head must be locked.
pub(super) fn write(conn: &Conn, batch: &Batch, retention: &Retention) -> Result<(), LinkError> {
    write_entries(conn, batch)?;
    failpoint::reach("drain.inserted");
    write_derived(conn, &batch.derived, retention)?;
    write_head(conn, &batch.state)
}

/// Writes the bundle and the bodies of a batch.
pub(super) fn write_entries(conn: &Conn, batch: &Batch) -> Result<(), LinkError> {
    let (first, n) = (batch.first.cast_signed(), i32::try_from(batch.len()).unwrap_or(i32::MAX));
    let root = batch.state.range.root();
    let sql = "INSERT INTO log_bundle (first, n, root, ends, hashes, leaves)
               VALUES ($1, $2, $3, $4, $5, $6)";
    let values = [
        (&first as _, Type::INT8),
        (&n as _, Type::INT4),
        (&root.as_slice() as _, Type::BYTEA),
        (&batch.ends as _, Type::INT4_ARRAY),
        (&batch.hashes as _, Type::BYTEA),
        (&batch.leaves as _, Type::BYTEA),
    ];
    conn.execute(sql, &values)?;
    if !batch.tiles.is_empty() {
        let levels: Vec<i16> = batch.tiles.iter().map(|(id, _)| id.level.into()).collect();
        let places: Vec<i64> = batch.tiles.iter().map(|(id, _)| id.index.cast_signed()).collect();
        let hashes: Vec<&[u8]> = batch.tiles.iter().map(|(_, hashes)| &hashes[..]).collect();
        let sql = "INSERT INTO log_tile
                   SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::bytea[])";
        let values = [
            (&levels as _, Type::INT2_ARRAY),
            (&places as _, Type::INT8_ARRAY),
            (&hashes as _, Type::BYTEA_ARRAY),
        ];
        conn.execute(sql, &values)?;
    }
    if !batch.bodies.is_empty() {
        let sql = "INSERT INTO log_body SELECT * FROM unnest($1::bigint[], $2::bytea[])";
        let values =
            [(&batch.body_seqs as _, Type::INT8_ARRAY), (&batch.bodies as _, Type::BYTEA_ARRAY)];
        conn.execute(sql, &values)?;
    }
    Ok(())
}

/// Writes the head and the marks of the replicas.
pub(super) fn write_head(conn: &Conn, state: &LogState) -> Result<(), LinkError> {
    let (range, ts_ms) = (&state.range, state.ts_ms.cast_signed());
    let (size, root, encoded) = (range.size().cast_signed(), range.root(), range.encode());
    let edge = encode_edge(&state.edge);
    let sql = "UPDATE log_head SET size = $1, root = $2, compact_range = $3, ts_ms = $4,
               edge = $5";
    let values = [
        (&size as _, Type::INT8),
        (&root.as_slice() as _, Type::BYTEA),
        (&encoded as _, Type::BYTEA),
        (&ts_ms as _, Type::INT8),
        (&edge as _, Type::BYTEA),
    ];
    conn.execute(sql, &values)?;
    let replicas: Vec<&[u8]> = state.taken.keys().map(|identity| &identity.replica[..]).collect();
    let epochs: Vec<i64> = state.taken.keys().map(|identity| identity.epoch.into()).collect();
    let marks: Vec<i64> = state.taken.values().map(|n| n.cast_signed()).collect();
    let sql =
        "INSERT INTO log_replica SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[])
               ON CONFLICT (replica, epoch) DO UPDATE SET hwm = excluded.hwm";
    let values = [
        (&replicas as _, Type::BYTEA_ARRAY),
        (&epochs as _, Type::INT8_ARRAY),
        (&marks as _, Type::INT8_ARRAY),
    ];
    conn.execute(sql, &values).map(|_| ())
}

/// Writes the rows that follow from entries.
pub(super) fn write_derived(
    conn: &Conn,
    derived: &Derivation,
    retention: &Retention,
) -> Result<(), LinkError> {
    if !derived.decisions.is_empty() {
        write_decisions(conn, derived, retention)?;
    }
    if !derived.usage.is_empty() {
        usage::write(conn, &derived.usage)?;
    }
    if !derived.deliveries.is_empty() {
        write_deliveries(conn, derived)?;
    }
    if !derived.changes.is_empty() {
        let ids: Vec<&[u8]> = derived.changes.iter().map(|(id, _)| id.as_slice()).collect();
        let seqs: Vec<i64> = derived.changes.iter().map(|(_, seq)| *seq).collect();
        let sql = "INSERT INTO log_change SELECT * FROM unnest($1::bytea[], $2::bigint[])
                   ON CONFLICT DO NOTHING";
        conn.execute(sql, &[(&ids, Type::BYTEA_ARRAY), (&seqs, Type::INT8_ARRAY)])?;
    }
    for (seq, old, new) in &derived.rotations {
        let sql = "INSERT INTO log_rotation VALUES ($1, $2, $3)";
        conn.execute(sql, &[(seq, Type::INT8), (old, Type::TEXT), (new, Type::TEXT)])?;
    }
    // Last: what came in the same batch must be found as well.
    derived.forgotten.iter().try_for_each(|(seq, leaf)| forget_words(conn, *seq, leaf))
}

fn write_decisions(
    conn: &Conn,
    derived: &Derivation,
    retention: &Retention,
) -> Result<(), LinkError> {
    macro_rules! column {
        (|$row:ident| $value:expr) => {
            derived.decisions.iter().map(|$row| $value).collect::<Vec<_>>()
        };
    }
    let kept_until = |row: &AuditRow| {
        let (tenant, at) = (row.decision.tenant, row.decision.timestamp_ms);
        let until = retention.until(tenant.cast_unsigned(), at.cast_unsigned());
        until.map(|until| i64::try_from(until).unwrap_or(i64::MAX))
    };
    let sql = "INSERT INTO response_audit_log
               SELECT a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v,
                      w::json, x::json, y::json, z, policy, directives
               FROM unnest($1::bigint[], $2::uuid[],
               $3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bigint[], $8::text[],
               $9::text[], $10::bigint[], $11::bigint[], $12::boolean[], $13::text[], $14::text[],
               $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[],
               $20::text[], $21::boolean[], $22::bigint[], $23::text[], $24::text[], $25::text[],
               $26::bigint[], $27::bytea[], $28::bytea[])
               AS row (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z,
                       policy, directives)
               ON CONFLICT DO NOTHING";
    let values = [
        (&column!(|row| row.seq) as _, Type::INT8_ARRAY),
        (&column!(|row| Uuid::from_bytes(row.decision.id)) as _, Type::UUID_ARRAY),
        (&column!(|row| &row.replica[..]) as _, Type::BYTEA_ARRAY),
        (&column!(|row| row.decision.tenant) as _, Type::INT8_ARRAY),
        (&column!(|row| row.decision.subject.as_ref().map(|key| &key[..])) as _, Type::BYTEA_ARRAY),
        (&column!(|row| row.decision.session.as_ref().map(|key| &key[..])) as _, Type::BYTEA_ARRAY),
        (&column!(|row| row.decision.timestamp_ms) as _, Type::INT8_ARRAY),
        (&column!(|row| clean(&row.decision.outcome)) as _, Type::TEXT_ARRAY),
        (&column!(|row| clean(&row.decision.action)) as _, Type::TEXT_ARRAY),
        (&column!(|row| row.decision.score_e4) as _, Type::INT8_ARRAY),
        (&column!(|row| row.decision.attempts) as _, Type::INT8_ARRAY),
        (&column!(|row| row.decision.crisis) as _, Type::BOOL_ARRAY),
        (&column!(|row| clean(&row.decision.scrutiny)) as _, Type::TEXT_ARRAY),
        (&column!(|row| clean(&row.decision.model)) as _, Type::TEXT_ARRAY),
        (&column!(|row| row.decision.latency_ms) as _, Type::INT8_ARRAY),
        (&column!(|row| row.decision.cost_microusd) as _, Type::INT8_ARRAY),
        (&column!(|row| row.delivery.as_ref().map(|(seq, _)| *seq)) as _, Type::INT8_ARRAY),
        (&column!(|row| row.delivery.as_ref().map(|(_, d)| d.timestamp_ms)) as _, Type::INT8_ARRAY),
        (&column!(|row| row.delivery.as_ref().and_then(|(_, d)| d.bytes)) as _, Type::INT8_ARRAY),
        (
            &column!(|row| row.delivery.as_ref().map(|(_, d)| clean(&d.status))) as _,
            Type::TEXT_ARRAY,
        ),
        (&column!(|_row| false) as _, Type::BOOL_ARRAY),
        (&column!(|row| kept_until(row)) as _, Type::INT8_ARRAY),
        (&column!(|row| &row.decision.judged.verifying_agents[..]) as _, Type::TEXT_ARRAY),
        (&column!(|row| &row.decision.judged.consensus_result[..]) as _, Type::TEXT_ARRAY),
        (&column!(|row| &row.decision.judged.drift_alerts[..]) as _, Type::TEXT_ARRAY),
        (&column!(|row| row.decision.judged.exchange_count) as _, Type::INT8_ARRAY),
        (&column!(|row| &row.decision.judged.policy[..]) as _, Type::BYTEA_ARRAY),
        (&column!(|row| &row.decision.judged.directives[..]) as _, Type::BYTEA_ARRAY),
    ];
    conn.execute(sql, &values).map(|_| ())
}

fn write_deliveries(conn: &Conn, derived: &Derivation) -> Result<(), LinkError> {
    let late = &derived.deliveries;
    let ids: Vec<Uuid> = late.keys().map(|id| Uuid::from_bytes(*id)).collect();
    let seqs: Vec<i64> = late.values().map(|(seq, _)| *seq).collect();
    let times: Vec<i64> = late.values().map(|(_, delivery)| delivery.timestamp_ms).collect();
    let bytes: Vec<Option<i64>> = late.values().map(|(_, delivery)| delivery.bytes).collect();
    let states: Vec<String> = late.values().map(|(_, delivery)| clean(&delivery.status)).collect();
    let sql = "UPDATE response_audit_log a
               SET delivery_seq = d.seq, delivered_ms = d.ms, delivered_bytes = d.bytes,
                   delivery_status = d.status
               FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
                    AS d (id, seq, ms, bytes, status)
               WHERE a.id = d.id";
    let values = [
        (&ids as _, Type::UUID_ARRAY),
        (&seqs as _, Type::INT8_ARRAY),
        (&times as _, Type::INT8_ARRAY),
        (&bytes as _, Type::INT8_ARRAY),
        (&states as _, Type::TEXT_ARRAY),
    ];
    conn.execute(sql, &values).map(|_| ())
}

/// PostgreSQL's texts cannot hold a zero byte; a leaf can.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Where the log is, and who we are in it.
pub(crate) struct PgSource {
    pub(crate) connector: Connector,
    pub(crate) lease: Lease,
    pub(crate) dir: PathBuf,
    pub(crate) pepper: Pepper,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) waiting: WaitingKeys,
    pub(crate) retention: Arc<Retention>,
}

impl PgSource {
    /// Connects, brings the tables up to date, checks that directory and database belong together
    /// and takes the replica's lease; says what the log holds and whether it is ours to begin.
    ///
    /// # Errors
    /// When the server cannot be reached, or the log is not ours to write.
    pub(crate) fn reach(&self) -> Result<(PgLog, LogState, bool), StoreError> {
        let named = |error: LinkError| self.connector.named(&error);
        let mut conn = self.connector.connect(PATIENCE).map_err(named)?;
        schema::prepare(&mut conn, PATIENCE)?;
        shared::agree_on_pepper(&conn, &self.pepper)?;
        shared::bind(&conn, &self.dir, &*self.entropy)?;
        self.lease.take(&conn)?;
        let replica = self.lease.replica();
        let begins = shared::begins_log(&conn, replica).map_err(named)?;
        let head = read_head(&conn, "").map_err(named)?;
        let mut state = head.map_err(|what| StoreError::damaged(&self.connector.shown(), what))?;
        state.taken = load_taken(&conn, replica).map_err(named)?.into_iter().collect();
        let size = state.range.size();
        let (waiting, retention) = (self.waiting.clone(), Arc::clone(&self.retention));
        let (lease, taken) = (self.lease.clone(), state.taken.clone());
        let log = PgLog { conn, lease, size, taken, waiting, retention };
        Ok((log, state, begins))
    }

    /// The key that signs: all replicas have the same, and the first makes it.
    ///
    /// # Errors
    /// When this directory has another key than the other replicas, or none.
    pub(crate) fn signing_key(
        &self,
        options: &StoreOptions,
        identity: Identity,
        reached: bool,
    ) -> Result<KeyFile, StoreError> {
        if !reached {
            return KeyFile::load(&self.dir);
        }
        let conn = self.connector.connect(PATIENCE);
        let conn = conn.map_err(|error| self.connector.named(&error))?;
        shared::agree_on_key(&conn, &self.dir, || make_signing_key(options, identity, false))
    }
}

impl LogSource for PgSource {
    fn open(&self) -> Result<Box<dyn LogDatabase>, StoreError> {
        self.reach().map(|(log, _, _)| Box::new(log) as _)
    }
}
