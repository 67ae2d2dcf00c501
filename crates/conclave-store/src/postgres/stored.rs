//! The log in PostgreSQL as it is read again, bundle by bundle, to see whether a disk forgot something.
//!
//! **Invariant:** what the server itself finds damaged, such as a page whose checksum is wrong, counts
//! as damage of the log; only a server that does not answer is left for later.

use super::inspect::{Bodies, body_page};
use super::link::{Conn, Connector, LinkError, Param};
use super::session::Session;
use crate::error::StoreError;
use crate::inspect::Trouble;
use crate::options::SEGMENT_BYTES_MAX;
use crate::scrub::{StoredLog, StoredRow, TakeStored};
use conclave_ledger::TileId;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest bundle that can have been written.
const BUNDLE_BYTES_MAX: i64 = (16 << 20) + SEGMENT_BYTES_MAX.cast_signed();

/// The tables of a log.
pub(crate) struct PgStored {
    session: Session,
    shown: PathBuf,
}

/// One bundle as stored.
struct Bundle {
    first: u64,
    ends: Vec<i32>,
    hashes: Vec<u8>,
    leaves: Option<Vec<u8>>,
}

impl PgStored {
    /// Connects when it is first used.
    pub(crate) fn later(connector: Connector) -> Self {
        Self { shown: connector.shown(), session: Session::new(connector, PATIENCE) }
    }

    fn ask<T>(
        &mut self,
        question: impl FnOnce(&Conn) -> Result<T, LinkError>,
    ) -> Result<T, StoreError> {
        let (mut damage, shown) = (None, &self.shown);
        let asked = self.session.with(|conn| {
            question(conn).inspect_err(|error| {
                damage = error.is_about_content().then(|| error.to_string());
            })
        });
        match damage {
            Some(message) => Err(StoreError::damaged(shown, message)),
            None => asked,
        }
    }
}

/// The bundle that holds a position, if there is one.
fn bundle(conn: &Conn, at: u64) -> Result<Option<Bundle>, LinkError> {
    let sql = "SELECT first, ends, hashes, CASE WHEN octet_length(leaves) <= $2 THEN leaves END
               FROM log_bundle WHERE first <= $1 AND first + n > $1
               AND cardinality(ends) <= 1000000 AND octet_length(hashes) <= 64000000
               ORDER BY first DESC LIMIT 1";
    let place = at.cast_signed();
    let row = conn.row(sql, &[(&place, Type::INT8), (&BUNDLE_BYTES_MAX, Type::INT8)])?;
    let read = |row: Row| {
        Ok(Bundle {
            first: row.try_get::<_, i64>(0)?.cast_unsigned(),
            ends: row.try_get(1)?,
            hashes: row.try_get(2)?,
            leaves: row.try_get(3)?,
        })
    };
    row.map(read).transpose()
}

impl Bundle {
    /// The leaf at a place and its stored hash.
    fn entry(&self, place: usize) -> (Option<&[u8]>, Option<&[u8]>) {
        let end = |place: usize| self.ends.get(place).and_then(|end| usize::try_from(*end).ok());
        let start = if place == 0 { Some(0) } else { end(place - 1) };
        let range = start.zip(end(place)).map(|(start, end)| start..end);
        let leaf = self.leaves.as_deref().zip(range).and_then(|(leaves, range)| leaves.get(range));
        (leaf, self.hashes.get(place * 32..place * 32 + 32))
    }
}

impl StoredLog for PgStored {
    fn size(&mut self) -> Result<u64, StoreError> {
        self.ask(|conn| {
            let row = conn.row("SELECT size FROM log_head", &[])?;
            Ok(row.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?.cast_unsigned())
        })
    }

    fn read(&mut self, at: u64, end: u64, take: &mut TakeStored<'_>) -> Result<(), StoreError> {
        let mut at = at;
        while at < end {
            let Some(bundle) = self.ask(|conn| bundle(conn, at))? else { return Ok(()) };
            let last = end.min(bundle.first + bundle.ends.len() as u64);
            let mut damage = None;
            let mut told = |trouble: Trouble| match trouble {
                Trouble::Damage(what) => {
                    damage = Some(what.clone());
                    LinkError::Told(what)
                }
                Trouble::Cannot(why) => LinkError::Told(why.to_string()),
            };
            let goes_on = self.ask(|conn| {
                let mut bodies = Bodies::new(
                    |from, to| body_page(conn, from, to),
                    at.cast_signed(),
                    last.cast_signed(),
                );
                for seq in at..last {
                    let place = usize::try_from(seq - bundle.first).unwrap_or(usize::MAX);
                    let (leaf, hash) = bundle.entry(place);
                    let body = bodies.at(seq).map_err(&mut told)?;
                    if !take(StoredRow { seq, leaf, hash, body }) {
                        return Ok(false);
                    }
                }
                Ok(true)
            });
            if let Some(what) = damage {
                return Err(StoreError::damaged(&self.shown, what));
            }
            if !goes_on? || last <= at {
                return Ok(());
            }
            at = last;
        }
        Ok(())
    }

    fn root_at(&mut self, size: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT root FROM log_bundle WHERE first < $1 AND first + n = $1
                   ORDER BY first DESC LIMIT 1";
        let size = size.cast_signed();
        self.ask(|conn| {
            let row = conn.row(sql, &[(&size, Type::INT8)])?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
    }

    fn tile(&mut self, id: TileId) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT hashes FROM log_tile WHERE level = $1 AND idx = $2
                   AND octet_length(hashes) <= 8192";
        let (level, index) = (i16::from(id.level), id.index.cast_signed());
        let values: [Param<'_>; 2] = [(&level, Type::INT2), (&index, Type::INT8)];
        self.ask(|conn| Ok(conn.row(sql, &values)?.map(|row| row.try_get(0)).transpose()?))
    }
}
