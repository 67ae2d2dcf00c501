//! Reads the stored log again from time to time, so that a disk that forgets is noticed before
//! somebody asks for what it forgot.
//!
//! **Invariant:** a walk is slow on purpose: so many entries and bytes a second, in short read
//! transactions, so that it delays nobody.
//!
//! **Invariant:** what was found stays said until a walk through the whole log finds nothing. A body
//! that is missing altogether is left to `ledger verify`, which knows whether it may be.

use crate::db::open_reader;
use crate::options::SEGMENT_BYTES_MAX;
use crate::spool::Progress;
use conclave_ledger::{CompactRange, Leaf, StoredBody, leaf_hash};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::PathBuf;
use std::sync::Arc;

/// How many of the last entries are read every hour.
const RECENT_ENTRIES: u64 = 10_000;
/// How many entries are read in one step, of which there is one a second.
const STEP_ENTRIES: u64 = 2_000;
/// A step ends early when it has read so many bytes.
const STEP_BYTES: usize = 16 << 20;
/// Steps between two walks through the last entries, and when the first begins.
const RECENT_STEPS: (u64, u64) = (3_600, 60);
/// Steps between two walks through the whole log, and when the first begins.
const WHOLE_STEPS: (u64, u64) = (7 * 86_400, 600);

/// A walk that has begun.
struct Walk {
    at: u64,
    end: u64,
    /// The tree so far; only a walk from the beginning has one.
    tree: Option<CompactRange>,
}

/// Walks through the log, a step at a time.
pub(crate) struct Scrub {
    database: PathBuf,
    progress: Arc<Progress>,
    steps: u64,
    walk: Option<Walk>,
}

impl Scrub {
    pub(crate) fn new(database: PathBuf, progress: Arc<Progress>) -> Self {
        Self { database, progress, steps: 0, walk: None }
    }

    /// What a second is worth: begins a walk when one is due, or goes on with the one that has
    /// begun.
    ///
    /// # Errors
    /// When the database cannot be read now.
    pub(crate) fn step(&mut self) -> rusqlite::Result<()> {
        self.steps += 1;
        let due = |(every, first): (u64, u64)| self.steps % every == first;
        let (whole, recent) = (due(WHOLE_STEPS), due(RECENT_STEPS));
        if whole || (recent && self.walk.is_none()) {
            self.walk = Some(begin(&open_reader(&self.database)?, whole)?);
        }
        self.go_on().map(|_| ())
    }

    /// A whole walk at once; says what it found.
    ///
    /// # Errors
    /// When the database cannot be read now.
    pub(crate) fn walk_now(&mut self, whole: bool) -> rusqlite::Result<Option<String>> {
        self.walk = Some(begin(&open_reader(&self.database)?, whole)?);
        while self.go_on()? {}
        Ok(self.progress.damage())
    }

    /// Goes on with a walk, if there is one; says whether it goes on after that.
    fn go_on(&mut self) -> rusqlite::Result<bool> {
        let Some(mut walk) = self.walk.take() else { return Ok(false) };
        let conn = open_reader(&self.database)?;
        if let Some(problem) = walk.step(&conn)? {
            tracing::error!(problem, "the stored log is damaged");
            self.progress.set_damage(Some(problem));
            return Ok(false);
        }
        if walk.at < walk.end {
            self.walk = Some(walk);
            return Ok(true);
        }
        if walk.tree.is_some() {
            self.progress.set_damage(None);
        }
        Ok(false)
    }
}

fn begin(conn: &Connection, whole: bool) -> rusqlite::Result<Walk> {
    let size = conn.query_row("SELECT size FROM log_head", [], |row| row.get::<_, i64>(0));
    let end = size.optional()?.map_or(0, i64::cast_unsigned);
    let at = if whole { 0 } else { end.saturating_sub(RECENT_ENTRIES) };
    Ok(Walk { at, end, tree: (at == 0).then(CompactRange::new) })
}

impl Walk {
    /// Reads on; a sentence says what is wrong with which entry.
    fn step(&mut self, conn: &Connection) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT e.seq,
                          CASE WHEN typeof(e.leaf) = 'blob' AND length(e.leaf) <= ?3 THEN e.leaf END,
                          CASE WHEN typeof(e.leaf_hash) = 'blob' THEN e.leaf_hash END,
                          CASE WHEN typeof(b.body) = 'blob' AND length(b.body) <= ?3 THEN b.body END,
                          b.seq
                   FROM log_entry e LEFT JOIN log_body b ON b.seq = e.seq
                   WHERE e.seq >= ?1 AND e.seq < ?2 ORDER BY e.seq";
        let end = self.end.min(self.at + STEP_ENTRIES);
        let mut statement = conn.prepare(sql)?;
        let bounds = [self.at, end, SEGMENT_BYTES_MAX].map(u64::cast_signed);
        let mut rows = statement.query(params![bounds[0], bounds[1], bounds[2]])?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            match check(row, self.at) {
                Ok((hash, length)) => {
                    bytes += length;
                    self.tree.iter_mut().for_each(|tree| tree.append(hash));
                }
                Err(problem) => return Ok(Some(format!("entry {}: {problem}", self.at))),
            }
            self.at += 1;
            if bytes >= STEP_BYTES {
                return Ok(None);
            }
        }
        if self.at < end {
            return Ok(Some(format!("entry {}: it is missing", self.at)));
        }
        if self.at == self.end { self.check_root(conn) } else { Ok(None) }
    }

    fn check_root(&self, conn: &Connection) -> rusqlite::Result<Option<String>> {
        let Some(tree) = self.tree.as_ref().filter(|_| self.end > 0) else { return Ok(None) };
        let sql = "SELECT root FROM log_batch WHERE size = ?1";
        let stored = conn.query_row(sql, [self.end.cast_signed()], |row| row.get::<_, Vec<u8>>(0));
        let same = stored.optional()?.is_some_and(|root| root == tree.root());
        Ok((!same).then(|| format!("the tree of the first {} entries has another root", self.end)))
    }
}

/// Checks one row; returns the hash of its leaf and how many bytes it has.
fn check(row: &Row<'_>, at: u64) -> Result<([u8; 32], usize), String> {
    let text = |error: rusqlite::Error| error.to_string();
    let blob = |column| row.get_ref(column).map(|value| value.as_blob().ok()).map_err(text);
    if row.get::<_, i64>(0).map_err(text)?.cast_unsigned() != at {
        return Err("it is missing".to_owned());
    }
    let leaf = blob(1)?.ok_or("its leaf cannot be read")?;
    let hash = leaf_hash(leaf);
    if blob(2)? != Some(hash.as_slice()) {
        return Err("its leaf does not have the stored hash".to_owned());
    }
    let decoded = Leaf::decode(leaf).map_err(|error| error.to_string())?;
    let Some(body) = blob(3)? else {
        let stored = row.get::<_, Option<i64>>(4).map_err(text)?.is_some();
        return if stored { Err("its body cannot be read".into()) } else { Ok((hash, leaf.len())) };
    };
    let checked = StoredBody::decode(body).and_then(|body| body.check(&decoded.commitments));
    checked.map_err(|error| error.to_string())?;
    Ok((hash, leaf.len() + body.len()))
}
