//! Compares the query tables with the log they are derived from.
//!
//! **Invariant:** the log is the truth. A difference here can be mended by deriving the tables
//! again, but until then the answers of the archive are wrong, so it is a finding.

use super::log::StoredHead;
use crate::db::{
    DecisionColumns, DeliveryColumns, Judgement, USAGE_SINCE, UsageColumns, usage_is_derived,
    user_version,
};
use crate::replica::Identity;
use conclave_ledger::{Forgotten, Kind, Leaf, Rotation};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeMap;

/// The largest numbers of each identity.
pub(crate) type Taken = BTreeMap<Identity, u64>;

/// Follows the log and looks up what was derived from each entry.
pub(super) struct Derived<'a> {
    conn: &'a Connection,
    forgotten: Forgotten,
    taken: Taken,
    decisions: u64,
    requests: u64,
    has_usage: bool,
    ended: bool,
}

impl<'a> Derived<'a> {
    pub(super) fn new(conn: &'a Connection, forgotten: Forgotten) -> Self {
        let has_usage = user_version(conn).is_ok_and(|version| version >= USAGE_SINCE);
        let taken = Taken::new();
        Self { conn, forgotten, taken, decisions: 0, requests: 0, has_usage, ended: false }
    }

    /// Compares what was derived from an entry of the log.
    pub(super) fn compare(&mut self, seq: u64, leaf: &Leaf) -> Result<(), String> {
        if self.ended {
            return Ok(());
        }
        let identity = Identity { replica: leaf.id.replica, epoch: leaf.id.epoch };
        self.taken.insert(identity, leaf.id.n);
        self.compare_usage(seq, leaf)?;
        let same = match leaf.draft.kind {
            Kind::Decision => self.compare_decision(seq, leaf),
            Kind::Delivery => self.compare_delivery(seq, leaf),
            Kind::KeyRotate => self.compare_rotation(seq, leaf),
            _ => Ok(true),
        };
        match same {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{} does not say what this entry says", table(leaf))),
            Err(error) => Err(format!("{} cannot be read: {error}", table(leaf))),
        }
    }

    /// Entries after this are not in the tables yet; returns the numbers the log holds.
    pub(super) fn end_of_log(&mut self) -> Taken {
        self.ended = true;
        self.taken.clone()
    }

    /// What is wrong with the tables as a whole.
    pub(super) fn findings(&self, head: Option<&StoredHead>) -> Vec<String> {
        let mut findings = Vec::new();
        if let Some(StoredHead { head, range }) = head {
            let fits = |range: &conclave_ledger::CompactRange| {
                range.size() == head.size && range.root() == head.root
            };
            if !range.as_ref().is_some_and(fits) {
                findings.push("the tree in the head does not have the root in the head".to_owned());
            }
        }
        let count = "SELECT count(*) FROM response_audit_log";
        match self.conn.query_row(count, [], |row| row.get::<_, i64>(0)) {
            Ok(rows) if rows.cast_unsigned() == self.decisions => {}
            Ok(rows) => findings.push(format!(
                "response_audit_log has {rows} rows, the log has {} decisions",
                self.decisions
            )),
            Err(error) => findings.push(format!("response_audit_log cannot be read: {error}")),
        }
        findings.extend(self.surplus());
        match self.stored_numbers() {
            Ok(stored) if stored == self.taken => {}
            Ok(_) => findings.push("log_replica does not hold the numbers of the log".to_owned()),
            Err(error) => findings.push(format!("log_replica cannot be read: {error}")),
        }
        findings
    }

    fn compare_usage(&mut self, seq: u64, leaf: &Leaf) -> Result<(), String> {
        let event = if self.has_usage { UsageColumns::of(leaf) } else { None };
        let Some(event) = event else { return Ok(()) };
        self.requests += 1;
        match usage_is_derived(self.conn, seq.cast_signed(), &event) {
            Ok(true) => Ok(()),
            Ok(false) => Err("ai_usage_events does not say what this entry says".to_owned()),
            Err(error) => Err(format!("ai_usage_events cannot be read: {error}")),
        }
    }

    /// There may be fewer events than requests, where an audit id stands twice; never more.
    fn surplus(&self) -> Option<String> {
        let sql = "SELECT count(*) FROM ai_usage_events";
        let rows = self.has_usage.then(|| self.conn.query_row(sql, [], |row| row.get::<_, i64>(0)));
        match rows? {
            Ok(rows) if rows.cast_unsigned() <= self.requests => None,
            Ok(rows) => {
                Some(format!("ai_usage_events has {rows} rows, the log {} requests", self.requests))
            }
            Err(error) => Some(format!("ai_usage_events cannot be read: {error}")),
        }
    }

    fn stored_numbers(&self) -> rusqlite::Result<Taken> {
        let mut rows = self.conn.prepare("SELECT replica, epoch, hwm FROM log_replica")?;
        let taken = rows.query_map([], |row| {
            let (replica, epoch): ([u8; 8], u32) = (row.get(0)?, row.get(1)?);
            Ok((Identity { replica, epoch }, row.get::<_, i64>(2)?.cast_unsigned()))
        })?;
        taken.collect()
    }

    fn compare_rotation(&self, seq: u64, leaf: &Leaf) -> rusqlite::Result<bool> {
        let Some(expected) = Rotation::from_public(&leaf.draft.public) else { return Ok(false) };
        let sql = "SELECT old_vkey, new_vkey FROM log_rotation
                   WHERE seq = ?1 AND octet_length(old_vkey) + octet_length(new_vkey) <= 2048";
        let mut rows = self.conn.prepare_cached(sql)?;
        let stored = rows.query_row([seq.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?)));
        let expected: (String, String) = (expected.old.to_string(), expected.new.to_string());
        Ok(stored.optional()? == Some(expected))
    }

    fn compare_decision(&mut self, seq: u64, leaf: &Leaf) -> rusqlite::Result<bool> {
        let Some(expected) = DecisionColumns::of(leaf) else { return Ok(true) };
        let sql = "SELECT id, tenant, subject, session, timestamp_ms, outcome, action,
                   safety_score_e4, regeneration_attempts, crisis, scrutiny, model, latency_ms,
                   cost_microusd, verifying_agents, consensus_result, drift_alerts,
                   exchange_count, policy, directives, anonymized
                   FROM response_audit_log WHERE seq = ?1";
        // A log that an earlier version wrote has no such columns until it is opened again.
        let earlier = "SELECT id, tenant, subject, session, timestamp_ms, outcome, action,
                   safety_score_e4, regeneration_attempts, crisis, scrutiny, model, latency_ms,
                   cost_microusd FROM response_audit_log WHERE seq = ?1";
        let sql = if self.has_usage { sql } else { earlier };
        let mut row = self.conn.prepare_cached(sql)?;
        let forgotten = self.forgotten.explains(seq, leaf);
        let stored = row.query_row([seq.cast_signed()], |row| {
            let columns = decision_columns(row, (!self.has_usage).then_some(&expected.judged))?;
            let anonymized = if self.has_usage { row.get(20)? } else { forgotten };
            Ok((columns, anonymized))
        });
        let stored = stored.optional()?;
        match stored {
            Some(stored) => {
                self.decisions += 1;
                Ok(stored == (expected, forgotten))
            }
            // The same audit id twice: only its first decision has a row.
            None => {
                let sql = "SELECT 1 FROM response_audit_log WHERE id = ?1 AND seq < ?2";
                let mut first = self.conn.prepare_cached(sql)?;
                first.exists(params![expected.id, seq.cast_signed()])
            }
        }
    }

    fn compare_delivery(&self, seq: u64, leaf: &Leaf) -> rusqlite::Result<bool> {
        let Some(audit) = leaf.draft.audit else { return Ok(true) };
        let expected = DeliveryColumns::of(leaf);
        let sql = "SELECT delivery_seq, delivered_ms, delivered_bytes, delivery_status
                   FROM response_audit_log WHERE id = ?1";
        let mut row = self.conn.prepare_cached(sql)?;
        let stored = row.query_row([audit], |row| {
            let at: Option<i64> = row.get(0)?;
            let columns = (row.get(1)?, row.get(2)?, row.get(3)?);
            Ok((at, columns))
        });
        // Whether a delivery may be without its decision is for the log to say; a row that was taken away is
        // missed when its decision is compared.
        let Some((at, stored)) = stored.optional()? else { return Ok(true) };
        // A later delivery of the same decision takes the place of an earlier one.
        let later = at.is_some_and(|at| at.cast_unsigned() > seq);
        let here = at == Some(seq.cast_signed());
        let (ms, bytes, status) = (expected.timestamp_ms, expected.bytes, expected.status);
        Ok(later || (here && stored == (Some(ms), bytes, Some(status))))
    }
}

/// The table that an entry of this kind is derived into.
fn table(leaf: &Leaf) -> &'static str {
    if leaf.draft.kind == Kind::KeyRotate { "log_rotation" } else { "response_audit_log" }
}

/// Reads a row; one without columns of how it was judged is believed in that.
fn decision_columns(
    row: &Row<'_>,
    believed: Option<&Judgement>,
) -> rusqlite::Result<DecisionColumns> {
    Ok(DecisionColumns {
        id: row.get(0)?,
        tenant: row.get(1)?,
        subject: row.get(2)?,
        session: row.get(3)?,
        timestamp_ms: row.get(4)?,
        outcome: row.get(5)?,
        action: row.get(6)?,
        score_e4: row.get(7)?,
        attempts: row.get(8)?,
        crisis: row.get(9)?,
        scrutiny: row.get(10)?,
        model: row.get(11)?,
        latency_ms: row.get(12)?,
        cost_microusd: row.get(13)?,
        judged: match believed {
            Some(believed) => believed.clone(),
            None => Judgement {
                verifying_agents: row.get(14)?,
                consensus_result: row.get(15)?,
                drift_alerts: row.get(16)?,
                exchange_count: row.get(17)?,
                policy: row.get(18)?,
                directives: row.get(19)?,
            },
        },
    })
}
