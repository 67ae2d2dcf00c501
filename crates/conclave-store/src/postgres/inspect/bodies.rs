//! The bodies of entries, read by pages of a bounded size.

use super::{PAGE_BYTES, VALUE_BYTES_MAX, get};
use crate::inspect::Trouble;
use crate::postgres::link::{Conn, Param};
use tokio_postgres::types::Type;

/// Bodies by their position; one that is too large to be read is none.
pub(in crate::postgres) type BodyPage = Vec<(u64, Option<Vec<u8>>)>;

/// The bodies of a range, a page at a time, from a source that is asked with where the page begins and the
/// range ends.
pub(in crate::postgres) struct Bodies<S> {
    source: S,
    page: BodyPage,
    at: usize,
    next: i64,
    to: i64,
}

impl<S: FnMut(i64, i64) -> Result<BodyPage, Trouble>> Bodies<S> {
    pub(in crate::postgres) const fn new(source: S, from: i64, to: i64) -> Self {
        Self { source, page: Vec::new(), at: 0, next: from, to }
    }

    /// The body of an entry: none, one that is too large to be read, or its bytes. Positions must
    /// be asked for in order.
    pub(in crate::postgres) fn at(&mut self, seq: u64) -> Result<Option<Option<&[u8]>>, Trouble> {
        loop {
            while self.page.get(self.at).is_some_and(|(found, _)| *found < seq) {
                self.at += 1;
            }
            if self.at < self.page.len() || self.next >= self.to {
                break;
            }
            self.turn()?;
        }
        let found = self.page.get(self.at).filter(|(found, _)| *found == seq);
        Ok(found.map(|(_, body)| body.as_deref()))
    }

    fn turn(&mut self) -> Result<(), Trouble> {
        self.page = (self.source)(self.next, self.to)?;
        self.at = 0;
        self.next = self.page.last().map_or(self.to, |(seq, _)| seq.cast_signed() + 1);
        Ok(())
    }
}

/// Reads the bodies of a range from its beginning, as many as make a page.
pub(in crate::postgres) fn body_page(conn: &Conn, from: i64, to: i64) -> Result<BodyPage, Trouble> {
    let sql = "SELECT seq, CASE WHEN octet_length(body) <= $4 THEN body END
               FROM (SELECT seq, body, sum(octet_length(body)) OVER (ORDER BY seq) AS run,
                            row_number() OVER (ORDER BY seq) AS at
                     FROM (SELECT seq, body FROM log_body WHERE seq >= $1 AND seq < $2
                           ORDER BY seq LIMIT 4096) page) runs
               WHERE run <= $3 OR at = 1 ORDER BY seq";
    let values: [Param<'_>; 4] = [
        (&from, Type::INT8),
        (&to, Type::INT8),
        (&PAGE_BYTES, Type::INT8),
        (&VALUE_BYTES_MAX, Type::INT8),
    ];
    let rows = conn.query(sql, &values)?;
    rows.iter().map(|row| Ok((get::<i64>(row, 0)?.cast_unsigned(), get(row, 1)?))).collect()
}
