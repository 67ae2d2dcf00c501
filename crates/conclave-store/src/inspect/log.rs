//! Feeds the log's tables to the auditor.
//!
//! **Invariant:** memory does not grow with the log: rows are read one at a time, and only their
//! sizes if they are too large.

use super::{Along, Trouble};
use crate::options::SEGMENT_BYTES_MAX;
use conclave_ledger::{Auditor, CompactRange, Entry, Head};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Rows};

/// The largest value that is read: no entry is larger than a spool segment.
const VALUE_BYTES_MAX: u64 = SEGMENT_BYTES_MAX;
/// How often progress is told.
const TELL_EVERY: u64 = 4_096;

/// The head and what stands beside it.
pub(super) struct StoredHead {
    pub(super) head: Head,
    pub(super) range: Option<CompactRange>,
}

/// Feeds every entry, then returns the head; `None` if there is none that could be read.
pub(super) fn feed_log(
    conn: &Connection,
    auditor: &mut Auditor<'_>,
    along: &mut Along<'_>,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Option<StoredHead>, Trouble> {
    let head = read_head(conn, auditor)?;
    let total = head.as_ref().map_or(0, |head| head.head.size);
    let mut milestones = conn.prepare("SELECT size, root FROM log_batch ORDER BY size")?;
    let mut milestones = Milestones::new(milestones.query([])?)?;
    let sql = "SELECT e.seq,
                      CASE WHEN typeof(e.leaf) = 'blob' AND length(e.leaf) <= ?1 THEN e.leaf END,
                      CASE WHEN typeof(e.leaf_hash) = 'blob' AND length(e.leaf_hash) <= 64
                           THEN e.leaf_hash END,
                      b.seq,
                      CASE WHEN typeof(b.body) = 'blob' AND length(b.body) <= ?1 THEN b.body END
               FROM log_entry e LEFT JOIN log_body b ON b.seq = e.seq ORDER BY e.seq";
    let mut entries = conn.prepare(sql)?;
    let mut rows = entries.query([VALUE_BYTES_MAX.cast_signed()])?;
    while let Some(row) = rows.next()? {
        feed_row(row, auditor, along)?;
        milestones.pass(auditor)?;
        along.checkpoints.pass(auditor)?;
        if auditor.entries().is_multiple_of(TELL_EVERY) {
            tell(auditor.entries(), total);
        }
    }
    tell(auditor.entries(), total);
    if auditor.entries() == total {
        note_orphans(conn, auditor)?;
    }
    Ok(head)
}

fn feed_row(
    row: &Row<'_>,
    auditor: &mut Auditor<'_>,
    along: &mut Along<'_>,
) -> Result<(), Trouble> {
    let expected = auditor.entries();
    let Ok(seq) = u64::try_from(row.get::<_, i64>(0)?) else {
        auditor.note(expected, None, "an entry has a position below 0");
        return Ok(());
    };
    // An empty leaf can never decode, so the auditor names the entry; this note says why, and comes
    // first.
    let leaf = blob(row, 1)?.unwrap_or_else(|| {
        auditor.note(seq, None, "the leaf is not a blob of a possible size");
        &[]
    });
    let leaf_hash = blob(row, 2)?.unwrap_or_else(|| {
        auditor.note(seq, None, "the hash of the leaf is not a blob of its size");
        &[]
    });
    let stored = row.get_ref(3)? != ValueRef::Null;
    let body = blob(row, 4)?;
    if stored && body.is_none() {
        auditor.note(seq, None, "the body is not a blob of a possible size");
    }
    along.tiles.follow(auditor.feed(&Entry { seq, leaf, leaf_hash, body }));
    Ok(())
}

fn blob<'a>(row: &'a Row<'_>, at: usize) -> Result<Option<&'a [u8]>, Trouble> {
    Ok(match row.get_ref(at)? {
        ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    })
}

fn read_head(conn: &Connection, auditor: &mut Auditor<'_>) -> Result<Option<StoredHead>, Trouble> {
    let sql = "SELECT size, root, compact_range FROM log_head";
    let read = conn
        .query_row(sql, [], |row| {
            let root: [u8; 32] = row.get(1)?;
            let range: Vec<u8> = row.get(2)?;
            let size = row.get::<_, i64>(0)?.cast_unsigned();
            Ok(StoredHead { head: Head { size, root }, range: CompactRange::decode(&range) })
        })
        .optional();
    match read.map_err(Trouble::from) {
        Ok(None) => {
            let count: i64 = conn.query_row("SELECT count(*) FROM log_entry", [], |r| r.get(0))?;
            if count > 0 {
                auditor.note(0, None, "the head of the log is missing");
            }
            Ok(None)
        }
        Ok(head) => Ok(head),
        Err(Trouble::Damage(_)) => {
            auditor.note(0, None, "the head of the log cannot be read");
            Ok(None)
        }
        Err(cannot) => Err(cannot),
    }
}

/// Bodies of entries that are not there.
fn note_orphans(conn: &Connection, auditor: &mut Auditor<'_>) -> Result<(), Trouble> {
    let sql = "SELECT min(b.seq) FROM log_body b
               WHERE NOT EXISTS (SELECT 1 FROM log_entry e WHERE e.seq = b.seq)";
    let orphan: Option<i64> = conn.query_row(sql, [], |row| row.get(0))?;
    if let Some(seq) = orphan {
        auditor.note(seq.cast_unsigned(), None, "there is a body without its entry");
    }
    Ok(())
}

/// Roots of earlier sizes, which narrow down where a log was changed.
struct Milestones<'a> {
    rows: Rows<'a>,
    next: Option<(u64, [u8; 32])>,
}

impl<'a> Milestones<'a> {
    fn new(rows: Rows<'a>) -> Result<Self, Trouble> {
        let mut milestones = Self { rows, next: None };
        milestones.advance()?;
        Ok(milestones)
    }

    fn advance(&mut self) -> Result<(), Trouble> {
        self.next = match self.rows.next()? {
            Some(row) => Some((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)),
            None => None,
        };
        Ok(())
    }

    fn pass(&mut self, auditor: &mut Auditor<'_>) -> Result<(), Trouble> {
        while let Some((size, root)) = self.next {
            if size > auditor.entries() {
                break;
            }
            if size == auditor.entries() {
                auditor.milestone(&root);
            }
            self.advance()?;
        }
        Ok(())
    }
}
