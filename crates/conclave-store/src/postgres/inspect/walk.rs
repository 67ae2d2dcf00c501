//! One walk through the log: entries to the auditor, and what was derived from them compared.

use super::ahead::{Ahead, Bundle, range};
use super::bodies::{Bodies, BodyPage};
use super::get;
use crate::db::{DecisionColumns, DeliveryColumns, Judgement, UsageColumns};
use crate::inspect::{CheckpointCheck, Taken, Trouble};
use crate::postgres::batch::encode_edge;
use crate::postgres::link::{Conn, Param};
use crate::postgres::usage;
use crate::replica::Identity;
use conclave_ledger::{
    Auditor, CompactRange, Entry, Forgotten, Head, Kind, Leaf, Rotation, TILE_WIDTH, TileEdge,
    TileId, encode_hashes,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// A decision's row, and whether its words were forgotten.
type Decided = (DecisionColumns, bool);

/// What was seen of a page, to be compared with what was derived from it.
#[derive(Default)]
pub(super) struct Seen {
    forgotten: Forgotten,
    taken: Taken,
    decisions: BTreeMap<u64, Decided>,
    deliveries: Vec<(u64, [u8; 16], DeliveryColumns)>,
    rotations: Vec<(u64, Option<(String, String)>)>,
    usage: Vec<(u64, UsageColumns)>,
    ended: bool,
}

impl Seen {
    pub(super) fn knowing(forgotten: Forgotten) -> Self {
        Self { forgotten, ..Self::default() }
    }

    /// Entries after this are not in the tables yet; returns the numbers the log holds.
    pub(super) fn end(&mut self) -> Taken {
        self.ended = true;
        self.taken.clone()
    }

    pub(super) fn note(&mut self, seq: u64, leaf: &Leaf) {
        if self.ended {
            return;
        }
        let identity = Identity { replica: leaf.id.replica, epoch: leaf.id.epoch };
        self.taken.insert(identity, leaf.id.n);
        self.usage.extend(UsageColumns::of(leaf).map(|event| (seq, event)));
        match (&leaf.draft.kind, leaf.draft.audit) {
            (Kind::Decision, _) => {
                let forgotten = self.forgotten.explains(seq, leaf);
                let row = DecisionColumns::of(leaf).map(|row| (seq, (row, forgotten)));
                self.decisions.extend(row);
            }
            (Kind::Delivery, Some(audit)) => {
                self.deliveries.push((seq, audit, DeliveryColumns::of(leaf)));
            }
            (Kind::KeyRotate, _) => {
                let rotation = Rotation::from_public(&leaf.draft.public);
                let keys = rotation.map(|keys| (keys.old.to_string(), keys.new.to_string()));
                self.rotations.push((seq, keys));
            }
            _ => {}
        }
    }
}

/// One walk through the log.
pub(super) struct Walk<'w, 'a> {
    conn: &'w Conn,
    pub(super) auditor: Auditor<'a>,
    seen: &'w RefCell<Seen>,
    progress: Option<Box<dyn FnMut(u64, u64) + 'w>>,
    decisions: u64,
    requests: u64,
    edge: TileEdge,
    /// Full tiles of this page, still to be compared.
    tiles: Vec<(TileId, Vec<u8>)>,
    tile_count: u64,
    tile_finding: Option<(u64, String)>,
    checkpoints: CheckpointCheck,
}

/// Where the delivery of a decision stands, and what the table says of it.
type StoredDelivery = (Option<u64>, Option<DeliveryColumns>);

impl<'w, 'a> Walk<'w, 'a> {
    pub(super) fn new(
        conn: &'w Conn,
        auditor: Auditor<'a>,
        seen: &'w RefCell<Seen>,
        progress: Option<Box<dyn FnMut(u64, u64) + 'w>>,
        checkpoints: CheckpointCheck,
    ) -> Self {
        Self {
            conn,
            auditor,
            seen,
            progress,
            decisions: 0,
            requests: 0,
            edge: TileEdge::default(),
            tiles: Vec::new(),
            tile_count: 0,
            tile_finding: None,
            checkpoints,
        }
    }

    /// Takes the whole log; returns the head it should lead to.
    pub(super) fn whole_log(&mut self, ahead: &Ahead) -> Result<Option<Head>, Trouble> {
        let head = self.head()?;
        let total = head.as_ref().map_or(0, |head| head.size);
        loop {
            let bundles = ahead.bundles()?;
            if bundles.is_empty() {
                break;
            }
            self.feed(&bundles, ahead)?;
            self.compare()?;
            self.compare_usage()?;
            self.compare_tiles()?;
            if let Some(tell) = &mut self.progress {
                tell(self.auditor.entries(), total);
            }
        }
        self.whole_tables()?;
        self.compare_edge()?;
        Ok(head)
    }

    fn head(&mut self) -> Result<Option<Head>, Trouble> {
        let row = self.conn.row("SELECT size, root, compact_range FROM log_head", &[])?;
        let Some(row) = row else {
            self.auditor.note(0, None, "the head of the log is missing");
            return Ok(None);
        };
        let (size, root): (i64, &[u8]) = (get(&row, 0)?, get(&row, 1)?);
        let range: &[u8] = get(&row, 2)?;
        let Ok(root) = root.try_into() else {
            self.auditor.note(0, None, "the head of the log cannot be read");
            return Ok(None);
        };
        let head = Head { size: size.cast_unsigned(), root };
        let fits = |range: &CompactRange| range.size() == head.size && range.root() == head.root;
        if !CompactRange::decode(range).as_ref().is_some_and(fits) {
            let problem = "the tree in the head does not have the root in the head";
            self.auditor.note(head.size, None, problem);
        }
        Ok(Some(head))
    }

    fn feed(&mut self, bundles: &[Bundle], ahead: &Ahead) -> Result<(), Trouble> {
        let Some((from, to)) = range(bundles) else { return Ok(()) };
        let mut bodies = Bodies::new(|_, _| ahead.bodies(), from, to);
        for bundle in bundles {
            self.feed_bundle(bundle, &mut bodies)?;
        }
        Ok(())
    }

    fn feed_bundle(
        &mut self,
        bundle: &Bundle,
        bodies: &mut Bodies<impl FnMut(i64, i64) -> Result<BodyPage, Trouble>>,
    ) -> Result<(), Trouble> {
        let first = bundle.first.cast_unsigned();
        let Some(leaves) = &bundle.leaves else {
            self.auditor.note(first, None, "the leaves of a bundle are not of a possible size");
            return Ok(());
        };
        let n = usize::try_from(bundle.n).unwrap_or(0);
        let fits = bundle.ends.len() == n
            && bundle.hashes.len() == n * 32
            && bundle.ends.last().copied().unwrap_or(0).try_into() == Ok(leaves.len());
        if !fits {
            self.auditor.note(first, None, "the parts of a bundle do not fit together");
        }
        let mut start = 0;
        for (at, end) in bundle.ends.iter().take(n).enumerate() {
            let end = usize::try_from(*end).unwrap_or(0);
            let seq = first + at as u64;
            // What does not decode is named by the auditor, so nothing is left out silently.
            let leaf = leaves.get(start..end).unwrap_or_default();
            let leaf_hash = bundle.hashes.get(at * 32..at * 32 + 32).unwrap_or_default();
            let body = bodies.at(seq)?;
            if matches!(body, Some(None)) {
                self.auditor.note(seq, None, "the body is not of a possible size");
            }
            let hash = self.auditor.feed(&Entry { seq, leaf, leaf_hash, body: body.flatten() });
            let tiles = &mut self.tiles;
            self.edge.append(hash, |id, hashes| tiles.push((id, encode_hashes(hashes))));
            self.checkpoints.pass(&mut self.auditor)?;
            start = end;
        }
        if let (Ok(root), true) = (bundle.root.as_slice().try_into(), fits)
            && first + n as u64 == self.auditor.entries()
        {
            self.auditor.milestone(&root);
        }
        Ok(())
    }

    /// Compares what was derived from a page with the page.
    fn compare(&mut self) -> Result<(), Trouble> {
        let (decisions, deliveries) = {
            let mut seen = self.seen.borrow_mut();
            (std::mem::take(&mut seen.decisions), std::mem::take(&mut seen.deliveries))
        };
        let problem = "response_audit_log does not say what this entry says";
        let rows = self.decision_rows(&decisions)?;
        for (seq, expected) in &decisions {
            let same = match rows.get(&expected.0.id) {
                Some((at, stored)) if at == seq => {
                    self.decisions += 1;
                    stored == expected
                }
                // The same audit id twice: only its first decision has a row.
                Some((at, _)) => at < seq,
                None => false,
            };
            if !same {
                self.auditor.note(*seq, None, problem);
            }
        }
        let rotations = std::mem::take(&mut self.seen.borrow_mut().rotations);
        for (seq, expected) in rotations {
            let sql = "SELECT old_vkey, new_vkey FROM log_rotation
                       WHERE seq = $1 AND octet_length(old_vkey) + octet_length(new_vkey) <= 2048";
            let row = self.conn.row(sql, &[(&seq.cast_signed(), Type::INT8)])?;
            let stored =
                row.map(|row| Ok::<_, Trouble>((get(&row, 0)?, get(&row, 1)?))).transpose()?;
            if expected.is_none() || stored != expected {
                self.auditor.note(seq, None, "log_rotation does not say what this entry says");
            }
        }
        let rows = self.delivery_rows(&deliveries)?;
        for (seq, audit, expected) in &deliveries {
            // A later delivery of the same decision takes the place of an earlier one.
            // Whether it may be without its decision is for the log to say; a row that was taken away is missed
            // when its decision is compared.
            let same = rows.get(audit).is_none_or(|(at, stored)| {
                at.is_some_and(|at| at > *seq)
                    || (*at == Some(*seq) && stored.as_ref() == Some(expected))
            });
            if !same {
                self.auditor.note(*seq, None, problem);
            }
        }
        Ok(())
    }

    /// Compares the events that were derived from a page with the page.
    fn compare_usage(&mut self) -> Result<(), Trouble> {
        let expected = std::mem::take(&mut self.seen.borrow_mut().usage);
        self.requests += expected.len() as u64;
        let stored = usage::stored(self.conn, &expected)?;
        for (seq, event) in &expected {
            let same = stored.get(&event.id).is_some_and(|(at, stored)| {
                // The same audit id twice: only the first has an event.
                at < seq || (at == seq && stored == event)
            });
            if !same {
                let problem = "ai_usage_events does not say what this entry says";
                self.auditor.note(*seq, None, problem);
            }
        }
        Ok(())
    }

    /// Compares the tiles that became full with the stored ones.
    fn compare_tiles(&mut self) -> Result<(), Trouble> {
        let tiles = std::mem::take(&mut self.tiles);
        if tiles.is_empty() {
            return Ok(());
        }
        self.tile_count += tiles.len() as u64;
        let levels: Vec<i16> = tiles.iter().map(|(id, _)| id.level.into()).collect();
        let places: Vec<i64> = tiles.iter().map(|(id, _)| id.index.cast_signed()).collect();
        let sql = "SELECT t.level, t.idx, t.hashes
                   FROM unnest($1::smallint[], $2::bigint[]) AS w (level, idx)
                   JOIN log_tile t ON t.level = w.level AND t.idx = w.idx
                   WHERE octet_length(t.hashes) <= 8192";
        let values: [Param<'_>; 2] = [(&levels, Type::INT2_ARRAY), (&places, Type::INT8_ARRAY)];
        let rows = self.conn.query(sql, &values)?;
        let mut stored: HashMap<(i16, i64), Vec<u8>> = HashMap::new();
        for row in &rows {
            stored.insert((get(row, 0)?, get(row, 1)?), get(row, 2)?);
        }
        for (id, hashes) in &tiles {
            let place = (id.level.into(), id.index.cast_signed());
            if stored.get(&place) != Some(hashes) && self.tile_finding.is_none() {
                let first =
                    id.index.saturating_mul(TILE_WIDTH.saturating_pow(u32::from(id.level) + 1));
                let problem = format!("the stored tile {} is not what the entries say", id.path());
                self.tile_finding = Some((first, problem));
            }
        }
        Ok(())
    }

    /// Compares what is not full, and counts what should not be there.
    fn compare_edge(&mut self) -> Result<(), Trouble> {
        let size = self.edge.size();
        let row = self.conn.row("SELECT edge FROM log_head", &[])?;
        let stored: Option<Vec<u8>> = row.map(|row| get(&row, 0)).transpose()?;
        if stored.is_some_and(|stored| stored != encode_edge(&self.edge)) {
            let problem = "the edge in the head is not what the entries say".to_owned();
            self.tile_finding.get_or_insert((size, problem));
        }
        let row = self.conn.row("SELECT count(*) FROM log_tile", &[])?;
        let stored = row.map_or(Ok(0), |row| get::<i64>(&row, 0))?.cast_unsigned();
        if stored != self.tile_count {
            let problem = format!("{stored} tiles are stored, there should be {}", self.tile_count);
            self.tile_finding.get_or_insert((size, problem));
        }
        Ok(())
    }

    /// Tiles and checkpoints name a range of entries, so they only speak where no entry is known to
    /// be bad.
    pub(super) fn finish(self, last: u64, pinned: bool) -> Auditor<'a> {
        let Self { mut auditor, checkpoints, tile_finding, .. } = self;
        let entries = auditor.entries();
        let unsigned = pinned && last == 0 && entries > 0;
        let unsigned = unsigned.then(|| (0, "no checkpoint is stored for this log".to_owned()));
        let signed = checkpoints.finish(entries, last).or(unsigned);
        let findings = [tile_finding, signed].into_iter().flatten();
        let first = findings.min_by_key(|(seq, _)| *seq).filter(|_| auditor.is_sound());
        if let Some((seq, problem)) = first {
            auditor.note(seq, None, problem);
        }
        auditor
    }

    fn decision_rows(
        &self,
        expected: &BTreeMap<u64, Decided>,
    ) -> Result<HashMap<[u8; 16], (u64, Decided)>, Trouble> {
        let ids: Vec<Uuid> = expected.values().map(|(row, _)| Uuid::from_bytes(row.id)).collect();
        let sql = "SELECT id, tenant, subject, session, timestamp_ms, outcome, action,
                   safety_score_e4, regeneration_attempts, crisis, scrutiny, model, latency_ms,
                   cost_microusd, seq, verifying_agents::text, consensus_result::text,
                   drift_alerts::text, exchange_count, policy, directives, anonymized
                   FROM response_audit_log WHERE id = ANY($1)";
        let rows = self.conn.query(sql, &[(&ids, Type::UUID_ARRAY)])?;
        let found = rows.iter().map(|row| {
            let columns = decision_columns(row)?;
            let seq: i64 = get(row, 14)?;
            Ok((columns.id, (seq.cast_unsigned(), (columns, get(row, 21)?))))
        });
        found.collect()
    }

    fn delivery_rows(
        &self,
        expected: &[(u64, [u8; 16], DeliveryColumns)],
    ) -> Result<HashMap<[u8; 16], StoredDelivery>, Trouble> {
        let ids: Vec<Uuid> = expected.iter().map(|(_, id, _)| Uuid::from_bytes(*id)).collect();
        let sql = "SELECT id, delivery_seq, delivered_ms, delivered_bytes, delivery_status
                   FROM response_audit_log WHERE id = ANY($1)";
        let rows = self.conn.query(sql, &[(&ids, Type::UUID_ARRAY)])?;
        let found = rows.iter().map(|row| {
            let (id, at): (Uuid, Option<i64>) = (get(row, 0)?, get(row, 1)?);
            let (ms, status): (Option<i64>, Option<String>) = (get(row, 2)?, get(row, 4)?);
            let bytes = get(row, 3)?;
            let stored = ms.zip(status).map(|(timestamp_ms, status)| DeliveryColumns {
                timestamp_ms,
                bytes,
                status,
            });
            Ok((id.into_bytes(), (at.map(i64::cast_unsigned), stored)))
        });
        found.collect()
    }

    /// What is wrong with the tables as a whole; behind everything, because what is wrong with the
    /// log itself is worth more.
    fn whole_tables(&mut self) -> Result<(), Trouble> {
        let end = self.auditor.entries();
        let count = |sql: &str| -> Result<Option<i64>, Trouble> {
            self.conn.row(sql, &[])?.map_or(Ok(None), |row| get(&row, 0))
        };
        let rows = count("SELECT count(*) FROM response_audit_log")?.unwrap_or(0);
        if rows.cast_unsigned() != self.decisions {
            let decisions = self.decisions;
            let problem =
                format!("response_audit_log has {rows} rows, the log has {decisions} decisions");
            self.auditor.note(end, None, problem);
        }
        let events = count("SELECT count(*) FROM ai_usage_events")?.unwrap_or(0);
        if events.cast_unsigned() > self.requests {
            let requests = self.requests;
            let problem = format!("ai_usage_events has {events} rows, the log {requests} requests");
            self.auditor.note(end, None, problem);
        }
        let sql = "SELECT min(b.seq) FROM log_body b WHERE NOT EXISTS (
                   SELECT 1 FROM log_bundle l WHERE b.seq >= l.first AND b.seq < l.first + l.n
                   AND l.first = (SELECT max(first) FROM log_bundle WHERE first <= b.seq))
                   AND b.seq >= $1";
        let from = end.cast_signed();
        let orphan = self.conn.row(sql, &[(&from, Type::INT8)])?;
        let orphan: Option<i64> = orphan.map_or(Ok(None), |row| get(&row, 0))?;
        if let Some(seq) = orphan {
            let seq = seq.cast_unsigned();
            self.auditor.note(seq, None, "there is a body without its entry");
        }
        if self.stored_numbers()? != self.seen.borrow().taken {
            let problem = "log_replica does not hold the numbers of the log";
            self.auditor.note(end, None, problem);
        }
        Ok(())
    }

    fn stored_numbers(&self) -> Result<Taken, Trouble> {
        let rows = self.conn.query("SELECT replica, epoch, hwm FROM log_replica", &[])?;
        let numbers = rows.iter().map(|row| {
            let (replica, epoch): (&[u8], i64) = (get(row, 0)?, get(row, 1)?);
            let replica = replica.try_into().unwrap_or_default();
            let epoch = u32::try_from(epoch).unwrap_or(u32::MAX);
            Ok((Identity { replica, epoch }, get::<i64>(row, 2)?.cast_unsigned()))
        });
        numbers.collect()
    }
}

fn decision_columns(row: &Row) -> Result<DecisionColumns, Trouble> {
    let key = |at| -> Result<Option<[u8; 16]>, Trouble> {
        let bytes: Option<&[u8]> = get(row, at)?;
        // A key of another length is not the one of the leaf, and shows as such.
        Ok(bytes.map(|bytes| bytes.try_into().unwrap_or([0xff; 16])))
    };
    Ok(DecisionColumns {
        id: get::<Uuid>(row, 0)?.into_bytes(),
        tenant: get(row, 1)?,
        subject: key(2)?,
        session: key(3)?,
        timestamp_ms: get(row, 4)?,
        outcome: get(row, 5)?,
        action: get(row, 6)?,
        score_e4: get(row, 7)?,
        attempts: get(row, 8)?,
        crisis: get(row, 9)?,
        scrutiny: get(row, 10)?,
        model: get(row, 11)?,
        latency_ms: get(row, 12)?,
        cost_microusd: get(row, 13)?,
        judged: judgement(row)?,
    })
}

/// What a row says about how it was judged, behind the columns of the decision and its position.
fn judgement(row: &Row) -> Result<Judgement, Trouble> {
    let text = |at| Ok::<_, Trouble>(get::<Option<String>>(row, at)?.unwrap_or_default());
    let digest = |at| -> Result<[u8; 32], Trouble> {
        let bytes: Option<&[u8]> = get(row, at)?;
        // One of another length is not the one of the leaf, and shows as such.
        Ok(bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or([0xff; 32]))
    };
    Ok(Judgement {
        verifying_agents: text(15)?,
        consensus_result: text(16)?,
        drift_alerts: text(17)?,
        exchange_count: get(row, 18)?,
        policy: digest(19)?,
        directives: digest(20)?,
    })
}
