//! Reads the pages of every SQLite file through, again and again, so that one that was damaged is noticed
//! before somebody asks for what stood on it.
//!
//! **Invariant:** reading takes a small, fixed share of the time: the longer a file takes, the longer it is
//! left alone afterwards. A file of some megabytes is read every few seconds.

use crate::db::{open_to_check, quick_check};
use crate::spool::Progress;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The SQLite files of a data directory.
const FILES: [&str; 4] = ["ledger.db", "ops.db", "keys.db", "cache.db"];
/// The shortest time between two readings of one file.
const REST_MIN: Duration = Duration::from_secs(5);
/// After a reading a file rests so many times as long as that took.
const REST_SHARE: u32 = 200;

/// Reads files through until it is told to stop.
pub(crate) struct PageCheck {
    stopped: Mutex<bool>,
    wake: Condvar,
}

struct File {
    name: &'static str,
    path: PathBuf,
    due: Instant,
}

impl PageCheck {
    pub(crate) fn new() -> Self {
        Self { stopped: Mutex::new(false), wake: Condvar::new() }
    }

    pub(crate) fn stop(&self) {
        *self.stopped() = true;
        self.wake.notify_all();
    }

    fn stopped(&self) -> MutexGuard<'_, bool> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is due; `false` when it is time to end.
    fn wait(&self, until: Instant) -> bool {
        let pause = until.saturating_duration_since(Instant::now());
        let stopped = self.wake.wait_timeout_while(self.stopped(), pause, |stopped| !*stopped);
        !*stopped.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn run(&self, dir: &Path, progress: &Arc<Progress>) {
        let now = Instant::now();
        let file = |name| File { name, path: dir.join(name), due: now };
        let mut files: Vec<_> = FILES.into_iter().map(file).collect();
        while let Some(next) = files.iter_mut().min_by_key(|file| file.due) {
            if !self.wait(next.due) || progress.overtaken().is_some() {
                return;
            }
            let began = Instant::now();
            match read_through(&next.path) {
                Ok(problem) => progress.set_page_trouble(next.name, problem),
                Err(error) => {
                    tracing::warn!(file = next.name, error, "it could not be read through");
                }
            }
            next.due = Instant::now() + (began.elapsed() * REST_SHARE).max(REST_MIN);
        }
    }
}

/// What is wrong with the pages of a file, if anything; one that is not there is looked for elsewhere.
///
/// # Errors
/// When it could not be read now.
pub(crate) fn read_through(path: &Path) -> Result<Option<String>, String> {
    if !path.is_file() {
        return Ok(None);
    }
    match open_to_check(path).and_then(|conn| quick_check(&conn)) {
        Ok(problem) => Ok(problem),
        Err(rusqlite::Error::SqliteFailure(failure, said)) if is_damage(failure.code) => {
            Ok(Some(said.unwrap_or_else(|| failure.to_string())))
        }
        Err(error) => Err(error.to_string()),
    }
}

const fn is_damage(code: rusqlite::ErrorCode) -> bool {
    matches!(code, rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{OPS, open_writer};

    #[test]
    fn every_page_that_is_overwritten_is_noticed_and_a_whole_file_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ops.db");
        let conn = open_writer(&path, OPS).unwrap();
        for n in 0..200 {
            let sql = "INSERT INTO record VALUES ('k', 't', ?1, 1, 's', 'o', 1, NULL, 1, NULL, ?2)";
            conn.execute(sql, rusqlite::params![format!("{n:04}"), vec![7_u8; 900]]).unwrap();
        }
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(conn);
        assert_eq!(read_through(&path), Ok(None));
        let whole = std::fs::read(&path).unwrap();
        for page in 0..whole.len() / 4_096 {
            let mut bytes = whole.clone();
            bytes[page * 4_096..(page + 1) * 4_096].fill(0xff);
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(read_through(&path), Ok(Some(_))), "page {page}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_through(&path), Ok(None), "that it is missing is told by others");
    }
}
