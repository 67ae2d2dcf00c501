//! Writes entries into the log's tables, and the rows that are derived from them.
//!
//! **Invariant:** entries, head, tree and the numbers already taken change in one transaction, so
//! that an entry is in the log exactly once however often it is handed over.

use super::columns::{DecisionColumns, DeliveryColumns, column};
use super::forgotten::forget_words;
use super::judgement::Judgement;
use super::open_reader;
use super::tiles::{self, TileWriter};
use super::usage::{self, UsageColumns};
use crate::forget::Retention;
use crate::replica::Identity;
use conclave_failpoint as failpoint;
use conclave_ledger::{
    CompactRange, EntryId, Gap, Kind, Leaf, Rotation, TileEdge, Value, leaf_hash,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, TransactionBehavior, params};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// How many rows are written together when all are derived again.
const REDERIVED_TOGETHER: usize = 1_000;

/// What the log looks like after its last entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogState {
    pub(crate) range: CompactRange,
    /// The tiles that are not full yet.
    pub(crate) edge: TileEdge,
    pub(crate) ts_ms: u64,
    /// The largest number taken of each identity.
    pub(crate) taken: BTreeMap<Identity, u64>,
}

/// Reads the state; the error is a sentence about what does not fit together.
pub(crate) fn load_state(conn: &Connection) -> rusqlite::Result<Result<LogState, String>> {
    let head = conn
        .query_row("SELECT size, root, compact_range, ts_ms FROM log_head", [], |row| {
            let (size, ts_ms): (i64, i64) = (row.get(0)?, row.get(3)?);
            let (root, range): (Vec<u8>, Vec<u8>) = (row.get(1)?, row.get(2)?);
            Ok((size.cast_unsigned(), root, range, ts_ms.cast_unsigned()))
        })
        .optional()?;
    let last: Option<i64> = conn.query_row("SELECT max(seq) FROM log_entry", [], |r| r.get(0))?;
    let entries = last.map_or(0, |last| last.cast_unsigned().saturating_add(1));
    let (size, root, range, ts_ms) = match head {
        Some((size, root, range, ts_ms)) => (size, Some(root), CompactRange::decode(&range), ts_ms),
        None => (0, None, Some(CompactRange::new()), 0),
    };
    let Some(range) = range.filter(|range| range.size() == size) else {
        return Ok(Err("its head does not fit its size".to_owned()));
    };
    if root.is_some_and(|root| root != range.root()) {
        return Ok(Err("its head does not have its root".to_owned()));
    }
    if size != entries {
        return Ok(Err(format!("its head counts {size} entries, there are {entries}")));
    }
    let Some(edge) = tiles::load_edge(conn, size)? else {
        return Ok(Err("its tiles do not fit its size".to_owned()));
    };
    Ok(Ok(LogState { range, edge, ts_ms, taken: load_taken(conn)? }))
}

fn load_taken(conn: &Connection) -> rusqlite::Result<BTreeMap<Identity, u64>> {
    let mut rows = conn.prepare("SELECT replica, epoch, hwm FROM log_replica")?;
    let taken = rows.query_map([], |row| {
        let (replica, epoch): ([u8; 8], u32) = (row.get(0)?, row.get(1)?);
        Ok((Identity { replica, epoch }, row.get::<_, i64>(2)?.cast_unsigned()))
    })?;
    taken.collect()
}

/// Positions and leaves of decisions whose delivery nobody recorded, after a position.
pub(crate) fn open_deliveries(
    conn: &Connection,
    after: i64,
    at_most: u32,
) -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
    let sql = "SELECT a.seq, e.leaf FROM response_audit_log a JOIN log_entry e ON e.seq = a.seq
               WHERE a.delivery_status IS NULL AND a.seq > ?1 ORDER BY a.seq LIMIT ?2";
    let mut rows = conn.prepare_cached(sql)?;
    rows.query_map(params![after, at_most], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Derives every row again from the log, in one transaction; says from how many entries.
pub(crate) fn rederive(conn: &mut Connection) -> rusqlite::Result<u64> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Until when words were to be kept follows from rules that stand in no leaf.
    tx.execute_batch(
        "CREATE TEMP TABLE kept_until (seq INTEGER PRIMARY KEY, until INTEGER NOT NULL);
         INSERT INTO kept_until SELECT seq, data_retention_until FROM response_audit_log
         WHERE data_retention_until IS NOT NULL;
         DELETE FROM response_audit_log; DELETE FROM log_change; DELETE FROM log_rotation;
         DELETE FROM log_forgotten; DELETE FROM ai_usage_events",
    )?;
    let mut entries = 0;
    {
        let retention = Retention::default();
        let mut inserter = Inserter::new(&tx, LogState::default(), &retention)?;
        let mut rows = tx.prepare("SELECT seq, leaf FROM log_entry ORDER BY seq")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            if let Ok(leaf) = Leaf::decode(row.get_ref(1)?.as_blob().unwrap_or_default()) {
                inserter.derive(row.get(0)?, &leaf)?;
            }
            if inserter.decisions.len() >= REDERIVED_TOGETHER {
                inserter.write_decisions()?;
                inserter.by_audit.clear();
            }
            entries += 1;
        }
        inserter.write_decisions()?;
    }
    tx.execute_batch(
        "UPDATE response_audit_log SET data_retention_until =
             (SELECT until FROM kept_until k WHERE k.seq = response_audit_log.seq)
         WHERE seq IN (SELECT seq FROM kept_until); DROP TABLE temp.kept_until",
    )?;
    failpoint::reach("rebuild.derived");
    tx.commit()?;
    Ok(entries)
}

/// Until when the words of decisions are to be kept, after a position, a page of them in order.
pub(crate) fn kept_until(database: &Path, after: i64) -> rusqlite::Result<Vec<(i64, i64)>> {
    let conn = open_reader(database)?;
    let sql = "SELECT seq, data_retention_until FROM response_audit_log
               WHERE seq > ?1 AND data_retention_until IS NOT NULL ORDER BY seq LIMIT 10000";
    let mut rows = conn.prepare(sql)?;
    rows.query_map([after], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Fills what a log from before these columns lacks. Until when words are kept stays as it was noted.
pub(crate) fn ensure_derived(conn: &mut Connection) -> rusqlite::Result<()> {
    let sql = "SELECT EXISTS (SELECT 1 FROM log_entry)
               AND NOT EXISTS (SELECT 1 FROM ai_usage_events)";
    if !conn.query_row(sql, [], |row| row.get::<_, bool>(0))? {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut rows = tx.prepare("SELECT seq, leaf FROM log_entry ORDER BY seq")?;
        let mut rows = rows.query([])?;
        let sql = "UPDATE response_audit_log SET verifying_agents = ?2, consensus_result = ?3,
                   drift_alerts = ?4, exchange_count = ?5, policy = ?6, directives = ?7
                   WHERE seq = ?1";
        let mut update = tx.prepare(sql)?;
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            let leaf = Leaf::decode(row.get_ref(1)?.as_blob().unwrap_or_default());
            let Ok(leaf) = leaf else { continue };
            if let Some(event) = UsageColumns::of(&leaf) {
                usage::insert(&tx, seq, &event)?;
            }
            if leaf.draft.kind == Kind::Decision {
                let j = Judgement::of(&leaf);
                let (votes, result) = (j.verifying_agents, j.consensus_result);
                let (drift, count) = (j.drift_alerts, j.exchange_count);
                update.execute(params![
                    seq,
                    votes,
                    result,
                    drift,
                    count,
                    j.policy,
                    j.directives
                ])?;
            }
        }
    }
    tx.commit()
}

/// Numbers that were passed over without a statement.
pub(crate) type Hole = (Identity, u64, u64);

/// A row of `response_audit_log` that is not written yet.
struct AuditRow {
    seq: i64,
    decision: DecisionColumns,
    delivery: Option<(i64, DeliveryColumns)>,
}

/// Adds entries to the log within one transaction.
pub(crate) struct Inserter<'tx> {
    conn: &'tx Connection,
    entry: CachedStatement<'tx>,
    body: CachedStatement<'tx>,
    state: LogState,
    tiles: TileWriter,
    retention: &'tx Retention,
    decisions: Vec<AuditRow>,
    by_audit: HashMap<[u8; 16], usize>,
    inserted: u64,
    holes: Vec<Hole>,
}

impl<'tx> Inserter<'tx> {
    /// Goes on from a state, which the transaction must have.
    pub(crate) fn new(
        conn: &'tx Connection,
        state: LogState,
        retention: &'tx Retention,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            entry: conn.prepare_cached("INSERT INTO log_entry VALUES (?1, ?2, ?3)")?,
            body: conn.prepare_cached("INSERT INTO log_body VALUES (?1, ?2)")?,
            tiles: TileWriter::default(),
            state,
            retention,
            decisions: Vec::new(),
            by_audit: HashMap::new(),
            inserted: 0,
            holes: Vec::new(),
        })
    }

    /// Adds an entry, unless it was added before.
    pub(crate) fn insert(&mut self, id: EntryId, leaf: &[u8], body: &[u8]) -> rusqlite::Result<()> {
        let identity = Identity { replica: id.replica, epoch: id.epoch };
        let taken = self.state.taken.entry(identity).or_insert(0);
        if id.n <= *taken {
            return Ok(());
        }
        let missing = *taken + 1..id.n;
        *taken = id.n;
        let seq = column(self.state.range.size());
        let hash = leaf_hash(leaf);
        self.entry.execute(params![seq, leaf, hash])?;
        if !body.is_empty() {
            self.body.execute(params![seq, body])?;
        }
        self.state.range.append(hash);
        self.tiles.append(&mut self.state.edge, hash);
        self.inserted += 1;
        // A leaf of a later version cannot be read here, but it is in the log all the same.
        let leaf = Leaf::decode(leaf).ok();
        if !missing.is_empty() && !leaf.as_ref().is_some_and(|leaf| states(leaf, id, &missing)) {
            self.holes.push((identity, missing.start, id.n - 1));
        }
        leaf.map_or(Ok(()), |leaf| self.derive(seq, &leaf))
    }

    /// Numbers that are missing without anybody having said so.
    pub(crate) fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// Writes what the entries have in common; returns the new state and how many entries there
    /// were.
    pub(crate) fn finish(mut self) -> rusqlite::Result<(LogState, u64)> {
        if self.inserted > 0 {
            self.write_decisions()?;
            self.tiles.write(self.conn, &self.state.edge)?;
            self.write_head()?;
        }
        Ok((self.state, self.inserted))
    }

    fn derive(&mut self, seq: i64, leaf: &Leaf) -> rusqlite::Result<()> {
        self.state.ts_ms = self.state.ts_ms.max(leaf.ts_ms);
        if let Some(event) = UsageColumns::of(leaf) {
            usage::insert(self.conn, seq, &event)?;
        }
        match leaf.draft.kind {
            Kind::Decision => {
                if let Some(decision) = DecisionColumns::of(leaf) {
                    self.by_audit.insert(decision.id, self.decisions.len());
                    self.decisions.push(AuditRow { seq, decision, delivery: None });
                }
                Ok(())
            }
            Kind::Delivery => self.deliver(seq, leaf),
            Kind::KeyRotate => self.note_rotation(seq, &leaf.draft.public),
            Kind::SubjectErase => {
                self.note_change(seq, &leaf.draft.public)?;
                self.forget(seq, leaf)
            }
            Kind::RetentionPurge => self.forget(seq, leaf),
            // Whatever became of a note is found again by its id.
            _ => self.note_change(seq, &leaf.draft.public),
        }
    }

    /// Most deliveries come in the same batch as their decision; then one row is written, once.
    fn deliver(&mut self, seq: i64, leaf: &Leaf) -> rusqlite::Result<()> {
        let Some(audit) = leaf.draft.audit else { return Ok(()) };
        let delivery = DeliveryColumns::of(leaf);
        let waiting = self.by_audit.get(&audit).and_then(|at| self.decisions.get_mut(*at));
        if let Some(row) = waiting {
            row.delivery = Some((seq, delivery));
            return Ok(());
        }
        let sql = "UPDATE response_audit_log SET delivery_seq = ?2, delivered_ms = ?3,
                   delivered_bytes = ?4, delivery_status = ?5 WHERE id = ?1";
        let DeliveryColumns { timestamp_ms, bytes, status } = delivery;
        let mut update = self.conn.prepare_cached(sql)?;
        update.execute(params![audit, seq, timestamp_ms, bytes, status]).map(|_| ())
    }

    fn note_change(&self, seq: i64, public: &Value) -> rusqlite::Result<()> {
        let Some(id) = public.get("outbox").and_then(Value::as_bytes) else { return Ok(()) };
        let sql = "INSERT INTO log_change VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.conn.prepare_cached(sql)?.execute(params![id, seq]).map(|_| ())
    }

    /// A rotation that does not hold changes no key; `verify` names it.
    fn note_rotation(&self, seq: i64, public: &Value) -> rusqlite::Result<()> {
        let Some(rotation) = Rotation::from_public(public).filter(Rotation::holds) else {
            return Ok(());
        };
        let (old, new) = (rotation.old.to_string(), rotation.new.to_string());
        let sql = "INSERT INTO log_rotation VALUES (?1, ?2, ?3)";
        self.conn.prepare_cached(sql)?.execute(params![seq, old, new]).map(|_| ())
    }

    /// Deletes the words that an erasure or a purge speaks of, in the transaction that brings it.
    fn forget(&mut self, seq: i64, leaf: &Leaf) -> rusqlite::Result<()> {
        // What came in the same batch must be found as well.
        self.write_decisions()?;
        self.by_audit.clear();
        forget_words(self.conn, seq, leaf)
    }

    fn write_decisions(&mut self) -> rusqlite::Result<()> {
        let sql = "INSERT INTO response_audit_log VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
                   ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, 0, ?20, ?21, ?22, ?23, ?24, ?25, ?26)
                   ON CONFLICT DO NOTHING";
        let mut insert = self.conn.prepare_cached(sql)?;
        for AuditRow { seq, decision: d, delivery } in self.decisions.drain(..) {
            let (delivery_seq, delivery) = delivery.unzip();
            let delivered_ms = delivery.as_ref().map(|delivery| delivery.timestamp_ms);
            let delivered_bytes = delivery.as_ref().and_then(|delivery| delivery.bytes);
            let status = delivery.map(|delivery| delivery.status);
            let (tenant, at) = (d.tenant.cast_unsigned(), d.timestamp_ms.cast_unsigned());
            let kept_until = self.retention.until(tenant, at).map(column);
            insert.execute(params![
                seq,
                d.id,
                d.tenant,
                d.subject,
                d.session,
                d.timestamp_ms,
                d.outcome,
                d.action,
                d.score_e4,
                d.attempts,
                d.crisis,
                d.scrutiny,
                d.model,
                d.latency_ms,
                d.cost_microusd,
                delivery_seq,
                delivered_ms,
                delivered_bytes,
                status,
                kept_until,
                d.judged.verifying_agents,
                d.judged.consensus_result,
                d.judged.drift_alerts,
                d.judged.exchange_count,
                d.judged.policy,
                d.judged.directives,
            ])?;
        }
        Ok(())
    }

    fn write_head(&self) -> rusqlite::Result<()> {
        let (range, ts_ms) = (&self.state.range, column(self.state.ts_ms));
        let (size, root) = (column(range.size()), range.root());
        let head = "INSERT INTO log_head VALUES (1, ?1, ?2, ?3, ?4)
                    ON CONFLICT (id) DO UPDATE
                    SET size = ?1, root = ?2, compact_range = ?3, ts_ms = ?4";
        self.conn.prepare_cached(head)?.execute(params![size, root, range.encode(), ts_ms])?;
        let batch = "INSERT INTO log_batch VALUES (?1, ?2)";
        self.conn.prepare_cached(batch)?.execute(params![size, root])?;
        let taken = "INSERT INTO log_replica VALUES (?1, ?2, ?3)
                     ON CONFLICT (replica, epoch) DO UPDATE SET hwm = ?3";
        let mut taken = self.conn.prepare_cached(taken)?;
        for (identity, n) in &self.state.taken {
            taken.execute(params![identity.replica, identity.epoch, column(*n)])?;
        }
        Ok(())
    }
}

/// Whether an entry is itself the statement about the numbers before it.
pub(crate) fn states(leaf: &Leaf, id: EntryId, missing: &std::ops::Range<u64>) -> bool {
    leaf.draft.kind == Kind::CoverageGap
        && Gap::from_public(&leaf.draft.public)
            .is_some_and(|gap| gap.covers(id.replica, id.epoch, missing.start, missing.end - 1))
}
