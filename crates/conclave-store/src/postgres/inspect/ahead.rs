//! Pages of the log, read on another connection while the page before is checked: the database works on one
//! and the auditor on the other.
//!
//! **Invariant:** both connections see the same snapshot. At most two pages wait, so memory stays bounded.

use super::bodies::{BodyPage, body_page};
use super::{CannotCheck, PAGE_BYTES, PATIENCE, VALUE_BYTES_MAX, get};
use crate::inspect::Trouble;
use crate::postgres::link::{Conn, Connector, Param};
use crate::postgres::url::DatabaseUrl;
use std::sync::mpsc::{Receiver, SyncSender};
use tokio_postgres::types::Type;

/// The largest bundle that can have been written: a full batch and one entry of the largest size.
const BUNDLE_BYTES_MAX: i64 = 16 << 20;

/// One bundle as stored.
pub(super) struct Bundle {
    pub(super) first: i64,
    pub(super) n: i32,
    pub(super) root: Vec<u8>,
    pub(super) ends: Vec<i32>,
    pub(super) hashes: Vec<u8>,
    pub(super) leaves: Option<Vec<u8>>,
}

/// From where to where bundles reach; the end is not included.
pub(super) fn range(bundles: &[Bundle]) -> Option<(i64, i64)> {
    let (first, last) = (bundles.first()?, bundles.last()?);
    Some((first.first, last.first.saturating_add(last.n.into())))
}

/// What comes: bundles, and behind them the bodies of their entries, page by page.
pub(super) enum Page {
    /// Empty where the log ends.
    Bundles(Vec<Bundle>),
    Bodies(BodyPage),
}

/// Where pages come from.
pub(super) struct Ahead(pub(super) Receiver<Result<Page, Trouble>>);

impl Ahead {
    /// The next bundles; bodies that nobody asked for are passed over.
    pub(super) fn bundles(&self) -> Result<Vec<Bundle>, Trouble> {
        loop {
            if let Page::Bundles(bundles) = self.next()? {
                return Ok(bundles);
            }
        }
    }

    /// The next bodies of the bundles that were taken last.
    pub(super) fn bodies(&self) -> Result<BodyPage, Trouble> {
        match self.next()? {
            Page::Bodies(bodies) => Ok(bodies),
            Page::Bundles(_) => Err(gone("its pages do not follow each other")),
        }
    }

    fn next(&self) -> Result<Page, Trouble> {
        self.0.recv().map_err(|_| gone("its reader has ended"))?
    }
}

fn gone(why: &str) -> Trouble {
    Trouble::Cannot(CannotCheck(format!("the database cannot be read: {why}")))
}

/// The name under which another connection can see what this one sees.
pub(super) fn snapshot(conn: &Conn) -> Result<String, Trouble> {
    let row = conn.row("SELECT pg_export_snapshot()", &[])?;
    get(&row.ok_or_else(|| gone("it gives no snapshot"))?, 0)
}

/// Reads the whole log, as long as somebody takes it.
pub(super) fn send_pages(
    url: &DatabaseUrl,
    snapshot: &str,
    to: &SyncSender<Result<Page, Trouble>>,
) {
    if let Err(trouble) = read_pages(url, snapshot, to) {
        // Whoever is gone needs no answer.
        let _ = to.send(Err(trouble));
    }
}

fn read_pages(
    url: &DatabaseUrl,
    snapshot: &str,
    to: &SyncSender<Result<Page, Trouble>>,
) -> Result<(), Trouble> {
    let connector = Connector::new(url).map_err(|error| gone(&error.to_string()))?;
    let conn = connector.connect(PATIENCE)?;
    conn.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    conn.run(&format!("SET TRANSACTION SNAPSHOT '{}'", snapshot.replace('\'', "")))?;
    let mut after = -1;
    loop {
        let bundles = bundles_after(&conn, after)?;
        let reach = range(&bundles);
        after = bundles.last().map_or(after, |last| last.first);
        if to.send(Ok(Page::Bundles(bundles))).is_err() {
            return Ok(());
        }
        let Some((mut next, end)) = reach else { return Ok(()) };
        while next < end {
            let bodies = body_page(&conn, next, end)?;
            next = bodies.last().map_or(end, |(seq, _)| seq.cast_signed() + 1);
            if to.send(Ok(Page::Bodies(bodies))).is_err() {
                return Ok(());
            }
        }
    }
}

fn bundles_after(conn: &Conn, after: i64) -> Result<Vec<Bundle>, Trouble> {
    let sql = "SELECT first, n, root, ends, hashes,
                      CASE WHEN octet_length(leaves) <= $3 THEN leaves END
               FROM (SELECT *, sum(octet_length(leaves)) OVER (ORDER BY first) AS run,
                            row_number() OVER (ORDER BY first) AS at
                     FROM (SELECT * FROM log_bundle WHERE first > $1
                           ORDER BY first LIMIT 256) page) runs
               WHERE (run <= $2 OR at = 1) AND cardinality(ends) <= 1000000
                 AND octet_length(hashes) <= 64000000 AND octet_length(root) <= 64
               ORDER BY first";
    let most = BUNDLE_BYTES_MAX + VALUE_BYTES_MAX;
    let values: [Param<'_>; 3] =
        [(&after, Type::INT8), (&PAGE_BYTES, Type::INT8), (&most, Type::INT8)];
    let rows = conn.query(sql, &values)?;
    let bundles = rows.iter().map(|row| {
        Ok(Bundle {
            first: get(row, 0)?,
            n: get(row, 1)?,
            root: get(row, 2)?,
            ends: get(row, 3)?,
            hashes: get(row, 4)?,
            leaves: get(row, 5)?,
        })
    });
    bundles.collect()
}
