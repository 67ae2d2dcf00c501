//! The ring: answers from memory which key is whose.
//!
//! **Invariant:** a request never waits for the database, except that an unknown key may make the
//! ring look, at most ten times a second whatever comes in.

use super::book::KeyUse;
use super::text::{KeyText, Pepper};
use crate::error::StoreError;
use conclave_core::KeyId;
use conclave_engine::{Clock, KeyRecord, KeyRing};
use std::collections::HashMap;
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

#[derive(Default)]
struct Keys {
    by_digest: HashMap<[u8; 32], Arc<Held>>,
    by_id: HashMap<KeyId, Arc<Held>>,
}

/// Keys with their digests.
pub(crate) type Listed = Vec<([u8; 32], KeyUse)>;

/// Where keys are read.
pub(crate) trait KeySource: Send {
    /// All keys, if they may have changed since the last time.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn news(&mut self) -> Result<Option<Listed>, StoreError>;

    /// Writes down when keys were last used.
    ///
    /// # Errors
    /// When the database refuses.
    fn write_uses(&mut self, uses: &[([u8; 32], u64)]) -> Result<(), StoreError>;
}

struct Source {
    tables: Box<dyn KeySource>,
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
    /// Begins with the keys given, if there are any, and reads the others from now on.
    pub(crate) fn over(
        tables: Box<dyn KeySource>,
        known: Listed,
        pepper: Pepper,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let source = Mutex::new(Source { tables, looked: None });
        let ring = Self { keys: RwLock::default(), source, pepper, clock };
        ring.hold(known);
        ring
    }

    /// Reads the keys again if they have changed.
    ///
    /// # Errors
    /// When the database cannot be read; the keys stay as they were.
    pub(crate) fn refresh(&self) -> Result<(), StoreError> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        self.refresh_from(&mut source)
    }

    fn refresh_from(&self, source: &mut Source) -> Result<(), StoreError> {
        if let Some(listed) = source.tables.news()? {
            self.hold(listed);
        }
        Ok(())
    }

    fn hold(&self, listed: Listed) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let held = |(digest, key): ([u8; 32], KeyUse)| {
            let written_ms = key.last_used_ms.unwrap_or(0);
            let known: Option<&Arc<Held>> = keys.by_digest.get(&digest);
            let used_ms = known.map_or(0, |held| held.used_ms.load(Ordering::Relaxed));
            let held = Held {
                record: key.record,
                used_ms: used_ms.max(written_ms).into(),
                written_ms: written_ms.into(),
            };
            (digest, Arc::new(held))
        };
        let by_digest: HashMap<_, _> = listed.into_iter().map(held).collect();
        let named = by_digest.values().map(|held| (held.record.id.clone(), Arc::clone(held)));
        let by_id = named.collect();
        *keys = Keys { by_digest, by_id };
    }

    /// Looks into the database because of an unknown key, unless somebody just did.
    fn look_again(&self) {
        // Whoever is looking now looks for this one too; a request does not stand in line for it.
        let Ok(mut source) = self.source.try_lock() else { return };
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
        self.keys.read().unwrap_or_else(PoisonError::into_inner).by_digest.get(digest).cloned()
    }

    fn named(&self, id: &KeyId) -> Option<Arc<Held>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).by_id.get(id).cloned()
    }

    /// Writes down when keys were last used.
    ///
    /// # Errors
    /// When the database refuses.
    pub(crate) fn write_uses(&self) -> Result<(), StoreError> {
        let fresh: Vec<_> = {
            let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
            let fresh = keys.by_digest.iter().filter_map(|(digest, held)| {
                let used_ms = held.used_ms.load(Ordering::Relaxed);
                let written_ms = held.written_ms.load(Ordering::Relaxed);
                (used_ms > written_ms).then(|| (*digest, used_ms, Arc::clone(held)))
            });
            fresh.collect()
        };
        if fresh.is_empty() {
            return Ok(());
        }
        let uses: Vec<_> = fresh.iter().map(|(digest, used_ms, _)| (*digest, *used_ms)).collect();
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        source.tables.write_uses(&uses)?;
        for (_, used_ms, held) in fresh {
            held.written_ms.store(used_ms, Ordering::Relaxed);
        }
        Ok(())
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

    fn find_id(&self, id: &KeyId) -> Option<KeyRecord> {
        let held = self.named(id).or_else(|| {
            self.look_again();
            self.named(id)
        })?;
        Some(held.record.clone())
    }

    fn mark(&self, text: &str) -> [u8; 32] {
        // A key's text begins with `ck_`: what is marked here can never be taken for one.
        self.pepper.digest(&format!("mark\n{text}"))
    }
}
