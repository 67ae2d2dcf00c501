//! The ring: answers from memory which key is whose.
//!
//! **Invariant:** a request never waits for the database, except that an unknown key may make the
//! ring look, at most ten times a second whatever comes in.

use super::book::{KeyUse, read_keys};
use super::text::{KeyText, Pepper};
use crate::db::{OPS, open_writer};
use crate::error::StoreError;
use conclave_engine::{Clock, KeyRecord, KeyRing};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How often an unknown key may make the ring look.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

struct Held {
    record: KeyRecord,
    used_ms: AtomicU64,
    written_ms: AtomicU64,
}

type Keys = HashMap<[u8; 32], Arc<Held>>;

struct Source {
    conn: Connection,
    version: Option<i64>,
    looked: Option<Instant>,
}

/// Keys of the book, in memory.
pub(crate) struct BookRing {
    keys: RwLock<Keys>,
    source: Mutex<Source>,
    pepper: Pepper,
    clock: Arc<dyn Clock>,
}

impl BookRing {
    /// Reads all keys.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(crate) fn open(
        dir: &Path,
        pepper: Pepper,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let path = dir.join("ops.db");
        let conn = open_writer(&path, OPS)?;
        let source = Mutex::new(Source { conn, version: None, looked: None });
        let ring = Self { keys: RwLock::default(), source, pepper, clock };
        ring.refresh().map_err(StoreError::database(&path))?;
        Ok(ring)
    }

    /// Reads the keys again if another connection has changed the database.
    ///
    /// # Errors
    /// When the database cannot be read; the keys stay as they were.
    pub(crate) fn refresh(&self) -> rusqlite::Result<()> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        self.refresh_from(&mut source)
    }

    fn refresh_from(&self, source: &mut Source) -> rusqlite::Result<()> {
        let version = source.conn.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if source.version == Some(version) {
            return Ok(());
        }
        let listed = read_keys(&source.conn)?;
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let held = |(digest, key): ([u8; 32], KeyUse)| {
            let written_ms = key.last_used_ms.unwrap_or(0);
            let known: Option<&Arc<Held>> = keys.get(&digest);
            let used_ms = known.map_or(0, |held| held.used_ms.load(Ordering::Relaxed));
            let held = Held {
                record: key.record,
                used_ms: used_ms.max(written_ms).into(),
                written_ms: written_ms.into(),
            };
            (digest, Arc::new(held))
        };
        *keys = listed.into_iter().map(held).collect();
        source.version = Some(version);
        Ok(())
    }

    /// Looks into the database because of an unknown key, unless somebody just did.
    fn look_again(&self) {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if source.looked.is_some_and(|looked| now - looked < LOOK_PAUSE) {
            return;
        }
        source.looked = Some(now);
        if let Err(error) = self.refresh_from(&mut source) {
            tracing::error!(%error, "the API keys could not be read again");
        }
    }

    fn held(&self, digest: &[u8; 32]) -> Option<Arc<Held>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    /// Writes down when keys were last used.
    ///
    /// # Errors
    /// When the database refuses.
    pub(crate) fn write_uses(&self) -> rusqlite::Result<()> {
        let keys: Vec<_> = {
            let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
            keys.iter().map(|(digest, held)| (*digest, Arc::clone(held))).collect()
        };
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let tx = source.conn.transaction()?;
        for (digest, held) in keys {
            let used_ms = held.used_ms.load(Ordering::Relaxed);
            if used_ms > held.written_ms.load(Ordering::Relaxed) {
                let sql = "UPDATE api_key SET last_used_ms = ?2 WHERE digest = ?1";
                tx.prepare_cached(sql)?.execute(params![digest, used_ms.cast_signed()])?;
                held.written_ms.store(used_ms, Ordering::Relaxed);
            }
        }
        tx.commit()
    }
}

impl KeyRing for BookRing {
    fn find(&self, key: &str) -> Option<KeyRecord> {
        if !KeyText::is_plausible(key) {
            return None;
        }
        let digest = self.pepper.digest(key);
        let held = self.held(&digest).or_else(|| {
            self.look_again();
            self.held(&digest)
        })?;
        held.used_ms.fetch_max(self.clock.now_ms(), Ordering::Relaxed);
        Some(held.record.clone())
    }
}
