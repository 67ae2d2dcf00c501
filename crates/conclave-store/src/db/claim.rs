//! Who may write to a log in SQLite: the process that came last.
//!
//! **Invariant:** a batch is appended in the same transaction in which its writer is found to be the one
//! in force. Where two processes got past the lock of the directory, the earlier one appends nothing more.

use conclave_engine::Entropy;
use rusqlite::{Connection, OptionalExtension, params};

/// One process's right to write, since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriterClaim {
    /// Counts the processes that ever wrote to this log.
    epoch: i64,
    /// Tells two copies of a log apart that counted alike.
    drawn: [u8; 16],
}

impl WriterClaim {
    /// Takes the right to write; whoever had it before has lost it.
    ///
    /// # Errors
    /// When the database refuses.
    pub(crate) fn take(conn: &Connection, entropy: &dyn Entropy) -> rusqlite::Result<Self> {
        let mut drawn = [0; 16];
        entropy.fill(&mut drawn);
        let sql = "INSERT INTO log_writer VALUES (1, 1, ?1)
                   ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1, claim = ?1 RETURNING epoch";
        let epoch = conn.query_row(sql, [drawn], |row| row.get(0))?;
        Ok(Self { epoch, drawn })
    }

    /// Whether nobody came later. A database that was put back from an older copy knows an earlier
    /// writer; there the right is taken again.
    ///
    /// # Errors
    /// When the database refuses.
    pub(crate) fn holds(self, conn: &Connection) -> rusqlite::Result<bool> {
        let mut found = conn.prepare_cached("SELECT epoch, claim FROM log_writer")?;
        let found =
            found.query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)));
        match found.optional()? {
            Some((epoch, drawn)) if epoch == self.epoch => Ok(drawn == self.drawn),
            Some((epoch, _)) if epoch > self.epoch => Ok(false),
            _ => {
                let sql = "INSERT INTO log_writer VALUES (1, ?1, ?2)
                           ON CONFLICT (id) DO UPDATE SET epoch = ?1, claim = ?2";
                conn.execute(sql, params![self.epoch, self.drawn]).map(|_| true)
            }
        }
    }
}

/// What the earlier writer is told.
pub(crate) fn overtaken() -> String {
    "another conclave writes to this ledger now; stop one of them, and start this one again with a \
     data directory of its own"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{LEDGER, open_writer};
    use std::sync::atomic::{AtomicU8, Ordering};

    #[derive(Default)]
    struct Counting(AtomicU8);
    impl Entropy for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    #[test]
    fn the_last_to_come_may_write_and_a_log_from_a_backup_knows_that_too() {
        let dir = tempfile::tempdir().unwrap();
        let entropy = Counting::default();
        let open = |name: &str| open_writer(&dir.path().join(name), LEDGER).unwrap();
        let (first, other) = (open("a.db"), open("b.db"));
        let earlier = WriterClaim::take(&first, &entropy).unwrap();
        assert!(earlier.holds(&first).unwrap());
        let later = WriterClaim::take(&first, &entropy).unwrap();
        assert!(!earlier.holds(&first).unwrap());
        assert!(later.holds(&first).unwrap());
        // An older copy, or an empty one.
        assert!(later.holds(&other).unwrap());
        assert!(!earlier.holds(&other).unwrap());
        // A copy in which somebody else counted as far.
        other.execute("UPDATE log_writer SET claim = zeroblob(16), epoch = 2", []).unwrap();
        assert!(!later.holds(&other).unwrap());
    }
}
